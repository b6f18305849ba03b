//! cuBLASLt, NVIDIA's library of matrix products.
//!
//! In: the version of the driver; products. Out: the library, if it is allowed and there; products of streams. Must not know
//! operators.

mod api;
pub mod problem;
mod products;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::Library;

use super::Requests;
use super::library::{Described, Loaded, Table, Version, toolkit_of};
use super::search::Wanted;
use api::Functions;

pub use products::Products;

/// The library.
pub static DESCRIBED: Described<Functions> = Described {
    name: "cublaslt",
    label: "cuBLASLt",
    wanted: Wanted {
        names: &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
        variable: "OPSMITH_CUBLASLT",
        packages: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
    },
    packages: ["nvidia-cublas", "nvidia-cublas-cu12"],
    oldest: [12, 0, 0],
    newest: None,
    requests: Requests::new(),
    searched: OnceLock::new(),
};

/// The library, loaded.
pub type CublasLt = Loaded<Functions>;

impl Table for Functions {
    fn of(library: &Library) -> Result<Functions, &'static str> {
        Functions::of(library)
    }

    fn address(&self) -> *const () {
        self.cublasLtGetVersion as *const ()
    }

    fn versions(&self) -> Result<(Version, (usize, Option<usize>)), String> {
        // SAFETY: both may be called at any time.
        let (version, toolkit) = unsafe { ((self.cublasLtGetVersion)(), (self.cublasLtGetCudartVersion)()) };
        Ok((parts(version), toolkit_of(toolkit)))
    }
}

fn parts(version: usize) -> Version {
    // Before version 12 the major number counted thousands.
    let unit = if version < 100_000 { 1000 } else { 10_000 };
    [version / unit, version % unit / 100, version % 100]
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
