//! The link of a tensor to the graph of automatic differentiation.

use std::sync::atomic::Ordering;

use super::{CHANGED, DUAL, TRACKED, Tensor, UNRECORDED_VIEW};
use crate::autograd::{self, AutogradMeta};
use crate::shared::Shared;
use crate::sync::BriefGuard;

impl Tensor {
    /// Whether the tensor is part of a graph: it requires a gradient or was computed from one that does.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        match self.base() {
            Some(base) if base.has(CHANGED) => autograd::view_requires_grad(self, base),
            _ => self.has(TRACKED),
        }
    }

    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.0.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// As [`Tensor::requires_grad`], without the base of a view.
    pub(crate) fn is_tracked_itself(&self) -> bool {
        self.has(TRACKED)
    }

    pub(crate) fn set_tracked(&self, tracked: bool) {
        if tracked {
            self.0.flags.fetch_or(TRACKED, Ordering::Relaxed);
        } else {
            self.0.flags.fetch_and(!TRACKED, Ordering::Relaxed);
        }
    }

    /// Marks that the elements were changed while they or the change were tracked.
    pub(crate) fn set_changed(&self) {
        self.0.flags.fetch_or(CHANGED, Ordering::Relaxed);
    }

    /// Whether the tensor has ever had a tangent of its own.
    pub(crate) fn may_have_tangents(&self) -> bool {
        self.has(DUAL)
    }

    pub(crate) fn set_may_have_tangents(&self) {
        self.0.flags.fetch_or(DUAL, Ordering::Relaxed);
    }

    /// Whether the elements were ever changed while they or the change were tracked.
    pub(crate) fn is_changed(&self) -> bool {
        self.has(CHANGED)
    }

    /// Whether the tensor is a view that was made while recording was off.
    pub(crate) fn is_unrecorded_view(&self) -> bool {
        self.has(UNRECORDED_VIEW)
    }

    /// The base of a view; `None` if it is not a view, or was made while recording was off.
    #[inline]
    pub(crate) fn base(&self) -> Option<&Tensor> {
        self.0.base.as_ref().filter(|_| !self.has(UNRECORDED_VIEW))
    }

    /// As [`Tensor::base`], but also for views made while recording was off inside a forward-mode derivative.
    pub(crate) fn forward_base(&self) -> Option<&Tensor> {
        self.0.base.as_ref()
    }

    /// Whether this is the only handle to the tensor.
    pub(crate) fn is_unique(&mut self) -> bool {
        Shared::get_mut(&mut self.0).is_some()
    }

    #[inline]
    pub(crate) fn autograd(&self) -> BriefGuard<'_, AutogradMeta> {
        self.0.autograd.lock()
    }

    /// The autograd data without locking, if this is the only handle; marks the tensor tracked.
    #[inline]
    pub(crate) fn track_unique(&mut self) -> Option<&mut AutogradMeta> {
        let inner = Shared::get_mut(&mut self.0)?;
        *inner.flags.get_mut() |= TRACKED;
        Some(inner.autograd.get_mut())
    }
}
