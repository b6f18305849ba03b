//! More or fewer places for the same contents: each is the nearest element or an interpolation along each dimension.
//!
//! In: a tensor of samples, channels and one to three dimensions; for each dimension, a short list of elements and weights
//! for each place. Out: sums along the last dimension first, then along the one before, as PyTorch takes them. Lines of the
//! input that several lines of the result need are interpolated once where one follows the other. The gradient goes the same
//! way back.

mod axis;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

pub(crate) use self::axis::scale_of;
use self::axis::{Axis, Mode, Scale};
use super::copy::with_slice;
use super::simd;
use crate::infer::resized;
use crate::window::MOST;

/// The dimensions of planes, filled up in front, and how many planes there are.
struct Grid<C> {
    planes: usize,
    axes: [Axis<C>; MOST],
}

impl<C: Arithmetic> Grid<C> {
    /// The grid between an input and a result of elements `T` with these sizes.
    ///
    /// # Errors
    /// If the sizes do not go together.
    fn new<T: Element<Compute = C>>(
        input: &[i64],
        output: &[i64],
        mode: i64,
        align_corners: bool,
        scales: &[f64],
    ) -> Result<Grid<C>> {
        let output_size = output.get(2..).unwrap_or(&[]);
        super::strides::expect_operand("an operand", output, &resized(input, output_size, scales)?)?;
        let (spatial, mode) = (output_size.len(), Mode::of(mode));
        let axes = std::array::from_fn(|dim| {
            let Some(dim) = (dim + spatial).checked_sub(MOST) else { return Axis::none() };
            let scale = Scale { align_corners, factor: scales.get(dim).copied().unwrap_or(0.0) };
            Axis::new::<T>(input[dim + 2] as usize, output[dim + 2] as usize, mode, scale)
        });
        Ok(Grid { planes: (input[0] * input[1]) as usize, axes })
    }

    fn input_rows(&self) -> usize {
        self.axes[0].input * self.axes[1].input
    }

    fn output_rows(&self) -> usize {
        self.axes[0].output * self.axes[1].output
    }
}

/// `self` at as many places of its last dimensions as `out` has.
///
/// # Errors
/// If the shapes do not go together.
pub fn upsample<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    mode: i64,
    align_corners: bool,
    scales: &[f64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let grid = Grid::new::<T>(self_.sizes(), out.sizes(), mode, align_corners, scales)?;
    let elements = self_.to_contiguous();
    let (rows, width) = (grid.output_rows(), grid.axes[2].output);
    let of_row = width * grid.axes[2].taps;
    with_slice(&mut out, |out| {
        let out = Shared(out.as_mut_ptr());
        parallel::for_each_range_of(of_row, grid.planes * rows, |range| {
            let mut lines = Lines::new(&grid);
            for number in range {
                // SAFETY: the output has so many rows, and each has one thread.
                let row = unsafe { std::slice::from_raw_parts_mut(out.at((number * width) as i64), width) };
                lines.interpolate(&grid, &elements, number / rows, number % rows, row);
            }
        });
    })
}

/// Lines of the input, interpolated along the last dimension, and sums of them.
struct Lines<C> {
    /// The numbers of the lines that are there.
    known: Scratch<Option<usize>>,
    lines: Scratch<C>,
    sum: Scratch<C>,
    /// The sum over lines of one depth.
    part: Scratch<C>,
}

impl<C: Arithmetic> Lines<C> {
    fn new(grid: &Grid<C>) -> Lines<C> {
        let [depth, height, width] = &grid.axes;
        let (slots, width) = (depth.taps * height.taps, width.output);
        Lines {
            known: Scratch::filled(None, slots),
            lines: Scratch::filled(C::ZERO, slots * width),
            sum: Scratch::filled(C::ZERO, width),
            part: Scratch::filled(C::ZERO, width),
        }
    }

    /// One row of a plane of the result.
    fn interpolate<T: Element<Compute = C>>(
        &mut self,
        grid: &Grid<C>,
        elements: &[T],
        plane: usize,
        row: usize,
        out: &mut [T],
    ) {
        let [depth, height, width] = &grid.axes;
        let (deep, high) = (row / height.output, row % height.output);
        for (number, (from_deep, deep_weight)) in depth.at(deep).enumerate() {
            for (tap, (from_high, weight)) in height.at(high).enumerate() {
                let line = (plane * depth.input + from_deep) * height.input + from_high;
                // Neighbours have different slots.
                let slot = from_deep % depth.taps * height.taps + from_high % height.taps;
                let place = slot * width.output..(slot + 1) * width.output;
                if self.known[slot] != Some(line) {
                    let source = &elements[line * width.input..(line + 1) * width.input];
                    simd::widest_over::<T, _>(
                        #[inline(always)]
                        || interpolate_line(width, source, &mut self.lines[place.clone()]),
                    );
                    self.known[slot] = Some(line);
                }
                let line = &self.lines[place];
                simd::widest_over::<T, _>(
                    #[inline(always)]
                    || add_line(&mut self.part, line, weight, height.taps == 1, tap == 0),
                );
            }
            let part = &self.part;
            simd::widest_over::<T, _>(
                #[inline(always)]
                || add_line(&mut self.sum, part, deep_weight, depth.taps == 1, number == 0),
            );
        }
        for (element, sum) in out.iter_mut().zip(&self.sum[..]) {
            *element = T::from_compute(*sum);
        }
    }
}

