//! Independence of results and gradients from the memory layout of inputs.
//!
//! In: an operator. Out: the differences between inputs without gaps and the same elements in other layouts, at special
//! points and sizes.

use opsmith::{Result, Tensor};
use opsmith_runtime::op::OpDef;

use super::{derive, sizes_around};
use crate::report::Report;
use crate::results::{self, CheckOutcome};

/// Typical thresholds of kernels: vector lanes, tile rows, cache blocks.
const BLOCKS: [usize; 6] = [16, 32, 64, 128, 256, 1024];

/// The same elements with gaps between them, and another order of dimensions in memory.
///
/// # Errors
/// If there is no memory.
pub fn scattered(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dim() == 0 {
        return opsmith::select(&opsmith::stack(&[tensor, tensor])?, 0, 1);
    }
    // Each element is followed by one that is not part of the tensor.
    let turned = opsmith::transpose(tensor, 0, -1)?;
    let pairs = opsmith::stack_with(&[&turned, &turned], opsmith::StackOptions::new().dim(-1))?;
    Ok(opsmith::transpose(&opsmith::select(&pairs, -1, 1)?, 0, -1)?.detach())
}

/// Results and gradients of inputs with gaps against those of inputs without. Views depend on layouts and are excluded.
pub fn layouts(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.view.is_some() {
        return report;
    }
    for line in derive(op, &[], &sizes_around(&BLOCKS)) {
        let line = line.recorded(op);
        report.compared += line.outcomes.iter().flatten().count();
        let differences =
            line.differences(op, &mut |tensor| scattered(tensor).expect("there is memory for two of it"));
        let what = |why| format!("({}) with gaps: {why}", op.location);
        report.wrong.extend(differences.into_iter().map(what));
    }
    if results::wanted() {
        results::record(op, None, "layouts", &CheckOutcome::from(&report));
    }
    report
}
