//! More or fewer places for the same contents: the twin of [`cpu::resize`](crate::cpu::resize).

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Result};

use super::launch::each;
use super::window::{Images, each_place};
use crate::cpu::expect_operand;
use crate::cpu::resize::scale_of;
use crate::device::IMAGES;
use crate::device::strided::Strided;
use crate::infer::resized;
use crate::window::MOST;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("resize.cuh", IMAGES, include_str!("../../cuda/resize.cuh"));

/// Field by field as in `resize.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Resizing {
    input: [u64; MOST],
    output: [u64; MOST],
    /// Negative for a dimension that is not there.
    scale: [f64; MOST],
    mode: u64,
    aligned: u64,
    is_double: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Resized {
    places: Strided<1>,
    images: Images,
    resizing: Resizing,
}

impl Resizing {
    /// The parameter for an input and a result of elements of a dtype with these sizes.
    ///
    /// # Errors
    /// If the sizes do not go together.
    fn new(
        input: &[i64],
        output: &[i64],
        mode: i64,
        align_corners: bool,
        scales: &[f64],
        dtype: DType,
    ) -> Result<Resizing> {
        let output_size = output.get(2..).unwrap_or(&[]);
        expect_operand("an operand", output, &resized(input, output_size, scales)?)?;
        let is_double = dtype == DType::F64;
        let mut resizing = Resizing {
            input: [1; MOST],
            output: [1; MOST],
            scale: [-1.0; MOST],
            mode: mode.clamp(0, 3) as u64,
            aligned: u64::from(align_corners),
            is_double: u64::from(is_double),
        };
        let missing = MOST - output_size.len();
        for (dim, (&from, &to)) in input[2..].iter().zip(output_size).enumerate() {
            let factor = scales.get(dim).copied().unwrap_or(0.0);
            let (from, to) = (from as usize, to as usize);
            resizing.scale[missing + dim] = scale_of(from, to, align_corners, factor, is_double);
            (resizing.input[missing + dim], resizing.output[missing + dim]) = (from as u64, to as u64);
        }
        Ok(resizing)
    }
}

/// `self` at as many places of its last dimensions as `out` has.
///
/// # Errors
/// If the shapes do not go together, or errors of the device.
pub fn upsample(
    self_: DeviceView<'_>,
    mode: i64,
    align_corners: bool,
    scales: &[f64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = self_.dtype();
    if out.numel() == 0 {
        return Ok(());
    }
    let resizing = Resizing::new(self_.sizes(), out.sizes(), mode, align_corners, scales, dtype)?;
    launch(&self_, resizing, (0, "Resized"), &out)
}

/// The gradient of [`upsample`] by `self`, whose shape is that of `out`.
///
/// # Errors
/// As [`upsample`].
pub fn upsample_backward(
    grad_output: DeviceView<'_>,
    mode: i64,
    align_corners: bool,
    scales: &[f64],
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    if out.numel() == 0 {
        return Ok(());
    }
    let resizing = Resizing::new(out.sizes(), grad_output.sizes(), mode, align_corners, scales, dtype)?;
    launch(&grad_output, resizing, (1, "ResizedBackward"), &out)
}

fn launch(
    read: &DeviceView<'_>,
    resizing: Resizing,
    functor: (u8, &str),
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = read.dtype();
    let spatial = out.sizes().len() - 2;
    let places = each_place(out, spatial)?;
    let parameter = Resized { places, images: Images::of(read, spatial), resizing };
    // SAFETY: the struct has the fields of `resize.cuh`; sizes were checked, so that places are inside the operands.
    unsafe { each(&PROGRAM, out.device(), functor, dtype, &places, &parameter) }
}
