//! Reads of many places side by side, in vectors.
//!
//! In: images and the numbers of a grid, row-major. Out: elements of the images. Must know no gradients.

use opsmith_runtime::Element;
use opsmith_runtime::parallel::{self, Shared};

use super::sampler::{Interpolation, Sampler, cubic_far, cubic_near};
use crate::cpu::float::Float;
use crate::cpu::simd;
use crate::math::{floor, is_finite, maximum, minimum, round};

/// Places that are read at once.
pub(in crate::cpu) const PLACES: usize = 64;

/// Most elements that a place reads along a dimension, and of an image.
const ALONG: usize = 4;
const TAPS: usize = ALONG * ALONG;

/// The place in an image that is outside of it.
const OUTSIDE: i32 = -1;

/// A number for each place.
type Lanes<N> = [N; PLACES];

/// The elements that places read along a dimension, [`OUTSIDE`] the image or not, and the weight of each.
struct Line<C> {
    at: [Lanes<i32>; ALONG],
    weights: [Lanes<C>; ALONG],
}

/// Positions along a dimension between elements: how a number of the grid becomes one.
#[derive(Clone, Copy)]
pub(super) struct Along {
    pub size: i64,
    pub align_corners: bool,
    /// Whether positions are brought to the border.
    pub is_clipped: bool,
    pub interpolation: Interpolation,
}

impl Along {
    /// Elements that a place reads.
    fn count(self) -> usize {
        match self.interpolation {
            Interpolation::Nearest => 1,
            Interpolation::Bilinear => 2,
            Interpolation::Bicubic => ALONG,
        }
    }

    #[inline(always)]
    fn position<C: Float>(self, number: C) -> C {
        let (size, one, two) = (C::of(self.size as f64), C::ONE, C::of(2.0));
        match self.align_corners {
            true => (number + one) / two * (size - one),
            false => ((number + one) * size - one) / two,
        }
    }

    /// A position in the image, if positions are brought there.
    #[inline(always)]
    fn clipped<C: Float>(self, position: C) -> C {
        let last = C::of((self.size - 1) as f64);
        let clipped = minimum(maximum(position, C::ZERO), last);
        let clipped = if is_finite(position) { clipped } else { C::ZERO };
        if self.is_clipped { clipped } else { position }
    }

    /// The number of the element at a whole position, which may be outside.
    #[inline(always)]
    fn place<C: Float>(self, at: C) -> i32 {
        let last = C::of((self.size - 1) as f64);
        let inside = at >= C::ZERO && at <= last;
        let near = if inside { at } else { C::ZERO };
        // SAFETY: the number is from 0 to the size, which is one of `i32`.
        let place = unsafe { near.double().to_int_unchecked::<i32>() };
        if inside { place } else { OUTSIDE }
    }

