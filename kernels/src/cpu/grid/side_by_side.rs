//! Bilinear and nearest reads of many places side by side, in vectors.
//!
//! In: images and the numbers of a grid, row-major. Out: elements of the images. Must know no gradients.

use opsmith_runtime::Element;
use opsmith_runtime::parallel::{self, CHUNK, Shared};

use super::sampler::Sampler;
use crate::cpu::float::Float;
use crate::cpu::simd;
use crate::math::{floor, is_finite, maximum, minimum, round};

/// Places that are read at once.
pub(in crate::cpu) const PLACES: usize = 64;

/// Most elements that a place reads.
const TAPS: usize = 4;

/// The place in an image that is outside of it.
const OUTSIDE: i32 = -1;

/// The elements that places read, and how much of each.
struct Reads<C> {
    at: [[i32; PLACES]; TAPS],
    weights: [[C; PLACES]; TAPS],
    /// Elements that each place reads.
    taps: usize,
}

/// Positions along a dimension between elements: how a number of the grid becomes one.
#[derive(Clone, Copy)]
pub(super) struct Along {
    pub size: i64,
    pub align_corners: bool,
    /// Whether positions are brought to the border.
    pub is_clipped: bool,
    pub is_nearest: bool,
}

impl Along {
    #[inline(always)]
    fn position<C: Float>(self, number: C) -> C {
        let (size, one, two) = (C::of(self.size as f64), C::ONE, C::of(2.0));
        let position = match self.align_corners {
            true => (number + one) / two * (size - one),
            false => ((number + one) * size - one) / two,
        };
        if !self.is_clipped {
            return position;
        }
        let clipped = minimum(maximum(position, C::ZERO), size - one);
        if is_finite(position) { clipped } else { C::ZERO }
    }

    /// The two elements around a position, [`OUTSIDE`] the image or not, and the weight of each; the nearest one twice.
    #[inline(always)]
    fn taps<C: Float>(self, number: C) -> ([i32; 2], [C; 2]) {
        let position = self.position(number);
        let first = if self.is_nearest { round(position) } else { floor(position) };
        let last = C::of((self.size - 1) as f64);
        let place = |at: C| {
            let inside = at >= C::ZERO && at <= last;
            let near = if inside { at } else { C::ZERO };
            // SAFETY: the number is from 0 to the size, which is one of `i32`.
            let place = unsafe { near.double().to_int_unchecked::<i32>() };
            if inside { place } else { OUTSIDE }
        };
        let weights = match self.is_nearest {
            true => [C::ONE; 2],
            false => [first + C::ONE - position, position - first],
        };
        ([place(first), place(first + C::ONE)], weights)
    }
}

/// Writes the elements of all channels at all places.
pub(super) fn sample<T: Element<Compute: Float>>(
    sampler: &Sampler,
    along: [Along; 2],
    images: &[T],
    grid: &[T],
    out: &mut [T],
) {
    let of_sample = sampler.places();
    let blocks = of_sample.div_ceil(PLACES);
    let samples = grid.len() / (2 * of_sample).max(1);
    let target = Shared(out.as_mut_ptr());
    let chunk = (CHUNK / (PLACES * (sampler.channels + TAPS))).max(1);
    parallel::for_each_range(samples * blocks, chunk, |units| {
        for unit in units {
            let (sample, first) = (unit / blocks, unit % blocks * PLACES);
            let count = PLACES.min(of_sample - first);
            let numbers = &grid[2 * (sample * of_sample + first)..][..2 * count];
            simd::widest_over::<T, _>(
                #[inline(always)]
                || {
                    let reads = Reads::new(along, numbers);
                    for channel in 0..sampler.channels {
                        let start = target.at((sampler.plane(sample, channel) + first) as i64);
                        // SAFETY: the places of a plane lie in `out`, and each block of them has one thread.
                        let target = unsafe { std::slice::from_raw_parts_mut(start, count) };
                        reads.read(&images[sampler.image(sample, channel)..][..sampler.area()], target);
                    }
                },
            );
        }
    });
}

#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
impl<C: Float> Reads<C> {
    /// The reads of up to [`PLACES`] places: pairs of numbers, across and down.
    #[inline(always)]
    fn new<T: Element<Compute = C>>(along: [Along; 2], numbers: &[T]) -> Reads<C> {
        let [down, across] = along;
        let taps = if across.is_nearest { 1 } else { TAPS };
        let mut reads = Reads { at: [[OUTSIDE; PLACES]; TAPS], weights: [[C::ZERO; PLACES]; TAPS], taps };
        let width = across.size as i32;
        for place in 0..numbers.len() / 2 {
            let (columns, of_columns) = across.taps(numbers[2 * place].to_compute());
            let (rows, of_rows) = down.taps(numbers[2 * place + 1].to_compute());
            for tap in 0..TAPS {
                let (row, column) = (tap / 2, tap % 2);
                let inside = rows[row] >= 0 && columns[column] >= 0;
                let at = rows[row].wrapping_mul(width).wrapping_add(columns[column]);
                reads.at[tap][place] = if inside { at } else { OUTSIDE };
                reads.weights[tap][place] = of_rows[row] * of_columns[column];
            }
        }
        reads
    }

    /// Reads an image at the first places.
    #[inline(always)]
    fn read<T: Element<Compute = C>>(&self, image: &[T], out: &mut [T]) {
        let mut sums = [C::ZERO; PLACES];
        for tap in 0..self.taps {
            for place in 0..PLACES {
                let at = self.at[tap][place];
                // SAFETY: the place is one of the image, or outside, and the image has a first element.
                let element = unsafe { image.get_unchecked(at.max(0) as usize) }.to_compute();
                let sum = sums[place] + element * self.weights[tap][place];
                sums[place] = if at >= 0 { sum } else { sums[place] };
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = T::from_compute(sum);
        }
    }
}
