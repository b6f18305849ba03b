//! Transforms of several lines of one length, side by side.
//!
//! In: lines, gathered so that the numbers at one place of all lines are neighbours. Out: their transforms, by Stockham's
//! algorithm: passes of radix 4, 2, 3 and 5, each of which writes its results in order, so that every inner loop goes over
//! neighbours. Real and imaginary parts lie apart, which compilers vectorise. Lengths with other factors are convolutions
//! (Bluestein's algorithm) of lines of a power of two.

use std::f64::consts::PI;

use num_complex::Complex64;
use opsmith_runtime::Scratch;
use opsmith_runtime::simd::widest;

/// The sign of the exponent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

/// Complex numbers, parts apart.
struct Parts {
    re: Scratch<f64>,
    im: Scratch<f64>,
}

impl Parts {
    fn zeros(count: usize) -> Parts {
        Parts { re: Scratch::filled(0.0, count), im: Scratch::filled(0.0, count) }
    }

    fn of(numbers: impl Iterator<Item = Complex64> + Clone) -> Parts {
        Parts {
            re: numbers.clone().map(|number| number.re).collect(),
            im: numbers.map(|number| number.im).collect(),
        }
    }
}

/// Lines side by side, and memory for passes.
pub(super) struct Lines {
    /// The number of lines.
    count: usize,
    length: usize,
    values: Parts,
    work: Parts,
    /// Lines of the padded length.
    padded: Parts,
}

impl Lines {
    /// Memory for at most `most` lines side by side.
    pub fn new(plan: &Plan, most: usize) -> Lines {
        let padded = plan.convolution.as_ref().map_or(0, |convolution| convolution.passes.length);
        let size = |length: usize| length * most;
        Lines {
            count: 0,
            length: plan.passes.length,
            values: Parts::zeros(size(plan.passes.length)),
            work: Parts::zeros(size(plan.passes.length.max(padded))),
            padded: Parts::zeros(size(padded)),
        }
    }

    /// Reads `count` lines, which are `across` apart, with numbers `along` apart.
    pub fn gather(&mut self, from: &[Complex64], count: usize, across: usize, along: usize) {
        self.count = count;
        let rows = self.values.re.chunks_exact_mut(count).zip(self.values.im.chunks_exact_mut(count));
        for (place, (re, im)) in rows.enumerate().take(self.length) {
            for (line, (re, im)) in re.iter_mut().zip(im).enumerate() {
                let number = from[line * across + place * along];
                (*re, *im) = (number.re, number.im);
            }
        }
    }

    /// Writes the lines as they were read.
    pub fn scatter(&self, to: &mut [Complex64], across: usize, along: usize) {
        let rows = self.values.re.chunks_exact(self.count).zip(self.values.im.chunks_exact(self.count));
        for (place, (re, im)) in rows.enumerate().take(self.length) {
            for (line, (re, im)) in re.iter().zip(im).enumerate() {
                to[line * across + place * along] = Complex64::new(*re, *im);
            }
        }
    }
}

/// The tables of all transforms of one length.
pub(super) struct Plan {
    passes: Passes,
    convolution: Option<Convolution>,
}

impl Plan {
    pub fn new(length: usize, direction: Direction) -> Plan {
        let sign = if direction == Direction::Forward { -1.0 } else { 1.0 };
        let passes = Passes::new(length, sign);
        let convolution = passes.radices.is_none().then(|| Convolution::new(length, sign));
        Plan { passes, convolution }
    }

    /// Transforms lines.
    pub fn run(&self, lines: &mut Lines) {
        let Lines { count, values, work, padded, .. } = lines;
        widest(
            #[inline(always)]
            || match &self.convolution {
                None => self.passes.run(values, work, *count),
                Some(convolution) => convolution.run(values, padded, work, *count),
            },
        );
    }
}

/// Most passes of a length below 2^63.
const MOST_PASSES: usize = 64;

/// The passes of one length.
struct Passes {
    length: usize,
    sign: f64,
    /// The radix of each pass and their number; `None` if the length has another factor.
    radices: Option<([u8; MOST_PASSES], usize)>,
    /// For each pass, place and power from 1 below the radix, the root of unity.
    roots: Scratch<Complex64>,
}

impl Passes {
    fn new(length: usize, sign: f64) -> Passes {
        let radices = radices(length);
        let mut roots = Scratch::new();
        if let Some((radices, count)) = &radices {
            let mut rest = length;
            for radix in radices[..*count].iter().map(|radix| usize::from(*radix)) {
                for place in 0..rest / radix {
                    let angle = |power: usize| sign * 2.0 * PI * (place * power) as f64 / rest as f64;
                    roots.extend((1..radix).map(|power| Complex64::from_polar(1.0, angle(power))));
                }
                rest /= radix;
            }
        }
        Passes { length, sign, radices, roots }
    }

