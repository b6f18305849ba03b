//! Transforms of the interface of devices, submitted to the library.
//!
//! In: transforms. Out: work of the stream, and whether the library computes them. Must not know operators.

use std::ffi::c_int;

use opsmith_core::DType;
use opsmith_runtime::Result;
use opsmith_runtime::backend::LibraryTransform;
use opsmith_runtime::internals::{Span, open_span};

use super::workspace::Workspace;
use crate::driver;
use crate::launch;
use crate::libraries::cufft::plans::Key;
use crate::libraries::cufft::{DESCRIBED, api};
use crate::movement::Place;

/// Whether the library of transforms is used.
///
/// # Errors
/// If it is demanded and not there, or there is no driver.
pub fn is_used() -> Result<bool> {
    Ok(DESCRIBED.used(driver::driver()?.version / 1000)?.is_some())
}

/// Submits transforms, and returns whether the library computes them; if not, nothing was written.
///
/// # Errors
/// If the library is demanded and not there, or errors of the library or the device.
///
/// # Safety
/// As [`transform`](opsmith_runtime::backend::DeviceRuntime::transform).
pub unsafe fn transform(place: Place, transform: &LibraryTransform<'_>) -> Result<bool> {
    let (stream, context) = (place.stream, place.stream.context);
    let Some(library) = DESCRIBED.used(context.driver.version / 1000)? else { return Ok(false) };
    let Some(key) = key(transform) else { return Ok(DESCRIBED.requests.note(false)) };
    let _entered = context.enter()?;
    let plan = place.device.transforms.plan(library, &key)?;
    let _span = open_span(|| Span::Phase { name: "cufftXtExec" });
    let workspace = Workspace::new(place, plan.workspace)?;
    let direction = if transform.is_inverse { api::INVERSE } else { api::FORWARD };
    // SAFETY: the caller's promise; the working memory is released after this request.
    unsafe { plan.submit(transform.from, transform.to, direction, workspace.start(), stream.raw())? };
    drop(workspace);
    if launch::is_synchronous() {
        stream.synchronize().map_err(|error| error.with_note("in a transform of cuFFT"))?;
    }
    Ok(DESCRIBED.requests.note(true))
}

/// The key of a plan; `None` if the library has no such transform.
fn key(transform: &LibraryTransform<'_>) -> Option<Key> {
    let kind = kind(transform.dtypes, transform.is_inverse)?;
    let rank = transform.sizes.len();
    let is_empty = transform.count < 1 || transform.sizes.iter().any(|&size| size < 1);
    let mut sizes = [0; 3];
    sizes.get_mut(..rank)?.copy_from_slice(transform.sizes);
    (rank > 0 && !is_empty).then_some(Key { kind, rank, sizes, count: transform.count })
}

fn kind(dtypes: [DType; 2], is_inverse: bool) -> Option<c_int> {
    Some(match (dtypes, is_inverse) {
        ([DType::F32, DType::C64], false) => api::REAL_TO_COMPLEX,
        ([DType::F64, DType::C128], false) => api::DOUBLE_REAL_TO_COMPLEX,
        ([DType::C64, DType::F32], true) => api::COMPLEX_TO_REAL,
        ([DType::C128, DType::F64], true) => api::DOUBLE_COMPLEX_TO_REAL,
        ([DType::C64, DType::C64], _) => api::COMPLEX,
        ([DType::C128, DType::C128], _) => api::DOUBLE_COMPLEX,
        _ => return None,
    })
}
