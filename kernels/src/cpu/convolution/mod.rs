//! Convolutions over one to three dimensions, and their gradients.
//!
//! Each group of channels of each sample is one matrix product of the weight with the elements that the window sees at
//! each position: by panels of patches (`implicit`), or where these don't serve, by columns (`by_columns`). A transposed
//! convolution is the transpose of that product. 16-bit floats compute in `f32` and are rounded once, but for sums of
//! `float16` that PyTorch holds in memory (`in_memory`).

mod by_columns;
mod channelwise;
mod columns;
mod implicit;
mod of_weight;
#[cfg(target_arch = "x86_64")]
mod paired;
mod patch;
mod unfolding;

use std::marker::PhantomData;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{DType, Dims, Element, Error, Result, Scratch, View, ViewMut};

use super::lanes::{computed, with_computed};
use super::linalg::{Multiply, few::FEW};
use super::rounded::held;
use super::strides::expect_operand;
use crate::window::{MOST, Window, spatial_sizes};
pub(crate) use columns::Sliding;
use implicit::Implicit;

pub(super) use by_columns::BLOCK;
pub(super) use patch::PATCH;

pub(crate) use unfolding::sliding as check_columns;
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
    let weight = weight.to_contiguous();
    let mut widened = Scratch::new();
    let w = computed(&weight, &mut widened);
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
    let bias = bias.as_ref().map(|bias| &bias[..]);
    plan.write(transposed, &held, input, w, bias, &mut out)
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
    let held = in_memory::<T>(transposed, output_padding, stride);
    if asked(0) {
        // The gradient of a convolution is a transposed one, and the other way around.
        let weight = weight.to_contiguous();
        let mut widened = Scratch::new();
        plan.write(!transposed, &held, grad_output, computed(&weight, &mut widened), None, &mut grad_input)?;
    } else {
        write_zeros(&mut grad_input)?;
    }
    if asked(1) {
        let (large, small) = if transposed { (grad_output, input) } else { (input, grad_output) };
        let sums = plan.gradient_of_weight(&held, large, small);
        grad_weight.write(sums.into_iter().map(T::from_compute))?;
    } else {
        write_zeros(&mut grad_weight)?;
    }
    if asked(2) {
        grad_bias.write(sums_of_channels(grad_output).into_iter().map(T::from_compute))
    } else {
        write_zeros(&mut grad_bias)
    }
}

/// Channels whose sums are computed side by side, since each waits for its own last addition.
const TOGETHER: usize = 8;

/// The sums of each channel over samples and places, one element after the other, as PyTorch adds them.
fn sums_of_channels<T: Element<Compute: Convolve>>(grad: View<'_, T>) -> Scratch<T::Compute> {
    let (sizes, strides, channels) = (grad.sizes(), grad.strides(), grad.size(1));
    let mut sums = Scratch::filled(T::Compute::ZERO, channels);
    let places = sizes[2..].iter().product::<i64>() as usize;
    let mut planes = Scratch::new();
    for sample in 0..grad.size(0) {
        for (part, totals) in sums.chunks_mut(TOGETHER).enumerate() {
            let first = sample as i64 * strides[0] + (part * TOGETHER) as i64 * strides[1];
            let mut sizes: Dims = sizes[1..].into();
            sizes[0] = totals.len() as i64;
            let data = grad.as_ptr().wrapping_offset(first as isize);
            // SAFETY: the places of some of the sample's channels.
            let part = unsafe { View::from_raw(data, &sizes, &strides[1..]) }.to_contiguous();
            let part = computed(&part, &mut planes);
            let mut running = [T::Compute::ZERO; TOGETHER];
            for place in 0..places {
                for (running, plane) in running.iter_mut().zip(part.chunks_exact(places)) {
                    *running = Arithmetic::add(*running, plane[place]);
                }
            }
            for (total, sum) in totals.iter_mut().zip(running) {
                *total = Arithmetic::add(*total, sum);
            }
        }
    }
    sums
}

fn write_zeros<T: Element>(out: &mut ViewMut<'_, T>) -> Result<()> {
    match out.as_mut_slice() {
        Some(elements) => {
            elements.fill(T::default());
            Ok(())
        }
        None => out.write(std::iter::repeat(T::default())),
    }
}

/// How a sum is held between additions.
struct Held<T> {
    /// In memory, as an element.
    rounds: bool,
    element: PhantomData<T>,
}

impl<T: Element> Held<T> {
    fn of(&self, sum: T::Compute) -> T::Compute {
        if self.rounds { held::<T>(sum) } else { sum }
    }
}

/// How a sum is held between additions.
///
/// Where windows overlap, and from sample to sample, PyTorch adds up `float16` in memory, which rounds every
/// sum. The library that it leaves other floats to does not; it takes no transposed convolution whose output
/// padding reaches its stride.
fn in_memory<T: Element>(transposed: bool, output_padding: &[i64], stride: &[i64]) -> Held<T> {
    let step = |dim: usize| stride.get(dim).or(stride.first()).copied().unwrap_or(1);
    let reaches = || output_padding.iter().enumerate().any(|(dim, &extra)| extra >= step(dim));
    let rounds = T::DTYPE == DType::F16 || T::DTYPE == DType::BF16 && transposed && reaches();
    Held { rounds, element: PhantomData }
}

fn widen<T: Element>(view: &View<'_, T>) -> Scratch<T::Compute> {
    Scratch::mapped(&view.to_contiguous(), |element| element.to_compute())
}