    /// Transforms `count` lines; `work` is as long.
    #[inline(always)]
    fn run(&self, values: &mut Parts, work: &mut Parts, count: usize) {
        let Some((radices, passes)) = &self.radices else { return };
        let (mut rest, mut stride) = (self.length, count);
        let mut roots = &self.roots[..];
        for radix in &radices[..*passes] {
            let size = usize::from(*radix);
            let places = rest / size;
            let (own, others) = roots.split_at(places * (size - 1));
            let pass = Pass { values, out: work, places, stride, roots: own, sign: self.sign };
            match radix {
                2 => pass.run::<2>(halves),
                3 => pass.run::<3>(thirds),
                4 => pass.run::<4>(fourths),
                _ => pass.run::<5>(fifths),
            }
            std::mem::swap(values, work);
            (rest, stride, roots) = (places, stride * size, others);
        }
    }
}

/// The factors 4, 2, 3 and 5 of a length, in this order; `None` if there are others.
fn radices(length: usize) -> Option<([u8; MOST_PASSES], usize)> {
    let (mut radices, mut count, mut rest) = ([0; MOST_PASSES], 0, length.max(1));
    for radix in [4u8, 2, 3, 5] {
        while rest.is_multiple_of(usize::from(radix)) {
            radices[count] = radix;
            count += 1;
            rest /= usize::from(radix);
        }
    }
    (rest == 1).then_some((radices, count))
}

/// One pass: transforms of as many numbers as the radix, and their products with roots of unity.
struct Pass<'a> {
    values: &'a Parts,
    out: &'a mut Parts,
    places: usize,
    stride: usize,
    roots: &'a [Complex64],
    sign: f64,
}

/// A complex number in registers.
type Pair = (f64, f64);

impl Pass<'_> {
    #[inline(always)]
    fn run<const R: usize>(self, transform: impl Fn([Pair; R], f64) -> [Pair; R]) {
        let Pass { values, out, places, stride, roots, sign } = self;
        let (used, all) = (places * stride, R * places * stride);
        let (from_re, from_im) = (&values.re[..all], &values.im[..all]);
        let (to_re, to_im) = (&mut out.re[..all], &mut out.im[..all]);
        for place in 0..places {
            let own: [Pair; R] = std::array::from_fn(|power| match power.checked_sub(1) {
                Some(power) => {
                    let root = roots[place * (R - 1) + power];
                    (root.re, root.im)
                }
                None => (1.0, 0.0),
            });
            let re: [&[f64]; R] = std::array::from_fn(|at| &from_re[at * used + place * stride..][..stride]);
            let im: [&[f64]; R] = std::array::from_fn(|at| &from_im[at * used + place * stride..][..stride]);
            let to_re = &mut to_re[R * place * stride..][..R * stride];
            let to_im = &mut to_im[R * place * stride..][..R * stride];
            for at in 0..stride {
                let numbers = std::array::from_fn(|number| (re[number][at], im[number][at]));
                let results = transform(numbers, sign);
                for (number, (result, root)) in results.into_iter().zip(own).enumerate() {
                    let result = if number == 0 { result } else { times(result, root) };
                    (to_re[number * stride + at], to_im[number * stride + at]) = result;
                }
            }
        }
    }
}

