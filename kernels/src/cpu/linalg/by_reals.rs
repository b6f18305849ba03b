//! Products of complex matrices by way of real ones.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. A complex number is a pair of reals, so
//! the left matrix is one of reals with twice as many columns; each number `a + bi` of the right one becomes the
//! block `[a b; -b a]`, and the product of the two holds the pairs of the result. That is as many multiplications of
//! reals as four products, in one that is as fast as any.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Complex, Element, Scratch};

use super::blocked::{self, NarrowLoop, oriented};
use super::innermost::{Blocked, Kernels};
use super::narrow::Narrow;
use super::product::{Matrix, MatrixMut, pack};

/// None: a left operand is taken as reals, so panels of complex numbers have no loops.
pub(super) fn loops<T>() -> Option<&'static Kernels<T>> {
    None
}

/// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read.
///
/// # Safety
/// As [`blocked::multiply`].
pub(super) unsafe fn multiply<R>(
    left: Matrix<Complex<R>>,
    right: Matrix<Complex<R>>,
    keep: Option<Complex<R>>,
    scale: Complex<R>,
    out: MatrixMut<Complex<R>>,
) where
    R: Blocked,
    Complex<R>: Element<Compute = Complex<R>> + Arithmetic + Narrow,
{
    let (left, right, out) = oriented(left, right, out);
    if let Some(narrow) = NarrowLoop::of(&left, &right, &out) {
        // SAFETY: the caller's promise, of the same product.
        return unsafe { Narrow::narrow(narrow, left, right, keep, scale, out) };
    }
    // The orientation that suits the innermost loops has rows close together, pairs want columns to be.
    let (left, right) = (right.transposed(), left.transposed());
    let (rows, inner, columns) = (left.rows, left.columns, right.columns);
    let (row_stride, column_stride) = (out.column_stride, out.row_stride);
    let packed;
    let left = if left.column_stride == 1 {
        left
    } else {
        // SAFETY: the caller's promise.
        packed = unsafe { pack(left) };
        Matrix { data: packed.as_ptr(), row_stride: inner as i64, column_stride: 1, ..left }
    };
    let left = pairs(left.data, rows, inner, left.row_stride);
    // SAFETY: the caller's promise.
    let blocks = unsafe { blocks_of(right) };
    let right = Matrix {
        data: blocks.as_ptr(),
        rows: 2 * inner,
        columns: 2 * columns,
        row_stride: 2 * columns as i64,
        column_stride: 1,
    };
    let zero = <Complex<R> as Arithmetic>::ZERO;
    let mut product = Scratch::filled(zero, rows * columns);
    let target = MatrixMut {
        data: product.as_mut_ptr().cast::<R>(),
        row_stride: 2 * columns as i64,
        column_stride: 1,
    };
    // SAFETY: all three are in memory that is large enough.
    unsafe { blocked::multiply(left, right, None, R::ONE, target) };
    for (row, sums) in product.chunks_exact(columns).enumerate() {
        for (column, &sum) in sums.iter().enumerate() {
            let offset = row as i64 * row_stride + column as i64 * column_stride;
            // SAFETY: the caller's promise about `out`.
            let target = unsafe { &mut *out.data.offset(offset as isize) };
            let scaled = times(scale, sum);
            *target = keep.map_or(scaled, |keep| Arithmetic::add(times(keep, *target), scaled));
        }
    }
}

/// The product of two numbers; times one is the number itself, also where it is infinite.
fn times<C: Arithmetic>(factor: C, number: C) -> C {
    if factor.equal(C::ONE) { number } else { Arithmetic::mul(factor, number) }
}

/// A matrix whose rows are contiguous, as pairs of reals.
fn pairs<R>(data: *const Complex<R>, rows: usize, columns: usize, row_stride: i64) -> Matrix<R> {
    Matrix {
        data: data.cast::<R>(),
        rows,
        columns: 2 * columns,
        row_stride: 2 * row_stride,
        column_stride: 1,
    }
}

/// The block of reals that stands for each number, in row-major order.
///
/// # Safety
/// Every element is valid for reads.
unsafe fn blocks_of<R: Blocked>(matrix: Matrix<Complex<R>>) -> Scratch<R> {
    let width = 2 * matrix.columns;
    let mut blocks = Scratch::filled(R::ZERO, 2 * matrix.rows * width);
    for (row, lines) in blocks.chunks_exact_mut(2 * width).enumerate() {
        let (above, below) = lines.split_at_mut(width);
        for (column, (above, below)) in above.chunks_exact_mut(2).zip(below.chunks_exact_mut(2)).enumerate() {
            // SAFETY: the caller's promise.
            let Complex { re, im } = unsafe { *matrix.at(row, column).data };
            above.copy_from_slice(&[re, im]);
            below.copy_from_slice(&[Arithmetic::sub(R::ZERO, im), re]);
        }
    }
    blocks
}
