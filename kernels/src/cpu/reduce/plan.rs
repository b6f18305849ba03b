//! The plan that every reduction to one value an output shares, whatever its elements.
//!
//! In: shapes, strides and the [`Loops`] of a fold. Out: calls of these loops that cover every output.
//! Two strategies keep the innermost loop on the dimension that is closest in memory: *along* a
//! reduced dimension, with a block of independent partial results that the compiler keeps in vector
//! registers, or *across* a kept dimension, with one partial result for each output. Both combine
//! partial results pairwise, so rounding errors grow with the logarithm of the number of elements.
//!
//! Nothing here is generic over the element type.

use std::cell::{Cell, RefCell};

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, in_memory_order};
use opsmith_runtime::layout::{contiguous_strides, is_contiguous, numel};
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Result, Scratch};

use super::loops::{LEAF, LEAVES, Lanes, Loops, Partial, Row, Sizes, Word};
use crate::cpu::lanes::LANES;
use crate::cpu::strides::reduced_strides;
use crate::cpu::tiles::SHORT;

/// Outputs that a loop gets together.
pub(in crate::cpu) const OUTPUTS: usize = 16;
/// A partial result that is not there yet.
const NOTHING: Partial = [Word::uninit(); 2];
/// Bytes of the partial results that the across strategy works on together: part of the first cache.
pub(in crate::cpu) const BLOCK_BYTES: usize = 16 << 10;

/// The operands of a reduction: sizes and strides of input and output, and the reduced dimensions.
pub(super) struct Operands<'a> {
    pub input: (&'a [i64], &'a [i64]),
    pub out: (&'a [i64], &'a [i64]),
    pub reduced: &'a [bool],
    pub keepdim: bool,
}

/// Calls loops for every output.
///
/// # Errors
/// If the output does not have the shape of the reduced input.
///
/// # Safety
/// The loops may read every element of the input and write every one of the output.
pub(super) unsafe fn run(operands: &Operands<'_>, loops: &dyn Loops) -> Result<()> {
    if let Some(length) = one_row(operands) {
        // SAFETY: the caller's promise.
        unsafe { fold_line(loops, Row { step: 1, length }, &[[0, 0, 0]]) };
        return Ok(());
    }
    let (kept, reduced) = plan(operands)?;
    if count(&reduced) == 0 {
        let mut partial = NOTHING;
        for [_, target, _] in Walk::new(&kept) {
            // SAFETY: the caller's promise; a partial result has room for one.
            unsafe {
                loops.start(&mut partial, 1);
                loops.finish(&mut partial, 1, target, 0);
            }
        }
        return Ok(());
    }
    let across = kept.last().filter(|kept| {
        reduced.last().is_none_or(|reduced| {
            kept.steps[0].abs() < reduced.steps[0].abs() && kept.size >= 4
                || reduced.size < SHORT && kept.size >= SHORT
        })
    });
    // SAFETY: the caller's promise; the plan's positions are those of input and output.
    unsafe {
        match across {
            Some(&lane) => fold_across(loops, &kept[..kept.len() - 1], lane, &reduced),
            None => fold_along(loops, &kept, &reduced),
        }
    }
    Ok(())
}

/// The elements of the input, if there are some and they are one row, which needs no plan.
pub(super) fn one_row(operands: &Operands<'_>) -> Option<usize> {
    let (sizes, strides) = operands.input;
    let is_whole = operands.reduced.iter().all(|reduced| *reduced)
        && numel(operands.out.0) == 1
        && operands.out.0.len() == if operands.keepdim { sizes.len() } else { 0 };
    (is_whole && numel(sizes) > 0 && is_contiguous(sizes, strides)).then(|| numel(sizes) as usize)
}

/// The kept dimensions (steps in the input, in the output, and in row-major numbers of outputs) and
/// the reduced ones, each with the smallest steps in the input last, merged where possible.
fn plan(operands: &Operands<'_>) -> Result<(Axes<3>, Axes<1>)> {
    let Operands { input: (sizes, strides), out: (out_sizes, out_strides), reduced, keepdim } = *operands;
    let dense = contiguous_strides(out_sizes);
    let out_strides = reduced_strides(sizes, reduced, keepdim, out_sizes, out_strides)?;
    let numbers = reduced_strides(sizes, reduced, keepdim, out_sizes, &dense)?;
    let kept = axes(sizes, [strides, &out_strides, &numbers], |dim| !reduced[dim]);
    let folded = axes(sizes, [strides], |dim| reduced[dim]);
    Ok((in_memory_order(kept), in_memory_order(folded)))
}

