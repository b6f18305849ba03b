//! Order statistics along a dimension, and histograms.
//!
//! The meaning is that of [`cpu::order`](crate::cpu::order). A histogram whose range is that of its elements waits for them.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Elements, Grid, KernelParameter, Work};
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Element, Error, Result, Scalar, with_dtype};

use super::index;
use super::launch::{each, strided, too_many_dims};
use super::moves::{Part, fill};
use super::reduce;
use super::scratch::{Dense, Room, read_number};
use super::sort::entries_in_order;
use crate::cpu::order::{divisible, median_of_nothing, place_of, refuse_empty_lines};
use crate::cpu::{expect_operand, expect_sizes, reduced_strides};
use crate::device::strided::Strided;
use crate::device::{EACH, Lines, SELECT_HEADERS};

static SELECT: DeviceProgram =
    DeviceProgram::new("select.cuh", SELECT_HEADERS, include_str!("../../cuda/select.cuh"));
static COUNTS: DeviceProgram = DeviceProgram::new("counts.cuh", EACH, include_str!("../../cuda/counts.cuh"));

/// Rules of `select.cuh`, with the address of a mode's entries in order and the rank that the last one looks for.
#[derive(Clone, Copy)]
enum Rule {
    Median,
    NanMedian,
    Mode(u64),
    KthValue(u64),
}

impl Rule {
    fn parts(self) -> (u32, &'static str, u64) {
        match self {
            Rule::Median => (0, "Median", 0),
            Rule::NanMedian => (1, "NanMedian", 0),
            Rule::Mode(entries) => (2, "Mode", entries),
            Rule::KthValue(place) => (3, "KthValue", place),
        }
    }
}

/// The lower median along a dimension and its place; the first NaN if there is one.
///
/// # Errors
/// If there is no such dimension, or no element along it; errors of the device.
pub fn median(
    self_: DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    choose(Rule::Median, &self_, dim, keepdim, &values, &indices)
}

/// The lower median along a dimension of the elements that are not NaN, and its place.
///
/// # Errors
/// As [`median`].
pub fn nanmedian(
    self_: DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    choose(Rule::NanMedian, &self_, dim, keepdim, &values, &indices)
}

/// The lower median of all elements.
///
/// # Errors
/// If there is no element, and no NaN to say so; errors of the device.
pub fn median_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    choose_of_all(Rule::Median, &self_, &out)
}

/// The lower median of all elements that are not NaN.
///
/// # Errors
/// As [`median_full`].
pub fn nanmedian_full(self_: DeviceView<'_>, out: DeviceViewMut<'_>) -> Result<()> {
    choose_of_all(Rule::NanMedian, &self_, &out)
}

/// The `k`-th smallest element along a dimension, from 1 on, and its place.
///
/// # Errors
/// If there is no such dimension, or fewer than `k` elements along it; errors of the device.
pub fn kthvalue(
    self_: DeviceView<'_>,
    k: i64,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    let place = place_of(k, dim, self_.sizes())?;
    choose(Rule::KthValue(place as u64), &self_, dim, keepdim, &values, &indices)
}

/// The element that occurs most often along a dimension, the smallest of several, and the place of its last occurrence.
///
/// # Errors
/// As [`median`].
pub fn mode(
    self_: DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: DeviceViewMut<'_>,
    indices: DeviceViewMut<'_>,
) -> Result<()> {
    let along = wrap_dim(dim, self_.sizes().len())?;
    refuse_empty_lines(self_.sizes(), along)?;
    let entries = entries_in_order(&self_, along)?;
    choose(Rule::Mode(entries.address::<u8>() as u64), &self_, dim, keepdim, &values, &indices)
}

fn choose(
    rule: Rule,
    input: &DeviceView<'_>,
    dim: i64,
    keepdim: bool,
    values: &DeviceViewMut<'_>,
    indices: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let sizes = input.sizes();
    let dim = wrap_dim(dim, sizes.len())?;
    refuse_empty_lines(sizes, dim)?;
    let reduced: Vec<bool> = (0..sizes.len()).map(|other| other == dim).collect();
    let value_strides = reduced_strides(sizes, &reduced, keepdim, values.sizes(), values.strides())?;
    let index_strides = reduced_strides(sizes, &reduced, keepdim, indices.sizes(), indices.strides())?;
    let (mut lines, _) = Lines::along(dim, sizes, [&value_strides, &index_strides, input.strides()])
        .ok_or_else(|| too_many_dims(sizes.len()))?;
    lines.pointers =
        [values.address().cast_const().cast(), indices.address().cast_const().cast(), input.address().cast()];
    // SAFETY: the lines are those of the operands, and are not empty.
    unsafe { select(rule, dtype, values.device(), &lines) }
}

fn choose_of_all(rule: Rule, input: &DeviceView<'_>, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = input.dtype();
    if input.numel() == 0 {
        let nan = with_dtype!(dtype, T => median_of_nothing::<T>()?.to_scalar());
        let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
        // SAFETY: the whole output.
        return unsafe { fill(out, whole, nan) };
    }
    let elements = Dense::of(input)?;
    let (mut lines, _) = Lines::along(0, &[input.numel() as i64], [&[0], &[0], &[1]])
        .ok_or_else(|| too_many_dims(input.sizes().len()))?;
    lines.pointers = [out.address().cast_const().cast(), std::ptr::null(), elements.address.cast()];
    // SAFETY: one line of all elements, and one output.
    unsafe { select(rule, dtype, out.device(), &lines) }
}

