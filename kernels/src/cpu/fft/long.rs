//! Transforms of long lines, or of few, as those of matrices.
//!
//! Source: the line of `a b` numbers is a matrix of `a` rows. Its columns are transformed, multiplied with roots of unity, and
//! then its rows; each time, neighbours are transformed side by side (Bailey 1990).

use opsmith_runtime::simd::widest;
use opsmith_runtime::{Scratch, parallel};

use super::lines::{Group, Lines, Places};
use super::plan::{Plan, Row, is_smooth, root};
use super::{Job, Kind, NUMBERS, TOGETHER};
use crate::cpu::factor::Real;

/// Numbers of a line from which on it is a matrix, if there are few lines, and for any number of them.
pub(in crate::cpu) const SHORTEST: usize = 64;
pub(in crate::cpu) const LONG: usize = 1 << 14;

/// Lines that are too few to be transformed side by side.
pub(in crate::cpu) const FEW: usize = 8;

/// The sides of a line of so many numbers as a matrix, if it is to be one.
pub(super) fn split(length: usize, lines: usize) -> Option<[usize; 2]> {
    if !is_smooth(length) || length < if lines < FEW { SHORTEST } else { LONG } {
        return None;
    }
    let rows = (4..=length.isqrt()).rev().find(|rows| length.is_multiple_of(*rows))?;
    Some([rows, length / rows])
}

/// As [`Job::run`], of lines that are matrices with the given sides.
///
/// # Safety
/// As [`Job::run`].
pub(super) unsafe fn run<P: Real>(job: &Job, sides: [usize; 2], from: &Places<P>, to: &Places<P>) {
    let matrix = Matrix::new(sides, job);
    let (core, length) = (job.core(), job.length);
    let halves = (core < length).then(|| Powers::new(length, job.direction.sign()));
    for line in 0..from.count() {
        let (from, to) = (from.group(line, 1), to.group(line, 1));
        // SAFETY: the caller's promise; buffers have room for all that is read and written.
        unsafe {
            match job.kind {
                Kind::Numbers => matrix.transform(&from, &to, job.scale),
                Kind::FromReals { onesided } => {
                    let mut parts = Line::new(core + 1);
                    matrix.transform(&from, &parts.places(), 1.0);
                    if let Some(powers) = &halves {
                        let first = parts.at(0);
                        parts.set(core, first);
                        parts = parts.combined(powers, core + 1, 0.5, -0.5);
                    }
                    parts.write(&to, if onesided { length / 2 + 1 } else { length }, length, job.scale);
                }
                Kind::ToReals => {
                    let mut parts = Line::read(&from, length / 2 + 1, length);
                    if let Some(powers) = &halves {
                        // The parts that are no real numbers' transform are left out.
                        for place in [0, core] {
                            let (re, _) = parts.at(place);
                            parts.set(place, (re, 0.0));
                        }
                        parts = parts.combined(powers, core, 1.0, 1.0);
                    }
                    matrix.transform(&parts.places(), &to, job.scale);
                }
            }
        }
    }
}

/// One line of numbers: all real parts, and then all imaginary ones.
struct Line(Scratch<f64>);

impl Line {
    fn new(places: usize) -> Line {
        Line(Scratch::filled(0.0, 2 * places))
    }

    fn room(&self) -> usize {
        self.0.len() / 2
    }

    fn places(&mut self) -> Group<f64> {
        let imaginary = Some(self.room() as i64);
        Group { starts: [self.0.as_mut_ptr(); TOGETHER], count: 1, along: 1, imaginary }
    }

    fn at(&self, place: usize) -> (f64, f64) {
        (self.0[place], self.0[self.room() + place])
    }

    fn set(&mut self, place: usize, (re, im): (f64, f64)) {
        let room = self.room();
        (self.0[place], self.0[room + place]) = (re, im);
    }

