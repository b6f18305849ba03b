//! Convolutions over one to three dimensions, and their gradients.
//!
//! Each group of channels of each sample is one matrix product of the weight with the columns of
//! `columns`; a transposed convolution is the transpose of that product. 16-bit floats compute in
//! `f32` and are rounded once, but for sums of `float16` that PyTorch holds in memory (`in_memory`). Inputs that
//! are not contiguous are copied first.

mod columns;
mod unfolding;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{DType, Element, Error, Result, Scratch, View, ViewMut};

use super::lanes::{computed, with_computed};
use super::linalg::{Matrix, MatrixMut, Multiply};
use super::rounded::held;
use super::strides::expect_sizes;
use crate::window::{MOST, Window, spatial_sizes};
use columns::Sliding;

pub use unfolding::{col2im, im2col};

/// Types that convolutions compute in.
pub trait Convolve: Multiply + Element<Compute = Self> + Arithmetic {}
impl<C: Multiply + Element<Compute = C> + Arithmetic> Convolve for C {}

/// The convolution of samples with a weight: `(samples, channels, places…)` with
/// `(outputs, channels / groups, window…)` gives `(samples, outputs, positions…)`.
///
/// A transposed one swaps the roles of input and output; `output_padding` matters for its shape.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn convolution<T: Element<Compute: Convolve>>(
    input: View<'_, T>,
    weight: View<'_, T>,
    bias: Option<View<'_, T>>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    transposed: bool,
    output_padding: &[i64],
    groups: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let plan =
        Plan::new(input.sizes(), weight.sizes(), out.sizes(), stride, padding, dilation, transposed, groups)?;
    let (x, w) = (input.to_contiguous(), widen(&weight));
    let mut widened = Scratch::new();
    let x = computed(&x, &mut widened);
    let held = in_memory::<T>(transposed, output_padding, stride);
    let channels = out.sizes()[1] as usize;
    let bias = match bias {
        None => None,
        Some(bias) if bias.sizes() == [channels as i64] => Some(widen(&bias)),
        Some(bias) => {
            return Err(Error::shape(format!(
                "the bias has the shape {} instead of ({channels})",
                ShapeText(bias.sizes())
            )));
        }
    };
    let compute = |y: &mut [T::Compute]| {
        if transposed {
            plan.to_large(x, &w, held, y)
        } else {
            plan.to_small(x, &w, y)
        }
        let Some(bias) = &bias else { return };
        let plane = (y.len() / (plan.samples * channels).max(1)).max(1);
        for (plane, &bias) in y.chunks_exact_mut(plane).zip(bias.iter().cycle()) {
            plane.iter_mut().for_each(|y| *y = Arithmetic::add(*y, bias));
        }
    };
    let mut result = Scratch::new();
    if let Some(y) = out.as_mut_slice() {
        with_computed(y, &mut result, compute);
        return Ok(());
    }
    result.resize(out.numel(), T::Compute::ZERO);
    compute(&mut result);
    out.write(result.into_iter().map(T::from_compute))
}

