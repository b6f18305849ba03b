//! Products with weights of four bits, which stay packed: a row is unpacked where it is multiplied.
//!
//! A row's numbers lie with those of even places first, as the low and the high halves of its bytes give them, and so do the rows
//! that they are multiplied with.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{DType, Element, Result, Scratch, View, ViewMut};

use super::{MatrixMut, Multiply, row_major, sizes_differ};
use crate::cpu::lanes::sum_terms;
use crate::cpu::simd::widest;

/// Rows up to which each is multiplied with a weight's numbers one by one, while these are in the cache.
pub(in crate::cpu) const FEW_ROWS: usize = 8;
/// Bytes that are unpacked at a time.
pub(in crate::cpu) const PART: usize = 16;
/// Rows of weights that are unpacked at a time.
pub(in crate::cpu) const TILE: usize = 64;

/// A number of a product's arithmetic.
pub trait Real: Multiply<Compute = Self> + Arithmetic + From<u8> {}

impl<C: Multiply<Compute = C> + Arithmetic + From<u8>> Real for C {}

/// Weights `(n, k)`, packed, with the factors and zeros of groups of neighbours in a row.
struct Weights<'a, C> {
    packed: &'a [u8],
    scales: &'a [C],
    /// The number that stands for zero, for each group.
    zeros: Option<&'a [C]>,
    /// Whether the highest bit is that of a sign.
    is_signed: bool,
    /// Numbers of a row.
    length: usize,
    /// Groups of a row.
    groups: usize,
}

/// The product of rows `(…, k)` and the transposed weights `(n, k)`, packed as `(n, k / 2)`: `(…, n)`. `scales` and `zeros` are
/// `(n, groups)`.
///
/// # Errors
/// If sizes differ.
pub fn mm_int4<T: Element<Compute: Real>>(
    self_: View<'_, T>,
    packed: View<'_, u8>,
    scales: View<'_, T>,
    zeros: Option<View<'_, T>>,
    dtype: DType,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let computed = |view: View<'_, T>| Scratch::mapped(&view.to_contiguous(), |number| number.to_compute());
    let (&[count, bytes], &[scaled, groups]) = (packed.sizes(), scales.sizes()) else {
        return Err(sizes_differ(packed.sizes(), scales.sizes()));
    };
    if scaled != count || groups < 1 || 2 * bytes % groups != 0 {
        return Err(sizes_differ(packed.sizes(), scales.sizes()));
    }
    let (count, length) = (count as usize, 2 * bytes as usize);
    if out.numel() == 0 {
        return Ok(());
    }
    let rows = out.numel() / count;
    if self_.numel() != rows * length || zeros.as_ref().is_some_and(|zeros| zeros.sizes() != scales.sizes()) {
        return Err(sizes_differ(self_.sizes(), packed.sizes()));
    }
    if length == 0 {
        return out.write((0..rows * count).map(|_| T::default()));
    }
    let packed = packed.to_contiguous();
    let (scales, zeros) = (computed(scales), zeros.map(computed));
    let weights = Weights {
        packed: &packed,
        scales: &scales,
        zeros: zeros.as_deref().map(|zeros| &zeros[..]),
        is_signed: dtype == DType::I4,
        length,
        groups: groups as usize,
    };
    let left = parted(&computed(self_), length);
    let mut results = Scratch::filled(T::Compute::ZERO, rows * count);
    let address = Shared(results.as_mut_ptr());
    // Of few rows, each row of weights is multiplied while it is in the first cache.
    let tile = if rows > FEW_ROWS { TILE } else { 1 };
    parallel::for_each_range(count.div_ceil(tile), TILE / tile, |tiles| {
        let mut numbers = Scratch::filled(T::Compute::ZERO, tile * length);
        for first in tiles.map(|number| number * tile) {
            let some = tile.min(count - first);
            for (number, row) in numbers.chunks_exact_mut(length).take(some).enumerate() {
                weights.unpack(first + number, row);
            }
            // SAFETY: a tile's columns are those of one thread, and lie in the results.
            unsafe { multiply(&left, &numbers[..some * length], length, address.at(first as i64), count) };
        }
    });
    out.write(results.iter().map(|result| T::from_compute(*result)))
}

