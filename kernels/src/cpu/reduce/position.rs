//! Where the largest and the smallest element are.
//!
//! NaN counts as both; of equal elements the first wins.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::axes::{Axis, Walk, axes, count, merge};
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::extreme::{Choice, Largest, Smallest, best_of, refuse_empty};
use crate::cpu::converted::widest_of;
use crate::cpu::lanes::{SUMS, for_each_in_row};

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
    // Row-major order decides between equals: parts are searched in threads, and compared in that order.
    let mut outer = merge(axes(input.sizes(), [input.strides()], |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1] });
    let pieces = (row.size as usize).div_ceil(PIECE);
    let parts = count(&outer) * pieces;
    let mut found = Scratch::filled((T::Compute::ZERO, 0), parts);
    let (source, target) = (Shared(input.as_ptr().cast_mut()), Shared(found.as_mut_ptr()));
    parallel::for_each_range_of(PIECE.min(row.size as usize), parts, |range| {
        let mut rows = Walk::starting_at(&outer, range.start / pieces);
        let mut start = 0;
        for part in range.clone() {
            let (number, first) = ((part / pieces) as i64, (part % pieces * PIECE) as i64);
            if first == 0 || part == range.start {
                start = rows.next().map_or(start, |[start]| start);
            }
            let piece = Axis { size: (row.size - first).min(PIECE as i64), ..row };
            // SAFETY: the piece's elements are elements of the view; each part has one thread.
            unsafe {
                let (value, index) =
                    search(source.at(start + first * row.steps[0]).cast_const(), piece, choice);
                *target.at(part as i64) = (value, number * row.size + first + index);
            }
        }
    });
    let best =
        found.iter().copied().reduce(|best, next| if choice.replaces(next.0, best.0) { next } else { best });
    out.write(best.map(|(_, index)| index))
}

/// Elements of a row that are searched at a time.
pub(in crate::cpu) const PIECE: usize = 1 << 14;

/// Lines that are searched together where they lie closer in memory than a line's elements: their best elements and
/// positions fill half of the first cache.
pub(in crate::cpu) const WIDTH: usize = 2048;

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
    let none = || Best { values: Scratch::new(), places: Scratch::new() };
    let source = Shared(input.as_ptr().cast_mut());
    let (values, indices) =
        (values.as_mut().map(|values| Shared(values.as_mut_ptr())), Shared(indices.as_mut_ptr()));
    for_each_tile(input.sizes(), strides, dim, WIDTH, 1, none, |best, tile| {
        let line = Axis { size: tile.line.size, steps: [tile.line.steps[0]] };
        let start = source.at(tile.start[0]).cast_const();
        best.values.clear();
        best.places.clear();
        // SAFETY: the tile's elements are elements of the view.
        unsafe {
            if tile.lane.size == 1 {
                let (value, index) = search(start, line, choice);
                best.values.push(value);
                best.places.push(index);
            } else {
                search_lines(start, line, tile.lane.size as usize, tile.lane.steps[0], choice, best);
            }
        }
        for (lane, (&value, &index)) in (0..).zip(best.values.iter().zip(&best.places)) {
            let [value_at, index_at] = [1, 2].map(|view| tile.start[view] + lane * tile.lane.steps[view]);
            // SAFETY: the tile's lanes are positions of the outputs, which no other tile has.
            unsafe {
                if let Some(values) = &values {
                    *values.at(value_at) = T::from_compute(value);
                }
                *indices.at(index_at) = index;
            }
        }
    });
    Ok(())
}

/// The best elements of lines, and their indices.
struct Best<C> {
    values: Scratch<C>,
    places: Scratch<i64>,
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
        widest_of::<T, _>(
            #[inline(always)]
            || {
                let value = best_of(elements, choice);
                if choice.replaces(value, best.0) {
                    best = (value, (block * BLOCK + first_of(elements, value)) as i64);
                }
            },
        );
    }
    best
}

