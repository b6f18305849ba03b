//! A matrix in row-major working memory.

use std::ops::Range;

use opsmith_runtime::Scratch;
use opsmith_runtime::simd::widest;

use super::number::{Field, Real};
use crate::cpu::linalg::product::{Matrix, MatrixMut};

/// Sides of a square of elements that are moved together.
pub(in crate::cpu) const LANES: usize = 8;

/// Products of elements that are summed apart.
pub(in crate::cpu) const SUMS: usize = 32;

/// Rows of elements, one after the other.
pub(super) struct Mat<T> {
    pub elements: Scratch<T>,
    pub rows: usize,
    pub columns: usize,
}

impl<T: Field> Mat<T> {
    pub fn zeros(rows: usize, columns: usize) -> Mat<T> {
        Mat { elements: Scratch::filled(T::NONE, rows * columns), rows, columns }
    }

    pub fn identity(rows: usize, columns: usize) -> Mat<T> {
        let mut matrix = Mat::zeros(rows, columns);
        (0..rows.min(columns)).for_each(|at| matrix.row_mut(at)[at] = T::UNIT);
        matrix
    }

    pub fn row(&self, row: usize) -> &[T] {
        &self.elements[row * self.columns..(row + 1) * self.columns]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.elements[row * self.columns..(row + 1) * self.columns]
    }

    pub fn at(&self, row: usize, column: usize) -> T {
        self.elements[row * self.columns + column]
    }

    /// Two rows, the first above the other.
    pub fn rows_mut(&mut self, first: usize, second: usize) -> (&mut [T], &mut [T]) {
        let (above, below) = self.elements.split_at_mut(second * self.columns);
        (&mut above[first * self.columns..(first + 1) * self.columns], &mut below[..self.columns])
    }

    pub fn swap_rows(&mut self, one: usize, other: usize) {
        if one != other {
            let (first, second) = self.rows_mut(one.min(other), one.max(other));
            first.swap_with_slice(second);
        }
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Mat<T> {
        self.turned(|element| element)
    }

    /// Rows as columns, conjugated.
    pub fn adjoint(&self) -> Mat<T> {
        self.turned(T::conjugate)
    }

    fn turned(&self, change: impl Fn(T) -> T) -> Mat<T> {
        let mut turned = Mat::zeros(self.columns, self.rows);
        // In squares, so that cache lines are used whole.
        for first_row in (0..self.rows).step_by(LANES) {
            for first in (0..self.columns).step_by(LANES) {
                for column in first..self.columns.min(first + LANES) {
                    let to = &mut turned.elements[column * self.rows..][..self.rows];
                    let rows = first_row..self.rows.min(first_row + LANES);
                    for (to, row) in to[rows.clone()].iter_mut().zip(rows) {
                        *to = change(self.at(row, column));
                    }
                }
            }
        }
        turned
    }

    pub fn is_finite(&self) -> bool {
        self.elements.iter().all(|element| element.re().is_bounded() && element.im().is_bounded())
    }

    /// The largest size of an element, 0 without elements.
    pub fn largest(&self) -> T::Size {
        self.elements.iter().fold(T::Size::NONE, |largest, element| {
            let size = element.size();
            if size > largest { size } else { largest }
        })
    }

    /// The part of some rows and columns, for products.
    pub fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Matrix<T> {
        Matrix {
            data: self.elements.as_ptr().wrapping_add(rows.start * self.columns + columns.start),
            rows: rows.len(),
            columns: columns.len(),
            row_stride: self.columns as i64,
            column_stride: 1,
        }
    }

    /// All of the matrix, for products.
    pub fn whole(&self) -> Matrix<T> {
        self.part(0..self.rows, 0..self.columns)
    }

    /// The product with another matrix.
    ///
    /// # Panics
    /// If that has another number of rows than this has columns.
    pub fn times(&self, other: &Mat<T>) -> Mat<T> {
        assert_eq!(self.columns, other.rows);
        // SAFETY: both operands are whole matrices, and sides that meet are equal.
        unsafe { Mat::product(self.whole(), other.whole()) }
    }

    /// The product of two matrices.
    ///
    /// # Safety
    /// Elements of both are valid for reads, and the first has as many columns as the other one rows.
    pub unsafe fn product(left: Matrix<T>, right: Matrix<T>) -> Mat<T> {
        let (rows, columns) = (left.rows, right.columns);
        let mut product = Mat::zeros(rows, columns);
        // The result of an empty sum is there already.
        if !product.elements.is_empty() && left.columns > 0 {
            let data = product.elements.as_mut_ptr();
            let out = MatrixMut { data, row_stride: columns as i64, column_stride: 1 };
            // SAFETY: the caller's promise, and the product has room for its elements.
            unsafe { T::multiply(left, right, None, T::UNIT, out) };
        }
        product
    }

    /// Subtracts a product from the part of some rows and columns.
    ///
    /// # Safety
    /// The operands are as large as the part and each other demands, their elements are valid for reads, and none of them is in
    /// the part.
    pub unsafe fn subtract(
        &mut self,
        rows: Range<usize>,
        columns: Range<usize>,
        left: Matrix<T>,
        right: Matrix<T>,
    ) {
        if rows.is_empty() || columns.is_empty() || left.columns == 0 {
            return;
        }
        let data = self.elements.as_mut_ptr().wrapping_add(rows.start * self.columns + columns.start);
        let out = MatrixMut { data, row_stride: self.columns as i64, column_stride: 1 };
        // SAFETY: the caller's promise.
        unsafe { T::multiply(left, right, Some(T::UNIT), -T::UNIT, out) };
    }
}

/// Adds a multiple of a row.
pub(super) fn add_scaled<T: Field>(target: &mut [T], scale: T, source: &[T]) {
    widest(
        #[inline(always)]
        move || {
            for (target, source) in target.iter_mut().zip(source) {
                *target += scale * *source;
            }
        },
    );
}

/// The sum of products of a row's elements and the conjugates of another's.
pub(super) fn inner<T: Field>(left: &[T], right: &[T]) -> T {
    widest(
        #[inline(always)]
        move || {
            let mut lanes = [T::NONE; SUMS];
            let (left_blocks, left_rest) = left.as_chunks::<SUMS>();
            let (right_blocks, right_rest) = right.as_chunks::<SUMS>();
            for at in 0..left_blocks.len().min(right_blocks.len()) {
                // Of copies, the compiler knows that they are apart.
                let (left, right, mut sums) = (left_blocks[at], right_blocks[at], lanes);
                for lane in 0..SUMS {
                    sums[lane] += left[lane] * right[lane].conjugate();
                }
                lanes = sums;
            }
            for (lane, (left, right)) in lanes.iter_mut().zip(left_rest.iter().zip(right_rest)) {
                *lane += *left * right.conjugate();
            }
            let mut half = SUMS / 2;
            while half > 0 {
                for lane in 0..half {
                    let other = lanes[lane + half];
                    lanes[lane] += other;
                }
                half /= 2;
            }
            lanes[0]
        },
    )
}

/// Replaces two rows by `cosine * first - sine * second` and `conj(sine) * first + cosine * second`.
pub(super) fn rotate<T: Field>(first: &mut [T], second: &mut [T], cosine: T::Size, sine: T) {
    let (cosine, back) = (T::of(cosine), sine.conjugate());
    widest(
        #[inline(always)]
        move || {
            for (first, second) in first.iter_mut().zip(second) {
                let (one, other) = (*first, *second);
                *first = cosine * one - sine * other;
                *second = back * one + cosine * other;
            }
        },
    );
}
