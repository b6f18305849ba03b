//! Operators composed of others: results at arguments on which the way of composing depends.

use opsmith::{DType, Result, Tensor, TensorOps, Value, call};
use opsmith_graph::{Graph, InputSpec};

#[test]
fn differences_are_taken_as_often_as_asked_for() -> Result<()> {
    let cubes = Tensor::from_slice(&[1.0f64, 8.0, 27.0, 64.0, 125.0], &[5])?;
    let times = |n| cubes.diff_with(opsmith::DiffOptions::new().n(n));
    assert_eq!(times(3)?.to_vec::<f64>()?, [6.0, 6.0]);
    assert_eq!(times(4)?.to_vec::<f64>()?, [0.0]);
    assert_eq!(times(5)?.shape(), [0]);
    assert_eq!(times(i64::MAX)?.shape(), [0]);
    // Not the tensor itself: writes to the result stay there.
    times(0)?.fill_(0)?;
    assert_eq!(cubes.diff()?.to_vec::<f64>()?, [7.0, 19.0, 37.0, 61.0]);
    let long = opsmith::ones([5000])?;
    assert_eq!(long.diff_with(opsmith::DiffOptions::new().n(4000))?.shape(), [1000]);
    Ok(())
}

fn numbers(shape: &[i64]) -> Tensor {
    let numel = shape.iter().product::<i64>();
    let values: Vec<f64> = (0..numel).map(|at| ((at * 37 + 11) % 23) as f64 / 11.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn largest_difference(a: &Tensor, b: &Tensor) -> Result<f64> {
    assert_eq!(a.shape(), b.shape());
    let (a, b) = (a.to_vec::<f64>()?, b.to_vec::<f64>()?);
    Ok(a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
}

#[test]
fn the_inverse_of_a_short_time_transform_gives_the_signal() -> Result<()> {
    let signal = numbers(&[3, 100]);
    let window = opsmith::hann_window_with(16, opsmith::HannWindowOptions::new().dtype(DType::F64))?;
    let spectrum = call(
        "stft.center",
        &[
            Value::Tensor(signal.clone()),
            Value::Int(16),
            Value::Int(4),
            Value::None,
            Value::Tensor(window.clone()),
        ],
        &[("return_complex", Value::Bool(true))],
    )?
    .remove(0)
    .into_tensor()?;
    assert_eq!(spectrum.shape(), [3, 9, 26]);
    let options = opsmith::IstftOptions::new().hop_length(4).window(&window).length(100);
    let back = spectrum.istft_with(16, options)?;
    assert!(largest_difference(&back, &signal)? < 1e-12);
    Ok(())
}

#[test]
fn a_projected_recurrence_has_any_number_of_steps() -> Result<()> {
    let steps = 300;
    let input = numbers(&[steps, 2, 3]);
    let state = [numbers(&[1, 2, 2]), numbers(&[1, 2, 4])];
    let params = [numbers(&[16, 3]), numbers(&[16, 2]), numbers(&[2, 4])];
    let run = |input: &Tensor, state: &[Tensor]| {
        opsmith::lstm(input, state, &params, false, 1, 0.0, false, false, false)
    };
    let (whole, hidden, cell) = run(&input, &state)?;
    assert_eq!(whole.shape(), [steps, 2, 2]);
    let first = run(&input.narrow(0, 0, 120)?, &state)?;
    let rest = run(&input.narrow(0, 120, steps - 120)?, &[first.1, first.2])?;
    let joined = opsmith::cat(&[first.0, rest.0])?;
    for (a, b) in [(&whole, &joined), (&hidden, &rest.1), (&cell, &rest.2)] {
        assert!(largest_difference(a, b)? < 1e-12);
    }
    Ok(())
}

#[test]
fn repetitions_that_elements_decide_are_a_graph() -> Result<()> {
    let repeated = |x: &[Tensor]| {
        Ok(vec![x[0].repeat_interleave_by_with(&x[1], opsmith::RepeatInterleaveByOptions::new().dim(0))?])
    };
    let specs = [InputSpec::new(DType::F64, [3.into(), 2.into()]), InputSpec::new(DType::I64, [3.into()])];
    let graph = Graph::trace(repeated, specs)?;
    for counts in [[2i64, 0, 1], [0, 0, 0], [1, 4, 2]] {
        let inputs = [numbers(&[3, 2]), Tensor::of(&counts)];
        let (eager, found) = (repeated(&inputs)?.remove(0), graph.run(&inputs)?.remove(0));
        assert_eq!((eager.shape(), eager.to_vec::<f64>()?), (found.shape(), found.to_vec::<f64>()?));
    }
    Ok(())
}

#[test]
fn dropped_channels_are_dropped_as_a_whole() -> Result<()> {
    opsmith::runtime::random::manual_seed(5);
    let ones = opsmith::ones([20, 50, 3])?;
    let kept = ones.feature_dropout(0.25, true)?.to_vec::<f32>()?;
    let channels: Vec<&[f32]> = kept.chunks(3).collect();
    assert!(channels.iter().all(|channel| channel.iter().all(|element| *element == channel[0])));
    let zeros = channels.iter().filter(|channel| channel[0] == 0.0).count();
    assert!((150..350).contains(&zeros), "{zeros}");
    assert!(kept.iter().all(|element| *element == 0.0 || (*element - 4.0 / 3.0).abs() < 1e-6));
    Ok(())
}

#[test]
fn dropout_for_selu_keeps_mean_and_variance() -> Result<()> {
    opsmith::runtime::random::manual_seed(5);
    let normal = opsmith::randn([40_000])?;
    let found = normal.alpha_dropout(0.2, true)?.to_vec::<f32>()?;
    let mean = found.iter().sum::<f32>() / found.len() as f32;
    let variance = found.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / found.len() as f32;
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean}, {variance}");
    let changed = normal.alpha_dropout(0.2, false)?.to_vec::<f32>()?;
    assert_eq!(changed, normal.to_vec::<f32>()?);
    Ok(())
}
