//! Boxes in images: the twin of [`cpu::detection`](crate::cpu::detection).
//!
//! A region of a sample that is not there has zeros: kernels on a device report no errors of elements.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DeviceView, DeviceViewMut, Result};

use super::launch::{Field, each, line, strided};
use crate::cpu::detection::{Cells as Sizes, check_boxes};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("detection.cuh", EACH, include_str!("../../cuda/detection.cuh"));

/// Field by field as in `detection.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Boxes {
    lines: Strided<2>,
    count: u64,
    kept_step: i64,
    box_step: i64,
    number_step: i64,
    threshold: f64,
}

/// Field by field as in `detection.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Cells {
    regions: i64,
    images: i64,
    height: i64,
    width: i64,
    rows: i64,
    columns: i64,
    ratio: i64,
    aligned: u64,
    scale: f64,
}

impl Cells {
    /// # Errors
    /// If the shapes do not go together.
    fn new(input: &[i64], rois: &[i64], out: &[i64], scale: f64, ratio: i64, aligned: bool) -> Result<Cells> {
        let sizes = Sizes::new(input, rois, out, scale, ratio, aligned)?;
        let [regions, images, height, width, rows, columns] =
            [sizes.regions, sizes.images, sizes.height, sizes.width, sizes.rows, sizes.columns]
                .map(|size| size as i64);
        let aligned = u64::from(aligned);
        Ok(Cells { regions, images, height, width, rows, columns, ratio, aligned, scale })
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct ReadCells {
    places: Strided<1>,
    images: Field,
    rois: Field,
    cells: Cells,
    largest: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct ReadCellsBackward {
    places: Strided<1>,
    grads: Field,
    rois: Field,
    cells: Cells,
}

/// Whether each box of a line, `(x1, y1, x2, y2)`, is kept: those that overlap an earlier one that is kept by more than a part of the area
/// that both cover are not.
///
/// # Errors
/// If a box has other than four numbers, or errors of the device.
pub fn kept_boxes(boxes: DeviceView<'_>, iou_threshold: f64, out: DeviceViewMut<'_>) -> Result<()> {
    check_boxes(boxes.sizes(), out.sizes())?;
    let Some((&count, lines)) = out.sizes().split_last().filter(|_| out.numel() > 0) else { return Ok(()) };
    let rank = lines.len();
    let parameter = Boxes {
        lines: strided(
            lines,
            [
                (out.address().cast_const().cast(), &out.strides()[..rank]),
                (boxes.address().cast(), &boxes.strides()[..rank]),
            ],
        )?,
        count: count as u64,
        kept_step: out.strides()[rank],
        box_step: boxes.strides()[rank],
        number_step: boxes.strides()[rank + 1],
        threshold: iou_threshold,
    };
    let dtype = boxes.dtype();
    let instance = format!("OPSMITH_KEPT_BOXES(opsmith_kernel, opsmith::dtype::{})", dtype.ident());
    let blocks = (out.numel() as i64 / count) as u64;
    // SAFETY: the struct has the fields of `detection.cuh`, and its lines are those of the operands.
    unsafe { line(&PROGRAM, out.device(), (dtype as u8, &instance), blocks, &parameter) }
}

/// The means of images over the cells of regions; with `largest` the largest weighted element of the samples.
///
/// # Errors
/// If the shapes do not go together, or errors of the device.
pub fn roi_cells(
    input: DeviceView<'_>,
    rois: DeviceView<'_>,
    spatial_scale: f64,
    sampling_ratio: i64,
    aligned: bool,
    largest: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let cells = Cells::new(input.sizes(), rois.sizes(), out.sizes(), spatial_scale, sampling_ratio, aligned)?;
    let dtype = input.dtype();
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let (images, rois) = (Field::of(&input), Field::of(&rois));
    let parameter = ReadCells { places, images, rois, cells, largest: u64::from(largest) };
    // SAFETY: the struct has the fields of `detection.cuh`; elements outside the images are not read.
    unsafe { each(&PROGRAM, out.device(), (1, "ReadCells"), dtype, &places, &parameter) }
}

/// The gradient of [`roi_cells`] for the images, of means.
///
/// # Errors
/// As [`roi_cells`].
pub fn roi_cells_backward(
    grad_output: DeviceView<'_>,
    rois: DeviceView<'_>,
    spatial_scale: f64,
    sampling_ratio: i64,
    aligned: bool,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let cells =
        Cells::new(out.sizes(), rois.sizes(), grad_output.sizes(), spatial_scale, sampling_ratio, aligned)?;
    let dtype = grad_output.dtype();
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter =
        ReadCellsBackward { places, grads: Field::of(&grad_output), rois: Field::of(&rois), cells };
    // SAFETY: as for `roi_cells`.
    unsafe { each(&PROGRAM, out.device(), (2, "ReadCellsBackward"), dtype, &places, &parameter) }
}
