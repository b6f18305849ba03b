//! Leaves: tensors declared to require a gradient, and the gradients they hold.

use super::attach;
use crate::error::{Error, Result};
use crate::library::Roles;
use crate::tensor::Tensor;
use crate::trace_hook;

/// Adds to the stored gradient of a tensor, usually a leaf.
pub(super) fn accumulate(
    leaf: &Tensor,
    gradient: Option<Tensor>,
    mut roles: impl FnMut() -> Result<&'static Roles>,
) -> Result<()> {
    let Some(mut gradient) = gradient else { return Ok(()) };
    if trace_hook::is_tracing() && !leaf.storage().is_meta() {
        return Err(Error::graph(
            "backward in a traced function would leave a gradient without elements in a tensor from outside it",
        )
        .with_help("ask for the gradients with `grad`, and return them or use them inside"));
    }
    let mut owned = false;
    // The lock is not held while an operator adds; if another thread stored a sum in the meantime, add to that one.
    loop {
        let held = leaf.autograd().grad.clone();
        match held {
            None => {
                if !std::mem::replace(&mut owned, true) {
                    gradient = own(gradient)?;
                }
                let mut meta = leaf.autograd();
                if meta.grad.is_none() {
                    meta.grad = Some(gradient);
                    return Ok(());
                }
            }
            Some(held) => {
                let sum = (roles()?.accumulate)(&held, &gradient)?;
                let mut meta = leaf.autograd();
                if meta.grad.as_ref().is_some_and(|now| now.same(&held)) {
                    let replaced = meta.grad.replace(sum);
                    drop(meta);
                    drop(replaced);
                    return Ok(());
                }
            }
        }
    }
}

/// The gradient in memory of its own: a leaf's gradient may be written in place, which must not change another leaf's
/// gradient or a tensor of the user.
fn own(mut gradient: Tensor) -> Result<Tensor> {
    let bytes = gradient.numel() as usize * gradient.dtype().size();
    let alone = gradient.is_unique()
        && gradient.storage().references() == 1
        && gradient.storage().bytes() == bytes
        && !gradient.layout().has_internal_overlap();
    if alone {
        return Ok(gradient);
    }
    let mut copy = gradient.cast_untracked(gradient.dtype())?;
    // A copy has the same derivative as its original, so it gets the original's edge.
    let edge = gradient.requires_grad().then(|| gradient.autograd().edge.clone()).flatten();
    if let Some(edge) = edge {
        attach(&mut copy, edge);
    }
    super::forward_mode::share_tangents(&gradient, &copy)?;
    Ok(copy)
}
