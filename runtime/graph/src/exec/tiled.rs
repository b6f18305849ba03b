//! Execution of fused groups, tile by tile, in several threads if that is faster.
//!
//! In: a group's step and the plan's tensors. Out: the elements that its calls would write one after the other. A call
//! that fails in one tile does not stop the others: the error is that of the first call that fails at all.

use opsmith_runtime::error::Result;
use opsmith_runtime::parallel::{self, FirstError};
use opsmith_runtime::tensor::Tensor;

use super::step::{bare, describe};
use crate::ir::TensorId;
use crate::plan::tiles::{Lane, Tiled};

pub(super) fn run(tiled: &Tiled, tensors: &[Tensor]) -> Result<()> {
    let failure = FirstError::default();
    parallel::for_each_range(tiled.tiles.count(), 1, |range| {
        let mut lane = tiled.lane();
        range.for_each(|tile| run_tile(tiled, &mut lane, tile, tensors, &failure));
    });
    tiled.let_go();
    failure.into_result()
}

fn run_tile(tiled: &Tiled, lane: &mut Lane, tile: usize, whole: &[Tensor], failure: &FirstError) {
    let tensors = tiled.point_at(lane, tile, whole);
    for (number, step) in tiled.steps.iter().enumerate() {
        if let Err(error) = bare::<false>(step, tensors, &[]) {
            let operand = |id: TensorId| &whole[tiled.operands[id.index()].tensor.index()];
            return failure.note(number, Err(describe(step, error, operand, &[])));
        }
    }
}
