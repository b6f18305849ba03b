//! Discrete Fourier transforms: the twin of [`cpu::fft`](crate::cpu::fft), in double precision. Results are rounded once, there once for
//! each dimension.
//!
//! Lines of up to 1024 numbers are transformed in a block; the first reads the operand and the last writes the result, where they
//! lie. Longer lines take a launch for each factor of their length. Lengths with a prime factor above 7 are convolutions. All is
//! offered to a library of the device's vendor first, in the precision of the numbers (`fft_library`).

use std::ffi::c_void;

use num_complex::Complex64;
use opsmith_runtime::DeviceProgram;
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{DType, Device, DeviceView, DeviceViewMut, Dims, Error, Result, Scratch};

use super::fft_library::{Side, Step, by_library};
use super::launch::too_many_dims;
use super::scratch::{Room, convert};
use crate::cpu::expect_sizes;
use crate::cpu::fft::{distinct, half_of, no_numbers, scale_of};
use crate::device::HEADERS;

static PROGRAM: DeviceProgram = DeviceProgram::new("fft.cuh", HEADERS, include_str!("../../cuda/fft.cuh"));

/// Numbers of a line that a block transforms, as in `fft.cuh`.
const LONGEST: u64 = 1024;
const MOST_PASSES: usize = 10;

/// Field by field as in `fft.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Transform {
    lines: u64,
    size: u64,
    length: u64,
    kept: u64,
    dims: u64,
    sizes: [u64; 8],
    from_steps: [i64; 8],
    to_steps: [i64; 8],
    from_step: i64,
    to_step: i64,
    from: *const c_void,
    to: *mut c_void,
    roots: *mut Complex64,
    chirp: *mut Complex64,
    filter: *mut Complex64,
    work: *mut Complex64,
    spare: *mut Complex64,
    scale: f64,
    is_inverse: u32,
    is_half: u32,
    together: u32,
    along_line: u32,
    before: u64,
    passes: u32,
    radices: [u32; MOST_PASSES],
    padding: u32,
}

/// One line of one number, at no place.
const NOTHING: Transform = Transform {
    lines: 1,
    size: 1,
    length: 1,
    kept: 1,
    dims: 0,
    sizes: [1; 8],
    from_steps: [0; 8],
    to_steps: [0; 8],
    from_step: 0,
    to_step: 0,
    from: std::ptr::null(),
    to: std::ptr::null_mut(),
    roots: std::ptr::null_mut(),
    chirp: std::ptr::null_mut(),
    filter: std::ptr::null_mut(),
    work: std::ptr::null_mut(),
    spare: std::ptr::null_mut(),
    scale: 1.0,
    is_inverse: 0,
    is_half: 0,
    together: 1,
    along_line: 1,
    before: 1,
    passes: 0,
    radices: [1; MOST_PASSES],
    padding: 0,
};

/// The transform of real numbers over the given dimensions. With `onesided` the last of them has only the first half
/// (rounded down, plus one) of the frequencies; the others are their conjugates.
///
/// `normalization` divides by nothing (0), the root (1) or all (2) of the number of elements.
///
/// By the vendor's library (cuFFT) where it is found and takes dtype and dimensions, else by `fft.cuh` in double precision.
///
/// # Errors
/// If a dimension is out of range, the normalisation another number, or errors of the device.
pub fn fft_r2c(
    self_: DeviceView<'_>,
    dim: &[i64],
    normalization: i64,
    onesided: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let mut dims = distinct(dim, self_.sizes().len())?;
    let mut sizes = Dims::from_slice(self_.sizes());
    if let (true, Some(&last)) = (onesided, dims.last()) {
        sizes[last] = half_of(sizes[last]);
    }
    expect_sizes(out.sizes(), &sizes)?;
    if dims.iter().any(|&dim| self_.sizes()[dim] == 0) {
        return Err(no_numbers());
    }
    let scale = scale_of(self_.sizes(), &dims, normalization)?;
    // The last dimension first: the others have half of its frequencies only.
    let moved = usize::from(!dims.is_empty());
    dims.rotate_right(moved);
    let steps: Scratch<Step> =
        dims.iter().map(|&dim| Step { dim, size: self_.sizes()[dim], is_half: false }).collect();
    let (from, to) = (Side::of(&self_), Side::of_mut(&out));
    transform(out.device(), &steps, &sizes, (&from, &to), scale, false)
}

