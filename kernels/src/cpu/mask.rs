//! Elements that are zero or not, in row-major order: their number, and what belongs to those that are not.
//!
//! In: elements of any strides. Out: copies of others' elements, or indices, one after the other. Flags are counted in
//! chunks, so that several threads know where those of each chunk begin.

use std::marker::PhantomData;
use std::ops::Range;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::{Axes, Axis};
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::simd::widest;
use opsmith_runtime::{DType, Element, Scratch, View};

use super::row_major::{advance, for_each_stretch, index_of, rows};
use crate::math::truth;

/// Elements in row-major order, each of which is zero or not, and the number of those that are not.
pub(crate) struct Mask<'a> {
    /// Address of the first element, of which each has so many bytes.
    data: Shared<u8>,
    bytes: usize,
    outer: Axes<1>,
    row: Axis<1>,
    numel: usize,
    /// Writes for each element of a row, from an address on and so many elements apart, a byte that is 0 if the element is; none
    /// if the elements are such bytes, one after the other.
    read: Option<unsafe fn(*const u8, i64, &mut [u8])>,
    /// The number of elements other than zero before each chunk, and in all.
    starts: Scratch<usize>,
    elements: PhantomData<&'a u8>,
}

/// Some elements of a mask.
pub(crate) struct Chunk<'a> {
    /// Number of the first.
    first: usize,
    /// A byte for each, which is 0 if the element is.
    pub flags: &'a [u8],
    /// Numbers of those that are not 0, among all of the mask.
    pub numbers: Range<usize>,
}

impl Chunk<'_> {
    pub(crate) fn elements(&self) -> Range<usize> {
        self.first..self.first + self.flags.len()
    }
}

