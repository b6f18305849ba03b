//! More or fewer places for the same contents: each is the nearest element or an interpolation along each dimension.
//!
//! In: a tensor of samples, channels and one to three dimensions; for each dimension, a short list of elements and weights
//! for each place. Out: sums along the last dimension first, then along the one before, as PyTorch takes them. Lines of the
//! input that several lines of the result need are interpolated once where one follows the other; where each place is one
//! element, a line that repeats is copied. The gradient goes the same way back.

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
            // SAFETY: the output has so many rows, and each has one thread.
            let out = unsafe {
                std::slice::from_raw_parts_mut(out.at((range.start * width) as i64), range.len() * width)
            };
            if grid.axes[2].taps == 1 {
                return pick_rows(&grid, &elements, range.start, out);
            }
            let mut lines = Lines::new(&grid);
            for (number, row) in range.zip(out.chunks_exact_mut(width)) {
                lines.interpolate(&grid, &elements, number / rows, number % rows, row);
            }
        });
    })
}

/// Rows of the result from number `first` on, of which each element is one of the input.
fn pick_rows<T: Element<Compute: Arithmetic>>(
    grid: &Grid<T::Compute>,
    elements: &[T],
    first: usize,
    out: &mut [T],
) {
    let [depth, height, width] = &grid.axes;
    let (deep, high, places) =
        (depth.of_places::<1>().0, height.of_places::<1>().0, width.of_places::<1>().0);
    let (rows, mut known) = (grid.output_rows(), None);
    for number in 0..out.len() / width.output {
        let (plane, row) = ((first + number) / rows, (first + number) % rows);
        let ([deep], [high]) = (deep[row / height.output], high[row % height.output]);
        let line = (plane * depth.input + deep) * height.input + high;
        let (before, rest) = out.split_at_mut(number * width.output);
        let row = &mut rest[..width.output];
        if known == Some(line) {
            row.copy_from_slice(&before[before.len() - width.output..]);
            continue;
        }
        let source = &elements[line * width.input..(line + 1) * width.input];
        for (element, &[from]) in row.iter_mut().zip(places) {
            *element = T::from_compute(source[from].to_compute());
        }
        known = Some(line);
    }
}

/// Lines of the input, interpolated along the last dimension, and sums of them.
struct Lines<C> {
    /// The numbers of the lines that are there.
    known: Scratch<Option<usize>>,
    lines: Scratch<C>,
    /// The sum over lines of several depths.
    total: Scratch<C>,
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
            total: Scratch::filled(C::ZERO, width),
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
            // Neighbours have different slots.
            let slot = |from_high: usize| from_deep % depth.taps * height.taps + from_high % height.taps;
            for (from_high, _) in height.at(high) {
                let line = (plane * depth.input + from_deep) * height.input + from_high;
                self.prepare(width, elements, line, slot(from_high));
            }
            if depth.taps == 1 {
                return match height.taps {
                    1 => self.sum::<T, 1>(height, high, slot, out),
                    2 => self.sum::<T, 2>(height, high, slot, out),
                    _ => self.sum::<T, 4>(height, high, slot, out),
                };
            }
            for (tap, (from_high, weight)) in height.at(high).enumerate() {
                let line = &self.lines[slot(from_high) * width.output..][..width.output];
                simd::widest_over::<T, _>(
                    #[inline(always)]
                    || add_line(&mut self.part, line, weight, tap == 0),
                );
            }
            let part = &self.part;
            simd::widest_over::<T, _>(
                #[inline(always)]
                || add_line(&mut self.total, part, deep_weight, number == 0),
            );
        }
        for (element, sum) in out.iter_mut().zip(&self.total[..]) {
            *element = T::from_compute(*sum);
        }
    }

    /// A line of the input, interpolated along the last dimension, in its slot.
    fn prepare<T: Element<Compute = C>>(&mut self, axis: &Axis<C>, elements: &[T], line: usize, slot: usize) {
        if self.known[slot] == Some(line) {
            return;
        }
        self.known[slot] = Some(line);
        let source = &elements[line * axis.input..(line + 1) * axis.input];
        let target = &mut self.lines[slot * axis.output..(slot + 1) * axis.output];
        simd::widest_over::<T, _>(
            #[inline(always)]
            || match axis.taps {
                2 => interpolate_line::<T, 2>(axis, source, target),
                _ => interpolate_line::<T, 4>(axis, source, target),
            },
        );
    }

    /// Writes the sum of the lines at a place along an axis.
    fn sum<T: Element<Compute = C>, const TAPS: usize>(
        &self,
        axis: &Axis<C>,
        place: usize,
        slot: impl Fn(usize) -> usize,
        out: &mut [T],
    ) {
        let (places, weights) = axis.of_places::<TAPS>();
        let lines = places[place].map(|from| &self.lines[slot(from) * out.len()..][..out.len()]);
        let weights = weights[place];
        simd::widest_over::<T, _>(
            #[inline(always)]
            || sum_lines(lines, weights, out),
        );
    }
}

