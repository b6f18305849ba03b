//! Softmax and its logarithm along a dimension, and their derivatives.
//!
//! 16-bit floats compute in `f32` and are rounded once. Flags that choose the output's dtype act in
//! inference, before these kernels are chosen.

pub(super) mod rows;

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::axes::{Walk, count};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::lanes::{computed, fold_lanes, read_row, update_and_sum_lanes, with_computed, write_row};
use super::simd::widest;
use super::strides::{expect_operand, expect_sizes};
use super::tiles::{SHORT, Tile, for_each_tile, lines};
use crate::math::{Inexact, exp, log, maximum, reciprocal};

/// exp(x) along a dimension, divided by its sum: `[0, ln 3]` gives `[0.25, 0.75]`.
pub fn softmax<T: Element<Compute: Ordered + Inexact>>(
    self_: View<'_, T>,
    dim: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if by_rows([&self_], dim, &mut out, |[x], out| rows::softmax(x, out))? {
        return Ok(());
    }
    along([&self_], dim, out, |[x]| x.softmax())
}

/// The logarithm of [`softmax`], accurate where that is tiny.
pub fn log_softmax<T: Element<Compute: Ordered + Inexact>>(
    self_: View<'_, T>,
    dim: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if by_rows([&self_], dim, &mut out, |[x], out| rows::log_softmax(x, out))? {
        return Ok(());
    }
    along([&self_], dim, out, |[x]| x.log_softmax())
}

/// The gradient of [`softmax`]: `(grad_output - sum(grad_output * output)) * output`.
pub fn softmax_backward_data<T: Element<Compute: Ordered + Inexact>>(
    grad_output: View<'_, T>,
    output: View<'_, T>,
    dim: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let by_row = |[grad, y]: [&[T::Compute]; 2], out: &mut [T::Compute]| rows::softmax_backward(grad, y, out);
    if by_rows([&grad_output, &output], dim, &mut out, by_row)? {
        return Ok(());
    }
    along([&grad_output, &output], dim, out, |[grad, y]| grad.softmax_backward(y))
}

/// The gradient of [`log_softmax`]: `grad_output - exp(output) * sum(grad_output)`.
pub fn log_softmax_backward_data<T: Element<Compute: Ordered + Inexact>>(
    grad_output: View<'_, T>,
    output: View<'_, T>,
    dim: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let by_row =
        |[grad, y]: [&[T::Compute]; 2], out: &mut [T::Compute]| rows::log_softmax_backward(grad, y, out);
    if by_rows([&grad_output, &output], dim, &mut out, by_row)? {
        return Ok(());
    }
    along([&grad_output, &output], dim, out, |[grad, y]| grad.log_softmax_backward(y))
}

