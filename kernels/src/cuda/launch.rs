//! Launches of kernels with one parameter.
//!
//! In: a program, the line of an instance, a parameter. Out: work in the stream of the calling thread.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::axes::{Axes, axes, merge};
use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::{DType, Device, DeviceView, Dims, Element, Error, Result, with_dtype};

use crate::device::strided::Strided;
use crate::device::{Lines, Shape};

/// Runs an expression with a type alias bound to the type that floats of a dtype compute in.
macro_rules! with_float {
    ($dtype:expr, $C:ident => $body:expr) => {
        match $dtype.to_compute() {
            DType::F64 => {
                type $C = f64;
                $body
            }
            _ => {
                type $C = f32;
                $body
            }
        }
    };
}
pub(super) use with_float;

/// The dtype of as many bytes, for code that only moves elements.
pub(super) fn bits(dtype: DType) -> DType {
    with_dtype!(dtype, T => <<T as Element>::Bits as Element>::DTYPE)
}

/// An operand of four dimensions, field by field as in `each.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Field {
    start: *const c_void,
    strides: [i64; 4],
}

impl Field {
    pub fn of(view: &DeviceView<'_>) -> Field {
        let mut strides = [0; 4];
        strides.iter_mut().zip(view.strides()).for_each(|(own, &stride)| *own = stride);
        Field { start: view.address().cast(), strides }
    }
}

/// The error of operands with more dimensions than a kernel's parameter has.
#[cold]
pub(super) fn too_many_dims(dims: usize) -> Error {
    Error::not_implemented(format!("a kernel on a device walks at most 8 dimensions, and there are {dims}"))
        .with_help("reshape the operands to fewer dimensions first")
}

/// The parameter for all indices of a shape.
///
/// # Errors
/// If it has more than eight dimensions.
pub(super) fn strided<const N: usize>(
    sizes: &[i64],
    operands: [(*const c_void, &[i64]); N],
) -> Result<Strided<N>> {
    Strided::new(sizes, operands).ok_or_else(|| too_many_dims(sizes.len()))
}

/// As [`strided`], for functors that need no index: dimensions that all operands step through as one are one. Missing strides
/// are 0.
///
/// # Errors
/// If more than eight dimensions are left.
pub(super) fn merged<const N: usize>(
    sizes: &[i64],
    operands: [(*const c_void, &[i64]); N],
) -> Result<Strided<N>> {
    let whole = operands.map(|(_, strides)| {
        let mut whole: Dims = strides.into();
        whole.resize(sizes.len(), 0);
        whole
    });
    let axes: Axes<N> = merge(axes(sizes, std::array::from_fn(|operand| &whole[operand][..]), |_| true));
    let sizes: Dims = axes.iter().map(|axis| axis.size).collect();
    let steps: [Dims; N] =
        std::array::from_fn(|operand| axes.iter().map(|axis| axis.steps[operand]).collect());
    strided(&sizes, std::array::from_fn(|operand| (operands[operand].0, &steps[operand][..])))
}

/// Launches `OPSMITH_EACH` of a functor of one dtype, whose first field is `places`.
///
/// # Errors
/// Errors of the backend.
///
/// # Safety
/// The program's text has a struct template of the functor's name with the layout of `P`; the operands are on the device, and
/// their places are inside their memory, which is kept until the stream has passed this request. Functors of one program have
/// different numbers.
pub(super) unsafe fn each<const N: usize, P: Copy>(
    program: &'static DeviceProgram,
    device: Device,
    (number, functor): (u8, &str),
    dtype: DType,
    places: &Strided<N>,
    parameter: &P,
) -> Result<()> {
    let blocks = if places.count == 0 { 0 } else { places.blocks() };
    let parameter = KernelParameter::of(parameter);
    // SAFETY: the caller's promise.
    unsafe { launch_each(program, device, (number, functor), dtype, blocks, parameter) }
}

/// # Safety
/// As for [`each`].
unsafe fn launch_each(
    program: &'static DeviceProgram,
    device: Device,
    (number, functor): (u8, &str),
    dtype: DType,
    blocks: u32,
    parameter: KernelParameter<'_>,
) -> Result<()> {
    if blocks == 0 {
        return Ok(());
    }
    let number = u32::from(number) << 8 | dtype as u32;
    let instance = || format!("OPSMITH_EACH(opsmith_kernel, {functor}<opsmith::dtype::{}>)", dtype.ident());
    let grid = Grid { blocks: [blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
    // SAFETY: the caller's promise.
    unsafe { program.launch(device, number, instance, grid, &[parameter]) }
}

/// Launches blocks of 256 threads of the kernel that a line defines. Numbers of `each` are not below 256, so those of lines
/// are.
///
/// # Errors
/// If there are more blocks than a launch has, or errors of the backend.
///
/// # Safety
/// The program's text has the line's macro, whose kernel takes `P`; all memory that it accesses is kept until the stream has
/// passed this request. Lines of one program have different numbers, and no functor of it has number 0.
pub(super) unsafe fn line<P: Copy>(
    program: &'static DeviceProgram,
    device: Device,
    (number, line): (u8, &str),
    blocks: u64,
    parameter: &P,
) -> Result<()> {
    let Some(blocks) = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
        return Err(Error::not_implemented(format!("{blocks} blocks are too many for a launch on a device"))
            .with_help("split the operands"));
    };
    if blocks == 0 {
        return Ok(());
    }
    let grid = Grid { blocks: [blocks, 1, 1], threads: [256, 1, 1], shared: 0 };
    let parameters = [KernelParameter::of(parameter)];
    // SAFETY: the caller's promise.
    unsafe { program.launch(device, u32::from(number), || line.to_owned(), grid, &parameters) }
}

/// Launches a kernel for lines: the line's macro, and its struct of one dtype.
///
/// # Errors
/// Errors of the backend.
///
/// # Safety
/// The operands are on the device, their elements of the struct's types, and the lines are inside their memory, which is kept
/// until the stream has passed this request. Kernels of one program have different numbers.
pub(super) unsafe fn on_lines<const N: usize>(
    program: &'static DeviceProgram,
    device: Device,
    (number, kernel, rule): (u8, &str, &str),
    dtype: DType,
    (lines, shape): (&Lines<N>, Shape),
) -> Result<()> {
    if lines.lines == 0 || lines.size == 0 {
        return Ok(());
    }
    let number = u32::from(number) << 8 | dtype as u32;
    let instance = || format!("{kernel}(opsmith_kernel, {rule}<opsmith::dtype::{}>)", dtype.ident());
    let grid =
        Grid { blocks: [shape.blocks, 1, 1], threads: [shape.threads[0], shape.threads[1], 1], shared: 0 };
    let parameters = [KernelParameter::of(lines)];
    // SAFETY: the caller's promise.
    unsafe { program.launch(device, number, instance, grid, &parameters) }
}