/// One output at a time: its elements lie close together.
///
/// # Safety
/// The axes' positions are those of elements that the loops may read and write.
unsafe fn fold_along(loops: &dyn Loops, kept: &[Axis<3>], reduced: &[Axis<1>]) {
    let one = Axis { size: 1, steps: [1] };
    let (row, outer) = match reduced.split_last() {
        Some((row, outer)) => (*row, outer),
        None => (one, reduced),
    };
    let rows = count(outer);
    let row = Row { step: row.steps[0], length: row.size as usize };
    parallel::for_each_range_of(rows * row.length, count(kept), |range| {
        let mut outputs = Walk::starting_at(kept, range.start).take(range.len());
        let mut left = range.len();
        while left > 0 {
            let mut positions = [[0; 3]; OUTPUTS];
            let together = left.min(OUTPUTS);
            for (position, output) in positions[..together].iter_mut().zip(&mut outputs) {
                *position = output;
            }
            left -= together;
            // SAFETY: the caller's promise; each output is that of one range.
            unsafe {
                if outer.is_empty() {
                    fold_line(loops, row, &positions[..together]);
                } else {
                    fold_lines(loops, row, outer, rows, &positions[..together]);
                }
            }
        }
    });
}

/// Folds rows into outputs, one into each.
///
/// # Safety
/// As [`Loops::outputs`].
unsafe fn fold_line(loops: &dyn Loops, row: Row, positions: &[[i64; 3]]) {
    if row.length <= row.leaf() {
        // SAFETY: the caller's promise.
        return unsafe { loops.outputs(row, positions) };
    }
    for &[start, target, number] in positions {
        // SAFETY: the caller's promise; a partial result has room for one.
        unsafe {
            let mut partial = fold_row(loops, start, row, number);
            loops.finish(&mut partial, 1, target, 0);
        }
    }
}

/// Folds rows into outputs, all rows of the outer axes into each.
///
/// # Safety
/// As [`Loops::outputs`].
unsafe fn fold_lines(loops: &dyn Loops, row: Row, outer: &[Axis<1>], rows: usize, positions: &[[i64; 3]]) {
    let rows_a_leaf = (LANES * LEAF / row.length).clamp(1, LEAF);
    for &[start, target, number] in positions {
        let leaf = |first: usize, rows: usize| {
            let mut partial = NOTHING;
            let mut starts = [0; LEAF];
            for (at, [offset]) in starts[..rows].iter_mut().zip(Walk::starting_at(outer, first)) {
                *at = start + offset;
            }
            // SAFETY: the caller's promise; a partial result has room for one.
            unsafe {
                if row.length <= row.leaf() {
                    loops.rows_into(&starts[..rows], row, number, &mut partial);
                } else {
                    loops.start(&mut partial, 1);
                    for &start in &starts[..rows] {
                        loops.merge(&mut partial, &mut fold_row(loops, start, row, number), 0, 1);
                    }
                }
            }
            partial
        };
        let mut partial = pairwise(0, rows, rows_a_leaf, rows_a_leaf, &leaf, &|a, b| merged(loops, a, b));
        // SAFETY: the caller's promise; a partial result has room for one.
        unsafe { loops.finish(&mut partial, 1, target, 0) }
    }
}

fn merged(loops: &dyn Loops, mut first: Partial, mut second: Partial) -> Partial {
    // SAFETY: each holds one partial result.
    unsafe { loops.merge(&mut first, &mut second, 0, 1) };
    first
}

