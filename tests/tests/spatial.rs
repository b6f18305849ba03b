//! Operators over windows, borders, images, frequencies, bags and distances: gradients of first and second
//! order against differences, and results that PyTorch's recorded calls do not cover.

use opsmith::{DType, Tensor, Value};
use opsmith_tests::gradcheck::{Call, first_order, second_order, weights};

/// Numbers between -1 and 1.
fn t(shape: &[i64]) -> Value {
    Value::Tensor(weights(shape, 3))
}

/// Other numbers between -1 and 1.
fn u(shape: &[i64]) -> Value {
    Value::Tensor(weights(shape, 5))
}

/// Distinct numbers without a pattern, so that neither they nor their differences are equal anywhere.
fn distinct(shape: &[i64]) -> Value {
    let count: i64 = shape.iter().product();
    let numbers: Vec<f64> =
        (0..count).map(|at| 2.0 * ((at * at) as f64 * 0.37 + at as f64 * 1.1).sin()).collect();
    Value::Tensor(Tensor::from_slice(&numbers, shape).unwrap())
}

fn ints(numbers: &[i64]) -> Value {
    Value::Ints(numbers.to_vec())
}

fn bools(values: &[bool]) -> Value {
    Value::Bools(values.to_vec())
}

fn places(numbers: &[i64]) -> Value {
    Value::Tensor(Tensor::from_slice(numbers, &[numbers.len() as i64]).unwrap())
}

fn once(name: &str, args: Vec<Value>) {
    if let Err(text) = first_order(&Call::new(name, args)) {
        panic!("{text}");
    }
}

fn twice(name: &str, args: Vec<Value>) {
    let call = Call::new(name, args);
    let failures: Vec<String> =
        [first_order(&call), second_order(&call)].into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn convolution(
    input: &[i64],
    weight: &[i64],
    bias: Option<i64>,
    transposed: bool,
    groups: i64,
) -> Vec<Value> {
    let spatial = input.len() - 2;
    let bias = bias.map_or(Value::None, |size| t(&[size]));
    vec![
        u(input),
        t(weight),
        bias,
        ints(&vec![2; spatial]),
        ints(&vec![1; spatial]),
        ints(&vec![1; spatial]),
        transposed.into(),
        ints(&vec![if transposed { 1 } else { 0 }; spatial]),
        groups.into(),
    ]
}

#[test]
fn convolutions() {
    twice("convolution", convolution(&[2, 2, 5], &[3, 2, 3], Some(3), false, 1));
    twice("convolution", convolution(&[1, 4, 4, 5], &[2, 2, 3, 2], Some(2), false, 2));
    twice("convolution", convolution(&[1, 2, 4], &[2, 3, 3], Some(3), true, 1));
    twice("convolution", convolution(&[1, 4, 3], &[4, 1, 3], None, true, 2));
    twice("convolution", convolution(&[1, 1, 3, 3, 3], &[1, 1, 2, 2, 2], None, false, 1));
}

#[test]
fn columns() {
    let window = || vec![ints(&[2, 2]), ints(&[1, 1]), ints(&[1, 0]), ints(&[2, 1])];
    twice("im2col", [vec![t(&[1, 2, 4, 3])], window()].concat());
    twice("col2im", [vec![t(&[1, 8, 6]), ints(&[4, 3])], window()].concat());
}

#[test]
fn pools() {
    twice("avg_pool2d", vec![t(&[1, 2, 4, 5]), ints(&[2, 3]), ints(&[1, 2]), ints(&[1, 1])]);
    let args =
        vec![t(&[2, 5, 4]), ints(&[2, 2]), ints(&[]), ints(&[1, 1]), true.into(), false.into(), Value::None];
    twice("avg_pool2d", args);
    twice("avg_pool3d", vec![t(&[1, 1, 3, 3, 3]), ints(&[2, 2, 2]), ints(&[1, 1, 1])]);
    twice("max_pool2d_with_indices", vec![distinct(&[1, 2, 4, 4]), ints(&[2, 2])]);
    let overlapping = vec![distinct(&[1, 5, 5]), ints(&[3, 3]), ints(&[1, 1]), ints(&[1, 1]), ints(&[1, 1])];
    twice("max_pool2d_with_indices", overlapping);
    twice("max_pool3d_with_indices", vec![distinct(&[1, 1, 4, 2, 4]), ints(&[2, 2, 2])]);
    twice("max_pool2d", vec![distinct(&[1, 1, 4, 4]), ints(&[2, 2])]);
    twice("_adaptive_avg_pool2d", vec![t(&[2, 5, 4]), ints(&[3, 2])]);
    twice("_adaptive_avg_pool3d", vec![t(&[1, 2, 3, 3, 2]), ints(&[2, 2, 2])]);
}

/// The kernels would write no element, and the result would be uninitialised memory.
#[test]
fn nothing_cannot_be_pooled() {
    let x = opsmith::zeros([1, 0, 4]).unwrap();
    let empty = "there are no elements to pool in the shape (1, 0, 4)";
    let refused = |result: Result<Tensor, opsmith::Error>| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(empty), "{error}");
    };
    refused(opsmith::adaptive_avg_pool2d(&x, [2, 2]));
    let padded = opsmith::MaxPool2dWithIndicesOptions::new().padding([1]);
    refused(opsmith::max_pool2d_with_indices_with(&x, [2], &padded).map(|(values, _)| values));
    refused(opsmith::avg_pool2d_with(&x, [2], opsmith::AvgPool2dOptions::new().padding([1])));
}

