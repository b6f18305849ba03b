//! Systems with triangular matrices.

use opsmith_runtime::{Result, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled};
use super::number::Field;
use super::stack::Stack;
use super::{BLOCK, expect_square};
use crate::cpu::strides::expect_operand;

/// The solution `X` of `A X = B`, or of `X A = B` unless `left`, with the upper or lower triangle of each matrix `A`, whose
/// diagonal is taken for ones if `unitriangular`. Stacks broadcast to that of the result.
///
/// # Errors
/// If the matrices `A` are not square, or sizes do not fit.
pub fn solve_triangular<T: Field>(
    self_: View<'_, T>,
    b: View<'_, T>,
    upper: bool,
    left: bool,
    unitriangular: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_square(self_.sizes())?;
    let out = Stack::of_output(&mut out)?;
    let (matrices, right) =
        (Stack::of(&self_)?.expanded(out.outer())?, Stack::of(&b)?.expanded(out.outer())?);
    expect_operand("B", &right.sides(), &out.sides())?;
    expect_operand("self", &matrices.sides()[..1], &[if left { out.rows } else { out.columns } as i64])?;
    if out.rows * out.columns == 0 {
        return Ok(());
    }
    parallel::for_each_range_of(out.work(), out.count(), |range| {
        for number in range {
            let (matrix, mut x) = (matrices.matrix(number), right.matrix(number));
            if left {
                solve(&matrix, upper, unitriangular, &mut x);
            } else {
                let mut turned = x.transposed();
                solve(&matrix.transposed(), !upper, unitriangular, &mut turned);
                x = turned.transposed();
            }
            // SAFETY: each number is one thread's.
            unsafe { out.write(number, &x.elements) };
        }
    });
    Ok(())
}

/// Replaces `b` by the solution of `a x = b`, reading one triangle of `a`.
pub(super) fn solve<T: Field>(a: &Mat<T>, upper: bool, unit: bool, b: &mut Mat<T>) {
    let (n, columns) = (a.rows, b.columns);
    let mut done = 0;
    while done < n {
        let count = BLOCK.min(n - done);
        // The rows of this block, and those that are solved.
        let (block, solved) =
            if upper { (n - done - count..n - done, n - done..n) } else { (done..done + count, 0..done) };
        let known = b.part(solved.clone(), 0..columns);
        // SAFETY: the operands are parts of `a` and `b`, of rows other than those of the block.
        unsafe { b.subtract(block.clone(), 0..columns, a.part(block.clone(), solved), known) };
        for at in 0..count {
            let row = if upper { block.end - 1 - at } else { block.start + at };
            let others = if upper { row + 1..block.end } else { block.start..row };
            for other in others {
                let (first, second) = b.rows_mut(row.min(other), row.max(other));
                let (target, source) = if row < other { (first, second) } else { (second, first) };
                add_scaled(target, -a.at(row, other), source);
            }
            if !unit {
                let divisor = a.at(row, row);
                b.row_mut(row).iter_mut().for_each(|element| *element = *element / divisor);
            }
        }
        done += count;
    }
}
