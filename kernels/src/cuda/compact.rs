//! Running sums, and elements that a mask picks.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::Elements;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Result, Scalar};

use super::launch::{bits, each, line, merged, strided};
use super::scratch::{Dense, Room, convert, write_dense};
use crate::cpu::pick::together;
use crate::cpu::{broadcast_strides, expect_operand, expect_sizes};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("compact.cuh", EACH, include_str!("../../cuda/compact.cuh"));

/// Numbers of a block.
const SCAN: u64 = 1024;

#[derive(Clone, Copy)]
#[repr(C)]
struct Scan {
    numbers: *mut u64,
    blocks: *mut u64,
    count: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Picked {
    places: Strided<2>,
    out: *mut u8,
    most: u64,
    step: i64,
    strict: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PickedPlaces {
    places: Strided<1>,
    out: *mut i64,
    most: u64,
    step: i64,
    dim_step: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Repeated {
    places: Strided<1>,
    out: *mut u8,
    most: u64,
    last: u64,
    step: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Replaced {
    places: Strided<3>,
    source: *const u8,
    most: u64,
}

/// Replaces each number by the sum up to it.
///
/// # Errors
/// Errors of the device.
pub(super) fn running_sums_of(device: Device, numbers: &Room, count: u64) -> Result<()> {
    let blocks = count.div_ceil(SCAN);
    let sums = Room::new::<u64>(device, blocks)?;
    let scan = Scan { numbers: numbers.address(), blocks: sums.address(), count };
    // SAFETY: there are `count` numbers, and a sum for each block.
    unsafe {
        line(&PROGRAM, device, (0, "OPSMITH_SCAN(opsmith_kernel, sum_blocks)"), blocks, &scan)?;
        line(&PROGRAM, device, (1, "OPSMITH_SCAN(opsmith_kernel, sum_sums)"), blocks.min(1), &scan)?;
        line(&PROGRAM, device, (2, "OPSMITH_SCAN(opsmith_kernel, run_sums)"), blocks, &scan)
    }
}

/// For each element in row-major order, how many up to it are not zero.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// Elements of the dtype are at the places, in memory of the device.
pub(super) unsafe fn counted(
    device: Device,
    dtype: DType,
    first: *const u8,
    sizes: &[i64],
    strides: &[i64],
) -> Result<Room> {
    let count = opsmith_runtime::layout::numel(sizes) as u64;
    let numbers = Room::new::<u64>(device, count)?;
    let own = contiguous_strides(sizes);
    let places =
        merged(sizes, [(numbers.address::<u64>().cast_const().cast(), &own), (first.cast(), strides)])?;
    // SAFETY: the struct has the places alone, as in `compact.cuh`; there is a number for each element.
    unsafe { each(&PROGRAM, device, (1, "Flags"), dtype, &places, &places)? };
    running_sums_of(device, &numbers, count)?;
    Ok(numbers)
}

/// Writes the place in each dimension of the elements that the sums count, at most `most`: a number of steps apart.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// The sums are those of elements of these sizes, and the places to write are in memory of the device.
pub(super) unsafe fn write_places(
    device: Device,
    sums: &Room,
    sizes: &[i64],
    out: *mut i64,
    most: u64,
    [step, dim_step]: [i64; 2],
) -> Result<()> {
    let own = contiguous_strides(sizes);
    let places = strided(sizes, [(sums.address::<u64>().cast_const().cast(), &own)])?;
    let parameter = PickedPlaces { places, out, most, step, dim_step };
    // SAFETY: the struct has the fields of `compact.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, device, (3, "PickedPlaces"), DType::I64, &places, &parameter) }
}

/// The indices of the elements that are not zero, a row each, in row-major order.
///
/// # Errors
/// If the output has not a column for each dimension, or errors of the device.
pub fn nonzero(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    let found = out.sizes().first().copied().unwrap_or(0);
    expect_sizes(out.sizes(), &[found, self_.sizes().len() as i64])?;
    if out.numel() == 0 {
        return Ok(());
    }
    let (device, sizes) = (self_.device(), self_.sizes());
    // SAFETY: the elements of the operand, and the rows of the output.
    unsafe {
        let sums = counted(device, dtype, self_.address().cast(), sizes, self_.strides())?;
        write_places(
            device,
            &sums,
            sizes,
            out.address().cast(),
            found as u64,
            [out.strides()[0], out.strides()[1]],
        )
    }
}

/// Writes the picked elements of an operand one after the other; more than `most` are an error if `strict`.
///
/// # Safety
/// The elements have the sizes and strides, the sums are those of their mask, and there is room for `most` of them.
unsafe fn write_picked(
    dtype: DType,
    device: Device,
    sums: &Room,
    (first, sizes, strides): (*const c_void, &[i64], &[i64]),
    (out, most, step): (*mut c_void, u64, i64),
    strict: bool,
) -> Result<()> {
    let own = contiguous_strides(sizes);
    let places = merged(sizes, [(sums.address::<u64>().cast_const().cast(), &own), (first.cast(), strides)])?;
    let parameter = Picked { places, out: out.cast(), most, step, strict: u64::from(strict) };
    // SAFETY: the struct has the fields of `compact.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, device, (2, "Picked"), bits(dtype), &places, &parameter) }
}

/// The elements where the mask holds, both broadcast, in row-major order.
///
/// # Errors
/// If the two do not broadcast, or errors of the device.
pub fn masked_select(self_: DeviceView<'_>, mask: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let sizes = together(self_.sizes(), mask.sizes());
    let own = broadcast_strides(self_.sizes(), self_.strides(), &sizes)?;
    let others = broadcast_strides(mask.sizes(), mask.strides(), &sizes)?;
    let most = out.numel() as u64;
    expect_sizes(out.sizes(), &[most as i64])?;
    if most == 0 {
        return Ok(());
    }
    let device = self_.device();
    // SAFETY: the elements of both, repeated; the output has `most`.
    unsafe {
        let sums = counted(device, DType::Bool, mask.address().cast(), &sizes, &others)?;
        let to = (out.address(), most, out.strides()[0]);
        write_picked(self_.dtype(), device, &sums, (self_.address(), &sizes, &own), to, true)
    }
}

/// The elements where the mask holds, in row-major order, then zeros.
///
/// # Errors
/// If the mask does not broadcast to the tensor's shape, or errors of the device.
pub fn masked_scatter_backward(
    grad_output: DeviceView<'_>,
    mask: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let (device, sizes) = (grad_output.device(), grad_output.sizes());
    let strides = broadcast_strides(mask.sizes(), mask.strides(), sizes)?;
    let most = out.numel() as u64;
    write_dense(out, |first| {
        let whole = [most as i64];
        let (to, work) = (first.cast(), opsmith_runtime::backend::Work::on(device)?);
        let to = Elements { start: to, dtype, sizes: &whole, strides: &[1] };
        // SAFETY: the elements of both operands, and of the output.
        unsafe {
            work.runtime().fill(work.queue(), to, Scalar::Int(0))?;
            let sums = counted(device, DType::Bool, mask.address().cast(), sizes, &strides)?;
            let from = (grad_output.address(), sizes, grad_output.strides());
            write_picked(dtype, device, &sums, from, (first, most, 1), false)
        }
    })
}

/// Each position as often as its number says; a negative number, or another sum than the output has elements, is reported.
///
/// # Errors
/// If the numbers are no vector, or errors of the device.
pub fn repeated_positions(repeats: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let (count, most, device) = (repeats.numel() as u64, out.numel() as u64, out.device());
    expect_operand("repeats", repeats.sizes(), &[count as i64])?;
    expect_sizes(out.sizes(), &[most as i64])?;
    if count == 0 {
        return expect_sizes(out.sizes(), &[0]);
    }
    let numbers = Room::new::<u64>(device, count)?;
    let elements = |start, dtype, strides| Elements { start, dtype, sizes: repeats.sizes(), strides };
    let to = elements(numbers.address::<u64>().cast(), DType::U64, &[1]);
    let from = elements(repeats.address().cast_mut().cast(), repeats.dtype(), repeats.strides());
    // SAFETY: both have a number for each position, and the output its elements.
    unsafe { convert(device, to, from)? };
    running_sums_of(device, &numbers, count)?;
    let sums = numbers.address::<u64>().cast_const().cast();
    let places = strided(repeats.sizes(), [(sums, &[1])])?;
    let (last, step) = (count - 1, out.strides()[0]);
    let parameter = Repeated { places, out: out.address().cast(), most, last, step };
    // SAFETY: the struct has the fields of `compact.cuh`; no place beyond the output's is written.
    unsafe { each(&PROGRAM, device, (5, "Repeated"), out.dtype(), &places, &parameter) }
}

/// `self` with the elements of `source`, in row-major order, wherever the mask is true, in row-major order too. `self` and
/// the mask broadcast to the output's shape.
///
/// # Errors
/// If they do not broadcast, or errors of the device.
pub fn masked_scatter(
    self_: DeviceView<'_>,
    mask: DeviceView<'_>,
    source: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let (device, sizes) = (out.device(), out.sizes());
    let from: Dims = broadcast_strides(self_.sizes(), self_.strides(), sizes)?;
    let of_mask: Dims = broadcast_strides(mask.sizes(), mask.strides(), sizes)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let elements = Dense::of(&source)?;
    // SAFETY: the elements of the mask, repeated.
    let sums = unsafe { counted(device, DType::Bool, mask.address().cast(), sizes, &of_mask)? };
    let places = merged(
        sizes,
        [
            (out.address().cast_const().cast(), out.strides()),
            (sums.address::<u64>().cast_const().cast(), &contiguous_strides(sizes)[..]),
            (self_.address().cast(), &from),
        ],
    )?;
    let parameter = Replaced { places, source: elements.address.cast(), most: source.numel() as u64 };
    // SAFETY: the struct has the fields of `compact.cuh`; no more than the source's elements are read.
    unsafe { each(&PROGRAM, device, (4, "Replaced"), bits(dtype), &places, &parameter) }
}