/// The gradients of [`convolution`] for input, weight and bias; those not asked for in `output_mask`
/// are zeros.
///
/// # Errors
/// As [`convolution`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn convolution_backward<T: Element<Compute: Convolve>>(
    grad_output: View<'_, T>,
    input: View<'_, T>,
    weight: View<'_, T>,
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    transposed: bool,
    output_padding: &[i64],
    groups: i64,
    output_mask: &[bool],
    mut grad_input: ViewMut<'_, T>,
    mut grad_weight: ViewMut<'_, T>,
    mut grad_bias: ViewMut<'_, T>,
) -> Result<()> {
    let (x_sizes, y_sizes) = (input.sizes(), grad_output.sizes());
    let plan = Plan::new(x_sizes, weight.sizes(), y_sizes, stride, padding, dilation, transposed, groups)?;
    let asked = |number: usize| output_mask.get(number).copied().unwrap_or(true);
    let dy = grad_output.to_contiguous();
    let mut widened = Scratch::new();
    let dy = computed(&dy, &mut widened);
    let held = in_memory::<T>(transposed, output_padding, stride);
    let write = |out: &mut ViewMut<'_, T>, values: Option<Scratch<T::Compute>>| match values {
        Some(values) => out.write(values.into_iter().map(T::from_compute)),
        None => out.write(std::iter::repeat(T::default())),
    };
    let of_input = asked(0).then(|| {
        let w = widen(&weight);
        let mut dx = Scratch::filled(T::Compute::ZERO, x_sizes.iter().product::<i64>() as usize);
        if transposed {
            plan.to_small(dy, &w, &mut dx)
        } else {
            plan.to_large(dy, &w, held, &mut dx)
        }
        dx
    });
    let of_weight = asked(1).then(|| {
        let x = input.to_contiguous();
        let mut widened = Scratch::new();
        let x = computed(&x, &mut widened);
        if transposed { plan.of_weight(dy, x, held) } else { plan.of_weight(x, dy, held) }
    });
    let of_bias = asked(2).then(|| {
        let channels = y_sizes[1].max(1) as usize;
        let plane = (dy.len() / (plan.samples * channels).max(1)).max(1);
        let mut sums = Scratch::filled(T::Compute::ZERO, channels);
        for (number, plane) in dy.chunks_exact(plane).enumerate() {
            let sum = plane.iter().fold(T::Compute::ZERO, |sum, &dy| Arithmetic::add(sum, dy));
            sums[number % channels] = Arithmetic::add(sums[number % channels], sum);
        }
        sums
    });
    write(&mut grad_input, of_input)?;
    write(&mut grad_weight, of_weight)?;
    write(&mut grad_bias, of_bias)
}

/// How a sum is held between additions.
///
/// Where windows overlap, and from sample to sample, PyTorch adds up `float16` in memory, which rounds every
/// sum. The library that it leaves other floats to does not; it takes no transposed convolution whose output
/// padding reaches its stride.
fn in_memory<T: Element>(
    transposed: bool,
    output_padding: &[i64],
    stride: &[i64],
) -> impl Fn(T::Compute) -> T::Compute + Copy + Sync {
    let step = |dim: usize| stride.get(dim).or(stride.first()).copied().unwrap_or(1);
    let reaches = || output_padding.iter().enumerate().any(|(dim, &extra)| extra >= step(dim));
    let rounds = T::DTYPE == DType::F16 || T::DTYPE == DType::BF16 && transposed && reaches();
    move |sum| if rounds { held::<T>(sum) } else { sum }
}

fn widen<T: Element>(view: &View<'_, T>) -> Scratch<T::Compute> {
    Scratch::mapped(&view.to_contiguous(), |element| element.to_compute())
}

/// Columns that are made and multiplied at a time stay in the second cache: about this many elements.
pub(super) const BLOCK: usize = 1 << 16;

/// A convolution seen from its two sides: the *large* one, which the window slides over, and the
/// *small* one, with an element for each position of the window.
struct Plan {
    sliding: Sliding,
    samples: usize,
    groups: usize,
    /// Channels of a group on the large side, and on the small side.
    large: usize,
    small: usize,
}