/// A convolution seen from its two sides: the *large* one, which the window slides over, and the
/// *small* one, with an element for each position of the window.
pub(crate) struct Plan {
    pub sliding: Sliding,
    pub samples: usize,
    pub groups: usize,
    /// Channels of a group on the large side, and on the small side.
    pub large: usize,
    pub small: usize,
}

impl Plan {
    #[allow(clippy::too_many_arguments, reason = "everything a convolution consists of")]
    pub fn new(
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
            expect_operand("an operand", &small_places, &positions)?;
        }
        Ok(Plan {
            sliding: Sliding { window, input: large_places, output: small_places },
            samples: large[0] as usize,
            groups: groups as usize,
            large: weight[1] as usize,
            small: (weight[0] / groups) as usize,
        })
    }

    /// The convolution of patches, if they serve.
    fn patches<'a, C: Convolve>(&self, bias: Option<&'a [C]>) -> Option<Implicit<'a, C>> {
        Implicit::new(self.sliding, [self.groups, self.large, self.small], bias)
    }

    /// The convolution that equals the transposed one, if strides are 1: that of the reversed window, over the small side.
    fn reversed(&self) -> Option<Plan> {
        let Sliding { mut window, input, output } = self.sliding;
        if window.stride != [1; MOST] {
            return None;
        }
        for dim in 0..MOST {
            window.padding[dim] = window.dilation[dim] * (window.kernel[dim] - 1) - window.padding[dim];
        }
        let sliding = Sliding { window, input: output, output: input };
        Some(Plan { sliding, large: self.small, small: self.large, ..*self })
    }

    /// Writes the convolution of the large side, or the transposed one of the small side.
    fn write<T: Element<Compute: Convolve>>(
        &self,
        transposed: bool,
        held: &Held<T>,
        input: View<'_, T>,
        weight: &[T::Compute],
        bias: Option<&[T::Compute]>,
        out: &mut ViewMut<'_, T>,
    ) -> Result<()> {
        if transposed {
            // Beyond the border nothing is added, where a zero times an infinite weight would be NaN.
            let is_finite =
                |weight: &T::Compute| Arithmetic::mul(*weight, T::Compute::ZERO).equal(T::Compute::ZERO);
            let reverses = !held.rounds && weight.iter().all(is_finite);
            return match self.reversed().filter(|_| reverses) {
                Some(plan) => plan.write(false, held, input, &self.reversed_weight(weight), bias, out),
                None => self.write_by_columns(true, held, input, weight, bias, out),
            };
        }
        // Whole planes are columns already. Of one sample with few positions, most of the time goes into reading the weight, which
        // a product with few columns does once, without packing it.
        let planes = self.sliding.is_identity() && input.is_contiguous() && out.is_contiguous();
        let few = self.samples * self.groups == 1 && self.sliding.positions() <= FEW;
        match self.patches(bias).filter(|_| !planes && !few) {
            Some(patches) => patches.forward(input, weight, out),
            None => self.write_by_columns(false, held, input, weight, bias, out)?,
        }
        Ok(())
    }

    /// As [`write`](Self::write), by way of columns.
    fn write_by_columns<T: Element<Compute: Convolve>>(
        &self,
        transposed: bool,
        held: &Held<T>,
        input: View<'_, T>,
        weight: &[T::Compute],
        bias: Option<&[T::Compute]>,
        out: &mut ViewMut<'_, T>,
    ) -> Result<()> {
        let x = input.to_contiguous();
        let mut widened = Scratch::new();
        let x = computed(&x, &mut widened);
        let channels = out.sizes()[1] as usize;
        let compute = |y: &mut [T::Compute]| {
            if transposed {
                self.to_large(x, weight, |sum| held.of(sum), y)
            } else {
                self.to_small(x, weight, y)
            }
            let Some(bias) = bias else { return };
            let plane = (y.len() / (self.samples * channels).max(1)).max(1);
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

    /// The gradient for the weight, from the large side and the gradient of the small one.
    fn gradient_of_weight<T: Element<Compute: Convolve>>(
        &self,
        held: &Held<T>,
        large: View<'_, T>,
        small: View<'_, T>,
    ) -> Scratch<T::Compute> {
        let planes = self.sliding.is_identity() && large.is_contiguous() && small.is_contiguous();
        match self.patches(None).filter(|_| !(planes || held.rounds)) {
            Some(patches) => patches.of_weight(large, small),
            None => {
                let (large, small) = (large.to_contiguous(), small.to_contiguous());
                let mut widened = [Scratch::new(), Scratch::new()];
                let [of_large, of_small] = &mut widened;
                self.of_weight(computed(&large, of_large), computed(&small, of_small), |sum| held.of(sum))
            }
        }
    }

    /// The weight `(groups, small, large, window…)` as `(groups, large, small, reversed window…)`.
    fn reversed_weight<C: Convolve>(&self, weight: &[C]) -> Scratch<C> {
        let elements = self.sliding.elements();
        let mut reversed = Scratch::with_capacity(weight.len());
        for group in 0..self.groups {
            for large in 0..self.large {
                for small in 0..self.small {
                    let start = ((group * self.small + small) * self.large + large) * elements;
                    reversed.extend(weight[start..start + elements].iter().rev());
                }
            }
        }
        reversed
    }
}

#[cfg(test)]
mod tests;
