//! Distances between rows: p-norms of their differences.
//!
//! `p` is a number from 0 on: 0 counts the columns that differ, 1 sums their distances, 2 is Euclid's
//! distance, infinity takes the largest.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::{Axes, Axis, Walk, axes};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, View, ViewMut};

use super::float::Float;
use super::strides::{broadcast_strides, expect_operand, expect_sizes};
use crate::math::{abs, maximum, pow, sgn, sqrt};

/// The distance of every row of `x1` to every row of `x2`; dimensions before the last two broadcast.
///
/// # Errors
/// If `p` is negative or the shapes do not go together.
pub fn cdist_forward<T: Element<Compute: Float>>(
    x1: View<'_, T>,
    x2: View<'_, T>,
    p: f64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let norm = Norm::new(p)?;
    let pairs = Pairs::new(x1.sizes(), x2.sizes(), out.sizes())?;
    let (a, b) = (elements(&x1), elements(&x2));
    let distances: Scratch<T> = pairs
        .iter()
        .map(|[first, second]| norm.distance::<T::Compute>(pairs.row(&a, first), pairs.row(&b, second)))
        .map(T::from_compute)
        .collect();
    out.write(distances)
}

/// The gradient of [`cdist_forward`] for `x1`, broadcast to the result's stack of matrices.
///
/// # Errors
/// As [`cdist_forward`].
pub fn cdist_backward<T: Element<Compute: Float>>(
    grad_output: View<'_, T>,
    x1: View<'_, T>,
    x2: View<'_, T>,
    p: f64,
    cdist: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let norm = Norm::new(p)?;
    expect_operand("cdist", cdist.sizes(), grad_output.sizes())?;
    let pairs = Pairs::new(x1.sizes(), x2.sizes(), grad_output.sizes())?;
    if grad_output.numel() == 0 || x1.numel() == 0 {
        return out.write(std::iter::repeat(T::default()));
    }
    let mut sizes = Dims::from_slice(grad_output.sizes());
    let columns = sizes.pop().unwrap_or(0) as usize;
    sizes.push(pairs.width as i64);
    expect_sizes(out.sizes(), &sizes)?;
    let (a, b) = (elements(&x1), elements(&x2));
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    let distances = cdist.iter().zip(grad_output.iter());
    for (number, ([first, second], (distance, grad))) in pairs.iter().zip(distances).enumerate() {
        let target = &mut sums[number / columns * pairs.width..][..pairs.width];
        let (a, b) = (pairs.row(&a, first), pairs.row(&b, second));
        norm.add_gradient(a, b, distance.to_compute(), grad.to_compute(), target);
    }
    out.write(sums.into_iter().map(T::from_compute))
}

/// The distances of each row of a matrix to the rows after it.
///
/// # Errors
/// If `p` is negative or `self` is not a matrix.
pub fn pdist_forward<T: Element<Compute: Float>>(
    self_: View<'_, T>,
    p: f64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let norm = Norm::new(p)?;
    let (count, width) = matrix(self_.sizes())?;
    let rows = elements(&self_);
    let row = |number: usize| &rows[number * width..][..width];
    expect_sizes(out.sizes(), &[(count * count.saturating_sub(1) / 2) as i64])?;
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    out.write(pairs.map(|(first, second)| T::from_compute(norm.distance(row(first), row(second)))))
}

/// The gradient of [`pdist_forward`].
///
/// # Errors
/// As [`pdist_forward`].
pub fn pdist_backward<T: Element<Compute: Float>>(
    grad_output: View<'_, T>,
    self_: View<'_, T>,
    p: f64,
    pdist: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let norm = Norm::new(p)?;
    let (count, width) = matrix(self_.sizes())?;
    expect_sizes(out.sizes(), self_.sizes())?;
    let distances = [(count * count.saturating_sub(1) / 2) as i64];
    expect_operand("grad", grad_output.sizes(), &distances)?;
    expect_operand("pdist", pdist.sizes(), &distances)?;
    let rows = elements(&self_);
    let row = |number: usize| &rows[number * width..][..width];
    let mut sums = Scratch::filled(T::Compute::ZERO, rows.len());
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (first, second)));
    for ((first, second), (distance, grad)) in pairs.zip(pdist.iter().zip(grad_output.iter())) {
        let (distance, grad) = (distance.to_compute(), grad.to_compute());
        norm.add_gradient(row(first), row(second), distance, grad, &mut sums[first * width..][..width]);
        norm.add_gradient(row(second), row(first), distance, grad, &mut sums[second * width..][..width]);
    }
    out.write(sums.into_iter().map(T::from_compute))
}

