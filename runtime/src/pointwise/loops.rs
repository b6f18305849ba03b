//! An element-wise loop as the code that walks over elements knows it: without the types of its function and elements.
//!
//! In: a function, and the loop compiled for it, for several processors. Out: the loop run over elements that lie one after the
//! other. Must know no operator.

use std::marker::PhantomData;

use super::MAX_OPERANDS;
use crate::simd;

/// A loop over elements that lie one after the other. Without a table of its methods, as `dyn FnMut` has, whose unused
/// half would be compiled, too.
#[derive(Clone, Copy)]
pub(crate) struct Loop<'a> {
    /// The function that the loop calls for each element.
    function: *const (),
    versions: &'static Versions,
    lives: PhantomData<&'a ()>,
}

// SAFETY: the function is `Sync`, as `new` requires, and runs over whatever elements its caller promises.
unsafe impl Sync for Loop<'_> {}

/// A loop over so many elements of each operand, of which these are the first: output first, all in the types and steps
/// that the loop was made for; before them, the function that it calls.
type Run = unsafe fn(*const (), &[*mut u8; MAX_OPERANDS], usize);

/// As [`Run`], with the function's type.
pub(crate) type RunOf<F> = unsafe fn(&F, &[*mut u8; MAX_OPERANDS], usize);

/// One loop, compiled for several processors.
pub(crate) struct Versions {
    /// In the order of [`simd::version`].
    runs: [Run; 4],
    special: Special,
}

/// The same loop for operands of which it reads less, where that is compiled, too.
#[derive(Clone, Copy)]
pub(crate) struct Special {
    /// With one element of the first or of the second input for all of the others'.
    pub repeating: [Option<&'static Versions>; 2],
    /// With the first input as the output.
    pub in_place: Option<&'static Versions>,
}

impl Special {
    pub const NONE: Special = Special { repeating: [None; 2], in_place: None };
}

impl Versions {
    /// The versions in the order of [`simd::version`], and the loops of special operands.
    pub const fn of<F>([halves, oldest, avx2, avx512]: [RunOf<F>; 4], special: Special) -> Versions {
        const fn erased<F>(run: RunOf<F>) -> Run {
            // SAFETY: a reference is passed as a pointer is, and [`Loop::run`] passes one to this function.
            unsafe { std::mem::transmute::<RunOf<F>, Run>(run) }
        }
        Versions { runs: [erased(halves), erased(oldest), erased(avx2), erased(avx512)], special }
    }

    /// A loop that is compiled once, or chooses for itself.
    pub const fn one<F>(run: RunOf<F>) -> Versions {
        Versions::of([run; 4], Special::NONE)
    }
}

impl<'a> Loop<'a> {
    /// The loop of a function.
    ///
    /// # Safety
    /// The versions are loops of such a function. They may be called with as many elements as lie at the pointers that they
    /// are given, each on a processor that has its instructions.
    #[inline]
    pub unsafe fn new<F: Sync>(function: &'a F, versions: &'static Versions) -> Loop<'a> {
        Loop { function: std::ptr::from_ref(function).cast(), versions, lives: PhantomData }
    }

    /// The loop that takes one element of an operand for all of the others', if it is compiled.
    #[inline]
    pub fn repeating(self, operand: usize) -> Option<Loop<'a>> {
        let versions = (*self.versions.special.repeating.get(operand.checked_sub(1)?)?)?;
        Some(Loop { versions, ..self })
    }

    /// The loop whose output is its first input, and no other, if it is compiled.
    #[inline(always)]
    pub fn in_place(self) -> Option<Loop<'a>> {
        let versions = self.versions.special.in_place?;
        Some(Loop { versions, ..self })
    }

    /// Runs it.
    ///
    /// # Safety
    /// At each pointer lie as many elements of the type that the loop was made for, one after the other; they have no other
    /// writer, and those at the first, which no other operand shares, are valid for writes. Of an operand that the loop
    /// [repeats](Self::repeating) there is one; the first input of a loop [in place](Self::in_place) is the output.
    #[inline]
    pub unsafe fn run(self, pointers: &[*mut u8; MAX_OPERANDS], length: usize) {
        let run = self.versions.runs[simd::version() & 3];
        // SAFETY: the maker of the loop promised that it takes this function, and the caller promises the rest; the version
        // is the one for this processor.
        unsafe { run(self.function, pointers, length) }
    }
}
