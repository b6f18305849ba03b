//! A convolution of the interface of devices, submitted to the library.
//!
//! In: a convolution. Out: work of the stream, and whether the library computes it. Must not know operators.

use opsmith_runtime::Result;
use opsmith_runtime::backend::{ConvolutionPart, LibraryConvolution};
use opsmith_runtime::internals::{Span, open_span};

use super::workspace::Workspace;
use crate::launch;
use crate::libraries::cublaslt::allows_tf32;
use crate::libraries::cudnn::DESCRIBED;
use crate::libraries::cudnn::plans::Operands;
use crate::libraries::cudnn::problem::Key;
use crate::movement::{self, Place};

/// Submits a convolution, and returns whether the library computes it; if not, nothing was written.
///
/// # Errors
/// If the library is demanded and not there, or errors of the library or the device.
///
/// # Safety
/// As [`convolution`](opsmith_runtime::backend::DeviceRuntime::convolution).
pub unsafe fn convolution(place: Place, convolution: &LibraryConvolution<'_>) -> Result<bool> {
    let (stream, context) = (place.stream, place.stream.context);
    let Some(library) = DESCRIBED.used(context.driver.version / 1000)? else { return Ok(false) };
    let Some(key) = Key::of(convolution, allows_tf32()) else { return Ok(DESCRIBED.requests.note(false)) };
    let convolutions = place.device.convolutions(library)?;
    let _entered = context.enter()?;
    let Some(plan) = convolutions.plan(&key)? else { return Ok(DESCRIBED.requests.note(false)) };
    let _span = open_span(|| Span::Phase {
        name: match convolution.part {
            ConvolutionPart::Output => "cudnnConvolutionForward",
            ConvolutionPart::Image => "cudnnConvolutionBackwardData",
            ConvolutionPart::Weight => "cudnnConvolutionBackwardFilter",
        },
    });
    if let Some(added) = convolution.added {
        // SAFETY: the caller's promise: the addend has the sizes of the result, and does not overlap it.
        unsafe { movement::convert(place, *convolution.result(), added)? };
    }
    let workspace = Workspace::new(place, plan.workspace)?;
    let operands = Operands {
        image: convolution.image.start,
        weight: convolution.weight.start,
        output: convolution.output.start,
    };
    let adds = convolution.added.is_some();
    // SAFETY: the caller's promise; the working memory is released after this request.
    unsafe { convolutions.submit(&plan, operands, adds, workspace.start(), stream.raw())? };
    drop(workspace);
    if launch::is_synchronous() {
        stream.synchronize().map_err(|error| error.with_note("in a convolution of cuDNN"))?;
    }
    Ok(DESCRIBED.requests.note(true))
}
