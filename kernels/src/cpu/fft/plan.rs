//! Transforms of several lines of one length, side by side.
//!
//! In: lines, gathered so that the numbers at one place of all lines are neighbours. Out: their transforms, by Stockham's
//! algorithm: passes of radix 4, 2, 3 and 5, each of which writes its results in order, so that every inner loop goes over
//! neighbours. Real and imaginary parts lie apart, which compilers vectorise. Lengths with other factors are convolutions
//! (Bluestein's algorithm) of lines of a power of two.

use std::f64::consts::PI;

use opsmith_runtime::Scratch;
use opsmith_runtime::simd::widest;

use super::TOGETHER;
use super::lines::Lines;

/// The sign of the exponent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

impl Direction {
    pub fn sign(self) -> f64 {
        if self == Direction::Forward { -1.0 } else { 1.0 }
    }
}

/// The numbers at one place of all lines.
pub(super) type Row = [f64; TOGETHER];

/// Complex numbers of lines side by side, parts apart.
pub(super) struct Parts {
    pub re: Scratch<Row>,
    pub im: Scratch<Row>,
}

impl Parts {
    pub fn zeros(places: usize) -> Parts {
        let row = [0.0; TOGETHER];
        Parts { re: Scratch::filled(row, places), im: Scratch::filled(row, places) }
    }
}

/// The `number`-th power of the root of unity of an order, with the sign of a direction's exponent.
pub(super) fn root(number: usize, order: usize, sign: f64) -> (f64, f64) {
    // Angles of at most an eighth of a turn have the most digits.
    let turns = number % order;
    let (swapped, eighth) = match (8 * turns / order) % 8 {
        0 => ([1.0, 1.0, 0.0], turns as f64),
        1 => ([1.0, 1.0, 1.0], order as f64 / 4.0 - turns as f64),
        2 => ([-1.0, 1.0, 1.0], turns as f64 - order as f64 / 4.0),
        3 => ([-1.0, 1.0, 0.0], order as f64 / 2.0 - turns as f64),
        4 => ([-1.0, -1.0, 0.0], turns as f64 - order as f64 / 2.0),
        5 => ([-1.0, -1.0, 1.0], 0.75 * order as f64 - turns as f64),
        6 => ([1.0, -1.0, 1.0], turns as f64 - 0.75 * order as f64),
        _ => ([1.0, -1.0, 0.0], (order - turns) as f64),
    };
    let (sine, cosine) = (2.0 * PI * eighth / order as f64).sin_cos();
    let [of_re, of_im, is_swapped] = swapped;
    let (re, im) = if is_swapped == 1.0 { (sine, cosine) } else { (cosine, sine) };
    (of_re * re, sign * of_im * im)
}

/// Whether a length has no prime factor above 5.
pub(super) fn is_smooth(length: usize) -> bool {
    radices(length).is_some()
}

/// The tables of all transforms of one length.
pub(super) struct Plan {
    passes: Passes,
    convolution: Option<Convolution>,
}

impl Plan {
    pub fn new(length: usize, direction: Direction) -> Plan {
        let sign = direction.sign();
        let passes = Passes::new(length, sign);
        let convolution = passes.radices.is_none().then(|| Convolution::new(length, sign));
        Plan { passes, convolution }
    }

    /// The length of lines that are filled up with zeros for the transform, or 0.
    pub fn padded(&self) -> usize {
        self.convolution.as_ref().map_or(0, |convolution| convolution.passes.length)
    }

