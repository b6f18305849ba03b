//! Folds: how elements become one value, and the innermost loops over them.
//!
//! In: a view, the dimensions to reduce and a [`Fold`]. Out: one folded value an output element. Only rows of
//! elements are visited here, because each line is compiled for each dtype of each reduction; which rows, and in which
//! order and thread, is the [plan](super::plan), which is compiled once.

use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Element, Result, View, ViewMut};

use super::loops::{self, LEAF, LEAVES, Lanes, Partial, Row, Sizes, Word, values, write};
use super::plan::{self, Operands};
use crate::cpu::converted;
use crate::cpu::lanes::{LANES, fold_lanes};

/// How elements become one value: a start, a step an element, an associative merge, an end.
pub(super) trait Fold<T: Element>: Sync {
    /// Facts about an output that precede its first element, besides its number.
    type Context: Copy + Sync;
    /// Facts about the output after some of its elements.
    type Partial: Copy + Send;
    /// The type of outputs.
    type Out: Element;
    /// Whether loops over elements are compiled for wider vectors too, as [`converted::widest_of`] does.
    const WIDE: bool = true;
    /// Whether rows are folded [four](Fold::take_four) at a time.
    const FOUR: bool = false;

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
    /// The partial results of four rows of one length, each that of [`Fold::take_row`]: they arrive from memory side by side.
    #[inline(always)]
    fn take_four(&self, contexts: [Self::Context; 4], rows: [&[T]; 4]) -> [Self::Partial; 4] {
        std::array::from_fn(|row| self.take_row(contexts[row], rows[row]))
    }
    /// Joins the partial results of two groups of elements.
    fn merge(&self, first: Self::Partial, second: Self::Partial) -> Self::Partial;
    /// The output, from all its elements.
    fn finish(&self, partial: Self::Partial) -> Self::Out;
}

/// As [`converted::widest_of`], if the fold has wide loops.
#[inline(always)]
fn widest_of<T: Element, F: Fold<T>, R>(body: impl FnOnce() -> R) -> R {
    if const { F::WIDE } { converted::widest_of::<T, R>(body) } else { body() }
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
    let (source, target) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    let operands = Operands {
        input: (input.sizes(), input.strides()),
        out: (out.sizes(), out.strides()),
        reduced,
        keepdim,
    };
    let loops = Loops { source, target, f };
    if let Some(length) = plan::one_row(&operands).filter(|length| *length <= LANES * LEAF) {
        // One short row, which needs no plan.
        // SAFETY: the elements of the view, one after the other, and the output's only one.
        unsafe { *loops.target.at(0) = f.finish(loops.row(0, Row { step: 1, length }, f.context(0))) }
        return Ok(());
    }
    // SAFETY: the loops read the view's elements and write the output's.
    unsafe { plan::run(&operands, &loops) }
}

/// The loops of a fold over the elements of a view.
struct Loops<'f, T: Element, F: Fold<T>> {
    source: Shared<T>,
    target: Shared<F::Out>,
    f: &'f F,
}

