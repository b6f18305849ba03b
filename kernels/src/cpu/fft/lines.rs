//! Lines of a tensor, read to where they lie side by side, and written.

use opsmith_runtime::Dims;
use opsmith_runtime::parallel::Shared;
use opsmith_runtime::simd::widest;

use super::TOGETHER;
use super::plan::{Parts, Row};
use crate::cpu::factor::{Field, Real};

/// The lines of a tensor along one dimension, with steps in parts of numbers.
pub(super) struct Places<P> {
    data: Shared<P>,
    sizes: Dims,
    strides: Dims,
    /// From a number of a line to the next.
    along: i64,
    /// From a number's real part to its imaginary one, which may not exist.
    imaginary: Option<i64>,
}

impl<P: Real> Places<P> {
    /// The lines of complex numbers.
    pub fn of_numbers<T: Field<Size = P>>(
        data: *mut T,
        sizes: &[i64],
        strides: &[i64],
        dim: usize,
    ) -> Places<P> {
        let others = |of: &[i64]| -> Dims {
            of.iter().enumerate().filter(|(at, _)| *at != dim).map(|(_, value)| *value).collect()
        };
        let mut places = Places {
            data: Shared(data.cast()),
            sizes: others(sizes),
            strides: others(strides),
            along: 2 * strides[dim],
            imaginary: Some(1),
        };
        places.strides.iter_mut().for_each(|stride| *stride *= 2);
        places
    }

    /// The lines of reals, of which two neighbours may be the parts of one number.
    pub fn of_reals(
        data: *const P,
        sizes: &[i64],
        strides: &[i64],
        dim: usize,
        are_paired: bool,
    ) -> Places<P> {
        let others = |of: &[i64]| -> Dims {
            of.iter().enumerate().filter(|(at, _)| *at != dim).map(|(_, value)| *value).collect()
        };
        Places {
            data: Shared(data.cast_mut()),
            sizes: others(sizes),
            strides: others(strides),
            along: if are_paired { 2 * strides[dim] } else { strides[dim] },
            imaginary: are_paired.then_some(strides[dim]),
        }
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.sizes.iter().product::<i64>() as usize
    }

    /// Some lines, at most [`TOGETHER`].
    pub fn group(&self, first: usize, count: usize) -> Group<P> {
        let mut starts = [self.data.0; TOGETHER];
        for (line, start) in starts.iter_mut().enumerate().take(count) {
            let (mut rest, mut offset) = ((first + line) as i64, 0);
            for (size, stride) in self.sizes.iter().zip(&self.strides).rev() {
                offset += rest % size * stride;
                rest /= size;
            }
            *start = self.data.at(offset);
        }
        Group { starts, count, along: self.along, imaginary: self.imaginary }
    }
}

/// Lines that are read or written together.
#[derive(Clone, Copy)]
pub(super) struct Group<P> {
    pub starts: [*mut P; TOGETHER],
    pub count: usize,
    /// From a number of a line to the next.
    pub along: i64,
    /// From a number's real part to its imaginary one, which may not exist.
    pub imaginary: Option<i64>,
}

impl<P> Group<P> {
    /// The distance from a line to the next, in parts, if it is one for all.
    fn across(&self) -> Option<i64> {
        let places = self.starts.map(|start| start as isize);
        let step = places[1].wrapping_sub(places[0]);
        let is_even = (1..self.count).all(|at| places[at].wrapping_sub(places[at - 1]) == step);
        (is_even && self.count > 1).then(|| (step / size_of::<P>() as isize) as i64)
    }

    /// Whether numbers are pairs of parts.
    fn has_pairs(&self) -> bool {
        self.imaginary == Some(1)
    }
}

/// Lines side by side, and memory for passes.
pub(super) struct Lines {
    /// The number of lines.
    pub count: usize,
    /// For each place, the parts of the numbers of all lines.
    pub values: Parts,
    pub work: Parts,
    /// Lines of the padded length.
    pub padded: Parts,
}

impl Lines {
    /// Memory for lines of at most so many places, and for padded ones.
    pub fn new(padded: usize, places: usize) -> Lines {
        Lines {
            count: 0,
            values: Parts::zeros(places.max(padded)),
            work: Parts::zeros(places.max(padded)),
            padded: Parts::zeros(padded),
        }
    }

