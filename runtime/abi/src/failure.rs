//! Errors as codes, with their text for the thread.
//!
//! In: a function that may fail or panic. Out: a code.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use opsmith_core::abi::Code;
use opsmith_runtime::error::{Error, ErrorKind};

/// An error on its way to the caller.
pub enum Failure {
    /// Of an operator.
    Operator(Error),
    /// A mistake of the calling program.
    Interface(String),
    /// The caller's function failed.
    Refused,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Operator(error)
    }
}

/// The result of a function of the interface.
pub type Outcome<T> = std::result::Result<T, Failure>;

/// A mistake of the calling program.
pub fn mistake<T>(text: impl Into<String>) -> Outcome<T> {
    Err(Failure::Interface(text.into()))
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs a function; keeps the text of its error for the thread.
pub fn guarded(function: impl FnOnce() -> Outcome<()>) -> c_int {
    let (code, text) = match catch_unwind(AssertUnwindSafe(function)) {
        Ok(Ok(())) => return Code::Ok as c_int,
        Ok(Err(Failure::Operator(error))) => (code_of(error.kind()), error.to_string()),
        Ok(Err(Failure::Interface(text))) => (Code::Interface, text),
        Ok(Err(Failure::Refused)) => {
            (Code::Refused, "the caller's function of `opsmith_outputs` failed".to_owned())
        }
        Err(_) => (Code::Defect, "a mistake in opsmith itself, please report it".to_owned()),
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has no text any more.
    _ = TEXT.try_with(|kept| kept.replace(text));
    code as c_int
}

const fn code_of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Shape => Code::Shape,
        ErrorKind::DType => Code::DType,
        ErrorKind::Device => Code::Device,
        ErrorKind::Index => Code::Index,
        ErrorKind::Value => Code::Value,
        ErrorKind::Argument => Code::Argument,
        ErrorKind::Memory => Code::Memory,
        ErrorKind::Aliasing => Code::Aliasing,
        ErrorKind::Autograd => Code::Autograd,
        ErrorKind::NotImplemented => Code::NotImplemented,
        _ => Code::Other,
    }
}

/// The text of the thread's last error.
pub extern "C" fn text() -> *const c_char {
    TEXT.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}
