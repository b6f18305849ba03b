//! cuDNN, NVIDIA's library for neural networks, of which convolutions are used.
//!
//! In: the version of the driver; convolutions. Out: the library, if it is used; convolutions of streams. Must not know operators.

mod api;
pub mod plans;
pub mod problem;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::Result;

use super::library::{Described, Opened, Searched, file_of};
use super::search::{self, Opens, Origin, Wanted};
use super::{LibraryReport, Requests};
use api::Functions;

pub use plans::Convolutions;

/// The library.
pub static DESCRIBED: Described = Described {
    name: "cudnn",
    label: "cuDNN",
    wanted: Wanted {
        names: &["libcudnn.so", "libcudnn.so.9"],
        variable: "OPSMITH_CUDNN",
        packages: &["nvidia/cudnn/lib"],
    },
    packages: ["nvidia-cudnn-cu13", "nvidia-cudnn-cu12"],
    requests: Requests::new(),
};
/// The major version, whose interface is used.
const MAJOR: usize = 9;

/// The library, loaded.
pub struct Cudnn {
    functions: Functions,
    /// Its version, 10000 × major + 100 × minor + patch.
    version: usize,
    /// That of the CUDA that it was made for, 1000 × major + 10 × minor.
    toolkit: usize,
    path: PathBuf,
    /// Keeps it loaded.
    _library: Library,
}

impl Opened for Cudnn {
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn version(&self) -> String {
        dotted(self.version)
    }
}

/// Libraries that a driver of this major version serves.
struct Versions {
    driver_major: c_int,
}

impl Opens for Versions {
    type Library = Cudnn;

    fn open(&self, name: &Path, origin: Origin) -> std::result::Result<Cudnn, String> {
        // SAFETY: the library may be loaded by every program.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | origin.flags()) }
            .map_err(|error| error.to_string())?;
        let functions =
            Functions::of(&library).map_err(|missing| format!("it has no function `{missing}`"))?;
        // SAFETY: both may be called at any time.
        let (version, toolkit) =
            unsafe { ((functions.cudnnGetVersion)(), (functions.cudnnGetCudartVersion)()) };
        if version / 10_000 != MAJOR {
            return Err(format!("it is of version {}, and {MAJOR} is the one supported", dotted(version)));
        }
        let path = file_of(functions.cudnnGetVersion as *const ()).unwrap_or_else(|| name.to_owned());
        Ok(Cudnn { functions, version, toolkit, path, _library: library })
    }

    fn accept(&self, found: &Cudnn) -> std::result::Result<(), String> {
        let major = c_int::try_from(found.toolkit / 1000).unwrap_or(c_int::MAX);
        if major <= self.driver_major {
            return Ok(());
        }
        Err(format!("it is of CUDA {major}, newer than the driver, which is of CUDA {}", self.driver_major))
    }
}

fn dotted(version: usize) -> String {
    // Before version 9 the major number counted thousands.
    let unit = if version < 90_000 { 1000 } else { 10_000 };
    format!("{}.{}.{}", version / unit, version % unit / 100, version % 100)
}

fn searched(driver_major: c_int) -> &'static Searched<Cudnn> {
    static SEARCHED: OnceLock<Searched<Cudnn>> = OnceLock::new();
    SEARCHED.get_or_init(|| search::find(&DESCRIBED.wanted, &Versions { driver_major }))
}

/// The library if it is used, searched for at the first request.
///
/// # Errors
/// If it is demanded and not there, or the file that its variable names cannot be used.
pub fn library(driver_major: c_int) -> Result<Option<&'static Cudnn>> {
    DESCRIBED.used(|| searched(driver_major))
}

/// The state of the library in this process.
///
/// # Errors
/// If the variable of libraries has another name.
pub fn report(driver_major: c_int) -> Result<LibraryReport> {
    DESCRIBED.report(|| searched(driver_major))
}

#[cfg(test)]
mod tests;
