//! Whether results and gradients depend on how the elements of inputs lie in memory.
//!
//! In: an operator. Out: what differs between inputs without gaps and the same elements elsewhere, at special points and
//! sizes.

use opsmith::{Result, Tensor};
use opsmith_runtime::op::OpDef;

use super::{derive, sizes_around};
use crate::report::Report;

/// Where kernels are wont to change their path: lanes of vectors, rows of tiles, blocks of a cache.
const BLOCKS: [usize; 6] = [16, 32, 64, 128, 256, 1024];

/// The same elements with gaps between them, and dimensions in another order in memory.
///
/// # Errors
/// If there is no memory.
pub fn scattered(tensor: &Tensor) -> Result<Tensor> {
    if tensor.dim() == 0 {
        return opsmith::select(&opsmith::stack(&[tensor, tensor])?, 0, 1);
    }
    // Each element has another one behind it that is not part of the tensor.
    let turned = opsmith::transpose(tensor, 0, -1)?;
    let pairs = opsmith::stack_with(&[&turned, &turned], opsmith::StackOptions::new().dim(-1))?;
    Ok(opsmith::transpose(&opsmith::select(&pairs, -1, 1)?, 0, -1)?.detach())
}

/// Results and gradients of inputs with gaps against those of inputs without. A view shows memory as it lies.
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
    report
}
