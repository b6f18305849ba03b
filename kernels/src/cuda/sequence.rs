//! Kernels of `sequence.cuh`: sequences, triangles of indices, places in sequences, and sums of windows.

use std::ffi::c_void;

use num_complex::Complex64;
use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Result, Scalar};

use super::launch::{each, strided};
use crate::cpu::expect_sizes;
use crate::cpu::search::check_sequences;
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("sequence.cuh", EACH, include_str!("../../cuda/sequence.cuh"));

#[derive(Clone, Copy)]
#[repr(C)]
struct Sequence {
    places: Strided<1>,
    start: i64,
    step: i64,
    real_start: f64,
    real_step: f64,
    given_start: *const i64,
    given_step: *const i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Spaced {
    places: Strided<1>,
    start: Complex64,
    end: Complex64,
    step: Complex64,
    base: f64,
    powers: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct TriangleIndices {
    places: Strided<1>,
    rows: i64,
    columns: i64,
    diagonal: i64,
    upper: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PlaceIn {
    places: Strided<3>,
    length: i64,
    step: i64,
    right: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Windows {
    places: Strided<2>,
    windows: i64,
    size: i64,
    step: i64,
    window_step: i64,
    inner_step: i64,
    dim: u64,
}

fn places_of(out: &DeviceViewMut<'_>) -> Result<Strided<1>> {
    strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])
}

/// Numbers from `start` in steps of `step`: `arange(1, 2, 0.25)` is `[1, 1.25, 1.5, 1.75]`.
///
/// # Errors
/// Errors of the device.
pub fn arange(start: Scalar, step: Scalar, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let places = places_of(&out)?;
    let parameter = Sequence {
        places,
        start: start.to_i64(),
        step: step.to_i64(),
        real_start: start.to_f64(),
        real_step: step.to_f64(),
        given_start: std::ptr::null(),
        given_step: std::ptr::null(),
    };
    // SAFETY: the struct has the fields of `sequence.cuh`, and the places are those of the output.
    unsafe { each(&PROGRAM, out.device(), (1, "Sequence"), dtype, &places, &parameter) }
}

/// The numbers from `start` in steps of `step`, both on the device.
///
/// # Errors
/// If the first number or the step is not there, or errors of the device.
pub fn arange_of(start: DeviceView<'_>, step: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    super::by_value::check_sequence(&start, &step)?;
    let places = places_of(&out)?;
    let parameter = Sequence {
        places,
        start: 0,
        step: 0,
        real_start: 0.0,
        real_step: 0.0,
        given_start: start.address().cast(),
        given_step: step.address().cast(),
    };
    // SAFETY: as in `arange`, and both numbers are there.
    unsafe { each(&PROGRAM, out.device(), (1, "Sequence"), dtype, &places, &parameter) }
}

/// Evenly spaced numbers, both ends included: `linspace(0, 1, 3)` is `[0, 0.5, 1]`; one is `start`.
///
/// # Errors
/// If the output has another size, or errors of the device.
pub fn linspace(start: Scalar, end: Scalar, steps: i64, out: DeviceViewMut<'_>) -> Result<()> {
    spaced(start, end, steps, None, &out)
}

/// The powers of `base` to evenly spaced numbers, both ends included: `logspace(0, 2, 3, 10)` is `[1, 10, 100]`.
///
/// # Errors
/// As [`linspace`].
pub fn logspace(start: Scalar, end: Scalar, steps: i64, base: f64, out: DeviceViewMut<'_>) -> Result<()> {
    spaced(start, end, steps, Some(base), &out)
}

fn spaced(start: Scalar, end: Scalar, steps: i64, base: Option<f64>, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    expect_sizes(out.sizes(), &[steps])?;
    let (start, end, places) = (start.to_complex(), end.to_complex(), places_of(out)?);
    let step = (end - start) / (steps - 1).max(1) as f64;
    let powers = u64::from(base.is_some());
    let parameter = Spaced { places, start, end, step, base: base.unwrap_or(1.0), powers };
    // SAFETY: the struct has the fields of `sequence.cuh`, and the places are those of the output.
    unsafe { each(&PROGRAM, out.device(), (2, "Spaced"), dtype, &places, &parameter) }
}

/// Row and column of each element of a lower triangle, as two rows; `offset` moves the boundary to the right.
///
/// # Errors
/// Errors of the device.
pub fn tril_indices(row: i64, col: i64, offset: i64, out: DeviceViewMut<'_>) -> Result<()> {
    triangle(row, col, offset, false, &out)
}

/// Row and column of each element of an upper triangle, as two rows; `offset` moves the boundary to the right.
///
/// # Errors
/// Errors of the device.
pub fn triu_indices(row: i64, col: i64, offset: i64, out: DeviceViewMut<'_>) -> Result<()> {
    triangle(row, col, offset, true, &out)
}

fn triangle(rows: i64, columns: i64, offset: i64, upper: bool, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let count = out.sizes().last().copied().unwrap_or(0);
    expect_sizes(out.sizes(), &[2, count])?;
    let places = places_of(out)?;
    // Beyond the corners, nothing changes.
    let diagonal = offset.clamp(rows.saturating_neg(), columns);
    let parameter = TriangleIndices { places, rows, columns, diagonal, upper: u64::from(upper) };
    // SAFETY: the struct has the fields of `sequence.cuh`, and the places are those of the output.
    unsafe { each(&PROGRAM, out.device(), (3, "TriangleIndices"), dtype, &places, &parameter) }
}

/// The place of each element of `self_` in a sequence in ascending order: before equal elements, or behind them if `right`.
/// Sequences are one vector, or one for each row of `self_`.
///
/// # Errors
/// If there is neither one sequence nor one for each row, or errors of the device.
pub fn searchsorted(
    sorted_sequence: DeviceView<'_>,
    self_: DeviceView<'_>,
    right: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = sorted_sequence.dtype();
    expect_sizes(out.sizes(), self_.sizes())?;
    let (length, _) = check_sequences(sorted_sequence.sizes(), self_.sizes())?;
    let (step, rows) =
        sorted_sequence.strides().split_last().map_or((0, &[][..]), |(&step, rows)| (step, rows));
    let mut of_rows = Dims::from_elem(0, self_.sizes().len());
    of_rows.iter_mut().zip(rows).for_each(|(own, &stride)| *own = stride);
    let first: *const c_void = sorted_sequence.address().cast();
    let operands = [
        (out.address().cast_const().cast(), out.strides()),
        (self_.address().cast(), self_.strides()),
        (first, &of_rows[..]),
    ];
    let places = strided(self_.sizes(), operands)?;
    let parameter = PlaceIn { places, length, step, right: u64::from(right) };
    // SAFETY: the struct has the fields of `sequence.cuh`; there is a sequence of that length for each element.
    unsafe { each(&PROGRAM, out.device(), (4, "PlaceIn"), dtype, &places, &parameter) }
}

/// Windows of a tensor along a dimension: how many, of how many elements, and how far apart.
pub(super) struct WindowsAlong {
    pub dim: usize,
    pub windows: i64,
    pub size: i64,
    pub step: i64,
}

/// For each element of the output, the sum of the elements of windows that show it.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// `grad` has the windows' shape: that of the output with their number along the dimension, and their size as a last one.
pub(super) unsafe fn sum_windows(
    grad: &DeviceView<'_>,
    along: &WindowsAlong,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    let mut from: Dims = grad.strides().into();
    let inner_step = from.pop().unwrap_or(0);
    let window_step = from.get_mut(along.dim).map_or(0, |stride| std::mem::replace(stride, 0));
    let operands =
        [(out.address().cast_const().cast(), out.strides()), (grad.address().cast::<c_void>(), &from[..])];
    let places = strided(out.sizes(), operands)?;
    let &WindowsAlong { dim, windows, size, step } = along;
    let parameter = Windows { places, windows, size, step, window_step, inner_step, dim: dim as u64 };
    // SAFETY: the struct has the fields of `sequence.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, out.device(), (5, "Windows"), dtype, &places, &parameter) }
}

/// Divides each element by how often it is shown, where that is several times.
///
/// # Errors
/// Errors of the device.
///
/// # Safety
/// The operands have the places, in memory of the device; the counts are of `float64`.
pub(super) unsafe fn divide_shared(
    out: &DeviceViewMut<'_>,
    operands: [(*const c_void, &[i64]); 2],
) -> Result<()> {
    let dtype = out.dtype();
    let [elements, counts] = operands;
    let places =
        strided(out.sizes(), [(out.address().cast_const().cast(), out.strides()), elements, counts])?;
    // SAFETY: the struct has the places alone, as in `sequence.cuh`; the caller's promise.
    unsafe { each(&PROGRAM, out.device(), (6, "Shared"), dtype, &places, &places) }
}
