//! Rows of scores: loops over numbers of the compute type.

use opsmith_runtime::Element;
use opsmith_runtime::arith::Arithmetic;

use super::Real;
use crate::cpu::lanes::sum_terms;
use crate::cpu::linalg::Matrix;
use crate::cpu::simd::widest;
use crate::cpu::softmax::rows::largest;
use crate::math::{exp, log, maximum, reciprocal, select};

/// Sums of a query over the keys so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sums<C> {
    /// The largest score.
    largest: C,
    /// The sum of exp(score - base).
    sum: C,
}

impl<C: Real> Sums<C> {
    /// Those of no keys.
    pub const NONE: Sums<C> = Sums { largest: C::LOWEST, sum: C::ZERO };

    /// The logarithm of the sum of exponentials; minus infinity if every key is masked.
    pub fn logarithm(self) -> C {
        Arithmetic::add(base(self.largest), log(self.sum))
    }
}

/// A number to subtract from scores: the largest, or 0 where all are minus infinity, whose difference would be NaN.
#[inline(always)]
fn base<C: Real>(largest: C) -> C {
    select(largest.equal(C::LOWEST), C::ZERO, largest)
}

/// Turns each row of scores into weights relative to the row's base, and scales the sums so far, those of values too, to a
/// new one.
#[inline(never)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(super) fn weigh<C: Real>(scores: &mut [C], columns: usize, sums: &mut [Sums<C>], values: &mut [C]) {
    let width = values.len() / sums.len();
    widest(
        #[inline(always)]
        move || {
            for number in 0..sums.len() {
                let row = &mut scores[number * columns..][..columns];
                let known = sums[number];
                let highest = maximum(known.largest, largest(row));
                let subtrahend = base(highest);
                for index in 0..row.len() {
                    row[index] = exp(Arithmetic::sub(row[index], subtrahend));
                }
                let [sum] = sum_terms([&*row], |[x]| [x]);
                let factor = exp(Arithmetic::sub(known.largest, subtrahend));
                sums[number] =
                    Sums { largest: highest, sum: Arithmetic::add(Arithmetic::mul(known.sum, factor), sum) };
                if !factor.equal(C::ONE) {
                    let values = &mut values[number * width..][..width];
                    for index in 0..values.len() {
                        values[index] = Arithmetic::mul(values[index], factor);
                    }
                }
            }
        },
    );
}

/// Divides each row of values by its sum of weights; 0 where every key is masked.
#[inline(never)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(super) fn divide<C: Real>(values: &mut [C], sums: &[Sums<C>]) {
    let width = values.len() / sums.len();
    widest(
        #[inline(always)]
        move || {
            for number in 0..sums.len() {
                let sum = sums[number].sum;
                let factor = select(sum.equal(C::ZERO), C::ZERO, reciprocal(sum));
                let row = &mut values[number * width..][..width];
                for index in 0..row.len() {
                    row[index] = Arithmetic::mul(row[index], factor);
                }
            }
        },
    );
}

/// Turns each row of scores into weights, given the logarithm of its sum of exponentials.
#[inline(never)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(super) fn into_weights<C: Real>(scores: &mut [C], columns: usize, logarithms: &[C]) {
    widest(
        #[inline(always)]
        move || {
            for number in 0..logarithms.len() {
                let row = &mut scores[number * columns..][..columns];
                let subtrahend = base(logarithms[number]);
                for index in 0..row.len() {
                    row[index] = exp(Arithmetic::sub(row[index], subtrahend));
                }
            }
        },
    );
}

/// The gradients of scores from those of weights, in their place: `weight * (gradient - product)`, with the row's
/// product of the result and its gradient, less the gradient of the logarithm.
#[inline(never)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(super) fn score_gradients<C: Real>(gradients: &mut [C], weights: &[C], columns: usize, products: &[C]) {
    widest(
        #[inline(always)]
        move || {
            for number in 0..products.len() {
                let row = &mut gradients[number * columns..][..columns];
                let weights = &weights[number * columns..][..columns];
                let product = products[number];
                for index in 0..row.len() {
                    row[index] = Arithmetic::mul(weights[index], Arithmetic::sub(row[index], product));
                }
            }
        },
    );
}

/// The sum of products of two rows.
///
/// # Safety
/// Their elements, as many as the first has columns, are valid for reads.
pub(super) unsafe fn product<C: Real>(left: Matrix<C>, right: Matrix<C>) -> C {
    let length = left.columns;
    if (left.column_stride, right.column_stride) == (1, 1) {
        // SAFETY: the caller's promise.
        let rows = unsafe {
            [std::slice::from_raw_parts(left.data, length), std::slice::from_raw_parts(right.data, length)]
        };
        let [sum] = widest(
            #[inline(always)]
            || sum_terms(rows, |[left, right]| [Arithmetic::mul(left, right)]),
        );
        return sum;
    }
    // SAFETY: the caller's promise.
    let product = |column| unsafe { Arithmetic::mul(*left.at(0, column).data, *right.at(0, column).data) };
    (0..length).map(product).fold(C::ZERO, Arithmetic::add)
}

/// Adds a row of a mask to scores.
///
/// # Safety
/// The mask has so many elements at these steps, valid for reads.
pub(super) unsafe fn add_mask<T: Element<Compute: Real>>(
    scores: &mut [T::Compute],
    mask: *const T,
    step: isize,
) {
    if step == 1 {
        // SAFETY: the caller's promise.
        let mask = unsafe { std::slice::from_raw_parts(mask, scores.len()) };
        return widest(
            #[inline(always)]
            || {
                for (score, element) in scores.iter_mut().zip(mask) {
                    *score = Arithmetic::add(*score, element.to_compute());
                }
            },
        );
    }
    for (index, score) in scores.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let element = unsafe { *mask.offset(index as isize * step) };
        *score = Arithmetic::add(*score, element.to_compute());
    }
}
