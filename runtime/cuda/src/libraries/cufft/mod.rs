//! cuFFT, NVIDIA's library of Fourier transforms.
//!
//! In: the version of the driver; transforms. Out: the library, if it is used; transforms of streams. Must not know operators.

pub mod api;
pub mod plans;

use std::sync::OnceLock;

use libloading::os::unix::Library;

use super::Requests;
use super::library::{Described, Loaded, Table, Version};
use super::search::Wanted;
use api::Functions;

pub use plans::Transforms;

/// The library. Its version 11.0 is that of CUDA 12.0.
pub static DESCRIBED: Described<Functions> = Described {
    name: "cufft",
    label: "cuFFT",
    wanted: Wanted {
        names: &["libcufft.so", "libcufft.so.12", "libcufft.so.11"],
        variable: "OPSMITH_CUFFT",
        packages: &["nvidia/cu13/lib", "nvidia/cufft/lib"],
    },
    packages: ["nvidia-cufft", "nvidia-cufft-cu12"],
    oldest: [11, 0, 0],
    newest: None,
    requests: Requests::new(),
    searched: OnceLock::new(),
};

/// The library, loaded.
pub type Cufft = Loaded<Functions>;

impl Table for Functions {
    fn of(library: &Library) -> Result<Functions, &'static str> {
        Functions::of(library)
    }

    fn address(&self) -> *const () {
        self.cufftGetVersion as *const ()
    }

    fn versions(&self) -> Result<(Version, (usize, Option<usize>)), String> {
        let mut version = 0;
        // SAFETY: it may be called at any time; the result is a local variable.
        let status = unsafe { (self.cufftGetVersion)(&mut version) };
        if status != api::SUCCESS {
            return Err(api::name(status).to_owned());
        }
        let version = parts(usize::try_from(version).unwrap_or(0));
        // Version 11 is that of CUDA 12, 12 that of CUDA 13.
        Ok((version, (version[0] + 1, None)))
    }
}

fn parts(version: usize) -> Version {
    [version / 1000, version % 1000 / 100, version % 100]
}

#[cfg(test)]
mod tests;
