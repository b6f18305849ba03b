//! The Cholesky factors of Hermitian positive-definite matrices.

use opsmith_runtime::simd::widest;
use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, inner};
use super::number::{Field, Real};
use super::stack::Stack;
use super::{BLOCK, expect_square};

/// The lower triangular `L` of `A = L Lᴴ`, read from the lower triangle of each matrix; with `upper`, `Lᴴ` from the upper one.
/// `info` is 0, or the order of the first leading minor that is not positive, where `L` is not a factor.
///
/// # Errors
/// If the matrices are not square; with `check_errors`, if one is not positive-definite.
pub fn cholesky_ex<T: Field>(
    self_: View<'_, T>,
    upper: bool,
    check_errors: bool,
    mut factor: ViewMut<'_, T>,
    mut info: ViewMut<'_, i32>,
) -> Result<()> {
    expect_square(self_.sizes())?;
    let (matrices, factors, infos) =
        (Stack::of(&self_)?, Stack::of_output(&mut factor)?, Stack::of_elements(&mut info)?);
    parallel::try_for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let matrix = matrices.matrix(number);
            let mut lower = if upper { matrix.adjoint() } else { matrix };
            let order = factor_in_place(&mut lower);
            if check_errors && order > 0 {
                return Err(not_positive(number, order));
            }
            let result = if upper { lower.adjoint() } else { lower };
            // SAFETY: each number is one thread's.
            unsafe {
                factors.write(number, &result.elements);
                infos.write(number, &[order as i32]);
            }
        }
        Ok(())
    })
}

/// The error of a matrix with a leading minor that is not positive.
#[cold]
pub(crate) fn not_positive(number: usize, order: usize) -> Error {
    Error::value(format!(
        "matrix {number} is not positive-definite: its leading minor of order {order} is not positive"
    ))
}

/// Replaces the lower triangle by the factor, and the rest by zeros; the result is `info`.
fn factor_in_place<T: Field>(a: &mut Mat<T>) -> usize {
    let n = a.rows;
    let mut failed = 0;
    for start in (0..n).step_by(BLOCK) {
        let end = (start + BLOCK).min(n);
        failed = factor_columns(a, start, end);
        if failed > 0 {
            break;
        }
        let mut panel = Mat::zeros(n - end, end - start);
        for row in end..n {
            let conjugates = a.row(row)[start..end].iter().map(|element| element.conjugate());
            panel
                .row_mut(row - end)
                .iter_mut()
                .zip(conjugates)
                .for_each(|(target, element)| *target = element);
        }
        // Of the elements above the diagonal, few are computed.
        for first in (end..n).step_by(COLUMNS) {
            let last = (first + COLUMNS).min(n);
            let right = panel.part(first - end..last - end, 0..end - start).transposed();
            // SAFETY: the operands are a panel of its own and a part of columns before those that change.
            unsafe { a.subtract(first..n, first..last, a.part(first..n, start..end), right) };
        }
    }
    for row in 0..n {
        a.row_mut(row)[row + 1..].fill(T::NONE);
    }
    failed
}

/// Columns of a product that is subtracted at once.
pub(in crate::cpu) const COLUMNS: usize = 192;

/// The factor's columns of one block.
fn factor_columns<T: Field>(a: &mut Mat<T>, start: usize, end: usize) -> usize {
    for row in start..end {
        for column in start..row + 1 {
            let done = inner(&a.row(row)[start..column], &a.row(column)[start..column]);
            let rest = a.at(row, column) - done;
            let value = if column < row {
                rest / a.at(column, column)
            } else if rest.re() > T::Size::NONE {
                T::of(rest.re().root())
            } else {
                return row + 1;
            };
            a.row_mut(row)[column] = value;
        }
    }
    let count = end - start;
    // Each column of the diagonal block as a row: conjugates of the elements below the diagonal.
    let mut columns = [[T::NONE; BLOCK]; BLOCK];
    for (at, column) in columns.iter_mut().enumerate().take(count) {
        for (row, element) in column.iter_mut().enumerate().take(count).skip(at + 1) {
            *element = a.at(start + row, start + at).conjugate();
        }
    }
    let diagonal: Scratch<T> = (start..end).map(|at| a.at(at, at)).collect();
    for row in end..a.rows {
        eliminate(&mut a.row_mut(row)[start..end], &columns[..count], &diagonal);
    }
    0
}

/// Replaces a row below the diagonal block by that of the factor.
fn eliminate<T: Field>(row: &mut [T], columns: &[[T; BLOCK]], diagonal: &[T]) {
    widest(
        #[inline(always)]
        move || {
            let mut own = [T::NONE; BLOCK];
            own[..row.len()].copy_from_slice(row);
            for at in 0..columns.len() {
                let (value, column) = (own[at] / diagonal[at], &columns[at]);
                for lane in 0..BLOCK {
                    own[lane] -= value * column[lane];
                }
                own[at] = value;
            }
            row.copy_from_slice(&own[..row.len()]);
        },
    );
}
