//! Reductions: many elements to one.
//!
//! The meaning is that of [`cpu::reduce`](crate::cpu::reduce). The order of sums depends on shapes and strides alone.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Dims, Result, Scalar};

use super::fold::{Fold, Operands, fold, fold_view};
use super::launch::{each, strided};
use super::moves::{Part, copy};
use crate::cpu::backward::added_dims;
use crate::cpu::reduce::{real_correction, real_order, refuse_empty};
use crate::cpu::{expect_sizes, reduced_strides};
use crate::device::strided::Strided;
use crate::device::{EACH, REDUCTION_HEADERS};

pub use super::scan::{cummax, cummin, cumprod, cumprod_backward, cumsum, logcumsumexp};

static PROGRAM: DeviceProgram = DeviceProgram::new("reduction.cuh", REDUCTION_HEADERS, "");
static CHOSEN: DeviceProgram = DeviceProgram::new("chosen.cuh", EACH, include_str!("../../cuda/chosen.cuh"));

/// Folds of `reduction.cuh` with one element type.
#[derive(Clone, Copy)]
enum Kind {
    Sum,
    Mean,
    Product,
    Largest,
    Smallest,
    ArgLargest,
    ArgSmallest,
    Any,
    All,
    Norm,
    Variance,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Sum => "Sum",
            Kind::Mean => "Mean",
            Kind::Product => "Product",
            Kind::Largest => "Largest",
            Kind::Smallest => "Smallest",
            Kind::ArgLargest => "ArgLargest",
            Kind::ArgSmallest => "ArgSmallest",
            Kind::Any => "Any",
            Kind::All => "All",
            Kind::Norm => "Norm",
            Kind::Variance => "Variance",
        }
    }

    fn fold(self, dtype: DType, value: f64) -> Fold<impl Fn() -> String> {
        Fold {
            program: &PROGRAM,
            number: (self as u32) << 8 | dtype as u32,
            text: move || format!("{}<opsmith::dtype::{}>", self.name(), dtype.ident()),
            value,
            ordered: matches!(self, Kind::ArgLargest | Kind::ArgSmallest),
        }
    }
}

/// Writes a fold, with the number that it holds.
///
/// # Safety
/// The dtype of `out` is that of the fold's outputs for the input's dtype.
unsafe fn reduce(
    (kind, value): (Kind, f64),
    input: &DeviceView<'_>,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    // SAFETY: the caller's promise.
    unsafe { fold_view(&kind.fold(dtype, value), input, dim, keepdim, out) }
}

/// The sum of all elements; 0 without elements.
///
/// # Errors
/// Errors of the device.
pub fn sum_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    sum(self_, None, false, out)
}

/// Sums over dimensions; 0 without elements.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn sum(self_: DeviceView<'_>, dim: Option<&[i64]>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: sums are of the elements' type.
    unsafe { reduce((Kind::Sum, 0.0), &self_, dim, keepdim, &out) }
}

/// Sums over the dimensions that broadcasting added or widened.
///
/// # Errors
/// If the output's shape does not broadcast to the operand's, or errors of the device.
pub fn sum_to_size(self_: DeviceView<'_>, size: &[i64], out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    let added = added_dims(self_.sizes(), size)?;
    expect_sizes(out.sizes(), size)?;
    let mut strides = Dims::from_elem(0, added);
    strides.extend_from_slice(out.strides());
    let is_reduced = |dim: usize| dim < added || size[dim - added] != self_.sizes()[dim];
    let reduced: Vec<bool> = (0..strides.len()).map(is_reduced).collect();
    if !reduced.contains(&true) {
        let to = Part { sizes: size, strides: &strides, offset: 0 };
        // SAFETY: all elements of two operands of one shape.
        return unsafe { copy(&out, to, &self_, Part { strides: self_.strides(), ..to }) };
    }
    let operands = Operands {
        device: out.device(),
        sizes: self_.sizes(),
        reduced: &reduced,
        input: (self_.address().cast(), self_.strides()),
        out: (out.address().cast(), &strides),
    };
    // SAFETY: sums are of the elements' type; places of the views.
    unsafe { fold(&Kind::Sum.fold(dtype, 0.0), &operands) }
}

