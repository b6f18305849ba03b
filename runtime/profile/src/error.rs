//! Errors of profiles: what failed, where, and the cure.

use std::fmt;
use std::path::Path;

/// Why a profile could not be made, read or written.
#[derive(Debug)]
pub struct Error {
    message: String,
    help: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, help: &'static str) -> Error {
        Error { message: message.into(), help: Some(help), source: None }
    }

    /// A file that is no profile, or ends too early.
    pub(crate) fn no_profile(error: serde_json::Error) -> Error {
        Error { help: Some("give a file that `Profile::save` wrote"), ..Error::from(error) }
    }

    /// A profile that contradicts itself.
    pub(crate) fn damaged(what: String) -> Error {
        Error::new(format!("the profile is damaged: {what}"), "save it again")
    }

    /// The same error, of a file.
    pub(crate) fn in_file(mut self, path: &Path) -> Error {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.map_or(Ok(()), |help| write!(f, "\n  help: {help}"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error { message: error.to_string(), help: None, source: Some(Box::new(error)) }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error { message: error.to_string(), help: None, source: Some(Box::new(error)) }
    }
}
