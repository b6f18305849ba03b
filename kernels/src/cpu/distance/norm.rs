//! Norms of differences of rows: of one row and many side by side in vectors, and their slopes.
//!
//! In: rows of numbers of the type that computes. Out: distances, or sums of slopes. Must not know stacks of matrices.

use opsmith_runtime::{Error, Result, Scratch};

use crate::cpu::float::Float;
use crate::math::{abs, maximum, pow, sgn, sqrt};

/// Rows of a block, which a distance each is computed to at once.
pub(in crate::cpu) const LANES: usize = 64;

/// The exponent of a norm: from 0 on, or infinity.
#[derive(Clone, Copy)]
pub(super) struct Norm(f64);

/// Rows in blocks of [`LANES`]: the first numbers of all rows of a block, then the second ones, and so on.
pub(super) struct Blocked<C> {
    elements: Scratch<C>,
    width: usize,
    /// Number of blocks of a matrix; the last one may have less rows.
    pub blocks: usize,
}

impl<C: Float> Blocked<C> {
    /// The matrices of a stack, `rows` by `width` each.
    pub fn new(elements: &[C], rows: usize, width: usize) -> Blocked<C> {
        let blocks = rows.div_ceil(LANES);
        let matrices = elements.len() / (rows * width).max(1);
        let mut blocked = Scratch::filled(C::ZERO, matrices * blocks * LANES * width);
        for (number, row) in elements.chunks_exact(width.max(1)).enumerate() {
            let (matrix, row_number) = (number / rows, number % rows);
            let block = matrix * blocks + row_number / LANES;
            let target = &mut blocked[block * LANES * width + row_number % LANES..];
            target.iter_mut().step_by(LANES).zip(row).for_each(|(place, number)| *place = *number);
        }
        Blocked { elements: blocked, width, blocks }
    }

    /// A block, by its number in all matrices.
    #[inline(always)]
    fn block(&self, number: usize) -> &[C] {
        &self.elements[number * LANES * self.width..][..LANES * self.width]
    }

    /// The distances of a row to the rows of a block; lanes without a row have no meaning.
    #[inline(always)]
    pub fn distances(&self, norm: Norm, row: &[C], block: usize) -> [C; LANES] {
        let block = self.block(block);
        match norm.0 {
            0.0 => folded(
                row,
                block,
                #[inline(always)]
                |sum, d| sum + if d == C::ZERO { C::ZERO } else { C::ONE },
            ),
            1.0 => folded(
                row,
                block,
                #[inline(always)]
                |sum, d| sum + d,
            ),
            2.0 => roots(folded(
                row,
                block,
                #[inline(always)]
                |sum, d| sum + d * d,
            )),
            f64::INFINITY => folded(
                row,
                block,
                #[inline(always)]
                |sum, d| maximum(sum, d),
            ),
            p => {
                let (p, root) = (C::of(p), C::of(1.0 / p));
                let mut sums = folded(
                    row,
                    block,
                    #[inline(always)]
                    |sum, d| sum + pow(d, p),
                );
                for sum in &mut sums {
                    *sum = pow(*sum, root);
                }
                sums
            }
        }
    }
}

#[inline(always)]
fn roots<C: Float>(mut squares: [C; LANES]) -> [C; LANES] {
    for square in &mut squares {
        *square = sqrt(*square);
    }
    squares
}

/// Folds the differences of a row from each row of a block, in the order of columns.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn folded<C: Float>(row: &[C], block: &[C], fold: impl Fn(C, C) -> C + Copy) -> [C; LANES] {
    let mut sums = [C::ZERO; LANES];
    for (&number, others) in row.iter().zip(block.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[lane] = fold(sums[lane], abs(number - others[lane]));
        }
    }
    sums
}

impl Norm {
    /// # Errors
    /// If `p` is negative or NaN.
    pub fn new(p: f64) -> Result<Norm> {
        if p >= 0.0 {
            return Ok(Norm(p));
        }
        Err(Error::value(format!("there is no {p}-norm")).with_help("p is a number from 0 on, or infinity"))
    }

    /// Adds the contribution of one distance to another row to a row's gradient.
    #[inline(always)]
    pub fn add_gradient<C: Float>(self, a: &[C], b: &[C], distance: C, grad: C, sums: &mut [C]) {
        if distance == C::ZERO {
            return;
        }
        match self.0 {
            0.0 => add_slopes(
                a,
                b,
                grad,
                sums,
                #[inline(always)]
                |_| C::ZERO,
            ),
            // A distance of NaN has no slope either.
            1.0 => add_slopes(
                a,
                b,
                grad,
                sums,
                #[inline(always)]
                |d| if d.equal(d) { sgn(d) } else { d },
            ),
            2.0 => add_slopes(
                a,
                b,
                grad,
                sums,
                #[inline(always)]
                |d| d / distance,
            ),
            f64::INFINITY => add_largest_slope(a, b, grad, sums),
            p => add_powers(p, a, b, [distance, grad], sums),
        }
    }
}

#[inline(always)]
fn add_largest_slope<C: Float>(a: &[C], b: &[C], grad: C, sums: &mut [C]) {
    // The distance that the caller has may be rounded; the difference that decided it is not.
    let differences = a.iter().zip(b).map(|(&a, &b)| abs(a - b));
    let largest = differences.fold(C::ZERO, maximum);
    add_slopes(
        a,
        b,
        grad,
        sums,
        #[inline(always)]
        |d| if abs(d) == largest { sgn(d) } else { C::ZERO },
    );
}

#[inline(always)]
fn add_powers<C: Float>(p: f64, a: &[C], b: &[C], [distance, grad]: [C; 2], sums: &mut [C]) {
    let exponent = C::of(p - 1.0);
    add_slopes(
        a,
        b,
        grad,
        sums,
        #[inline(always)]
        |d| {
            // Below 1 the slope at equal columns is infinite; they contribute nothing.
            if p < 1.0 && d == C::ZERO { C::ZERO } else { sgn(d) * pow(abs(d) / distance, exponent) }
        },
    );
}

/// Adds the slope of each difference, times a gradient.
#[inline(always)]
fn add_slopes<C: Float>(a: &[C], b: &[C], grad: C, sums: &mut [C], slope: impl Fn(C) -> C + Copy) {
    for ((&a, &b), sum) in a.iter().zip(b).zip(sums) {
        *sum = *sum + grad * slope(a - b);
    }
}
