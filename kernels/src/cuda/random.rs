//! Random elements, the same for the same seed as on the host.
//!
//! A call takes its place in the generator's sequence on the host; the device computes each element from that place and the
//! element's number.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::random::{Distribution, Generator, Integers, Stream, Uniform};
use opsmith_runtime::{
    DType, DeviceView, DeviceViewMut, Element, Error, Result, Scalar, Scratch, with_dtype,
};

use super::launch::{each, merged};
use super::scratch::{Room, convert, read, read_number};
use crate::cpu::random::{check_deviation, check_range, chosen, probability};
use crate::cpu::{expect_operand, expect_sizes};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram = DeviceProgram::new("random.cuh", EACH, include_str!("../../cuda/random.cuh"));

#[derive(Clone, Copy)]
#[repr(C)]
struct Drawn<C> {
    places: Strided<2>,
    stream: Stream,
    kind: u32,
    scaled: u32,
    shift: C,
    factor: C,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct DrawnInteger {
    places: Strided<2>,
    stream: Stream,
    low: i64,
    length: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Chance {
    places: Strided<3>,
    stream: Stream,
    p: f64,
    wrong: *mut u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Dropout<C> {
    places: Strided<4>,
    stream: Stream,
    p: f64,
    draws: u64,
    scale: C,
}

/// Uniform or normal numbers, by their numbers in `random.cuh`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Kind {
    Uniform,
    Normal,
}

/// Numbers from `from` to below `to`.
///
/// # Errors
/// If `from` is above `to` or one is not finite, or errors of the device.
pub fn uniform(from: f64, to: f64, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    check_range(from, to)?;
    drawn(Kind::Uniform, (from, to - from), generator, &out)
}

/// Normally distributed numbers.
///
/// # Errors
/// If the deviation is negative, or errors of the device.
pub fn normal(mean: f64, std: f64, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    check_deviation(std)?;
    drawn(Kind::Normal, (mean, std), generator, &out)
}

/// Numbers from 0 to below 1.
///
/// # Errors
/// Errors of the device.
pub fn rand(generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    drawn(Kind::Uniform, (0.0, 1.0), generator, &out)
}

/// Normally distributed numbers of mean 0 and deviation 1.
///
/// # Errors
/// Errors of the device.
pub fn randn(generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    drawn(Kind::Normal, (0.0, 1.0), generator, &out)
}

fn drawn(
    kind: Kind,
    (shift, factor): (f64, f64),
    generator: Option<&Generator>,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = out.dtype();
    // Uniform and normal numbers of a type take equal numbers of blocks.
    let per_block = if dtype == DType::F64 { Uniform::<f64>::PER_BLOCK } else { Uniform::<f32>::PER_BLOCK };
    let stream = chosen(generator).reserve((out.numel() as u64).div_ceil(per_block));
    let places = numbered(out)?;
    let scaled = u32::from((shift, factor) != (0.0, 1.0));
    with_dtype!(dtype.to_compute(), C => {
        let number = |value| C::from_scalar(Scalar::Float(value));
        let parameter =
            Drawn { places, stream, kind: kind as u32, scaled, shift: number(shift), factor: number(factor) };
        // SAFETY: the struct has the fields of `random.cuh`, and the places are those of the output.
        unsafe { each(&PROGRAM, out.device(), (1, "Drawn"), dtype, &places, &parameter) }
    })
}

/// The places of an output, and the number of each.
fn numbered(out: &DeviceViewMut<'_>) -> Result<Strided<2>> {
    let row_major = contiguous_strides(out.sizes());
    merged(out.sizes(), [(out.address().cast_const().cast(), out.strides()), (std::ptr::null(), &row_major)])
}

/// Integers from `low` to below `high`.
///
/// # Errors
/// If there are none, or errors of the device.
pub fn randint(low: i64, high: i64, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    let stream = chosen(generator).reserve_for(&Integers::new(low, high)?, out.numel());
    let places = numbered(&out)?;
    let parameter = DrawnInteger { places, stream, low, length: high.wrapping_sub(low) as u64 };
    // SAFETY: the struct has the fields of `random.cuh`, and the places are those of the output.
    unsafe { each(&PROGRAM, out.device(), (2, "DrawnInteger"), dtype, &places, &parameter) }
}

/// 1 with the probability that the element of `self` gives, else 0. Waits for the device, which looks for elements that are
/// none.
///
/// # Errors
/// If a probability is not between 0 and 1, or errors of the device.
pub fn bernoulli(self_: DeviceView<'_>, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let wrong = Room::of(out.device(), &[u64::MAX])?;
    let probabilities = (self_.address().cast(), self_.strides());
    chances(0.0, probabilities, wrong.address(), generator, &out)?;
    // SAFETY: the room has one number.
    let wrong = unsafe { read(out.device(), wrong.address::<u64>().cast_const())? };
    if wrong == u64::MAX {
        return Ok(());
    }
    let (mut offset, mut rest) = (0, wrong as i64);
    for (&size, &stride) in self_.sizes().iter().zip(self_.strides()).rev() {
        offset += rest % size * stride;
        rest /= size;
    }
    // SAFETY: the offset is that of an element.
    let element = unsafe {
        let at = self_.address().wrapping_byte_offset(offset as isize * self_.dtype().size() as isize);
        read_number(out.device(), self_.dtype(), at.cast_mut())?
    };
    probability(element.to_f64()).map(drop)
}

/// 1 with probability `p`, else 0.
///
/// # Errors
/// If the probability is not between 0 and 1, or errors of the device.
pub fn bernoulli_p(p: f64, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    chances(probability(p)?, (std::ptr::null(), &[]), std::ptr::null_mut(), generator, &out)
}

fn chances(
    p: f64,
    probabilities: (*const c_void, &[i64]),
    wrong: *mut u64,
    generator: Option<&Generator>,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = out.dtype();
    let stream = chosen(generator).reserve_for(&Uniform::<f64>::new(), out.numel());
    let row_major = contiguous_strides(out.sizes());
    let first = out.address().cast_const().cast();
    let operands = [(first, out.strides()), (std::ptr::null(), &row_major[..]), probabilities];
    let places = merged(out.sizes(), operands)?;
    // SAFETY: the struct has the fields of `random.cuh`; probabilities have the output's sizes.
    unsafe {
        each(&PROGRAM, out.device(), (3, "Chance"), dtype, &places, &Chance { places, stream, p, wrong })
    }
}

/// The numbers from 0 to `n - 1` in random order: each step of the method needs the one before, so the host does them.
///
/// # Errors
/// If the output does not have that many elements, or errors of the device.
pub fn randperm(n: i64, generator: Option<&Generator>, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    expect_sizes(out.sizes(), &[n])?;
    let count = usize::try_from(n).map_err(|_| Error::shape("a permutation has 0 or more numbers"))?;
    let mut order = Scratch::filled(0i64, count);
    chosen(generator).permute_into(&mut order);
    if count == 0 {
        return Ok(());
    }
    let numbers = Room::of(out.device(), &order)?;
    let from = opsmith_runtime::backend::Elements {
        start: numbers.address(),
        dtype: DType::I64,
        sizes: out.sizes(),
        strides: &[1],
    };
    let start = out.address().cast();
    let to = opsmith_runtime::backend::Elements { start, dtype, strides: out.strides(), ..from };
    // SAFETY: the room has as many numbers as the output elements.
    unsafe { convert(out.device(), to, from) }
}

/// `input` with elements set to 0 with probability `p` and the others divided by `1 - p`, and which
/// were kept. Without `train`, everything is.
///
/// # Errors
/// If the probability is not between 0 and 1, or errors of the device.
pub fn native_dropout(
    input: DeviceView<'_>,
    p: f64,
    train: Option<bool>,
    out: DeviceViewMut<'_>,
    mask: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let p = if train.unwrap_or(true) { probability(p)? } else { 0.0 };
    expect_operand("mask", mask.sizes(), input.sizes())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let draws = p != 0.0;
    let stream = match draws {
        true => chosen(None).reserve_for(&Uniform::<f32>::new(), out.numel()),
        false => Stream { seed: 0, offset: 0 },
    };
    let scale = Scalar::Float(if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) });
    let row_major = contiguous_strides(out.sizes());
    let operands = [
        (out.address().cast_const().cast(), out.strides()),
        (input.address().cast(), input.strides()),
        (mask.address().cast_const().cast(), mask.strides()),
        (std::ptr::null(), &row_major[..]),
    ];
    let places = merged(out.sizes(), operands)?;
    with_dtype!(dtype.to_compute(), C => {
        let parameter = Dropout { places, stream, p, draws: u64::from(draws), scale: C::from_scalar(scale) };
        // SAFETY: the struct has the fields of `random.cuh`, and the operands have the output's sizes.
        unsafe { each(&PROGRAM, out.device(), (4, "Dropout"), dtype, &places, &parameter) }
    })
}
