//! Products of operands in panels, for kernels that make the panels themselves.
//!
//! In: panels as the innermost loops take them: of the left operand the elements of a few rows for each step of the inner
//! dimension, of the right one those of a few columns. Out: the product, or its sum with the old `out`. Must know
//! nothing about where the operands come from.

use gemm_common::Ptr;
use opsmith_runtime::Scratch;
use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::Axis;
use opsmith_runtime::copy::copy_elements;

use super::blocked::Block;
use super::innermost::{Kernels, Pack};
use super::product::{Matrix, MatrixMut};

/// Longest inner dimension of a panel: a panel of the right operand stays in the first cache.
pub(in crate::cpu) const DEPTH: usize = 768;

/// Lines of fewer elements are not worth a transposition.
const SHORT: usize = 16;

/// Steps of the inner dimension that all panels are filled for, one after the other. A panel alone would read a few neighbours of
/// each step, most often in a page of its own and at one place of the caches: with more steps than these hold, each cache line is
/// read again for each panel that has a part of it.
pub(in crate::cpu) const STEPS: usize = 8;

/// Lines that are transposed together: the processor reads so many ahead.
pub(in crate::cpu) const LINES: usize = 8;

/// How much of an inner dimension is in a panel: equal parts of at most [`DEPTH`].
pub(in crate::cpu) fn depth(inner: usize) -> usize {
    inner.div_ceil(inner.div_ceil(DEPTH).max(1)).max(1)
}

impl<T: Arithmetic + 'static> Kernels<T> {
    /// Copies rows of a left operand into panels of `panel` elements.
    ///
    /// # Safety
    /// Every element is valid for reads, and the target has room for whole panels.
    pub(super) unsafe fn pack_rows(&self, left: Matrix<T>, target: *mut T, panel: usize) {
        let lines = Lines::of_rows(left);
        // SAFETY: the caller's promise.
        unsafe { lines.pack(self.rows, self.pack_left, [lines.step, lines.line], target, panel) }
    }

    /// Copies columns of a right operand into panels of `panel` elements.
    ///
    /// # Safety
    /// As [`Kernels::pack_rows`].
    pub(super) unsafe fn pack_columns(&self, right: Matrix<T>, target: *mut T, panel: usize) {
        let lines = Lines::of_rows(right.transposed());
        // SAFETY: the caller's promise.
        unsafe { lines.pack(self.columns, self.pack_right, [lines.line, lines.step], target, panel) }
    }

    /// Elements of a right operand's panels.
    pub(in crate::cpu) fn right_len(&self, inner: usize, columns: usize) -> usize {
        inner * columns.next_multiple_of(self.columns)
    }

    /// Appends a right operand in panels, [`Kernels::right_len`] elements.
    ///
    /// # Safety
    /// Every element of `right` is valid for reads, and there are rows and columns.
    pub(in crate::cpu) unsafe fn append_right(&self, right: Matrix<T>, panels: &mut Scratch<T>) {
        let (start, count) = (panels.len(), self.right_len(right.rows, right.columns));
        panels.resize(start + count, T::ZERO);
        let target = panels[start..].as_mut_ptr();
        // SAFETY: the caller's promise; there is room for every panel.
        unsafe { self.pack_columns(right, target, right.rows * self.columns) };
    }

    /// Appends a left operand in panels.
    ///
    /// # Safety
    /// Every element of `left` is valid for reads, and there are rows and columns.
    pub(in crate::cpu) unsafe fn append_left(&self, left: Matrix<T>, panels: &mut Scratch<T>) {
        let (start, count) = (panels.len(), left.columns * left.rows.next_multiple_of(self.rows));
        panels.resize(start + count, T::ZERO);
        let target = panels[start..].as_mut_ptr();
        // SAFETY: the caller's promise; there is room for every panel.
        unsafe { self.pack_rows(left, target, left.columns * self.rows) };
    }

    /// Writes the product of panels, or adds it to `out`, whose rows are next to each other.
    ///
    /// # Safety
    /// The panels hold `rows` and `columns` for each of `inner` steps, and every element of `out` is valid for writes,
    /// and for reads if the product is added.
    pub(in crate::cpu) unsafe fn multiply(
        &self,
        [rows, columns, inner]: [usize; 3],
        left: *const T,
        right: *const T,
        adds: bool,
        out: MatrixMut<T>,
    ) {
        let left =
            Matrix { data: left, rows, columns: inner, row_stride: 1, column_stride: self.rows as i64 };
        let right =
            Matrix { data: right, rows: inner, columns, row_stride: self.columns as i64, column_stride: 1 };
        let panel = [inner * self.rows, inner * self.columns];
        let block = Block { kernels: self, left, right, packed: [true; 2], panel, inner };
        // SAFETY: the caller's promise.
        unsafe { block.compute(rows, columns, adds.then_some(T::ONE), T::ONE, out) }
    }
}

