//! The gradients of views, whose elements go back to where they came from.

use opsmith_runtime::backend::{Elements, Work};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Layout, Result, Scalar};

use super::moves::{Part, copy, fill};
use super::scratch::Room;
use super::sequence::{WindowsAlong, divide_shared, sum_windows};
use crate::cpu::backward::{check_count, shown};
use crate::cpu::{expect_operand, expect_sizes};
use crate::views;

/// The gradient of `split_with_sizes`: the pieces one after the other, zeros for those without gradient.
///
/// # Errors
/// If the pieces do not fill the output, or errors of the device.
pub fn split_with_sizes_backward(
    grads: &[Option<DeviceView<'_>>],
    split_sizes: &[i64],
    dim: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    put_parts(grads, views::parts_of_sizes(&layout_of(&out), split_sizes, dim)?, &out)
}

/// The gradient of `unbind`: the slices one after the other, zeros for those without gradient.
///
/// # Errors
/// If there are not as many slices as the output has, or errors of the device.
pub fn unbind_backward(grads: &[Option<DeviceView<'_>>], dim: i64, out: DeviceViewMut<'_>) -> Result<()> {
    put_parts(grads, views::slices(&layout_of(&out), dim)?, &out)
}

fn put_parts(
    grads: &[Option<DeviceView<'_>>],
    parts: impl ExactSizeIterator<Item = Result<Layout>>,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    check_count(grads.len(), parts.len())?;
    for (grad, part) in grads.iter().zip(parts) {
        let part = part?;
        if part.numel() == 0 {
            continue;
        }
        let to = Part { sizes: &part.sizes, strides: &part.strides, offset: part.offset };
        // SAFETY: a part of the output, and the whole of a gradient of its shape.
        unsafe {
            match grad {
                None => fill(out, to, Scalar::Int(0))?,
                Some(grad) => {
                    expect_sizes(grad.sizes(), &part.sizes)?;
                    copy(out, to, grad, Part { sizes: grad.sizes(), strides: grad.strides(), offset: 0 })?;
                }
            }
        }
    }
    Ok(())
}

/// The gradient of `unfold`: each element of a window adds to the element it shows.
///
/// # Errors
/// If the windows' shape is not the gradient's, or errors of the device.
pub fn unfold_backward(
    grad_in: DeviceView<'_>,
    dim: i64,
    size: i64,
    step: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let whole = layout_of(&out);
    let along = wrap_dim(dim, whole.sizes.len())?;
    let windows = views::unfold(&whole, dim, size, step)?;
    expect_operand("grad_in", grad_in.sizes(), &windows.sizes)?;
    let count = if whole.sizes.is_empty() { 1 } else { windows.sizes[along] };
    let along = WindowsAlong { dim: along, windows: count.min(windows.numel()), size, step };
    // SAFETY: the shape was compared.
    unsafe { sum_windows(&grad_in, &along, &out) }
}

/// The gradient of `as_strided`: each element of the gradient adds to the memory it showed, and every
/// element of the input takes the sum in its memory. Room that the input shows several times is shared
/// out evenly.
///
/// `strides` and `offset` are the input's, whose sizes are the output's.
///
/// # Errors
/// If the gradient's shape is not `size`, strides are missing, or errors of the device.
pub fn as_strided_backward(
    grad_output: DeviceView<'_>,
    strides: &[i64],
    offset: i64,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    expect_operand("grad", grad_output.sizes(), size)?;
    let input = shown(out.sizes(), strides, offset)?;
    let view = shown(size, stride, storage_offset.unwrap_or(offset))?;
    through_memory(&grad_output, &view, &input, &input, &out)
}

/// The transpose of [`as_strided_backward`], and so its gradient: each element of the input adds its share
/// to the memory that it shows, and every element of the view takes the sum in its memory.
///
/// # Errors
/// If the input's shape is not `input_sizes`, strides are missing, or errors of the device.
pub fn as_strided_backward_backward(
    input: DeviceView<'_>,
    input_sizes: &[i64],
    strides: &[i64],
    offset: i64,
    stride: &[i64],
    storage_offset: Option<i64>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    expect_operand("input", input.sizes(), input_sizes)?;
    let layout = shown(input_sizes, strides, offset)?;
    let view = shown(out.sizes(), stride, storage_offset.unwrap_or(offset))?;
    through_memory(&input, &layout, &view, &layout, &out)
}

/// Adds elements up in the memory that `from` shows, and writes the part of it that `to` shows; memory that `shared` shows
/// several times is divided by that number.
fn through_memory(
    elements: &DeviceView<'_>,
    from: &Layout,
    to: &Layout,
    shared: &Layout,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = elements.dtype();
    let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
    let (Some((low, high)), Some((to_low, to_high))) = (from.extent(), to.extent()) else {
        // SAFETY: the whole output.
        return if out.numel() == 0 { Ok(()) } else { unsafe { fill(out, whole, Scalar::Int(0)) } };
    };
    let (low, device) = (low.min(to_low), out.device());
    let reach = high.max(to_high).saturating_sub(low) as u64;
    let memory = Room::filled(device, dtype, reach, Scalar::Int(0))?;
    let start = elements.address().cast_mut().cast();
    let addends = Elements { start, dtype, sizes: elements.sizes(), strides: elements.strides() };
    // SAFETY: the memory has all places of the layouts.
    unsafe { add(device, &memory, (from, low, dtype.size()), addends)? };
    let cells = |room: &Room, layout: &Layout, bytes: usize| {
        room.address::<u8>().wrapping_offset((layout.offset - low) as isize * bytes as isize)
    };
    // Of memory that is shown once at most, every count is 1 or 0.
    let counts = Room::filled(
        device,
        DType::F64,
        if shared.has_internal_overlap() { reach } else { 1 },
        Scalar::Int(0),
    )?;
    let mut of_counts = (counts.address::<u8>(), opsmith_runtime::Dims::from_elem(0, to.sizes.len()));
    if shared.has_internal_overlap() {
        let one = Room::filled(device, DType::F64, 1, Scalar::Int(1))?;
        let none = opsmith_runtime::Dims::from_elem(0, shared.sizes.len());
        let ones = Elements { start: one.address(), dtype: DType::F64, sizes: &shared.sizes, strides: &none };
        // SAFETY: there is a count for each place.
        unsafe { add(device, &counts, (shared, low, size_of::<f64>()), ones)? };
        of_counts = (cells(&counts, to, size_of::<f64>()), to.strides.clone());
    }
    let elements = (cells(&memory, to, dtype.size()).cast_const().cast(), &to.strides[..]);
    // SAFETY: the places that `to` shows are in the memory.
    unsafe { divide_shared(out, [elements, (of_counts.0.cast_const().cast(), &of_counts.1[..])]) }
}

/// Adds elements to the memory that a layout shows, of which the first place is `low`.
///
/// # Safety
/// The memory has all places of the layout, for elements of that many bytes.
unsafe fn add(
    device: Device,
    memory: &Room,
    (layout, low, bytes): (&Layout, i64, usize),
    addends: Elements<'_>,
) -> Result<()> {
    let work = Work::on(device)?;
    let start = memory.address::<u8>().wrapping_offset((layout.offset - low) as isize * bytes as isize);
    let to = Elements { start, dtype: addends.dtype, sizes: &layout.sizes, strides: &layout.strides };
    // SAFETY: the caller's promise; the owners keep the memory until the use that they note.
    unsafe { work.runtime().accumulate(work.queue(), to, addends) }
}

fn layout_of(out: &DeviceViewMut<'_>) -> Layout {
    Layout { sizes: out.sizes().into(), strides: out.strides().into(), offset: 0 }
}
