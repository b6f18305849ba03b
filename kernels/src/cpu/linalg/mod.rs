//! Products of matrices and vectors.
//!
//! Operands may have any strides; transposed matrices cost nothing. Products over no elements are
//! 0.

pub(super) mod blocked;
mod by_reals;
pub(super) mod few;
mod grouped;
pub(super) mod halves;
pub(super) mod innermost;
pub(super) mod int4;
mod narrow;
#[cfg(target_arch = "x86_64")]
pub(super) mod paired;
#[cfg(target_arch = "x86_64")]
pub(super) mod pairs;
pub(super) mod panels;
pub(super) mod product;
mod unpacked;
pub(super) mod whole_numbers;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::{Walk, axes, count};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::converted::widest_of;
use super::copy::copy_into;
use super::lanes::sum_terms;
use crate::math::{Number, conj};

pub use grouped::grouped_mm;
pub use int4::mm_int4;
pub(super) use product::row_major;
pub use product::{Matrix, MatrixMut, Multiply};

/// The product of two matrices: `(m, k)` times `(k, n)` gives `(m, n)`.
///
/// # Errors
/// If the inner sizes differ.
pub fn mm<T: Multiply>(self_: View<'_, T>, mat2: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    products(&self_, &mat2, None, T::Compute::ONE, &mut out)
}

/// The products of two stacks of matrices: `(b, m, k)` times `(b, k, n)` gives `(b, m, n)`.
///
/// # Errors
/// If the stacks' heights or the inner sizes differ.
pub fn bmm<T: Multiply>(self_: View<'_, T>, mat2: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    products(&self_, &mat2, None, T::Compute::ONE, &mut out)
}

/// `beta * self + alpha * (mat1 · mat2)`; `self` broadcasts to the product's shape. With `beta` 0,
/// `self` is not read, so NaN in it does not show.
///
/// # Errors
/// If the inner sizes differ or `self` does not broadcast.
pub fn addmm<T: Multiply>(
    self_: View<'_, T>,
    mat1: View<'_, T>,
    mat2: View<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    add_products(&self_, &mat1, &mat2, beta, alpha, &mut out)
}

/// [`addmm`] for stacks of matrices.
///
/// # Errors
/// If the stacks' heights or the inner sizes differ, or `self` does not broadcast.
pub fn baddbmm<T: Multiply>(
    self_: View<'_, T>,
    batch1: View<'_, T>,
    batch2: View<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    add_products(&self_, &batch1, &batch2, beta, alpha, &mut out)
}

/// The product of a matrix and a vector: `(m, n)` times `(n)` gives `(m)`.
///
/// # Errors
/// If the sizes differ.
pub fn mv<T: Multiply>(self_: View<'_, T>, vec: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    let [(rows, row_step), (inner, step)] = matrix_axes(&self_)?;
    if vec.sizes() != [inner] || out.sizes() != [rows] {
        return Err(sizes_differ(self_.sizes(), vec.sizes()));
    }
    let matrix = Matrix {
        data: self_.as_ptr(),
        rows: rows as usize,
        columns: inner as usize,
        row_stride: row_step,
        column_stride: step,
    };
    let column = Matrix {
        data: vec.as_ptr(),
        rows: inner as usize,
        columns: 1,
        row_stride: vec.strides()[0],
        column_stride: 1,
    };
    let target = MatrixMut { row_stride: out.strides()[0], column_stride: 1, data: out.as_mut_ptr() };
    // SAFETY: the sizes were checked, and the views vouch for their elements.
    unsafe { T::multiply(matrix, column, None, T::Compute::ONE, target) };
    Ok(())
}

/// [`addmm`] for a matrix and a vector: `beta * self + alpha * (mat · vec)`.
///
/// # Errors
/// If the sizes differ or `self` does not broadcast.
pub fn addmv<T: Multiply>(
    self_: View<'_, T>,
    mat: View<'_, T>,
    vec: View<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if vec.dim() != 1 || out.dim() != 1 || self_.dim() > 1 {
        return Err(sizes_differ(mat.sizes(), vec.sizes()));
    }
    // The vectors as matrices of one column.
    let column = |sizes: &[i64], strides: &[i64]| {
        ([sizes.first().copied().unwrap_or(1), 1], [strides.first().copied().unwrap_or(0), 0])
    };
    let (bias_sizes, bias_strides) = column(self_.sizes(), self_.strides());
    let (vec_sizes, vec_strides) = column(vec.sizes(), vec.strides());
    let (out_sizes, out_strides) = column(out.sizes(), out.strides());
    // SAFETY: a dimension of size 1 changes nothing about which elements are reached; `out` is not used
    // otherwise meanwhile.
    let (bias, vec, mut out) = unsafe {
        (
            View::from_raw(self_.as_ptr(), &bias_sizes, &bias_strides),
            View::from_raw(vec.as_ptr(), &vec_sizes, &vec_strides),
            ViewMut::from_raw(out.as_mut_ptr(), &out_sizes, &out_strides),
        )
    };
    add_products(&bias, &mat, &vec, beta, alpha, &mut out)
}

/// The sum of products of two vectors' elements: `dot([1, 2], [3, 4])` is 11.
///
/// # Errors
/// If the lengths differ.
pub fn dot<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    tensor: View<'_, T>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    sum_of_products(&self_, &tensor, Arithmetic::mul, out)
}