/// Calls `body` for each line along a dimension whose elements lie one after the other, if these are long. False if
/// lines are not like this, and nothing was done.
fn by_rows<T: Element<Compute: Ordered>, const N: usize>(
    inputs: [&View<'_, T>; N],
    dim: i64,
    out: &mut ViewMut<'_, T>,
    body: impl Fn([&[T::Compute]; N], &mut [T::Compute]) + Sync,
) -> Result<bool> {
    let sizes = inputs[0].sizes();
    let dim = wrap_dim(dim, sizes.len())?;
    expect_sizes(out.sizes(), sizes)?;
    for input in inputs {
        expect_operand("an operand", input.sizes(), sizes)?;
    }
    let last = N - 1;
    let (line, outer) = lines(sizes, [inputs[0].strides(), inputs[last].strides(), out.strides()], dim);
    if line.steps != [1; 3] || line.size < SHORT {
        return Ok(false);
    }
    let length = line.size as usize;
    let (sources, target) = (inputs.map(|input| Shared(input.as_ptr().cast_mut())), Shared(out.as_mut_ptr()));
    parallel::for_each_range_of(length, count(&outer), |range| {
        let mut buffers = [const { Scratch::new() }; N];
        let mut result = Scratch::new();
        for start in Walk::starting_at(&outer, range.start).take(range.len()) {
            let mut rows = [&[][..]; N];
            for (view, (row, buffer)) in rows.iter_mut().zip(&mut buffers).enumerate() {
                // SAFETY: the walk's lines are lines of the inputs.
                let line = unsafe { std::slice::from_raw_parts(sources[view].at(start[view]), length) };
                *row = computed(line, buffer);
            }
            // SAFETY: the walk's lines are lines of the output, which is borrowed uniquely; each is one thread's.
            let target = unsafe { std::slice::from_raw_parts_mut(target.at(start[2]), length) };
            with_computed(target, &mut result, |target| body(rows, target));
        }
    });
    Ok(true)
}

/// Elements of a buffer, which then stays in the second cache.
pub(super) const BUFFER: usize = 1 << 15;

/// Calls `body` for the lines of the inputs along a dimension, some neighbours at a time, and writes the first input's
/// lines as it leaves them.
fn along<T: Element, const N: usize>(
    inputs: [&View<'_, T>; N],
    dim: i64,
    mut out: ViewMut<'_, T>,
    body: impl Fn(&mut [Lines<T::Compute>; N]) + Sync,
) -> Result<()> {
    let sizes = inputs[0].sizes();
    let dim = wrap_dim(dim, sizes.len())?;
    expect_sizes(out.sizes(), sizes)?;
    for input in inputs {
        expect_operand("an operand", input.sizes(), sizes)?;
    }
    let length = sizes.get(dim).map_or(1, |&size| size as usize);
    let width = (BUFFER / length.max(1)).clamp(64, 512);
    let last = inputs.len() - 1;
    let strides = [inputs[0].strides(), inputs[last].strides(), out.strides()];
    let (sources, target) = (inputs.map(|input| Shared(input.as_ptr().cast_mut())), Shared(out.as_mut_ptr()));
    let none = || [const { Lines { values: Scratch::new(), lanes: 1, of_lines: Scratch::new() } }; N];
    for_each_tile(sizes, strides, dim, width, 1, none, |lines, tile| {
        for (view, (lines, source)) in lines.iter_mut().zip(&sources).enumerate() {
            // SAFETY: the tile's positions are positions of both inputs.
            unsafe { lines.read(source.at(0).cast_const(), &tile, view) };
        }
        body(lines);
        // SAFETY: the tile's positions are positions of the output, which no other tile has.
        unsafe { lines[0].write(target.at(0), &tile, 2) };
    });
    Ok(())
}

/// Elements of neighbouring lines, in the compute type: the first of each line, the second of each…
struct Lines<C> {
    values: Scratch<C>,
    lanes: usize,
    /// Something known of each line: the result of the last [`Lines::fold`].
    of_lines: Scratch<C>,
}

impl<C: Copy> Lines<C> {
    /// Fills the buffer from a tile.
    ///
    /// # Safety
    /// The tile's positions for `view`, relative to `input`, are valid for reads.
    unsafe fn read<T: Element<Compute = C>, const N: usize>(
        &mut self,
        input: *const T,
        tile: &Tile<N>,
        view: usize,
    ) {
        self.lanes = tile.lane.size as usize;
        self.values.clear();
        widest(
            #[inline(always)]
            || {
                for [start, step, length] in rows(tile, view) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let row = input.offset(start as isize);
                        read_row(row, step, length as usize, &mut self.values);
                    }
                }
            },
        );
    }

    /// Writes the buffer to a tile.
    ///
    /// # Safety
    /// The tile's positions for `view`, relative to `out`, are valid for writes.
    unsafe fn write<T: Element<Compute = C>, const N: usize>(
        &self,
        out: *mut T,
        tile: &Tile<N>,
        view: usize,
    ) {
        widest(
            #[inline(always)]
            || {
                let mut rest = &self.values[..];
                for [start, step, length] in rows(tile, view) {
                    let (row, others) = rest.split_at(length as usize);
                    rest = others;
                    // SAFETY: the caller's promise.
                    unsafe { write_row(out.offset(start as isize), step, row) };
                }
            },
        );
    }

    /// Joins the elements of each line.
    fn fold(&mut self, start: C, join: impl Fn(C, C) -> C) {
        self.of_lines.clear();
        self.of_lines.resize(self.lanes, start);
        widest(
            #[inline(always)]
            || {
                if let [of_line] = &mut self.of_lines[..] {
                    *of_line = fold_lanes(&self.values, start, &join, &join);
                    return;
                }
                let of_lines = &mut self.of_lines[..self.lanes];
                for row in self.values.chunks_exact(self.lanes) {
                    for lane in 0..row.len() {
                        of_lines[lane] = join(of_lines[lane], row[lane]);
                    }
                }
            },
        );
    }

    /// Changes each element by the value of its line, and sums the results, mapped, in the same pass.
    fn update_and_sum(&mut self, change: impl Fn(C, C) -> C, map: impl Fn(C) -> C)
    where
        C: Arithmetic,
    {
        let mut sums = Scratch::filled(C::ZERO, self.lanes);
        widest(
            #[inline(always)]
            || {
                if let (&[of_line], [sum]) = (&self.of_lines[..], &mut sums[..]) {
                    *sum = update_and_sum_lanes(&mut self.values, |x| change(x, of_line), map);
                    return;
                }
                let (of_lines, sums) = (&self.of_lines[..self.lanes], &mut sums[..self.lanes]);
                for row in self.values.chunks_exact_mut(self.lanes) {
                    for lane in 0..row.len() {
                        row[lane] = change(row[lane], of_lines[lane]);
                        sums[lane] = Arithmetic::add(sums[lane], map(row[lane]));
                    }
                }
            },
        );
        self.of_lines = sums;
    }

    /// Changes each element by the value of its line.
    fn update(&mut self, change: impl Fn(C, C) -> C) {
        widest(
            #[inline(always)]
            || {
                if let [of_line] = self.of_lines[..] {
                    for value in &mut self.values {
                        *value = change(*value, of_line);
                    }
                    return;
                }
                let of_lines = &self.of_lines[..self.lanes];
                for row in self.values.chunks_exact_mut(self.lanes) {
                    for lane in 0..row.len() {
                        row[lane] = change(row[lane], of_lines[lane]);
                    }
                }
            },
        );
    }

    /// Changes each element by the same element of other lines.
    fn combine(&mut self, other: &Lines<C>, change: impl Fn(C, C) -> C) {
        widest(
            #[inline(always)]
            || {
                let (values, others) = (&mut self.values[..], &other.values[..]);
                for index in 0..values.len().min(others.len()) {
                    values[index] = change(values[index], others[index]);
                }
            },
        );
    }
}

