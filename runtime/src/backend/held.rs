//! Work that a thread holds back: it is submitted before other work of the thread.
//!
//! In: the function that submits it. Out: a call of the function, where other work begins. Must not know the work.

use std::cell::Cell;

use crate::error::Result;

/// A function that submits the work that its thread holds back.
type Submit = fn() -> Result<()>;

thread_local! {
    static SUBMIT: Cell<Option<Submit>> = const { Cell::new(None) };
}

/// Sets the function that submits the work that this thread holds back from now on; `None` if it holds none.
pub fn hold_back(submit: Option<Submit>) {
    SUBMIT.set(submit);
}

/// Whether this thread holds work back.
#[inline]
pub fn holds_back() -> bool {
    SUBMIT.try_with(Cell::get).is_ok_and(|submit| submit.is_some())
}

/// Submits the work that this thread holds back.
///
/// # Errors
/// Errors of the work.
#[inline]
pub fn submit_held() -> Result<()> {
    match SUBMIT.try_with(Cell::get) {
        Ok(Some(submit)) => submit(),
        _ => Ok(()),
    }
}
