//! Running a function over the elements of tensors that broadcast together.
//!
//! The plan (which dimensions to walk, in which order, merged where possible) is the same code for
//! every operator; only the innermost loop is compiled for each function and element type, once: elements that do not
//! lie one after the other are copied to where they do (`blocks`).
//!
//! A long loop runs in several threads, so its function has no access to the call, whose views are for one:
//!
//! ```compile_fail,E0277
//! use opsmith_runtime::{generated::pointwise::map1, op::KernelCall};
//!
//! fn a_view_of_what_the_loop_writes(call: &KernelCall<'_>) {
//!     let _ = map1(call, [0], |x: f32| call.view_mut::<f32>(0).numel() as f32 + x);
//! }
//! ```

mod blocks;
mod rows;
mod slots;

use opsmith_core::DType;

use crate::arith::{check_zero_division, clear_zero_division};
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{broadcasts, same_sizes};
use crate::moves::stream;
use crate::op::KernelCall;
use crate::parallel::{self, CHUNK, Shared};
use crate::simd;
use crate::tensor::Tensor;
use blocks::{BLOCK, Blocks};
pub(crate) use blocks::{Loop, map_any};
use rows::addresses;
pub use rows::{Row, Rows, for_each_row};
pub(crate) use rows::{Visit, for_each_rows};
use slots::{Block, copy_block};

/// Most operands a loop can have, output included.
pub const MAX_OPERANDS: usize = 8;

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

/// The number of elements, if all operands have those of the loop's types in the same order in memory, one after the other,
/// which needs no plan; their addresses are written to `pointers`. `alike` says that they have one shape.
#[inline(always)]
fn natural<const N: usize>(
    operands: &[&Tensor; N],
    dtypes: &[DType; N],
    alike: bool,
    pointers: &mut [*mut u8; MAX_OPERANDS],
) -> Option<usize> {
    let out = operands[0].run()?;
    for index in 0..N {
        let tensor = operands[index];
        if tensor.dtype() != dtypes[index] {
            return None;
        }
        let run = if index == 0 { out } else { tensor.run()? };
        pointers[index] = run.start;
        if !(alike || index == 0 || run.numel == out.numel && follows(run.sizes, out.sizes)) {
            return None;
        }
    }
    Some(out.numel as usize)
}

/// Whether as many elements of one shape are those of another in the same order.
#[inline(always)]
fn follows(sizes: &[i64], of: &[i64]) -> bool {
    // With as many elements, a shape of one dimension is the other's.
    of.len() == 1 && sizes.len() <= 1 || same_sizes(sizes, of) || broadcasts(sizes, of)
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
    let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
    if let Some(length) = natural(&operands, &types.dtypes, call.has_one_shape(), &mut pointers) {
        // SAFETY: each operand has as many elements of the loop's types, and they have no other writer while the call
        // lives; no view has those of the output, nor gets them while the loop runs, whose function has no access to the
        // call. An input that shares memory with the output is the same elements.
        unsafe {
            if length > CHUNK && !types.integers {
                run_in_threads(&pointers, &types.dtypes, length, body);
            } else {
                run_natural(&pointers, &types.dtypes, length, body);
            }
        }
    } else {
        blocks::check_converted(&operands, &types.dtypes)?;
        let blocks = Blocks::new(&operands, types.dtypes);
        // SAFETY: the plan keeps all rows inside their tensors, and the call is the only one that uses their elements:
        // operands that share memory with the output are the same elements.
        let run = |rows: &Rows<'_>| unsafe { blocks.run(rows, body) };
        if types.integers {
            for_each_rows(&operands, blocks.area(), Visit::InOrder(&mut { run }))?;
        } else {
            for_each_rows(&operands, blocks.area(), Visit::InThreads(&run))?;
        }
    }
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

/// As [`run_natural`], of an output that is an input, too: the loop reads a copy, block by block.
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
    let mut block = Block::<BLOCK>::new();
    let size = dtypes[0].size();
    let mut moved = *pointers;
    let mut left = length;
    while left > 0 {
        let (count, target) = (left.min(BLOCK / size), moved[0]);
        let mut read = moved;
        for pointer in read[1..N].iter_mut().filter(|pointer| **pointer == target) {
            *pointer = block.pointer();
        }
        // SAFETY: as many elements lie there, and the block has room for them. By the caller's promise the loop may run;
        // inputs and output are disjoint.
        unsafe {
            copy_block(target, block.pointer(), count * size);
            body.run(&read, count);
        }
        left -= count;
        for (pointer, dtype) in moved.iter_mut().zip(dtypes) {
            *pointer = pointer.wrapping_add(count * dtype.size());
        }
    }
}