pub(crate) fn matrix(sizes: &[i64]) -> Result<(usize, usize)> {
    match sizes {
        &[rows, columns] => Ok((rows as usize, columns as usize)),
        _ => Err(Error::shape(format!("expected a matrix, got the shape {}", ShapeText(sizes)))),
    }
}

fn elements<T: Element>(view: &View<'_, T>) -> Scratch<T::Compute> {
    Scratch::mapped(&view.to_contiguous(), |element| element.to_compute())
}

/// Refuses a `p` without a norm.
///
/// # Errors
/// If `p` is negative or NaN.
pub(crate) fn check_norm(p: f64) -> Result<()> {
    Norm::new(p).map(drop)
}

/// Which distance.
#[derive(Clone, Copy)]
struct Norm(f64);

impl Norm {
    fn new(p: f64) -> Result<Norm> {
        if p >= 0.0 {
            return Ok(Norm(p));
        }
        Err(Error::value(format!("there is no {p}-norm")).with_help("p is a number from 0 on, or infinity"))
    }

    fn distance<C: Float>(self, a: &[C], b: &[C]) -> C {
        let differences = a.iter().zip(b).map(|(&a, &b)| abs(a - b));
        match self.0 {
            0.0 => differences.map(|d| if d == C::ZERO { C::ZERO } else { C::ONE }).sum(),
            1.0 => differences.sum(),
            2.0 => sqrt(differences.map(|d| d * d).sum::<C>()),
            f64::INFINITY => differences.fold(C::ZERO, maximum),
            p => pow(differences.map(|d| pow(d, C::of(p))).sum::<C>(), C::of(1.0 / p)),
        }
    }

    /// Adds the contribution of one distance to another row to a row's gradient.
    fn add_gradient<C: Float>(self, a: &[C], b: &[C], distance: C, grad: C, sums: &mut [C]) {
        if distance == C::ZERO {
            return;
        }
        // The distance that the caller has may be rounded; the difference that decided it is not.
        let largest = match self.0 {
            f64::INFINITY => a.iter().zip(b).map(|(&a, &b)| abs(a - b)).fold(C::ZERO, maximum),
            _ => distance,
        };
        for ((&a, &b), sum) in a.iter().zip(b).zip(sums) {
            let difference = a - b;
            let slope = match self.0 {
                0.0 => C::ZERO,
                // A distance of NaN has no slope either.
                1.0 if !difference.equal(difference) => difference,
                1.0 => sgn(difference),
                2.0 => difference / distance,
                f64::INFINITY if abs(difference) == largest => sgn(difference),
                f64::INFINITY => C::ZERO,
                // Below 1 the slope at equal columns is infinite; they contribute nothing.
                p if p < 1.0 && difference == C::ZERO => C::ZERO,
                p => sgn(difference) * pow(abs(difference) / distance, C::of(p - 1.0)),
            };
            *sum = *sum + grad * slope;
        }
    }
}

/// The pairs of rows of two stacks of matrices, as numbers of rows in row-major order.
pub(crate) struct Pairs {
    axes: Axes<2>,
    width: usize,
}

impl Pairs {
    /// # Errors
    /// If the shapes do not go together.
    pub(crate) fn new(x1: &[i64], x2: &[i64], sizes: &[i64]) -> Result<Pairs> {
        let refuse = || {
            Error::shape(format!(
                "the rows of {} and {} have no distances of the shape {}",
                ShapeText(x1),
                ShapeText(x2),
                ShapeText(sizes)
            ))
        };
        let ([first @ .., rows1, width1], [second @ .., rows2, width2]) = (x1, x2) else {
            return Err(refuse());
        };
        let [batch @ .., out1, out2] = sizes else { return Err(refuse()) };
        if (width1, rows1, rows2) != (width2, out1, out2) {
            return Err(refuse());
        }
        let numbers = |sizes: &[i64]| contiguous_strides(sizes);
        let of_first = numbers(&x1[..x1.len() - 1]);
        let of_second = numbers(&x2[..x2.len() - 1]);
        let mut strides1 = broadcast_strides(first, &of_first[..first.len()], batch)?;
        let mut strides2 = broadcast_strides(second, &of_second[..second.len()], batch)?;
        strides1.extend([1, 0]);
        strides2.extend([0, 1]);
        Ok(Pairs { axes: axes(sizes, [&strides1, &strides2], |_| true), width: *width1 as usize })
    }

