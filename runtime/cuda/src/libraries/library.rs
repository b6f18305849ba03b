//! The common part of libraries: a description, and the answers of a search.
//!
//! In: a library's names, and the search for it. Out: the library if it is used, its state, or an error with advice.

use std::ffi::{CStr, c_int, c_void};
use std::path::PathBuf;

use opsmith_runtime::{Error, Result};

use super::search::{NotFound, Wanted};
use super::{Choice, LibraryReport, LibraryState, Requests, choice};

/// A library of the vendor.
pub struct Described {
    /// Its name in `OPSMITH_CUDA_LIBRARIES`.
    pub name: &'static str,
    /// Its name in messages.
    pub label: &'static str,
    /// Files and places.
    pub wanted: Wanted,
    /// Python packages of CUDA 13 and 12.
    pub packages: [&'static str; 2],
    /// Counts of requests.
    pub requests: Requests,
}

/// A library that was opened.
pub trait Opened {
    /// Its file.
    fn path(&self) -> PathBuf;
    /// Its version in text.
    fn version(&self) -> String;
}

/// The answer of a search.
pub type Searched<L> = std::result::Result<L, NotFound>;

impl Described {
    /// The library; `None` if it is not allowed, or not there and not demanded. `search` is asked unless it is not allowed.
    ///
    /// # Errors
    /// If it is demanded and not there, or the file that its variable names cannot be used.
    pub fn used<L>(&self, search: impl FnOnce() -> &'static Searched<L>) -> Result<Option<&'static L>> {
        let choice = choice(self.name)?;
        if choice == Choice::Off {
            return Ok(None);
        }
        match search() {
            Ok(found) => Ok(Some(found)),
            Err(NotFound::Nowhere(_)) if choice == Choice::IfFound => Ok(None),
            Err(why) => Err(self.not_found(why)),
        }
    }

    /// The state of the library in this process, with its counts.
    ///
    /// # Errors
    /// If the variable of libraries has another name.
    pub fn report<L: Opened + 'static>(
        &self,
        search: impl FnOnce() -> &'static Searched<L>,
    ) -> Result<LibraryReport> {
        let state = match choice(self.name)? {
            Choice::Off => LibraryState::Off,
            _ => match search() {
                Ok(found) => LibraryState::Found { path: found.path(), version: found.version() },
                Err(NotFound::Nowhere(places)) => LibraryState::Missing { places: places.clone() },
                Err(NotFound::Named { path, reason }) => {
                    LibraryState::Missing { places: vec![format!("{}: {reason}", path.display())] }
                }
            },
        };
        Ok(self.requests.report(self.name, state))
    }

    #[cold]
    fn not_found(&self, why: &NotFound) -> Error {
        let Described { name, label, wanted, packages: [package, older], .. } = self;
        let variable = wanted.variable;
        match why {
            NotFound::Named { path, reason } => {
                Error::device(format!("{variable} names {}, which cannot be used: {reason}", path.display()))
                    .with_help(format!(
                        "name the file {}, or unset the variable",
                        wanted.names[1..].join(" or ")
                    ))
            }
            NotFound::Nowhere(places) => {
                let error = Error::device(format!(
                    "OPSMITH_CUDA_LIBRARIES demands {name}, and no {label} was found ({})",
                    wanted.names[0]
                ));
                let noted = |error: Error, place: &String| error.with_note(format!("searched: {place}"));
                places.iter().fold(error, noted).with_help(format!(
                    "pip install {package} ({older} for a driver of CUDA 12), name the library in {variable}, or unset \
                     OPSMITH_CUDA_LIBRARIES"
                ))
            }
        }
    }
}

/// A description that belongs to a library.
pub struct Description {
    /// The library's handle of it.
    pub raw: *mut c_void,
    /// The library's function that ends it.
    pub destroy: unsafe extern "C" fn(*mut c_void) -> c_int,
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: the library made it, and it is not used again.
        _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// The file of a function.
pub fn file_of(function: *const ()) -> Option<PathBuf> {
    // SAFETY: a structure of numbers and addresses, for which zeros are values.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the result is a local variable.
    let is_known = unsafe { libc::dladdr(function.cast(), &mut found) } != 0;
    if !is_known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a library that stays loaded, which ends with a zero.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(name.to_string_lossy().into_owned()))
}