/// The mean of all elements; NaN without elements.
///
/// # Errors
/// Errors of the device.
pub fn mean_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    mean(self_, None, false, out)
}

/// Means over dimensions; NaN without elements.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn mean(self_: DeviceView<'_>, dim: Option<&[i64]>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: means are of the elements' type.
    unsafe { reduce((Kind::Mean, 0.0), &self_, dim, keepdim, &out) }
}

/// The product of all elements; 1 without elements.
///
/// # Errors
/// Errors of the device.
pub fn prod_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: products are of the elements' type.
    unsafe { reduce((Kind::Product, 0.0), &self_, None, false, &out) }
}

/// Products over one dimension; 1 without elements.
///
/// # Errors
/// If the dimension is out of range, or errors of the device.
pub fn prod(self_: DeviceView<'_>, dim: i64, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: products are of the elements' type.
    unsafe { reduce((Kind::Product, 0.0), &self_, Some(&[dim]), keepdim, &out) }
}

/// The largest elements over dimensions; NaN if there is one.
///
/// # Errors
/// If there are outputs but no elements to choose from, or errors of the device.
pub fn amax(self_: DeviceView<'_>, dim: &[i64], keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    extreme(Kind::Largest, &self_, dim, keepdim, &out)
}

/// The smallest elements over dimensions; NaN if there is one.
///
/// # Errors
/// As [`amax`].
pub fn amin(self_: DeviceView<'_>, dim: &[i64], keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    extreme(Kind::Smallest, &self_, dim, keepdim, &out)
}

/// The largest element; NaN if there is one.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn max_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    extreme(Kind::Largest, &self_, &[], false, &out)
}

/// The smallest element; NaN if there is one.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn min_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    extreme(Kind::Smallest, &self_, &[], false, &out)
}

fn extreme(
    kind: Kind,
    input: &DeviceView<'_>,
    dim: &[i64],
    keepdim: bool,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    refuse_empty(input.sizes(), &reduced_dims(input.sizes().len(), Some(dim))?)?;
    // SAFETY: extremes are elements.
    unsafe { reduce((kind, 0.0), input, Some(dim), keepdim, out) }
}

/// Writes the smallest and the largest element to two places; NaN if there is one.
pub(super) fn ends_of(input: &DeviceView<'_>, ends: *mut c_void) -> Result<()> {
    let dtype = input.dtype();
    let (dims, reduced) = (input.sizes().len(), vec![true; input.sizes().len()]);
    for (place, kind) in [Kind::Smallest, Kind::Largest].into_iter().enumerate() {
        let operands = Operands {
            device: input.device(),
            sizes: input.sizes(),
            reduced: &reduced,
            input: (input.address().cast(), input.strides()),
            out: (ends.wrapping_byte_add(place * dtype.size()), &vec![0; dims]),
        };
        // SAFETY: extremes are elements; places of the view, and one of two outputs.
        unsafe { fold(&kind.fold(dtype, 0.0), &operands)? };
    }
    Ok(())
}

/// The index of the largest element along a dimension, or in row-major order of all elements.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn argmax(self_: DeviceView<'_>, dim: Option<i64>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    position(Kind::ArgLargest, &self_, dim, keepdim, &out)
}

/// The index of the smallest element along a dimension, or in row-major order of all elements.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn argmin(self_: DeviceView<'_>, dim: Option<i64>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    position(Kind::ArgSmallest, &self_, dim, keepdim, &out)
}

fn position(
    kind: Kind,
    input: &DeviceView<'_>,
    dim: Option<i64>,
    keepdim: bool,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dim = dim.as_ref().map(std::slice::from_ref);
    refuse_empty(input.sizes(), &reduced_dims(input.sizes().len(), dim)?)?;
    // SAFETY: places are of the output's type.
    unsafe { reduce((kind, 0.0), input, dim, keepdim, out) }
}

