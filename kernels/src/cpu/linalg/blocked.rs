//! Products of large matrices of floats and complex numbers, block by block.
//!
//! In: matrices with any strides. Out: `keep * out + scale * left * right`. The innermost loops are those of the
//! `gemm` crates, which hold a small block of the result in registers; around them are the usual ones, over
//! columns, the inner dimension and rows, with block sizes by the caches. The crate's own loops ask the system for
//! memory in every call; these pack into [`Scratch`]. Narrow products, for which the crate needs no memory, and
//! those of types and processors without innermost loops are left to the crate.

use gemm_common::Parallelism;
use gemm_common::cache::{KernelParams, kernel_params};
use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Scratch, parallel};

use super::few;
use super::innermost::{Blocked, Kernels};
use super::product::{Matrix, MatrixMut};

/// Right matrices whose columns are contiguous are packed only for results of more blocks of rows than this.
pub(in crate::cpu) const MANY_BLOCKS: usize = 128;
/// Left matrices that need not be packed are packed only for more blocks of columns than this.
pub(in crate::cpu) const FEW_BLOCKS: usize = 8;

/// Writes `keep * out + scale * left * right`; without `keep`, `out` is not read.
///
/// # Safety
/// Every element of `left` and `right` is valid for reads, and every element of `out`, which has `left.rows` times
/// `right.columns`, for reads and writes. `left.columns` equals `right.rows`.
pub(super) unsafe fn multiply<T: Blocked>(
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    // SAFETY: the caller's promise.
    unsafe { multiply_with(T::kernels(), left, right, keep, scale, out) }
}

/// # Safety
/// As [`multiply`].
unsafe fn multiply_with<T: Blocked>(
    kernels: Option<&Kernels<T>>,
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    let (left, right, out) = oriented(left, right, out);
    match kernels {
        // SAFETY: the caller's promise, of the same product.
        Some(kernels) if NarrowLoop::of(&left, &right, &out).is_none() => unsafe {
            blocks(kernels, left, right, keep, scale, out)
        },
        // SAFETY: the caller's promise, of the same product; `whole` asks no more of its memory.
        _ => unsafe { whole(left, right, keep, scale, out) },
    }
}

/// The product or its transpose: the one whose result has the closest elements in its columns, as the innermost
/// loops want, and steps that are not negative.
pub(super) fn oriented<T: Copy>(
    mut left: Matrix<T>,
    mut right: Matrix<T>,
    mut out: MatrixMut<T>,
) -> (Matrix<T>, Matrix<T>, MatrixMut<T>) {
    if out.column_stride.abs() < out.row_stride.abs() {
        (left, right) = (right.transposed(), left.transposed());
        (out.row_stride, out.column_stride) = (out.column_stride, out.row_stride);
    }
    if out.row_stride < 0 && left.rows > 0 {
        out.data = out.data.wrapping_offset((left.rows as isize - 1) * out.row_stride as isize);
        out.row_stride = -out.row_stride;
        left.data = left.data.wrapping_offset((left.rows as isize - 1) * left.row_stride as isize);
        left.row_stride = -left.row_stride;
    }
    if out.column_stride < 0 && right.columns > 0 {
        out.data = out.data.wrapping_offset((right.columns as isize - 1) * out.column_stride as isize);
        out.column_stride = -out.column_stride;
        right.data = right.data.wrapping_offset((right.columns as isize - 1) * right.column_stride as isize);
        right.column_stride = -right.column_stride;
    }
    (left, right, out)
}

/// The innermost loops, which take panels that a kernel made itself.
pub(super) fn loops<T: Blocked>() -> Option<&'static Kernels<T>> {
    T::kernels()
}