impl Plan {
    #[allow(clippy::too_many_arguments, reason = "everything a convolution consists of")]
    fn new(
        input: &[i64],
        weight: &[i64],
        output: &[i64],
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        groups: i64,
    ) -> Result<Plan> {
        let spatial = weight.len().saturating_sub(2).max(1);
        let window = Window::new(spatial, weight.get(2..).unwrap_or(&[]), stride, padding, dilation)?;
        let (large, small) = if transposed { (output, input) } else { (input, output) };
        let (large_places, small_places) = (spatial_sizes(large, spatial)?, spatial_sizes(small, spatial)?);
        // Without places the window would see its padding alone; no library computes that.
        let given = if transposed { &small_places } else { &large_places };
        if given.contains(&0) {
            return Err(Error::shape(format!(
                "an input of the shape {} has no elements along a dimension that the window slides over",
                ShapeText(input)
            ))
            .with_help("only the numbers of samples and of channels may be 0"));
        }
        let fits = large.len() == weight.len()
            && small.len() == weight.len()
            && groups > 0
            && large[0] == small[0]
            && small[1] == weight[0]
            && weight[0] % groups == 0
            && large[1] == weight[1].saturating_mul(groups);
        if !fits {
            return Err(Error::shape(format!(
                "an input of shape {}, a weight of {} and an output of {} do not go together with {groups} groups",
                ShapeText(input),
                ShapeText(weight),
                ShapeText(output)
            )));
        }
        let positions = window.output_sizes(large_places, false)?;
        // A transposed convolution may leave places at the end that no position reaches.
        if !transposed || (0..MOST).any(|dim| small_places[dim] > positions[dim]) {
            expect_sizes(&small_places, &positions)?;
        }
        Ok(Plan {
            sliding: Sliding { window, input: large_places, output: small_places },
            samples: large[0] as usize,
            groups: groups as usize,
            large: weight[1] as usize,
            small: (weight[0] / groups) as usize,
        })
    }

    /// Elements of a group on the large side, of one sample.
    fn large_group(&self) -> usize {
        self.large * self.sliding.plane()
    }

    /// Elements of a group on the small side, of one sample.
    fn small_group(&self) -> usize {
        self.small * self.sliding.positions()
    }

    /// Rows of a group's columns.
    fn column_height(&self) -> usize {
        self.large * self.sliding.elements()
    }

    /// Calls `body` with a range of rows of positions for each block of columns.
    fn for_each_block(&self, mut body: impl FnMut(std::ops::Range<usize>)) {
        let rows = self.sliding.positions() / self.sliding.row().max(1);
        let each = self.column_height() * self.sliding.row();
        // Whole planes need no columns, so they need no blocks either.
        let together = if self.sliding.is_identity() { rows } else { BLOCK / each.max(1) };
        for first in (0..rows).step_by(together.max(1)) {
            body(first..rows.min(first + together.max(1)));
        }
    }

    /// Convolves the large side into the small one, a group of a sample after the other or in several threads.
    fn to_small<C: Convolve>(&self, large: &[C], weight: &[C], small: &mut [C]) {
        let target = Shared(small.as_mut_ptr());
        parallel::for_each_range(self.samples * self.groups, 1, |numbers| {
            let mut columns = Scratch::new();
            for number in numbers {
                let planes = &large[number * self.large_group()..][..self.large_group()];
                let target = target.at((number * self.small_group()) as i64);
                let weight = self.weight_of(number, weight);
                self.for_each_block(|rows| {
                    let (columns, width) = self.columns(planes, &rows, &mut columns);
                    let right = row_major(columns, self.column_height(), width);
                    let out = MatrixMut {
                        data: target.wrapping_add(rows.start * self.sliding.row()),
                        row_stride: self.sliding.positions() as i64,
                        column_stride: 1,
                    };
                    // SAFETY: the block's positions of each channel lie inside the group, which no other thread has.
                    unsafe { C::multiply(weight, right, None, C::ONE, out) };
                });
            }
        });
    }

