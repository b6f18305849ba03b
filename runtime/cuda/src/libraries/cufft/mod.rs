//! cuFFT, NVIDIA's library of Fourier transforms.
//!
//! In: the version of the driver; transforms. Out: the library, if it is used; transforms of streams. Must not know operators.

pub mod api;
pub mod plans;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::Result;

use super::library::{Described, Opened, Searched, file_of};
use super::search::{self, Opens, Origin, Wanted};
use super::{LibraryReport, Requests};
use api::Functions;

pub use plans::Transforms;

/// The library.
pub static DESCRIBED: Described = Described {
    name: "cufft",
    label: "cuFFT",
    wanted: Wanted {
        names: &["libcufft.so", "libcufft.so.12", "libcufft.so.11"],
        variable: "OPSMITH_CUFFT",
        packages: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
    },
    packages: ["nvidia-cufft", "nvidia-cufft-cu12"],
    requests: Requests::new(),
};
/// The oldest version, as the library numbers it: 11.0, of CUDA 12.0.
const OLDEST: c_int = 11_000;

/// The library, loaded.
pub struct Cufft {
    functions: Functions,
    /// Its version, 1000 × major + 100 × minor + patch.
    version: c_int,
    path: PathBuf,
    /// Keeps it loaded.
    _library: Library,
}

impl Opened for Cufft {
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
    type Library = Cufft;

    fn open(&self, name: &Path, origin: Origin) -> std::result::Result<Cufft, String> {
        // SAFETY: the library may be loaded by every program.
        let library = unsafe { Library::open(Some(name), RTLD_NOW | origin.flags()) }
            .map_err(|error| error.to_string())?;
        let functions =
            Functions::of(&library).map_err(|missing| format!("it has no function `{missing}`"))?;
        let mut version = 0;
        // SAFETY: it may be called at any time; the result is a local variable.
        let status = unsafe { (functions.cufftGetVersion)(&mut version) };
        if status != api::SUCCESS {
            return Err(format!("it does not start: {}", api::name(status)));
        }
        if version < OLDEST {
            let (version, oldest) = (dotted(version), dotted(OLDEST));
            return Err(format!("it is of version {version}, and {oldest} is the oldest supported"));
        }
        let path = file_of(functions.cufftGetVersion as *const ()).unwrap_or_else(|| name.to_owned());
        Ok(Cufft { functions, version, path, _library: library })
    }

    fn accept(&self, found: &Cufft) -> std::result::Result<(), String> {
        // Version 11 is that of CUDA 12, 12 that of CUDA 13.
        let major = found.version / 1000 + 1;
        if major <= self.driver_major {
            return Ok(());
        }
        Err(format!("it is of CUDA {major}, newer than the driver, which is of CUDA {}", self.driver_major))
    }
}

fn dotted(version: c_int) -> String {
    format!("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100)
}

fn searched(driver_major: c_int) -> &'static Searched<Cufft> {
    static SEARCHED: OnceLock<Searched<Cufft>> = OnceLock::new();
    SEARCHED.get_or_init(|| search::find(&DESCRIBED.wanted, &Versions { driver_major }))
}

/// The library if it is used, searched for at the first request.
///
/// # Errors
/// If it is demanded and not there, or the file that its variable names cannot be used.
pub fn library(driver_major: c_int) -> Result<Option<&'static Cufft>> {
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