    /// Transforms lines.
    pub fn run(&self, lines: &mut Lines) {
        let Lines { values, work, padded, .. } = lines;
        widest(
            #[inline(always)]
            || match &self.convolution {
                None => self.passes.run(values, work),
                Some(convolution) => convolution.run(values, padded, work),
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
    roots: Scratch<(f64, f64)>,
}

impl Passes {
    fn new(length: usize, sign: f64) -> Passes {
        let radices = radices(length);
        let mut roots = Scratch::new();
        if let Some((radices, count)) = &radices {
            let all = roots_of(length, sign);
            let mut rest = length;
            for radix in radices[..*count].iter().map(|radix| usize::from(*radix)) {
                for place in 0..rest / radix {
                    roots.extend((1..radix).map(|power| all[place * power * (length / rest)]));
                }
                rest /= radix;
            }
        }
        Passes { length, sign, radices, roots }
    }

    /// Transforms lines; `work` is as long.
    #[inline(always)]
    fn run(&self, values: &mut Parts, work: &mut Parts) {
        let Some((radices, passes)) = &self.radices else { return };
        let (mut rest, mut stride) = (self.length, 1);
        let mut roots = &self.roots[..];
        for radix in &radices[..*passes] {
            let size = usize::from(*radix);
            let places = rest / size;
            let (own, others) = roots.split_at(places * (size - 1));
            let mut pass = Pass { values, out: work, places, stride, roots: own, sign: self.sign };
            match radix {
                2 => by_two(&mut pass),
                3 => by_three(&mut pass),
                4 => by_four(&mut pass),
                _ => by_five(&mut pass),
            }
            std::mem::swap(values, work);
            (rest, stride, roots) = (places, stride * size, others);
        }
    }
}

/// The powers below an order of its root of unity.
fn roots_of(order: usize, sign: f64) -> Scratch<(f64, f64)> {
    let mut all: Scratch<(f64, f64)> = (0..=order / 2).map(|number| root(number, order, sign)).collect();
    for number in order / 2 + 1..order {
        let (re, im) = all[order - number];
        all.push((re, -im));
    }
    all
}

/// The factors 4, 2, 3 and 5 of a length, in this order; `None` if there are others.
fn radices(length: usize) -> Option<([u8; MOST_PASSES], usize)> {
    let (mut radices, mut count, mut rest) = ([0; MOST_PASSES], 0, length.max(1));
    for radix in [4, 2, 3, 5] {
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
    roots: &'a [(f64, f64)],
    sign: f64,
}

/// Passes of each radix. A loop over the lines of one place has all steps, and its results are copied behind it: stores between would
/// keep the compiler from vectors.
macro_rules! passes {
    ($($name:ident $at_place:ident $radix:literal $transform:ident: $($number:literal $part:ident $re:ident $im:ident)*;)*) => {$(
        #[inline(always)]
        fn $name(pass: &mut Pass<'_>) {
            // The roots of the first place are ones.
            $at_place::<false>(pass, 0);
            for place in 1..pass.places {
                $at_place::<true>(pass, place);
            }
        }

        #[inline(always)]
        fn $at_place<const TURNS: bool>(pass: &mut Pass<'_>, place: usize) {
            let Pass { values, out, places, stride, roots, sign } = pass;
            let (places, stride, sign) = (*places, *stride, *sign);
            let roots = &roots[place * ($radix - 1)..][..$radix - 1];
            let (re, im) = (&values.re[..$radix * places * stride], &values.im[..$radix * places * stride]);
            let to_re = &mut out.re[$radix * place * stride..][..$radix * stride];
            let to_im = &mut out.im[$radix * place * stride..][..$radix * stride];
            for at in 0..stride {
                $(
                    let from = ($number * places + place) * stride + at;
                    let ($re, $im) = (&re[from], &im[from]);
                )*
                let mut result_re = [[0.0; TOGETHER]; $radix];
                let mut result_im = [[0.0; TOGETHER]; $radix];
                for line in 0..TOGETHER {
                    let [$($part),*] = $transform([$(($re[line], $im[line])),*], sign);
                    $(
                        let turned = if TURNS && $number > 0 { times($part, roots[usize::max($number, 1) - 1]) } else { $part };
                        (result_re[$number][line], result_im[$number][line]) = turned;
                    )*
                }
                $(
                    to_re[$number * stride + at] = result_re[$number];
                    to_im[$number * stride + at] = result_im[$number];
                )*
            }
        }
    )*};
}

passes! {
    by_two at_place_by_two 2 halves: 0 a a_re a_im 1 b b_re b_im;
    by_three at_place_by_three 3 thirds: 0 a a_re a_im 1 b b_re b_im 2 c c_re c_im;
    by_four at_place_by_four 4 fourths: 0 a a_re a_im 1 b b_re b_im 2 c c_re c_im 3 d d_re d_im;
    by_five at_place_by_five 5 fifths: 0 a a_re a_im 1 b b_re b_im 2 c c_re c_im 3 d d_re d_im 4 e e_re e_im;
}

/// A complex number in registers.
type Pair = (f64, f64);

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
    chirp: Scratch<(f64, f64)>,
    /// The transform of its conjugate, divided by the padded length.
    filter: Scratch<(f64, f64)>,
}

impl Convolution {
    fn new(length: usize, sign: f64) -> Convolution {
        let padded = (2 * length - 1).next_power_of_two();
        // k² modulo 2n keeps the angle exact for large k.
        let turns = |k: usize| (k as u128 * k as u128 % (2 * length as u128)) as usize;
        let chirp: Scratch<(f64, f64)> = (0..length).map(|k| root(turns(k), 2 * length, sign)).collect();
        let mut filter = Parts::zeros(padded);
        let part = 1.0 / padded as f64;
        for (k, (re, im)) in chirp.iter().enumerate() {
            for at in [k, (padded - k) % padded] {
                (filter.re[at][0], filter.im[at][0]) = (*re * part, -*im * part);
            }
        }
        let passes = Passes::new(padded, -1.0);
        let mut work = Parts::zeros(padded);
        widest(
            #[inline(always)]
            || passes.run(&mut filter, &mut work),
        );
        let filter = filter.re.iter().zip(&filter.im).map(|(re, im)| (re[0], im[0])).collect();
        Convolution { length, passes, chirp, filter }
    }

    #[inline(always)]
    fn run(&self, values: &mut Parts, padded: &mut Parts, work: &mut Parts) {
        let (used, all) = (self.length, self.passes.length);
        products(values, &self.chirp, padded, used);
        padded.re[used..all].fill([0.0; TOGETHER]);
        padded.im[used..all].fill([0.0; TOGETHER]);
        self.passes.run(padded, work);
        products(padded, &self.filter, work, all);
        // The inverse transform, as the conjugate of the transform of the conjugate.
        negate(&mut work.im[..all]);
        self.passes.run(work, padded);
        negate(&mut work.im[..used]);
        products(work, &self.chirp, values, used);
    }
}

#[inline(always)]
fn negate(rows: &mut [Row]) {
    for row in rows {
        for part in row {
            *part = -*part;
        }
    }
}

/// Products of the numbers at each place of all lines with one number.
#[inline(always)]
fn products(values: &Parts, factors: &[(f64, f64)], out: &mut Parts, places: usize) {
    for (place, &factor) in factors.iter().enumerate().take(places) {
        let (re, im) = (values.re[place], values.im[place]);
        let (mut result_re, mut result_im) = (re, im);
        for line in 0..TOGETHER {
            (result_re[line], result_im[line]) = times((re[line], im[line]), factor);
        }
        (out.re[place], out.im[place]) = (result_re, result_im);
    }
}