    /// Reads the first places of lines.
    ///
    /// # Safety
    /// The places are valid for reads.
    pub unsafe fn gather<P: Real>(&mut self, group: &Group<P>, places: usize) {
        let count = group.count;
        self.count = count;
        let (re, im) = (&mut self.values.re[..places], &mut self.values.im[..places]);
        let across = group.across();
        // SAFETY: the caller's promise.
        unsafe {
            match (across, group.has_pairs()) {
                (Some(2), true) => return pairs_in(group.starts[0], group.along, count, re, im),
                (_, true) if group.along == 2 => return lines_in(group, re, im),
                (Some(1), false) => {
                    rows_in(group.starts[0], group.along, count, re);
                    match group.imaginary {
                        Some(step) => rows_in(group.starts[0].offset(step as isize), group.along, count, im),
                        None => im.fill([0.0; TOGETHER]),
                    }
                    return;
                }
                _ => {}
            }
            for line in 0..count {
                let start = group.starts[line];
                for place in 0..places {
                    let number = start.wrapping_offset((place as i64 * group.along) as isize);
                    re[place][line] = (*number).wide();
                    im[place][line] = match group.imaginary {
                        Some(step) => (*number.wrapping_offset(step as isize)).wide(),
                        None => 0.0,
                    };
                }
            }
        }
    }

    /// Writes the first places of lines, multiplied.
    ///
    /// # Safety
    /// The places are valid for writes.
    pub unsafe fn scatter<P: Real>(&self, group: &Group<P>, places: usize, scale: f64) {
        let count = group.count;
        let (re, im) = (&self.values.re[..places], &self.values.im[..places]);
        let across = group.across();
        // SAFETY: the caller's promise.
        unsafe {
            match (across, group.has_pairs()) {
                (Some(2), true) => return pairs_out(group.starts[0], group.along, count, re, im, scale),
                (_, true) if group.along == 2 => return lines_out(group, re, im, scale),
                (Some(1), false) => {
                    rows_out(group.starts[0], group.along, count, re, scale);
                    if let Some(step) = group.imaginary {
                        rows_out(group.starts[0].offset(step as isize), group.along, count, im, scale);
                    }
                    return;
                }
                _ => {}
            }
            for line in 0..count {
                let start = group.starts[line];
                for place in 0..places {
                    let number = start.wrapping_offset((place as i64 * group.along) as isize);
                    *number = P::rounded((re[place][line] * scale).wide());
                    if let Some(step) = group.imaginary {
                        let part = P::rounded((im[place][line] * scale).wide());
                        *number.wrapping_offset(step as isize) = part;
                    }
                }
            }
        }
    }
}

/// Places of lines that are transposed at once.
const PLACES: usize = 16;

/// Reads lines of pairs.
///
/// # Safety
/// As many pairs of each line as there are rows are valid for reads.
unsafe fn lines_in<P: Real>(group: &Group<P>, re: &mut [Row], im: &mut [Row]) {
    let mut pairs = [[[P::NONE; 2]; TOGETHER]; PLACES];
    for (block, (re, im)) in re.chunks_mut(PLACES).zip(im.chunks_mut(PLACES)).enumerate() {
        for (line, start) in group.starts.iter().enumerate().take(group.count) {
            let start = start.wrapping_add(2 * block * PLACES).cast::<[P; 2]>();
            for (place, pairs) in pairs.iter_mut().enumerate().take(re.len()) {
                // SAFETY: the caller's promise.
                pairs[line] = unsafe { start.add(place).read_unaligned() };
            }
        }
        // SAFETY: there are as many rows of pairs.
        unsafe { pairs_in(pairs.as_ptr().cast::<P>(), 2 * TOGETHER as i64, TOGETHER, re, im) };
    }
}

/// Writes lines of pairs.
///
/// # Safety
/// As many pairs of each line as there are rows are valid for writes.
unsafe fn lines_out<P: Real>(group: &Group<P>, re: &[Row], im: &[Row], scale: f64) {
    let mut pairs = [[[P::NONE; 2]; TOGETHER]; PLACES];
    for (block, (re, im)) in re.chunks(PLACES).zip(im.chunks(PLACES)).enumerate() {
        // SAFETY: there is room for as many rows of pairs.
        unsafe { pairs_out(pairs.as_mut_ptr().cast::<P>(), 2 * TOGETHER as i64, TOGETHER, re, im, scale) };
        for (line, start) in group.starts.iter().enumerate().take(group.count) {
            let start = start.wrapping_add(2 * block * PLACES).cast::<[P; 2]>();
            for (place, pairs) in pairs.iter().enumerate().take(re.len()) {
                // SAFETY: the caller's promise.
                unsafe { start.add(place).write_unaligned(pairs[line]) };
            }
        }
    }
}