impl<'a> Mask<'a> {
    /// The elements of a view.
    pub(crate) fn new<T: Element<Compute: Arithmetic>>(view: &View<'a, T>) -> Mask<'a> {
        let (outer, row) = rows(view.sizes(), [view.strides()]);
        let is_read = matches!(T::DTYPE, DType::Bool | DType::U8 | DType::I8) && view.is_contiguous();
        let mut mask = Mask {
            data: Shared(view.as_ptr().cast_mut().cast()),
            bytes: size_of::<T>(),
            outer,
            row,
            numel: view.numel(),
            read: if is_read { None } else { Some(read_row::<T>) },
            starts: Scratch::new(),
            elements: PhantomData,
        };
        mask.count();
        mask
    }

    fn count(&mut self) {
        let chunks = self.numel.div_ceil(CHUNK);
        let mut starts = Scratch::filled(0, chunks + 1);
        let counts = Shared(starts[1..].as_mut_ptr());
        parallel::for_each_range_of(CHUNK, chunks, |chunks| {
            // SAFETY: there is a count for each chunk, which one thread has.
            self.for_each_chunk(chunks, &mut |chunk, flags| unsafe {
                *counts.at(chunk as i64) = count_true(flags)
            });
        });
        for chunk in 0..chunks {
            starts[chunk + 1] += starts[chunk];
        }
        self.starts = starts;
    }

    /// The number of elements that are not zero.
    pub(crate) fn total(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Calls `body` with the number of each of these chunks, and its flags.
    fn for_each_chunk(&self, chunks: Range<usize>, body: &mut dyn FnMut(usize, &[u8])) {
        let mut buffer = Scratch::new();
        for chunk in chunks {
            let numbers = chunk * CHUNK..self.numel.min((chunk + 1) * CHUNK);
            let Some(read) = self.read else {
                // SAFETY: the mask's elements are bytes, one after the other.
                let flags =
                    unsafe { std::slice::from_raw_parts(self.data.at(numbers.start as i64), numbers.len()) };
                body(chunk, flags);
                continue;
            };
            buffer.resize(numbers.len(), 0);
            let mut left = &mut buffer[..];
            for_each_stretch(&self.outer, self.row, numbers, &mut |[position], length| {
                let (flags, others) = std::mem::take(&mut left).split_at_mut(length);
                left = others;
                // SAFETY: the stretches lie in the view.
                unsafe { read(self.data.at(position * self.bytes as i64), self.row.steps[0], flags) };
            });
            body(chunk, &buffer);
        }
    }

    /// Calls `body` with all chunks, in several threads if it takes long.
    pub(crate) fn share(&self, body: &(dyn Fn(Chunk<'_>) + Sync)) {
        parallel::for_each_range_of(CHUNK, self.starts.len() - 1, |chunks| {
            self.for_each_chunk(chunks, &mut |chunk, flags| {
                let numbers = self.starts[chunk]..self.starts[chunk + 1];
                body(Chunk { first: chunk * CHUNK, flags, numbers });
            });
        });
    }

    /// Writes those elements of a view of the mask's shape where the mask is true, as far as there is room for them.
    pub(crate) fn pick<B: Element>(&self, elements: &View<'_, B>, out: &mut [B]) {
        let (outer, row) = rows(elements.sizes(), [elements.strides()]);
        let (source, target) = (Shared(elements.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
        let (room, step) = (out.len(), row.steps[0] as isize);
        self.share(&|chunk| {
            let (mut left, mut number) = (chunk.flags, chunk.numbers.start);
            let end = chunk.numbers.end.min(room);
            for_each_stretch(&outer, row, chunk.elements(), &mut |[from], length| {
                let (flags, others) = left.split_at(length);
                left = others;
                let (from, to) = (source.at(from).cast_const(), target.at(0));
                let put = |step: isize| {
                    move |number, at| {
                        // SAFETY: the stretches lie in the view, and the numbers in the chunk's part of the output.
                        unsafe { *to.add(number) = *from.offset(at as isize * step) }
                    }
                };
                number = match step {
                    1 => for_each_true(flags, number..end, put(1)),
                    _ => for_each_true(flags, number..end, put(step)),
                };
            });
        });
    }

    /// Writes the indices, in a shape of the mask's elements, where the mask is true.
    pub(crate) fn write_indices(&self, sizes: &[i64], out: &mut [i64]) {
        let Some((&last, others)) = sizes.split_last() else { return };
        let (target, last) = (Shared(out.as_mut_ptr()), last as usize);
        self.share(&|chunk| {
            let mut index = index_of(chunk.first / last, others);
            let (mut along, mut left, mut numbers) = (chunk.first % last, chunk.flags, chunk.numbers);
            while !numbers.is_empty() {
                let (flags, rest) = left.split_at(left.len().min(last - along));
                // SAFETY: the output has an index for each number, and those of a chunk have one thread.
                numbers.start =
                    unsafe { write_row(flags, numbers.clone(), &index, along as i64, target.at(0)) };
                (along, left) = (0, rest);
                advance(&mut index, others);
            }
        });
    }
}

/// Writes the indices of the true ones among flags of a row: `index`, and the place in the row, of which the first is `along`.
/// Returns the number of the next one.
///
/// # Safety
/// There is room for an index at each of the numbers from `out` on.
unsafe fn write_row(flags: &[u8], numbers: Range<usize>, index: &[i64], along: i64, out: *mut i64) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match *index {
            [] => for_each_true(flags, numbers, |number, at| *out.add(number) = along + at as i64),
            [row] => for_each_true(flags, numbers, |number, at| {
                out.add(2 * number).cast::<[i64; 2]>().write([row, along + at as i64]);
            }),
            _ => for_each_true(flags, numbers, |number, at| {
                let to = out.add(number * (index.len() + 1));
                (0..index.len()).for_each(|dim| *to.add(dim) = index[dim]);
                *to.add(index.len()) = along + at as i64;
            }),
        }
    }
}

/// Calls `put` with each of the numbers and the place of the true flag that has it, and returns the number of the next one.
/// A number is put for false flags before, too, since a branch for each flag takes longer.
#[inline(always)]
fn for_each_true(flags: &[u8], numbers: Range<usize>, put: impl Fn(usize, usize)) -> usize {
    let mut number = numbers.start;
    let (blocks, rest) = flags.as_chunks::<8>();
    for (block, flags) in blocks.iter().enumerate() {
        if u64::from_ne_bytes(*flags) == 0 {
            continue;
        }
        if number + 8 > numbers.end {
            number = for_each_left(flags, 8 * block, number..numbers.end, &put);
            continue;
        }
        for (at, flag) in flags.iter().enumerate() {
            put(number, 8 * block + at);
            number += usize::from(*flag != 0);
        }
    }
    for_each_left(rest, 8 * blocks.len(), number..numbers.end, &put)
}

/// As [`for_each_true`], of flags from place `first` on, with no number behind the last one.
#[inline(always)]
fn for_each_left(flags: &[u8], first: usize, mut numbers: Range<usize>, put: impl Fn(usize, usize)) -> usize {
    for (at, flag) in flags.iter().enumerate() {
        if *flag != 0 && !numbers.is_empty() {
            put(numbers.start, first + at);
            numbers.start += 1;
        }
    }
    numbers.start
}

/// The number of bytes other than 0.
fn count_true(flags: &[u8]) -> usize {
    // Sums of so few bytes are bytes.
    let count = |flags: &[u8]| flags.iter().map(|flag| u8::from(*flag != 0)).sum::<u8>();
    widest(
        #[inline(always)]
        || flags.chunks(128).map(|flags| usize::from(count(flags))).sum(),
    )
}

/// Writes a 1 for each element of `T` other than zero.
///
/// # Safety
/// As many elements as there are flags, so many apart from the address on, are valid for reads.
unsafe fn read_row<T: Element<Compute: Arithmetic>>(start: *const u8, step: i64, flags: &mut [u8]) {
    let start = start.cast::<T>();
    for (at, flag) in flags.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *flag = u8::from(truth(unsafe { *start.offset(at as isize * step as isize) }.to_compute()));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cpu::pick::{masked_select, nonzero};
    use crate::cpu::testing::{Array, indices, scattered};

    /// Masks of several strides, of none, some and all elements, the last ones more than a chunk.
    pub fn masks() -> Vec<Array<bool>> {
        let dense = |sizes: &[i64], least: f64| {
            Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize).map(|x| x >= least))
        };
        vec![
            dense(&[], -2.0),
            dense(&[], 3.0),
            dense(&[0, 3], 0.0),
            dense(&[3, 0], 0.0),
            dense(&[7], 0.0),
            dense(&[5, 6, 7], 0.0).permuted(&[2, 0, 1]),
            dense(&[20_001], 1.9),
            dense(&[9001, 2], -2.0),
            dense(&[9, 3001], 0.0).reversed(1),
            dense(&[30, 7, 150], 0.0).halved(2),
            dense(&[3000], 0.0).repeated(9),
        ]
    }

    /// The numbers, in row-major order, of the elements where a mask is true.
    pub fn numbers(mask: &Array<bool>) -> Vec<usize> {
        mask.to_vec().iter().enumerate().filter(|(_, flag)| **flag).map(|(number, _)| number).collect()
    }

    #[test]
    fn indices_and_elements_are_those_where_the_mask_is_true() {
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            for mask in masks() {
                let (numbers, all) = (numbers(&mask), indices(&mask.sizes));
                let mut out = Array::zeros(&[numbers.len() as i64, mask.sizes.len() as i64]);
                nonzero(mask.view(), out.view_mut()).unwrap();
                let expected = numbers.iter().flat_map(|number| all[*number].to_vec());
                assert!(out.to_vec().into_iter().eq(expected), "{:?}", mask.sizes);
                let mut floats = Array::zeros(&mask.sizes);
                all.iter().for_each(|index| floats.set(index, if mask.at(index) { f32::NAN } else { -0.0 }));
                let mut same = Array::zeros(&out.sizes);
                nonzero(floats.view(), same.view_mut()).unwrap();
                assert_eq!(same.to_vec(), out.to_vec());
                // Every second element of the first dimension, if there is one.
                let mut sizes = mask.sizes.clone();
                sizes.iter_mut().take(1).for_each(|size| *size *= 2);
                let mut data = Array::new(&sizes, 0..sizes.iter().product::<i64>());
                if !sizes.is_empty() {
                    data = data.halved(0);
                }
                let mut out = Array::zeros(&[numbers.len() as i64]).reversed(0);
                masked_select(data.view(), mask.view(), out.view_mut()).unwrap();
                let data = data.to_vec();
                assert!(out.to_vec().into_iter().eq(numbers.iter().map(|number| data[*number])));
                assert!(
                    masked_select(floats.view(), mask.view(), Array::zeros(&[1 << 20]).view_mut()).is_err()
                );
            }
        }
    }
}
