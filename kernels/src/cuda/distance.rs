//! Distances between rows: the twin of [`cpu::distance`](crate::cpu::distance). Operands may have any strides.

use std::ffi::c_void;

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DeviceView, DeviceViewMut, Dims, Error, Result, Scalar};

use super::launch::{each, strided};
use super::moves::{Part, fill};
use crate::cpu::distance::{Pairs as Rows, check_norm, matrix};
use crate::cpu::{broadcast_strides, expect_operand, expect_sizes};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram =
    DeviceProgram::new("distance.cuh", EACH, include_str!("../../cuda/distance.cuh"));

/// Field by field as in `distance.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Norm {
    kind: u64,
    p: f64,
}

impl Norm {
    /// # Errors
    /// If `p` is negative or NaN.
    fn new(p: f64) -> Result<Norm> {
        check_norm(p)?;
        let kind = match p {
            0.0 => 0,
            1.0 => 1,
            2.0 => 2,
            f64::INFINITY => 3,
            _ => 4,
        };
        Ok(Norm { kind, p })
    }
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Distances {
    places: Strided<3>,
    steps: [i64; 2],
    width: i64,
    norm: Norm,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct DistancesBackward {
    places: Strided<5>,
    steps: [i64; 2],
    width: i64,
    rows: i64,
    second_step: i64,
    grad_step: i64,
    distance_step: i64,
    norm: Norm,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Pairs {
    rows: i64,
    width: i64,
    row_step: i64,
    step: i64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PairDistances {
    places: Strided<1>,
    matrix: *const c_void,
    pairs: Pairs,
    norm: Norm,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct PairDistancesBackward {
    places: Strided<1>,
    matrix: *const c_void,
    grad: *const c_void,
    distances: *const c_void,
    grad_step: i64,
    distance_step: i64,
    pairs: Pairs,
    norm: Norm,
}

/// Strides of an operand's stack of matrices, broadcast to `batch`, then those of its rows and columns.
fn stack(view: &DeviceView<'_>, batch: &[i64]) -> Result<(Dims, i64, i64)> {
    let (outer, [row, column]) = view
        .strides()
        .split_last_chunk::<2>()
        .ok_or_else(|| Error::shape("distances are between the rows of matrices"))?;
    Ok((broadcast_strides(&view.sizes()[..outer.len()], outer, batch)?, *row, *column))
}

/// Strides of a stack and two more.
fn with(stack: &Dims, last: [i64; 2]) -> Dims {
    let mut strides = stack.clone();
    strides.extend(last);
    strides
}

/// The distance of every row of `x1` to every row of `x2`; dimensions before the last two broadcast.
///
/// # Errors
/// If `p` is negative or the shapes do not go together, or errors of the device.
pub fn cdist_forward(x1: DeviceView<'_>, x2: DeviceView<'_>, p: f64, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = x1.dtype();
    let norm = Norm::new(p)?;
    let sizes = out.sizes();
    Rows::new(x1.sizes(), x2.sizes(), sizes)?;
    let batch = &sizes[..sizes.len() - 2];
    let (first, row1, step1) = stack(&x1, batch)?;
    let (second, row2, step2) = stack(&x2, batch)?;
    let operands = [
        (out.address().cast_const().cast(), out.strides()),
        (x1.address().cast(), &with(&first, [row1, 0])[..]),
        (x2.address().cast(), &with(&second, [0, row2])[..]),
    ];
    let places = strided(sizes, operands)?;
    let width = x1.sizes().last().copied().unwrap_or(0);
    let parameter = Distances { places, steps: [step1, step2], width, norm };
    // SAFETY: the struct has the fields of `distance.cuh`; the sizes were checked.
    unsafe { each(&PROGRAM, out.device(), (0, "Distances"), dtype, &places, &parameter) }
}

/// The gradient of [`cdist_forward`] for `x1`, broadcast to the result's stack of matrices.
///
/// # Errors
/// As [`cdist_forward`].
pub fn cdist_backward(
    grad_output: DeviceView<'_>,
    x1: DeviceView<'_>,
    x2: DeviceView<'_>,
    p: f64,
    cdist: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let norm = Norm::new(p)?;
    expect_operand("cdist", cdist.sizes(), grad_output.sizes())?;
    Rows::new(x1.sizes(), x2.sizes(), grad_output.sizes())?;
    if grad_output.numel() == 0 || x1.numel() == 0 {
        if out.numel() == 0 {
            return Ok(());
        }
        let whole = Part { sizes: out.sizes(), strides: out.strides(), offset: 0 };
        // SAFETY: the whole output.
        return unsafe { fill(&out, whole, Scalar::Int(0)) };
    }
    let width = x1.sizes().last().copied().unwrap_or(0);
    let mut sizes = Dims::from_slice(grad_output.sizes());
    let rows = sizes.pop().unwrap_or(0);
    sizes.push(width);
    expect_sizes(out.sizes(), &sizes)?;
    let batch = &sizes[..sizes.len() - 2];
    let (first, row1, step1) = stack(&x1, batch)?;
    let (second, second_step, step2) = stack(&x2, batch)?;
    let (of_grad, grad_row, grad_step) = stack(&grad_output, batch)?;
    let (of_distance, distance_row, distance_step) = stack(&cdist, batch)?;
    let operands = [
        (out.address().cast_const().cast(), out.strides()),
        (x1.address().cast(), &with(&first, [row1, 0])[..]),
        (x2.address().cast(), &with(&second, [0, 0])[..]),
        (grad_output.address().cast(), &with(&of_grad, [grad_row, 0])[..]),
        (cdist.address().cast(), &with(&of_distance, [distance_row, 0])[..]),
    ];
    let places = strided(&sizes, operands)?;
    let steps = [step1, step2];
    let parameter =
        DistancesBackward { places, steps, width, rows, second_step, grad_step, distance_step, norm };
    // SAFETY: as for `cdist_forward`.
    unsafe { each(&PROGRAM, out.device(), (1, "DistancesBackward"), dtype, &places, &parameter) }
}

/// The distances of each row of a matrix to the rows after it.
///
/// # Errors
/// If `p` is negative or `self` is not a matrix, or errors of the device.
pub fn pdist_forward(self_: DeviceView<'_>, p: f64, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = self_.dtype();
    let norm = Norm::new(p)?;
    let pairs = pairs(&self_)?;
    expect_sizes(out.sizes(), &[count(pairs.rows)])?;
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = PairDistances { places, matrix: self_.address().cast(), pairs, norm };
    // SAFETY: as for `cdist_forward`.
    unsafe { each(&PROGRAM, out.device(), (2, "PairDistances"), dtype, &places, &parameter) }
}

/// The gradient of [`pdist_forward`].
///
/// # Errors
/// As [`pdist_forward`].
pub fn pdist_backward(
    grad_output: DeviceView<'_>,
    self_: DeviceView<'_>,
    p: f64,
    pdist: DeviceView<'_>,
    out: DeviceViewMut<'_>,
) -> Result<()> {
    let dtype = grad_output.dtype();
    let norm = Norm::new(p)?;
    let pairs = pairs(&self_)?;
    expect_sizes(out.sizes(), self_.sizes())?;
    expect_operand("grad", grad_output.sizes(), &[count(pairs.rows)])?;
    expect_operand("pdist", pdist.sizes(), &[count(pairs.rows)])?;
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = PairDistancesBackward {
        places,
        matrix: self_.address().cast(),
        grad: grad_output.address().cast(),
        distances: pdist.address().cast(),
        grad_step: grad_output.strides()[0],
        distance_step: pdist.strides()[0],
        pairs,
        norm,
    };
    // SAFETY: as for `cdist_forward`.
    unsafe { each(&PROGRAM, out.device(), (3, "PairDistancesBackward"), dtype, &places, &parameter) }
}

fn pairs(view: &DeviceView<'_>) -> Result<Pairs> {
    let (rows, width) = matrix(view.sizes())?;
    let &[row_step, step] = view.strides() else { return Err(Error::shape("a matrix has two strides")) };
    Ok(Pairs { rows: rows as i64, width: width as i64, row_step, step })
}

/// The number of pairs of rows.
fn count(rows: i64) -> i64 {
    rows * (rows - 1).max(0) / 2
}
