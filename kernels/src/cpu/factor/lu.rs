//! Factors of Gaussian elimination with row exchanges, and the solutions, inverses and systems they give.

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled};
use super::number::Field;
use super::stack::Stack;
use super::{BLOCK, expect_square, triangular};
use crate::cpu::strides::expect_operand;

/// The factors of `P A = L U` in one matrix, the ones on the diagonal of `L` left out; `pivots` has the row, counted from 1,
/// that each row was exchanged with, `info` the first zero on the diagonal of `U`, counted from 1, or 0.
///
/// # Errors
/// With `check_errors`, if a diagonal has a zero.
pub fn lu_factor_ex<T: Field>(
    a: View<'_, T>,
    pivot: bool,
    check_errors: bool,
    mut lu: ViewMut<'_, T>,
    mut pivots: ViewMut<'_, i32>,
    mut info: ViewMut<'_, i32>,
) -> Result<()> {
    let matrices = Stack::of(&a)?;
    let (factors, pivots, infos) =
        (Stack::of_output(&mut lu)?, Stack::of_rows(&mut pivots)?, Stack::of_elements(&mut info)?);
    parallel::try_for_each_range(matrices.count(), 1, |range| {
        for number in range {
            let factored = Factors::exchanging(matrices.matrix(number), pivot);
            if check_errors {
                factored.expect_regular(number)?;
            }
            // SAFETY: each number is one thread's.
            unsafe {
                factors.write(number, &factored.lu.elements);
                pivots.write(number, &factored.pivots);
                infos.write(number, &[factored.zero as i32]);
            }
        }
        Ok(())
    })
}

/// The solution `X` of `A X = B`, or of `X A = B` unless `left`, with the factors of `A`; of the adjoint of `A` if `adjoint`.
/// Stacks broadcast to that of the result.
///
/// # Errors
/// If the factors are not square, sizes do not fit, or a pivot is no row.
pub fn lu_solve<T: Field>(
    lu: View<'_, T>,
    pivots: View<'_, i32>,
    b: View<'_, T>,
    left: bool,
    adjoint: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_square(lu.sizes())?;
    let out = Stack::of_output(&mut out)?;
    let right = Stack::of(&b)?.expanded(out.outer())?;
    let factors = Stack::of(&lu)?.expanded(out.outer())?;
    let pivots = Stack::of_vectors(&pivots)?.expanded(out.outer())?;
    expect_operand("B", &right.sides(), &out.sides())?;
    expect_operand("LU", &factors.sides()[..1], &[if left { out.rows } else { out.columns } as i64])?;
    expect_operand("pivots", &[pivots.columns as i64], &factors.sides()[..1])?;
    if out.rows * out.columns == 0 {
        return Ok(());
    }
    parallel::try_for_each_range(out.count(), 1, |range| {
        for number in range {
            let factored = Factors { lu: factors.matrix(number), pivots: pivots.elements(number), zero: 0 };
            let rows = factored.lu.rows as i32;
            if let Some(pivot) = factored.pivots.iter().find(|pivot| !(1..=rows).contains(*pivot)) {
                return Err(Error::index(format!("the pivot {pivot} is no row of {rows}, counted from 1")));
            }
            let solution = factored.solved(right.matrix(number), left, adjoint);
            // SAFETY: each number is one thread's.
            unsafe { out.write(number, &solution.elements) };
        }
        Ok(())
    })
}

/// The inverse of each matrix; `info` as in [`lu_factor_ex`].
///
/// # Errors
/// If the matrices are not square; with `check_errors`, if one has no inverse.
pub fn inv_ex<T: Field>(
    a: View<'_, T>,
    check_errors: bool,
    mut inverse: ViewMut<'_, T>,
    mut info: ViewMut<'_, i32>,
) -> Result<()> {
    expect_square(a.sizes())?;
    let (matrices, inverses, infos) =
        (Stack::of(&a)?, Stack::of_output(&mut inverse)?, Stack::of_elements(&mut info)?);
    parallel::try_for_each_range(matrices.count(), 1, |range| {
        for number in range {
            let factored = Factors::of(matrices.matrix(number));
            if check_errors {
                factored.expect_regular(number)?;
            }
            let inverse = factored.solved(Mat::identity(matrices.rows, matrices.rows), true, false);
            // SAFETY: each number is one thread's.
            unsafe {
                inverses.write(number, &inverse.elements);
                infos.write(number, &[factored.zero as i32]);
            }
        }
        Ok(())
    })
}

