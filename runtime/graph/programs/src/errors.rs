//! Errors of programs.
//!
//! In: single mistakes. Out: the list of all, and the wording that several readers share.

use std::fmt;

use opsmith_runtime::error::{Error, ErrorKind, Result};

/// Every mistake of a program.
#[derive(Clone, PartialEq, Eq)]
pub struct ProgramErrors(Vec<Error>);

impl ProgramErrors {
    /// An error unless the list is empty.
    pub(crate) fn of(errors: Vec<Error>) -> Result<(), ProgramErrors> {
        if errors.is_empty() { Ok(()) } else { Err(ProgramErrors(errors)) }
    }

    /// The mistakes: of the file first, then of nodes, in their order.
    pub fn errors(&self) -> &[Error] {
        &self.0
    }

    /// One error with all mistakes in its text.
    #[must_use]
    pub fn into_error(self) -> Error {
        let text = self.to_string();
        match <[Error; 1]>::try_from(self.0) {
            Ok([only]) => only,
            Err(_) => Error::new(ErrorKind::Graph, text),
        }
    }
}

impl fmt::Display for ProgramErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "the program has 1 mistake\n\n{only}"),
            errors => {
                write!(f, "the program has {} mistakes", errors.len())?;
                errors
                    .iter()
                    .enumerate()
                    .try_for_each(|(number, error)| write!(f, "\n\n{}. {error}", number + 1))
            }
        }
    }
}

impl fmt::Debug for ProgramErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ProgramErrors {}

/// A damaged archive: the part, and the problem.
pub(crate) fn damaged(part: &str, problem: impl fmt::Display) -> Error {
    Error::io(format!("`{part}` of the archive cannot be read: {problem}"))
        .with_help("the archive is damaged or incomplete: save the program again with `torch.export.save`")
}

/// A part of the format that this reader does not have.
pub(crate) fn unsupported(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::NotImplemented, format!("{what} is not supported"))
}