    /// The first half of the frequencies of a line of so many reals, and conjugates for the others.
    ///
    /// # Safety
    /// The places are valid for reads.
    unsafe fn read<P: Real>(group: &Group<P>, half: usize, length: usize) -> Line {
        let mut line = Line::new(length);
        let imaginary = group.imaginary.unwrap_or(0);
        for place in 0..half {
            let number = group.starts[0].wrapping_offset((place as i64 * group.along) as isize);
            // SAFETY: the caller's promise.
            let parts = unsafe { (*number, *number.wrapping_offset(imaginary as isize)) };
            let (re, im) = (parts.0.wide(), parts.1.wide());
            if place > 0 {
                line.set(length - place, (re, -im));
            }
            // After the conjugates: of an even length, the middle frequency has its place.
            line.set(place, (re, im));
        }
        line
    }

    /// Writes places, of which those beyond the first half of so many reals' frequencies are conjugates.
    ///
    /// # Safety
    /// The places are valid for writes.
    unsafe fn write<P: Real>(&self, group: &Group<P>, places: usize, length: usize, scale: f64) {
        let imaginary = group.imaginary.unwrap_or(0);
        for place in 0..places {
            let is_mirrored = place > length / 2;
            let (re, im) = self.at(if is_mirrored { length - place } else { place });
            let im = if is_mirrored { -im } else { im };
            let number = group.starts[0].wrapping_offset((place as i64 * group.along) as isize);
            // SAFETY: the caller's promise.
            unsafe {
                *number = P::rounded((re * scale).wide());
                *number.wrapping_offset(imaginary as isize) = P::rounded((im * scale).wide());
            }
        }
    }

    /// The combination of [`Halves`](super::real::Halves): the first places of a line with twice as many reals as the last place.
    fn combined(&self, powers: &Powers, places: usize, factor: f64, sign: f64) -> Line {
        let core = powers.order / 2;
        let mut line = Line::new(places);
        for place in 0..places {
            let (own, other) = (self.at(place), self.at(core - place));
            let root = powers.at(place);
            let (root_re, root_im) = (sign * root.0, sign * root.1);
            let (sum, rest) = ((own.0 + other.0, own.1 - other.1), (own.0 - other.0, own.1 + other.1));
            let re = factor * sum.0 - (root_im * rest.0 + root_re * rest.1);
            let im = factor * sum.1 + (root_re * rest.0 - root_im * rest.1);
            line.set(place, (re, im));
        }
        line
    }
}

/// The tables of transforms of matrices.
struct Matrix {
    rows: usize,
    columns: usize,
    of_columns: Plan,
    of_rows: Plan,
    roots: Powers,
    /// For each row, the parts of the roots of the first columns.
    first: Scratch<[Row; 2]>,
}

impl Matrix {
    fn new([rows, columns]: [usize; 2], job: &Job) -> Matrix {
        let roots = Powers::new(rows * columns, job.direction.sign());
        let of_row = |row: usize| {
            let mut parts = [[0.0; TOGETHER]; 2];
            let [re, im] = &mut parts;
            for (column, (re, im)) in re.iter_mut().zip(im).enumerate().take(columns) {
                (*re, *im) = roots.at(row * column);
            }
            parts
        };
        let first = (0..rows).map(of_row).collect();
        let [of_columns, of_rows] = [rows, columns].map(|length| Plan::new(length, job.direction));
        Matrix { rows, columns, of_columns, of_rows, roots, first }
    }