#[test]
fn borders() {
    for (kind, sizes, padding) in [
        ("1d", &[2, 4][..], &[1, 2][..]),
        ("2d", &[1, 3, 4], &[1, 2, 0, 2]),
        ("3d", &[1, 2, 3, 3], &[1, 0, 2, 1, 1, 0]),
    ] {
        twice(&format!("reflection_pad{kind}"), vec![t(sizes), ints(padding)]);
        twice(&format!("replication_pad{kind}"), vec![t(sizes), ints(padding)]);
    }
}

#[test]
fn norms() {
    twice("native_layer_norm", vec![t(&[2, 3, 2]), ints(&[3, 2]), u(&[3, 2]), t(&[3, 2]), 0.1.into()]);
    twice("native_layer_norm", vec![t(&[3, 4]), ints(&[4]), Value::None, Value::None, 0.01.into()]);
    twice("rms_norm", vec![t(&[2, 3, 2]), ints(&[3, 2]), u(&[3, 2]), 0.1.into()]);
    twice("rms_norm", vec![t(&[3, 4]), ints(&[4]), Value::None, Value::None]);
    let group = |weight: Value, bias: Value| {
        vec![t(&[2, 4, 3]), weight, bias, 2i64.into(), 4i64.into(), 3i64.into(), 2i64.into(), 0.1.into()]
    };
    twice("native_group_norm", group(u(&[4]), t(&[4])));
    twice("native_group_norm", group(Value::None, Value::None));
    let batch =
        |weight: Value, bias: Value| vec![t(&[3, 2, 2]), weight, bias, true.into(), 0.1.into(), 0.1.into()];
    twice("_native_batch_norm_legit.no_stats", batch(u(&[2]), t(&[2])));
    twice("_native_batch_norm_legit.no_stats", batch(Value::None, Value::None));
}