    fn iter(&self) -> Walk<&[Axis<2>], 2> {
        Walk::new(&self.axes)
    }

    fn row<'a, C>(&self, elements: &'a [C], number: i64) -> &'a [C] {
        &elements[number as usize * self.width..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, scattered};

    fn dense(sizes: &[i64]) -> Array<f64> {
        Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize))
    }

    fn naive(a: &[f64], b: &[f64], p: f64) -> f64 {
        let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
        match p {
            0.0 => differences.filter(|&d| d != 0.0).count() as f64,
            f64::INFINITY => differences.fold(0.0, f64::max),
            p => differences.map(|d| d.powf(p)).sum::<f64>().powf(1.0 / p),
        }
    }

    #[test]
    fn distances_and_gradients() {
        let (x1, x2) = (dense(&[3, 1, 4, 5]), dense(&[5, 2, 6]).permuted(&[1, 2, 0]));
        let (mut out, mut grad) = (Array::zeros(&[3, 2, 4, 6]), Array::zeros(&[3, 2, 4, 5]));
        let cotangent = dense(&[3, 2, 4, 6]).reversed(3);
        for p in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY] {
            let forward = |x1: &Array<f64>, out: &mut Array<f64>| {
                cdist_forward(x1.view(), x2.view(), p, out.view_mut()).unwrap();
            };
            forward(&x1, &mut out);
            for at in crate::cpu::testing::indices(&out.sizes) {
                let row1: Vec<f64> = (0..5).map(|k| x1.at(&[at[0], 0, at[2], k])).collect();
                let row2: Vec<f64> = (0..5).map(|k| x2.at(&[at[1], at[3], k])).collect();
                assert_close(&[out.at(&at)], &[naive(&row1, &row2, p)], 1e-12);
            }
            let (x1_view, x2_view) = (x1.view(), x2.view());
            cdist_backward(cotangent.view(), x1_view, x2_view, p, out.view(), grad.view_mut()).unwrap();
            let value = |x1: &Array<f64>| {
                let mut out = Array::zeros(&[3, 2, 4, 6]);
                forward(x1, &mut out);
                out.to_vec().iter().zip(cotangent.to_vec()).map(|(a, b)| a * b).sum::<f64>()
            };
            let elements = x1.to_vec();
            let differences: Vec<f64> = (0..elements.len())
                .map(|at| {
                    let moved = |by: f64| {
                        let mut elements = elements.clone();
                        elements[at] += by;
                        value(&Array::new(&[3, 1, 4, 5], elements))
                    };
                    (moved(1e-6) - moved(-1e-6)) / 2e-6
                })
                .collect();
            // The gradient is broadcast as the distances are; engines sum it back.
            let summed: Vec<f64> = crate::cpu::testing::indices(&x1.sizes)
                .iter()
                .map(|at| (0..2).map(|stack| grad.at(&[at[0], stack, at[2], at[3]])).sum())
                .collect();
            assert_close(&summed, &differences, 1e-5);
        }
    }

    #[test]
    fn rows_of_one_matrix() {
        let x = Array::new(&[3, 2], [0.0, 0.0, 3.0, 4.0, 0.0, 1.0]);
        let mut out = Array::zeros(&[3]);
        pdist_forward(x.view(), 2.0, out.view_mut()).unwrap();
        assert_close(&out.to_vec(), &[5.0, 1.0, 18f64.sqrt()], 1e-15);
        let grad = Array::new(&[3], [1.0, 0.0, 0.0]);
        let mut of_x = Array::zeros(&[3, 2]);
        pdist_backward(grad.view(), x.view(), 2.0, out.view(), of_x.view_mut()).unwrap();
        assert_close(&of_x.to_vec(), &[-0.6, -0.8, 0.6, 0.8, 0.0, 0.0], 1e-15);
        assert!(pdist_forward(x.view(), -1.0, out.view_mut()).is_err());
        assert!(pdist_forward(x.view(), f64::NAN, out.view_mut()).is_err());
    }
}