impl<T: Element, F: Fold<T>> Loops<'_, T, F> {
    /// The partial result of a row, element by element.
    ///
    /// # Safety
    /// The row's elements from `start` on are valid for reads.
    #[inline(never)]
    unsafe fn row(&self, start: i64, row: Row, context: F::Context) -> F::Partial {
        let start = self.source.at(start).cast_const();
        if row.step != 1 {
            // One element after the other, which wider vectors do not help.
            let mut partial = self.f.start();
            for position in 0..row.length as isize {
                // SAFETY: the caller's promise.
                let element = unsafe { *start.offset(position * row.step as isize) };
                partial = self.f.take(context, partial, element);
            }
            return partial;
        }
        // SAFETY: the caller's promise, of elements one after the other.
        let elements = unsafe { std::slice::from_raw_parts(start, row.length) };
        widest_of::<T, F, _>(
            #[inline(always)]
            || self.f.take_row(context, elements),
        )
    }

    /// The partial results of rows that begin at these positions, all of one length, with the contexts of their outputs.
    ///
    /// # Safety
    /// As [`Loops::row`], of each row.
    #[inline(always)]
    unsafe fn for_each_row<S>(
        &self,
        row: Row,
        places: &[S],
        place: impl Fn(&S) -> (i64, F::Context),
        mut visit: impl FnMut(&S, F::Partial),
    ) {
        let (fours, rest) =
            if const { F::FOUR } && row.step == 1 { places.as_chunks::<4>() } else { (&[][..], places) };
        for four in fours {
            let found = four.each_ref().map(&place);
            // SAFETY: the caller's promise.
            let partials = unsafe {
                self.four_rows(found.map(|(start, _)| start), row.length, found.map(|(_, context)| context))
            };
            std::iter::zip(four, partials).for_each(|(of, partial)| visit(of, partial));
        }
        for one in rest {
            let (start, context) = place(one);
            // SAFETY: the caller's promise.
            visit(one, unsafe { self.row(start, row, context) });
        }
    }

    /// As [`Loops::row`], of four rows of elements one after the other.
    ///
    /// # Safety
    /// As [`Loops::row`], of each row.
    #[inline(never)]
    unsafe fn four_rows(
        &self,
        starts: [i64; 4],
        length: usize,
        contexts: [F::Context; 4],
    ) -> [F::Partial; 4] {
        // SAFETY: the caller's promise, of elements one after the other.
        let rows = starts
            .map(|start| unsafe { std::slice::from_raw_parts(self.source.at(start).cast_const(), length) });
        widest_of::<T, F, _>(
            #[inline(always)]
            || self.f.take_four(contexts, rows),
        )
    }

    /// Takes one element of each of some rows, which are worked on together and whose elements are `step` apart, into
    /// each partial result.
    ///
    /// # Safety
    /// The elements of the rows are valid for reads.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
    unsafe fn take_rows<const ROWS: usize>(
        &self,
        start: *const T,
        offsets: &[i64; ROWS],
        step: isize,
        contexts: &[F::Context],
        partials: &mut [F::Partial],
    ) {
        let mut rows = [start; ROWS];
        for number in 0..ROWS {
            rows[number] = start.wrapping_offset(offsets[number] as isize);
        }
        let contexts = &contexts[..partials.len()];
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

impl<T: Element, F: Fold<T>> loops::Loops for Loops<'_, T, F> {
    fn sizes(&self) -> Sizes {
        const { Sizes::of::<F::Partial, F::Context>() }
    }

    unsafe fn outputs(&self, row: Row, positions: &[[i64; 3]]) {
        let place = |&[start, _, number]: &[i64; 3]| (start, self.f.context(number as usize));
        // SAFETY: the caller's promise.
        let finish =
            |&[_, target, _]: &[i64; 3], partial| unsafe { *self.target.at(target) = self.f.finish(partial) };
        // SAFETY: the caller's promise.
        unsafe { self.for_each_row(row, positions, place, finish) }
    }

    unsafe fn leaves(&self, start: i64, length: usize, number: i64, partials: &mut [Partial]) {
        let (context, leaf) = (self.f.context(number as usize), Row { step: 1, length: LANES * LEAF });
        let (whole, rest) = (length / leaf.length, length % leaf.length);
        let starts: [i64; LEAVES] = std::array::from_fn(|number| start + (number * leaf.length) as i64);
        let mut partials = partials.iter_mut();
        let mut note = |partial| {
            if let Some(place) = partials.next() {
                write(place, std::iter::once(partial));
            }
        };
        // SAFETY: the caller's promise.
        unsafe {
            self.for_each_row(leaf, &starts[..whole], |start| (*start, context), |_, partial| note(partial));
            if rest > 0 {
                note(self.row(start + (length - rest) as i64, Row { step: 1, length: rest }, context));
            }
        }
    }

    unsafe fn row_into(&self, start: i64, row: Row, number: i64, partial: &mut [Word]) {
        // SAFETY: the caller's promise.
        let folded = unsafe { self.row(start, row, self.f.context(number as usize)) };
        write(partial, std::iter::once(folded));
    }

    unsafe fn rows_into(&self, starts: &[i64], row: Row, number: i64, partial: &mut [Word]) {
        let context = self.f.context(number as usize);
        let mut all = self.f.start();
        let merge = |_: &i64, partial| all = self.f.merge(all, partial);
        // SAFETY: the caller's promise.
        unsafe { self.for_each_row(row, starts, |start| (*start, context), merge) }
        write(partial, std::iter::once(all));
    }

    fn contexts(&self, [number, step]: [i64; 2], lanes: usize, count: usize, contexts: &mut [Word]) {
        let number = |lane: usize| (number + (lane % lanes) as i64 * step) as usize;
        if const { size_of::<F::Context>() } > 0 {
            write(contexts, (0..count).map(|lane| self.f.context(number(lane))));
        }
    }

    fn start(&self, partials: &mut [Word], count: usize) {
        write(partials, std::iter::repeat_n(self.f.start(), count));
    }

    unsafe fn take(&self, lanes: Lanes<'_>, contexts: &mut [Word], partials: &mut [Word]) {
        let (start, step) = (self.source.at(lanes.start).cast_const(), lanes.step as isize);
        // SAFETY: the caller's promise.
        let (contexts, partials) = unsafe { (values(contexts, lanes.count), values(partials, lanes.count)) };
        if step != 1 {
            // Elements apart, which neither wider vectors nor several rows at a time help.
            for offset in lanes.rows {
                // SAFETY: the caller's promise.
                unsafe { self.take_rows(start, std::array::from_ref(offset), step, contexts, partials) }
            }
            return;
        }
        let (fours, rest) = lanes.rows.as_chunks::<4>();
        widest_of::<T, F, _>(
            #[inline(always)]
            || {
                for four in fours {
                    // SAFETY: the caller's promise.
                    unsafe { self.take_rows(start, four, 1, contexts, partials) }
                }
                for one in rest {
                    // SAFETY: the caller's promise.
                    unsafe { self.take_rows(start, std::array::from_ref(one), 1, contexts, partials) }
                }
            },
        );
    }

    unsafe fn merge(&self, partials: &mut [Word], others: &mut [Word], first: usize, count: usize) {
        // SAFETY: the caller's promise.
        let (partials, others) = unsafe { (values(partials, count), values(others, first + count)) };
        for lane in 0..count {
            partials[lane] = self.f.merge(partials[lane], others[first + lane]);
        }
    }

    unsafe fn finish(&self, partials: &mut [Word], count: usize, target: i64, step: i64) {
        // SAFETY: the caller's promise.
        for (lane, &mut partial) in (0..).zip(unsafe { values(partials, count) }) {
            // SAFETY: the caller's promise.
            unsafe { *self.target.at(target + lane * step) = self.f.finish(partial) }
        }
    }
}