#[inline(always)]
fn times(a: Pair, b: Pair) -> Pair {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

#[inline(always)]
fn plus(a: Pair, b: Pair) -> Pair {
    (a.0 + b.0, a.1 + b.1)
}

#[inline(always)]
fn minus(a: Pair, b: Pair) -> Pair {
    (a.0 - b.0, a.1 - b.1)
}

/// A number times `sign · i · factor`.
#[inline(always)]
fn turned(a: Pair, factor: f64) -> Pair {
    (-a.1 * factor, a.0 * factor)
}

#[inline(always)]
fn scaled(a: Pair, factor: f64) -> Pair {
    (a.0 * factor, a.1 * factor)
}

#[inline(always)]
fn halves([a, b]: [Pair; 2], _sign: f64) -> [Pair; 2] {
    [plus(a, b), minus(a, b)]
}

#[inline(always)]
fn thirds([a, b, c]: [Pair; 3], sign: f64) -> [Pair; 3] {
    /// The sine of a third of a turn.
    const SINE: f64 = 0.866_025_403_784_438_6;
    let (sum, difference) = (plus(b, c), turned(minus(b, c), sign * SINE));
    let middle = plus(a, scaled(sum, -0.5));
    [plus(a, sum), plus(middle, difference), minus(middle, difference)]
}

#[inline(always)]
fn fourths([a, b, c, d]: [Pair; 4], sign: f64) -> [Pair; 4] {
    let (even, odd) = (plus(a, c), plus(b, d));
    let (lower, upper) = (minus(a, c), turned(minus(b, d), sign));
    [plus(even, odd), plus(lower, upper), minus(even, odd), minus(lower, upper)]
}

#[inline(always)]
fn fifths([a, b, c, d, e]: [Pair; 5], sign: f64) -> [Pair; 5] {
    /// Cosines and sines of one and two fifths of a turn.
    const COSINES: [f64; 2] = [0.309_016_994_374_947_45, -0.809_016_994_374_947_5];
    const SINES: [f64; 2] = [0.951_056_516_295_153_5, 0.587_785_252_292_473_1];
    let (outer, inner) = (plus(b, e), plus(c, d));
    let (outer_rest, inner_rest) = (minus(b, e), minus(c, d));
    let part = |first: usize, second: usize| {
        plus(a, plus(scaled(outer, COSINES[first]), scaled(inner, COSINES[second])))
    };
    let (one, two) = (part(0, 1), part(1, 0));
    let turn_one = turned(plus(scaled(outer_rest, SINES[0]), scaled(inner_rest, SINES[1])), sign);
    let turn_two = turned(minus(scaled(outer_rest, SINES[1]), scaled(inner_rest, SINES[0])), sign);
    [
        plus(a, plus(outer, inner)),
        plus(one, turn_one),
        plus(two, turn_two),
        minus(two, turn_two),
        minus(one, turn_one),
    ]
}

/// A transform as a convolution with a chirp, between products with it.
struct Convolution {
    length: usize,
    /// Those of a power of two.
    passes: Passes,
    /// e^(±πi k² / n).
    chirp: Parts,
    /// The transform of its conjugate, divided by the padded length.
    filter: Parts,
}

impl Convolution {
    fn new(length: usize, sign: f64) -> Convolution {
        let padded = (2 * length - 1).next_power_of_two();
        // k² modulo 2n keeps the angle exact for large k.
        let angle =
            |k: usize| sign * PI * ((k as u128 * k as u128) % (2 * length as u128)) as f64 / length as f64;
        let chirp = Parts::of((0..length).map(|k| Complex64::from_polar(1.0, angle(k))));
        let mut filter = Parts::zeros(padded);
        for k in 0..length {
            for at in [k, (padded - k) % padded] {
                (filter.re[at], filter.im[at]) = (chirp.re[k] / padded as f64, -chirp.im[k] / padded as f64);
            }
        }
        let passes = Passes::new(padded, -1.0);
        let mut work = Parts::zeros(padded);
        passes.run(&mut filter, &mut work, 1);
        Convolution { length, passes, chirp, filter }
    }

    #[inline(always)]
    fn run(&self, values: &mut Parts, padded: &mut Parts, work: &mut Parts, count: usize) {
        let used = self.length * count;
        products(&values.re[..used], &values.im[..used], &self.chirp, padded, count);
        padded.re[used..self.passes.length * count].fill(0.0);
        padded.im[used..self.passes.length * count].fill(0.0);
        self.passes.run(padded, work, count);
        let all = self.passes.length * count;
        products(&padded.re[..all], &padded.im[..all], &self.filter, work, count);
        // The inverse transform, as the conjugate of the transform of the conjugate.
        work.im[..all].iter_mut().for_each(|im| *im = -*im);
        self.passes.run(work, padded, count);
        work.im[..used].iter_mut().for_each(|im| *im = -*im);
        products(&work.re[..used], &work.im[..used], &self.chirp, values, count);
    }
}

/// Products of the numbers at each place of all lines with one number.
#[inline(always)]
fn products(re: &[f64], im: &[f64], factors: &Parts, out: &mut Parts, count: usize) {
    let rows = re.chunks_exact(count).zip(im.chunks_exact(count));
    let outs = out.re.chunks_exact_mut(count).zip(out.im.chunks_exact_mut(count));
    let factors = factors.re.iter().zip(&factors.im);
    for (((re, im), (out_re, out_im)), (factor_re, factor_im)) in rows.zip(outs).zip(factors) {
        for at in 0..count {
            (out_re[at], out_im[at]) = times((re[at], im[at]), (*factor_re, *factor_im));
        }
    }
}
