//! Kernels whose results have a shape that elements decide: reshaped, repeated, sliced and counted by
//! tensors, and elements that differ.

mod different;

use opsmith_runtime::{Element, Error, Layout, Result, Scalar, View, ViewMut};

use super::copy::copy_into;
use super::fill;
use super::join::layout;
use super::strides::{expect_operand, expect_sizes};
use crate::views;
pub(crate) use different::count_different;
pub use different::unique;

/// The elements in the same order in the output's shape.
///
/// # Errors
/// If the output has not as many.
pub fn reshape<T: Element>(self_: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are moved.
    reshape_bits(self_.bits(), unsafe { out.bits() })
}

#[inline(never)]
fn reshape_bits<B: Element>(self_: View<'_, B>, mut out: ViewMut<'_, B>) -> Result<()> {
    expect_sizes(&[out.numel() as i64], &[self_.numel() as i64])?;
    out.write(self_.iter())
}

/// A tensor repeated along each dimension.
///
/// # Errors
/// If the output's shape is not that of the repetitions.
pub fn repeat<T: Element>(self_: View<'_, T>, repeats: View<'_, i64>, out: ViewMut<'_, T>) -> Result<()> {
    super::pick::repeat(self_, &repeats.to_contiguous(), out)
}

/// Each position as often as its number says.
///
/// # Errors
/// If a number is negative, or the output has another size than their sum.
pub fn repeated_positions<T: Element>(repeats: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    let counts =
        || repeats.iter().map(|count| if let Scalar::Int(count) = count.to_scalar() { count } else { -1 });
    let mut sum = 0i64;
    for count in counts() {
        if count < 0 {
            return Err(Error::value(format!("nothing can be repeated {count} times")));
        }
        sum = sum.saturating_add(count);
    }
    expect_operand("output_size", out.sizes(), &[sum])?;
    let positions = (0i64..).zip(counts());
    let repeated = positions.flat_map(|(position, count)| std::iter::repeat_n(position, count as usize));
    out.write(repeated.map(|position| T::from_scalar(Scalar::Int(position))))
}

/// The numbers from `start` in steps of `step`.
///
/// # Errors
/// If the first number or the step is not there.
pub fn arange<T: Element>(start: View<'_, i64>, step: View<'_, i64>, out: ViewMut<'_, T>) -> Result<()> {
    let (Some(start), Some(step)) = (start.iter().next(), step.iter().next()) else {
        return Err(Error::shape("a sequence needs a first number and a step"));
    };
    fill::arange(Scalar::Int(start), Scalar::Int(step), out)
}

/// Every `step`-th slice from the element of `start` to before that of `end`.
///
/// # Errors
/// If there is no such dimension, or the output is not that large.
pub fn slice<T: Element>(
    self_: View<'_, T>,
    start: View<'_, i64>,
    end: View<'_, i64>,
    dim: i64,
    step: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let layout = layout(self_.sizes(), self_.strides());
    let part = views::slice(&layout, dim, first(&start), first(&end), step)?;
    // SAFETY: elements are moved.
    slice_bits(self_.bits(), &part, unsafe { out.bits() })
}

#[inline(never)]
fn first(numbers: &View<'_, i64>) -> Option<i64> {
    numbers.iter().next()
}

#[inline(never)]
fn slice_bits<B: Element>(self_: View<'_, B>, part: &Layout, mut out: ViewMut<'_, B>) -> Result<()> {
    expect_sizes(out.sizes(), &part.sizes)?;
    let first = self_.as_ptr().wrapping_offset(part.offset as isize);
    // SAFETY: a slice reaches only elements of its source.
    copy_into(&unsafe { View::from_raw(first, &part.sizes, &part.strides) }, &mut out)
}
