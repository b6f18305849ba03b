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
mod loops;
mod natural;
mod rows;
mod slots;

use opsmith_core::DType;

use crate::arith::{ZeroDivisions, check_zero_division, clear_zero_division};
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::layout::broadcasts;
use crate::op::KernelCall;
use crate::parallel::CHUNK;
use crate::simd;
use crate::tensor::Tensor;
use blocks::Blocks;
pub(crate) use blocks::map_any;
pub(crate) use loops::{Loop, Versions};
use loops::{RunOf, Special};
use natural::{is_natural, natural, run_in_threads, run_natural};
pub use rows::{Row, Rows, for_each_row};
pub(crate) use rows::{Visit, for_each_rows};

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

/// The types of a loop's operands, output first.
struct Operands<const N: usize> {
    dtypes: [DType; N],
    /// Whether the loop may divide integers.
    integers: bool,
    /// Whether there is nothing to check after the loop: it divides no integers, and results are not `bool`.
    plain: bool,
}

impl<const N: usize> Operands<N> {
    const fn of(dtypes: [DType; N]) -> Operands<N> {
        let (mut integers, mut at) = (false, 0);
        while at < N {
            integers |= dtypes[at].is_int();
            at += 1;
        }
        let plain = !integers && N > 0 && !matches!(dtypes[0], DType::Bool);
        Operands { dtypes, integers, plain }
    }
}

/// Runs a loop of [plain](Operands::plain) types over every element of the output. Apart from the loop, so that it is compiled
/// once for each number of operands, and here: a crate that uses this one inlines none of the functions below by itself.
#[inline(always)]
fn run_plain<const N: usize>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    types: &Operands<N>,
    body: Loop<'_>,
) -> Result<()> {
    let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
    if let Some(length) = natural(call, inputs, &types.dtypes, &mut pointers) {
        // SAFETY: the operands are those of the call, as `natural` found them.
        unsafe { run_together(&pointers, types, length, body) };
        return Ok(());
    }
    run_with_checks(call, inputs, types, body)
}

/// Runs a loop over every element of the output, of any types and layouts. Apart, so that most calls have none of its registers to
/// save.
#[inline(never)]
fn run_with_checks<const N: usize>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    types: &Operands<N>,
    body: Loop<'_>,
) -> Result<()> {
    // Floats have quotients by zero; of integers, an expression cannot say that there is none.
    if types.integers {
        clear_zero_division();
    }
    let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
    match natural(call, inputs, &types.dtypes, &mut pointers) {
        // SAFETY: the operands are those of the call, as `natural` found them.
        Some(length) => unsafe { run_together(&pointers, types, length, body) },
        None => run_apart(call, inputs, types, body)?,
    }
    // Only a `bool` can be left without a value.
    if types.dtypes[0] == DType::Bool {
        call.note_filled();
    }
    if types.integers { check_zero_division() } else { Ok(()) }
}

/// Runs a loop over operands of a call whose elements lie one after the other, all in the same order.
///
/// # Safety
/// At each pointer lie as many elements of the loop's types. They have no other writer while the call lives; no view has those
/// of the output, nor gets them while the loop runs, whose function has no access to the call. An input that shares memory
/// with the output is the same elements.
#[inline(always)]
unsafe fn run_together<const N: usize>(
    pointers: &[*mut u8; MAX_OPERANDS],
    types: &Operands<N>,
    length: usize,
    body: Loop<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if length > CHUNK {
            run_in_threads(pointers, &types.dtypes, length, body);
        } else {
            run_natural(pointers, &types.dtypes, length, body);
        }
    }
}