    /// The transpose of [`Plan::to_small`]; `held` rounds the columns' elements and their sums.
    fn to_large<C: Convolve>(
        &self,
        small: &[C],
        weight: &[C],
        held: impl Fn(C) -> C + Sync,
        large: &mut [C],
    ) {
        large.fill(C::ZERO);
        let each = self.large_group();
        let target = Shared(large.as_mut_ptr());
        parallel::for_each_range(self.samples * self.groups, 1, |numbers| {
            let mut columns = Scratch::new();
            for number in numbers {
                let source = &small[number * self.small_group()..][..self.small_group()];
                // SAFETY: the group lies in the slice, and no other thread has it.
                let planes =
                    unsafe { std::slice::from_raw_parts_mut(target.at((number * each) as i64), each) };
                let weight = transpose(self.weight_of(number, weight));
                self.for_each_block(|rows| {
                    let width = rows.len() * self.sliding.row();
                    columns.clear();
                    columns.resize(self.column_height() * width, C::ZERO);
                    let right = self.block_of(source, &rows);
                    let out =
                        MatrixMut { data: columns.as_mut_ptr(), row_stride: width as i64, column_stride: 1 };
                    // SAFETY: the columns have a row for each column of the weight.
                    unsafe { C::multiply(weight, right, None, C::ONE, out) };
                    columns.iter_mut().for_each(|sum| *sum = held(*sum));
                    self.sliding.scatter(&columns, rows, planes, &held);
                });
            }
        });
    }

    /// The gradient for the weight: the small side times the columns of the large one, transposed.
    /// `held` rounds the sum after each sample.
    fn of_weight<C: Convolve>(&self, large: &[C], small: &[C], held: impl Fn(C) -> C) -> Scratch<C> {
        let each = self.small * self.column_height();
        let mut sums = Scratch::filled(C::ZERO, self.groups * each);
        let mut columns = Scratch::new();
        for number in 0..self.samples * self.groups {
            let planes = &large[number * self.large_group()..][..self.large_group()];
            let source = &small[number * self.small_group()..][..self.small_group()];
            let target = &mut sums[number % self.groups * each..][..each];
            self.for_each_block(|rows| {
                let (columns, width) = self.columns(planes, &rows, &mut columns);
                let right = transpose(row_major(columns, self.column_height(), width));
                let left = self.block_of(source, &rows);
                let out = MatrixMut {
                    data: target.as_mut_ptr(),
                    row_stride: self.column_height() as i64,
                    column_stride: 1,
                };
                // SAFETY: the group's sums have a row for each small channel.
                unsafe { C::multiply(left, right, Some(C::ONE), C::ONE, out) };
            });
            target.iter_mut().for_each(|sum| *sum = held(*sum));
        }
        sums
    }

    /// The weight of a sample's group: a row for each small channel.
    fn weight_of<C>(&self, number: usize, weight: &[C]) -> Matrix<C> {
        let each = self.small * self.column_height();
        row_major(&weight[number % self.groups * each..][..each], self.small, self.column_height())
    }

    /// The columns of a block, and how many there are.
    fn columns<'a, C: Convolve>(
        &self,
        planes: &'a [C],
        rows: &std::ops::Range<usize>,
        buffer: &'a mut Scratch<C>,
    ) -> (&'a [C], usize) {
        let width = rows.len() * self.sliding.row();
        if self.sliding.is_identity() {
            return (planes, width);
        }
        self.sliding.gather(planes, rows.clone(), buffer);
        (buffer, width)
    }

    /// A block of a group on the small side: a row for each channel.
    fn block_of<C>(&self, group: &[C], rows: &std::ops::Range<usize>) -> Matrix<C> {
        Matrix {
            data: group[rows.start * self.sliding.row()..].as_ptr(),
            rows: self.small,
            columns: rows.len() * self.sliding.row(),
            row_stride: self.sliding.positions() as i64,
            column_stride: 1,
        }
    }
}

fn row_major<C>(elements: &[C], rows: usize, columns: usize) -> Matrix<C> {
    Matrix { data: elements.as_ptr(), rows, columns, row_stride: columns as i64, column_stride: 1 }
}

fn transpose<C>(matrix: Matrix<C>) -> Matrix<C> {
    Matrix {
        data: matrix.data,
        rows: matrix.columns,
        columns: matrix.rows,
        row_stride: matrix.column_stride,
        column_stride: matrix.row_stride,
    }
}

#[cfg(test)]
mod tests;