    /// Finds the elements that places read, and the weights of several.
    #[inline(always)]
    fn find<C: Float>(self, numbers: &Lanes<C>, Line { at, weights }: &mut Line<C>) {
        match self.interpolation {
            Interpolation::Nearest => {
                for place in 0..PLACES {
                    at[0][place] = self.place(round(self.clipped(self.position(numbers[place]))));
                }
            }
            Interpolation::Bilinear => {
                for place in 0..PLACES {
                    let position = self.clipped(self.position(numbers[place]));
                    let first = floor(position);
                    (at[0][place], at[1][place]) = (self.place(first), self.place(first + C::ONE));
                    weights[0][place] = first + C::ONE - position;
                    weights[1][place] = position - first;
                }
            }
            Interpolation::Bicubic => {
                let (one, two) = (C::ONE, C::of(2.0));
                for place in 0..PLACES {
                    let position = self.position(numbers[place]);
                    let first = floor(position);
                    let part = position - first;
                    // Each of the four elements is looked up outside on its own.
                    at[0][place] = self.place(self.clipped(first + -one));
                    at[1][place] = self.place(self.clipped(first + C::ZERO));
                    at[2][place] = self.place(self.clipped(first + one));
                    at[3][place] = self.place(self.clipped(first + two));
                    weights[0][place] = cubic_far(part + one, C::of);
                    weights[1][place] = cubic_near(part, C::of);
                    weights[2][place] = cubic_near(one - part, C::of);
                    weights[3][place] = cubic_far(two - part, C::of);
                }
            }
        }
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
    parallel::for_each_range_of(PLACES * (sampler.channels + ALONG), samples * blocks, |units| {
        let mut reads = Reads::new(along[1].count());
        for unit in units {
            let (sample, first) = (unit / blocks, unit % blocks * PLACES);
            let count = PLACES.min(of_sample - first);
            let numbers = &grid[2 * (sample * of_sample + first)..][..2 * count];
            let reads = &mut reads;
            simd::widest_over::<T, _>(
                #[inline(always)]
                || {
                    reads.find(along, numbers);
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

/// The elements of an image that places read, and how much of each.
struct Reads<C> {
    rows: Line<C>,
    columns: Line<C>,
    at: [Lanes<i32>; TAPS],
    /// The weight of each element, or, if lines are summed first, of each element of a line.
    weights: [Lanes<C>; TAPS],
    /// Whether a line has an element inside.
    has_inside: [Lanes<i32>; ALONG],
    /// Elements along a dimension.
    count: usize,
}

#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
impl<C: Float> Reads<C> {
    /// Memory for reads of so many elements along a dimension.
    fn new(count: usize) -> Reads<C> {
        let line = || Line { at: [[OUTSIDE; PLACES]; ALONG], weights: [[C::ONE; PLACES]; ALONG] };
        Reads {
            rows: line(),
            columns: line(),
            at: [[OUTSIDE; PLACES]; TAPS],
            weights: [[C::ONE; PLACES]; TAPS],
            has_inside: [[OUTSIDE; PLACES]; ALONG],
            count,
        }
    }

    /// Finds the reads of up to [`PLACES`] places: pairs of numbers, across and down.
    #[inline(always)]
    fn find<T: Element<Compute = C>>(&mut self, [down, across]: [Along; 2], numbers: &[T]) {
        let (mut of_columns, mut of_rows) = ([C::ZERO; PLACES], [C::ZERO; PLACES]);
        for (place, pair) in numbers.chunks_exact(2).enumerate().take(PLACES) {
            (of_columns[place], of_rows[place]) = (pair[0].to_compute(), pair[1].to_compute());
        }
        across.find(&of_columns, &mut self.columns);
        down.find(&of_rows, &mut self.rows);
        let (count, width, is_by_line) = (self.count, across.size as i32, self.is_by_line());
        let Reads { rows, columns, at, weights, has_inside, .. } = self;
        for row in 0..count {
            has_inside[row] = [OUTSIDE; PLACES];
            for column in 0..count {
                let (at, weights) = (&mut at[row * count + column], &mut weights[row * count + column]);
                for place in 0..PLACES {
                    let (y, x) = (rows.at[row][place], columns.at[column][place]);
                    let element = y.wrapping_mul(width).wrapping_add(x);
                    at[place] = if y >= 0 && x >= 0 { element } else { OUTSIDE };
                    has_inside[row][place] = has_inside[row][place].max(at[place]);
                    let factor = if is_by_line { C::ONE } else { rows.weights[row][place] };
                    weights[place] = factor * columns.weights[column][place];
                }
            }
        }
    }

    /// Whether the elements of a line are summed before the lines are: bicubic interpolation goes line by line.
    fn is_by_line(&self) -> bool {
        self.count == ALONG
    }

    /// Reads an image at the first places.
    #[inline(always)]
    fn read<T: Element<Compute = C>>(&self, image: &[T], out: &mut [T]) {
        let mut sums = [C::ZERO; PLACES];
        if self.is_by_line() {
            for row in 0..ALONG {
                let mut line = [C::ZERO; PLACES];
                for column in 0..ALONG {
                    self.add(row * ALONG + column, image, &mut line);
                }
                for place in 0..PLACES {
                    let sum = sums[place] + self.rows.weights[row][place] * line[place];
                    sums[place] = if self.has_inside[row][place] >= 0 { sum } else { sums[place] };
                }
            }
        } else {
            (0..self.count * self.count).for_each(|tap| self.add(tap, image, &mut sums));
        }
        let mut elements = [T::default(); PLACES];
        for place in 0..PLACES {
            elements[place] = T::from_compute(sums[place]);
        }
        match out.first_chunk_mut::<PLACES>() {
            Some(out) => *out = elements,
            None => out.copy_from_slice(&elements[..out.len()]),
        }
    }

    /// Adds the weighted elements of one tap, where these are inside.
    #[inline(always)]
    fn add<T: Element<Compute = C>>(&self, tap: usize, image: &[T], sums: &mut Lanes<C>) {
        for place in 0..PLACES {
            let at = self.at[tap][place];
            // SAFETY: the place is one of the image, or outside, and the image has a first element.
            let element = unsafe { image.get_unchecked(at.max(0) as usize) }.to_compute();
            let sum = sums[place] + element * self.weights[tap][place];
            sums[place] = if at >= 0 { sum } else { sums[place] };
        }
    }
}