impl<T: Arithmetic + 'static> Kernels<T> {
    /// As [`multiply`](Self::multiply), of rows of a left operand that are neighbours and stay where they are: those of each
    /// step at its place after `left`.
    ///
    /// # Safety
    /// As [`multiply`](Self::multiply); the rows of a whole panel are valid for reads from each step's place on, `rows` after
    /// each other.
    pub(in crate::cpu) unsafe fn multiply_unpacked(
        &self,
        [rows, columns]: [usize; 2],
        steps: &[usize],
        left: *const T,
        right: *const T,
        adds: bool,
        out: MatrixMut<T>,
    ) {
        for row in (0..rows).step_by(self.rows) {
            for column in (0..columns).step_by(self.columns) {
                let sizes = [self.rows.min(rows - row), self.columns.min(columns - column)];
                let right = right.wrapping_add(column * steps.len());
                let (left, out) = (left.wrapping_add(row), out.at(row, column));
                // SAFETY: the caller's promise; these loops are those of the processor.
                unsafe { (self.unpacked)(sizes, steps, left, right, adds, out) };
            }
        }
    }
}

/// Rows of a left operand, or columns of a right one, over the inner dimension.
struct Lines<T> {
    data: *const T,
    count: usize,
    length: usize,
    /// Elements from a line to the next, and along a line.
    line: i64,
    step: i64,
}

impl<T: Copy> Lines<T> {
    fn of_rows(matrix: Matrix<T>) -> Lines<T> {
        let Matrix { data, rows, columns, row_stride, column_stride } = matrix;
        Lines { data, count: rows, length: columns, line: row_stride, step: column_stride }
    }

    /// Copies the lines into panels of `width`, which are filled up with zeros. Lines whose own elements are neighbours are
    /// transposed here, since the crate moves them one by one; `steps` are those of its function, from a column and from a
    /// row to the next.
    ///
    /// # Safety
    /// Every element is valid for reads, and the target has room for whole panels.
    unsafe fn pack(&self, width: usize, pack: Pack<T>, steps: [i64; 2], target: *mut T, panel: usize) {
        let Lines { data, count, length, line, step } = *self;
        if step != 1 || line == 1 || length < SHORT {
            let together = if count > width { STEPS } else { length.max(1) };
            for start in (0..length).step_by(together) {
                let source = Ptr(data.wrapping_offset(start as isize * step as isize).cast_mut());
                let [first, second] = steps.map(|step| step as isize);
                let target = Ptr(target.wrapping_add(start * width));
                // SAFETY: the caller's promise.
                unsafe { pack(count, together.min(length - start), target, source, first, second, panel) };
            }
            return;
        }
        let size = size_of::<T>() as i64;
        for (number, first) in (0..count).step_by(width).enumerate() {
            let to = target.wrapping_add(number * panel);
            let lines = width.min(count - first);
            if lines < width {
                // SAFETY: the target has room for whole panels; a floating-point number of zero bytes is zero.
                unsafe { to.write_bytes(0, length * width) };
            }
            for line_of_panel in (0..lines).step_by(LINES) {
                let from = data.wrapping_offset((first + line_of_panel) as isize * line as isize);
                let along = Axis { size: length as i64, steps: [width as i64 * size, size] };
                let across =
                    Axis { size: LINES.min(lines - line_of_panel) as i64, steps: [size, line * size] };
                let axes = [along, across].into_iter().filter(|axis| axis.size != 1).collect();
                // SAFETY: the caller's promise.
                unsafe {
                    copy_elements(axes, size_of::<T>(), to.wrapping_add(line_of_panel).cast(), from.cast());
                }
            }
        }
    }
}
