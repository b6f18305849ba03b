//! cuDNN, NVIDIA's library for neural networks, of which convolutions are used.
//!
//! In: the version of the driver; convolutions. Out: the library, if it is used; convolutions of streams. Must not know operators.

mod api;
pub mod plans;
pub mod problem;

use std::sync::OnceLock;

use libloading::os::unix::Library;

use super::Requests;
use super::library::{Described, Loaded, Table, Version, toolkit_of};
use super::search::Wanted;
use api::Functions;

pub use plans::Convolutions;

/// The library. The interface of its version 9 is used.
pub static DESCRIBED: Described<Functions> = Described {
    name: "cudnn",
    label: "cuDNN",
    wanted: Wanted {
        names: &["libcudnn.so", "libcudnn.so.9"],
        variable: "OPSMITH_CUDNN",
        packages: &["nvidia/cudnn/lib"],
    },
    packages: ["nvidia-cudnn-cu13", "nvidia-cudnn-cu12"],
    oldest: [9, 0, 0],
    newest: Some(9),
    requests: Requests::new(),
    searched: OnceLock::new(),
};

/// The library, loaded.
pub type Cudnn = Loaded<Functions>;

impl Table for Functions {
    fn of(library: &Library) -> Result<Functions, &'static str> {
        Functions::of(library)
    }

    fn address(&self) -> *const () {
        self.cudnnGetVersion as *const ()
    }

    fn versions(&self) -> Result<(Version, (usize, Option<usize>)), String> {
        // SAFETY: both may be called at any time.
        let (version, toolkit) = unsafe { ((self.cudnnGetVersion)(), (self.cudnnGetCudartVersion)()) };
        Ok((parts(version), toolkit_of(toolkit)))
    }
}

fn parts(version: usize) -> Version {
    // Before version 9 the major number counted thousands.
    let unit = if version < 90_000 { 1000 } else { 10_000 };
    [version / unit, version % unit / 100, version % 100]
}

#[cfg(test)]
mod tests;
