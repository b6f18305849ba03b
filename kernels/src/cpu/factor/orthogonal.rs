//! Factors with orthogonal (unitary) columns, by reflections.
//!
//! Source: Householder's reflections `I - tau v vᴴ` with the signs of LAPACK, which make the first element of `v` 1 and the
//! diagonal of `R` real.

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled};
use super::number::{Field, Real};
use super::stack::Stack;

/// The factors of `A = Q R`: `Q` with orthonormal columns, `R` upper triangular. In the mode `reduced` `Q` has as many columns
/// as the smaller side of `A`, in `complete` it is square, in `r` there is none.
///
/// # Errors
/// If there are less than two dimensions, or the mode is another.
pub fn qr<T: Field>(a: View<'_, T>, mode: &str, mut q: ViewMut<'_, T>, mut r: ViewMut<'_, T>) -> Result<()> {
    let with_q = has_columns(mode)?;
    let matrices = Stack::of(&a)?;
    let uppers = Stack::of_output(&mut r)?;
    let columns = if with_q { Some(Stack::of_output(&mut q)?) } else { None };
    parallel::for_each_range(matrices.count(), 1, |range| {
        for number in range {
            let reflected = Reflected::of(matrices.matrix(number));
            // SAFETY: each number is one thread's.
            unsafe {
                uppers.write(number, &reflected.upper(uppers.rows).elements);
                if let Some(columns) = &columns {
                    columns.write(number, &reflected.columns(columns.columns).elements);
                }
            }
        }
    });
    Ok(())
}

/// Whether a mode has the factor `Q`.
///
/// # Errors
/// If there is no such mode.
pub(crate) fn has_columns(mode: &str) -> Result<bool> {
    match mode {
        "reduced" | "complete" => Ok(true),
        "r" => Ok(false),
        other => {
            Err(Error::value(format!("there is no mode `{other}`"))
                .with_help("use `reduced`, `complete` or `r`"))
        }
    }
}

/// A matrix after reflections of its columns: `R` on and above the diagonal, below it the vectors of the reflections.
pub(super) struct Reflected<T> {
    matrix: Mat<T>,
    factors: Scratch<T>,
}

impl<T: Field> Reflected<T> {
    pub fn of(mut matrix: Mat<T>) -> Reflected<T> {
        let steps = matrix.rows.min(matrix.columns);
        let mut factors = Scratch::with_capacity(steps);
        let mut vector = Scratch::with_capacity(matrix.rows);
        for step in 0..steps {
            vector.clear();
            vector.extend((step..matrix.rows).map(|row| matrix.at(row, step)));
            let (factor, diagonal) = reflection(&mut vector);
            reflect(&mut matrix, step, step + 1, &vector, factor.conjugate());
            matrix.row_mut(step)[step] = T::of(diagonal);
            for (row, element) in (step + 1..matrix.rows).zip(&vector[1..]) {
                matrix.row_mut(row)[step] = *element;
            }
            factors.push(factor);
        }
        Reflected { matrix, factors }
    }

    /// The upper triangle, of some of the rows; rows without elements are zeros.
    pub fn upper(&self, rows: usize) -> Mat<T> {
        let mut upper = Mat::zeros(rows, self.matrix.columns);
        for row in 0..rows.min(self.matrix.rows).min(self.matrix.columns) {
            upper.row_mut(row)[row..].copy_from_slice(&self.matrix.row(row)[row..]);
        }
        upper
    }

    /// The first columns of the product of all reflections.
    pub fn columns(&self, count: usize) -> Mat<T> {
        self.applied(Mat::identity(self.matrix.rows, count))
    }

    /// The product of all reflections with a matrix.
    pub fn applied(&self, mut to: Mat<T>) -> Mat<T> {
        let mut vector = Scratch::with_capacity(self.matrix.rows);
        for (step, factor) in self.factors.iter().enumerate().rev() {
            vector.clear();
            vector.push(T::UNIT);
            vector.extend((step + 1..self.matrix.rows).map(|row| self.matrix.at(row, step)));
            reflect(&mut to, step, 0, &vector, *factor);
        }
        to
    }
}

/// Replaces a vector by the one, with a first element 1, whose reflection leaves only its first element; the result is that
/// reflection's factor and the element. The factor is 0 if nothing is to be reflected.
pub(super) fn reflection<T: Field>(vector: &mut [T]) -> (T, T::Size) {
    let Some((first, rest)) = vector.split_first_mut() else { return (T::NONE, T::Size::NONE) };
    let alpha = *first;
    *first = T::UNIT;
    let length = norm(rest);
    if length == T::Size::NONE && alpha.im() == T::Size::NONE {
        return (T::NONE, alpha.re());
    }
    let beta = -(alpha.size().with(length)).signed(alpha.re());
    let factor = (T::of(beta) - alpha) / T::of(beta);
    let scale = T::UNIT / (alpha - T::of(beta));
    rest.iter_mut().for_each(|element| *element = *element * scale);
    (factor, beta)
}

/// The root of the sum of squares, scaled so that it does not overflow.
pub(super) fn norm<T: Field>(vector: &[T]) -> T::Size {
    let largest = vector.iter().fold(T::Size::NONE, |largest, element| {
        let size = element.parts();
        if size > largest { size } else { largest }
    });
    if largest == T::Size::NONE {
        // NaN is larger than nothing, but must not be lost.
        return vector.iter().fold(T::Size::NONE, |sum, element| sum + element.parts());
    }
    let sum = vector.iter().fold(T::Size::NONE, |sum, element| {
        let (re, im) = (element.re() / largest, element.im() / largest);
        sum + re * re + im * im
    });
    largest * sum.root()
}

/// Subtracts `factor * v (vᴴ A)` from the rows from one on, in the columns from one on.
pub(super) fn reflect<T: Field>(
    a: &mut Mat<T>,
    from_row: usize,
    from_column: usize,
    vector: &[T],
    factor: T,
) {
    if factor == T::NONE || from_column >= a.columns {
        return;
    }
    let mut sums = Scratch::filled(T::NONE, a.columns - from_column);
    for (row, element) in (from_row..a.rows).zip(vector) {
        add_scaled(&mut sums, element.conjugate(), &a.row(row)[from_column..]);
    }
    for (row, element) in (from_row..a.rows).zip(vector) {
        add_scaled(&mut a.row_mut(row)[from_column..], -(factor * *element), &sums);
    }
}
