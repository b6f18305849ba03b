//! Where the largest and the smallest element are.
//!
//! NaN counts as both; of equal elements the first wins.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::axes::{Axis, Walk, axes, merge};
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::extreme::refuse_empty;
use crate::cpu::lanes::{fold_lanes, for_each_in_row};
use crate::cpu::simd::widest_over;
use crate::cpu::strides::reduced_strides;
use crate::cpu::tiles::for_each_tile;
use crate::math::select;

/// The index of the largest element along a dimension, or in row-major order of all elements.
///
/// # Errors
/// If there is no element.
pub fn argmax<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: Option<i64>,
    keepdim: bool,
    out: ViewMut<'_, i64>,
) -> Result<()> {
    position(self_, dim, keepdim, Largest, out)
}

/// The index of the smallest element along a dimension, or in row-major order of all elements.
///
/// # Errors
/// If there is no element.
pub fn argmin<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: Option<i64>,
    keepdim: bool,
    out: ViewMut<'_, i64>,
) -> Result<()> {
    position(self_, dim, keepdim, Smallest, out)
}

/// The largest elements along a dimension, and their indices.
///
/// # Errors
/// If there is no element.
pub fn max_dim<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    along(&self_, dim, keepdim, Largest, Some(values), indices)
}

/// The smallest elements along a dimension, and their indices.
///
/// # Errors
/// If there is no element.
pub fn min_dim<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    dim: i64,
    keepdim: bool,
    values: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    along(&self_, dim, keepdim, Smallest, Some(values), indices)
}

/// Which of two numbers to keep.
trait Choice: Copy {
    /// Whether `new` is strictly better; false if either is NaN.
    fn better<C: Ordered>(self, new: C, old: C) -> bool;

    /// Whether `new` takes the place of `old`, NaN being better than everything.
    #[inline(always)]
    fn replaces<C: Ordered>(self, new: C, old: C) -> bool {
        self.better(new, old) | (!new.equal(new) & old.equal(old))
    }
}

#[derive(Clone, Copy)]
struct Largest;

impl Choice for Largest {
    #[inline(always)]
    fn better<C: Ordered>(self, new: C, old: C) -> bool {
        new.gt(old)
    }
}

#[derive(Clone, Copy)]
struct Smallest;

impl Choice for Smallest {
    #[inline(always)]
    fn better<C: Ordered>(self, new: C, old: C) -> bool {
        new.lt(old)
    }
}

fn position<T: Element<Compute: Ordered>>(
    input: View<'_, T>,
    dim: Option<i64>,
    keepdim: bool,
    choice: impl Choice,
    mut out: ViewMut<'_, i64>,
) -> Result<()> {
    if let Some(dim) = dim {
        return along(&input, dim, keepdim, choice, None, out);
    }
    refuse_empty(input.sizes(), &reduced_dims(input.dim(), None)?)?;
    // Row-major order decides between equals, so rows are searched in that order.
    let mut outer = merge(axes(input.sizes(), [input.strides()], |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1] });
    let mut best: Option<(T::Compute, i64)> = None;
    for (number, [offset]) in Walk::new(&outer).enumerate() {
        // SAFETY: the row's elements are elements of the view.
        let (value, index) = unsafe { search(input.as_ptr().offset(offset as isize), row, choice) };
        if best.is_none_or(|(old, _)| choice.replaces(value, old)) {
            best = Some((value, number as i64 * row.size + index));
        }
    }
    out.write(best.map(|(_, index)| index))
}

/// Lines that are searched together where they lie closer in memory than a line's elements.
pub(in crate::cpu) const WIDTH: usize = 512;

fn along<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    dim: i64,
    keepdim: bool,
    choice: impl Choice,
    mut values: Option<ViewMut<'_, T>>,
    mut indices: ViewMut<'_, i64>,
) -> Result<()> {
    let dim = wrap_dim(dim, input.dim())?;
    let reduced = reduced_dims(input.dim(), Some(&[dim as i64]))?;
    refuse_empty(input.sizes(), &reduced)?;
    let like_input = |sizes, strides| reduced_strides(input.sizes(), &reduced, keepdim, sizes, strides);
    let index_strides = like_input(indices.sizes(), indices.strides())?;
    let value_strides = match &values {
        Some(values) => like_input(values.sizes(), values.strides())?,
        None => index_strides.clone(),
    };
    let strides = [input.strides(), &value_strides[..], &index_strides[..]];
    let mut best = Scratch::with_capacity(WIDTH);
    for_each_tile(input.sizes(), strides, dim, WIDTH, 1, |tile| {
        let line = Axis { size: tile.line.size, steps: [tile.line.steps[0]] };
        let start = input.as_ptr().wrapping_offset(tile.start[0] as isize);
        best.clear();
        // SAFETY: the tile's elements are elements of the view.
        unsafe {
            if tile.lane.size == 1 {
                best.push(search(start, line, choice));
            } else {
                search_lines(start, line, tile.lane, choice, &mut best);
            }
        }
        for (lane, &(value, index)) in (0..).zip(&best) {
            let [value_at, index_at] = [1, 2].map(|view| tile.start[view] + lane * tile.lane.steps[view]);
            // SAFETY: the tile's lanes are positions of the outputs.
            unsafe {
                if let Some(values) = &mut values {
                    values.set(value_at, T::from_compute(value));
                }
                indices.set(index_at, index);
            }
        }
    });
    Ok(())
}

