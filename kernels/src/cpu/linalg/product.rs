//! Matrix products of one element type.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. Floats are
//! multiplied in blocks, and so are complex numbers, as pairs, and 16-bit floats, in `f32`; integers wrap, in a loop the compiler
//! vectorises.

use std::ops::Range;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::element::named;
use opsmith_runtime::{Complex32, Complex64, Element, Scratch};

use super::innermost::Kernels;
use super::{blocked, by_reals, halves, whole_numbers};

/// A matrix for reading: an address, sizes and strides in elements.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    /// Address of the first element.
    pub data: *const T,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Elements from a row to the next.
    pub row_stride: i64,
    /// Elements from a column to the next.
    pub column_stride: i64,
}

impl<T> Matrix<T> {
    /// The part from a row and a column on; its sizes are the caller's to know.
    pub(in crate::cpu) fn at(self, row: usize, column: usize) -> Matrix<T> {
        let offset = row as isize * self.row_stride as isize + column as isize * self.column_stride as isize;
        Matrix { data: self.data.wrapping_offset(offset), ..self }
    }

    /// Some of the rows.
    pub(in crate::cpu) fn some_rows(self, rows: &Range<usize>) -> Matrix<T> {
        Matrix { rows: rows.len(), ..self.at(rows.start, 0) }
    }

    /// The same memory as elements of another type of this size.
    pub(super) fn cast<U>(self) -> Matrix<U> {
        const { assert!(size_of::<T>() == size_of::<U>()) };
        let Matrix { data, rows, columns, row_stride, column_stride } = self;
        Matrix { data: data.cast(), rows, columns, row_stride, column_stride }
    }

    /// Rows as columns.
    pub(in crate::cpu) fn transposed(self) -> Matrix<T> {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

impl<T: Element> Matrix<T> {
    /// The matrix in the compute type: itself if its elements are of that type, else a row-major copy in the buffer.
    ///
    /// # Safety
    /// Every element is valid for reads.
    pub(in crate::cpu) unsafe fn computed(self, buffer: &mut Scratch<T::Compute>) -> Matrix<T::Compute> {
        if const { T::DTYPE as u8 == T::Compute::DTYPE as u8 } {
            let Matrix { data, rows, columns, row_stride, column_stride } = self;
            return Matrix { data: data.cast(), rows, columns, row_stride, column_stride };
        }
        // SAFETY: the caller's promise.
        *buffer = unsafe { pack(self) };
        row_major(buffer, self.rows, self.columns)
    }
}

/// A matrix for writing.
#[derive(Clone, Copy)]
pub struct MatrixMut<T> {
    /// Address of the first element.
    pub data: *mut T,
    /// Elements from a row to the next.
    pub row_stride: i64,
    /// Elements from a column to the next.
    pub column_stride: i64,
}

impl<T> MatrixMut<T> {
    /// The part from a row and a column on.
    pub(in crate::cpu) fn at(self, row: usize, column: usize) -> MatrixMut<T> {
        let offset = row as isize * self.row_stride as isize + column as isize * self.column_stride as isize;
        MatrixMut { data: self.data.wrapping_offset(offset), ..self }
    }

    /// The same memory as elements of another type of this size.
    pub(super) fn cast<U>(self) -> MatrixMut<U> {
        const { assert!(size_of::<T>() == size_of::<U>()) };
        let MatrixMut { data, row_stride, column_stride } = self;
        MatrixMut { data: data.cast(), row_stride, column_stride }
    }

    /// Rows as columns.
    pub(super) fn transposed(self) -> MatrixMut<T> {
        MatrixMut { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }
}

/// Element types with matrix products.
pub trait Multiply: Element<Compute: Arithmetic> {
    /// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read.
    ///
    /// # Safety
    /// Every element of `left` and `right` is valid for reads, and every element of `out`, which
    /// has `left.rows` times `right.columns`, for reads and writes. `left.columns` equals
    /// `right.rows`.
    unsafe fn multiply(
        left: Matrix<Self>,
        right: Matrix<Self>,
        keep: Option<Self::Compute>,
        scale: Self::Compute,
        out: MatrixMut<Self>,
    );

    /// The innermost loops for kernels that make operands in panels themselves, if the type and the processor have any.
    fn loops() -> Option<&'static Kernels<Self>> {
        None
    }
}

macro_rules! in_blocks {
    ($module:ident: $($ty:ty),*) => {$(
        impl Multiply for $ty {
            unsafe fn multiply(
                left: Matrix<$ty>,
                right: Matrix<$ty>,
                keep: Option<$ty>,
                scale: $ty,
                out: MatrixMut<$ty>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { $module::multiply(left, right, keep, scale, out) }
            }

            fn loops() -> Option<&'static Kernels<$ty>> {
                $module::loops()
            }
        }
    )*};
}

in_blocks!(blocked: f32, f64);
in_blocks!(by_reals: Complex32, Complex64);

macro_rules! of_halves {
    ($({ $variant:ident: $($columns:tt)* })*) => {$(
        impl Multiply for named::$variant {
            unsafe fn multiply(
                left: Matrix<Self>,
                right: Matrix<Self>,
                keep: Option<f32>,
                scale: f32,
                out: MatrixMut<Self>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { halves::multiply(left, right, keep, scale, out) }
            }
        }
    )*};
}

opsmith_core::for_each_half!(of_halves);

macro_rules! with_loops {
    ($($ty:ty),*) => {$(
        impl Multiply for $ty {
            unsafe fn multiply(
                left: Matrix<$ty>,
                right: Matrix<$ty>,
                keep: Option<$ty>,
                scale: $ty,
                out: MatrixMut<$ty>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { whole_numbers::multiply(left, right, keep, scale, out) }
            }
        }
    )*};
}

with_loops!(bool, u8, u16, u32, u64, i8, i16, i32, i64);

/// A matrix's elements in row-major order, in the compute type.
///
/// # Safety
/// Every element is valid for reads.
pub(super) unsafe fn pack<T: Element>(matrix: Matrix<T>) -> Scratch<T::Compute> {
    let mut elements = Scratch::with_capacity(matrix.rows * matrix.columns);
    for row in 0..matrix.rows as i64 {
        let start = matrix.data.wrapping_offset((row * matrix.row_stride) as isize);
        if matrix.column_stride == 1 && matrix.columns > 0 {
            // SAFETY: the caller's promise.
            let row = unsafe { std::slice::from_raw_parts(start, matrix.columns) };
            elements.extend_mapped(row, |element| element.to_compute());
            continue;
        }
        elements.extend_from_fn(matrix.columns, |column| {
            // SAFETY: the caller's promise.
            unsafe { *start.offset(column as isize * matrix.column_stride as isize) }.to_compute()
        });
    }
    elements
}

/// The matrix of elements in row-major order.
pub(in crate::cpu) fn row_major<T>(elements: &[T], rows: usize, columns: usize) -> Matrix<T> {
    Matrix { data: elements.as_ptr(), rows, columns, row_stride: columns as i64, column_stride: 1 }
}
