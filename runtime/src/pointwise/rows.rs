//! The plan of a loop: rows that together cover all elements of operands that broadcast together.
//!
//! In: tensors, the first with the shape of all. Out: calls with addresses, steps and a length, one after the other or in several
//! threads. Must know no operator.

use std::ops::Range;

use super::{MAX_OPERANDS, refuse_other_shape};
use crate::axes::{Axes, Axis, Tiles, in_memory_order};
use crate::error::{Error, Result};
use crate::parallel::{self, CHUNK, Shared};
use crate::tensor::Tensor;

/// One stretch of the innermost loop: an address and a byte stride an operand, output first.
pub struct Row<'a> {
    /// Address of the first element of each operand.
    pub pointers: &'a [*mut u8; MAX_OPERANDS],
    /// Bytes from one element to the next of each operand.
    pub strides: &'a [isize; MAX_OPERANDS],
    /// Number of elements.
    pub length: usize,
}

/// Rows of one length, so many bytes from one to the next of each operand.
pub struct Rows<'a> {
    /// The first of them.
    pub first: Row<'a>,
    /// Number of rows: several if they are short, or if elements of an operand that are neighbours are of different rows.
    pub count: usize,
    /// Bytes from a row to the next of each operand.
    pub steps: &'a [isize; MAX_OPERANDS],
}

impl Rows<'_> {
    /// Calls `body` for each row.
    #[inline]
    pub fn for_each(&self, mut body: impl FnMut(Row<'_>)) {
        let mut pointers = *self.first.pointers;
        for row in 0..self.count as isize {
            for (pointer, (first, step)) in
                pointers.iter_mut().zip(self.first.pointers.iter().zip(self.steps))
            {
                *pointer = first.wrapping_offset(row * step);
            }
            body(Row { pointers: &pointers, ..self.first });
        }
    }

    /// Moves the addresses of N operands from a row to the next.
    #[inline(always)]
    pub(super) fn advance<const N: usize>(&self, pointers: &mut [*mut u8; MAX_OPERANDS]) {
        for (pointer, step) in pointers.iter_mut().zip(self.steps).take(N) {
            *pointer = pointer.wrapping_offset(*step);
        }
    }
}

