//! The plan that every reduction to one value an output shares.
//!
//! In: a view, the dimensions to reduce and a [`Fold`]. Out: one folded value an output element.
//! Two strategies keep the innermost loop on the dimension that is closest in memory: *along* a
//! reduced dimension, with a block of independent partial results that the compiler keeps in vector
//! registers, or *across* a kept dimension, with one partial result for each output. Both combine
//! partial results pairwise, so rounding errors grow with the logarithm of the number of elements.

use std::sync::{Mutex, PoisonError};

use opsmith_runtime::axes::{Axes, Axis, Walk, axes, count, in_memory_order};
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::{DType, Element, Result, Scratch, View, ViewMut};

use crate::cpu::lanes::{LANES, fold_lanes};
use crate::cpu::simd::widest_over;
use crate::cpu::strides::reduced_strides;
use crate::cpu::tiles::SHORT;

/// How elements become one value: a start, a step an element, an associative merge, an end.
pub(super) trait Fold<T: Element>: Sync {
    /// Facts about an output that precede its first element, besides its number.
    type Context: Copy + Sync;
    /// Facts about the output after some of its elements.
    type Partial: Copy + Send;
    /// The type of outputs.
    type Out: Element;
    /// Whether loops over elements are compiled for wider vectors too, as [`widest_over`] does.
    const WIDE: bool = true;

    /// Facts about the output with the given row-major number.
    fn context(&self, number: usize) -> Self::Context;
    /// The partial result of no element.
    fn start(&self) -> Self::Partial;
    /// Takes one more element in.
    fn take(&self, context: Self::Context, partial: Self::Partial, element: T) -> Self::Partial;
    /// The partial result of elements one after the other.
    #[inline(always)]
    fn take_row(&self, context: Self::Context, row: &[T]) -> Self::Partial {
        fold_lanes(
            row,
            self.start(),
            |partial, element| self.take(context, partial, element),
            |first, second| self.merge(first, second),
        )
    }
    /// Joins the partial results of two groups of elements.
    fn merge(&self, first: Self::Partial, second: Self::Partial) -> Self::Partial;
    /// The output, from all its elements.
    fn finish(&self, partial: Self::Partial) -> Self::Out;
}

/// Elements that are folded one after the other before pairwise merging takes over, a lane.
pub(in crate::cpu) const LEAF: usize = 64;
/// Bytes of the partial results that the across strategy works on together: part of the first cache.
pub(in crate::cpu) const BLOCK_BYTES: usize = 16 << 10;

/// As [`widest_over`], if the fold has wide loops.
#[inline(always)]
fn widest_of<T: Element, F: Fold<T>, R>(body: impl FnOnce() -> R) -> R {
    if const { F::WIDE } { widest_over::<T, R>(body) } else { body() }
}

/// Reduces the dimensions marked in `reduced`; `out` keeps them with size 1 if `keepdim`.
///
/// # Errors
/// If the output does not have that shape.
pub(super) fn fold<T: Element, F: Fold<T>>(
    input: &View<'_, T>,
    reduced: &[bool],
    keepdim: bool,
    out: &mut ViewMut<'_, F::Out>,
    f: &F,
) -> Result<()> {
    if reduced.iter().all(|reduced| *reduced)
        && out.numel() == 1
        && out.dim() == if keepdim { input.dim() } else { 0 }
        && let Some(elements) = input.as_slice()
    {
        // One row, which needs no plan.
        // SAFETY: the slice's elements are valid for reads.
        let partial = unsafe { fold_row(elements.as_ptr(), 1, elements.len(), f.context(0), f) };
        // SAFETY: the output's only element.
        unsafe { out.set(0, f.finish(partial)) };
        return Ok(());
    }
    let (sizes, strides) = (input.sizes(), input.strides());
    let (kept, reduced) = plan(sizes, strides, reduced, keepdim, out.sizes(), out.strides())?;
    if count(&reduced) == 0 {
        out.write(std::iter::repeat(f.finish(f.start())))?;
        return Ok(());
    }
    let across = kept.last().filter(|kept| {
        reduced.last().is_none_or(|reduced| {
            kept.steps[0].abs() < reduced.steps[0].abs() && kept.size >= 4
                || reduced.size < SHORT && kept.size >= SHORT
        })
    });
    match across {
        Some(&lane) => fold_across(input, &kept[..kept.len() - 1], lane, &reduced, out, f),
        None => fold_along(input, &kept, &reduced, out, f),
    }
    Ok(())
}