/// Folds one row, in several threads if it is long.
///
/// # Safety
/// As [`Loops::row_into`].
unsafe fn fold_row(loops: &dyn Loops, start: i64, row: Row, number: i64) -> Partial {
    let run = |first: usize, length: usize| {
        let mut partial = NOTHING;
        let start = start + first as i64 * row.step;
        // SAFETY: the caller's promise; a partial result has room for one.
        unsafe { loops.row_into(start, Row { length, ..row }, number, &mut partial) };
        partial
    };
    let (leaf, merge) = (row.leaf(), |a, b| merged(loops, a, b));
    let part = |first: usize, length: usize| {
        if row.step != 1 {
            return pairwise(first, length, leaf, leaf, &run, &merge);
        }
        let mut partials = [NOTHING; LEAVES];
        // SAFETY: the caller's promise; a part has no more leaves, and each a partial result.
        unsafe { loops.leaves(start + first as i64, length, number, &mut partials) };
        pairwise(0, length, leaf, leaf, &|first, _| partials[first / leaf], &merge)
    };
    if row.length <= LEAVES * leaf {
        return part(0, row.length);
    }
    let parts = RefCell::new(Scratch::with_capacity(2 * row.length / (PART * leaf)));
    pairwise(
        0,
        row.length,
        leaf,
        PART * leaf,
        &|first, length| {
            parts.borrow_mut().push((first, length));
            NOTHING
        },
        &|_, _| NOTHING,
    );
    let parts = parts.into_inner();
    let mut partials = Scratch::filled(NOTHING, parts.len());
    let results = Shared(partials.as_mut_ptr());
    parallel::for_each_range_of(PART * leaf, parts.len(), |range| {
        for number in range {
            let (first, length) = parts[number];
            // SAFETY: there is a result for each part, which is that of one range.
            unsafe { results.at(number as i64).write(part(first, length)) };
        }
    });
    let next = Cell::new(0);
    let result = |_, _| partials[next.replace(next.get() + 1)];
    pairwise(0, row.length, leaf, PART * leaf, &result, &merge)
}

/// Leaves of a part of a row, at most, if the row has several: a few microseconds. Parts are folded in several threads.
const PART: usize = 8;

/// Folds `length` things in groups of at most `most`, which begin at multiples of `leaf`, merging the groups in a balanced tree
/// which is part of that of smaller groups.
fn pairwise(
    first: usize,
    length: usize,
    leaf: usize,
    most: usize,
    run: &impl Fn(usize, usize) -> Partial,
    merge: &impl Fn(Partial, Partial) -> Partial,
) -> Partial {
    if length <= most {
        return run(first, length);
    }
    let half = length.div_ceil(2).next_multiple_of(leaf);
    let low = pairwise(first, half, leaf, most, run, merge);
    merge(low, pairwise(first + half, length - half, leaf, most, run, merge))
}

/// Many outputs at a time: those along `lane` lie closer together than the elements of one of them.
///
/// # Safety
/// As [`fold_along`].
unsafe fn fold_across(loops: &dyn Loops, kept: &[Axis<3>], lane: Axis<3>, reduced: &[Axis<1>]) {
    let [in_step, out_step, number_step] = lane.steps;
    let Sizes { partial, context } = loops.sizes();
    // The elements of an output are folded in the same order for any width of blocks.
    let most = (BLOCK_BYTES / partial.max(1))
        .min((lane.size as usize).div_ceil(parallel::num_threads()).next_multiple_of(NARROW as usize))
        .min(lane.size as usize);
    let parts = split_rows(&lane, reduced);
    let across = (lane.size as usize).div_ceil(most);
    parallel::for_each_range_of(most * count(reduced), count(kept) * across, |range| {
        for number_of_block in range {
            let (row, first) = (number_of_block / across, number_of_block % across * most);
            let Some([start, target, number]) = Walk::starting_at(kept, row).next() else { return };
            let width = (lane.size as usize - first).min(most);
            let at = |base: i64, step: i64| base + first as i64 * step;
            let numbers = [at(number, number_step), number_step];
            let mut partials = words(partial, width);
            // SAFETY: the caller's promise: the reduced dimensions times the block's lanes are positions of the input, and
            // each output is one of one block. The words have room for a value each lane.
            unsafe {
                loops.start(&mut partials, width);
                for part in &parts {
                    let lanes = width * part.rows_in_one;
                    let mut contexts = words(context, lanes);
                    loops.contexts(numbers, width, lanes, &mut contexts);
                    let start = at(start, in_step) + part.start;
                    let block = Block { loops, start, step: in_step, lanes, partial, reduced: &part.rows };
                    block.fold_into(&mut contexts, &mut partials, width);
                }
                loops.finish(&mut partials, width, at(target, out_step), out_step);
            }
        }
    });
}