#[test]
fn batch_norm_in_place_updates_the_running_statistics_it_was_given() {
    let x = weights(&[3, 2, 2], 3);
    let (mean, variance) = (Tensor::of(&[0.5, -0.5]), Tensor::of(&[2.0, 1.0]));
    let (result, saved, _) =
        opsmith::native_batch_norm_(&x, None, None, &mean, &variance, true, 0.25, 1e-5).unwrap();
    let (functional, _, _, new_mean, new_variance) = opsmith::native_batch_norm(
        &x,
        None,
        None,
        &Tensor::of(&[0.5, -0.5]),
        &Tensor::of(&[2.0, 1.0]),
        true,
        0.25,
        1e-5,
    )
    .unwrap();
    let numbers = |tensor: &Tensor| tensor.to_vec::<f64>().unwrap();
    assert_eq!(numbers(&result), numbers(&functional));
    assert_eq!(numbers(&mean), numbers(&new_mean));
    assert_eq!(numbers(&variance), numbers(&new_variance));
    for (new, (old, batch)) in numbers(&mean).iter().zip([0.5, -0.5].iter().zip(numbers(&saved))) {
        assert!((new - (0.75 * old + 0.25 * batch)).abs() < 1e-12);
    }
    // Without training the statistics are used and not changed.
    let (before, used) = (numbers(&mean), numbers(&variance));
    let (result, saved, _) =
        opsmith::native_batch_norm_(&x, None, None, &mean, &variance, false, 0.25, 0.0).unwrap();
    assert_eq!((numbers(&mean), numbers(&variance), saved.shape()), (before.clone(), used.clone(), &[0][..]));
    let expected = (numbers(&x)[0] - before[0]) / used[0].sqrt();
    assert!((numbers(&result)[0] - expected).abs() < 1e-12);
    // Gradients flow although the statistics were written since.
    let leaf = x.detach().requires_grad_(true).unwrap();
    let (result, ..) =
        opsmith::native_batch_norm_(&leaf, None, None, &mean, &variance, false, 0.25, 0.0).unwrap();
    opsmith::sum(&result).unwrap().backward().unwrap();
    assert!((numbers(&leaf.grad().unwrap())[0] - 1.0 / used[0].sqrt()).abs() < 1e-12);
}

#[test]
fn batch_norm_with_given_statistics() {
    let variance = Value::Tensor(Tensor::from_slice(&[0.5, 2.0], &[2]).unwrap());
    let args = vec![
        u(&[3, 2, 2]),
        t(&[3, 2, 2]),
        u(&[2]),
        t(&[2]),
        variance,
        Value::None,
        Value::None,
        false.into(),
        0.1.into(),
    ];
    twice("native_batch_norm_backward", [args, vec![bools(&[true, true, true])]].concat());
}

#[test]
fn distances() {
    for p in [1.0, 1.5, 2.0, 3.0, f64::INFINITY] {
        twice("_cdist_forward", vec![distinct(&[3, 2]), u(&[2, 2]), p.into(), Value::None]);
        once("_pdist_forward", vec![distinct(&[4, 3]), p.into()]);
    }
    twice("_cdist_forward", vec![t(&[1, 2, 3]), u(&[2, 3, 3]), 2.0.into(), Value::None]);
}

#[test]
fn images() {
    let grid = || {
        let numbers: Vec<f64> =
            weights(&[1, 2, 3, 2], 4).to_vec::<f64>().unwrap().iter().map(|x| x * 0.83).collect();
        Value::Tensor(Tensor::from_slice(&numbers, &[1, 2, 3, 2]).unwrap())
    };
    for interpolation in [0i64, 2] {
        for outside in [0i64, 1, 2] {
            let args = vec![t(&[1, 2, 4, 5]), grid(), interpolation.into(), outside.into(), false.into()];
            once("grid_sampler_2d", args);
        }
    }
}

#[test]
fn frequencies() {
    for normalization in [0i64, 1, 2] {
        for size in [4, 5] {
            let whole =
                Call::new("_fft_r2c", vec![t(&[2, size]), ints(&[1]), normalization.into(), true.into()]);
            assert_eq!(slope_of_complex(&whole), Ok(()));
            let all =
                Call::new("_fft_r2c", vec![t(&[3, size]), ints(&[1, 0]), normalization.into(), false.into()]);
            assert_eq!(slope_of_complex(&all), Ok(()));
        }
    }
}

