//! cuBLASLt, NVIDIA's library of matrix products.
//!
//! In: the version of the driver; products. Out: the library, if it is allowed and there; products of streams. Must not know
//! operators.

mod api;
pub mod problem;
mod products;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library, RTLD_NOW};
use opsmith_runtime::Result;

use super::library::{Described, Opened, Searched, file_of};
use super::search::{self, Opens, Origin, Wanted};
use super::{LibraryReport, Requests};
use api::Functions;

pub use products::Products;

/// The library.
pub static DESCRIBED: Described = Described {
    name: "cublaslt",
    label: "cuBLASLt",
    wanted: Wanted {
        names: &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
        variable: "OPSMITH_CUBLASLT",
        packages: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
    },
    packages: ["nvidia-cublas", "nvidia-cublas-cu12"],
    requests: Requests::new(),
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

impl Opened for CublasLt {
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

fn searched(driver_major: c_int) -> &'static Searched<CublasLt> {
    static SEARCHED: OnceLock<Searched<CublasLt>> = OnceLock::new();
    SEARCHED.get_or_init(|| search::find(&DESCRIBED.wanted, &Versions { driver_major }))
}

/// The library if it is used, searched for at the first request.
///
/// # Errors
/// If it is demanded and not there, or the file that its variable names cannot be used.
pub fn library(driver_major: c_int) -> Result<Option<&'static CublasLt>> {
    DESCRIBED.used(|| searched(driver_major))
}

/// The state of the library in this process.
///
/// # Errors
/// If the variable of libraries has another name.
pub fn report(driver_major: c_int) -> Result<LibraryReport> {
    DESCRIBED.report(|| searched(driver_major))
}

fn tf32() -> &'static AtomicBool {
    static ALLOWED: OnceLock<AtomicBool> = OnceLock::new();
    ALLOWED
        .get_or_init(|| AtomicBool::new(std::env::var("OPSMITH_CUDA_TF32").is_ok_and(|value| value == "1")))
}

/// Whether products and convolutions of `float32` by a library may round their factors to TF32, which has ten bits of a fraction
/// instead of 23, and is faster. They may not at first, unless the variable `OPSMITH_CUDA_TF32` is `1`. The kernels of opsmith never do.
pub fn allows_tf32() -> bool {
    tf32().load(Ordering::Relaxed)
}

/// Sets [`allows_tf32`] for the calls that follow, of all threads.
pub fn set_allow_tf32(allow: bool) {
    tf32().store(allow, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
