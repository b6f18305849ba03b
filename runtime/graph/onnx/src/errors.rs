//! Errors that several parts of the reader share.
//!
//! In: problems. Out: errors with their advice.

use std::fmt;

use opsmith_runtime::error::{Error, ErrorKind};

/// A damaged model: the part, and the problem.
pub(crate) fn damaged(part: &str, problem: impl fmt::Display) -> Error {
    Error::io(format!("{part} of the model cannot be read: {problem}")).with_help(
        "the model is damaged or incomplete: export it again, or run `onnx.checker.check_model` on it",
    )
}

/// A part of the format, or of an operator, that this reader does not have.
pub(crate) fn unsupported(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::NotImplemented, format!("{what} is not supported"))
}
