//! The part of a tensor that an out form may replace: memory and layout.
//!
//! A tensor without elements that a result is written into becomes one of the result's shape, for all who have a
//! handle to it. Others may be looking at the old shape meanwhile, so that it stays where it is until the last
//! handle goes: later parts hang behind the first, and the newest counts.

use std::sync::atomic::{AtomicPtr, Ordering};

use super::Tensor;
use crate::layout::{Dims, Layout, write_contiguous_strides};
use crate::storage::Storage;

/// Memory and layout of a tensor.
pub(super) struct Body {
    pub storage: Storage,
    pub layout: Layout,
    pub numel: i64,
    pub contiguous: bool,
    /// The part before this one, from when the tensor was replaced.
    earlier: *mut Body,
}

// SAFETY: the earlier part belongs to this one, and is only freed with it.
unsafe impl Send for Body {}
// SAFETY: as above; nothing of a part changes while it is shared.
unsafe impl Sync for Body {}

impl Body {
    #[inline]
    pub fn new(storage: Storage, layout: Layout) -> Body {
        let (numel, contiguous) = (layout.numel(), layout.is_contiguous());
        Body { storage, layout, numel, contiguous, earlier: std::ptr::null_mut() }
    }

    /// Writes a row-major part over memory for as many elements, field by field where it stays.
    ///
    /// # Safety
    /// The place is valid for writes; nothing of it was written before.
    #[inline]
    pub unsafe fn write_contiguous(place: *mut Body, storage: Storage, sizes: &[i64], numel: i64) {
        // SAFETY: the caller's promise; every field is written exactly once.
        unsafe {
            (&raw mut (*place).storage).write(storage);
            (&raw mut (*place).layout.sizes).write(Dims::from_slice(sizes));
            (&raw mut (*place).layout.strides).write(Dims::new());
            write_contiguous_strides(sizes, &mut (*place).layout.strides);
            (&raw mut (*place).layout.offset).write(0);
            (&raw mut (*place).numel).write(numel);
            (&raw mut (*place).contiguous).write(true);
            (&raw mut (*place).earlier).write(std::ptr::null_mut());
        }
    }

    /// Shows what another part shows.
    pub fn copy_from(&mut self, other: &Body) {
        self.storage.clone_from(&other.storage);
        self.layout.clone_from(&other.layout);
        (self.numel, self.contiguous) = (other.numel, other.contiguous);
    }
}

impl Drop for Body {
    #[inline]
    fn drop(&mut self) {
        let mut earlier = self.earlier;
        while !earlier.is_null() {
            // SAFETY: parts come from boxes, each belongs to the one after it, and this one was the last.
            let mut part = unsafe { Box::from_raw(earlier) };
            earlier = std::mem::replace(&mut part.earlier, std::ptr::null_mut());
        }
    }
}

/// The later parts of a tensor that was replaced; null for almost all.
#[derive(Default)]
pub(super) struct Later(AtomicPtr<Body>);

impl Later {
    /// The newest part, if there is one.
    #[inline]
    pub fn newest(&self) -> Option<&Body> {
        // SAFETY: a part that was put here lives as long as this does.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Makes the newest part the first one, which nobody else can be looking at.
    pub fn take_into(&mut self, first: &mut Body) {
        let newest = std::mem::replace(self.0.get_mut(), std::ptr::null_mut());
        if !newest.is_null() {
            // SAFETY: the part came from a box, and nobody can look at it any more.
            let newest = unsafe { Box::from_raw(newest) };
            first.copy_from(&newest);
        }
    }

    /// Puts a part before all others.
    fn add(&self, body: Body) {
        let new = Box::into_raw(Box::new(body));
        let mut known = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: nobody else has the new part yet.
            unsafe { (*new).earlier = known };
            match self.0.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => known = other,
            }
        }
    }
}

impl Drop for Later {
    #[inline]
    fn drop(&mut self) {
        let newest = *self.0.get_mut();
        if !newest.is_null() {
            // SAFETY: the part came from a box, and nobody can look at it any more.
            drop(unsafe { Box::from_raw(newest) });
        }
    }
}

impl Tensor {
    /// Becomes another tensor of its dtype and device for everybody who has a handle, as an out form makes of a
    /// tensor without elements.
    pub(crate) fn become_like(&self, other: &Tensor) {
        debug_assert!(self.dtype() == other.dtype() && self.device() == other.device());
        self.0.later.add(Body::new(other.storage().clone(), other.layout().clone()));
    }
}
