//! Converts a gradient to the shape, dtype and device of its input.
//!
//! In: a formula's gradient and the input's metadata. Out: the gradient in the input's form. The engine does four
//! conversions, so that formulas need not: summing over broadcast dimensions, the dtype, dropping the imaginary part
//! for a real input, and the move back to the input's device. Any other mismatch is an error of the formula.

use super::context::TensorMeta;
use super::node::Node;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{broadcasts, same_sizes};
use crate::library::Roles;
use crate::op::OpDef;
use crate::tensor::Tensor;
use crate::with_dtype;

/// The gradient of a node's input in that input's shape and dtype, on its device.
///
/// # Errors
/// If the gradient's shape does not broadcast from the input's.
#[inline]
pub(super) fn adjust(
    gradient: Tensor,
    meta: &TensorMeta,
    node: &Node,
    position: usize,
    roles: impl FnOnce() -> Result<&'static Roles>,
) -> Result<Tensor> {
    let fits = same_sizes(gradient.shape(), &meta.sizes)
        && gradient.dtype() == meta.dtype
        && gradient.device() == meta.device;
    if fits { Ok(gradient) } else { convert(gradient, meta, node, position, roles()?) }
}

#[cold]
fn convert(
    mut gradient: Tensor,
    meta: &TensorMeta,
    node: &Node,
    position: usize,
    roles: &Roles,
) -> Result<Tensor> {
    let name = || node.input_name(position);
    if !gradient.dtype().is_differentiable() {
        return Err(Error::dtype(format!(
            "the formula for {} gave a gradient of dtype {}, which cannot be one",
            name(),
            gradient.dtype()
        )));
    }
    if gradient.shape() != &meta.sizes[..] && gradient.numel() == 0 && meta.sizes.contains(&0) {
        // An empty gradient may have another empty shape, as when tensors without elements are joined with others.
        gradient = with_dtype!(gradient.dtype(), T => Tensor::from_slice::<T>(&[], &meta.sizes))?;
    }
    if gradient.shape() != &meta.sizes[..] {
        if !broadcasts(&meta.sizes, gradient.shape()) {
            return Err(Error::shape(format!(
                "the formula for {} gave a gradient of shape {}, but the input has the shape {}",
                name(),
                ShapeText(gradient.shape()),
                ShapeText(&meta.sizes)
            ))
            .with_help("correct the formula: only broadcast dimensions are summed back for it"));
        }
        gradient = (roles.sum_to)(&gradient, &meta.sizes)?;
    }
    if gradient.dtype() != meta.dtype {
        // A cast from complex to real drops the imaginary part, as the gradient of a real input requires.
        gradient = (roles.cast)(&gradient, meta.dtype)?;
    }
    if gradient.device() != meta.device {
        gradient = gradient.to_device(meta.device)?;
    }
    Ok(gradient)
}

/// The roles (accumulate, sum to a shape, cast) that the engine computes with, from an operator's library.
pub(super) fn roles_of(op: &OpDef) -> Result<&'static Roles> {
    op.library.roles().ok_or_else(|| {
        Error::not_implemented(format!(
            "the library `{}` has no operators for the autograd engine to add and convert gradients with",
            op.library.name
        ))
        .with_help("give three operators of the spec `role: accumulate`, `role: sum_to` and `role: cast`, or build on a library that has them")
    })
}