/// As [`run_natural`], of an output that is larger than the caches: the loop writes a block, and so reads all operands from
/// memory at once. An output that is no input goes to memory past the caches.
///
/// # Safety
/// As [`run_natural`].
#[inline(never)]
unsafe fn run_by_blocks<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    dtypes: &[DType; N],
    length: usize,
    body: Loop<'_>,
) {
    let streams = !pointers[1..N].contains(&pointers[0]);
    let mut block = Block::<BLOCK>::new();
    let size = dtypes[0].size();
    let mut moved = *pointers;
    let mut left = length;
    while left > 0 {
        let (count, target) = (left.min(BLOCK / size), moved[0]);
        moved[0] = block.pointer();
        // SAFETY: the caller's promise; the block has room for the elements, and is no operand.
        unsafe {
            body.run(&moved, count);
            if streams {
                stream::store(block.pointer(), target, count * size);
            } else {
                copy_block(block.pointer(), target, count * size);
            }
        }
        left -= count;
        moved[0] = target;
        for (pointer, dtype) in moved.iter_mut().zip(dtypes) {
            *pointer = pointer.wrapping_add(count * dtype.size());
        }
    }
    if streams {
        stream::finish();
    }
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
    let is_large = stream::is_streamed(length * dtypes[0].size());
    parallel::for_each_range(length, CHUNK, |range| {
        let mut pointers = addresses(&start);
        for (pointer, dtype) in pointers.iter_mut().zip(dtypes) {
            *pointer = pointer.wrapping_add(range.start * dtype.size());
        }
        // SAFETY: the range lies in the caller's, and no other thread has one of its elements.
        unsafe {
            if is_large {
                run_by_blocks(&pointers, dtypes, range.len(), body);
            } else {
                run_natural(&pointers, dtypes, range.len(), body);
            }
        }
    });
}

/// Runs a loop that is not compiled for its element types over all elements: of the first output, then of these inputs, all in
/// the given dtypes. The loop gets the first element of each operand and a number of elements, which lie one after the other.
///
/// # Errors
/// As [`map1`].
///
/// # Panics
/// If there are more than [`opsmith_core::MAX_POINTWISE_TENSORS`] inputs, or not one dtype for each operand.
///
/// # Safety
/// The loop reads as many elements of each input in its dtype, and writes as many valid ones of the output; nothing else.
pub unsafe fn map_untyped<F: Fn(&[*mut u8; MAX_OPERANDS], usize) + Sync>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    dtypes: &[DType],
    function: &F,
) -> Result<()> {
    unsafe fn run_function<F: Fn(&[*mut u8; MAX_OPERANDS], usize)>(
        function: &F,
        pointers: &[*mut u8; MAX_OPERANDS],
        length: usize,
    ) {
        function(pointers, length);
    }
    fn operands<const N: usize>(dtypes: &[DType]) -> Operands<N> {
        Operands::of(dtypes.try_into().expect("a dtype for each operand"))
    }
    // SAFETY: the caller's promise.
    let body = unsafe { Loop::new(function, run_function::<F>) };
    match inputs.len() {
        0 => run::<1>(call, inputs, &operands(dtypes), body),
        1 => run::<2>(call, inputs, &operands(dtypes), body),
        2 => run::<3>(call, inputs, &operands(dtypes), body),
        3 => run::<4>(call, inputs, &operands(dtypes), body),
        4 => run::<5>(call, inputs, &operands(dtypes), body),
        5 => run::<6>(call, inputs, &operands(dtypes), body),
        count => panic!("{count} inputs of a loop"),
    }
}

macro_rules! map {
    ($(#[$doc:meta])* $name:ident, $count:literal, $($T:ident $input:ident $slot:literal),*) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// If an input is no tensor of its type or does not broadcast to the first output, or that is not of the
        /// type of the results or was handed out as a view. For a type that is `f32`, tensors of 16-bit floats are
        /// converted as the loop goes.
        ///
        /// The function is copied to the loop, and so are numbers that it holds.
        #[inline]
        pub fn $name<R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy + Sync>(
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
            unsafe fn natural_row<R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
                function: &F,
                pointers: &[*mut u8; MAX_OPERANDS],
                length: usize,
            ) {
                simd::widest_loop::<(R, $($T,)*)>(
                    #[inline(always)]
                    || {
                        // A copy, whose numbers are read before the loop also where only some elements need them.
                        let function = *function;
                        // SAFETY: as many elements lie there, as the caller promises, those of the first alone for writes.
                        unsafe {
                            let out = std::slice::from_raw_parts_mut(pointers[0].cast::<R>(), length);
                            elements(
                                &function,
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
