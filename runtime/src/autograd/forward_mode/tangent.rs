//! The tangent of a tensor at a level. A view stores none: its tangent is the view of its base's, so that an in-place
//! change through one view is visible in all.

use std::sync::Arc;

use smallvec::SmallVec;

use super::super::strided::{Step, Strided};
use super::level::{self, Hidden, LevelId, TangentList};
use crate::arg::Arg;
use crate::error::Result;
use crate::tensor::Tensor;

/// The innermost level at which a tensor of the arguments has a tangent.
pub(crate) fn top_level(args: &[Arg<'_>]) -> Option<LevelId> {
    let mut top = None;
    for arg in args {
        arg.for_each_tensor(|tensor| top = top.max(levels(tensor).into_iter().max()));
    }
    top
}

/// The levels at which a tensor has a tangent, without those hidden from this thread.
pub(super) fn levels(tensor: &Tensor) -> SmallVec<[LevelId; 2]> {
    let holder = holder(tensor);
    if !holder.may_have_tangents() {
        return SmallVec::new();
    }
    let list = holder.autograd().tangents.clone();
    list.map_or_else(SmallVec::new, |list| list.visible())
}

/// The tensor that holds the tangents of another: its base, or itself.
fn holder(tensor: &Tensor) -> &Tensor {
    tensor.forward_base().unwrap_or(tensor)
}

/// A tensor's tangent at a level, of the tensor's shape.
///
/// # Errors
/// If there is no memory for it.
pub(super) fn tangent(tensor: &Tensor, level: LevelId) -> Result<Option<Tensor>> {
    let holder = holder(tensor);
    if !holder.may_have_tangents() {
        return Ok(None);
    }
    let list = holder.autograd().tangents.clone();
    let Some(tangent) = list.and_then(|list| list.get(level)) else { return Ok(None) };
    if holder.same(tensor) {
        return Ok(Some(tangent));
    }
    let (base, view) = (holder.layout().clone(), tensor.layout().clone());
    let _hidden = Hidden::new(level);
    Strided { step: Step::Take, base, view }.take(&tangent).map(Some)
}

/// Sets the tangent of a tensor or, for a view, of its base at a level; replaces the former one.
///
/// # Errors
/// If there is no memory, or the program has no operator to add gradients with.
pub(super) fn set_tangent(
    tensor: &Tensor,
    level: LevelId,
    tangent: Option<Tensor>,
    add: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let Some(base) = tensor.forward_base() else {
        own_tangent(tensor, level, tangent);
        return Ok(());
    };
    let old = self::tangent(base, level)?;
    let step = Strided { step: Step::Overwrite, base: base.layout().clone(), view: tensor.layout().clone() };
    let _hidden = Hidden::new(level);
    let cleared = old.map(|old| step.clear(&old)).transpose()?;
    let put = tangent.map(|tangent| step.put(&tangent)).transpose()?;
    let new = match (cleared, put) {
        (Some(cleared), Some(put)) => Some(add(&cleared, &put)?),
        (cleared, put) => cleared.or(put),
    };
    own_tangent(base, level, new);
    Ok(())
}

/// Sets the tangent of a tensor that is not a view at a level; replaces the former one.
pub(super) fn own_tangent(tensor: &Tensor, level: LevelId, tangent: Option<Tensor>) {
    if tangent.is_none() && !tensor.may_have_tangents() {
        return;
    }
    let list = tensor.autograd().tangents.get_or_insert_default().clone();
    level::put(&list, level, tangent);
    tensor.set_may_have_tangents();
}

/// Shares the tangents of a tensor with a new tensor of the same elements.
pub(crate) fn share_tangents(from: &Tensor, to: &Tensor) -> Result<()> {
    if !level::is_active() {
        return Ok(());
    }
    for level in levels(from) {
        own_tangent(to, level, tangent(from, level)?);
    }
    Ok(())
}

/// Attaches a list of tangents that was saved with the tensor's elements.
pub(crate) fn adopt(tensor: &Tensor, list: &Arc<TangentList>) {
    tensor.autograd().tangents = Some(list.clone());
    tensor.set_may_have_tangents();
}

/// A linear step of a tensor and of its tangents.
pub(crate) fn with_tangents(tensor: &Tensor, step: &dyn Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let result = step(tensor)?;
    if level::is_active() {
        for level in levels(tensor) {
            let Some(tangent) = tangent(tensor, level)? else { continue };
            let _hidden = Hidden::new(level);
            own_tangent(&result, level, Some(with_tangents(&tangent, step)?));
        }
    }
    Ok(result)
}