/// The error of a matrix whose elimination meets a zero, counted from 1.
#[cold]
pub(crate) fn not_regular(number: usize, pivot: usize) -> Error {
    Error::value(format!("matrix {number} is singular: pivot {pivot} of its elimination is zero"))
}

/// The factors of one matrix.
pub(super) struct Factors<T> {
    pub lu: Mat<T>,
    /// The row that each row was exchanged with, counted from 1.
    pub pivots: Scratch<i32>,
    /// The first zero on the diagonal, counted from 1, or 0.
    pub zero: usize,
}

impl<T: Field> Factors<T> {
    pub fn of(a: Mat<T>) -> Factors<T> {
        Factors::exchanging(a, true)
    }

    fn exchanging(mut a: Mat<T>, pivot: bool) -> Factors<T> {
        let (rows, columns) = (a.rows, a.columns);
        let steps = rows.min(columns);
        let mut pivots = Scratch::with_capacity(steps);
        let mut zero = 0;
        for start in (0..steps).step_by(BLOCK) {
            let end = (start + BLOCK).min(steps);
            for column in start..end {
                let from = if pivot { pivot_row(&a, column) } else { column };
                pivots.push(from as i32 + 1);
                if a.at(from, column) == T::NONE {
                    zero = if zero == 0 { column + 1 } else { zero };
                    continue;
                }
                a.swap_rows(column, from);
                eliminate(&mut a, column, end);
            }
            for row in start..end {
                for above in start..row {
                    let (source, target) = a.rows_mut(above, row);
                    let factor = target[above];
                    add_scaled(&mut target[end..], -factor, &source[end..]);
                }
            }
            let (left, right) = (a.part(end..rows, start..end), a.part(start..end, end..columns));
            // SAFETY: the operands are parts of the matrix before the rows or columns that change.
            unsafe { a.subtract(end..rows, end..columns, left, right) };
        }
        Factors { lu: a, pivots, zero }
    }

    /// # Errors
    /// If the diagonal has a zero.
    pub fn expect_regular(&self, number: usize) -> Result<()> {
        if self.zero == 0 {
            return Ok(());
        }
        Err(not_regular(number, self.zero))
    }

    /// The solution of the system with the matrix, or with its adjoint.
    pub fn solved(&self, b: Mat<T>, left: bool, adjoint: bool) -> Mat<T> {
        if !left {
            return self.solved(b.adjoint(), true, !adjoint).adjoint();
        }
        let mut x = b;
        if adjoint {
            let turned = self.lu.adjoint();
            triangular::solve(&turned, false, false, &mut x);
            triangular::solve(&turned, true, true, &mut x);
            for (row, pivot) in self.pivots.iter().enumerate().rev() {
                x.swap_rows(row, *pivot as usize - 1);
            }
        } else {
            for (row, pivot) in self.pivots.iter().enumerate() {
                x.swap_rows(row, *pivot as usize - 1);
            }
            triangular::solve(&self.lu, false, true, &mut x);
            triangular::solve(&self.lu, true, false, &mut x);
        }
        x
    }
}

/// The row from a diagonal element on whose element of that column is largest.
fn pivot_row<T: Field>(a: &Mat<T>, column: usize) -> usize {
    let mut chosen = column;
    for row in column + 1..a.rows {
        if a.at(row, column).parts() > a.at(chosen, column).parts() {
            chosen = row;
        }
    }
    chosen
}

/// Subtracts multiples of a diagonal element's row from those below, up to the last column of a block.
fn eliminate<T: Field>(a: &mut Mat<T>, column: usize, end: usize) {
    for row in column + 1..a.rows {
        let (above, below) = a.rows_mut(column, row);
        let factor = below[column] / above[column];
        below[column] = factor;
        add_scaled(&mut below[column + 1..end], -factor, &above[column + 1..end]);
    }
}
