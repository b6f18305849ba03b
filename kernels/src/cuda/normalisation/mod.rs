//! Normalisation: elements less their mean, divided by their standard deviation, scaled and shifted.
//!
//! The meaning is that of [`cpu::normalisation`](crate::cpu::normalisation). Operands that are not row-major are copied first.

mod batch;
mod channels;
mod group;
mod layer;

use opsmith_runtime::{DeviceView, DeviceViewMut, Result, Scalar};

use super::moves::{Part, fill};
use super::scratch::{Dense, DenseMut};
use crate::cpu::normalisation::expect_count;

pub use batch::{
    native_batch_norm, native_batch_norm_backward, native_batch_norm_functional, native_batch_norm_no_stats,
};
pub use group::{native_group_norm, native_group_norm_backward};
pub use layer::{native_layer_norm, native_layer_norm_backward, rms_norm, rms_norm_backward};

/// A factor or statistic in row-major order, one element for each of `count`.
fn factor<'a>(view: Option<&DeviceView<'a>>, count: usize, name: &str) -> Result<Option<Dense<'a>>> {
    let Some(view) = view else { return Ok(None) };
    expect_count(view.numel(), count, name)?;
    Ok(Some(Dense::of(view)?))
}

/// An output in row-major order if it is wanted; else it becomes zeros.
fn output(wanted: bool, view: DeviceViewMut<'_>) -> Result<Option<DenseMut<'_>>> {
    if wanted {
        return DenseMut::of(view).map(Some);
    }
    if view.numel() > 0 {
        let whole = Part { sizes: view.sizes(), strides: view.strides(), offset: 0 };
        // SAFETY: the whole output.
        unsafe { fill(&view, whole, Scalar::Int(0))? };
    }
    Ok(None)
}

/// The address of an output, null if it is not wanted.
fn address_of(output: &Option<DenseMut<'_>>) -> *mut std::ffi::c_void {
    output.as_ref().map_or(std::ptr::null_mut(), |output| output.address.cast())
}

/// Moves an output to its place if it is wanted.
fn write(output: Option<DenseMut<'_>>) -> Result<()> {
    output.map_or(Ok(()), DenseMut::write)
}
