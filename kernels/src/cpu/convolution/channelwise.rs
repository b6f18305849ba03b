//! Convolutions of one channel at a time (depthwise), for which a product would have one column.
//!
//! In: the patch of one channel, and its weights or a block's gradients. Out: results, or the gradients of weights.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Scratch, View, ViewMut};

use super::Convolve;
use super::patch::{Block, Patches, Planes, SLACK, strides};
use crate::cpu::lanes::{SUMS, map_lanes, sum_terms};
use crate::cpu::linalg::MatrixMut;
use crate::cpu::linalg::innermost::Kernels;
use crate::cpu::simd::widest;

/// Writes the convolution of each channel with its weights `(channels, window…)`.
pub(super) fn forward<T: Element<Compute: Convolve>>(
    kernels: &Kernels<T::Compute>,
    patches: &Patches,
    bias: Option<&[T::Compute]>,
    input: View<'_, T>,
    weight: &[T::Compute],
    out: &mut ViewMut<'_, T>,
) {
    let (elements, blocks, channels) = (patches.taps().len(), patches.blocks(), input.size(1));
    let of_sample = out.strides()[0];
    let ([of_channel, of_plane, of_row, of_column], target) =
        (strides(out.strides()), Shared(out.as_mut_ptr()));
    parallel::for_each_range_of(patches.places() * elements, input.size(0) * channels * blocks, |numbers| {
        let mut patch = Scratch::filled(T::Compute::ZERO, patches.places() + SLACK);
        // The sum of each place from the first position on, of which the last ones are computed with what lies behind.
        let mut sums = Scratch::filled(T::Compute::ZERO, patches.places() + kernels.rows);
        let mut panel = Scratch::filled(T::Compute::ZERO, elements * kernels.columns);
        // The block whose border the patch has.
        let mut filled = None;
        for number in numbers {
            let (sample, channel) = (number / blocks / channels, number / blocks % channels);
            let block = patches.block(number % blocks);
            let has_border = filled.replace(number % blocks) == Some(number % blocks);
            let plane = Planes::new(input, sample, channel, 1);
            patches.fill(&block, &plane, &mut patch, [patches.places(), 1], has_border);
            let weights = &weight[channel * elements..][..elements];
            for (row, &weight) in panel.chunks_exact_mut(kernels.columns).zip(weights) {
                row[0] = weight;
            }
            sum_places(kernels, patches, &block, &patch, &panel, &mut sums);
            let start =
                sample as i64 * of_sample + channel as i64 * of_channel + block.plane as i64 * of_plane;
            let bias = bias.map_or(T::Compute::ZERO, |bias| bias[channel]);
            let write = |row: usize| {
                let place = (block.row + row) as i64 * of_row + block.column as i64 * of_column;
                let sums = &sums[row * patches.row()..][..block.columns];
                (target.at(start + place), sums)
            };
            widest(
                #[inline(always)]
                || {
                    for row in 0..block.rows {
                        let (to, sums) = write(row);
                        // SAFETY: the block's positions of the channel are the result's, and no other thread has them.
                        unsafe {
                            write_row::<T>(sums, bias, to, of_column as isize);
                        }
                    }
                },
            );
        }
    });
}

/// Writes the sum of each place of a block's rows from its first position on. Behind the patch and the sums lie as many elements as
/// a call of the loop has.
fn sum_places<C: Convolve>(
    kernels: &Kernels<C>,
    patches: &Patches,
    block: &Block,
    patch: &[C],
    panel: &[C],
    sums: &mut [C],
) {
    // Rows are computed one after the other, or apart where fewer calls have all positions.
    let span = patches.span(block);
    let is_apart = block.rows * block.columns.div_ceil(kernels.rows) < span.div_ceil(kernels.rows);
    let (count, length) = if is_apart { (block.rows, block.columns) } else { (1, span) };
    for row in 0..count {
        for place in (0..length).step_by(kernels.rows) {
            let place = row * patches.row() + place;
            let data = sums[place..place + kernels.rows].as_mut_ptr();
            let sums = MatrixMut { data, row_stride: 1, column_stride: 0 };
            let (left, right) = (patch[place..].as_ptr(), panel.as_ptr());
            // SAFETY: the places of a call lie in the patch with each tap, or in the slack at its end.
            unsafe {
                (kernels.unpacked)([kernels.rows, 1], patches.taps(), left, right, false, sums);
            }
        }
    }
}

/// Writes sums and a bias to a row whose elements are `step` apart.
///
/// # Safety
/// The row is valid for writes.
#[inline(always)]
unsafe fn write_row<T: Element<Compute: Arithmetic>>(
    sums: &[T::Compute],
    bias: T::Compute,
    to: *mut T,
    step: isize,
) {
    let element = |sum: T::Compute| T::from_compute(Arithmetic::add(sum, bias));
    if step == 1 {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(to, sums.len()) };
        return map_lanes(
            [sums],
            row,
            #[inline(always)]
            |[sum]| element(sum),
        );
    }
    for (number, &sum) in sums.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { to.offset(number as isize * step).write(element(sum)) };
    }
}

/// Adds to the gradient of each output's weights, element by element of the window, the products of a block's gradients,
/// a row for each output, with the inputs of that element.
pub(super) fn add_of_weight<C: Element<Compute = C> + Arithmetic>(
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
