//! Determinants, their logarithms and their derivatives.

use opsmith_runtime::{Result, View, ViewMut, parallel};

use super::expect_square;
use super::lu::Factors;
use super::matrix::Mat;
use super::number::{Field, Real};
use super::stack::Stack;

/// The determinant of each matrix, and the factors of [`lu_factor_ex`](super::lu::lu_factor_ex).
///
/// # Errors
/// If the matrices are not square.
pub fn det<T: Field>(
    a: View<'_, T>,
    mut result: ViewMut<'_, T>,
    mut lu: ViewMut<'_, T>,
    mut pivots: ViewMut<'_, i32>,
) -> Result<()> {
    expect_square(a.sizes())?;
    let (matrices, results) = (Stack::of(&a)?, Stack::of_elements(&mut result)?);
    let (factors, pivots) = (Stack::of_output(&mut lu)?, Stack::of_rows(&mut pivots)?);
    parallel::for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let factored = Factors::of(matrices.matrix(number));
            // SAFETY: each number is one thread's.
            unsafe {
                results.write(number, &[product(&factored)]);
                factors.write(number, &factored.lu.elements);
                pivots.write(number, &factored.pivots);
            }
        }
    });
    Ok(())
}

/// The sign of the determinant of each matrix (for complex numbers one of size 1; 0 for 0), the logarithm of its size, and
/// the factors of [`lu_factor_ex`](super::lu::lu_factor_ex).
///
/// # Errors
/// If the matrices are not square.
pub fn slogdet<T: Field>(
    a: View<'_, T>,
    mut sign: ViewMut<'_, T>,
    mut logabsdet: ViewMut<'_, T::Real>,
    mut lu: ViewMut<'_, T>,
    mut pivots: ViewMut<'_, i32>,
) -> Result<()> {
    expect_square(a.sizes())?;
    let (matrices, signs) = (Stack::of(&a)?, Stack::of_elements(&mut sign)?);
    let logarithms = Stack::of_elements(&mut logabsdet)?;
    let (factors, pivots) = (Stack::of_output(&mut lu)?, Stack::of_rows(&mut pivots)?);
    parallel::for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let factored = Factors::of(matrices.matrix(number));
            let (mut sign, mut sum) = (exchanges(&factored), T::Size::NONE);
            for at in 0..factored.lu.rows {
                let element = factored.lu.at(at, at);
                let size = element.size();
                sign = if size == T::Size::NONE { T::NONE } else { sign * (element / T::of(size)) };
                sum += size.log();
            }
            // SAFETY: each number is one thread's.
            unsafe {
                signs.write(number, &[sign]);
                logarithms.write(number, &[sum]);
                factors.write(number, &factored.lu.elements);
                pivots.write(number, &factored.pivots);
            }
        }
    });
    Ok(())
}

/// The matrix of cofactors of each matrix, the derivatives of its determinant by its elements. Zeros on the diagonal of `U`
/// are replaced by a small number.
///
/// # Errors
/// If the matrices are not square.
pub fn cofactors<T: Field>(a: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    expect_square(a.sizes())?;
    let (matrices, out) = (Stack::of(&a)?, Stack::of_output(&mut out)?);
    parallel::for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let mut factored = Factors::of(matrices.matrix(number));
            let least = T::of(T::Size::EPSILON * T::Size::EPSILON);
            for at in 0..matrices.rows {
                let element = &mut factored.lu.row_mut(at)[at];
                *element = if *element == T::NONE { least } else { *element };
            }
            let size = product(&factored);
            let mut turned =
                factored.solved(Mat::identity(matrices.rows, matrices.rows), true, false).transposed();
            turned.elements.iter_mut().for_each(|element| *element = *element * size);
            // SAFETY: each number is one thread's.
            unsafe { out.write(number, &turned.elements) };
        }
    });
    Ok(())
}

fn exchanges<T: Field>(factored: &Factors<T>) -> T {
    let moved =
        factored.pivots.iter().enumerate().filter(|(row, pivot)| *row + 1 != **pivot as usize).count();
    if moved % 2 == 0 { T::UNIT } else { -T::UNIT }
}

fn product<T: Field>(factored: &Factors<T>) -> T {
    (0..factored.lu.rows).fold(exchanges(factored), |product, at| product * factored.lu.at(at, at))
}
