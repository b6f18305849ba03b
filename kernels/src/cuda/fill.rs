//! Triangles and identities.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DeviceViewMut, Error, Result};

use super::launch::{each, strided};
use crate::device::EACH;
use crate::device::strided::Strided;

static PROGRAM: DeviceProgram = DeviceProgram::new("fill.cuh", EACH, include_str!("../../cuda/fill.cuh"));

#[derive(Clone, Copy)]
#[repr(C)]
struct Triangle {
    places: Strided<1>,
    diagonal: i64,
    upper: u64,
}

/// Writes zeros above the lower triangle of matrices; `diagonal` moves the boundary to the right.
///
/// # Errors
/// If there are less than two dimensions or more than eight, or errors of the device.
pub fn tril(diagonal: i64, out: DeviceViewMut<'_>) -> Result<()> {
    triangle(diagonal, false, &out)
}

/// Writes zeros below the upper triangle of matrices; `diagonal` moves the boundary to the right.
///
/// # Errors
/// As [`tril`].
pub fn triu(diagonal: i64, out: DeviceViewMut<'_>) -> Result<()> {
    triangle(diagonal, true, &out)
}

fn triangle(diagonal: i64, upper: bool, out: &DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    if out.sizes().len() < 2 {
        return Err(Error::shape("a triangle needs at least two dimensions"));
    }
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    let parameter = Triangle { places, diagonal, upper: u64::from(upper) };
    // SAFETY: the struct has the fields of `fill.cuh`, and the places are those of the output.
    unsafe { each(&PROGRAM, out.device(), (0, "Triangle"), dtype, &places, &parameter) }
}

/// The identity matrix with `n` rows and columns.
///
/// # Errors
/// Errors of the device.
pub fn eye(n: i64, out: DeviceViewMut<'_>) -> Result<()> {
    eye_m(n, n, out)
}

/// Ones on the diagonal of a matrix with `n` rows and `m` columns.
///
/// # Errors
/// If the output has another size, or errors of the device.
pub fn eye_m(n: i64, m: i64, out: DeviceViewMut<'_>) -> Result<()> {
    let dtype = out.dtype();
    crate::cpu::expect_sizes(out.sizes(), &[n, m])?;
    let places = strided(out.sizes(), [(out.address().cast_const().cast(), out.strides())])?;
    // SAFETY: the struct has the places alone, as in `fill.cuh`, and they are those of the output.
    unsafe { each(&PROGRAM, out.device(), (1, "Identity"), dtype, &places, &places) }
}

pub use super::sequence::{arange, arange_of, linspace, logspace, tril_indices, triu_indices};
