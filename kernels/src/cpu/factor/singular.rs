//! Singular values and vectors.
//!
//! Source: one-sided rotations of the rows of the matrix, or of the triangular factor of one that is not square (Hestenes 1958;
//! Demmel and Veselić 1992), which give small singular values with a small relative error. Before, the eigenvectors of the matrix of
//! the rows' inner products, in double precision, make the rows nearly orthogonal, if no singular value is below a millionth of the
//! largest: few rotations are left then.

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::hermitian::{self, turn_of};
use super::matrix::{Mat, add_scaled, inner, rotate};
use super::number::{Field, Real};
use super::orthogonal::{Reflected, norm};
use super::stack::Stack;

/// Passes over all pairs of rows; a dozen are many.
const PASSES: usize = 60;

/// The factors of `A = U diag(S) Vh`: `U` and the adjoint of `Vh` with orthonormal columns, `S` in descending order. `U`
/// has as many columns as its result, `Vh` as many rows; without `compute_uv` there are only singular values.
///
/// # Errors
/// If there are less than two dimensions, or an element is infinite or NaN.
pub fn svd<T: Field>(
    a: View<'_, T>,
    compute_uv: bool,
    mut u: ViewMut<'_, T>,
    mut s: ViewMut<'_, T::Real>,
    mut vh: ViewMut<'_, T>,
) -> Result<()> {
    let (matrices, values) = (Stack::of(&a)?, Stack::of_rows(&mut s)?);
    let vectors =
        if compute_uv { Some((Stack::of_output(&mut u)?, Stack::of_output(&mut vh)?)) } else { None };
    parallel::try_for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let matrix = matrices.matrix(number);
            if !matrix.is_finite() {
                return Err(not_finite(number));
            }
            let wide = matrix.rows < matrix.columns;
            let tall = if wide { matrix.adjoint() } else { matrix };
            // Columns of the factors of the tall matrix.
            let counts = vectors
                .as_ref()
                .map(|(u, vh)| if wide { (vh.rows, u.columns) } else { (u.columns, vh.rows) });
            let (found, columns) = decompose(tall, counts)?;
            // SAFETY: each number is one thread's.
            unsafe {
                values.write(number, &found);
                if let (Some((u, vh)), Some((left, right))) = (&vectors, columns) {
                    let (left, right) = if wide { (right, left) } else { (left, right) };
                    u.write(number, &left.elements);
                    vh.write(number, &right.adjoint().elements);
                }
            }
        }
        Ok(())
    })
}

/// The error of a matrix without singular values.
#[cold]
pub(crate) fn not_finite(number: usize) -> Error {
    Error::value(format!("matrix {number} has elements that are infinite or NaN"))
        .with_help("singular values are those of finite matrices")
}

/// Singular values, and left and right vectors.
type Singular<T> = (Scratch<<T as Field>::Size>, Option<(Mat<T>, Mat<T>)>);

/// The singular values of a matrix with at least as many rows as columns, and its singular vectors as so many columns.
///
/// # Errors
/// If eigenvalues of a small matrix do not converge.
fn decompose<T: Field>(matrix: Mat<T>, counts: Option<(usize, usize)>) -> Result<Singular<T>> {
    let n = matrix.columns;
    let scale = matrix.largest();
    let height = matrix.rows;
    // The triangular factor has fewer rows than the matrix, if that is not square.
    let (mut rows, reflected) = if height == n {
        (matrix, None)
    } else {
        let reflected = Reflected::of(matrix);
        (reflected.upper(n), Some(reflected))
    };
    if scale > T::Size::NONE {
        rows.elements.iter_mut().for_each(|element| *element = *element / T::of(scale));
    }
    let mut turns = if counts.is_some() { Mat::identity(n, n) } else { Mat::zeros(0, 0) };
    if n >= PREPARED {
        prepare(&mut rows, &mut turns)?;
    }
    orthogonalize(&mut rows, &mut turns);
    let lengths: Scratch<T::Size> = (0..n).map(|row| norm(rows.row(row))).collect();
    let mut order: Scratch<usize> = (0..n).collect();
    order.sort_unstable_by(|one, other| {
        let by_length = lengths[*other].partial_cmp(&lengths[*one]).unwrap_or(std::cmp::Ordering::Equal);
        by_length.then(one.cmp(other))
    });
    let values = order.iter().map(|row| lengths[*row] * scale).collect();
    let Some((left_columns, _)) = counts else { return Ok((values, None)) };

    let right = unit_rows(&rows, &lengths, &order);
    // The adjoint of the rotations, its columns in order, below it the identity for columns beyond.
    let mut left = Mat::identity(height, left_columns);
    let turned: Scratch<T> = (0..n).map(|row| turn_of(right.row(row).iter().copied())).collect();
    for (column, from) in order.iter().enumerate() {
        for row in 0..n {
            // Column and row turn together: `U diag(S) Vh` is the same.
            left.row_mut(row)[column] = turns.at(*from, row).conjugate() * turned[column].conjugate();
        }
    }
    let mut right = right;
    for row in 0..n {
        right.row_mut(row).iter_mut().for_each(|element| *element = *element * turned[row]);
    }
    let left = match reflected {
        Some(reflected) => reflected.applied(left),
        None => left,
    };
    Ok((values, Some((left, right.adjoint()))))
}

