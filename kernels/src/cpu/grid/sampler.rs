//! Which elements of an image a place reads, how much of each, and how that changes with the place.

use std::ops::{Add, Mul, Sub};

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel;
use opsmith_runtime::{Element, Error, Result};
use smallvec::SmallVec;

use super::side_by_side::Along;
use crate::cpu::float::Float;
use crate::cpu::rounded::Rounded;
use crate::cpu::strides::expect_operand;

/// Places of one channel that take a few microseconds.
const PLACES: usize = 1 << 7;

/// Integers up to this one are exact in single precision.
const EXACT: i64 = 1 << 24;

/// A weight and its derivatives, by order; those of higher orders are zero.
type Slopes<T> = [Rounded<T>; 4];

/// An element that a place reads: where in its image, and how much of it, which is a product of a weight
/// for each of the grid's two numbers.
pub(super) struct Tap<T: Element> {
    pub at: usize,
    /// Which of the lines that the place reads the element is in.
    line: usize,
    across: Slopes<T>,
    down: Slopes<T>,
}

impl<T: Element<Compute: Float>> Tap<T> {
    /// How much of the element the place reads.
    pub fn weight(&self) -> Rounded<T> {
        self.slope(0, 0)
    }

    /// The derivative of [`Tap::weight`] of these orders by the grid's numbers.
    pub fn slope(&self, across: usize, down: usize) -> Rounded<T> {
        match (self.down.get(down), self.across.get(across)) {
            (Some(&down), Some(&across)) => down * across,
            _ => Rounded::of(0.0),
        }
    }
}

pub(super) type Taps<T> = SmallVec<[Tap<T>; 16]>;

/// Places along a dimension, and the weight of each.
type Weights<T> = SmallVec<[(i64, Slopes<T>); 4]>;

/// Images read at one place.
pub(super) struct Reader<T: Element> {
    entries: SmallVec<[Entry<T>; 16]>,
    /// Whether the elements of a line are summed before the lines are.
    is_by_line: bool,
}

/// An element that is read, its weight, and that of its line.
struct Entry<T: Element> {
    at: usize,
    line: usize,
    weight: Rounded<T>,
    of_line: Rounded<T>,
}