/// The gradients of a real function made of a complex result, by way of its parts.
fn slope_of_complex(call: &Call<'_>) -> Result<(), String> {
    let Value::Tensor(x) = &call.args[0] else { unreachable!("the first argument is a tensor") };
    let total = |x: &Tensor| {
        let mut args = call.args.clone();
        args[0] = Value::Tensor(x.clone());
        let result = opsmith::call(call.name, &args, &[]).unwrap();
        let Value::Tensor(y) = &result[0] else { unreachable!("one tensor") };
        let part = |part: Tensor, seed| {
            opsmith::sum(&opsmith::mul(&part, &weights(part.shape(), seed)).unwrap()).unwrap()
        };
        opsmith::add(&part(opsmith::real(y).unwrap(), 7), &part(opsmith::imag(y).unwrap(), 8)).unwrap()
    };
    let leaf = x.detach().requires_grad_(true).unwrap();
    total(&leaf).backward().unwrap();
    let found = leaf.grad().unwrap().to_vec::<f64>().unwrap();
    let numbers = x.to_vec::<f64>().unwrap();
    for (at, found) in found.iter().enumerate() {
        let moved = |by: f64| {
            let mut numbers = numbers.clone();
            numbers[at] += by;
            total(&Tensor::from_slice(&numbers, x.shape()).unwrap()).to_vec::<f64>().unwrap()[0]
        };
        let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        if (slope - found).abs() > 1e-6 {
            return Err(format!("{}, element {at}: the slope is {slope}, the gradient {found}", call.name));
        }
    }
    Ok(())
}

#[test]
fn a_transform_and_its_inverse_give_the_numbers_back_and_gradients_of_one() {
    let x = weights(&[3, 6], 2).requires_grad_(true).unwrap();
    let there = opsmith::fft_r2c(&x, [1], 1, true).unwrap();
    assert_eq!((there.dtype(), there.shape()), (DType::C128, &[3, 4][..]));
    let back = opsmith::fft_c2r(&there, [1], 1, 6).unwrap();
    for (a, b) in x.to_vec::<f64>().unwrap().iter().zip(back.detach().to_vec::<f64>().unwrap()) {
        assert!((a - b).abs() < 1e-12, "{a} became {b}");
    }
    opsmith::sum(&back).unwrap().backward().unwrap();
    for gradient in x.grad().unwrap().to_vec::<f64>().unwrap() {
        assert!((gradient - 1.0).abs() < 1e-12, "{gradient}");
    }
}

#[test]
fn bags() {
    let bag = |mode: i64, weights: Value| {
        vec![
            distinct(&[5, 3]),
            places(&[0, 2, 2, 4, 1]),
            places(&[0, 2]),
            false.into(),
            mode.into(),
            false.into(),
            weights,
            false.into(),
            (-1i64).into(),
        ]
    };
    once("_embedding_bag", bag(0, Value::None));
    once("_embedding_bag", bag(0, t(&[5])));
    once("_embedding_bag", bag(1, Value::None));
    once("_embedding_bag", bag(2, Value::None));
}

#[test]
fn distances_between_rows_have_second_derivatives() {
    let x = weights(&[4, 3], 3).requires_grad_(true).unwrap();
    let options = opsmith::autograd::Options { create_graph: true, ..Default::default() };
    let total = opsmith::sum(&opsmith::pdist_forward(&x).unwrap()).unwrap();
    let found = opsmith::autograd::grad(&[&total], &[&x], &[None], options).unwrap();
    let steep = opsmith::sum(&opsmith::mul(found[0].as_ref().unwrap(), &x).unwrap()).unwrap();
    steep.backward().unwrap();
    // Distances grow as the rows do, so their slope does not change along the rows themselves, and slope
    // times rows has the slope as its gradient.
    let (second, first) = (x.grad().unwrap(), found[0].as_ref().unwrap().detach());
    for (a, b) in second.to_vec::<f64>().unwrap().iter().zip(first.to_vec::<f64>().unwrap()) {
        assert!((a - b).abs() < 1e-12, "{a} against {b}");
    }
}

#[test]
fn what_cannot_be_differentiated_says_so() {
    let x = weights(&[4], 3).requires_grad_(true).unwrap();
    let (found, _, _) = opsmith::unique(&x).unwrap();
    let error = opsmith::sum(&found).unwrap().backward().unwrap_err();
    assert!(error.to_string().contains("the derivative is not implemented: "), "{error}");
}
