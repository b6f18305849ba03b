//! Factors with orthogonal (unitary) columns, by reflections.
//!
//! Source: Householder's reflections `I - tau v vᴴ` with the signs of LAPACK, which make the first element of `v` 1 and the
//! diagonal of `R` real.

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled, inner};
use super::number::{Field, Real};
use super::reflectors::{Reflectors, TOGETHER};
use super::stack::Stack;
use crate::cpu::linalg::product::MatrixMut;

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
    parallel::for_each_range_of(matrices.work(), matrices.count(), |range| {
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

/// A matrix after reflections of its columns: `R` on and above the diagonal.
pub(super) struct Reflected<T> {
    matrix: Mat<T>,
    reflectors: Reflectors<T>,
}

impl<T: Field> Reflected<T> {
    pub fn of(matrix: Mat<T>) -> Reflected<T> {
        let (rows, columns) = (matrix.rows, matrix.columns);
        let steps = rows.min(columns);
        let vectors = Mat::zeros(steps, rows);
        let reflectors = Reflectors { vectors, factors: Scratch::with_capacity(steps), start: 0 };
        let mut reflected = Reflected { matrix, reflectors };
        for first in (0..steps).step_by(TOGETHER) {
            let last = steps.min(first + TOGETHER);
            reflected.reflect_panel(first, last);
            let data = reflected.matrix.elements.as_mut_ptr().wrapping_add(first * columns + last);
            let rest = MatrixMut { data, row_stride: columns as i64, column_stride: 1 };
            // SAFETY: the columns of the matrix behind the panel, in the rows that its vectors reach.
            unsafe { reflected.reflectors.apply(first..last, true, rest, columns - last) };
        }
        reflected
    }

    /// Reflects some columns, one after the other.
    fn reflect_panel(&mut self, first: usize, last: usize) {
        let matrix = &mut self.matrix;
        // Columns as rows, whose elements are neighbours.
        let mut panel = Mat::zeros(last - first, matrix.rows - first);
        for row in first..matrix.rows {
            for column in first..last {
                panel.row_mut(column - first)[row - first] = matrix.at(row, column);
            }
        }
        for step in first..last {
            let vector = &mut self.reflectors.vectors.row_mut(step)[step..];
            vector.copy_from_slice(&panel.row(step - first)[step - first..]);
            let (factor, diagonal) = reflection(vector);
            for column in step + 1..last {
                let other = &mut panel.row_mut(column - first)[step - first..];
                let part = factor.conjugate() * inner(other, vector);
                add_scaled(other, -part, vector);
            }
            panel.row_mut(step - first)[step - first] = T::of(diagonal);
            self.reflectors.factors.push(factor);
        }
        for row in first..last {
            for column in row..last {
                matrix.row_mut(row)[column] = panel.at(column - first, row - first);
            }
        }
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
    ///
    /// # Panics
    /// If it has another number of rows.
    pub fn applied(&self, mut to: Mat<T>) -> Mat<T> {
        assert_eq!(to.rows, self.matrix.rows);
        let columns = to.columns;
        let out = MatrixMut { data: to.elements.as_mut_ptr(), row_stride: columns as i64, column_stride: 1 };
        // SAFETY: the matrix has as many rows as the vectors have elements.
        unsafe { self.reflectors.multiply(out, columns) };
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