/// Elements whose best is found with vectors before it is located.
pub(in crate::cpu) const BLOCK: usize = 2048;

/// The best element of a line and its index.
///
/// # Safety
/// The line has at least one element, and its elements from `start` on are valid for reads.
unsafe fn search<T: Element<Compute: Ordered>>(
    start: *const T,
    line: Axis<1>,
    choice: impl Choice,
) -> (T::Compute, i64) {
    // SAFETY: the first element exists.
    let mut best = (unsafe { *start }.to_compute(), 0);
    if line.steps[0] != 1 {
        for index in 1..line.size {
            // SAFETY: the caller's promise.
            let value = unsafe { *start.offset((index * line.steps[0]) as isize) }.to_compute();
            if choice.replaces(value, best.0) {
                best = (value, index);
            }
        }
        return best;
    }
    // SAFETY: the caller's promise.
    let elements = unsafe { std::slice::from_raw_parts(start, line.size as usize) };
    for (block, elements) in elements.chunks(BLOCK).enumerate() {
        let value = widest_over::<T, _>(
            #[inline(always)]
            || best_of(elements, choice),
        );
        if choice.replaces(value, best.0) {
            let is_best = |element: &T| same(element.to_compute(), value);
            let within = elements.iter().position(is_best).unwrap_or(0);
            best = (value, (block * BLOCK + within) as i64);
        }
    }
    best
}

/// The best of at least one element.
#[inline(always)]
fn best_of<T: Element<Compute: Ordered>>(elements: &[T], choice: impl Choice) -> T::Compute {
    let keep = |old: T::Compute, new: T::Compute| select(choice.replaces(new, old), new, old);
    fold_lanes(elements, elements[0].to_compute(), |old, new: T| keep(old, new.to_compute()), keep)
}

/// Elements of each line whose best is found before it is located.
pub(in crate::cpu) const ROWS: i64 = 32;

/// The best elements of neighbouring lines and their indices.
///
/// # Safety
/// As for [`search`], for every line.
unsafe fn search_lines<T: Element<Compute: Ordered>, const N: usize>(
    start: *const T,
    line: Axis<1>,
    lane: Axis<N>,
    choice: impl Choice,
    best: &mut Scratch<(T::Compute, i64)>,
) {
    let (step, lane_step) = (line.steps[0], lane.steps[0]);
    let mut values = Scratch::filled(T::Compute::ZERO, lane.size as usize);
    for first in (0..line.size).step_by(ROWS as usize) {
        let rows = first..line.size.min(first + ROWS);
        widest_over::<T, _>(
            #[inline(always)]
            || {
                for index in rows.clone() {
                    let row = start.wrapping_offset((index * step) as isize);
                    let keep = |value: &mut T::Compute, new: T| {
                        let new = new.to_compute();
                        *value = select((index == first) | choice.replaces(new, *value), new, *value);
                    };
                    // SAFETY: the caller's promise.
                    unsafe { for_each_in_row(row, lane_step, &mut values, keep) };
                }
            },
        );
        for (lane, &value) in (0..).zip(&values) {
            let known = best.get(lane as usize).copied();
            if known.is_some_and(|(old, _)| !choice.replaces(value, old)) {
                continue;
            }
            let is_best = |index: &i64| {
                // SAFETY: the caller's promise.
                same(unsafe { *start.offset((index * step + lane * lane_step) as isize) }.to_compute(), value)
            };
            let found = (value, rows.clone().find(is_best).unwrap_or(first));
            match best.get_mut(lane as usize) {
                Some(best) => *best = found,
                None => best.push(found),
            }
        }
    }
}

/// Whether two numbers are equal, NaN to NaN too.
#[inline(always)]
fn same<C: Ordered>(a: C, b: C) -> bool {
    a.equal(b) || (!a.equal(a) && !b.equal(b))
}
