//! Elements in another order: mirrored, and moved along dimensions.

use std::ops::Range;

use opsmith_runtime::axes::{Axes, Axis, axes, merge};
use opsmith_runtime::copy::copy_bytes;
use opsmith_runtime::layout::{contiguous_strides, numel, wrap_dim};
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::simd::widest;
use opsmith_runtime::{Dims, Element, Result, Scratch, View, ViewMut};

use crate::cpu::copy::{copy_into, with_slice};
use crate::cpu::row_major::{advance, for_each_stretch, index_of};
use crate::cpu::strides::expect_sizes;

/// The elements in reversed order along dimensions: `[1, 2, 3]` becomes `[3, 2, 1]`.
///
/// # Errors
/// If a dimension is out of range.
pub fn flip<T: Element>(self_: View<'_, T>, dims: &[i64], mut out: ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are moved.
    flip_bits(self_.bits(), dims, unsafe { out.bits() })
}

#[inline(never)]
fn flip_bits<B: Element>(self_: View<'_, B>, dims: &[i64], mut out: ViewMut<'_, B>) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    if self_.numel() == 0 {
        return Ok(());
    }
    let mut strides: Dims = self_.strides().into();
    let mut start = 0;
    for &dim in dims {
        let dim = wrap_dim(dim, self_.dim())?;
        if let Some(stride) = strides.get_mut(dim) {
            start += *stride * (self_.sizes()[dim] - 1);
            *stride = -*stride;
        }
    }
    let source = self_.as_ptr().wrapping_offset(start as isize);
    let mut outer = merge(axes(out.sizes(), [out.strides(), &strides], |_| true));
    let Some(row) = outer.pop().filter(|row| row.steps == [1, -1]) else {
        // SAFETY: the same elements, walked from the other end.
        return copy_into(&unsafe { View::from_raw(source, self_.sizes(), &strides) }, &mut out);
    };
    let (source, target) = (Shared(source.cast_mut()), Shared(out.as_mut_ptr()));
    parallel::for_each_range(self_.numel(), CHUNK, |range| {
        for_each_stretch(&outer, row, range, &mut |[to, from], length| {
            // SAFETY: the stretches lie in the views, and each has one thread.
            unsafe { reverse_row(source.at(from), target.at(to), length) };
        });
    });
    Ok(())
}

/// Copies elements from the last one, at `from`, backwards.
///
/// # Safety
/// `length` elements up to `from` are valid for reads, and those from `to` on for writes; they do not overlap.
unsafe fn reverse_row<B: Copy>(from: *const B, to: *mut B, length: usize) {
    widest(
        #[inline(always)]
        move || {
            for at in 0..length {
                // SAFETY: the caller's promise.
                unsafe { *to.add(at) = *from.sub(at) };
            }
        },
    );
}

/// The elements moved along dimensions, the last ones to the front: `[1, 2, 3]` by 1 is `[3, 1, 2]`.
/// Without dimensions, in row-major order.
///
/// # Errors
/// If a dimension is out of range.
pub fn roll<T: Element>(
    self_: View<'_, T>,
    shifts: &[i64],
    dims: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    roll_bits(self_.bits(), shifts, dims, unsafe { out.bits() })
}

#[inline(never)]
fn roll_bits<B: Element>(
    self_: View<'_, B>,
    shifts: &[i64],
    dims: &[i64],
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let count = self_.numel() as i64;
    if count == 0 {
        return Ok(());
    }
    let turned = Turned::new(self_.sizes(), shifts, dims)?;
    let mut copied = Scratch::new();
    let elements = match self_.as_slice() {
        Some(elements) => elements,
        None => {
            copied.resize(self_.numel(), B::default());
            let strides = contiguous_strides(self_.sizes());
            // SAFETY: as many elements, in row-major order.
            let mut target = unsafe { ViewMut::from_raw(copied.as_mut_ptr(), self_.sizes(), &strides) };
            copy_into(&self_, &mut target)?;
            &copied[..]
        }
    };
    with_slice(&mut out, |out| {
        let (count, target) = (out.len(), Shared(out.as_mut_ptr()));
        parallel::for_each_range(count, CHUNK, |numbers| {
            turned.for_each_piece(numbers, &mut |to, from| {
                let source = &elements[from];
                // SAFETY: the output has as many elements as the source; those of a range have one thread.
                unsafe {
                    copy_bytes(source.as_ptr().cast(), target.at(to as i64).cast(), size_of_val(source))
                };
            });
        });
    })
}

/// Elements that move along dimensions, in rows: neighbours behind the last dimension that moves, and those along it.
struct Turned {
    /// Size of each dimension before, how far it moves, and its stride.
    outer: Axes<2>,
    /// Elements of a row.
    row: usize,
    /// Elements of a row that move to its front.
    split: usize,
}

impl Turned {
    fn new(sizes: &[i64], shifts: &[i64], dims: &[i64]) -> Result<Turned> {
        let count = numel(sizes);
        if dims.is_empty() {
            let shift = shifts.first().copied().unwrap_or(0).rem_euclid(count);
            return Ok(Turned { outer: Axes::new(), row: count as usize, split: shift as usize });
        }
        // How far each dimension moves in all.
        let mut moves = Dims::from_elem(0, sizes.len());
        for (&shift, &dim) in shifts.iter().zip(dims) {
            let dim = wrap_dim(dim, sizes.len())?;
            if let (Some(total), Some(&size)) = (moves.get_mut(dim), sizes.get(dim)) {
                *total = (*total + shift.rem_euclid(size)).rem_euclid(size);
            }
        }
        let strides = contiguous_strides(sizes);
        let mut outer: Axes<2> = (0..sizes.len())
            .map(|dim| Axis { size: sizes[dim], steps: [moves[dim], strides[dim]] })
            .collect();
        outer.truncate(1 + moves.iter().rposition(|shift| *shift != 0).unwrap_or(0));
        let last = outer.pop().unwrap_or(Axis { size: 1, steps: [0, 1] });
        let [shift, inner] = last.steps;
        Ok(Turned { outer, row: (last.size * inner) as usize, split: (shift * inner) as usize })
    }