/// [`dot`] with the complex conjugates of the first vector's elements.
///
/// # Errors
/// If the lengths differ.
pub fn vdot<T: Element<Compute: Number>>(
    self_: View<'_, T>,
    other: View<'_, T>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    if const { !T::DTYPE.is_complex() } {
        return dot(self_, other, out);
    }
    sum_of_products(&self_, &other, |a, b| Arithmetic::mul(conj(a), b), out)
}

pub(crate) fn sizes_differ(left: &[i64], right: &[i64]) -> Error {
    Error::shape(format!(
        "operands of the shapes {} and {} cannot be multiplied",
        ShapeText(left),
        ShapeText(right)
    ))
    .with_help("the columns of the first must be as many as the rows of the second")
}

/// Sizes and strides of the last two dimensions.
fn matrix_axes<T: Element>(view: &View<'_, T>) -> Result<[(i64, i64); 2]> {
    match (view.sizes(), view.strides()) {
        ([.., rows, columns], [.., row_stride, column_stride]) => {
            Ok([(*rows, *row_stride), (*columns, *column_stride)])
        }
        _ => Err(Error::shape(format!("expected a matrix, got the shape {}", ShapeText(view.sizes())))),
    }
}

fn add_products<T: Multiply>(
    bias: &View<'_, T>,
    left: &View<'_, T>,
    right: &View<'_, T>,
    beta: Scalar,
    alpha: Scalar,
    out: &mut ViewMut<'_, T>,
) -> Result<()> {
    let (beta, alpha) = (T::Compute::from_scalar(beta), T::Compute::from_scalar(alpha));
    if beta.equal(T::Compute::ZERO) {
        return products(left, right, None, alpha, out);
    }
    // In place, the output holds the first operand.
    if bias.as_ptr() != out.as_mut_ptr() || bias.strides() != out.strides() {
        copy_into(bias, out)?;
    }
    products(left, right, Some(beta), alpha, out)
}

/// `keep * out + scale * left * right` for every matrix of a stack (dimensions before the last two).
fn products<T: Multiply>(
    left: &View<'_, T>,
    right: &View<'_, T>,
    keep: Option<T::Compute>,
    scale: T::Compute,
    out: &mut ViewMut<'_, T>,
) -> Result<()> {
    let [(rows, left_rows), (inner, left_columns)] = matrix_axes(left)?;
    let [(inner_right, right_rows), (columns, right_columns)] = matrix_axes(right)?;
    let [(out_rows, out_row), (out_columns, out_column)] = matrix_axes(&out.as_view())?;
    let stack = left.dim() - 2;
    let fits = inner == inner_right
        && (out_rows, out_columns) == (rows, columns)
        && left.sizes()[..stack] == out.sizes()[..out.dim() - 2]
        && right.sizes()[..right.dim() - 2] == left.sizes()[..stack];
    if !fits {
        return Err(sizes_differ(left.sizes(), right.sizes()));
    }
    let strides = [&left.strides()[..stack], &right.strides()[..stack], &out.strides()[..stack]];
    let stacks = axes(&left.sizes()[..stack], strides, |_| true);
    let starts =
        [Shared(left.as_ptr().cast_mut()), Shared(right.as_ptr().cast_mut()), Shared(out.as_mut_ptr())];
    parallel::for_each_range(count(&stacks), 1, |range| {
        for [left_at, right_at, out_at] in Walk::starting_at(&stacks, range.start).take(range.len()) {
            let left = Matrix {
                data: starts[0].at(left_at).cast_const(),
                rows: rows as usize,
                columns: inner as usize,
                row_stride: left_rows,
                column_stride: left_columns,
            };
            let right = Matrix {
                data: starts[1].at(right_at).cast_const(),
                rows: inner as usize,
                columns: columns as usize,
                row_stride: right_rows,
                column_stride: right_columns,
            };
            let out =
                MatrixMut { data: starts[2].at(out_at), row_stride: out_row, column_stride: out_column };
            // SAFETY: the sizes were checked, the views vouch for their elements, and a stack's products have no element in
            // common.
            unsafe { T::multiply(left, right, keep, scale, out) };
        }
    });
    Ok(())
}

/// Elements whose products are summed without a break; sums of such blocks are summed in turn.
pub(super) const BLOCK: usize = 4096;

fn sum_of_products<T: Element<Compute: Arithmetic>>(
    left: &View<'_, T>,
    right: &View<'_, T>,
    multiply: impl Fn(T::Compute, T::Compute) -> T::Compute + Sync,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if left.dim() != 1 || left.sizes() != right.sizes() {
        return Err(sizes_differ(left.sizes(), right.sizes()));
    }
    let (left, right) = (left.to_contiguous(), right.to_contiguous());
    let mut sums = Scratch::filled(T::Compute::ZERO, left.len().div_ceil(BLOCK));
    let of_blocks = Shared(sums.as_mut_ptr());
    parallel::for_each_range_of(BLOCK, sums.len(), |range| {
        for block in range {
            let part = block * BLOCK..left.len().min((block + 1) * BLOCK);
            let (left, right) = (&left[part.clone()], &right[part]);
            let [sum] = widest_of::<T, _>(
                #[inline(always)]
                || sum_terms([left, right], |[a, b]| [multiply(a.to_compute(), b.to_compute())]),
            );
            // SAFETY: each block has a sum, which is one thread's.
            unsafe { of_blocks.at(block as i64).write(sum) };
        }
    });
    let total = sums.iter().fold(T::Compute::ZERO, |total, &sum| Arithmetic::add(total, sum));
    out.write([T::from_compute(total)])
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
