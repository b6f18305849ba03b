//! cuBLASLt, NVIDIA's library of matrix products.
//!
//! In: the version of the driver; products. Out: the library, if it is allowed and there; products of streams. Must not know
//! operators.

mod api;
mod problem;
mod product;
mod products;

use std::ffi::{CStr, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::{Error, Result};

use super::search::{self, NotFound, Opens, Origin, Wanted};
use super::{Choice, LibraryState, Requests, choice};
use api::Functions;

pub use product::product;
pub use products::Products;

/// The library's name in `OPSMITH_CUDA_LIBRARIES`.
pub const NAME: &str = "cublaslt";
/// Counts of products.
pub static REQUESTS: Requests = Requests::new();

const WANTED: Wanted = Wanted {
    names: &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
    variable: "OPSMITH_CUBLASLT",
    packages: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
};
/// The oldest version, as the library numbers it: 12.0.
const OLDEST: usize = 120_000;

/// The library, loaded.
pub struct CublasLt {
    functions: Functions,
    /// Its version, 10000 × major + 100 × minor + patch.
    version: usize,
    /// That of the CUDA that it was made for, 1000 × major + 10 × minor.
    toolkit: usize,
    path: PathBuf,
    /// Keeps it loaded.
    _library: Library,
}

/// Libraries that a driver of this major version serves.
struct Versions {
    driver_major: c_int,
}

impl Opens for Versions {
    type Library = CublasLt;

    fn open(&self, name: &Path, origin: Origin) -> std::result::Result<CublasLt, String> {
        // SAFETY: the library may be loaded by every program.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | origin.flags()) }
            .map_err(|error| error.to_string())?;
        let functions =
            Functions::of(&library).map_err(|missing| format!("it has no function `{missing}`"))?;
        // SAFETY: both may be called at any time.
        let (version, toolkit) =
            unsafe { ((functions.cublasLtGetVersion)(), (functions.cublasLtGetCudartVersion)()) };
        if version < OLDEST {
            return Err(format!(
                "it is of version {}, and {} is the oldest supported",
                dotted(version),
                dotted(OLDEST)
            ));
        }
        let path = file_of(functions.cublasLtGetVersion as *const ()).unwrap_or_else(|| name.to_owned());
        Ok(CublasLt { functions, version, toolkit, path, _library: library })
    }

    fn accept(&self, found: &CublasLt) -> std::result::Result<(), String> {
        let major = c_int::try_from(found.toolkit / 1000).unwrap_or(c_int::MAX);
        if major <= self.driver_major {
            return Ok(());
        }
        Err(format!(
            "it is of CUDA {major}.{}, newer than the driver, which is of CUDA {}",
            found.toolkit % 1000 / 10,
            self.driver_major
        ))
    }
}

fn dotted(version: usize) -> String {
    // Before version 12 the major number counted thousands.
    let unit = if version < 100_000 { 1000 } else { 10_000 };
    format!("{}.{}.{}", version / unit, version % unit / 100, version % 100)
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

fn searched(driver_major: c_int) -> &'static std::result::Result<CublasLt, NotFound> {
    static SEARCHED: OnceLock<std::result::Result<CublasLt, NotFound>> = OnceLock::new();
    SEARCHED.get_or_init(|| search::find(&WANTED, &Versions { driver_major }))
}

/// The library; `None` if it is not allowed, or not there and not demanded. It is searched for at the first request.
///
/// # Errors
/// If it is demanded and not there, or the file that its variable names cannot be used.
fn library(driver_major: c_int) -> Result<Option<&'static CublasLt>> {
    let choice = choice(NAME)?;
    if choice == Choice::Off {
        return Ok(None);
    }
    match searched(driver_major) {
        Ok(found) => Ok(Some(found)),
        Err(NotFound::Nowhere(_)) if choice == Choice::IfFound => Ok(None),
        Err(why) => Err(not_found(why)),
    }
}

/// The state of the library in this process.
///
/// # Errors
/// If the variable of libraries has another name.
pub fn state(driver_major: c_int) -> Result<LibraryState> {
    if choice(NAME)? == Choice::Off {
        return Ok(LibraryState::Off);
    }
    Ok(match searched(driver_major) {
        Ok(found) => LibraryState::Found { path: found.path.clone(), version: dotted(found.version) },
        Err(NotFound::Nowhere(places)) => LibraryState::Missing { places: places.clone() },
        Err(NotFound::Named { path, reason }) => {
            LibraryState::Missing { places: vec![format!("{}: {reason}", path.display())] }
        }
    })
}

#[cold]
fn not_found(why: &NotFound) -> Error {
    match why {
        NotFound::Named { path, reason } => Error::device(format!(
            "OPSMITH_CUBLASLT names {}, which cannot be used: {reason}",
            path.display()
        ))
        .with_help("name the file libcublasLt.so.13 or libcublasLt.so.12, or unset the variable"),
        NotFound::Nowhere(places) => {
            let error = Error::device(
                "OPSMITH_CUDA_LIBRARIES demands cublaslt, and no cuBLASLt was found (libcublasLt.so)",
            );
            let noted = |error: Error, place: &String| error.with_note(format!("searched: {place}"));
            places.iter().fold(error, noted).with_help(
                "pip install nvidia-cublas (nvidia-cublas-cu12 for a driver of CUDA 12), name the library in \
                 OPSMITH_CUBLASLT, or unset OPSMITH_CUDA_LIBRARIES",
            )
        }
    }
}

fn tf32() -> &'static AtomicBool {
    static ALLOWED: OnceLock<AtomicBool> = OnceLock::new();
    ALLOWED
        .get_or_init(|| AtomicBool::new(std::env::var("OPSMITH_CUDA_TF32").is_ok_and(|value| value == "1")))
}

/// Whether products of `float32` by a library may round their factors to TF32, which has ten bits of a fraction instead of 23,
/// and is faster. They may not at first, unless the variable `OPSMITH_CUDA_TF32` is `1`. The kernels of opsmith never do.
pub fn allows_tf32() -> bool {
    tf32().load(Ordering::Relaxed)
}

/// Sets [`allows_tf32`] for the calls that follow, of all threads.
pub fn set_allow_tf32(allow: bool) {
    tf32().store(allow, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
