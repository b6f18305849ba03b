//! Rows of elements: folding them, reading and writing them at any step.
//!
//! For use inside [`super::simd::widest`]: everything here is inlined into its caller.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Scratch};

use super::converted::{narrow, widen_into};

/// Partial results of a long row. They live in the first cache rather than in registers, because
/// compilers reliably vectorise a loop over this many.
pub(crate) const LANES: usize = 128;
/// Partial results of a short row: one of the widest registers of `f32`.
pub(crate) const NARROW: usize = 16;

/// Joins the elements of a slice, with independent partial results side by side, so that the latency
/// of one operation does not add up.
#[inline(always)]
pub(crate) fn fold_lanes<A: Copy, P: Copy>(
    elements: &[A],
    start: P,
    take: impl Fn(P, A) -> P,
    join: impl Fn(P, P) -> P,
) -> P {
    let mut lanes = [start; NARROW];
    let mut rest = elements;
    if elements.len() >= 2 * LANES {
        let mut wide = [start; LANES];
        let (fours, rest_of_fours) = elements.as_chunks::<{ 4 * LANES }>();
        for block in fours {
            let (a, b) = block.split_at(2 * LANES);
            let ((a, b), (c, d)) = (a.split_at(LANES), b.split_at(LANES));
            for lane in 0..LANES {
                let partial = take(take(wide[lane], a[lane]), b[lane]);
                wide[lane] = take(take(partial, c[lane]), d[lane]);
            }
        }
        let (ones, end) = rest_of_fours.as_chunks::<LANES>();
        for block in ones {
            for lane in 0..LANES {
                wide[lane] = take(wide[lane], block[lane]);
            }
        }
        for part in wide.as_chunks::<NARROW>().0 {
            for (lane, &partial) in lanes.iter_mut().zip(part) {
                *lane = join(*lane, partial);
            }
        }
        rest = end;
    }
    let (blocks, rest) = rest.as_chunks::<NARROW>();
    for block in blocks {
        for (lane, &element) in lanes.iter_mut().zip(block) {
            *lane = take(*lane, element);
        }
    }
    for (lane, &element) in lanes.iter_mut().zip(rest) {
        *lane = take(*lane, element);
    }
    let mut width = NARROW / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = join(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// As [`fold_lanes`], with [`SUMS`] partial results, which stay in registers. A few elements need none.
#[inline(always)]
pub(crate) fn fold_in_registers<A: Copy, P: Copy>(
    elements: &[A],
    start: P,
    take: impl Fn(P, A) -> P,
    join: impl Fn(P, P) -> P,
) -> P {
    if elements.len() < SUMS / 2 {
        return elements.iter().fold(start, |partial, &element| take(partial, element));
    }
    let mut lanes = [start; SUMS];
    let (blocks, rest) = elements.as_chunks::<SUMS>();
    for block in blocks {
        for lane in 0..SUMS {
            lanes[lane] = take(lanes[lane], block[lane]);
        }
    }
    let mut lanes = together(lanes);
    for lane in 0..rest.len() {
        lanes[lane] = take(lanes[lane], rest[lane]);
    }
    let mut width = SUMS / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = join(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The same values, which compilers keep in wide registers up to here: joined right after a loop, they are kept in pairs.
#[inline(always)]
pub(crate) fn together<V>(values: V) -> V {
    std::hint::black_box(values)
}

/// Partial results that stay in registers. Loops over fewer are unrolled before they could be vectorised.
pub(crate) const SUMS: usize = 32;
/// Terms of a partial sum that are added one after the other before they join the total.
pub(crate) const TERMS: usize = 32;

/// Sums over the elements side by side in `inputs`, all as long as the first: each place adds N terms.
///
/// The order of additions depends on the length alone. An error grows with 1/1024 of it.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(crate) fn sum_terms<A: Copy + Default, C: Arithmetic, const K: usize, const N: usize>(
    inputs: [&[A]; K],
    term: impl Fn([A; K]) -> [C; N],
) -> [C; N] {
    let mut totals = sum_lanes(inputs, term);
    let mut width = SUMS / 2;
    while width > 0 {
        for total in &mut totals {
            for lane in 0..width {
                total[lane] = Arithmetic::add(total[lane], total[lane + width]);
            }
        }
        width /= 2;
    }
    let mut results = [C::ZERO; N];
    for number in 0..N {
        results[number] = totals[number][0];
    }
    results
}

/// As [`sum_terms`], a sum for each lane: of every element whose number leaves the lane's when it is divided by [`SUMS`].
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(crate) fn sum_lanes<A: Copy + Default, C: Arithmetic, const K: usize, const N: usize>(
    inputs: [&[A]; K],
    term: impl Fn([A; K]) -> [C; N],
) -> [[C; SUMS]; N] {
    let length = inputs[0].len();
    let mut totals = [[C::ZERO; SUMS]; N];
    let mut rows = [&[][..]; K];
    let mut rests = [&[][..]; K];
    for input in 0..K {
        (rows[input], rests[input]) = inputs[input][..length].as_chunks::<SUMS>();
        rows[input] = &rows[input][..length / SUMS];
        rests[input] = &rests[input][..length % SUMS];
    }
    for first in (0..length / SUMS).step_by(TERMS) {
        let mut sums = [[C::ZERO; SUMS]; N];
        for row in first..(first + TERMS).min(length / SUMS) {
            let mut blocks = [&rows[0][row]; K];
            for input in 1..K {
                blocks[input] = &rows[input][row];
            }
            for lane in 0..SUMS {
                let mut values = [A::default(); K];
                for input in 0..K {
                    values[input] = blocks[input][lane];
                }
                let terms = term(values);
                for number in 0..N {
                    sums[number][lane] = Arithmetic::add(sums[number][lane], terms[number]);
                }
            }
        }
        for number in 0..N {
            for lane in 0..SUMS {
                totals[number][lane] = Arithmetic::add(totals[number][lane], sums[number][lane]);
            }
        }
    }
    for lane in 0..length % SUMS {
        let mut values = [A::default(); K];
        for input in 0..K {
            values[input] = rests[input][lane];
        }
        let terms = term(values);
        for number in 0..N {
            totals[number][lane] = Arithmetic::add(totals[number][lane], terms[number]);
        }
    }
    totals
}

/// Writes to each element of `out` a function of those beside it in `inputs`, all as long.
///
/// The function's own numbers are best held by value: a loop that reads them from memory is not vectorised.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
pub(crate) fn map_lanes<A: Element, B, const K: usize>(
    inputs: [&[A]; K],
    out: &mut [B],
    map: impl Fn([A; K]) -> B,
) {
    let length = out.len();
    let mut rows = inputs;
    for input in 0..K {
        rows[input] = &inputs[input][..length];
    }
    for lane in 0..length {
        let mut values = [A::default(); K];
        for input in 0..K {
            values[input] = rows[input][lane];
        }
        out[lane] = map(values);
    }
}

/// The row itself if its elements are of the compute type, else a copy in that type.
#[inline(always)]
pub(crate) fn computed<'a, T: Element>(
    row: &'a [T],
    buffer: &'a mut Scratch<T::Compute>,
) -> &'a [T::Compute] {
    if const { T::DTYPE as u8 == T::Compute::DTYPE as u8 } {
        // SAFETY: a dtype has one element type, so that both types are the same.
        return unsafe { std::slice::from_raw_parts(row.as_ptr().cast(), row.len()) };
    }
    widen_into(row, buffer);
    buffer
}

/// Calls `body` with a row of the compute type and writes it to `out`, in place if that is the type of elements.
#[inline(always)]
pub(crate) fn with_computed<T: Element<Compute: Arithmetic>, R>(
    out: &mut [T],
    buffer: &mut Scratch<T::Compute>,
    body: impl FnOnce(&mut [T::Compute]) -> R,
) -> R {
    if const { T::DTYPE as u8 == T::Compute::DTYPE as u8 } {
        // SAFETY: a dtype has one element type, so that both types are the same.
        return body(unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast(), out.len()) });
    }
    buffer.resize(out.len(), T::Compute::ZERO);
    let result = body(buffer);
    narrow(buffer, out);
    result
}