#[inline(always)]
fn interpolate_line<T: Element<Compute: Arithmetic>>(
    axis: &Axis<T::Compute>,
    source: &[T],
    line: &mut [T::Compute],
) {
    for (place, sum) in line.iter_mut().enumerate() {
        if axis.taps == 1 {
            for (from, _) in axis.at(place) {
                *sum = source[from].to_compute();
            }
            continue;
        }
        for (tap, (from, weight)) in axis.at(place).enumerate() {
            let product = Arithmetic::mul(source[from].to_compute(), weight);
            *sum = if tap == 0 { product } else { Arithmetic::add(*sum, product) };
        }
    }
}

/// Adds a line times its weight to a sum, or is the sum's first; the only one has no weight.
#[inline(always)]
fn add_line<C: Arithmetic>(sum: &mut [C], line: &[C], weight: C, is_only: bool, is_first: bool) {
    if is_only {
        sum.copy_from_slice(line);
        return;
    }
    for (sum, &value) in sum.iter_mut().zip(line) {
        let product = Arithmetic::mul(value, weight);
        *sum = if is_first { product } else { Arithmetic::add(*sum, product) };
    }
}

/// The gradient of [`upsample`] by `self`, whose shape is that of `out`.
///
/// # Errors
/// If the shapes do not go together.
pub fn upsample_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    mode: i64,
    align_corners: bool,
    scales: &[f64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    let grid = Grid::new::<T>(out.sizes(), grad_output.sizes(), mode, align_corners, scales)?;
    let grad = grad_output.to_contiguous();
    let (from, to) = (grid.output_rows() * grid.axes[2].output, grid.input_rows() * grid.axes[2].input);
    with_slice(&mut out, |out| {
        let out = Shared(out.as_mut_ptr());
        parallel::for_each_range_of(from.max(to), grid.planes, |range| {
            let (mut sums, mut line) = (
                Scratch::filled(T::Compute::ZERO, to),
                Scratch::filled(T::Compute::ZERO, grid.axes[2].input),
            );
            for plane in range {
                sums.fill(T::Compute::ZERO);
                gather_plane(&grid, &grad[plane * from..(plane + 1) * from], &mut sums, &mut line);
                // SAFETY: the output has so many planes, and each has one thread.
                let target = unsafe { std::slice::from_raw_parts_mut(out.at((plane * to) as i64), to) };
                for (element, sum) in target.iter_mut().zip(&sums[..]) {
                    *element = T::from_compute(*sum);
                }
            }
        });
    })
}

/// Adds each element of one plane's gradient to those it was made of.
fn gather_plane<T: Element<Compute: Arithmetic>>(
    grid: &Grid<T::Compute>,
    grad: &[T],
    sums: &mut [T::Compute],
    line: &mut [T::Compute],
) {
    let [depth, height, width] = &grid.axes;
    for (number, row) in grad.chunks_exact(width.output).enumerate() {
        line.fill(T::Compute::ZERO);
        for (place, element) in row.iter().enumerate() {
            for (from, weight) in width.at(place) {
                line[from] = Arithmetic::add(line[from], Arithmetic::mul(element.to_compute(), weight));
            }
        }
        for (deep, deep_weight) in depth.at(number / height.output) {
            for (high, weight) in height.at(number % height.output) {
                let start = (deep * height.input + high) * width.input;
                let weight = Arithmetic::mul(deep_weight, weight);
                let sums = &mut sums[start..start + width.input];
                simd::widest_over::<T, _>(
                    #[inline(always)]
                    || {
                        for (sum, &value) in sums.iter_mut().zip(&*line) {
                            *sum = Arithmetic::add(*sum, Arithmetic::mul(value, weight));
                        }
                    },
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, scattered};

    #[test]
    fn an_image_of_four() {
        let x = Array::new(&[1, 1, 2, 2], [1.0, 2.0, 3.0, 4.0]).reversed(3).reversed(3);
        let mut out = Array::zeros(&[1, 1, 4, 2]);
        upsample(x.view(), 0, false, &[], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
        upsample(x.view(), 2, false, &[], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 2.0, 1.5, 2.5, 2.5, 3.5, 3.0, 4.0]);
        assert!(upsample(x.view(), 2, false, &[1.0], out.view_mut()).is_err());
    }

    #[test]
    fn gradients_are_transposes() {
        let dense = |sizes: &[i64]| Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize));
        let (x, dy) = (dense(&[2, 2, 3, 4, 5]), dense(&[2, 2, 4, 2, 9]).reversed(4));
        let product = |a: &Array<f64>, b: &Array<f64>| -> f64 {
            a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum()
        };
        for mode in 0..4 {
            let (mut y, mut dx) = (Array::zeros(&[2, 2, 4, 2, 9]), Array::zeros(&[2, 2, 3, 4, 5]));
            upsample(x.view(), mode, mode == 2, &[1.2, 0.0, 1.7], y.view_mut()).unwrap();
            upsample_backward(dy.view(), mode, mode == 2, &[1.2, 0.0, 1.7], dx.view_mut()).unwrap();
            assert_close(&[product(&y, &dy)], &[product(&x, &dx)], 1e-12);
        }
    }
}
