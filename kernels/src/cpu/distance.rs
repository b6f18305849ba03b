//! Distances between rows: p-norms of their differences.
//!
//! `p` is a number from 0 on: 0 counts the columns that differ, 1 sums their distances, 2 is Euclid's
//! distance, infinity takes the largest.

pub(super) mod norm;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::axes::{Axes, Axis, Walk, axes};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, View, ViewMut};

use super::copy::with_slice;
use super::float::Float;
use super::simd;
use super::strides::{broadcast_strides, expect_operand, expect_sizes};
use norm::{Blocked, LANES, Norm};

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
    let others = Blocked::new(&b, pairs.columns, pairs.width);
    let lines: Scratch<[i64; 2]> = pairs.lines().collect();
    with_slice(&mut out, |out| {
        let target = Shared(out.as_mut_ptr());
        let units = lines.len() * others.blocks;
        parallel::for_each_range_of(LANES * pairs.width.max(1), units, |range| {
            for unit in range {
                let (line, block) = (unit / others.blocks, unit % others.blocks);
                let [first, second] = lines[line];
                let matrix = second as usize / pairs.columns * others.blocks;
                let count = LANES.min(pairs.columns - block * LANES);
                // SAFETY: the distances of a line lie in `out`, and each block of them has one thread.
                let target = unsafe {
                    let start = target.at((line * pairs.columns + block * LANES) as i64);
                    std::slice::from_raw_parts_mut(start, count)
                };
                let row = pairs.row(&a, first);
                write_distances(&others, norm, row, matrix + block, |lane, distance| {
                    if let Some(place) = target.get_mut(lane) {
                        *place = T::from_compute(distance);
                    }
                });
            }
        });
    })
}

/// Calls `write` with the lane and the distance of each row of a block.
fn write_distances<C: Float>(
    others: &Blocked<C>,
    norm: Norm,
    row: &[C],
    block: usize,
    mut write: impl FnMut(usize, C),
) {
    let distances = simd::widest(
        #[inline(always)]
        || others.distances(norm, row, block),
    );
    distances.into_iter().enumerate().for_each(|(lane, distance)| write(lane, distance));
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
    sizes.pop();
    sizes.push(pairs.width as i64);
    expect_sizes(out.sizes(), &sizes)?;
    let (a, b) = (elements(&x1), elements(&x2));
    let (distances, grads) = (cdist.to_contiguous(), grad_output.to_contiguous());
    let lines: Scratch<[i64; 2]> = pairs.lines().collect();
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    let target = Shared(sums.as_mut_ptr());
    parallel::for_each_range_of(pairs.columns * pairs.width, lines.len(), |range| {
        for line in range {
            let [first, second] = lines[line];
            // SAFETY: the sums of a line lie in `sums`, and each line has one thread.
            let sums = unsafe {
                std::slice::from_raw_parts_mut(target.at((line * pairs.width) as i64), pairs.width)
            };
            let of_line = line * pairs.columns..(line + 1) * pairs.columns;
            simd::widest_over::<T, _>(
                #[inline(always)]
                || {
                    let rows = (second..).zip(distances[of_line.clone()].iter().zip(&grads[of_line]));
                    for (other, (distance, grad)) in rows {
                        let (distance, grad) = (distance.to_compute(), grad.to_compute());
                        norm.add_gradient(pairs.row(&a, first), pairs.row(&b, other), distance, grad, sums);
                    }
                },
            );
        }
    });
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
    expect_sizes(out.sizes(), &[(count * count.saturating_sub(1) / 2) as i64])?;
    let others = Blocked::new(&rows, count, width);
    with_slice(&mut out, |out| {
        let target = Shared(out.as_mut_ptr());
        parallel::for_each_range_of(count * width, count, |range| {
            for first in range {
                // The rows before this one have their distances to the ones after them.
                let before = first * (2 * count - first - 1) / 2;
                let row = &rows[first * width..][..width];
                for block in (first + 1) / LANES..others.blocks {
                    write_distances(&others, norm, row, block, |lane, distance| {
                        let second = block * LANES + lane;
                        if first < second && second < count {
                            // SAFETY: the pair has this place in `out`, and each first row has one thread.
                            unsafe {
                                let place = target.at((before + second - first - 1) as i64);
                                *place = T::from_compute(distance);
                            }
                        }
                    });
                }
            }
        });
    })
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

/// The pairs of rows of two stacks of matrices, as numbers of rows in row-major order: lines of a row of the first stack
/// and all rows of a matrix of the second.
pub(crate) struct Pairs {
    lines: Axes<2>,
    width: usize,
    /// Rows of a matrix of the second stack.
    columns: usize,
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
        strides1.push(1);
        strides2.push(0);
        let lines = axes(&sizes[..sizes.len() - 1], [&strides1, &strides2], |_| true);
        Ok(Pairs { lines, width: *width1 as usize, columns: *out2 as usize })
    }

    /// The number of the row of the first stack, and that of the first row of the second, for each line.
    fn lines(&self) -> Walk<&[Axis<2>], 2> {
        Walk::new(&self.lines)
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