/// Rows from which on they are made nearly orthogonal at once.
pub(in crate::cpu) const PREPARED: usize = 24;

/// The least quotient of singular values that squares keep.
const LEAST_QUOTIENT: f64 = 1e-6;

/// Replaces rows by orthogonal ones, to rounding in double precision, as the eigenvectors of the matrix of their inner products are;
/// `turns` as well. Where singular values are so far apart that their squares would lose digits of the smallest, nothing is done.
///
/// # Errors
/// If eigenvalues do not converge.
fn prepare<T: Field>(rows: &mut Mat<T>, turns: &mut Mat<T>) -> Result<()> {
    let n = rows.rows;
    let elements = Scratch::mapped(&rows.elements, |element| element.widened());
    let wide = Mat { elements, rows: n, columns: rows.columns };
    let (values, vectors) = hermitian::eigen(wide.times(&wide.adjoint()), true)?;
    let (Some(vectors), Some(least), Some(most)) = (vectors, values.first(), values.last()) else {
        return Ok(());
    };
    if *least < LEAST_QUOTIENT * LEAST_QUOTIENT * *most {
        return Ok(());
    }
    // In descending order of the values, which rotations would make.
    let mut conjugates = Mat::zeros(n, n);
    for row in 0..n {
        let from = vectors.row(n - 1 - row);
        conjugates.row_mut(row).iter_mut().zip(from).for_each(|(to, element)| *to = element.conjugate());
    }
    let narrowed = |of: &Mat<T::Wide>| Scratch::mapped(&of.elements, |element| T::narrowed(*element));
    rows.elements = narrowed(&conjugates.times(&wide));
    if turns.rows > 0 {
        turns.elements = narrowed(&conjugates);
    }
    Ok(())
}

/// Rotates rows until every two are orthogonal, and `turns` as well.
fn orthogonalize<T: Field>(rows: &mut Mat<T>, turns: &mut Mat<T>) {
    let n = rows.rows;
    let tolerance = T::Size::EPSILON * T::Size::rounded((n as f64).sqrt());
    let square = |row: &[T]| inner(row, row).re();
    for _ in 0..PASSES {
        let mut is_done = true;
        let mut squares: Scratch<T::Size> = (0..n).map(|row| square(rows.row(row))).collect();
        for one in 0..n {
            for other in one + 1..n {
                let (first, second) = rows.rows_mut(one, other);
                let overlap = inner(first, second);
                let (a, b) = (squares[one], squares[other]);
                let size = overlap.size();
                let least = T::Size::LEAST;
                if size <= tolerance * a.root() * b.root() || size <= least {
                    continue;
                }
                is_done = false;
                let ratio = (b - a) / (T::Size::rounded(2.0) * size);
                let tangent = T::Size::UNIT.signed(ratio) / (ratio.size() + ratio.with(T::Size::UNIT));
                let cosine = T::Size::UNIT / tangent.with(T::Size::UNIT);
                let sine = T::of(cosine * tangent / size) * overlap;
                rotate(first, second, cosine, sine);
                (squares[one], squares[other]) = (square(first), square(second));
                if turns.rows > 0 {
                    let (first, second) = turns.rows_mut(one, other);
                    rotate(first, second, cosine, sine);
                }
            }
        }
        if is_done {
            return;
        }
    }
}

/// Rows in an order, scaled to length 1; those too short for that are replaced by rows orthogonal to all others.
fn unit_rows<T: Field>(rows: &Mat<T>, lengths: &[T::Size], order: &[usize]) -> Mat<T> {
    let n = rows.rows;
    let mut unit = Mat::zeros(n, rows.columns);
    let least = T::Size::LEAST.root();
    for (row, from) in order.iter().enumerate() {
        if lengths[*from] > least {
            let scale = T::of(T::Size::UNIT / lengths[*from]);
            add_scaled(unit.row_mut(row), scale, rows.row(*from));
            continue;
        }
        let mut candidate = Scratch::filled(T::NONE, rows.columns);
        candidate[farthest_axis(&unit, row)] = T::UNIT;
        for _ in 0..2 {
            for above in 0..row {
                let part = inner(&candidate, unit.row(above));
                add_scaled(&mut candidate, -part, unit.row(above));
            }
        }
        let length = norm(&candidate);
        add_scaled(unit.row_mut(row), T::of(T::Size::UNIT / length), &candidate);
    }
    unit
}

/// The axis that is farthest from the space of the first so many rows, which are orthonormal.
fn farthest_axis<T: Field>(unit: &Mat<T>, rows: usize) -> usize {
    let mut inside = Scratch::filled(T::Size::NONE, unit.columns);
    for row in 0..rows {
        for (sum, element) in inside.iter_mut().zip(unit.row(row)) {
            let size = element.size();
            *sum += size * size;
        }
    }
    (0..unit.columns).fold(0, |best, axis| if inside[axis] < inside[best] { axis } else { best })
}
