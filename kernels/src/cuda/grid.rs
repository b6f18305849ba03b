//! Reading images at places that are data: the twin of [`cpu::grid`](crate::cpu::grid).
//!
//! The gradient of images gathers: each element has a list of the places that read it, in their order.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, DeviceView, DeviceViewMut, Result};

use super::launch::{Field, each, strided};
use super::lists::{ListMemory, Lists};
use super::scratch::Room;
use crate::cpu::expect_sizes;
use crate::cpu::grid::check_sampler;
use crate::device::POOLING;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram = DeviceProgram::new("grid.cuh", POOLING, include_str!("../../cuda/grid.cuh"));

/// Field by field as in `grid.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Sampler {
    size: [i64; 2],
    grid: [i64; 2],
    interpolation: u64,
    outside: u64,
    aligned: u64,
    across: i64,
    down: i64,
}

impl Sampler {
    /// A sampler of images and a grid of these sizes, for derivatives of orders `across` and `down`.
    ///
    /// # Errors
    /// If they do not go together, the result has another shape than `out`, or a mode is unknown.
    fn new(
        input: &[i64],
        grid: &[i64],
        out: &[i64],
        modes: (i64, i64, bool),
        (across, down): (i64, i64),
    ) -> Result<Sampler> {
        check_sampler(input, grid, out, modes)?;
        Ok(Sampler {
            size: [input[2], input[3]],
            grid: [grid[1], grid[2]],
            interpolation: modes.0 as u64,
            outside: modes.1 as u64,
            aligned: u64::from(modes.2),
            across,
            down,
        })
    }

    /// Elements that a place reads.
    fn taps(&self) -> usize {
        [4, 1, 16].get(self.interpolation as usize).copied().unwrap_or(16)
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Sampled {
    places: Strided<1>,
    images: Field,
    grid: Field,
    sampler: Sampler,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PutTaps {
    places: Strided<1>,
    grid: Field,
    lists: Lists,
    weights: *const c_void,
    sampler: Sampler,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct SortLists {
    places: Strided<1>,
    lists: Lists,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct OfImages {
    places: Strided<1>,
    grad: Field,
    lists: Lists,
    weights: *const c_void,
    sampler: Sampler,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct OfPlaces {
    places: Strided<1>,
    stride: i64,
    channels: i64,
    grad: Field,
    images: Field,
    grid: Field,
    sampler: Sampler,
}

/// Elements of images `(samples, channels, height, width)` at the places of a grid
/// `(samples, rows, columns, 2)`, between elements by interpolation: bilinear (0), the nearest (1) or
/// bicubic (2). Outside are zeros (0), the border (1) or the mirrored image (2).
///
/// # Errors
/// If the shapes do not go together, or a mode is another number, or errors of the device.
pub fn grid_sampler_2d(
    input: DeviceView<'_>,
    grid: DeviceView<'_>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    grid_sampler_2d_slope(input, grid, interpolation_mode, padding_mode, align_corners, 0, 0, out)
}

/// The derivative of [`grid_sampler_2d`] of these orders by the grid's numbers.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_slope(
    input: DeviceView<'_>,
    grid: DeviceView<'_>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    across: i64,
    down: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = input.dtype();
    let modes = (interpolation_mode, padding_mode, align_corners);
    let sampler = Sampler::new(input.sizes(), grid.sizes(), out.sizes(), modes, (across, down))?;
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = Sampled { places, images: Field::of(&input), grid: Field::of(&grid), sampler };
    // SAFETY: the struct has the fields of `grid.cuh`; elements outside the images are not read.
    unsafe { each(&PROGRAM, out.device(), (0, "Sampled"), dtype, &places, &parameter) }
}

/// The gradient of [`grid_sampler_2d_slope`] for the image.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_slope_backward(
    grad_output: DeviceView<'_>,
    grid: DeviceView<'_>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    across: i64,
    down: i64,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let modes = (interpolation_mode, padding_mode, align_corners);
    let sampler = Sampler::new(out.sizes(), grid.sizes(), grad_output.sizes(), modes, (across, down))?;
    of_images(&grad_output, &grid, sampler, &out)
}

/// The gradients of [`grid_sampler_2d`] for image and grid.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_backward(
    grad_output: DeviceView<'_>,
    input: DeviceView<'_>,
    grid: DeviceView<'_>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    grad_input: DeviceViewMut<'_>,
    grad_grid: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let modes = (interpolation_mode, padding_mode, align_corners);
    let sampler = Sampler::new(input.sizes(), grid.sizes(), grad_output.sizes(), modes, (0, 0))?;
    expect_sizes(grad_input.sizes(), input.sizes())?;
    expect_sizes(grad_grid.sizes(), grid.sizes())?;
    of_images(&grad_output, &grid, sampler, &grad_input)?;
    let start = grad_grid.address().cast_const().cast();
    let places = strided(&grid.sizes()[..3], [(start, &grad_grid.strides()[..3])])?;
    let parameter = OfPlaces {
        places,
        stride: grad_grid.strides()[3],
        channels: input.sizes()[1],
        grad: Field::of(&grad_output),
        images: Field::of(&input),
        grid: Field::of(&grid),
        sampler,
    };
    // SAFETY: as for `grid_sampler_2d_slope`; a place of the gradient has two numbers.
    unsafe { each(&PROGRAM, grad_grid.device(), (1, "OfPlaces"), dtype, &places, &parameter) }
}

/// The gradient of images: lists of taps, sorted, then a sum for each element.
fn of_images(
    grad: &DeviceView<'_>,
    grid: &DeviceView<'_>,
    sampler: Sampler,
    out: &DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad.dtype();
    let (device, sizes) = (out.device(), out.sizes());
    let taps = grid.numel() / 2 * sampler.taps();
    let elements = sizes[0] * sizes[2] * sizes[3];
    let memory = ListMemory::new(device, elements as usize, taps)?;
    let weights = Room::of_dtype(device, dtype.to_compute(), taps as u64)?;
    let (lists, of_taps) = (memory.lists(), weights.address::<c_void>().cast_const());
    let places = strided(&grid.sizes()[..3], [(std::ptr::null(), &[0; 3])])?;
    let parameter = PutTaps { places, grid: Field::of(grid), lists, weights: of_taps, sampler };
    // SAFETY: there is a list for each element, and room for each tap.
    unsafe { each(&PROGRAM, device, (2, "PutTaps"), dtype, &places, &parameter)? };
    let places = strided(&[elements], [(std::ptr::null(), &[0])])?;
    // SAFETY: there is a list for each element, and one thread sorts it, after the launch before has filled it.
    unsafe { each(&PROGRAM, device, (3, "SortLists"), DType::I64, &places, &SortLists { places, lists })? };
    let places = strided(sizes, [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = OfImages { places, grad: Field::of(grad), lists, weights: of_taps, sampler };
    // SAFETY: the lists were made for this gradient.
    unsafe { each(&PROGRAM, device, (4, "OfImages"), dtype, &places, &parameter) }
}
