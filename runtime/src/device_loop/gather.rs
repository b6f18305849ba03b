//! The loop of a call, described instead of launched.
//!
//! In: a call of an operator whose row of the table is a loop over an expression. Out: its source, its variant, and the numbers
//! that it needs. The loop is the one that the call would launch: the operator's own adapter chooses it.

use std::cell::RefCell;

use opsmith_core::DType;
use smallvec::SmallVec;

use super::{Constant, DeviceLoop};
use crate::error::{Error, Result};
use crate::op::{Kernel, KernelCall};

/// The computation of one element of a call's result.
#[derive(Clone, Debug)]
pub enum ElementLoop {
    /// A struct of an operator's source.
    Expression {
        /// The source.
        of: &'static DeviceLoop,
        /// The number of the struct.
        variant: u8,
        /// The dtype that the struct is made for.
        dtype: DType,
        /// The arguments that it reads, in the order of its parameters.
        inputs: SmallVec<[usize; 4]>,
        /// The values of its fields.
        constants: SmallVec<[Constant; 4]>,
    },
    /// An argument, converted to the dtype of the result.
    Conversion(usize),
}

thread_local! {
    /// The loop that the adapter of the call being described asked for; outside of a description `None`.
    static WANTED: RefCell<Option<Option<ElementLoop>>> = const { RefCell::new(None) };
}

/// The loop of a call. Nothing runs, and the memory of its tensors is not accessed.
///
/// # Errors
/// Errors of the adapter, or if it asks for no loop.
///
/// # Safety
/// The kernel is one of the call's operator, and is a loop over an expression.
pub unsafe fn element_loop(kernel: Kernel, call: &KernelCall<'_>) -> Result<ElementLoop> {
    WANTED.set(Some(None));
    // SAFETY: the caller's promise; the adapter asks for its loop, which is described instead.
    let result = unsafe { kernel.run(call) };
    let wanted = WANTED.take().flatten();
    result?;
    wanted.ok_or_else(|| Error::kernel("the kernel of an expression asked for no loop on the device"))
}

/// Takes note of a loop if this thread describes a call; whether it does.
pub(super) fn described(wanted: impl FnOnce() -> ElementLoop) -> bool {
    WANTED.with_borrow_mut(|place| match place {
        Some(place) => {
            *place = Some(wanted());
            true
        }
        None => false,
    })
}
