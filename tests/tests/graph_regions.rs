//! Memory within branches and loops: those of two branches share it, and values are those of eager calls.

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, NodeKind, Passes, cond, scan, while_loop};

const BYTES: usize = 4 * 1000;

/// Elements whose sum is about as large as the shift is, of either sign.
fn numbers(shift: f32) -> Tensor {
    let values: Vec<f32> = (0..1000).map(|at| ((at * 37 + 11) % 23) as f32 / 110.0 - 0.1 + shift).collect();
    Tensor::of(&values)
}

fn elements(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}

fn is_positive(x: &Tensor) -> Result<Tensor> {
    x.sum()?.gt(0.0)
}

/// Each branch holds two tensors beside its result.
fn branches(x: &Tensor) -> Result<Tensor> {
    let one = || {
        let (sine, root) = (x.sin()?, x.abs()?.sqrt()?);
        (&sine * &root)?.cumsum(0)? - &sine
    };
    let other = || {
        let (cosine, square) = (x.cos()?, (x * x)?);
        (&cosine + &square)?.flip([0])? * &square
    };
    Ok(cond(&is_positive(x)?, one, other)?.remove(0))
}

fn both_sides(x: &Tensor) -> Result<Vec<Tensor>> {
    let chosen = branches(x)?;
    let again = branches(&(&chosen * 0.01)?)?;
    Ok(vec![(&again + x)?, chosen])
}

/// A branch in a loop in a branch, each with tensors of its own.
fn nested(x: &Tensor) -> Result<Vec<Tensor>> {
    let looped = || {
        while_loop(
            &[x.clone(), Tensor::scalar(0i64, DType::I64)],
            |state| (&state[1] + 1)?.lt(6),
            |state| {
                let scaled = state[0].flip([0])?.mul(0.5)?;
                let next = cond(
                    &is_positive(&(&state[0] - 0.05)?)?,
                    || (&scaled - 0.2)?.sin()? + &state[0],
                    || branches(&scaled)?.tanh()? + 0.3,
                )?;
                Ok(vec![(&next[0] + &scaled)?, (&state[1] + 1)?])
            },
        )
    };
    let other = || Ok::<_, opsmith::Error>(vec![x.neg()?.exp()?.neg()?, Tensor::scalar(7i64, DType::I64)]);
    cond(&is_positive(x)?, looped, other)
}

fn scanned(x: &Tensor) -> Result<Vec<Tensor>> {
    let (state, stacked) = scan(&[opsmith::zeros([100])?], &[x.reshape([10, 100])?], |state, row| {
        let doubled = (&row[0] * 2.0)?.sin()?;
        let next = cond(&is_positive(&row[0])?, || (&state[0] + &doubled)?.cos(), || &state[0] - &doubled)?;
        Ok((vec![next[0].clone()], vec![(&next[0] * &doubled)?]))
    })?;
    Ok(vec![state[0].clone(), stacked[0].clone()])
}

#[test]
fn values_in_regions_are_those_of_eager_calls() {
    for (name, function) in [
        ("both sides", both_sides as fn(&Tensor) -> Result<Vec<Tensor>>),
        ("nested", nested),
        ("scan", scanned),
    ] {
        let traced = |x: &[Tensor]| function(&x[0]);
        let plain = Graph::trace(traced, [InputSpec::new(DType::F32, [1000.into()])]).unwrap();
        let optimised = plain.optimize(&Passes::all());
        let mut threaded = optimised.clone();
        threaded.set_threads(2);
        for shift in [0.1, -0.1, 0.02, -0.3, 0.4, -0.01] {
            let x = numbers(shift);
            let eager: Vec<Vec<f64>> = function(&x).unwrap().iter().map(elements).collect();
            for graph in [&plain, &optimised, &threaded] {
                for _ in 0..2 {
                    let found = graph.run(&[&x]).unwrap();
                    for (eager, found) in eager.iter().zip(&found) {
                        assert_eq!(eager, &elements(found), "{name} at {shift}");
                    }
                }
            }
        }
    }
}

#[test]
fn two_branches_share_memory_and_write_their_results() {
    let traced = |x: &[Tensor]| branches(&x[0]);
    let graph = Graph::trace(traced, [InputSpec::new(DType::F32, [1000.into()])]).unwrap();
    let optimised = graph.optimize(&Passes::all());
    // A scalar and a truth value beside one branch's two tensors, of which one takes the result's memory.
    let report = optimised.memory().unwrap();
    assert!(report.planned <= 2 * BYTES + 2 * 64, "{} bytes planned", report.planned);
    assert!(report.planned <= graph.memory().unwrap().planned);
    let copies =
        optimised.nodes().iter().flat_map(|node| node.kind.regions()).flat_map(|region| &region.nodes);
    assert_eq!(copies.filter(|node| matches!(node.kind, NodeKind::Copy)).count(), 0);
}