/// The position of the first element that is `value`; 0 if there is none.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn first_of<T: Element<Compute: Ordered>>(elements: &[T], value: T::Compute) -> usize {
    let is_nan = !value.equal(value);
    let mut first = 0;
    for block in elements.as_chunks::<SUMS>().0 {
        let mut found = false;
        for lane in 0..SUMS {
            found |= block[lane].to_compute().equal(value);
        }
        if found | is_nan {
            break;
        }
        first += SUMS;
    }
    let same = |element: &T| same(element.to_compute(), value);
    elements[first..].iter().position(same).map_or(0, |within| first + within)
}

/// Elements of each line whose best is found before it is compared with that of others.
pub(in crate::cpu) const ROWS: i64 = 4096;

/// The best elements of `lanes` neighbouring lines and their indices.
///
/// # Safety
/// As for [`search`], for every line.
unsafe fn search_lines<T: Element<Compute: Ordered>>(
    start: *const T,
    line: Axis<1>,
    lanes: usize,
    lane_step: i64,
    choice: impl Choice,
    best: &mut Best<T::Compute>,
) {
    let row = |index: i64| start.wrapping_offset((index * line.steps[0]) as isize);
    let mut values = Scratch::filled(T::Compute::ZERO, lanes);
    let mut places = Scratch::filled(0, lanes);
    for first in (0..line.size).step_by(ROWS as usize) {
        let rows = ROWS.min(line.size - first);
        widest_of::<T, _>(
            #[inline(always)]
            || {
                let keep = |value: &mut T::Compute, element: T| *value = element.to_compute();
                places.fill(0);
                // SAFETY: the caller's promise.
                unsafe { for_each_in_row(row(first), lane_step, &mut values, keep) };
                for index in (1..rows).step_by(TOGETHER) {
                    // The last row again where there are no more: it replaces nothing that is equal.
                    let rows: [_; TOGETHER] =
                        std::array::from_fn(|next| row(first + (index + next as i64).min(rows - 1)));
                    // SAFETY: the caller's promise.
                    unsafe {
                        if lane_step == 1 {
                            take_rows(rows, 1, index as u32, choice, &mut values, &mut places);
                        } else {
                            take_rows(
                                rows,
                                lane_step as isize,
                                index as u32,
                                choice,
                                &mut values,
                                &mut places,
                            );
                        }
                    }
                }
            },
        );
        if first == 0 {
            best.values.extend_from_slice(&values);
            best.places.extend(places.iter().map(|&place| i64::from(place)));
            continue;
        }
        for lane in 0..lanes {
            if choice.replaces(values[lane], best.values[lane]) {
                best.values[lane] = values[lane];
                best.places[lane] = first + i64::from(places[lane]);
            }
        }
    }
}

/// Rows whose elements are compared one after the other while a line's best is in a register.
pub(in crate::cpu) const TOGETHER: usize = 4;

/// Compares the elements of rows, which have numbers from `number` on, with the best of their lines.
///
/// # Safety
/// An element for each line, `step` apart from the start of each row on, is valid for reads.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
unsafe fn take_rows<T: Element<Compute: Ordered>>(
    rows: [*const T; TOGETHER],
    step: isize,
    number: u32,
    choice: impl Choice,
    values: &mut [T::Compute],
    places: &mut [u32],
) {
    let lanes = values.len();
    let places = &mut places[..lanes];
    for lane in 0..lanes {
        let (mut value, mut place) = (values[lane], places[lane]);
        for next in 0..TOGETHER {
            // SAFETY: the caller's promise.
            let element = unsafe { *rows[next].offset(lane as isize * step) }.to_compute();
            let replaced = choice.replaces(element, value);
            value = select(replaced, element, value);
            place = select(replaced, number + next as u32, place);
        }
        values[lane] = value;
        places[lane] = place;
    }
}

/// Whether two numbers are equal, NaN to NaN too.
#[inline(always)]
fn same<C: Ordered>(a: C, b: C) -> bool {
    a.equal(b) || (!a.equal(a) && !b.equal(b))
}
