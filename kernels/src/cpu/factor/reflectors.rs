//! Products of many reflections, in blocks.
//!
//! In: vectors and factors of Householder's reflections `I - tau v vᴴ`. Out: matrices multiplied by the product of all. Those of a
//! block are one matrix, `I - V T Vᴴ`, so that the work is that of matrix products.
//!
//! Source: R. Schreiber and C. Van Loan, "A storage-efficient WY representation for products of Householder transformations" (1989).

use opsmith_runtime::Scratch;

use super::matrix::Mat;
use super::number::Field;
use crate::cpu::linalg::product::{Matrix, MatrixMut};

/// Reflections that are one matrix.
pub(in crate::cpu) const TOGETHER: usize = 32;

/// Reflections, the first of which is the leftmost of a product.
pub(super) struct Reflectors<T> {
    /// The vectors, as rows; each begins one element after the one before, the first at `start`.
    pub vectors: Mat<T>,
    pub factors: Scratch<T>,
    pub start: usize,
}

/// A block of reflections.
struct Block<T> {
    /// Vectors as rows, from the first element on that is not zero in all.
    vectors: Matrix<T>,
    conjugates: Mat<T>,
    /// The upper triangular factor.
    triangle: Mat<T>,
}

impl<T: Field> Reflectors<T> {
    /// Multiplies a matrix, which has so many columns, by the product of all from the left.
    ///
    /// # Safety
    /// The elements are valid for reads and writes, as many rows as vectors have elements.
    pub unsafe fn multiply(&self, to: MatrixMut<T>, columns: usize) {
        let count = self.factors.len();
        for first in (0..count).step_by(TOGETHER).rev() {
            let from_row = self.start + first;
            let data = to.data.wrapping_offset(from_row as isize * to.row_stride as isize);
            // SAFETY: the caller's promise, of the rows that these vectors reach.
            unsafe {
                self.apply(first..count.min(first + TOGETHER), false, MatrixMut { data, ..to }, columns)
            };
        }
    }

    /// Multiplies a matrix by the product of some of the reflections, or its adjoint. Its rows are those from the first that a vector
    /// reaches.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply), of these rows.
    pub unsafe fn apply(
        &self,
        range: std::ops::Range<usize>,
        adjoint: bool,
        to: MatrixMut<T>,
        columns: usize,
    ) {
        let block = self.block(range);
        let rows = block.vectors.columns;
        if columns == 0 || rows == 0 {
            return;
        }
        let MatrixMut { data, row_stride, column_stride } = to;
        let own = Matrix { data: data.cast_const(), rows, columns, row_stride, column_stride };
        // SAFETY: the caller's promise; operands and results have the sizes of each other, and share no memory.
        unsafe {
            let parts = Mat::product(block.conjugates.whole(), own);
            let parts =
                if adjoint { block.triangle.adjoint().times(&parts) } else { block.triangle.times(&parts) };
            T::multiply(block.vectors.transposed(), parts.whole(), Some(T::UNIT), -T::UNIT, to);
        }
    }

    fn block(&self, range: std::ops::Range<usize>) -> Block<T> {
        let count = range.len();
        let vectors = self.vectors.part(range.clone(), self.start + range.start..self.vectors.columns);
        let mut conjugates = Mat::zeros(count, vectors.columns);
        for (row, number) in range.clone().enumerate() {
            let from = &self.vectors.row(number)[self.start + range.start..];
            conjugates.row_mut(row).iter_mut().zip(from).for_each(|(to, element)| *to = element.conjugate());
        }
        // SAFETY: the operands are parts of whole matrices, of equally many columns.
        let overlaps = unsafe { Mat::product(conjugates.whole(), vectors.transposed()) };
        let mut triangle = Mat::zeros(count, count);
        for (column, factor) in self.factors[range].iter().enumerate() {
            for row in 0..column {
                let mut sum = T::NONE;
                for at in row..column {
                    sum += triangle.at(row, at) * overlaps.at(at, column);
                }
                triangle.row_mut(row)[column] = -(*factor * sum);
            }
            triangle.row_mut(column)[column] = *factor;
        }
        Block { vectors, conjugates, triangle }
    }
}
