//! Whole slices at indices along one dimension.

use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Result, Scalar};

use super::lead::{Along, How, Kind, Led, Operand, SUM, gather_at, input, output, without};
use crate::cpu::index::{check_joined, check_list, table};
use crate::cpu::{expect_operand, expect_sizes};
use crate::cuda::moves::{Part, copy, fill};

/// Slices of `self` at the indices, along a dimension: rows `[2, 0]` of a matrix.
///
/// # Errors
/// If the output has another shape, or errors of the device.
pub fn index_select(
    self_: DeviceView<'_>,
    dim: i64,
    index: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dim = wrap_dim(dim, self_.sizes().len())?;
    check_list(index.sizes())?;
    let mut sizes: Dims = self_.sizes().into();
    let mut of_index = Dims::from_elem(0, sizes.len());
    if let (Some(size), Some(stride)) = (sizes.get_mut(dim), of_index.get_mut(dim)) {
        *size = index.numel() as i64;
        *stride = index.strides().first().copied().unwrap_or(0);
    }
    expect_sizes(out.sizes(), &sizes)?;
    if sizes.is_empty() && index.numel() == 0 {
        let one = Part { sizes: &[], strides: &[], offset: 0 };
        // SAFETY: the only elements of both.
        return unsafe { copy(&out, one, &self_, one) };
    }
    let along = Along { size: at(self_.sizes(), dim, 1), step: at(self_.strides(), dim, 0) };
    let fixed = without(self_.strides(), dim);
    let operands = [output(&out, out.strides()), input(&self_, &fixed), input(&index, &of_index)];
    // SAFETY: places of the operands, indices aside; of a scalar, the first index is read.
    unsafe { gather_at(out.dtype(), out.device(), &sizes, operands, along) }
}

fn at(list: &[i64], dim: usize, of_scalar: i64) -> i64 {
    list.get(dim).copied().unwrap_or(of_scalar)
}

/// `self` with `alpha` times a slice of `source` added at each index along a dimension.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn index_add(
    dim: i64,
    index: DeviceView<'_>,
    source: DeviceView<'_>,
    alpha: Scalar,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let how = How { factor: Some(alpha), ..SUM };
    // SAFETY: slices of both, of the same sizes.
    join_slices(dim, &index, &source, &out, |led, sizes, operands| unsafe {
        led.join(source.dtype(), out.device(), sizes, operands, how)
    })
}

/// `self` with each slice of `source` in the place of the slice at its index along a dimension. Where an index repeats, the last slice stays.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn index_copy(
    dim: i64,
    index: DeviceView<'_>,
    source: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    // SAFETY: slices of both, of the same sizes.
    join_slices(dim, &index, &source, &out, |led, sizes, operands| unsafe {
        led.put(source.dtype(), out.device(), sizes, operands)
    })
}

/// Joins slices of `source` to those at the indices: the function is given the sizes of one, and both operands.
fn join_slices(
    dim: i64,
    index: &DeviceView<'_>,
    source: &DeviceView<'_>,
    out: &DeviceViewMut<'_>,
    join: impl FnOnce(Led, &[i64], [Operand<'_>; 2]) -> Result<()>,
) -> Result<()> {
    let dim = wrap_dim(dim, out.sizes().len())?;
    check_list(index.sizes())?;
    check_joined(out.sizes(), dim, index.numel(), source.sizes())?;
    let along = Along { size: at(out.sizes(), dim, 1), step: at(out.strides(), dim, 0) };
    let count = [index.numel() as i64];
    let from = (index.address().cast(), &[index.strides().first().copied().unwrap_or(0)][..]);
    // To a scalar, only the first element of the source is joined.
    let step = if out.sizes().is_empty() { 0 } else { at(source.strides(), dim, 0) };
    // SAFETY: the index's elements.
    let led = unsafe { Led::new(out.device(), &count, from, [&[0], &[step]], along, None)? };
    let rest = |list: &[i64]| {
        let mut rest: Dims = list.into();
        if dim < rest.len() {
            rest.remove(dim);
        }
        rest
    };
    let (sizes, to) = (rest(out.sizes()), rest(out.strides()));
    let from = if out.sizes().is_empty() { Dims::new() } else { rest(source.strides()) };
    join(led, &sizes, [output(out, &to), input(source, &from)])
}

/// Rows of `weight` at the indices; the result has the indices' shape and one dimension more.
///
/// # Errors
/// If the weight is no matrix, or errors of the device.
pub fn embedding(weight: DeviceView<'_>, indices: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let (rows, row) = table(weight.sizes(), weight.strides())?;
    expect_sizes(out.sizes(), &with_last(indices.sizes(), row.size))?;
    let from = with_last(&Dims::from_elem(0, indices.sizes().len()), row.steps[0]);
    let of_index = with_last(indices.strides(), 0);
    let operands = [output(&out, out.strides()), input(&weight, &from), input(&indices, &of_index)];
    let along = Along { size: rows.size, step: rows.steps[0] };
    // SAFETY: places of the operands, indices aside.
    unsafe { gather_at(out.dtype(), out.device(), out.sizes(), operands, along) }
}

fn with_last(list: &[i64], last: i64) -> Dims {
    let mut all: Dims = list.into();
    all.push(last);
    all
}

/// The gradient of [`embedding`] for `weight`: each row is the sum of the gradients of its uses.
///
/// The row `padding_idx` gets none (-1: every row gets one); `scale_grad_by_freq` divides by the
/// number of uses.
///
/// # Errors
/// If the shapes do not fit, or errors of the device.
pub fn embedding_dense_backward(
    grad_output: DeviceView<'_>,
    indices: DeviceView<'_>,
    num_weights: i64,
    padding_idx: i64,
    scale_grad_by_freq: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let (rows, row) = table(out.sizes(), out.strides())?;
    expect_operand("num_weights", &[rows.size], &[num_weights])?;
    expect_operand("grad_output", grad_output.sizes(), &with_last(indices.sizes(), row.size))?;
    let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
    if out.numel() > 0 {
        // SAFETY: the whole output.
        unsafe { fill(&out, whole, Scalar::Int(0))? };
    }
    let (step, own) = grad_output.strides().split_last().map_or((0, &[][..]), |(&step, own)| (step, own));
    let none = Dims::from_elem(0, own.len());
    let along = Along { size: rows.size, step: rows.steps[0] };
    let from = (indices.address().cast(), indices.strides());
    // SAFETY: the elements of the indices.
    let led =
        unsafe { Led::new(out.device(), indices.sizes(), from, [&none, own], along, Some(padding_idx))? };
    let how = How { kind: Kind::Sum, with_own: false, by_uses: scale_grad_by_freq, factor: None };
    let steps = [step];
    let operands = [output(&out, &row.steps[..]), input(&grad_output, &steps)];
    // SAFETY: rows of both, of the same length.
    unsafe { led.join(dtype, out.device(), &[row.size], operands, how) }
}
