//! Softmax of one row: loops over numbers of the compute type.
//!
//! In: rows of one length, one element after the other. Each row is visited two or three times while it is in the first
//! cache.

use opsmith_runtime::arith::{Arithmetic, Ordered};

use crate::cpu::lanes::{NARROW, sum_terms};
use crate::cpu::simd::widest;
use crate::math::{Inexact, exp, log, reciprocal, select};

/// The largest number of a row; NaN does not count, minus infinity if there is nothing else.
#[inline(always)]
pub(in crate::cpu) fn largest<C: Ordered>(row: &[C]) -> C {
    let mut lanes = [C::LOWEST; NARROW];
    let (blocks, rest) = row.as_chunks::<NARROW>();
    for block in blocks {
        for lane in 0..NARROW {
            lanes[lane] = select(block[lane].gt(lanes[lane]), block[lane], lanes[lane]);
        }
    }
    for lane in 0..rest.len() {
        lanes[lane] = select(rest[lane].gt(lanes[lane]), rest[lane], lanes[lane]);
    }
    let mut width = NARROW / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = select(lanes[lane + width].gt(lanes[lane]), lanes[lane + width], lanes[lane]);
        }
        width /= 2;
    }
    lanes[0]
}

/// exp(x), divided by its sum. NaN anywhere makes the sum NaN.
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(super) fn softmax<C: Ordered + Inexact>(row: &[C], out: &mut [C]) {
    widest(
        #[inline(always)]
        move || {
            let out = &mut out[..row.len()];
            let largest = largest(row);
            for index in 0..row.len() {
                out[index] = exp(Arithmetic::sub(row[index], largest));
            }
            let [sum] = sum_terms([out], |[x]| [x]);
            let factor = reciprocal(sum);
            for index in 0..row.len() {
                out[index] = Arithmetic::mul(out[index], factor);
            }
        },
    );
}

/// The logarithm of [`softmax`].
#[inline(never)]
pub(super) fn log_softmax<C: Ordered + Inexact>(row: &[C], out: &mut [C]) {
    widest(
        #[inline(always)]
        move || {
            let out = &mut out[..row.len()];
            let largest = largest(row);
            for index in 0..row.len() {
                out[index] = exp(Arithmetic::sub(row[index], largest));
            }
            let [sum] = sum_terms([out], |[x]| [x]);
            let log = log(sum);
            for index in 0..row.len() {
                out[index] = Arithmetic::sub(Arithmetic::sub(row[index], largest), log);
            }
        },
    );
}

/// `(grad - sum(grad * y)) * y`.
#[inline(never)]
pub(super) fn softmax_backward<C: Arithmetic>(grad: &[C], y: &[C], out: &mut [C]) {
    widest(
        #[inline(always)]
        move || {
            let (y, out) = (&y[..grad.len()], &mut out[..grad.len()]);
            let [sum] = sum_terms([grad, y], |[grad, y]| [Arithmetic::mul(grad, y)]);
            for index in 0..grad.len() {
                out[index] = Arithmetic::mul(Arithmetic::sub(grad[index], sum), y[index]);
            }
        },
    );
}

/// `grad - exp(y) * sum(grad)`.
#[inline(never)]
pub(super) fn log_softmax_backward<C: Inexact>(grad: &[C], y: &[C], out: &mut [C]) {
    widest(
        #[inline(always)]
        move || {
            let (y, out) = (&y[..grad.len()], &mut out[..grad.len()]);
            let [sum] = sum_terms([grad], |[grad]| [grad]);
            for index in 0..grad.len() {
                out[index] = Arithmetic::sub(grad[index], Arithmetic::mul(exp(y[index]), sum));
            }
        },
    );
}