impl<T: Element<Compute: Float>> Reader<T> {
    /// The value of an image.
    pub fn read(&self, image: &[Rounded<T>]) -> Rounded<T> {
        if !self.is_by_line {
            return self.entries.iter().map(|entry| image[entry.at] * entry.weight).sum();
        }
        let lines = self.entries.chunk_by(|a, b| a.line == b.line);
        let along = |line: &[Entry<T>]| line.iter().map(|entry| entry.weight * image[entry.at]).sum();
        lines.map(|line| line[0].of_line * along(line)).sum()
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Interpolation {
    Bilinear,
    Nearest,
    Bicubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Mirror,
}

pub(super) struct Sampler {
    pub channels: usize,
    /// Height and width of the images.
    size: [i64; 2],
    /// Rows and columns of the grid.
    grid: [i64; 2],
    interpolation: Interpolation,
    outside: Outside,
    align_corners: bool,
}

impl Sampler {
    /// A sampler of images and a grid of these sizes.
    ///
    /// # Errors
    /// If they do not go together, the result has another shape than `out`, or a mode is unknown.
    pub fn new(
        input: &[i64],
        grid: &[i64],
        out: &[i64],
        (interpolation, outside, align_corners): (i64, i64, bool),
    ) -> Result<Sampler> {
        let (&[samples, channels, height, width], &[grids, rows, columns, 2]) = (input, grid) else {
            return Err(Error::shape(format!(
                "images {} cannot be read at a grid {}",
                ShapeText(input),
                ShapeText(grid)
            ))
            .with_help("images are (samples, channels, height, width), grids (samples, rows, columns, 2)"));
        };
        if samples != grids || height == 0 || width == 0 {
            return Err(Error::shape(format!(
                "there are {samples} samples of images of {height} by {width} and {grids} of the grid"
            )));
        }
        let interpolation = match interpolation {
            0 => Interpolation::Bilinear,
            1 => Interpolation::Nearest,
            2 => Interpolation::Bicubic,
            other => return Err(Error::value(format!("there is no interpolation {other}"))),
        };
        let outside = match outside {
            0 => Outside::Zeros,
            1 => Outside::Border,
            2 => Outside::Mirror,
            other => return Err(Error::value(format!("there is no padding {other}"))),
        };
        expect_operand("an operand", out, &[samples, channels, rows, columns])?;
        Ok(Sampler {
            channels: channels as usize,
            size: [height, width],
            grid: [rows, columns],
            interpolation,
            outside,
            align_corners,
        })
    }

    /// Reads images at a place, with the weights' derivatives of the given orders.
    ///
    /// Bicubic interpolation goes line by line, and then from line to line.
    pub fn reader<T: Element<Compute: Float>>(&self, taps: &Taps<T>, orders: [usize; 2]) -> Reader<T> {
        let [across, down] = orders;
        let is_by_line = self.interpolation == Interpolation::Bicubic;
        let slope = |slopes: &Slopes<T>, order: usize| slopes.get(order).copied().unwrap_or(Rounded::of(0.0));
        let entry = |tap: &Tap<T>| Entry {
            at: tap.at,
            line: tap.line,
            weight: if is_by_line { slope(&tap.across, across) } else { tap.slope(across, down) },
            of_line: slope(&tap.down, down),
        };
        Reader { entries: taps.iter().map(entry).collect(), is_by_line }
    }

    /// How numbers become positions down and across, if places can be read side by side: not mirrored.
    pub fn side_by_side(&self) -> Option<[Along; 2]> {
        // Larger numbers of elements are not exact in single precision, or places no `i32`.
        let is_small = self.size.iter().all(|&size| size <= EXACT)
            && self.size[0].saturating_mul(self.size[1]) <= i64::from(i32::MAX);
        (is_small && self.outside != Outside::Mirror).then(|| {
            self.size.map(|size| Along {
                size,
                align_corners: self.align_corners,
                is_clipped: self.outside == Outside::Border,
                interpolation: self.interpolation,
            })
        })
    }

    /// Elements of an image.
    pub fn area(&self) -> usize {
        (self.size[0] * self.size[1]) as usize
    }

    /// Places of a sample.
    pub fn places(&self) -> usize {
        (self.grid[0] * self.grid[1]) as usize
    }

    /// The first element of an image.
    pub fn image(&self, sample: usize, channel: usize) -> usize {
        (sample * self.channels + channel) * self.area()
    }

    /// The first element of an output plane.
    pub fn plane(&self, sample: usize, channel: usize) -> usize {
        (sample * self.channels + channel) * self.places()
    }

    /// Calls `body` with the sample and number of each place, and the elements it reads.
    pub fn for_each_place<T: Element<Compute: Float>>(
        &self,
        places: &[Rounded<T>],
        mut body: impl FnMut(usize, usize, &Taps<T>),
    ) {
        (0..places.len() / 2).for_each(|place| self.visit(places, place, &mut body));
    }

    /// As [`for_each_place`](Self::for_each_place), in several threads if that is faster.
    pub fn for_each_place_in_threads<T: Element<Compute: Float>>(
        &self,
        places: &[Rounded<T>],
        body: impl Fn(usize, usize, &Taps<T>) + Sync,
    ) {
        let chunk = (PLACES / self.channels.max(1)).max(1);
        parallel::for_each_range(places.len() / 2, chunk, |range| {
            range.for_each(|place| self.visit(places, place, &mut { &body }));
        });
    }

    fn visit<T: Element<Compute: Float>>(
        &self,
        places: &[Rounded<T>],
        place: usize,
        body: &mut impl FnMut(usize, usize, &Taps<T>),
    ) {
        let taps = self.taps(places[2 * place + 1], places[2 * place]);
        body(place / self.places().max(1), place % self.places().max(1), &taps);
    }

    fn taps<T: Element<Compute: Float>>(&self, down: Rounded<T>, across: Rounded<T>) -> Taps<T> {
        let mut taps = Taps::new();
        let y = self.weights(down, 0);
        let x = self.weights(across, 1);
        for (line, &(row, down)) in y.iter().enumerate() {
            for &(column, across) in &x {
                let inside = (0..self.size[0]).contains(&row) && (0..self.size[1]).contains(&column);
                if inside {
                    taps.push(Tap { at: (row * self.size[1] + column) as usize, line, across, down });
                }
            }
        }
        taps
    }

    /// The elements that one number of the grid reads along a dimension, and the weight of each. Elements
    /// outside have no element to read.
    fn weights<T: Element<Compute: Float>>(&self, number: Rounded<T>, dim: usize) -> Weights<T> {
        let (position, slope) = self.position(number, dim);
        let (zero, one) = (Rounded::of(0.0), Rounded::of(1.0));
        match self.interpolation {
            Interpolation::Bilinear => {
                let (position, slope) = self.folded(position, slope, dim);
                let first = position.floor();
                let part = position - first;
                let at = index(first);
                Weights::from_iter([
                    (at, [first + one - position, -slope, zero, zero]),
                    (at + 1, [part, slope, zero, zero]),
                ])
            }
            Interpolation::Nearest => {
                let (position, _) = self.folded(position, slope, dim);
                Weights::from_iter([(index(position.round()), [one, zero, zero, zero])])
            }
            Interpolation::Bicubic => {
                let first = position.floor();
                let part = position - first;
                // Each of the four elements is looked up outside on its own.
                let element = |offset: f64| {
                    let (at, _) = self.folded(first + Rounded::of(offset), one, dim);
                    index(at)
                };
                // The distance to an element grows with the position on its left, and shrinks on its right.
                let by_number = |[value, first, second, third]: Slopes<T>, slope: Rounded<T>| {
                    [value, first * slope, second * slope * slope, third * slope * slope * slope]
                };
                Weights::from_iter([
                    (element(-1.0), by_number(slopes_far(part + one), slope)),
                    (element(0.0), by_number(slopes_near(part), slope)),
                    (element(1.0), by_number(slopes_near(one - part), -slope)),
                    (element(2.0), by_number(slopes_far(Rounded::of(2.0) - part), -slope)),
                ])
            }
        }
    }

    /// A number of the grid as a position between elements, and how that changes with it.
    fn position<T: Element<Compute: Float>>(
        &self,
        number: Rounded<T>,
        dim: usize,
    ) -> (Rounded<T>, Rounded<T>) {
        let size = Rounded::of(self.size[dim] as f64);
        let (one, two) = (Rounded::of(1.0), Rounded::of(2.0));
        if self.align_corners {
            ((number + one) / two * (size - one), (size - one) / two)
        } else {
            (((number + one) * size - one) / two, size / two)
        }
    }

    /// A position brought inside as the padding says, and how it changes with the grid's number.
    fn folded<T: Element<Compute: Float>>(
        &self,
        position: Rounded<T>,
        slope: Rounded<T>,
        dim: usize,
    ) -> (Rounded<T>, Rounded<T>) {
        let size = self.size[dim] as f64;
        let (position, slope) = match self.outside {
            Outside::Zeros => return (position, slope),
            Outside::Border => (position, slope),
            Outside::Mirror if self.align_corners => mirror(position, slope, 0.0, 2.0 * (size - 1.0)),
            Outside::Mirror => mirror(position, slope, -1.0, 2.0 * size - 1.0),
        };
        let last = Rounded::of(size - 1.0);
        let inside = position > Rounded::of(0.0) && position < last;
        let clipped = position.max(Rounded::of(0.0)).min(last);
        // Where the position is clipped, the grid's number changes nothing.
        (
            if position.is_finite() { clipped } else { Rounded::of(0.0) },
            if inside { slope } else { Rounded::of(0.0) },
        )
    }
}

/// A position mirrored at two edges, given in halves, until it lies between them.
fn mirror<T: Element<Compute: Float>>(
    position: Rounded<T>,
    slope: Rounded<T>,
    low: f64,
    high: f64,
) -> (Rounded<T>, Rounded<T>) {
    if low == high {
        return (Rounded::of(0.0), Rounded::of(0.0));
    }
    let (low, span) = (Rounded::of(low / 2.0), Rounded::of((high - low) / 2.0));
    let distance = position - low;
    let slope = if distance < Rounded::of(0.0) { -slope } else { slope };
    let distance = distance.abs();
    let rest = distance.fmod(span);
    let flips = distance.floor_div(span);
    if flips.fmod(Rounded::of(2.0)) == Rounded::of(0.0) {
        (rest + low, slope)
    } else {
        (span - rest + low, -slope)
    }
}

/// The nearest integer of a whole number; far outside any image if it is not one of moderate size.
fn index<T: Element<Compute: Float>>(position: Rounded<T>) -> i64 {
    let position = position.double();
    if position.abs() < 1e9 { position as i64 } else { -1_000_000_000 }
}

/// Keys' cubic with a = -0.75, at distances up to 1.
#[inline(always)]
pub(super) fn cubic_near<N>(x: N, of: impl Fn(f64) -> N) -> N
where
    N: Copy + Add<Output = N> + Sub<Output = N> + Mul<Output = N>,
{
    let a = of(-0.75);
    ((a + of(2.0)) * x - (a + of(3.0))) * x * x + of(1.0)
}

/// Keys' cubic with a = -0.75, at distances from 1 to 2.
#[inline(always)]
pub(super) fn cubic_far<N>(x: N, of: impl Fn(f64) -> N) -> N
where
    N: Copy + Add<Output = N> + Sub<Output = N> + Mul<Output = N>,
{
    let a = of(-0.75);
    ((a * x - of(5.0) * a) * x + of(8.0) * a) * x - of(4.0) * a
}

/// [`cubic_near`] and its derivatives.
fn slopes_near<T: Element<Compute: Float>>(x: Rounded<T>) -> Slopes<T> {
    let a = Rounded::of(-0.75);
    let (two, three, six) = (Rounded::of(2.0), Rounded::of(3.0), Rounded::of(6.0));
    let first = (three * (a + two) * x - two * (a + three)) * x;
    [cubic_near(x, Rounded::of), first, six * (a + two) * x - two * (a + three), six * (a + two)]
}

/// [`cubic_far`] and its derivatives.
fn slopes_far<T: Element<Compute: Float>>(x: Rounded<T>) -> Slopes<T> {
    let a = Rounded::of(-0.75);
    let (six, ten) = (Rounded::of(6.0), Rounded::of(10.0));
    let first = (Rounded::of(3.0) * a * x - ten * a) * x + Rounded::of(8.0) * a;
    [cubic_far(x, Rounded::of), first, six * a * x - ten * a, six * a]
}
