//! The search for NVRTC, with the library of builtins that it needs beside it.
//!
//! In: the version of the driver. Out: the compiler, or an error that lists the places. Must not know texts.

use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use opsmith_runtime::{Error, Result};

use super::nvrtc::{Nvrtc, open};
use crate::libraries::search::{self, NotFound, Opens, Origin, Wanted};

const WANTED: Wanted = Wanted {
    names: &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"],
    variable: "OPSMITH_NVRTC",
    packages: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
};

static LOADED: OnceLock<Nvrtc> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// The compiler, searched for at the first request.
///
/// # Errors
/// If none is found whose images a driver of this major version loads; the error lists the places.
pub fn nvrtc(driver_major: c_int) -> Result<&'static Nvrtc> {
    if let Some(found) = LOADED.get() {
        return Ok(found);
    }
    let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    match LOADED.get() {
        Some(found) => Ok(found),
        None => find(driver_major).map(|found| LOADED.get_or_init(|| found)),
    }
}

impl Nvrtc {
    /// The compiler of any version, searched for at the first request: for images that another machine loads.
    ///
    /// # Errors
    /// If none is found; the error lists the places.
    pub fn find() -> Result<&'static Nvrtc> {
        nvrtc(c_int::MAX)
    }
}

/// Whether the compiler was found.
pub fn found() -> bool {
    LOADED.get().is_some()
}

/// Whether the environment names a compiler.
pub fn is_named() -> bool {
    search::named(&WANTED).is_some()
}

fn find(driver_major: c_int) -> Result<Nvrtc> {
    search::find(&WANTED, &Compilers { driver_major }).map_err(not_found)
}

#[cold]
fn not_found(why: NotFound) -> Error {
    let places = match why {
        NotFound::Named { path, reason } => {
            return Error::device(format!(
                "OPSMITH_NVRTC names {}, which cannot be used: {reason}",
                path.display()
            ))
            .with_help("name the file libnvrtc.so.13 or libnvrtc.so.12, or unset the variable");
        }
        NotFound::Nowhere(places) => places,
    };
    let error = Error::device("no compiler for kernels of the device was found: NVRTC (libnvrtc.so)");
    let error = places.into_iter().fold(error, |error, place| error.with_note(format!("searched: {place}")));
    error.with_help(
        "pip install nvidia-cuda-nvrtc (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), or name the library in \
         OPSMITH_NVRTC; or name an archive with images of the kernels (opsmith cuda build) in OPSMITH_CUDA_IMAGES",
    )
}

/// Compilers whose images a driver of this major version loads.
struct Compilers {
    driver_major: c_int,
}

impl Opens for Compilers {
    type Library = Nvrtc;

    fn open(&self, name: &Path, origin: Origin) -> std::result::Result<Nvrtc, String> {
        if origin == Origin::File { open_path(name) } else { open(name, origin.flags()) }
    }

    fn accept(&self, found: &Nvrtc) -> std::result::Result<(), String> {
        if found.version.0 <= self.driver_major {
            return Ok(());
        }
        Err(format!(
            "it is of CUDA {}.{}, newer than the driver, which is of CUDA {}",
            found.version.0, found.version.1, self.driver_major
        ))
    }
}

/// Opens a file, after the library of builtins beside it, which it finds only if that is loaded.
fn open_path(path: &Path) -> std::result::Result<Nvrtc, String> {
    for builtins in builtins_beside(path) {
        // SAFETY: the library of the compiler's builtins, in the compiler's own folder.
        if let Ok(library) = unsafe { Library::open(Some(&builtins), RTLD_NOW | RTLD_GLOBAL) } {
            // It stays loaded.
            std::mem::forget(library);
        }
    }
    open(path, 0)
}

fn builtins_beside(path: &Path) -> Vec<PathBuf> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(entries) = real.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return Vec::new() };
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libnvrtc-builtins.so") && !name.contains(".alt.")
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_builtins).collect();
    found.sort();
    found
}