/// The inverse transform that gives real numbers, `last_dim_size` of them along the last of the given dimensions, from the
/// first half of the frequencies.
///
/// By the vendor's library (cuFFT) where it is found and takes dtype and dimensions, else by `fft.cuh` in double precision.
///
/// # Errors
/// If a dimension is out of range, there are too few frequencies, the normalisation is another number, or errors of the
/// device.
pub fn fft_c2r(
    self_: DeviceView<'_>,
    dim: &[i64],
    normalization: i64,
    last_dim_size: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dims = distinct(dim, self_.sizes().len())?;
    let last = crate::cpu::fft::last_to_reals(&dims, self_.sizes(), last_dim_size)?;
    let mut sizes = Dims::from_slice(self_.sizes());
    sizes[last] = last_dim_size;
    expect_sizes(out.sizes(), &sizes)?;
    let scale = scale_of(&sizes, &dims, normalization)?;
    sizes[last] = half_of(last_dim_size);
    let size_of = |dim: usize| if dim == last { last_dim_size } else { self_.sizes()[dim] };
    let steps: Scratch<Step> =
        dims.iter().map(|&dim| Step { dim, size: size_of(dim), is_half: dim == last }).collect();
    let (from, to) = (Side::of(&self_), Side::of_mut(&out));
    transform(out.device(), &steps, &sizes, (&from, &to), scale, true)
}

/// The transform of complex numbers over the given dimensions, or its inverse.
///
/// By the vendor's library (cuFFT) where it is found and takes dtype and dimensions, else by `fft.cuh` in double precision.
///
/// # Errors
/// If a dimension is out of range, the normalisation another number, or errors of the device.
pub fn fft_c2c(
    self_: DeviceView<'_>,
    dim: &[i64],
    normalization: i64,
    forward: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dims = distinct(dim, self_.sizes().len())?;
    expect_sizes(out.sizes(), self_.sizes())?;
    let scale = scale_of(self_.sizes(), &dims, normalization)?;
    let steps: Scratch<Step> =
        dims.iter().map(|&dim| Step { dim, size: self_.sizes()[dim], is_half: false }).collect();
    let (from, to) = (Side::of(&self_), Side::of_mut(&out));
    transform(out.device(), &steps, self_.sizes(), (&from, &to), scale, !forward)
}

/// Transforms along some dimensions, one after the other; numbers between have the sizes `between`.
fn transform(
    device: Device,
    steps: &[Step],
    between: &[i64],
    (from, to): (&Side, &Side),
    scale: f64,
    is_inverse: bool,
) -> Result<()> {
    if to.sizes.contains(&0) {
        return Ok(());
    }
    let Some((last, others)) = steps.split_last() else {
        // SAFETY: both sides are operands with the same sizes, and the output is none of the inputs.
        return unsafe { convert(device, to.elements(), from.elements()) };
    };
    if by_library(device, steps, (from, to), scale, is_inverse)? {
        return Ok(());
    }
    let count = if others.is_empty() { 0 } else { between.iter().product::<i64>() as u64 };
    let room = Room::new::<Complex64>(device, count)?;
    let middle = Side {
        start: room.address(),
        dtype: DType::C128,
        sizes: between.into(),
        strides: contiguous_strides(between),
    };
    let mut source = from;
    for step in others {
        Line::new(step, (source, &middle), is_inverse, 1.0)?.run(device)?;
        source = &middle;
    }
    Line::new(last, (source, to), is_inverse, scale)?.run(device)
}

/// The factors of a length by which passes are made; `None` if there are others.
fn radices(mut length: u64) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for radix in [4, 2, 3, 5, 7] {
        while length.is_multiple_of(u64::from(radix)) {
            found.push(radix);
            length /= u64::from(radix);
        }
    }
    (length == 1).then_some(found)
}

