//! Eigenvalues and eigenvectors of a diagonal matrix and one of rank one.
//!
//! In: the diagonal in ascending order, without equal numbers, and a vector without zeros. Out: eigenvalues, and eigenvectors in the
//! basis of the diagonal. The eigenvalues are the zeros of `1 + factor Σ vector² / (diagonal - λ)`, one between each two poles and one
//! beyond the last. Each is found as its distance from the nearest pole, so that differences have all digits.
//!
//! Source: the iteration of J. Bunch, C. Nielsen and D. Sorensen, "Rank-one modification of the symmetric eigenproblem" (1978);
//! vectors by M. Gu and S. Eisenstat, "A stable and efficient algorithm for the rank-one modification of the symmetric
//! eigenproblem" (1994).

use opsmith_runtime::Scratch;
use opsmith_runtime::simd::widest;

use super::matrix::{LANES, Mat};

/// Steps of the iteration; half a dozen are many.
const STEPS: usize = 100;

/// The eigenvalues, and for each a row of the eigenvector's elements.
pub(super) fn eigen(poles: &[f64], vector: &[f64], factor: f64) -> (Scratch<f64>, Mat<f64>) {
    let count = poles.len();
    let weights: Scratch<f64> = vector.iter().map(|part| factor * part * part).collect();
    let mut values = Scratch::with_capacity(count);
    // For each eigenvalue, its differences from the poles.
    let mut differences = Mat::zeros(count, count);
    let mut shifted = Scratch::filled(0.0, count);
    for number in 0..count {
        let (origin, distance) = zero(poles, &weights, number, &mut shifted);
        values.push(poles[origin] + distance);
        let row = differences.row_mut(number);
        row.iter_mut().zip(poles).for_each(|(to, pole)| *to = (pole - poles[origin]) - distance);
    }
    let vector = matching(poles, &differences, vector);
    for number in 0..count {
        let row = differences.row_mut(number);
        let mut sum = 0.0;
        for (element, part) in row.iter_mut().zip(&vector) {
            *element = part / *element;
            sum += *element * *element;
        }
        let length = sum.sqrt();
        row.iter_mut().for_each(|element| *element /= length);
    }
    (values, differences)
}

/// The vector for which the eigenvalues as found are exact, with the signs of another.
fn matching(poles: &[f64], differences: &Mat<f64>, signs: &[f64]) -> Scratch<f64> {
    let mut products = Scratch::filled(1.0, poles.len());
    for (number, &own) in poles.iter().enumerate() {
        let row = differences.row(number);
        for (at, (product, difference)) in products.iter_mut().zip(row).enumerate() {
            let apart = if at == number { -1.0 } else { poles[at] - own };
            *product *= difference / apart;
        }
    }
    let parts = products.iter().zip(signs).map(|(product, sign)| product.abs().sqrt().copysign(*sign));
    parts.collect()
}

/// The function's sum over poles up to one and over others, and their derivatives.
struct Sums {
    below: f64,
    below_slope: f64,
    above: f64,
    above_slope: f64,
}

impl Sums {
    fn at(shifted: &[f64], weights: &[f64], number: usize, distance: f64) -> Sums {
        let end = number + 1;
        let (below, below_slope) = sums(&shifted[..end], &weights[..end], distance);
        let (above, above_slope) = sums(&shifted[end..], &weights[end..], distance);
        Sums { below, below_slope, above, above_slope }
    }

    fn value(&self) -> f64 {
        1.0 + self.below + self.above
    }

    /// A value that rounding errors may have.
    fn noise(&self) -> f64 {
        4.0 * f64::EPSILON * (1.0 + self.below.abs() + self.above.abs())
    }
}