/// The largest elements along a dimension, and their indices.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn max_dim(
    self_: DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    position(Kind::ArgLargest, &self_, Some(dim), keepdim, &indices)?;
    at_places(&self_, dim, keepdim, &values, &indices)
}

/// The smallest elements along a dimension, and their indices.
///
/// # Errors
/// If there is no element, or errors of the device.
pub fn min_dim(
    self_: DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    position(Kind::ArgSmallest, &self_, Some(dim), keepdim, &indices)?;
    at_places(&self_, dim, keepdim, &values, &indices)
}

#[derive(Clone, Copy)]
#[repr(C)]
struct AtPlace {
    places: Strided<3>,
    step: i64,
}

/// Writes the elements at places along a dimension, which are inside it.
fn at_places(
    input: &DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: &DeviceViewMut<'_>,
    indices: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let dim = wrap_dim(dim, input.sizes().len())?;
    let reduced = reduced_dims(input.sizes().len(), Some(&[dim as i64]))?;
    let like_input = |sizes, strides| reduced_strides(input.sizes(), &reduced, keepdim, sizes, strides);
    let value_strides = like_input(values.sizes(), values.strides())?;
    let index_strides = like_input(indices.sizes(), indices.strides())?;
    let kept = |list: &[i64]| -> Vec<i64> {
        (0..list.len()).filter(|&other| !reduced[other]).map(|other| list[other]).collect()
    };
    let places = strided(
        &kept(input.sizes()),
        [
            (values.address().cast_const().cast(), &kept(&value_strides)),
            (input.address().cast(), &kept(input.strides())),
            (indices.address().cast_const().cast(), &kept(&index_strides)),
        ],
    )?;
    let parameter = AtPlace { places, step: input.strides().get(dim).copied().unwrap_or(0) };
    // SAFETY: the struct has the fields of `chosen.cuh`; places are those of the views, indices those of a reduction.
    unsafe { each(&CHOSEN, values.device(), (0, "AtPlace"), dtype, &places, &parameter) }
}

/// Whether any element over dimensions is not zero; false without elements.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn any(self_: DeviceView<'_>, dim: Option<&[i64]>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: the fold's outputs are truth values.
    unsafe { reduce((Kind::Any, 0.0), &self_, dim, keepdim, &out) }
}

/// Whether all elements over dimensions are not zero; true without elements.
///
/// # Errors
/// If a dimension is out of range, or errors of the device.
pub fn all(self_: DeviceView<'_>, dim: Option<&[i64]>, keepdim: bool, out: DeviceViewMut<'_>) -> Result<()> {
    // SAFETY: the fold's outputs are truth values.
    unsafe { reduce((Kind::All, 0.0), &self_, dim, keepdim, &out) }
}

/// Variances over dimensions: squared distances from the mean, summed and divided by the number of elements less
/// `correction` (1 if absent).
///
/// # Errors
/// If the correction is complex or a dimension is out of range, or errors of the device.
pub fn var(
    self_: DeviceView<'_>,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    // SAFETY: the fold's outputs are of the real type.
    unsafe { reduce((Kind::Variance, real_correction(correction)?), &self_, dim, keepdim, &out) }
}

/// `(∑ |x|^ord)^(1 / ord)` over dimensions, in double precision, rounded once.
///
/// # Errors
/// If `ord` is complex, or an infinity or negative where there are outputs without elements, or errors of the device.
pub fn vector_norm(
    self_: DeviceView<'_>,
    ord: Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let ord = real_order(ord, self_.sizes(), &reduced_dims(self_.sizes().len(), dim)?)?;
    // SAFETY: the fold's outputs are of the real type.
    unsafe { reduce((Kind::Norm, ord), &self_, dim, keepdim, &out) }
}