    /// Transforms a line.
    ///
    /// # Safety
    /// The first is valid for reads, the second for writes, and no other thread uses it.
    unsafe fn transform<From: Real, To: Real>(&self, from: &Group<From>, to: &Group<To>, scale: f64) {
        let (rows, columns) = (self.rows, self.columns);
        let mut between = Scratch::filled(0.0, 2 * rows * columns);
        let own = Group { starts: [between.as_mut_ptr(); TOGETHER], count: 1, along: 2, imaginary: Some(1) };
        let (from, own, to) = (Shared(from), Shared(&own), Shared(to));
        each_group(columns, rows, |first, together, lines| {
            let (from, own) = (from.get(), own.get());
            // SAFETY: the caller's promise; each column is one thread's.
            unsafe {
                lines.gather(&part(from, first, together, from.along, columns), rows);
                self.of_columns.run(lines);
                self.turn(lines, first);
                lines.scatter(&part(own, first, together, 2, columns), rows, 1.0);
            }
        });
        each_group(rows, columns, |first, together, lines| {
            let (own, to) = (own.get(), to.get());
            let mut read = part(own, first, together, 2 * columns as i64, 1);
            read.along = 2;
            // SAFETY: the caller's promise; each row is one thread's.
            unsafe {
                lines.gather(&read, columns);
                self.of_rows.run(lines);
                lines.scatter(&part(to, first, together, to.along, rows), columns, scale);
            }
        });
    }

    /// Multiplies the numbers of columns from one on with their roots.
    fn turn(&self, lines: &mut Lines, first_column: usize) {
        for row in 1..self.rows {
            let own = self.roots.at(row * first_column);
            let first = &self.first[row];
            let (re, im) = (&mut lines.values.re[row], &mut lines.values.im[row]);
            widest(
                #[inline(always)]
                move || {
                    let (old_re, old_im) = (*re, *im);
                    for line in 0..TOGETHER {
                        let root_re = first[0][line] * own.0 - first[1][line] * own.1;
                        let root_im = first[0][line] * own.1 + first[1][line] * own.0;
                        re[line] = old_re[line] * root_re - old_im[line] * root_im;
                        im[line] = old_re[line] * root_im + old_im[line] * root_re;
                    }
                },
            );
        }
    }
}

/// Calls a function with each group of so many lines of a length, and memory for them, in several threads if it takes long.
fn each_group(count: usize, length: usize, call: impl Fn(usize, usize, &mut Lines) + Sync) {
    let chunk = NUMBERS.div_ceil(length * TOGETHER);
    parallel::for_each_range(count.div_ceil(TOGETHER), chunk, |range| {
        let mut lines = Lines::new(0, length);
        for first in range.map(|group| group * TOGETHER) {
            call(first, TOGETHER.min(count - first), &mut lines);
        }
    });
}

/// Lines `across` parts after each other in one line, with numbers so many of its places apart.
fn part<P>(line: &Group<P>, first: usize, count: usize, across: i64, apart: usize) -> Group<P> {
    let at = |number: usize| line.starts[0].wrapping_offset(((first + number) as i64 * across) as isize);
    Group {
        starts: std::array::from_fn(|number| at(number.min(count - 1))),
        count,
        along: line.along * apart as i64,
        imaginary: line.imaginary,
    }
}

/// A reference that several threads have.
struct Shared<'a, P>(&'a Group<P>);

impl<P> Shared<'_, P> {
    fn get(&self) -> &Group<P> {
        self.0
    }
}

// SAFETY: groups are addresses, and whoever uses these promises that threads write different elements.
unsafe impl<P> Sync for Shared<'_, P> {}

/// All powers of a root of unity, as products of two.
struct Powers {
    order: usize,
    low: Scratch<(f64, f64)>,
    high: Scratch<(f64, f64)>,
    bits: u32,
}

impl Powers {
    fn new(order: usize, sign: f64) -> Powers {
        let bits = order.isqrt().next_power_of_two().trailing_zeros();
        let low = (0..1 << bits).map(|number| root(number, order, sign)).collect();
        let high = (0..=order >> bits).map(|number| root(number << bits, order, sign)).collect();
        Powers { order, low, high, bits }
    }

    /// A power up to the order.
    fn at(&self, power: usize) -> (f64, f64) {
        let (low, high) = (self.low[power & (self.low.len() - 1)], self.high[power >> self.bits]);
        (low.0 * high.0 - low.1 * high.1, low.0 * high.1 + low.1 * high.0)
    }
}