/// The transforms of lines along one dimension.
struct Line {
    parameter: Transform,
    radices: Vec<u32>,
    from: DType,
    to: DType,
}

impl Line {
    /// # Errors
    /// If there are too many dimensions.
    fn new(step: &Step, (from, to): (&Side, &Side), is_inverse: bool, scale: f64) -> Result<Line> {
        let size = step.size as u64;
        let own = radices(size);
        // A convolution of lines of this length needs as many zeros.
        let length = if own.is_some() { size } else { (2 * size - 1).next_power_of_two() };
        let mut parameter = Transform {
            size,
            length,
            kept: to.sizes[step.dim] as u64,
            from_step: from.strides[step.dim],
            to_step: to.strides[step.dim],
            from: from.start,
            to: to.start,
            scale,
            is_inverse: u32::from(is_inverse),
            is_half: u32::from(step.is_half),
            ..NOTHING
        };
        let mut nearest = i64::MAX;
        for dim in (0..to.sizes.len()).filter(|&dim| dim != step.dim && to.sizes[dim] != 1) {
            let place = parameter.dims as usize;
            *parameter.sizes.get_mut(place).ok_or_else(|| too_many_dims(to.sizes.len()))? =
                to.sizes[dim] as u64;
            (parameter.from_steps[place], parameter.to_steps[place]) = (from.strides[dim], to.strides[dim]);
            parameter.lines *= to.sizes[dim] as u64;
            nearest = nearest.min(from.strides[dim].abs());
            parameter.dims += 1;
        }
        parameter.along_line = u32::from(parameter.from_step.abs() <= nearest);
        parameter.together = (LONGEST / length).clamp(1, parameter.lines) as u32;
        let radices = own.or_else(|| radices(length)).unwrap_or_default();
        Ok(Line { parameter, radices, from: from.dtype, to: to.dtype })
    }

    /// Makes the tables, and transforms.
    fn run(mut self, device: Device) -> Result<()> {
        let (size, length) = (self.parameter.size, self.parameter.length);
        let roots = Room::new::<Complex64>(device, length)?;
        self.parameter.roots = roots.address();
        each(device, Each::Roots, length, &self.parameter)?;
        let is_convolution = size != length;
        let of_chirp = Room::new::<Complex64>(device, if is_convolution { size } else { 0 })?;
        let of_filter = Room::new::<Complex64>(device, if is_convolution { length } else { 0 })?;
        if is_convolution {
            (self.parameter.chirp, self.parameter.filter) = (of_chirp.address(), of_filter.address());
            each(device, Each::Chirp, size, &self.parameter)?;
            each(device, Each::Mirror, length, &self.parameter)?;
            self.filter().passes(device)?;
        }
        self.passes(device)
    }

    /// The transform of the filter, in place.
    fn filter(&self) -> Line {
        let (start, length) = (self.parameter.filter, self.parameter.length);
        let parameter = Transform {
            lines: 1,
            size: length,
            kept: length,
            dims: 0,
            from_step: 1,
            to_step: 1,
            from: start.cast_const().cast(),
            to: start.cast(),
            chirp: std::ptr::null_mut(),
            filter: std::ptr::null_mut(),
            scale: 1.0,
            is_inverse: 0,
            is_half: 0,
            together: 1,
            along_line: 1,
            ..self.parameter
        };
        Line { parameter, radices: self.radices.clone(), from: DType::C128, to: DType::C128 }
    }

    /// Transforms with the tables that are there.
    fn passes(&self, device: Device) -> Result<()> {
        let mut parameter = self.parameter;
        if parameter.length > LONGEST {
            return self.passes_in_memory(device);
        }
        parameter.passes = self.radices.len() as u32;
        parameter.radices[..self.radices.len()].copy_from_slice(&self.radices);
        let blocks = parameter.lines.div_ceil(u64::from(parameter.together));
        let number = 1 << 16 | (self.from as u32) << 8 | self.to as u32;
        let (from, to) = (self.from.ident(), self.to.ident());
        let instance =
            || format!("OPSMITH_FFT_LINES(opsmith_kernel, opsmith::dtype::{from}, opsmith::dtype::{to})");
        launch(device, number, instance, blocks, &parameter)
    }