/// Rows with the numbers of even places first.
fn parted<C: Real>(rows: &[C], length: usize) -> Scratch<C> {
    let mut parted = Scratch::with_capacity(rows.len());
    for row in rows.chunks_exact(length) {
        parted.extend(row.iter().step_by(2).chain(row.iter().skip(1).step_by(2)).copied());
    }
    parted
}

/// Writes the products of rows, and of rows of weights, side by side in lines of `line` results.
///
/// # Safety
/// Each line has room for a result for each row of weights, which nothing else reads or writes.
unsafe fn multiply<C: Real>(left: &[C], weights: &[C], length: usize, results: *mut C, line: usize) {
    let (rows, count) = (left.len() / length, weights.len() / length);
    if rows > FEW_ROWS {
        let (left, right) = (row_major(left, rows, length), row_major(weights, count, length).transposed());
        let out = MatrixMut { data: results, row_stride: line as i64, column_stride: 1 };
        // SAFETY: the operands are slices, and the caller promises the room for results.
        return unsafe { C::multiply(left, right, None, C::ONE, out) };
    }
    widest(
        #[inline(always)]
        move || {
            for (number, weights) in weights.chunks_exact(length).enumerate() {
                for (row, left) in left.chunks_exact(length).enumerate() {
                    let [sum] = sum_terms([left, weights], |[a, b]| [Arithmetic::mul(a, b)]);
                    // SAFETY: the caller's promise.
                    unsafe { results.add(row * line + number).write(sum) };
                }
            }
        },
    );
}

impl<C: Real> Weights<'_, C> {
    /// The numbers of a row, those of even places first.
    fn unpack(&self, number: usize, row: &mut [C]) {
        let bytes = &self.packed[number * self.length / 2..][..self.length / 2];
        let (even, odd) = row.split_at_mut(self.length / 2);
        let size = self.length / self.groups;
        if size.is_multiple_of(2) {
            return widest(
                #[inline(always)]
                move || {
                    for group in 0..self.groups {
                        let places = group * size / 2..(group + 1) * size / 2;
                        let (even, odd) = (&mut even[places.clone()], &mut odd[places.clone()]);
                        self.unpack_group(&bytes[places], number * self.groups + group, even, odd);
                    }
                },
            );
        }
        // A byte may have numbers of two groups.
        for (place, byte) in bytes.iter().enumerate() {
            let group = |place: usize| number * self.groups + place / size;
            let (mut low, mut high) = ([C::ZERO], [C::ZERO]);
            self.unpack_group(&[*byte], group(2 * place), &mut low, &mut [C::ZERO]);
            self.unpack_group(&[*byte], group(2 * place + 1), &mut [C::ZERO], &mut high);
            ([even[place]], [odd[place]]) = (low, high);
        }
    }

    /// The numbers of a group's bytes: the low halves and the high ones.
    #[inline(always)]
    fn unpack_group(&self, bytes: &[u8], group: usize, low: &mut [C], high: &mut [C]) {
        let scale = self.scales[group];
        let zero = self.zeros.map_or(C::ZERO, |zeros| zeros[group]);
        // With the sign's bit turned, a half byte is the number and 8.
        let (turned, bias) = if self.is_signed { (0x88, C::from(8)) } else { (0, C::ZERO) };
        let number = |half: u8| {
            let whole = Arithmetic::sub(Arithmetic::sub(C::from(half), bias), zero);
            Arithmetic::mul(whole, scale)
        };
        // Groups are short: loops of a known length need no other for the rest of a vector.
        let (parts, rest) = bytes.as_chunks::<PART>();
        let (low_parts, low_rest) = low.as_chunks_mut::<PART>();
        let (high_parts, high_rest) = high.as_chunks_mut::<PART>();
        for ((bytes, low), high) in parts.iter().zip(low_parts).zip(high_parts) {
            let bytes = *bytes;
            for at in 0..PART {
                low[at] = number((bytes[at] ^ turned) & 15);
            }
            for at in 0..PART {
                high[at] = number((bytes[at] ^ turned) >> 4);
            }
        }
        for ((byte, low), high) in rest.iter().zip(low_rest).zip(high_rest) {
            *low = number((byte ^ turned) & 15);
            *high = number((byte ^ turned) >> 4);
        }
    }
}
