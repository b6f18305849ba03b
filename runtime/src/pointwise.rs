//! Running a function over the elements of tensors that broadcast together.
//!
//! The plan (which dimensions to walk, in which order, merged where possible) is the same code for
//! every operator; only the innermost loop is compiled for each function and element type, once: elements that do not
//! lie one after the other are copied to where they do (`blocks`).
//!
//! A long loop runs in several threads, so its function has no access to the call, whose views are for one:
//!
//! ```compile_fail,E0277
//! use opsmith_runtime::{op::KernelCall, pointwise::map1};
//!
//! fn a_view_of_what_the_loop_writes(call: &KernelCall<'_>) {
//!     let _ = map1(call, [0], |x: f32| call.view_mut::<f32>(0).numel() as f32 + x);
//! }
//! ```

mod blocks;
mod slots;

use std::ops::Range;

use opsmith_core::DType;

use crate::arith::{check_zero_division, clear_zero_division};
use crate::axes::{Axes, Axis, Tiles, in_memory_order};
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::same_sizes;
use crate::op::KernelCall;
use crate::parallel::{self, CHUNK, Shared};
use crate::simd;
use crate::tensor::Tensor;
use blocks::Blocks;
pub(crate) use blocks::{Loop, map_any};

/// Most operands a loop can have, output included.
pub const MAX_OPERANDS: usize = 8;

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
    /// Number of rows: one, unless elements of an operand that are neighbours are of different rows.
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
            body(Rows { first, count: 1, steps: &[0; MAX_OPERANDS] });
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
            body(Rows { first, count: tile.rows.size as usize, steps: &steps });
        });
    });
}

/// How rows are visited.
pub(crate) enum Visit<'a> {
    /// One after the other.
    InOrder(&'a mut dyn FnMut(Rows<'_>)),
    /// In several threads if it takes long; no two rows have an element of the first operand.
    InThreads(&'a (dyn Fn(Rows<'_>) + Sync)),
}

/// Calls a function with the rows of a range, from these addresses.
type RowsOf<'a> = &'a (dyn Fn(Range<usize>, [*mut u8; MAX_OPERANDS], &mut dyn FnMut(Rows<'_>)) + Sync);

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

/// Whether a tensor of these sizes broadcasts to others.
#[inline]
fn broadcasts(sizes: &[i64], to: &[i64]) -> bool {
    let Some(missing) = to.len().checked_sub(sizes.len()) else { return false };
    std::iter::zip(sizes, &to[missing..]).all(|(&size, &to)| size == to || size == 1)
}

pub(crate) fn refuse_other_shape(index: usize, input: &Tensor, out: &Tensor) -> Result<()> {
    if broadcasts(input.shape(), out.shape()) {
        return Ok(());
    }
    Err(Error::shape(format!(
        "input {index} of a pointwise loop has the shape {}, which does not broadcast to that of the output, {}",
        ShapeText(input.shape()),
        ShapeText(out.shape())
    ))
    .with_help("inference gives the output the shape that all inputs broadcast to"))
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

/// The number of elements if all operands have them in the same order in memory, one after the other, which needs
/// no plan; `alike` says that they have one shape.
#[inline]
fn natural_length<const N: usize>(operands: &[&Tensor; N], alike: bool) -> Option<usize> {
    let (sizes, numel) = (operands[0].shape(), operands[0].numel());
    if alike {
        let contiguous = operands.iter().fold(true, |all, tensor| all & tensor.is_contiguous());
        return contiguous.then_some(numel as usize);
    }
    let natural = |tensor: &&Tensor| {
        tensor.is_contiguous()
            && (same_sizes(tensor.shape(), sizes)
                || tensor.numel() == numel && broadcasts(tensor.shape(), sizes))
    };
    (operands[0].is_contiguous() && operands[1..].iter().all(natural)).then_some(numel as usize)
}

/// The types of a loop's operands, output first.
struct Operands<const N: usize> {
    dtypes: [DType; N],
    /// Whether the loop may divide integers.
    integers: bool,
}

impl<const N: usize> Operands<N> {
    const fn of(dtypes: [DType; N]) -> Operands<N> {
        let (mut integers, mut at) = (false, 0);
        while at < N {
            integers |= dtypes[at].is_int();
            at += 1;
        }
        Operands { dtypes, integers }
    }
}

/// Runs a loop over every element of the output. Apart from the loop, so that it is compiled once for each number of
/// operands, and here: a crate that uses this one inlines none of the functions below by itself.
#[inline(always)]
fn run<const N: usize>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    types: &Operands<N>,
    body: Loop<'_>,
) -> Result<()> {
    // Floats have quotients by zero; of integers, an expression cannot say that there is none.
    if types.integers {
        clear_zero_division();
    }
    let operands = call.operands_of_any_dtype(inputs)?;
    let converted = blocks::are_converted(&operands, &types.dtypes)?;
    let writing = call.writing();
    match natural_length(&operands, call.has_one_shape()) {
        Some(length) if !converted => {
            let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
            for (pointer, tensor) in pointers.iter_mut().zip(operands) {
                *pointer = tensor.data_ptr();
            }
            // SAFETY: each operand has as many elements of the loop's types, and they have no other writer while the call
            // lives; no view has those of the output, nor gets them while the loop runs. An input that shares memory with
            // the output is the same elements.
            unsafe {
                if length > CHUNK && !types.integers {
                    run_in_threads(&pointers, &types.dtypes, length, body);
                } else {
                    run_natural(&pointers, &types.dtypes, length, body);
                }
            }
        }
        _ => {
            let blocks = Blocks::new(&operands, types.dtypes);
            // SAFETY: the plan keeps all rows inside their tensors, and the call is the only one that uses their elements:
            // operands that share memory with the output are the same elements.
            let run = |rows: Rows<'_>| unsafe { blocks.run(&rows, body) };
            if types.integers {
                for_each_rows(&operands, blocks.area(), Visit::InOrder(&mut { run }))?;
            } else {
                for_each_rows(&operands, blocks.area(), Visit::InThreads(&run))?;
            }
        }
    }
    drop(writing);
    // Only a `bool` can be left without a value.
    if types.dtypes[0] == DType::Bool {
        call.note_filled();
    }
    if types.integers { check_zero_division() } else { Ok(()) }
}

/// Runs a loop over elements one after the other.
///
/// # Safety
/// As [`Loop::run`], but that an input may be the elements of the output.
#[inline]
unsafe fn run_natural<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if pointers[1..N].contains(&pointers[0]) {
            run_in_place(pointers, dtypes, length, body);
        } else {
            body.run(pointers, length);
        }
    }
}

/// As [`run_natural`], of an output that is an input, too.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
unsafe fn run_in_place<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let mut strides = [0; MAX_OPERANDS];
    for (stride, dtype) in strides.iter_mut().zip(dtypes) {
        *stride = dtype.size() as isize;
    }
    // SAFETY: the caller's promise.
    unsafe { Blocks::of(*dtypes, *dtypes).run_row(&Row { pointers, strides: &strides, length }, body) };
}

