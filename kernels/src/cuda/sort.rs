//! Sorting along a dimension.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::layout::{contiguous_strides, numel, wrap_dim};
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Result};

use super::compact::running_sums_of;
use super::entries::{Entry, in_order};
use super::launch::{bits, each, strided};
use super::radix::KeyBits;
use super::scratch::{Dense, Room};
use crate::cpu::expect_sizes;
use crate::cpu::sort::{check_choice, length_along};
use crate::device::ORDER;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram = DeviceProgram::new("sort.cuh", ORDER, include_str!("../../cuda/sort.cuh"));

#[derive(Clone, Copy)]
#[repr(C)]
struct Keys {
    places: Strided<2>,
    descending: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct InOrder {
    places: Strided<4>,
    step: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Differs {
    places: Strided<2>,
    elements: *const u8,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Different {
    places: Strided<2>,
    elements: *const u8,
    values: *mut u8,
    starts: *mut u64,
    inverse: *mut i64,
    found: u64,
    step: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Often {
    places: Strided<2>,
    entries: u64,
}

/// The elements along a dimension in ascending or descending order, and where they were.
///
/// # Errors
/// If there is no such dimension, or errors of the device.
pub fn sort(
    self_: DeviceView<'_>,
    dim: i64,
    descending: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    let length = length_along(self_.sizes(), dim)?;
    first_in_order(&self_, dim, length as u64, descending, &values, &indices)
}

/// The `k` largest or smallest elements along a dimension, and where they were, best first. Of equal elements the first are
/// taken.
///
/// # Errors
/// If there are fewer than `k` elements along the dimension, or errors of the device.
pub fn topk(
    self_: DeviceView<'_>,
    k: i64,
    dim: i64,
    largest: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    let k = check_choice(k, length_along(self_.sizes(), dim)?, dim)?;
    first_in_order(&self_, dim, k as u64, largest, &values, &indices)
}

/// A list of a number for each dimension, with that of `dim` last.
fn with_last(list: &[i64], dim: usize, of_scalar: i64) -> Dims {
    let mut moved: Dims = list.into();
    let last = if list.is_empty() { of_scalar } else { moved.remove(dim) };
    moved.push(last);
    moved
}

fn first_in_order(
    input: &DeviceView<'_>,
    dim: i64,
    count: u64,
    descending: bool,
    values: &DeviceViewMut<'_>,
    indices: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let dim = wrap_dim(dim, input.sizes().len())?;
    let mut expected: Dims = input.sizes().into();
    if let Some(size) = expected.get_mut(dim) {
        *size = count as i64;
    }
    expect_sizes(values.sizes(), &expected)?;
    expect_sizes(indices.sizes(), &expected)?;
    if values.numel() == 0 {
        return Ok(());
    }
    let (device, sizes) = (input.device(), with_last(input.sizes(), dim, 1));
    let size = sizes.last().map_or(1, |&size| size as u64);
    let lines = input.numel() as u64 / size;
    let entries = keys(
        input.dtype(),
        device,
        input.address(),
        &sizes,
        &with_last(input.strides(), dim, 0),
        descending,
    )?;
    let keys = KeyBits::of(dtype, descending);
    let (sorted, left) = in_order(device, entries, lines, size, count, Some(keys))?;
    let (sizes, mut from) = (with_last(&expected, dim, 1), with_last(input.strides(), dim, 0));
    let step = from.pop().unwrap_or(0);
    let mut all = sizes.clone();
    if let Some(size) = all.last_mut() {
        *size = left as i64;
    }
    let places = strided(
        &sizes,
        [
            (values.address().cast_const().cast(), &with_last(values.strides(), dim, 0)[..]),
            (indices.address().cast_const().cast(), &with_last(indices.strides(), dim, 0)),
            (sorted.address::<Entry>().cast_const().cast(), &contiguous_strides(&all)),
            (input.address().cast(), &from),
        ],
    )?;
    let parameter = InOrder { places, step };
    // SAFETY: the struct has the fields of `sort.cuh`; each entry's place is one of its line.
    unsafe { each(&PROGRAM, device, (2, "InOrder"), bits(dtype), &places, &parameter) }
}

/// The entries of the lines along a dimension, each line in ascending order. Lines have elements.
///
/// # Errors
/// Errors of the device.
pub(super) fn entries_in_order(input: &DeviceView<'_>, dim: usize) -> Result<Room> {
    let (device, sizes) = (input.device(), with_last(input.sizes(), dim, 1));
    let size = sizes.last().map_or(1, |&size| size as u64);
    let entries =
        keys(input.dtype(), device, input.address(), &sizes, &with_last(input.strides(), dim, 0), false)?;
    match input.numel() as u64 {
        0 => Ok(entries),
        count => {
            let keys = KeyBits::of(input.dtype(), false);
            Ok(in_order(device, entries, count / size, size, size, Some(keys))?.0)
        }
    }
}

/// The entries of lines along the last dimension.
fn keys(
    dtype: DType,
    device: Device,
    first: *const c_void,
    sizes: &[i64],
    strides: &[i64],
    descending: bool,
) -> Result<Room> {
    let entries = Room::new::<Entry>(device, numel(sizes) as u64)?;
    let own = contiguous_strides(sizes);
    let places = strided(
        sizes,
        [(entries.address::<Entry>().cast_const().cast(), &own[..]), (first.cast(), strides)],
    )?;
    let parameter = Keys { places, descending: u64::from(descending) };
    // SAFETY: the struct has the fields of `sort.cuh`; there is an entry for each element.
    unsafe { each(&PROGRAM, device, (1, "Keys"), dtype, &places, &parameter)? };
    Ok(entries)
}

/// The elements that differ in ascending order, where each element is among them, and how often each is there. NaN differs
/// from itself.
///
/// # Errors
/// If an output has another size than the elements need, or errors of the device.
pub fn unique(
    self_: DeviceView<'_>,
    return_inverse: bool,
    return_counts: bool,
    values: DeviceViewMut<'_>,
    inverse: DeviceViewMut<'_>,
    counts: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    let (device, count, found) = (self_.device(), self_.numel() as u64, values.numel() as u64);
    expect_sizes(values.sizes(), &[found as i64])?;
    if return_inverse {
        expect_sizes(inverse.sizes(), self_.sizes())?;
    }
    if return_counts {
        expect_sizes(counts.sizes(), values.sizes())?;
    }
    if count == 0 {
        return Ok(());
    }
    let (elements, sizes) = (Dense::of(&self_)?, [count as i64]);
    let entries = keys(dtype, device, elements.address, &sizes, &[1], false)?;
    let entries = in_order(device, entries, 1, count, count, Some(KeyBits::of(dtype, false)))?.0;
    let numbers = Room::new::<u64>(device, count)?;
    let starts = Room::new::<u64>(device, found)?;
    let operands =
        [entries.address::<Entry>().cast_const().cast(), numbers.address::<u64>().cast_const().cast()];
    let of_entries = strided(&sizes, [(operands[1], &[1]), (operands[0], &[1])])?;
    let differs = Differs { places: of_entries, elements: elements.address.cast() };
    // SAFETY: the struct has the fields of `sort.cuh`; there is a number for each entry.
    unsafe { each(&PROGRAM, device, (3, "Differs"), dtype, &of_entries, &differs)? };
    running_sums_of(device, &numbers, count)?;
    super::scratch::write_dense(inverse, |inverse| {
        let places = strided(&sizes, [(operands[0], &[1]), (operands[1], &[1])])?;
        let parameter = Different {
            places,
            elements: elements.address.cast(),
            values: values.address().cast(),
            starts: starts.address(),
            inverse: if return_inverse { inverse.cast() } else { std::ptr::null_mut() },
            found,
            step: values.strides().first().copied().unwrap_or(1),
        };
        // SAFETY: the struct has the fields of `sort.cuh`; no more than `found` values are written.
        unsafe { each(&PROGRAM, device, (4, "Different"), dtype, &places, &parameter) }
    })?;
    if !return_counts {
        return Ok(());
    }
    let first = starts.address::<u64>().cast_const().cast();
    let places =
        strided(counts.sizes(), [(counts.address().cast_const().cast(), counts.strides()), (first, &[1])])?;
    // SAFETY: the struct has the fields of `sort.cuh`; there is a start for each value.
    unsafe { each(&PROGRAM, device, (5, "Often"), DType::I64, &places, &Often { places, entries: count }) }
}