/// Calls `body` for rows that together cover every element of the first operand, the others
/// broadcast to its shape.
///
/// # Errors
/// If there is no operand, or more than [`MAX_OPERANDS`], one does not broadcast to the shape of the first, or the host
/// does not have its elements.
pub fn for_each_row(operands: &[&Tensor], body: &mut dyn FnMut(Row<'_>)) -> Result<()> {
    for_each_rows(operands, 1, Visit::InOrder(&mut |rows| rows.for_each(&mut *body)))
}

/// As [`for_each_row`], with rows in tiles of at most `area` elements, if operands lie in different orders: as many as stay
/// in a cache.
///
/// # Errors
/// As [`for_each_row`].
pub(crate) fn for_each_rows(operands: &[&Tensor], area: usize, visit: Visit<'_>) -> Result<()> {
    let count = operands.len();
    let (Some((target, others)), true) = (operands.split_first(), count <= MAX_OPERANDS) else {
        return Err(Error::argument(format!(
            "a pointwise loop has 1 to {MAX_OPERANDS} operands, not {count}"
        )));
    };
    for (index, other) in others.iter().enumerate() {
        refuse_other_shape(index, other, target)?;
    }
    operands.iter().try_for_each(|tensor| tensor.check_on_host())?;
    let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
    for (pointer, tensor) in pointers.iter_mut().zip(operands) {
        *pointer = tensor.data_ptr();
    }
    let numel = target.numel();
    if numel == 0 {
        return Ok(());
    }
    let dense = |tensor: &Tensor| tensor.is_contiguous() && tensor.numel() == numel;
    if dense(target) && others.iter().all(|tensor| dense(tensor) || shows_one_element(tensor)) {
        let mut strides = [0; MAX_OPERANDS];
        for (stride, tensor) in strides.iter_mut().zip(operands).filter(|(_, tensor)| dense(tensor)) {
            *stride = tensor.dtype().size() as isize;
        }
        let numel = numel as usize;
        visit.ranges(numel, CHUNK, pointers, &|range, mut pointers, body| {
            for (pointer, stride) in pointers.iter_mut().zip(strides) {
                *pointer = pointer.wrapping_offset(range.start as isize * stride);
            }
            let first = Row { pointers: &pointers, strides: &strides, length: range.len() };
            body(&Rows { first, count: 1, steps: &[0; MAX_OPERANDS] });
        });
        return Ok(());
    }
    // An odometer of no more offsets than there are operands.
    match count {
        1 | 2 => walk::<2>(operands, area, pointers, visit),
        3 => walk::<3>(operands, area, pointers, visit),
        4 => walk::<4>(operands, area, pointers, visit),
        5 | 6 => walk::<6>(operands, area, pointers, visit),
        _ => walk::<MAX_OPERANDS>(operands, area, pointers, visit),
    }
    Ok(())
}

/// Calls `body` for the rows of at most N operands that begin at these addresses.
fn walk<const N: usize>(operands: &[&Tensor], area: usize, start: [*mut u8; MAX_OPERANDS], visit: Visit<'_>) {
    let sizes = std::array::from_fn(|index| operands.get(index).map_or(0, |tensor| tensor.dtype().size()));
    let tiles = Tiles::new(in_memory_order(byte_axes::<N>(operands)), sizes, area);
    let count = tiles.count();
    let elements = operands[0].numel() as usize;
    let chunk = CHUNK.div_ceil((elements / count).max(1));
    visit.ranges(count, chunk, start, &|range, start, body| {
        let (mut pointers, mut strides, mut steps) = (start, [0; MAX_OPERANDS], [0; MAX_OPERANDS]);
        tiles.for_each(range, |tile| {
            for operand in 0..N {
                pointers[operand] = start[operand].wrapping_offset(tile.start[operand] as isize);
                strides[operand] = tile.row.steps[operand] as isize;
                steps[operand] = tile.rows.steps[operand] as isize;
            }
            let first = Row { pointers: &pointers, strides: &strides, length: tile.row.size as usize };
            body(&Rows { first, count: tile.rows.size as usize, steps: &steps });
        });
    });
}

/// How rows are visited.
pub(crate) enum Visit<'a> {
    /// One after the other.
    InOrder(&'a mut dyn FnMut(&Rows<'_>)),
    /// In several threads if it takes long; no two rows have an element of the first operand.
    InThreads(&'a (dyn Fn(&Rows<'_>) + Sync)),
}

/// Calls a function with the rows of a range, from these addresses.
type RowsOf<'a> = &'a (dyn Fn(Range<usize>, [*mut u8; MAX_OPERANDS], &mut dyn FnMut(&Rows<'_>)) + Sync);

impl Visit<'_> {
    /// Visits the rows of `0..count`, in ranges of at least `chunk`.
    fn ranges(self, count: usize, chunk: usize, start: [*mut u8; MAX_OPERANDS], rows_of: RowsOf<'_>) {
        match self {
            Visit::InOrder(body) => rows_of(0..count, start, body),
            Visit::InThreads(body) => {
                let start = start.map(Shared);
                parallel::for_each_range(count, chunk, |range| {
                    rows_of(range, addresses(&start), &mut |rows| body(rows));
                });
            }
        }
    }
}

/// Whether every index leads to one element, as in a number that was expanded.
fn shows_one_element(tensor: &Tensor) -> bool {
    std::iter::zip(tensor.shape(), tensor.strides()).all(|(&size, &stride)| size == 1 || stride == 0)
}

/// The dimensions to walk, with steps in bytes, 0 where an operand is broadcast.
fn byte_axes<const N: usize>(operands: &[&Tensor]) -> Axes<N> {
    let sizes = operands[0].shape();
    let dims = (0..sizes.len()).filter(|&dim| sizes[dim] != 1);
    dims.map(|dim| {
        let mut steps = [0; N];
        for (step, tensor) in steps.iter_mut().zip(operands) {
            let missing = sizes.len() - tensor.dim();
            if dim >= missing && tensor.shape()[dim - missing] != 1 {
                *step = tensor.strides()[dim - missing] * tensor.dtype().size() as i64;
            }
        }
        Axis { size: sizes[dim], steps }
    })
    .collect()
}

/// The addresses of each operand.
pub(super) fn addresses(shared: &[Shared<u8>; MAX_OPERANDS]) -> [*mut u8; MAX_OPERANDS] {
    std::array::from_fn(|operand| shared[operand].at(0))
}