/// Launches a rule for lines that have elements.
///
/// # Safety
/// The lines are inside the operands' memory.
unsafe fn select(rule: Rule, dtype: DType, device: Device, lines: &Lines<3>) -> Result<()> {
    let (number, name, rank) = rule.parts();
    let blocks = u32::try_from(lines.lines).ok().filter(|&blocks| blocks <= i32::MAX as u32);
    let blocks = blocks.ok_or_else(|| {
        Error::not_implemented(format!("a device orders at most 2^31 lines at a time, not {}", lines.lines))
            .with_help("order parts of the input")
    })?;
    if blocks == 0 {
        return Ok(());
    }
    let instance = || format!("OPSMITH_SELECT(opsmith_kernel, {name}<opsmith::dtype::{}>)", dtype.ident());
    let grid = Grid { blocks: [blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
    let parameters = [KernelParameter::of(lines), KernelParameter::of(&rank)];
    // SAFETY: the caller's promise; the parameters are those of `select.cuh`.
    unsafe { SELECT.launch(device, number << 8 | dtype as u32, instance, grid, &parameters) }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Histogram {
    places: Strided<2>,
    first: f64,
    last: f64,
    bins: u64,
}

/// The number of elements in each of equal parts of a range, as many as the output has elements; of all elements if both
/// ends are equal.
///
/// # Errors
/// If the range is not finite, or ends before it starts; errors of the device.
pub fn histc(self_: DeviceView<'_>, min: Scalar, max: Scalar, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    let (mut low, mut high) = (min.to_f64(), max.to_f64());
    if low == high && self_.numel() > 0 {
        (low, high) = range_of(&self_)?;
    }
    let (first, last) = divisible(low, high)?;
    let bins = out.numel();
    let counts = zeros(out.device(), bins)?;
    let none = vec![0; self_.sizes().len()];
    let places = strided(
        self_.sizes(),
        [(counts.address::<c_void>().cast_const(), &none), (self_.address().cast(), self_.strides())],
    )?;
    let parameter = Histogram { places, first, last, bins: bins as u64 };
    // SAFETY: the struct has the fields of `counts.cuh`; places are those of the input, and there are `bins` counts.
    unsafe { each(&COUNTS, out.device(), (0, "Histogram"), dtype, &places, &parameter)? };
    write_counts(&counts, &out)
}

/// The smallest and the largest element, for which the host waits; NaN if there is one.
fn range_of(input: &DeviceView<'_>) -> Result<(f64, f64)> {
    let dtype = input.dtype();
    let device = input.device();
    let ends = Room::of_dtype(device, dtype, 2)?;
    reduce::ends_of(input, ends.address())?;
    // SAFETY: there are two elements.
    let [low, high] = unsafe {
        [read_number(device, dtype, ends.address())?, read_number(device, dtype, ends.at(dtype, 1))?]
    };
    Ok((low.to_f64(), high.to_f64()))
}

/// Counts of zero.
fn zeros(device: Device, count: usize) -> Result<Room> {
    let counts = Room::new::<u64>(device, count as u64)?;
    let whole =
        Elements { start: counts.address(), dtype: DType::I64, sizes: &[count as i64], strides: &[1] };
    let work = Work::on(device)?;
    // SAFETY: the whole of this call's own memory.
    unsafe { work.runtime().fill(work.queue(), whole, Scalar::Int(0))? };
    Ok(counts)
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Count {
    places: Strided<2>,
    bins: u64,
}

/// How often each number from 0 on occurs, or the sum of the weights at its places, in their order.
///
/// # Errors
/// If there is not a weight for each; errors of the device, which reports a number without a place in the output.
pub fn bincount(
    self_: DeviceView<'_>,
    weights: Option<DeviceView<'_>>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let numbers = Dense::of(&self_)?;
    let Some(weights) = weights else { return count(&self_, &numbers, &out) };
    expect_operand("weights", weights.sizes(), self_.sizes())?;
    let weights = Dense::of(&weights)?;
    // SAFETY: there is a weight for each number.
    unsafe { index::sums_by_number(numbers.address.cast(), weights.address, self_.numel(), &out) }
}

fn count(input: &DeviceView<'_>, numbers: &Dense<'_>, out: &DeviceViewMut<'_>) -> Result<()> {
    let device = out.device();
    let (bins, elements) = (out.numel() as u64, [input.numel() as i64]);
    let counts = zeros(device, out.numel())?;
    let places = strided(
        &elements,
        [(counts.address::<c_void>().cast_const(), &[0]), (numbers.address.cast(), &[1])],
    )?;
    let parameter = Count { places, bins };
    // SAFETY: the struct has the fields of `counts.cuh`; places are those of the numbers, and there are `bins` counts.
    unsafe { each(&COUNTS, device, (1, "Count"), DType::I64, &places, &parameter)? };
    write_counts(&counts, out)
}

/// Writes counts as elements of the output, which has as many.
fn write_counts(counts: &Room, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let bins = [out.numel() as i64];
    expect_sizes(out.sizes(), &bins)?;
    let from = Elements { start: counts.address(), dtype: DType::I64, sizes: &bins, strides: &[1] };
    let to = Elements { start: out.address().cast(), dtype, sizes: out.sizes(), strides: out.strides() };
    let work = Work::on(out.device())?;
    // SAFETY: all counts, and the whole output.
    unsafe { work.runtime().convert(work.queue(), to, from) }
}
