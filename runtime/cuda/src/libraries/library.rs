//! The common part of libraries: a description, the loader, and the answer of a search.
//!
//! In: a library's names, versions and table of functions. Out: the library, opened, if it is used, its state, or an error with
//! advice.

use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::{Error, Result};

use super::search::{self, NotFound, Opens, Origin, Wanted};
use super::{Choice, LibraryReport, LibraryState, Requests, choice};

/// A version: major, minor, patch.
pub type Version = [usize; 3];

/// The text of a version.
pub fn dotted([major, minor, patch]: Version) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The version of CUDA, of its number 1000 × major + 10 × minor.
pub fn toolkit_of(number: usize) -> (usize, Option<usize>) {
    (number / 1000, Some(number % 1000 / 10))
}

/// The functions of a library.
pub trait Table: Sized + Send + Sync + 'static {
    /// Looks up every function.
    ///
    /// # Errors
    /// The name that is missing.
    fn of(library: &Library) -> std::result::Result<Self, &'static str>;

    /// The address of one of them, by which the file is found.
    fn address(&self) -> *const ();

    /// The version of the library, and that of the CUDA that it was made for, its minor version if that is known.
    ///
    /// # Errors
    /// The reason why the library does not start.
    fn versions(&self) -> std::result::Result<(Version, (usize, Option<usize>)), String>;
}

/// A library, loaded.
pub struct Loaded<F> {
    /// Its functions.
    pub functions: F,
    /// Its version.
    pub version: Version,
    /// The version of the CUDA that it was made for, its minor version if that is known.
    pub toolkit: (usize, Option<usize>),
    /// Its file.
    pub path: PathBuf,
    /// Keeps it loaded.
    _library: Library,
}

/// A library of the vendor.
pub struct Described<F: 'static> {
    /// Its name in `OPSMITH_CUDA_LIBRARIES`.
    pub name: &'static str,
    /// Its name in messages.
    pub label: &'static str,
    /// Files and places.
    pub wanted: Wanted,
    /// Python packages of CUDA 13 and 12.
    pub packages: [&'static str; 2],
    /// The oldest version that is used.
    pub oldest: Version,
    /// The newest major version that is used, where later ones have another interface.
    pub newest: Option<usize>,
    /// Counts of requests.
    pub requests: Requests,
    /// The answer of the search, which is done once a process.
    pub searched: OnceLock<std::result::Result<Loaded<F>, NotFound>>,
}

/// Libraries of a description that a driver of this major version serves.
struct Served<F: 'static> {
    described: &'static Described<F>,
    driver_major: c_int,
}

impl<F: Table> Opens for Served<F> {
    type Library = Loaded<F>;

    fn open(&self, name: &Path, origin: Origin) -> std::result::Result<Loaded<F>, String> {
        self.described.open(name, origin)
    }

    fn accept(&self, found: &Loaded<F>) -> std::result::Result<(), String> {
        let (major, minor) = found.toolkit;
        if c_int::try_from(major).is_ok_and(|major| major <= self.driver_major) {
            return Ok(());
        }
        let minor = minor.map_or_else(String::new, |minor| format!(".{minor}"));
        let driver = self.driver_major;
        Err(format!("it is of CUDA {major}{minor}, newer than the driver, which is of CUDA {driver}"))
    }
}

impl<F: Table> Described<F> {
    /// Opens a library of one of the versions that are used.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn open(&self, name: &Path, origin: Origin) -> std::result::Result<Loaded<F>, String> {
        // SAFETY: the library may be loaded by every program.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | origin.flags()) }
            .map_err(|error| error.to_string())?;
        let functions = F::of(&library).map_err(|missing| format!("it has no function `{missing}`"))?;
        let (version, toolkit) =
            functions.versions().map_err(|reason| format!("it does not start: {reason}"))?;
        let is_of = format!("it is of version {}", dotted(version));
        if version < self.oldest {
            return Err(format!("{is_of}, and {} is the oldest supported", dotted(self.oldest)));
        }
        if let Some(newest) = self.newest.filter(|newest| version[0] > *newest) {
            return Err(format!("{is_of}, and {newest} is the newest supported"));
        }
        let path = file_of(functions.address()).unwrap_or_else(|| name.to_owned());
        Ok(Loaded { functions, version, toolkit, path, _library: library })
    }

    fn search(&'static self, driver_major: c_int) -> &'static std::result::Result<Loaded<F>, NotFound> {
        self.searched.get_or_init(|| search::find(&self.wanted, &Served { described: self, driver_major }))
    }

    /// The library, searched for at the first request; `None` if it is not allowed, or not there and not demanded.
    ///
    /// # Errors
    /// If it is demanded and not there, or the file that its variable names cannot be used.
    pub fn used(&'static self, driver_major: c_int) -> Result<Option<&'static Loaded<F>>> {
        let choice = choice(self.name)?;
        if choice == Choice::Off {
            return Ok(None);
        }
        match self.search(driver_major) {
            Ok(found) => Ok(Some(found)),
            Err(NotFound::Nowhere(_)) if choice == Choice::IfFound => Ok(None),
            Err(why) => Err(self.not_found(why)),
        }
    }

    /// The state of the library in this process, with its counts.
    ///
    /// # Errors
    /// If the variable of libraries has another name.
    pub fn report(&'static self, driver_major: c_int) -> Result<LibraryReport> {
        let state = match choice(self.name)? {
            Choice::Off => LibraryState::Off,
            _ => match self.search(driver_major) {
                Ok(found) => LibraryState::Found { path: found.path.clone(), version: dotted(found.version) },
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
fn file_of(function: *const ()) -> Option<PathBuf> {
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

/// Opens the real library, in the file that its variable names, and prints its version.
#[cfg(test)]
#[track_caller]
pub fn open_real<F: Table>(described: &'static Described<F>) -> Loaded<F> {
    let path = search::named(&described.wanted).expect("the file of the library");
    let found = described.open(&path, Origin::File).unwrap_or_else(|reason| panic!("{reason}"));
    assert!(found.path.is_file() && found.toolkit.0 >= 12, "{:?}", found.toolkit);
    println!(
        "{} {} of CUDA {:?}: {}",
        described.label,
        dotted(found.version),
        found.toolkit,
        found.path.display()
    );
    found
}