/// As [`run_natural`], in several threads if the loop takes long.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
unsafe fn run_in_threads<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let start = pointers.map(Shared);
    parallel::for_each_range(length, CHUNK, |range| {
        let mut pointers = addresses(&start);
        for (pointer, dtype) in pointers.iter_mut().zip(dtypes) {
            *pointer = pointer.wrapping_add(range.start * dtype.size());
        }
        // SAFETY: the range lies in the caller's, and no other thread has one of its elements.
        unsafe { run_natural(&pointers, dtypes, range.len(), body) }
    });
}

fn addresses(shared: &[Shared<u8>; MAX_OPERANDS]) -> [*mut u8; MAX_OPERANDS] {
    std::array::from_fn(|operand| shared[operand].at(0))
}

macro_rules! map {
    ($(#[$doc:meta])* $name:ident, $count:literal, $($T:ident $input:ident $slot:literal),*) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// If an input is no tensor of its type or does not broadcast to the first output, or that is not of the
        /// type of the results or was handed out as a view. For a type that is `f32`, tensors of 16-bit floats are
        /// converted as the loop goes.
        #[inline]
        pub fn $name<R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Sync>(
            call: &KernelCall<'_>,
            inputs: [usize; $count],
            function: F,
        ) -> Result<()> {
            let types = const { &Operands::of([R::DTYPE, $($T::DTYPE),*]) };
            #[inline(never)]
            fn run_loop(
                call: &KernelCall<'_>,
                inputs: &[usize; $count],
                types: &Operands<{ $count + 1 }>,
                body: Loop<'_>,
            ) -> Result<()> {
                run(call, inputs, types, body)
            }
            /// # Safety
            /// As [`Loop::run`].
            unsafe fn natural_row<R: Element, $($T: Element,)* F: Fn($($T),*) -> R>(
                function: &F,
                pointers: &[*mut u8; MAX_OPERANDS],
                length: usize,
            ) {
                simd::widest_loop::<(R, $($T,)*)>(
                    #[inline(always)]
                    || {
                        // SAFETY: as many elements lie there, as the caller promises, those of the first alone for writes.
                        unsafe {
                            let out = std::slice::from_raw_parts_mut(pointers[0].cast::<R>(), length);
                            elements(
                                function,
                                out,
                                $(std::slice::from_raw_parts(pointers[$slot].cast::<$T>(), length)),*
                            );
                        }
                    },
                );
            }
            /// The function and the inputs are references, which the loop's writes cannot change: else each element would
            /// wait for the one before, and none be computed beside another.
            ///
            /// # Safety
            /// All slices have one length.
            #[inline(always)]
            unsafe fn elements<R: Element, $($T: Element,)* F: Fn($($T),*) -> R>(
                function: &F,
                out: &mut [R],
                $($input: &[$T]),*
            ) {
                for position in 0..out.len() {
                    // SAFETY: the position is one of each slice.
                    unsafe { *out.get_unchecked_mut(position) = function($(*$input.get_unchecked(position)),*) }
                }
            }
            // SAFETY: the loop of this function, over elements of these types.
            let body = unsafe { Loop::new(&function, natural_row::<R, $($T,)* F>) };
            run_loop(call, &inputs, types, body)
        }
    };
}

const _: () = assert!(
    opsmith_core::MAX_POINTWISE_TENSORS == 5 && opsmith_core::MAX_POINTWISE_TENSORS < MAX_OPERANDS,
    "the loops below are those of none to so many tensors"
);

map! {
    /// Fills the output with a value a call.
    map0, 0,
}
map! {
    /// Applies a function to each element of one tensor.
    map1, 1, A a 1
}
map! {
    /// Applies a function to the elements of two tensors.
    map2, 2, A a 1, B b 2
}
map! {
    /// Applies a function to the elements of three tensors.
    map3, 3, A a 1, B b 2, C c 3
}
map! {
    /// Applies a function to the elements of four tensors.
    map4, 4, A a 1, B b 2, C c 3, D d 4
}
map! {
    /// Applies a function to the elements of five tensors.
    map5, 5, A a 1, B b 2, C c 3, D d 4, E e 5
}
