//! Matrices of a tensor, read and written one at a time.

use std::marker::PhantomData;

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, View, ViewMut};

use super::matrix::Mat;
use super::number::Field;

/// The matrices of a tensor: its last two dimensions, once for each place along those before.
pub(super) struct Stack<'a, T> {
    data: Shared<T>,
    sizes: Dims,
    strides: Dims,
    pub rows: usize,
    pub columns: usize,
    row_stride: i64,
    column_stride: i64,
    memory: PhantomData<&'a T>,
}

impl<'a, T: Element> Stack<'a, T> {
    /// The rows and columns of each matrix.
    pub fn sides(&self) -> [i64; 2] {
        [self.rows as i64, self.columns as i64]
    }

    /// About as many operations as a matrix takes: its elements times its shorter side.
    pub fn work(&self) -> usize {
        self.rows.saturating_mul(self.columns).saturating_mul(self.rows.min(self.columns))
    }

    /// The matrices of a tensor.
    ///
    /// # Errors
    /// If it has less than two dimensions.
    pub fn of(view: &View<'a, T>) -> Result<Stack<'a, T>> {
        Stack::new(view.as_ptr().cast_mut(), view.sizes(), view.strides())
    }

    /// As [`Stack::of`], of an output.
    ///
    /// # Errors
    /// As [`Stack::of`].
    pub fn of_output(view: &'a mut ViewMut<'_, T>) -> Result<Stack<'a, T>> {
        let data = view.as_mut_ptr();
        Stack::new(data, view.sizes(), view.strides())
    }

    /// The rows of an output as matrices of one row.
    ///
    /// # Errors
    /// If it has no dimensions.
    pub fn of_rows(view: &'a mut ViewMut<'_, T>) -> Result<Stack<'a, T>> {
        let data = view.as_mut_ptr();
        Stack::rows(data, view.sizes(), view.strides())
    }

    /// The rows of a tensor as matrices of one row.
    ///
    /// # Errors
    /// If it has no dimensions.
    pub fn of_vectors(view: &View<'a, T>) -> Result<Stack<'a, T>> {
        Stack::rows(view.as_ptr().cast_mut(), view.sizes(), view.strides())
    }

    fn rows(data: *mut T, sizes: &[i64], strides: &[i64]) -> Result<Stack<'a, T>> {
        let (Some((last, outer)), Some((step, outer_strides))) = (sizes.split_last(), strides.split_last())
        else {
            return Err(Error::shape("a tensor without dimensions has no rows"));
        };
        let sizes: Dims = outer.iter().copied().chain([1, *last]).collect();
        let strides: Dims = outer_strides.iter().copied().chain([0, *step]).collect();
        Stack::new(data, &sizes, &strides)
    }

    /// The elements of an output as matrices of one element.
    ///
    /// # Errors
    /// None.
    pub fn of_elements(view: &'a mut ViewMut<'_, T>) -> Result<Stack<'a, T>> {
        let data = view.as_mut_ptr();
        let sizes: Dims = view.sizes().iter().copied().chain([1, 1]).collect();
        let strides: Dims = view.strides().iter().copied().chain([0, 0]).collect();
        Stack::new(data, &sizes, &strides)
    }

    fn new(data: *mut T, sizes: &[i64], strides: &[i64]) -> Result<Stack<'a, T>> {
        let ([outer @ .., rows, columns], [steps @ .., row_stride, column_stride]) = (sizes, strides) else {
            return Err(Error::shape(format!("expected matrices, got the shape {}", ShapeText(sizes))));
        };
        Ok(Stack {
            data: Shared(data),
            sizes: outer.into(),
            strides: steps.into(),
            rows: *rows as usize,
            columns: *columns as usize,
            row_stride: *row_stride,
            column_stride: *column_stride,
            memory: PhantomData,
        })
    }

    /// The sizes of the dimensions before the last two.
    pub fn outer(&self) -> &[i64] {
        &self.sizes
    }

    /// The number of matrices.
    pub fn count(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize
    }

    /// The same matrices, repeated along dimensions of size 1 and new ones.
    ///
    /// # Errors
    /// If the sizes do not broadcast to the given ones.
    pub fn expanded(mut self, sizes: &[i64]) -> Result<Stack<'a, T>> {
        let new = sizes.len().checked_sub(self.sizes.len());
        let fits =
            |new: usize| self.sizes.iter().zip(&sizes[new..]).all(|(own, size)| own == size || *own == 1);
        let Some(new) = new.filter(|new| fits(*new)) else {
            return Err(Error::shape(format!(
                "matrices of the sizes {} do not broadcast to {}",
                ShapeText(&self.sizes),
                ShapeText(sizes)
            )));
        };
        let own = self.sizes.iter().zip(&self.strides).map(|(size, step)| if *size == 1 { 0 } else { *step });
        self.strides = std::iter::repeat_n(0, new).chain(own).collect();
        self.sizes = sizes.into();
        Ok(self)
    }

    fn start(&self, number: usize) -> *mut T {
        let mut rest = number as i64;
        let mut offset = 0;
        for (size, step) in self.sizes.iter().zip(&self.strides).rev() {
            offset += rest % size * step;
            rest /= size;
        }
        self.data.at(offset)
    }

    /// The elements of a matrix in row-major order.
    ///
    /// # Panics
    /// If there is no such matrix.
    pub fn elements(&self, number: usize) -> Scratch<T> {
        assert!(number < self.count());
        let start = self.start(number);
        let mut elements = Scratch::with_capacity(self.rows * self.columns);
        for row in 0..self.rows as i64 {
            let row = start.wrapping_offset((row * self.row_stride) as isize);
            elements.extend((0..self.columns as i64).map(|column| {
                // SAFETY: the view that the stack is of vouches for its elements, which it borrows.
                unsafe { *row.offset((column * self.column_stride) as isize) }
            }));
        }
        elements
    }

    /// Writes a matrix, in row-major order.
    ///
    /// # Safety
    /// The stack is of an output, and meanwhile no other thread reads or writes this matrix.
    ///
    /// # Panics
    /// If there is no such matrix, or it has another number of elements.
    pub unsafe fn write(&self, number: usize, elements: &[T]) {
        assert!(number < self.count() && elements.len() == self.rows * self.columns);
        let start = self.start(number);
        for (row, elements) in elements.chunks(self.columns.max(1)).enumerate() {
            let row = start.wrapping_offset((row as i64 * self.row_stride) as isize);
            for (column, element) in elements.iter().enumerate() {
                // SAFETY: the view vouches for its elements, and the caller for threads.
                unsafe { *row.offset((column as i64 * self.column_stride) as isize) = *element };
            }
        }
    }
}

impl<T: Field> Stack<'_, T> {
    /// A matrix in working memory.
    pub fn matrix(&self, number: usize) -> Mat<T> {
        Mat { elements: self.elements(number), rows: self.rows, columns: self.columns }
    }
}