/// Reads rows of pairs, `along` parts after each other.
///
/// # Safety
/// As many pairs as the parts have are valid for reads.
unsafe fn pairs_in<P: Real>(from: *const P, along: i64, count: usize, re: &mut [Row], im: &mut [Row]) {
    widest(
        #[inline(always)]
        move || {
            if count < TOGETHER {
                for place in 0..re.len() {
                    let row = from.wrapping_offset((place as i64 * along) as isize);
                    for line in 0..count {
                        // SAFETY: the caller's promise.
                        let [of_re, of_im] = unsafe { row.cast::<[P; 2]>().add(line).read_unaligned() };
                        re[place][line] = of_re.wide();
                        im[place][line] = of_im.wide();
                    }
                }
                return;
            }
            for place in 0..re.len() {
                let row = from.wrapping_offset((place as i64 * along) as isize);
                // SAFETY: the caller's promise.
                let pairs = unsafe { row.cast::<[[P; 2]; TOGETHER]>().read_unaligned() };
                let (mut row_re, mut row_im) = ([0.0; TOGETHER], [0.0; TOGETHER]);
                for line in 0..TOGETHER {
                    row_re[line] = pairs[line][0].wide();
                    row_im[line] = pairs[line][1].wide();
                }
                (re[place], im[place]) = (row_re, row_im);
            }
        },
    );
}

/// Writes rows of pairs, `along` parts after each other.
///
/// # Safety
/// As many pairs as the parts have are valid for writes.
unsafe fn pairs_out<P: Real>(to: *mut P, along: i64, count: usize, re: &[Row], im: &[Row], scale: f64) {
    widest(
        #[inline(always)]
        move || {
            for place in 0..re.len() {
                let (row_re, row_im) = (re[place], im[place]);
                let mut pairs = [[P::NONE; 2]; TOGETHER];
                for line in 0..TOGETHER {
                    pairs[line] = [
                        P::rounded((row_re[line] * scale).wide()),
                        P::rounded((row_im[line] * scale).wide()),
                    ];
                }
                let row = to.wrapping_offset((place as i64 * along) as isize);
                if count == TOGETHER {
                    // SAFETY: the caller's promise.
                    unsafe { row.cast::<[[P; 2]; TOGETHER]>().write_unaligned(pairs) };
                } else {
                    for (line, pair) in pairs.iter().enumerate().take(count) {
                        // SAFETY: the caller's promise.
                        unsafe { row.cast::<[P; 2]>().add(line).write_unaligned(*pair) };
                    }
                }
            }
        },
    );
}

/// Reads rows of reals, `along` after each other.
///
/// # Safety
/// As many reals as there are parts are valid for reads.
unsafe fn rows_in<P: Real>(from: *const P, along: i64, count: usize, parts: &mut [Row]) {
    widest(
        #[inline(always)]
        move || {
            for (place, own) in parts.iter_mut().enumerate() {
                let row = from.wrapping_offset((place as i64 * along) as isize);
                if count < TOGETHER {
                    for (line, part) in own.iter_mut().enumerate().take(count) {
                        // SAFETY: the caller's promise.
                        *part = unsafe { *row.add(line) }.wide();
                    }
                    continue;
                }
                // SAFETY: the caller's promise.
                let reals = unsafe { row.cast::<[P; TOGETHER]>().read_unaligned() };
                for line in 0..TOGETHER {
                    own[line] = reals[line].wide();
                }
            }
        },
    );
}

/// Writes rows of reals, `along` after each other.
///
/// # Safety
/// As many reals as there are parts are valid for writes.
unsafe fn rows_out<P: Real>(to: *mut P, along: i64, count: usize, parts: &[Row], scale: f64) {
    widest(
        #[inline(always)]
        move || {
            for (place, own) in parts.iter().enumerate() {
                let row = to.wrapping_offset((place as i64 * along) as isize);
                let mut reals = [P::NONE; TOGETHER];
                for line in 0..TOGETHER {
                    reals[line] = P::rounded((own[line] * scale).wide());
                }
                if count == TOGETHER {
                    // SAFETY: the caller's promise.
                    unsafe { row.cast::<[P; TOGETHER]>().write_unaligned(reals) };
                } else {
                    for (line, real) in reals.iter().enumerate().take(count) {
                        // SAFETY: the caller's promise.
                        unsafe { *row.add(line) = *real };
                    }
                }
            }
        },
    );
}
