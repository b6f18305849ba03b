//! A product of the interface of devices, submitted to the library.
//!
//! In: a product. Out: work of the stream, and whether the library computes it. Must not know operators.

use opsmith_runtime::Result;
use opsmith_runtime::backend::LibraryProduct;
use opsmith_runtime::internals::{Span, open_span};

use super::workspace::Workspace;
use crate::launch;
use crate::libraries::cublaslt::problem::Problem;
use crate::libraries::cublaslt::{CublasLt, DESCRIBED, allows_tf32};
use crate::movement::{self, Place};

/// Submits a product, and returns whether the library computes it; if not, nothing was written.
///
/// # Errors
/// If the library is demanded and not there, or errors of the library or the device.
///
/// # Safety
/// As [`product`](opsmith_runtime::backend::DeviceRuntime::product).
pub unsafe fn product(place: Place, product: &LibraryProduct<'_>) -> Result<bool> {
    let context = place.stream.context;
    let Some(library) = DESCRIBED.used(context.driver.version / 1000)? else { return Ok(false) };
    let tf32 = allows_tf32();
    for allows_bias in [true, false] {
        let Some(problem) = Problem::of(product, tf32, allows_bias) else { break };
        // SAFETY: the caller's promise.
        if unsafe { submit(place, product, &problem, library)? } {
            return Ok(DESCRIBED.requests.note(true));
        }
        if problem.bias.is_none() {
            break;
        }
    }
    Ok(DESCRIBED.requests.note(false))
}

/// Submits a problem of a product, if the library has an algorithm for it.
///
/// # Safety
/// As for [`product`].
unsafe fn submit(
    place: Place,
    product: &LibraryProduct<'_>,
    problem: &Problem,
    library: &'static CublasLt,
) -> Result<bool> {
    let (stream, context) = (place.stream, place.stream.context);
    let products = place.device.products(library)?;
    let _entered = context.enter()?;
    let Some(plan) = products.plan(problem)? else { return Ok(false) };
    let _span = open_span(|| Span::Phase { name: "cublasLtMatmul" });
    if let (true, Some((added, _))) = (problem.is_copied, product.added) {
        // SAFETY: the caller's promise: the addend has the sizes of the result, and does not overlap it.
        unsafe { movement::convert(place, product.out, added)? };
    }
    let workspace = Workspace::new(place, plan.workspace)?;
    // SAFETY: the caller's promise; the working memory is released after this request.
    unsafe { products.submit(&plan, problem, workspace.start(), stream.raw())? };
    drop(workspace);
    if launch::is_synchronous() {
        stream.synchronize().map_err(|error| error.with_note("in a product of cuBLASLt"))?;
    }
    Ok(true)
}