/// Compiled for each compute type, which 16-bit floats share with `f32`.
impl<C: Ordered + Inexact> Lines<C> {
    #[inline(never)]
    fn softmax(&mut self) {
        self.fold(C::LOWEST, maximum);
        self.update_and_sum(|x, largest| exp(Arithmetic::sub(x, largest)), |x| x);
        self.of_lines.iter_mut().for_each(|sum| *sum = reciprocal(*sum));
        self.update(Arithmetic::mul);
    }

    #[inline(never)]
    fn log_softmax(&mut self) {
        self.fold(C::LOWEST, maximum);
        self.update_and_sum(Arithmetic::sub, exp);
        self.of_lines.iter_mut().for_each(|sum| *sum = log(*sum));
        self.update(Arithmetic::sub);
    }

    #[inline(never)]
    fn softmax_backward(&mut self, y: &mut Lines<C>) {
        self.combine(y, Arithmetic::mul);
        self.fold(C::ZERO, Arithmetic::add);
        y.of_lines.clone_from(&self.of_lines);
        y.update(Arithmetic::mul);
        self.combine(y, Arithmetic::sub);
    }

    #[inline(never)]
    fn log_softmax_backward(&mut self, y: &mut Lines<C>) {
        self.fold(C::ZERO, Arithmetic::add);
        y.of_lines.clone_from(&self.of_lines);
        y.update(|y, sum| Arithmetic::mul(exp(y), sum));
        self.combine(y, Arithmetic::sub);
    }
}