/// Changes each element of a slice, and sums the results, mapped.
#[inline(always)]
pub(crate) fn update_and_sum_lanes<C: Arithmetic>(
    values: &mut [C],
    change: impl Fn(C) -> C,
    map: impl Fn(C) -> C,
) -> C {
    let mut sums = [C::ZERO; LANES];
    for block in values.chunks_mut(LANES) {
        for (sum, value) in sums.iter_mut().zip(block) {
            *value = change(*value);
            *sum = Arithmetic::add(*sum, map(*value));
        }
    }
    fold_lanes(&sums, C::ZERO, Arithmetic::add, Arithmetic::add)
}

/// Appends `length` elements, `step` apart from `start` on, in the compute type.
///
/// # Safety
/// The elements are valid for reads.
#[inline(always)]
pub(crate) unsafe fn read_row<T: Element>(
    start: *const T,
    step: i64,
    length: usize,
    values: &mut Scratch<T::Compute>,
) {
    if step == 1 {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts(start, length) };
        values.extend_mapped(row, |element| element.to_compute());
    } else {
        values.extend_from_fn(length, |index| {
            // SAFETY: the caller's promise.
            unsafe { *start.offset(index as isize * step as isize) }.to_compute()
        });
    }
}

/// Writes elements, `step` apart from `start` on, from the compute type.
///
/// # Safety
/// As many elements are valid for writes.
#[inline(always)]
pub(crate) unsafe fn write_row<T: Element>(start: *mut T, step: i64, values: &[T::Compute]) {
    if step == 1 {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts_mut(start, values.len()) };
        for index in 0..values.len() {
            row[index] = T::from_compute(values[index]);
        }
    } else {
        for (index, &value) in values.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *start.offset(index as isize * step as isize) = T::from_compute(value) }
        }
    }
}

/// Calls `body` with each value and the element of the row beside it.
///
/// # Safety
/// As many elements as there are values, `step` apart from `start` on, are valid for reads.
#[inline(always)]
pub(crate) unsafe fn for_each_in_row<T: Copy, P>(
    start: *const T,
    step: i64,
    values: &mut [P],
    body: impl Fn(&mut P, T),
) {
    if step == 1 {
        // SAFETY: the caller's promise.
        let row = unsafe { std::slice::from_raw_parts(start, values.len()) };
        for index in 0..row.len() {
            body(&mut values[index], row[index]);
        }
    } else {
        for (index, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            body(value, unsafe { *start.offset(index as isize * step as isize) });
        }
    }
}