/// Words for values of so many bytes.
fn words(bytes: usize, count: usize) -> Scratch<Word> {
    Scratch::filled(Word::uninit(), (bytes * count).div_ceil(size_of::<Word>()))
}

/// Rows to fold together.
struct Rows {
    /// Position of the first, relative to the block's.
    start: i64,
    /// Number of rows that are folded as if they were one.
    rows_in_one: usize,
    /// Where the rows are.
    rows: Axes<1>,
}

/// A row of fewer outputs than this leaves vector registers empty.
pub(in crate::cpu) const NARROW: i64 = 64;

/// Splits the reduced dimensions into rows that are wide enough for vector registers: where few
/// outputs lie side by side and the rows one after the other, several rows are folded as one.
fn split_rows(lane: &Axis<3>, reduced: &[Axis<1>]) -> Scratch<Rows> {
    let whole = Scratch::from_iter([Rows { start: 0, rows_in_one: 1, rows: reduced.into() }]);
    let Some((&inner, outer)) = reduced.split_last() else { return whole };
    let rows_in_one = NARROW / lane.size;
    let dense = lane.steps[0] == 1 && inner.steps[0] == lane.size;
    if !dense || rows_in_one < 2 || inner.size < 4 * rows_in_one {
        return whole;
    }
    let wide = inner.size / rows_in_one;
    let rows = |axis: Axis<1>| outer.iter().copied().chain([axis]).collect();
    let mut parts = Scratch::from_iter([Rows {
        start: 0,
        rows_in_one: rows_in_one as usize,
        rows: rows(Axis { size: wide, steps: [rows_in_one * lane.size] }),
    }]);
    let done = wide * rows_in_one;
    if done < inner.size {
        let rest = Axis { size: inner.size - done, ..inner };
        parts.push(Rows { start: done * lane.size, rows_in_one: 1, rows: rows(rest) });
    }
    parts
}

/// Neighbouring outputs that are folded together.
struct Block<'a> {
    loops: &'a dyn Loops,
    start: i64,
    step: i64,
    /// Partial results, and elements of a row; a multiple of the outputs.
    lanes: usize,
    /// Bytes of a partial result.
    partial: usize,
    reduced: &'a [Axis<1>],
}

impl Block<'_> {
    /// Folds all rows into the partial results of `outputs` outputs; a row may hold several elements of each.
    ///
    /// # Safety
    /// Each row's elements are valid for reads, and there are values for contexts and partial results.
    unsafe fn fold_into(&self, contexts: &mut [Word], partials: &mut [Word], outputs: usize) {
        let mut all = words(self.partial, self.lanes);
        // SAFETY: the caller's promise.
        unsafe {
            self.fold(0, count(self.reduced), contexts, &mut all);
            for first in (0..self.lanes).step_by(outputs) {
                self.loops.merge(partials, &mut all, first, outputs);
            }
        }
    }

    /// Folds rows into fresh partial results, halves first where there are many.
    ///
    /// # Safety
    /// As [`Block::fold_into`].
    unsafe fn fold(&self, first: usize, rows: usize, contexts: &mut [Word], partials: &mut [Word]) {
        if rows > LEAF {
            let half = rows.div_ceil(2);
            let mut second = words(self.partial, self.lanes);
            // SAFETY: the caller's promise, for part of the rows.
            unsafe {
                self.fold(first, half, contexts, partials);
                self.fold(first + half, rows - half, contexts, &mut second);
                self.loops.merge(partials, &mut second, 0, self.lanes);
            }
            return;
        }
        let mut offsets = [0; LEAF];
        for (offset, [position]) in offsets.iter_mut().zip(Walk::starting_at(self.reduced, first)) {
            *offset = position;
        }
        let lanes = Lanes { start: self.start, rows: &offsets[..rows], step: self.step, count: self.lanes };
        // SAFETY: the caller's promise.
        unsafe {
            self.loops.start(partials, self.lanes);
            self.loops.take(lanes, contexts, partials);
        }
    }
}
