//! Gradients of the weights of convolutions of one channel at a time (depthwise), for which a product would have one column.
//!
//! In: the patch of one channel, and a block's gradients. Out: sums over positions for each element of the window.

use opsmith_runtime::Scratch;
use opsmith_runtime::arith::Arithmetic;

use super::patch::{Block, Patches};
use crate::cpu::lanes::{SUMS, sum_terms};
use crate::cpu::simd::widest;

/// Adds to the gradient of each output's weights, element by element of the window, the products of a block's gradients,
/// a row for each output, with the inputs of that element.
pub(super) fn add_of_weight<C: opsmith_runtime::Element<Compute = C> + Arithmetic>(
    patches: &Patches,
    block: &Block,
    patch: &[C],
    grad: &[C],
    sums: &mut [C],
) {
    let elements = patches.taps().len();
    // Rows of positions one after the other, so that short ones fill registers, too.
    let mut seen = Scratch::filled(C::ZERO, block.positions().next_multiple_of(SUMS));
    for (element, &tap) in patches.taps().iter().enumerate() {
        for (row, seen) in seen[..block.positions()].chunks_exact_mut(block.columns).enumerate() {
            seen.copy_from_slice(&patch[row * patches.row() + tap..][..block.columns]);
        }
        for (output, grad) in grad.chunks_exact(block.positions()).enumerate() {
            let seen = &seen[..block.positions()];
            let [sum] = widest(
                #[inline(always)]
                || sum_terms([grad, seen], |[grad, seen]: [C; 2]| [Arithmetic::mul(grad, seen)]),
            );
            let total = &mut sums[output * elements + element];
            *total = Arithmetic::add(*total, sum);
        }
    }
}