/// The kept dimensions (steps in the input, in the output, and in row-major numbers of outputs) and
/// the reduced ones, each with the smallest steps in the input last, merged where possible.
fn plan(
    sizes: &[i64],
    strides: &[i64],
    reduced: &[bool],
    keepdim: bool,
    out_sizes: &[i64],
    out_strides: &[i64],
) -> Result<(Axes<3>, Axes<1>)> {
    let dense = contiguous_strides(out_sizes);
    let out_strides = reduced_strides(sizes, reduced, keepdim, out_sizes, out_strides)?;
    let numbers = reduced_strides(sizes, reduced, keepdim, out_sizes, &dense)?;
    let kept = axes(sizes, [strides, &out_strides, &numbers], |dim| !reduced[dim]);
    let folded = axes(sizes, [strides], |dim| reduced[dim]);
    Ok((in_memory_order(kept), in_memory_order(folded)))
}

/// One output at a time: its elements lie close together.
fn fold_along<T: Element, F: Fold<T>>(
    input: &View<'_, T>,
    kept: &[Axis<3>],
    reduced: &[Axis<1>],
    out: &mut ViewMut<'_, F::Out>,
    f: &F,
) {
    let one = Axis { size: 1, steps: [1] };
    let (row, outer) = match reduced.split_last() {
        Some((row, outer)) => (*row, outer),
        None => (one, reduced),
    };
    let rows = count(outer);
    let length = row.size as usize;
    let rows_a_leaf = (LANES * LEAF / length).clamp(1, LEAF);
    let (source, out) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    let one_output = |start: i64, number: i64| {
        let context = f.context(number as usize);
        if outer.is_empty() {
            // SAFETY: the row's elements are elements of the view.
            return unsafe { fold_row(source.at(start), row.steps[0], length, context, f) };
        }
        let leaf = |first: usize, rows: usize| {
            let mut partial = f.start();
            for [offset] in Walk::starting_at(outer, first).take(rows) {
                // SAFETY: the row's elements are elements of the view.
                let folded = unsafe { fold_row(source.at(start + offset), row.steps[0], length, context, f) };
                partial = f.merge(partial, folded);
            }
            partial
        };
        pairwise(0, rows, rows_a_leaf, &leaf, &|a, b| f.merge(a, b))
    };
    let chunk = (CHUNK / (rows * length).max(1)).max(1);
    parallel::for_each_range(count(kept), chunk, |range| {
        for [start, target, number] in Walk::starting_at(kept, range.start).take(range.len()) {
            // SAFETY: the plan's output positions are positions of `out`, each of one output.
            unsafe { *out.at(target) = f.finish(one_output(start, number)) }
        }
    });
}