/// `Σ weights / (shifted - distance)`, and its derivative.
fn sums(shifted: &[f64], weights: &[f64], distance: f64) -> (f64, f64) {
    widest(
        #[inline(always)]
        move || {
            let (mut values, mut slopes) = ([0.0; LANES], [0.0; LANES]);
            let (blocks, rest) = shifted.as_chunks::<LANES>();
            let (weight_blocks, weight_rest) = weights.as_chunks::<LANES>();
            for at in 0..blocks.len() {
                let (block, weights) = (blocks[at], weight_blocks[at]);
                for lane in 0..LANES {
                    let inverse = 1.0 / (block[lane] - distance);
                    let term = weights[lane] * inverse;
                    values[lane] += term;
                    slopes[lane] += term * inverse;
                }
            }
            for (lane, (place, weight)) in rest.iter().zip(weight_rest).enumerate() {
                let inverse = 1.0 / (place - distance);
                values[lane] += weight * inverse;
                slopes[lane] += weight * inverse * inverse;
            }
            (values.iter().sum(), slopes.iter().sum())
        },
    )
}

/// The pole that a zero is next to, and its distance from there; `shifted` is memory for as many numbers as there are poles.
fn zero(poles: &[f64], weights: &[f64], number: usize, shifted: &mut [f64]) -> (usize, f64) {
    let is_last = number + 1 == poles.len();
    let shift = |shifted: &mut [f64], origin: usize| {
        shifted.iter_mut().zip(poles).for_each(|(to, pole)| *to = pole - poles[origin]);
    };
    shift(shifted, number);
    let gap = if is_last { weights.iter().sum::<f64>() } else { poles[number + 1] - poles[number] };
    let middle = 0.5 * gap;
    let sums = Sums::at(shifted, weights, number, middle);
    let is_left = sums.value() >= 0.0;
    if is_last {
        let range = if is_left { [0.0, middle] } else { [middle, gap] };
        return (number, refined(shifted, weights, number, range, if is_left { middle } else { gap }));
    }
    // The two nearest poles, and all others as they are in the middle.
    let (own, next) = (weights[number], weights[number + 1]);
    let rest = sums.value() + own / middle - next / middle;
    let origin = if is_left { number } else { number + 1 };
    shift(shifted, origin);
    let (low, high) = (shifted[number], shifted[number + 1]);
    let range = if is_left { [0.0, middle] } else { [-middle, 0.0] };
    let start = if is_left { low } else { high };
    let guess = start + between(rest, [own, next], [low - start, high - start]);
    let is_inside = guess > range[0] && guess < range[1];
    let guess = if is_inside { guess } else { 0.5 * (range[0] + range[1]) };
    (origin, refined(shifted, weights, number, range, guess))
}

/// The zero of `rest + weights[0] / (poles[0] - x) + weights[1] / (poles[1] - x)` between the poles.
fn between(rest: f64, [low, high]: [f64; 2], [first, second]: [f64; 2]) -> f64 {
    let linear = rest * (first + second) + low + high;
    let constant = rest * first * second + low * second + high * first;
    let root = (linear * linear - 4.0 * rest * constant).max(0.0).sqrt();
    if linear <= 0.0 { (linear - root) / (2.0 * rest) } else { 2.0 * constant / (linear + root) }
}

/// The zero in a range, from a guess.
fn refined(shifted: &[f64], weights: &[f64], number: usize, range: [f64; 2], guess: f64) -> f64 {
    let ([mut low, mut high], mut distance) = (range, guess);
    let next = shifted.get(number + 1).copied();
    for _ in 0..STEPS {
        let sums = Sums::at(shifted, weights, number, distance);
        let value = sums.value();
        if value.abs() <= sums.noise() {
            break;
        }
        if value < 0.0 {
            low = distance;
        } else {
            high = distance;
        }
        let own = shifted[number] - distance;
        let weight = sums.below_slope * own * own;
        let constant = 1.0 + (sums.below - sums.below_slope * own);
        let step = match next {
            None => own + weight / constant,
            Some(next) => {
                let other = next - distance;
                let other_weight = sums.above_slope * other * other;
                let constant = constant + (sums.above - sums.above_slope * other);
                between(constant, [weight, other_weight], [own, other])
            }
        };
        let moved = distance + step;
        let is_inside = moved > low && moved < high;
        let moved = if is_inside { moved } else { 0.5 * (low + high) };
        let is_done = (moved - distance).abs() <= f64::EPSILON * moved.abs();
        distance = moved;
        if is_done || high - low <= f64::EPSILON * low.abs().max(high.abs()) {
            break;
        }
    }
    distance
}
