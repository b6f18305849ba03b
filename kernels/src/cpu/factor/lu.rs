//! Factors of Gaussian elimination with row exchanges, and the solutions, inverses and systems they give.

use std::ops::Range;

use opsmith_runtime::simd::widest;
use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled};
use super::number::{Field, Real};
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
    parallel::try_for_each_range_of(matrices.work(), matrices.count(), |range| {
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
    parallel::try_for_each_range_of(out.work(), out.count(), |range| {
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
    parallel::try_for_each_range_of(matrices.work(), matrices.count(), |range| {
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
        if rows.max(columns) <= SMALL {
            return Factors::of_small(a, pivot);
        }
        let steps = rows.min(columns);
        let mut pivots = Scratch::with_capacity(steps);
        let mut zero = 0;
        for start in (0..steps).step_by(BLOCK) {
            let end = (start + BLOCK).min(steps);
            for first in (start..end).step_by(WIDTH) {
                let last = (first + WIDTH).min(end);
                let mut panel = Panel::of(&a, first..last);
                for column in first..last {
                    let from = panel.eliminate(column - first, pivot).map(|row| first + row);
                    zero = if zero == 0 && from.is_none() { column + 1 } else { zero };
                    pivots.push(from.unwrap_or(column) as i32 + 1);
                    a.swap_rows(column, from.unwrap_or(column));
                }
                panel.write(&mut a, first..last);
                eliminate(&mut a, first..last, last..end);
            }
            eliminate(&mut a, start..end, end..columns);
        }
        Factors { lu: a, pivots, zero }
    }

    /// As [`exchanging`](Self::exchanging), column by column where the elements are.
    fn of_small(mut a: Mat<T>, pivot: bool) -> Factors<T> {
        let (columns, steps) = (a.columns, a.rows.min(a.columns));
        let mut pivots = Scratch::with_capacity(steps);
        let mut zero = 0;
        for column in 0..steps {
            let from =
                if pivot { largest_row(column..a.rows, |row| a.at(row, column).parts()) } else { column };
            if a.at(from, column) == T::NONE {
                zero = if zero == 0 { column + 1 } else { zero };
                pivots.push(column as i32 + 1);
                continue;
            }
            pivots.push(from as i32 + 1);
            a.swap_rows(column, from);
            let (above, below) = a.elements.split_at_mut((column + 1) * columns);
            let own = &above[column * columns..];
            for row in below.chunks_exact_mut(columns) {
                let factor = row[column] / own[column];
                row[column] = factor;
                for lane in column + 1..columns {
                    row[lane] -= factor * own[lane];
                }
            }
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

/// Most rows and columns of matrices that are not eliminated in panels.
pub(in crate::cpu) const SMALL: usize = 8;

/// Columns that are eliminated one after the other.
pub(in crate::cpu) const WIDTH: usize = 16;

/// Columns of a matrix from the row of their first one on, each row in a vector.
struct Panel<T>(Scratch<[T; WIDTH]>);

impl<T: Field> Panel<T> {
    fn of(a: &Mat<T>, columns: Range<usize>) -> Panel<T> {
        let mut panel = Scratch::filled([T::NONE; WIDTH], a.rows - columns.start);
        for (row, own) in panel.iter_mut().enumerate() {
            own[..columns.len()].copy_from_slice(&a.row(columns.start + row)[columns.clone()]);
        }
        Panel(panel)
    }

    fn write(&self, a: &mut Mat<T>, columns: Range<usize>) {
        for (row, own) in self.0.iter().enumerate() {
            a.row_mut(columns.start + row)[columns.clone()].copy_from_slice(&own[..columns.len()]);
        }
    }

    /// Exchanges a diagonal element's row with that of the largest element of its column, if it is to, and subtracts multiples of it
    /// from the rows below. The result is the exchanged row, or `None` if the element is zero.
    fn eliminate(&mut self, column: usize, pivot: bool) -> Option<usize> {
        let rows = column..self.0.len();
        let from = if pivot { largest_row(rows, |row| self.0[row][column].parts()) } else { column };
        if self.0[from][column] == T::NONE {
            return None;
        }
        self.0.swap(column, from);
        let (above, below) = self.0.split_at_mut(column + 1);
        let (mut own, pivot) = (above[column], above[column][column]);
        own[..=column].fill(T::NONE);
        widest(
            #[inline(always)]
            move || {
                for row in below {
                    let (old, factor) = (*row, row[column] / pivot);
                    let mut changed = old;
                    for lane in 0..WIDTH {
                        changed[lane] = old[lane] - factor * own[lane];
                    }
                    *row = changed;
                    row[column] = factor;
                    if !factor.parts().is_bounded() {
                        // Infinity times nothing is no number.
                        row[..column].copy_from_slice(&old[..column]);
                    }
                }
            },
        );
        Some(from)
    }
}

/// The first row whose element is largest.
fn largest_row<S: PartialOrd>(rows: Range<usize>, size: impl Fn(usize) -> S) -> usize {
    let (mut chosen, mut most) = (rows.start, size(rows.start));
    for row in rows.skip(1) {
        let size = size(row);
        if size > most {
            (chosen, most) = (row, size);
        }
    }
    chosen
}

/// Subtracts multiples of eliminated rows from each other, and from all rows below, in some columns.
fn eliminate<T: Field>(a: &mut Mat<T>, done: Range<usize>, columns: Range<usize>) {
    for row in done.clone() {
        for above in done.start..row {
            let (source, target) = a.rows_mut(above, row);
            let factor = target[above];
            add_scaled(&mut target[columns.clone()], -factor, &source[columns.clone()]);
        }
    }
    let below = done.end..a.rows;
    let (left, right) = (a.part(below.clone(), done.clone()), a.part(done, columns.clone()));
    // SAFETY: the operands are parts of the matrix before the rows or columns that change.
    unsafe { a.subtract(below, columns, left, right) };
}
