//! Errors of profiles: the failure, its file, and the cure.

use std::fmt;
use std::path::Path;

/// Why a profile could not be made, read or written.
#[derive(Debug)]
pub struct ProfileError {
    message: String,
    help: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ProfileError {
    pub(crate) fn new(message: impl Into<String>, help: &'static str) -> ProfileError {
        ProfileError { message: message.into(), help: Some(help), source: None }
    }

    /// A file that is no profile, or ends too early.
    pub(crate) fn no_profile(error: serde_json::Error) -> ProfileError {
        ProfileError { help: Some("give a file that `Profile::save` wrote"), ..ProfileError::from(error) }
    }

    /// A file of another version of the format.
    pub(crate) fn of_another_format(found: u32, read: u32) -> ProfileError {
        ProfileError::new(
            format!("the profile's format is {found}, and this program reads {read}"),
            "record it again, or read it with the version of opsmith that wrote it",
        )
    }

    /// A profile that contradicts itself.
    pub(crate) fn damaged(what: String) -> ProfileError {
        ProfileError::new(format!("the profile is damaged: {what}"), "save it again")
    }

    /// The same error, of a file.
    pub(crate) fn in_file(mut self, path: &Path) -> ProfileError {
        self.message = format!("{}: {}", path.display(), self.message);
        self
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.map_or(Ok(()), |help| write!(f, "\n  help: {help}"))
    }
}

impl std::error::Error for ProfileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for ProfileError {
    fn from(error: std::io::Error) -> ProfileError {
        ProfileError { message: error.to_string(), help: None, source: Some(Box::new(error)) }
    }
}

impl From<serde_json::Error> for ProfileError {
    fn from(error: serde_json::Error) -> ProfileError {
        ProfileError { message: error.to_string(), help: None, source: Some(Box::new(error)) }
    }
}