/// Position, step and length of each row of a tile: the line itself, or the lanes side by side.
#[inline(always)]
fn rows<const N: usize>(tile: &Tile<N>, view: usize) -> impl Iterator<Item = [i64; 3]> {
    let (row, others) = if tile.lane.size == 1 { (tile.line, 1) } else { (tile.lane, tile.line.size) };
    let (start, step) = (tile.start[view], tile.line.steps[view]);
    (0..others).map(move |index| [start + index * step, row.steps[view], row.size])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, indices, scattered};
    use opsmith_runtime::f16;

    fn arrays() -> Vec<Array<f64>> {
        let dense = |sizes: &[i64]| Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize));
        vec![
            dense(&[]),
            dense(&[100]).reversed(0),
            dense(&[3, 40, 2]),
            dense(&[40, 30]).permuted(&[1, 0]),
            dense(&[3, 4]).repeated(5),
            dense(&[1, 1, 5]),
            dense(&[3, 100]),
            dense(&[2, 1, 1500]),
        ]
    }

    /// Each line along a dimension, by index arithmetic alone, with the numbers of its elements.
    fn lines(sizes: &[i64], dim: usize) -> Vec<Vec<usize>> {
        let all = indices(sizes);
        let mut lines: Vec<Vec<usize>> = Vec::new();
        for (number, index) in all.iter().enumerate() {
            let same = |line: &&mut Vec<usize>| {
                (0..sizes.len()).all(|other| other == dim || all[line[0]][other] == index[other])
            };
            match lines.iter_mut().find(same) {
                Some(line) => line.push(number),
                None => lines.push(vec![number]),
            }
        }
        lines
    }

    #[test]
    fn values_and_gradients() {
        for input in arrays() {
            for dim in 0..input.sizes.len().max(1) {
                let values = input.to_vec();
                let (mut y, mut log_y) = (Array::zeros(&input.sizes), Array::zeros(&input.sizes));
                softmax(input.view(), dim as i64, y.view_mut()).unwrap();
                log_softmax(input.view(), dim as i64, log_y.view_mut()).unwrap();
                let (mut grad, mut log_grad) = (Array::zeros(&input.sizes), Array::zeros(&input.sizes));
                softmax_backward_data(input.view(), y.view(), dim as i64, grad.view_mut()).unwrap();
                log_softmax_backward_data(input.view(), log_y.view(), dim as i64, log_grad.view_mut())
                    .unwrap();
                for line in lines(&input.sizes, dim) {
                    let pick = |from: &Array<f64>| -> Vec<f64> {
                        let all = from.to_vec();
                        line.iter().map(|&at| all[at]).collect()
                    };
                    let total: f64 = line.iter().map(|&at| values[at].exp()).sum();
                    let expected: Vec<f64> = line.iter().map(|&at| values[at].exp() / total).collect();
                    assert_close(&pick(&y), &expected, 1e-13);
                    let logs: Vec<f64> = expected.iter().map(|y| y.ln()).collect();
                    assert_close(&pick(&log_y), &logs, 1e-13);
                    let weighted: f64 = line.iter().zip(&expected).map(|(&at, y)| values[at] * y).sum();
                    let gradient: Vec<f64> =
                        line.iter().zip(&expected).map(|(&at, y)| (values[at] - weighted) * y).collect();
                    assert_close(&pick(&grad), &gradient, 1e-13);
                    let sum: f64 = line.iter().map(|&at| values[at]).sum();
                    let gradient: Vec<f64> =
                        line.iter().zip(&expected).map(|(&at, y)| values[at] - y * sum).collect();
                    assert_close(&pick(&log_grad), &gradient, 1e-12);
                }
            }
        }
    }

    #[test]
    fn large_numbers_neither_overflow_nor_vanish() {
        let input = Array::new(&[3], [1000.0f32, 1000.0, f32::NEG_INFINITY]);
        let mut out = Array::zeros(&[3]);
        softmax(input.view(), -1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0.5, 0.5, 0.0]);
        log_softmax(input.view(), -1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec()[2], f32::NEG_INFINITY);
        let input = Array::new(&[2], [f16::NAN, f16::ONE]);
        let mut out = Array::zeros(&[2]);
        softmax(input.view(), 0, out.view_mut()).unwrap();
        assert!(out.to_vec().iter().all(|x| x.is_nan()));
    }
}
