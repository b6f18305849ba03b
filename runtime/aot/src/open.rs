//! Inference of calls of which sizes, or even numbers of dimensions, are unknown.
//!
//! In: arguments, and the sizes of each tensor as the interface writes them: −1 for an unknown one, [−2] for an unknown
//! rank. Out: dtypes of all outputs, and their sizes as far as the operator's own inference says them. Where it cannot
//! say anything without numbers, nothing is known of the sizes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use opsmith_core::DType;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::layout::Dims;
use opsmith_runtime::op::OpDef;

use super::infer::{Inference, OutputShapes, UNKNOWN_RANK};
use super::instance::{Shape, Slot};
use super::kernel::Kernel;

/// Sizes and dtype of each output. `sizes` are those of the tensors in `args` that are there, in order.
///
/// # Errors
/// If the kernel's library cannot be had, no combination of dtypes fits, or nothing says how many outputs there are.
pub(super) fn infer(
    kernel: &Kernel,
    op: &OpDef,
    args: &[Arg<'_>],
    sizes: Vec<Dims>,
) -> Result<Vec<(Dims, DType)>> {
    let mut shape = Shape::of(op.schema.args, args, &[]);
    let there = shape.slots.iter_mut().filter(|slot| slot.dtype.is_some());
    there.zip(sizes).for_each(|(slot, sizes)| slot.sizes = sizes);
    kernel.choose(&mut shape.slots)?;
    // The function that computes shapes is a user's, and may take it for granted that there are some.
    let inferred = catch_unwind(AssertUnwindSafe(|| kernel.infer_slots(&shape)));
    let known = |slot: Slot| (slot.sizes, slot.dtype.unwrap_or(DType::F32));
    match inferred {
        Ok(Ok(outs)) => Ok(outs.into_iter().map(known).collect()),
        Ok(Err(error)) => unknown(kernel, &shape, Some(error)),
        Err(_) => unknown(kernel, &shape, None),
    }
}

/// Outputs of which only the dtypes are known.
fn unknown(kernel: &Kernel, shape: &Shape, why: Option<Error>) -> Result<Vec<(Dims, DType)>> {
    if kernel.signature.dynamic_output {
        return Err(why.unwrap_or_else(|| Error::shape("how many outputs there are depends on sizes")));
    }
    let library = || kernel.library(&mut kernel.state());
    if matches!(kernel.shapes, OutputShapes::Library) && !kernel.options.sandbox {
        library()?;
    }
    let count = kernel.signature.outputs.len();
    let inference = Inference {
        signature: &kernel.signature,
        function: &kernel.function,
        shapes: &OutputShapes::Constant(vec![vec![UNKNOWN_RANK]; count]),
        dtypes: &kernel.dtypes,
    };
    let attributes = kernel.signature.attributes(&shape.at_call);
    let outs = inference.outputs(&shape.slots, &attributes, &mut || library())?;
    Ok(outs.into_iter().map(|slot| (slot.sizes, slot.dtype.unwrap_or(DType::F32))).collect())
}
