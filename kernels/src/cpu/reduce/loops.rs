//! The loops of a fold over rows of elements, behind a trait that knows neither their type nor that of partial results.
//!
//! Elements are positions, relative to the start of input and output; partial results and contexts are words of memory that only
//! the loops read. So everything that calls loops is compiled once.

use std::mem::MaybeUninit;

use crate::cpu::lanes::LANES;

/// Elements that are folded one after the other before pairwise merging takes over, a lane.
pub(in crate::cpu) const LEAF: usize = 64;
/// Most groups of elements one after the other, of [`LEAF`] a lane, whose partial results are merged together.
pub(in crate::cpu) const LEAVES: usize = 32;

/// A row of elements.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The distance between two of them.
    pub step: i64,
    /// Their number.
    pub length: usize,
}

impl Row {
    /// Elements that are folded in one loop.
    pub fn leaf(self) -> usize {
        if self.step == 1 { LANES * LEAF } else { LEAF }
    }
}

/// Rows whose elements are taken into neighbouring partial results.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    /// Position to which those of the rows are relative.
    pub start: i64,
    /// Where the rows are.
    pub rows: &'a [i64],
    /// The distance between two elements of a row.
    pub step: i64,
    /// Elements of a row, and partial results.
    pub count: usize,
}

/// Memory of partial results or contexts of one fold, which may not have been written.
pub(super) type Word = MaybeUninit<u64>;

/// The values that words of memory hold.
///
/// # Safety
/// So many values of this type were written there.
#[inline(always)]
pub(super) unsafe fn values<P: Copy>(words: &mut [Word], count: usize) -> &mut [P] {
    const { assert!(align_of::<P>() <= align_of::<u64>()) };
    debug_assert!(count * size_of::<P>() <= size_of_val(words));
    // SAFETY: the caller's promise; words are aligned for each type of up to their size.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), count) }
}

/// Writes values to words of memory.
///
/// # Panics
/// If there is no room for them.
#[inline(always)]
pub(super) fn write<P: Copy>(words: &mut [Word], values: impl ExactSizeIterator<Item = P>) {
    const { assert!(align_of::<P>() <= align_of::<u64>()) };
    assert!(values.len() * size_of::<P>() <= size_of_val(words));
    let start = words.as_mut_ptr().cast::<P>();
    for (number, value) in values.enumerate() {
        // SAFETY: there is room for each, and words are aligned for each type of up to their size.
        unsafe { start.add(number).write(value) }
    }
}

/// Words for one partial result.
pub(super) type Partial = [Word; 2];

/// Bytes of a partial result and of a context.
pub(super) struct Sizes {
    pub partial: usize,
    pub context: usize,
}

impl Sizes {
    pub const fn of<P, C>() -> Sizes {
        assert!(size_of::<P>() <= size_of::<Partial>());
        Sizes { partial: size_of::<P>(), context: size_of::<C>() }
    }
}

/// The loops of a fold over rows of elements; positions are relative to the input's and the output's start.
pub(super) trait Loops: Sync {
    fn sizes(&self) -> Sizes;

    /// Folds rows, each with its start, the position of its output and that output's number, into outputs.
    ///
    /// # Safety
    /// Elements of the rows are valid for reads, those of the output for writes.
    unsafe fn outputs(&self, row: Row, positions: &[[i64; 3]]);

    /// The partial result of a row of the output with this number.
    ///
    /// # Safety
    /// Elements of the row are valid for reads.
    unsafe fn row_into(&self, start: i64, row: Row, number: i64, partial: &mut [Word]);

    /// The partial results of all groups of `LANES * LEAF` elements, and of the rest, of a row whose elements lie one after the other.
    ///
    /// # Safety
    /// As [`Loops::row_into`], of at most [`LEAVES`] groups, for each of which there is a partial result.
    unsafe fn leaves(&self, start: i64, length: usize, number: i64, partials: &mut [Partial]);

    /// The merged partial results of rows of one output, from the partial result of no element on.
    ///
    /// # Safety
    /// As [`Loops::row_into`].
    unsafe fn rows_into(&self, starts: &[i64], row: Row, number: i64, partial: &mut [Word]);

    /// Contexts of `count` lanes: again and again of `lanes` outputs whose numbers begin with the first of the two and
    /// are the second apart.
    fn contexts(&self, numbers: [i64; 2], lanes: usize, count: usize, contexts: &mut [Word]);

    /// Writes partial results of no element.
    fn start(&self, partials: &mut [Word], count: usize);

    /// Takes one element of each row into each partial result.
    ///
    /// # Safety
    /// Elements of the rows are valid for reads, and [`values`] of contexts and partial results.
    unsafe fn take(&self, lanes: Lanes<'_>, contexts: &mut [Word], partials: &mut [Word]);

    /// Merges partial results with others, from the `first` of these on.
    ///
    /// # Safety
    /// Both have as many [`values`].
    unsafe fn merge(&self, partials: &mut [Word], others: &mut [Word], first: usize, count: usize);

    /// Writes outputs, `step` apart from the position `target` on.
    ///
    /// # Safety
    /// There are as many [`values`], and elements of the output that are valid for writes.
    unsafe fn finish(&self, partials: &mut [Word], count: usize, target: i64, step: i64);
}