/// The loop by which the crate computes a product without memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NarrowLoop {
    /// None: the result has no elements.
    Empty,
    /// Sums of at most two products.
    Outer,
    /// A matrix of columns one after the other times a vector, to neighbouring elements.
    Columns,
    /// A matrix of rows one after the other times a contiguous vector.
    Rows,
    /// The transpose of `Columns`: a row times a matrix of rows one after the other.
    RowOfRows,
    /// The transpose of `Rows`.
    RowOfColumns,
}

impl NarrowLoop {
    /// That of the product; `None` if it needs memory. The step of a dimension with one element may be any.
    pub(super) fn of<T>(left: &Matrix<T>, right: &Matrix<T>, out: &MatrixMut<T>) -> Option<NarrowLoop> {
        let by_columns = left.row_stride == 1 && out.row_stride == 1;
        let by_rows = left.column_stride == 1 && right.row_stride == 1;
        let of_row = right.column_stride == 1 && out.column_stride == 1;
        let (one_column, one_row) = (right.columns <= 1, left.rows <= 1);
        match () {
            () if left.rows == 0 || right.columns == 0 => Some(NarrowLoop::Empty),
            () if left.columns <= 2 => Some(NarrowLoop::Outer),
            () if one_column && by_columns => Some(NarrowLoop::Columns),
            () if one_column && by_rows => Some(NarrowLoop::Rows),
            () if one_row && of_row => Some(NarrowLoop::RowOfRows),
            () if one_row && by_rows => Some(NarrowLoop::RowOfColumns),
            () => None,
        }
    }
}