/// Runs a loop over elements that lie in any way.
#[inline(never)]
fn run_apart<const N: usize>(
    call: &KernelCall<'_>,
    inputs: &[usize],
    types: &Operands<N>,
    body: Loop<'_>,
) -> Result<()> {
    let operands = call.operands_of_any_dtype(inputs)?;
    let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
    if is_natural(&operands, &types.dtypes, &mut pointers) {
        // SAFETY: each operand has as many elements; the call is the only one that uses them.
        unsafe { run_together(&pointers, types, operands[0].numel() as usize, body) };
        return Ok(());
    }
    blocks::check_converted(&operands, &types.dtypes)?;
    let blocks = Blocks::new(&operands, types.dtypes);
    // SAFETY: the plan keeps all rows inside their tensors, and the call is the only one that uses their elements: operands
    // that share memory with the output are the same elements.
    let run = |rows: &Rows<'_>| unsafe { blocks.run(rows, body) };
    if !types.integers {
        return for_each_rows(&operands, blocks.area(), Visit::InThreads(&run));
    }
    let divisions = ZeroDivisions::default();
    let result =
        for_each_rows(&operands, blocks.area(), Visit::InThreads(&|rows| divisions.watch(|| run(rows))));
    divisions.raise();
    result
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
    let body = unsafe { Loop::new(function, const { &Versions::one(run_function::<F>) }) };
    match inputs.len() {
        0 => run_with_checks::<1>(call, inputs, &operands(dtypes), body),
        1 => run_with_checks::<2>(call, inputs, &operands(dtypes), body),
        2 => run_with_checks::<3>(call, inputs, &operands(dtypes), body),
        3 => run_with_checks::<4>(call, inputs, &operands(dtypes), body),
        4 => run_with_checks::<5>(call, inputs, &operands(dtypes), body),
        5 => run_with_checks::<6>(call, inputs, &operands(dtypes), body),
        count => panic!("{count} inputs of a loop"),
    }
}

/// In place of a repeated operand: the first input is the output.
const IN_PLACE: usize = MAX_OPERANDS;

/// A function `versions` with the versions of a loop for the processors that it is compiled for.
macro_rules! row_versions {
    ($row:ident, $count:literal, [$($T:ident)*]) => {
        /// # Safety
        /// As [`Loop::run`].
        unsafe fn oldest<const REPEATED: usize, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
            function: &F,
            pointers: &[*mut u8; MAX_OPERANDS],
            length: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $row::<REPEATED, R, $($T,)* F>(function, pointers, length) }
        }

        /// # Safety
        /// As [`Loop::run`], on a processor with these instructions.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<const REPEATED: usize, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
            function: &F,
            pointers: &[*mut u8; MAX_OPERANDS],
            length: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $row::<REPEATED, R, $($T,)* F>(function, pointers, length) }
        }

        /// # Safety
        /// As [`Loop::run`], on a processor with these instructions.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn avx512<const REPEATED: usize, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
            function: &F,
            pointers: &[*mut u8; MAX_OPERANDS],
            length: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { $row::<REPEATED, R, $($T,)* F>(function, pointers, length) }
        }

        /// The versions with this operand repeated; 0, which is the output, for none, and [`IN_PLACE`] with the first input as output.
        const fn versions_of<const REPEATED: usize, const LIGHT: bool, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
            special: Special,
        ) -> Versions {
            let oldest: RunOf<F> = oldest::<REPEATED, R, $($T,)* F>;
            match simd::versions_over::<(R, $($T,)*)>() {
                #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                3 => {
                    let avx2: RunOf<F> = avx2::<REPEATED, R, $($T,)* F>;
                    let avx512: RunOf<F> = avx512::<REPEATED, R, $($T,)* F>;
                    Versions::of([if LIGHT { avx2 } else { avx512 }, oldest, avx2, avx512], special)
                }
                #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
                2 => {
                    let avx2: RunOf<F> = avx2::<REPEATED, R, $($T,)* F>;
                    Versions::of([avx2, oldest, avx2, avx2], special)
                }
                _ => Versions::of([oldest; 4], special),
            }
        }

        const fn versions<const LIGHT: bool, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>() -> Versions {
            // Loops over most dtypes are those of few tensors, and others are bound by their function.
            let mut special = Special::NONE;
            if LIGHT && simd::versions_over::<(R, $($T,)*)>() >= 2 && matches!($count, 1 | 2) {
                let dtypes: &[DType] = &[R::DTYPE, $($T::DTYPE),*];
                if matches!(dtypes, [out, first, ..] if *out as u8 == *first as u8) {
                    special.in_place = Some(const { &versions_of::<IN_PLACE, LIGHT, R, $($T,)* F>(Special::NONE) });
                }
                if $count == 2 {
                    special.repeating = [
                        Some(const { &versions_of::<1, LIGHT, R, $($T,)* F>(Special::NONE) }),
                        Some(const { &versions_of::<2, LIGHT, R, $($T,)* F>(Special::NONE) }),
                    ];
                }
            }
            versions_of::<0, LIGHT, R, $($T,)* F>(special)
        }
    };
}