/// As [`pairwise`], of halves in several threads while they are long.
fn pairwise_in_threads<P: Send>(
    first: usize,
    length: usize,
    leaf: usize,
    run: &(impl Fn(usize, usize) -> P + Sync),
    merge: &(impl Fn(P, P) -> P + Sync),
) -> P {
    let half = length.div_ceil(2).next_multiple_of(leaf);
    if length < LONG || half >= length {
        return pairwise(first, length, leaf, run, merge);
    }
    let parts = [(first, half), (first + half, length - half)];
    let results = [const { Mutex::new(None) }; 2];
    parallel::run(parallel::num_threads(), 2, &|number| {
        let (first, length) = parts[number];
        let result = pairwise_in_threads(first, length, leaf, run, merge);
        *results[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    let [low, high] = results.map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner));
    match (low, high) {
        (Some(low), Some(high)) => merge(low, high),
        // Both calls were made.
        _ => pairwise(first, length, leaf, run, merge),
    }
}

/// Elements of a row that several threads fold: some tens of microseconds.
const LONG: usize = 1 << 18;

/// Folds `length` things in groups of at most `leaf`, merging the groups in a balanced tree.
fn pairwise<P>(
    first: usize,
    length: usize,
    leaf: usize,
    run: &impl Fn(usize, usize) -> P,
    merge: &impl Fn(P, P) -> P,
) -> P {
    if length <= leaf {
        return run(first, length);
    }
    let half = length.div_ceil(2).next_multiple_of(leaf);
    if half >= length {
        let low = run(first, leaf);
        return merge(low, pairwise(first + leaf, length - leaf, leaf, run, merge));
    }
    let low = pairwise(first, half, leaf, run, merge);
    merge(low, pairwise(first + half, length - half, leaf, run, merge))
}

/// Folds one row.
///
/// # Safety
/// `length` elements, `step` apart from `row` on, are valid for reads.
unsafe fn fold_row<T: Element, F: Fold<T>>(
    row: *const T,
    step: i64,
    length: usize,
    context: F::Context,
    f: &F,
) -> F::Partial {
    let row = Shared(row.cast_mut());
    let run = |first: usize, length: usize| {
        let start = row.at(first as i64 * step).cast_const();
        if step != 1 {
            // One element after the other, which wider vectors do not help.
            let mut partial = f.start();
            for position in 0..length as isize {
                // SAFETY: the row's elements from `first` on, which the caller vouches for.
                let element = unsafe { *start.offset(position * step as isize) };
                partial = f.take(context, partial, element);
            }
            return partial;
        }
        // SAFETY: the row's `length` elements from `first` on, one after the other, for which the caller vouches.
        let elements = unsafe { std::slice::from_raw_parts(start, length) };
        widest_of::<T, F, _>(
            #[inline(always)]
            || f.take_row(context, elements),
        )
    };
    let leaf = if step == 1 { LANES * LEAF } else { LEAF };
    let merge = |a, b| f.merge(a, b);
    // Every build pays for each version of each loop.
    if const { matches!(T::DTYPE, DType::F32 | DType::F64) } && length >= LONG {
        return pairwise_in_threads(0, length, leaf, &run, &merge);
    }
    pairwise(0, length, leaf, &run, &merge)
}

/// Many outputs at a time: those along `lane` lie closer together than the elements of one of them.
fn fold_across<T: Element, F: Fold<T>>(
    input: &View<'_, T>,
    kept: &[Axis<3>],
    lane: Axis<3>,
    reduced: &[Axis<1>],
    out: &mut ViewMut<'_, F::Out>,
    f: &F,
) {
    let [in_step, out_step, number_step] = lane.steps;
    // The elements of an output are folded in the same order for any width of blocks.
    let most = (BLOCK_BYTES / size_of::<F::Partial>().max(1))
        .min((lane.size as usize).div_ceil(parallel::num_threads()).next_multiple_of(NARROW as usize))
        .min(lane.size as usize);
    let parts = split_rows(&lane, reduced);
    let (source, out) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    let across = (lane.size as usize).div_ceil(most);
    let chunk = (CHUNK / (most * count(reduced)).max(1)).max(1);
    parallel::for_each_range(count(kept) * across, chunk, |range| {
        for number_of_block in range {
            let (row, first) = (number_of_block / across, number_of_block % across * most);
            let Some([start, target, number]) = Walk::starting_at(kept, row).next() else { return };
            let width = (lane.size as usize - first).min(most);
            let at = |base: i64, step: i64| base + first as i64 * step;
            let number = at(number, number_step);
            let mut partials = Scratch::filled(f.start(), width);
            for part in &parts {
                let contexts = (0..(width * part.rows_in_one) as i64)
                    .map(|i| f.context((number + i % width as i64 * number_step) as usize))
                    .collect();
                let start = source.at(at(start, in_step) + part.start).cast_const();
                let block = Block { start, step: in_step, contexts, reduced: &part.rows, f };
                // SAFETY: the reduced dimensions times the block's lanes are positions of the view.
                unsafe { block.fold_into(&mut partials) };
            }
            let target = at(target, out_step);
            for (i, partial) in (0..).zip(partials) {
                // SAFETY: the plan's output positions are positions of `out`, each of one output.
                unsafe { *out.at(target + i * out_step) = f.finish(partial) }
            }
        }
    });
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
struct Block<'a, T: Element, F: Fold<T>> {
    start: *const T,
    step: i64,
    contexts: Scratch<F::Context>,
    reduced: &'a [Axis<1>],
    f: &'a F,
}

impl<T: Element, F: Fold<T>> Block<'_, T, F> {
    /// Folds all rows into partial results; a row may hold several elements of each.
    ///
    /// # Safety
    /// Each row's elements are valid for reads.
    unsafe fn fold_into(&self, partials: &mut [F::Partial]) {
        let mut all = Scratch::filled(self.f.start(), self.contexts.len());
        // SAFETY: the caller's promise.
        unsafe { self.fold(0, count(self.reduced), &mut all) };
        for group in all.chunks(partials.len()) {
            for (partial, &other) in partials.iter_mut().zip(group) {
                *partial = self.f.merge(*partial, other);
            }
        }
    }

    /// Folds rows into fresh partial results, halves first where there are many.
    ///
    /// # Safety
    /// Each row's elements are valid for reads.
    unsafe fn fold(&self, first: usize, rows: usize, partials: &mut [F::Partial]) {
        if rows > LEAF {
            let half = rows.div_ceil(2);
            let mut second = Scratch::filled(self.f.start(), partials.len());
            // SAFETY: the caller's promise, for part of the rows.
            unsafe {
                self.fold(first, half, partials);
                self.fold(first + half, rows - half, &mut second);
            }
            for (partial, other) in partials.iter_mut().zip(second) {
                *partial = self.f.merge(*partial, other);
            }
            return;
        }
        let mut offsets = [0; LEAF];
        for (offset, [position]) in offsets.iter_mut().zip(Walk::starting_at(self.reduced, first)) {
            *offset = position;
        }
        let (fours, rest) = offsets[..rows].as_chunks::<4>();
        let step = self.step as isize;
        if step == 1 {
            // SAFETY: the caller's promise.
            widest_of::<T, F, _>(
                #[inline(always)]
                || unsafe { self.take_all(fours, rest, partials) },
            );
        } else {
            // Elements apart, which neither wider vectors nor several rows at a time help.
            for offset in &offsets[..rows] {
                // SAFETY: the caller's promise.
                unsafe { self.take_rows(std::array::from_ref(offset), step, partials) }
            }
        }
    }

    /// Takes one element of each row, of which there are fours and a rest, into each partial result.
    ///
    /// # Safety
    /// The rows' elements, one after the other, are valid for reads.
    #[inline(always)]
    unsafe fn take_all(&self, fours: &[[i64; 4]], rest: &[i64], partials: &mut [F::Partial]) {
        for four in fours {
            // SAFETY: the caller's promise.
            unsafe { self.take_rows(four, 1, partials) }
        }
        for one in rest {
            // SAFETY: the caller's promise.
            unsafe { self.take_rows(std::array::from_ref(one), 1, partials) }
        }
    }

    /// As [`Block::take_all`], of as many rows as are worked on together, whose elements are `step` apart.
    ///
    /// # Safety
    /// As [`Block::take_all`], of elements so far apart.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
    unsafe fn take_rows<const ROWS: usize>(
        &self,
        offsets: &[i64; ROWS],
        step: isize,
        partials: &mut [F::Partial],
    ) {
        let mut rows = [self.start; ROWS];
        for number in 0..ROWS {
            rows[number] = self.start.wrapping_offset(offsets[number] as isize);
        }
        let contexts = &self.contexts[..partials.len()];
        for lane in 0..partials.len() {
            // The result is stored once: a store to each could change the rows, as far as compilers know.
            let mut partial = partials[lane];
            for number in 0..ROWS {
                // SAFETY: the caller's promise.
                let element = unsafe { *rows[number].offset(lane as isize * step) };
                partial = self.f.take(contexts[lane], partial, element);
            }
            partials[lane] = partial;
        }
    }
}