#[inline(always)]
fn interpolate_line<T: Element<Compute: Arithmetic>, const TAPS: usize>(
    axis: &Axis<T::Compute>,
    source: &[T],
    line: &mut [T::Compute],
) {
    let (places, weights) = axis.of_places::<TAPS>();
    for ((sum, from), weights) in line.iter_mut().zip(places).zip(weights) {
        let mut total = Arithmetic::mul(source[from[0]].to_compute(), weights[0]);
        for tap in 1..TAPS {
            total = Arithmetic::add(total, Arithmetic::mul(source[from[tap]].to_compute(), weights[tap]));
        }
        *sum = total;
    }
}

/// Writes the sums of lines times their weights; the only line has none.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn sum_lines<T: Element<Compute: Arithmetic>, const TAPS: usize>(
    lines: [&[T::Compute]; TAPS],
    weights: [T::Compute; TAPS],
    out: &mut [T],
) {
    for place in 0..out.len() {
        let mut sum = lines[0][place];
        if TAPS > 1 {
            sum = Arithmetic::mul(sum, weights[0]);
        }
        for tap in 1..TAPS {
            sum = Arithmetic::add(sum, Arithmetic::mul(lines[tap][place], weights[tap]));
        }
        out[place] = T::from_compute(sum);
    }
}

/// Adds a line times its weight to a sum, or is the sum's first.
#[inline(always)]
fn add_line<C: Arithmetic>(sum: &mut [C], line: &[C], weight: C, is_first: bool) {
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

    /// An element by the definition, summed along the last dimension first.
    fn naive(x: &Array<f32>, grid: &Grid<f32>, at: &[i64]) -> f32 {
        let [depth, height, width] = &grid.axes;
        let sum = |terms: Vec<(f32, f32)>| match terms[..] {
            [(value, _)] => value,
            _ => terms.iter().map(|(value, weight)| value * weight).reduce(|sum, term| sum + term).unwrap(),
        };
        let deep = |(from_deep, weight)| {
            let high = |(from_high, weight)| {
                let wide = |(from, weight)| {
                    (x.at(&[at[0], at[1], from_deep as i64, from_high as i64, from as i64]), weight)
                };
                (sum(width.at(at[4] as usize).map(wide).collect()), weight)
            };
            (sum(height.at(at[3] as usize).map(high).collect()), weight)
        };
        sum(depth.at(at[2] as usize).map(deep).collect())
    }

    #[test]
    fn every_element_is_the_same_sum() {
        // Planes of several volumes, of images and of lines; the last has more rows than a range.
        let cases = [
            ([3, 4, 5], [4, 7, 9]),
            ([1, 4, 5], [1, 7, 9]),
            ([1, 1, 5], [1, 1, 19]),
            ([1, 9, 40], [1, 70, 100]),
        ];
        for (from, to) in cases {
            for mode in 0..4 {
                let spatial = 1 + usize::from(from[1] > 1) + usize::from(from[0] > 1);
                let sizes = |spatial: [i64; 3]| [2, 3, spatial[0], spatial[1], spatial[2]];
                let elements = scattered(sizes(from).iter().product::<i64>() as usize).map(|x| x as f32);
                let x = Array::new(&sizes(from), elements).reversed(4);
                let mut out = Array::<f32>::zeros(&sizes(to)).reversed(3);
                let squeezed = |array: &Array<f32>| {
                    let keep = |dims: &[i64]| [&dims[..2], &dims[5 - spatial..]].concat();
                    (keep(&array.sizes), keep(&array.strides))
                };
                let ((x_sizes, x_strides), (sizes, strides)) = (squeezed(&x), squeezed(&out));
                let grid = Grid::new::<f32>(&x_sizes, &sizes, mode, false, &[]).unwrap();
                // SAFETY: dimensions of size 1 are left out.
                let (view, view_mut) = unsafe {
                    (
                        View::from_raw(x.view().as_ptr(), &x_sizes, &x_strides),
                        ViewMut::from_raw(out.view_mut().as_mut_ptr(), &sizes, &strides),
                    )
                };
                upsample(view, mode, false, &[], view_mut).unwrap();
                for at in crate::cpu::testing::indices(&out.sizes) {
                    assert_eq!(
                        out.at(&at).to_bits(),
                        naive(&x, &grid, &at).to_bits(),
                        "mode {mode} at {at:?}"
                    );
                }
            }
        }
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