    /// Transforms lines in working memory, with a launch for each pass.
    fn passes_in_memory(&self, device: Device) -> Result<()> {
        let mut parameter = self.parameter;
        let count = parameter.lines * parameter.length;
        let (work, spare) = (Room::new::<Complex64>(device, count)?, Room::new::<Complex64>(device, count)?);
        (parameter.work, parameter.spare) = (work.address(), spare.address());
        each(device, Each::Load(self.from), count, &parameter)?;
        for is_second in [false, true] {
            if is_second {
                if parameter.filter.is_null() {
                    break;
                }
                each(device, Each::Filter, count, &parameter)?;
            }
            parameter.before = 1;
            for &radix in &self.radices {
                each(device, Each::Pass(radix), count / u64::from(radix), &parameter)?;
                std::mem::swap(&mut parameter.work, &mut parameter.spare);
                parameter.before *= u64::from(radix);
            }
        }
        each(device, Each::Store(self.to), parameter.lines * parameter.kept, &parameter)
    }
}

/// A kernel with a thread for each number.
#[derive(Clone, Copy)]
enum Each {
    Roots,
    Chirp,
    Mirror,
    Filter,
    Load(DType),
    Pass(u32),
    Store(DType),
    Scale(DType),
}

/// Multiplies numbers in row-major order by a factor.
pub(super) fn scale_numbers(
    device: Device,
    dtype: DType,
    start: *mut c_void,
    count: u64,
    factor: f64,
) -> Result<()> {
    let parameter = Transform { lines: count, to: start, scale: factor, ..NOTHING };
    each(device, Each::Scale(dtype), count, &parameter)
}

fn each(device: Device, kernel: Each, count: u64, parameter: &Transform) -> Result<()> {
    let (number, function, numbers) = match kernel {
        Each::Roots => (2 << 8, "root_number".to_owned(), "transform.length"),
        Each::Chirp => (3 << 8, "chirp_number".to_owned(), "transform.size"),
        Each::Mirror => (4 << 8, "mirror_number".to_owned(), "transform.length"),
        Each::Filter => (5 << 8, "filter_number".to_owned(), "transform.lines * transform.length"),
        Each::Load(dtype) => (
            6 << 8 | dtype as u32,
            format!("load_number<dtype::{}>", dtype.ident()),
            "transform.lines * transform.length",
        ),
        Each::Pass(radix) => (
            7 << 8 | radix,
            format!("pass_number<{radix}>"),
            &*format!("transform.lines * (transform.length / {radix})"),
        ),
        Each::Store(dtype) => (
            8 << 8 | dtype as u32,
            format!("store_number<dtype::{}>", dtype.ident()),
            "transform.lines * transform.kept",
        ),
        Each::Scale(dtype) => {
            (9 << 8 | dtype as u32, format!("scale_number<dtype::{}>", dtype.ident()), "transform.lines")
        }
    };
    let instance = || format!("OPSMITH_FFT_EACH(opsmith_kernel, {function}, {numbers})");
    launch(device, number, instance, count.div_ceil(256).min(1 << 20), parameter)
}

fn launch(
    device: Device,
    number: u32,
    instance: impl FnOnce() -> String,
    blocks: u64,
    parameter: &Transform,
) -> Result<()> {
    let Some(blocks) = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
        return Err(Error::not_implemented(format!("{blocks} blocks are too many for a launch on a device"))
            .with_help("transform the operand in parts"));
    };
    if blocks == 0 {
        return Ok(());
    }
    let grid = Grid { blocks: [blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
    let parameters = [KernelParameter::of(parameter)];
    // SAFETY: the parameter is that of `fft.cuh`; lines and tables are inside memory that this call or the dispatcher keeps.
    unsafe { PROGRAM.launch(device, number, instance, grid, &parameters) }
}