/// The product by the crate's own function.
///
/// # Safety
/// As [`multiply`].
pub(super) unsafe fn whole<T: Blocked>(
    mut left: Matrix<T>,
    mut right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    if left.column_stride < 0 && left.columns > 0 {
        left.data = left.data.wrapping_offset((left.columns as isize - 1) * left.column_stride as isize);
        left.column_stride = -left.column_stride;
        right.data = right.data.wrapping_offset((left.columns as isize - 1) * right.row_stride as isize);
        right.row_stride = -right.row_stride;
    }
    // SAFETY: the caller's promise.
    unsafe {
        T::whole()(
            left.rows,
            right.columns,
            left.columns,
            out.data,
            out.column_stride as isize,
            out.row_stride as isize,
            keep.is_some(),
            left.data,
            left.column_stride as isize,
            left.row_stride as isize,
            right.data,
            right.column_stride as isize,
            right.row_stride as isize,
            keep.unwrap_or(T::ZERO),
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Rows of a part of a product with few columns, at least.
const ROWS: usize = 8;

/// Multiplications of a product that several threads share: some tens of microseconds.
pub(in crate::cpu) const SHARED: usize = 1 << 20;

/// The product. Block sizes are those of the whole product, so that each element is the same sum with any number of
/// threads.
///
/// # Safety
/// As [`multiply`]; there are rows, columns and an inner dimension.
unsafe fn blocks<T: Blocked>(
    kernels: &Kernels<T>,
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    if few::fits(&left, &right) {
        return in_threads([ROWS, few::FEW + 1], left, right, out, &|left, right, out| {
            // SAFETY: the part's rows and columns are those of the product.
            unsafe { few::multiply(left, right, keep, scale, out) };
        });
    }
    let step = block_sizes::<T>(kernels, left.rows, right.columns, left.columns);
    in_threads([kernels.rows, kernels.columns], left, right, out, &|left, right, out| {
        // SAFETY: the part's rows and columns are those of the product.
        unsafe { part(kernels, &step, left, right, keep, scale, out) };
    });
}

/// Multiplications that take as long as packing an element: what splitting one operand's side costs, since each part packs all of
/// the other.
pub(in crate::cpu) const PACKED: usize = 16;

/// Calls `of_part` with the whole product, or with a part of its rows and columns in each thread if it is large. Parts are
/// multiples of a tile, of so many rows and columns.
pub(super) fn in_threads<T: Copy + Sync>(
    tile: [usize; 2],
    left: Matrix<T>,
    right: Matrix<T>,
    out: MatrixMut<T>,
    of_part: &(dyn Fn(Matrix<T>, Matrix<T>, MatrixMut<T>) + Sync),
) {
    let (rows, columns, inner) = (left.rows, right.columns, left.columns);
    let threads = parallel::num_threads();
    if threads == 1 || rows.saturating_mul(columns).saturating_mul(inner) < SHARED {
        return of_part(left, right, out);
    }
    let [of_rows, of_columns] = part_sizes(threads, tile, [rows, columns]);
    let (down, across) = (rows.div_ceil(of_rows), columns.div_ceil(of_columns));
    let operands = Operands(left, right, out);
    parallel::run(threads, down * across, &|number| {
        let Operands(left, right, out) = operands.get();
        let (row, column) = (number / across * of_rows, number % across * of_columns);
        let left = Matrix { rows: of_rows.min(rows - row), ..left.at(row, 0) };
        let right = Matrix { columns: of_columns.min(columns - column), ..right.at(0, column) };
        of_part(left, right, out.at(row, column));
    });
}

/// The rows and columns of a thread's part: of all grids of so many parts or fewer the one whose parts take the shortest time.
fn part_sizes(threads: usize, tile: [usize; 2], sides: [usize; 2]) -> [usize; 2] {
    let part =
        |side: usize, count: usize| sides[side].div_ceil(count).next_multiple_of(tile[side]).min(sides[side]);
    let grids = (1..=threads).map(|down| [part(0, down), part(1, threads / down)]);
    let time = |&[rows, columns]: &[usize; 2]| rows * columns + PACKED * (rows + columns);
    grids.min_by_key(time).unwrap_or(sides)
}

/// The matrices of a product for several threads.
struct Operands<T>(Matrix<T>, Matrix<T>, MatrixMut<T>);

impl<T: Copy> Operands<T> {
    fn get(&self) -> Operands<T> {
        Operands(self.0, self.1, self.2)
    }
}

// SAFETY: threads write different parts of the result.
unsafe impl<T: Sync> Sync for Operands<T> {}

/// The loops over columns, the inner dimension and rows.
///
/// # Safety
/// As [`blocks`].
unsafe fn part<T: Blocked>(
    kernels: &Kernels<T>,
    step: &KernelParams,
    left: Matrix<T>,
    right: Matrix<T>,
    keep: Option<T>,
    scale: T,
    out: MatrixMut<T>,
) {
    let (rows, columns, inner) = (left.rows, right.columns, left.columns);
    let packs_right = rows > kernels.rows * if right.row_stride.abs() == 1 { MANY_BLOCKS } else { 2 };
    let packs_left = left.row_stride != 1
        || !rows.is_multiple_of(kernels.lanes)
        || columns.min(step.nc) > FEW_BLOCKS * kernels.columns;
    let panel = [step.kc * kernels.rows, step.kc * kernels.columns];
    let room = |used: bool, panel: usize, lines: usize, width: usize| {
        Scratch::<T>::with_capacity(if used { panel * lines.div_ceil(width) } else { 0 })
    };
    let mut packed_left = room(packs_left, panel[0], rows.min(step.mc), kernels.rows);
    let mut packed_right = room(packs_right, panel[1], columns.min(step.nc), kernels.columns);
    let (packed_left, packed_right) = (packed_left.as_mut_ptr(), packed_right.as_mut_ptr());
    for column in (0..columns).step_by(step.nc) {
        let columns = step.nc.min(columns - column);
        let mut kept = keep;
        for depth in (0..inner).step_by(step.kc) {
            let inner = step.kc.min(inner - depth);
            let mut right = right.at(depth, column);
            if packs_right {
                // SAFETY: a block of the right operand, which the caller vouches for, and room for every panel.
                unsafe {
                    kernels.pack_columns(Matrix { rows: inner, columns, ..right }, packed_right, panel[1])
                };
                right = Matrix {
                    data: packed_right,
                    row_stride: kernels.columns as i64,
                    column_stride: 1,
                    ..right
                };
            }
            for row in (0..rows).step_by(step.mc) {
                let rows = step.mc.min(rows - row);
                let mut left = left.at(row, depth);
                if packs_left {
                    // SAFETY: a block of the left operand, which the caller vouches for, and room for every panel.
                    unsafe {
                        kernels.pack_rows(Matrix { rows, columns: inner, ..left }, packed_left, panel[0])
                    };
                    left = Matrix {
                        data: packed_left,
                        row_stride: 1,
                        column_stride: kernels.rows as i64,
                        ..left
                    };
                }
                let block = Block { kernels, left, right, packed: [packs_left, packs_right], panel, inner };
                // SAFETY: the operands have so many rows and columns from here on, and so has the result.
                unsafe { block.compute(rows, columns, kept, scale, out.at(row, column)) };
            }
            kept = Some(T::ONE);
        }
    }
}

/// Block sizes: how much of the inner dimension, of rows and of columns is worked on together.
fn block_sizes<T>(kernels: &Kernels<T>, rows: usize, columns: usize, inner: usize) -> KernelParams {
    // Choosing blocks for the caches takes longer than a small product.
    if rows <= 64 && columns <= 64 {
        return KernelParams { kc: inner.min(512), mc: rows.next_multiple_of(kernels.rows), nc: columns };
    }
    let mut step = kernel_params(rows, columns, inner, kernels.rows, kernels.columns, size_of::<T>());
    if step.nc == 0 {
        // The processor has no third cache.
        step.nc = 128 * kernels.columns;
    }
    step
}

/// Operands that fit the caches.
pub(super) struct Block<'a, T: 'static> {
    pub kernels: &'a Kernels<T>,
    pub left: Matrix<T>,
    pub right: Matrix<T>,
    /// Whether left and right are packed into panels, and how many elements a panel has.
    pub packed: [bool; 2],
    pub panel: [usize; 2],
    pub inner: usize,
}

impl<T: Arithmetic> Block<'_, T> {
    /// Computes the block's part of the result, a few registers at a time.
    ///
    /// # Safety
    /// The operands have so many rows and columns, packed ones in whole panels, and so has the result.
    pub unsafe fn compute(&self, rows: usize, columns: usize, keep: Option<T>, scale: T, out: MatrixMut<T>) {
        let Block { kernels, left, right, packed, panel, inner } = self;
        let (kept, status) = match keep {
            None => (T::ZERO, 0),
            Some(kept) if kept.equal(T::ONE) => (kept, 1),
            Some(kept) => (kept, 2),
        };
        for column in (0..columns).step_by(kernels.columns) {
            let right_data = match packed[1] {
                true => right.data.wrapping_add(column / kernels.columns * panel[1]),
                false => right.at(0, column).data,
            };
            let width = kernels.columns.min(columns - column);
            for row in (0..rows).step_by(kernels.rows) {
                let left_data = match packed[0] {
                    true => left.data.wrapping_add(row / kernels.rows * panel[0]),
                    false => left.at(row, 0).data,
                };
                let height = kernels.rows.min(rows - row);
                let number = (height.div_ceil(kernels.lanes) - 1) * kernels.columns + width - 1;
                let target = out.at(row, column);
                // SAFETY: the caller's promise; whole registers are read of the left operand, which packing filled
                // up with zeros, or which has whole registers of rows.
                unsafe {
                    (kernels.table[number])(
                        height,
                        width,
                        *inner,
                        target.data,
                        left_data,
                        right_data,
                        target.column_stride as isize,
                        target.row_stride as isize,
                        left.column_stride as isize,
                        right.row_stride as isize,
                        right.column_stride as isize,
                        kept,
                        scale,
                        status,
                        false,
                        false,
                        false,
                        std::ptr::null(),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