macro_rules! map {
    ($(#[$doc:meta])* $name:ident $light:ident $any:ident, $count:literal, $($T:ident $input:ident $slot:literal),*) => {
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
            $any::<false, R, $($T,)* F>(call, inputs, function)
        }

        #[doc = concat!("As [`", stringify!($name), "`], of a function of so few instructions that its loop waits for memory, where")]
        /// vectors of 64 bytes win nothing.
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($name), "`].")]
        #[inline]
        pub fn $light<R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy + Sync>(
            call: &KernelCall<'_>,
            inputs: [usize; $count],
            function: F,
        ) -> Result<()> {
            $any::<true, R, $($T,)* F>(call, inputs, function)
        }

        #[inline]
        fn $any<const LIGHT: bool, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy + Sync>(
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
                run_plain(call, inputs, types, body)
            }
            /// # Safety
            /// As [`Loop::run`].
            #[inline(always)]
            unsafe fn natural_row<const REPEATED: usize, R: Element, $($T: Element,)* F: Fn($($T),*) -> R + Copy>(
                function: &F,
                pointers: &[*mut u8; MAX_OPERANDS],
                length: usize,
            ) {
                // A copy, whose numbers are read before the loop also where only some elements need them.
                let function = *function;
                // SAFETY: as many elements lie there, as the caller promises, those of the first alone for writes.
                unsafe {
                    let out = std::slice::from_raw_parts_mut(pointers[0].cast::<R>(), length);
                    elements::<REPEATED, R, $($T,)* F>(
                        &function,
                        out,
                        $(std::slice::from_raw_parts(
                            pointers[$slot].cast::<$T>(),
                            match REPEATED {
                                $slot => 1,
                                IN_PLACE if $slot == 1 => 0,
                                _ => length,
                            },
                        )),*
                    );
                }
            }
            row_versions!(natural_row, $count, [$($T)*]);
            /// The function and the inputs are references, which the loop's writes cannot change: else each element would
            /// wait for the one before, and none be computed beside another.
            ///
            /// # Safety
            /// All slices have one length, but that of the repeated operand, which has one element, and that of the first input
            /// of a loop in place, which has none: its elements, of the output's type, are the output's.
            #[inline(always)]
            unsafe fn elements<const REPEATED: usize, R: Element, $($T: Element,)* F: Fn($($T),*) -> R>(
                function: &F,
                out: &mut [R],
                $($input: &[$T]),*
            ) {
                for position in 0..out.len() {
                    // SAFETY: the position is one of each slice.
                    unsafe {
                        *out.get_unchecked_mut(position) = function($(match REPEATED {
                            IN_PLACE if $slot == 1 => *out.as_ptr().cast::<$T>().add(position),
                            $slot => *$input.get_unchecked(0),
                            _ => *$input.get_unchecked(position),
                        }),*);
                    }
                }
            }
            // SAFETY: the loop of this function, over elements of these types.
            let body = unsafe { Loop::new(&function, const { &versions::<LIGHT, R, $($T,)* F>() }) };
            if const { Operands::of([R::DTYPE, $($T::DTYPE),*]).plain } {
                run_loop(call, &inputs, types, body)
            } else {
                run_with_checks(call, &inputs, types, body)
            }
        }
    };
}

const _: () = assert!(
    opsmith_core::MAX_POINTWISE_TENSORS == 5 && opsmith_core::MAX_POINTWISE_TENSORS < MAX_OPERANDS,
    "the loops below are those of none to so many tensors"
);

map! {
    /// Fills the output with a value a call.
    map0 map0_light map0_any, 0,
}
map! {
    /// Applies a function to each element of one tensor.
    map1 map1_light map1_any, 1, A a 1
}
map! {
    /// Applies a function to the elements of two tensors.
    map2 map2_light map2_any, 2, A a 1, B b 2
}
map! {
    /// Applies a function to the elements of three tensors.
    map3 map3_light map3_any, 3, A a 1, B b 2, C c 3
}
map! {
    /// Applies a function to the elements of four tensors.
    map4 map4_light map4_any, 4, A a 1, B b 2, C c 3, D d 4
}
map! {
    /// Applies a function to the elements of five tensors.
    map5 map5_light map5_any, 5, A a 1, B b 2, C c 3, D d 4, E e 5
}