    /// Calls `body` for pieces that cover the places of these numbers: the first place of each, and the elements that move there.
    fn for_each_piece(&self, numbers: Range<usize>, body: &mut dyn FnMut(usize, Range<usize>)) {
        let sizes: Dims = self.outer.iter().map(|axis| axis.size).collect();
        let mut index = index_of(numbers.start / self.row, &sizes);
        let mut at = numbers.start % self.row;
        let mut number = numbers.start;
        while number < numbers.end {
            let before = |(axis, index): (&Axis<2>, &i64)| {
                let from = index - axis.steps[0];
                (if from < 0 { from + axis.size } else { from }) * axis.steps[1]
            };
            let start = self.outer.iter().zip(&index).map(before).sum::<i64>() as usize;
            while at < self.row && number < numbers.end {
                let (from, end) = if at < self.split {
                    (at + self.row - self.split, self.split)
                } else {
                    (at - self.split, self.row)
                };
                let length = (end - at).min(numbers.end - number);
                body(number, start + from..start + from + length);
                (at, number) = (at + length, number + length);
            }
            at = 0;
            advance(&mut index, &sizes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, indices};

    /// Elements of several strides, the last ones more than a chunk, whose numbers are their own in row-major order.
    fn arrays() -> Vec<Array<i32>> {
        let dense = |sizes: &[i64]| Array::new(sizes, 0..sizes.iter().product::<i64>() as i32);
        let mut all =
            vec![dense(&[]), dense(&[0, 3]), dense(&[1, 7]), dense(&[5, 6, 7]).permuted(&[2, 0, 1])];
        all.extend([
            dense(&[20_000]),
            dense(&[9, 3001]).reversed(1),
            dense(&[9000, 3]).halved(0).reversed(0),
        ]);
        for array in &mut all {
            for (number, index) in indices(&array.sizes.clone()).iter().enumerate() {
                array.set(index, number as i32);
            }
        }
        all
    }

    #[test]
    fn elements_move_as_index_arithmetic_says() {
        let cases: [(&[i64], &[i64]); 5] =
            [(&[3], &[]), (&[-2], &[-1]), (&[700], &[0]), (&[1, 5], &[0, -1]), (&[2, -2], &[0, 0])];
        for (threads, a) in
            [1, 2, 5].into_iter().flat_map(|threads| arrays().into_iter().map(move |a| (threads, a)))
        {
            parallel::set_num_threads(threads).unwrap();
            let (rank, sizes) = (a.sizes.len() as i64, &a.sizes);
            let mut out = Array::zeros(sizes);
            for (shifts, dims) in cases {
                roll(a.view(), shifts, dims, out.view_mut()).unwrap();
                let count = out.to_vec().len() as i64;
                let from = |number: i64, mut index: Dims| {
                    if dims.is_empty() {
                        return (number - shifts[0]).rem_euclid(count);
                    }
                    for (shift, dim) in shifts.iter().zip(dims).filter(|_| rank > 0) {
                        let dim = dim.rem_euclid(rank) as usize;
                        index[dim] = (index[dim] - shift).rem_euclid(sizes[dim]);
                    }
                    index.iter().zip(sizes).fold(0, |number, (index, size)| number * size + index)
                };
                let expected =
                    indices(sizes).into_iter().enumerate().map(|(n, index)| from(n as i64, index) as i32);
                assert!(out.to_vec().into_iter().eq(expected), "{sizes:?} by {shifts:?} along {dims:?}");
            }
            for dim in 0..rank {
                flip(a.view(), &[dim], out.view_mut()).unwrap();
                assert_eq!(out.reversed(dim as usize).to_vec(), a.to_vec(), "{sizes:?}");
                out = Array::zeros(sizes);
            }
        }
    }

    #[test]
    fn bytes_are_copied_from_either_end() {
        let source: Vec<u8> = (0..9000).map(|at| (at % 251) as u8).collect();
        let (mut target, mut expected) = (vec![0u8; 20_000], vec![0u8; 20_000]);
        let page = source.as_ptr().addr().wrapping_sub(target.as_ptr().addr()) & 0xfff;
        for (further, bytes) in
            [(0, 9000), (1, 9000), (12, 515), (63, 600), (1023, 8191), (1024, 700), (12, 3)]
        {
            // SAFETY: the bytes lie in the vectors.
            unsafe { copy_bytes(source.as_ptr(), target.as_mut_ptr().add(page + further), bytes) };
            expected[page + further..][..bytes].copy_from_slice(&source[..bytes]);
            assert!(target == expected, "{further} {bytes}");
        }
    }

    #[test]
    fn moved_elements() {
        let a = Array::new(&[2, 3], [1, 2, 3, 4, 5, 6]);
        let mut out = Array::zeros(&[2, 3]);
        flip(a.view(), &[0, -1], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [6, 5, 4, 3, 2, 1]);
        roll(a.view(), &[1, -1], &[1, 0], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [6, 4, 5, 3, 1, 2]);
        roll(a.view(), &[2], &[], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [5, 6, 1, 2, 3, 4]);
    }
}
