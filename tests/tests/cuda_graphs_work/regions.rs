//! Recorded work inside loops and branches, and between sizes that depend on data.

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, Passes, cond, while_loop};

use super::{DEVICE, all_bits, moved, numbers};

/// A graph and its outputs of the last run.
struct Runs<F> {
    function: F,
    graph: Graph,
    outputs: Vec<Tensor>,
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Runs<F> {
    fn new(function: F, inputs: &[Tensor]) -> Runs<F> {
        let graph = Graph::trace(&function, inputs).unwrap().optimize(&Passes::all());
        Runs { function, graph, outputs: Vec::new() }
    }

    /// The recordings and replays of a run, which gives the bits of the eager call.
    #[track_caller]
    fn counts(&mut self, inputs: &[Tensor]) -> (u64, u64) {
        let before = self.graph.replays();
        self.graph.run_into(inputs, &mut self.outputs).unwrap();
        let after = self.graph.replays();
        assert!(all_bits(&self.outputs) == all_bits(&(self.function)(inputs).unwrap()), "{after}");
        (after.recorded - before.recorded, after.replayed - before.replayed)
    }
}

/// A state that is changed while a count, which is the input's, is not reached.
fn looped(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let state = [x[0].clone(), Tensor::scalar(0i64, DType::I64).to_device(DEVICE)?];
    while_loop(
        &state,
        |state| state[1].lt(&x[1]),
        |state| {
            Ok(vec![state[0].matmul(&state[0])?.softmax(1)?.add(&state[0].cumsum(0)?)?, (&state[1] + 1)?])
        },
    )
}

/// Replays of a loop with so many passages: its condition's, and its body's.
const fn passages(count: u64) -> u64 {
    (count + 1) + count
}

/// Condition and body of a loop are records, which their second passage makes; the steps before the loop are one, too.
pub fn loops() {
    let inputs = moved(&[numbers(&[8, 8], 1), Tensor::scalar(5i64, DType::I64)]);
    let mut runs = Runs::new(looped, &inputs);
    assert_eq!(runs.counts(&inputs), (0, 0));
    assert_eq!(runs.counts(&inputs), (3, 1 + passages(5) - 2));
    assert_eq!(runs.counts(&inputs), (0, 1 + passages(5)));
    // Other numbers, and another count.
    inputs[0].copy_(&numbers(&[8, 8], 2).to_device(DEVICE).unwrap()).unwrap();
    inputs[1].copy_(&Tensor::scalar(9i64, DType::I64).to_device(DEVICE).unwrap()).unwrap();
    assert_eq!(runs.counts(&inputs), (0, 1 + passages(9)));
    inputs[1].copy_(&Tensor::scalar(0i64, DType::I64).to_device(DEVICE).unwrap()).unwrap();
    assert_eq!(runs.counts(&inputs), (0, 1 + passages(0)));
    // Other addresses: launched, recorded, replayed; the former records are still there.
    let others = moved(&[numbers(&[8, 8], 3), Tensor::scalar(3i64, DType::I64)]);
    runs.counts(&others);
    assert_eq!(runs.counts(&others), (3, 1 + passages(3) - 2));
    assert_eq!(runs.counts(&others), (0, 1 + passages(3)));
    inputs[1].copy_(&Tensor::scalar(2i64, DType::I64).to_device(DEVICE).unwrap()).unwrap();
    assert_eq!(runs.counts(&inputs), (0, 1 + passages(2)));
}

/// Each branch is recorded when it runs again, whichever ran first; a loop inside one has its own record.
pub fn branches() {
    let function = |x: &[Tensor]| {
        let chosen = cond(
            &x[0].sum()?.gt(0.0)?,
            || x[0].matmul(&x[0])?.softmax(0)?.cumsum(1),
            || looped(x)?.remove(0).matmul(&x[0])?.softmax(1),
        )?;
        Ok(vec![chosen[0].mul(2.0)?.matmul(&x[0])?.softmax(1)?])
    };
    let inputs = moved(&[numbers(&[8, 8], 1), Tensor::scalar(3i64, DType::I64)]);
    let [positive, negative] = [1.0, -1.0].map(|shift| {
        let shifted = numbers(&[8, 8], 4).add(shift).unwrap().to_device(DEVICE).unwrap();
        move |inputs: &[Tensor]| inputs[0].copy_(&shifted).map(|_| ()).unwrap()
    });
    positive(&inputs);
    let mut runs = Runs::new(function, &inputs);
    runs.counts(&inputs);
    // The steps before the branch and those after it are records, and the branch is seen at these addresses.
    let (recorded, around) = runs.counts(&inputs);
    assert_eq!(recorded, around);
    assert_eq!(runs.counts(&inputs), (1, around + 1));
    assert_eq!(runs.counts(&inputs), (0, around + 1));
    // The other branch runs for the first time, its loop records from the second passage on.
    negative(&inputs);
    assert_eq!(runs.counts(&inputs), (2, around + passages(3) - 2));
    let (recorded, replayed) = runs.counts(&inputs);
    assert!(recorded > 0);
    assert_eq!(replayed, around + recorded + passages(3));
    assert_eq!(runs.counts(&inputs), (0, replayed));
    positive(&inputs);
    assert_eq!(runs.counts(&inputs), (0, around + 1));
    let replays = runs.graph.replays();
    assert!(replays.reasons.iter().all(|reason| reason.contains("is read by the host")), "{replays}");
}

/// A step that no record contains divides the record of a body.
pub fn divided() {
    let function = |x: &[Tensor]| {
        let state = [x[0].clone(), Tensor::scalar(0i64, DType::I64).to_device(DEVICE)?];
        while_loop(
            &state,
            |state| state[1].lt(&x[1]),
            |state| {
                let before = state[0].matmul(&state[0])?.softmax(0)?.add(&x[2])?;
                let after = before.inverse()?.matmul(&state[0])?.softmax(1)?;
                Ok(vec![after, (&state[1] + 1)?])
            },
        )
    };
    let eye = opsmith::eye(6).unwrap();
    let inputs = moved(&[numbers(&[6, 6], 1), Tensor::scalar(4i64, DType::I64), eye]);
    let mut runs = Runs::new(function, &inputs);
    assert_eq!(runs.counts(&inputs), (0, 0));
    // Two parts of the body.
    assert_eq!(runs.counts(&inputs), (2 + 2, 1 + passages(4) - 2 + 3));
    assert_eq!(runs.counts(&inputs), (0, 1 + passages(4) + 4));
    let replays = runs.graph.replays();
    assert!(replays.reasons.iter().any(|reason| reason.contains("work that is recorded")), "{replays}");
}

/// A size that depends on data is read between two records.
pub fn sizes() {
    let function = |x: &[Tensor]| {
        let before = x[0].matmul(&x[0])?.softmax(1)?.sub(&x[1])?;
        let chosen = before.masked_select(&before.gt(0.0)?)?;
        let after = chosen.mul(&chosen)?.cumsum(0)?.softmax(0)?;
        Ok(vec![after.sum()?, after, before])
    };
    let inputs = moved(&[numbers(&[8, 8], 1), numbers(&[8, 8], 2)]);
    let mut runs = Runs::new(function, &inputs);
    for _ in 0..4 {
        runs.counts(&inputs);
    }
    // Both parts are replayed.
    assert_eq!(runs.counts(&inputs), (0, 2), "{}", runs.graph.replays());
    // Other numbers of elements are other plans, with the records of the part before.
    inputs[1].copy_(&numbers(&[8, 8], 3).to_device(DEVICE).unwrap()).unwrap();
    for _ in 0..4 {
        runs.counts(&inputs);
    }
    assert_eq!(runs.counts(&inputs), (0, 2), "{}", runs.graph.replays());
    assert!(runs.graph.replays().reasons.is_empty());
}
