//! The search for NVRTC, where people have it.
//!
//! In: the version of the driver. Out: the compiler, or an error that lists the places. Must not know texts.

use std::collections::HashSet;
use std::env;
use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use opsmith_runtime::{Error, Result};

use super::nvrtc::{Nvrtc, open};

/// Names of the library, newest first.
const NAMES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];
/// The loader's flag for libraries that the process has already.
const ALREADY_LOADED: c_int = libc::RTLD_NOLOAD;

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
    named().is_some()
}

fn named() -> Option<PathBuf> {
    env::var_os("OPSMITH_NVRTC").filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn find(driver_major: c_int) -> Result<Nvrtc> {
    if let Some(path) = named() {
        return open_path(&path).map_err(|reason| {
            Error::device(format!("OPSMITH_NVRTC names {}, which cannot be used: {reason}", path.display()))
                .with_help("name the file libnvrtc.so.13 or libnvrtc.so.12, or unset the variable")
        });
    }
    let mut search = Search { driver_major, places: Vec::new() };
    search.everywhere().ok_or_else(|| not_found(search.places))
}

#[cold]
fn not_found(places: Vec<String>) -> Error {
    let error = Error::device("no compiler for kernels of the device was found: NVRTC (libnvrtc.so)");
    let error = places.into_iter().fold(error, |error, place| error.with_note(format!("searched: {place}")));
    error.with_help(
        "pip install nvidia-cuda-nvrtc (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), or name the library in \
         OPSMITH_NVRTC; or name an archive with images of the kernels (opsmith cuda build) in OPSMITH_CUDA_IMAGES",
    )
}

/// A search, with the places so far.
struct Search {
    driver_major: c_int,
    places: Vec<String>,
}

impl Search {
    fn everywhere(&mut self) -> Option<Nvrtc> {
        for name in NAMES {
            if let Ok(found) = open(Path::new(name), ALREADY_LOADED)
                && let Some(found) = self.accept(name.to_owned(), Ok(found))
            {
                return Some(found);
            }
        }
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
        if let Some(found) = self.in_folders(toolkits.map(|root| root.join("lib64"))) {
            return Some(found);
        }
        for name in NAMES {
            let place = format!("{name} by the loader (LD_LIBRARY_PATH, ldconfig)");
            if let Some(found) = self.accept(place, open(Path::new(name), 0).map_err(|_| String::new())) {
                return Some(found);
            }
        }
        self.in_folders(package_folders().into_iter())
    }

    fn in_folders(&mut self, folders: impl Iterator<Item = PathBuf>) -> Option<Nvrtc> {
        for folder in folders {
            for path in NAMES.map(|name| folder.join(name)).iter().filter(|path| path.is_file()) {
                if let Some(found) = self.accept(path.display().to_string(), open_path(path)) {
                    return Some(found);
                }
            }
            self.places.push(folder.display().to_string());
        }
        None
    }

    /// The library that was opened, if the driver loads its images; else the place is noted with the reason.
    fn accept(&mut self, place: String, opened: std::result::Result<Nvrtc, String>) -> Option<Nvrtc> {
        let reason = match opened {
            Ok(found) if found.version.0 <= self.driver_major => return Some(found),
            Ok(found) => format!(
                "it is of CUDA {}.{}, newer than the driver, which is of CUDA {}",
                found.version.0, found.version.1, self.driver_major
            ),
            Err(reason) => reason,
        };
        self.places.push(if reason.is_empty() { place } else { format!("{place}: {reason}") });
        None
    }
}

/// Folders of Python's and conda's packages.
fn package_folders() -> Vec<PathBuf> {
    let (mut packages, mut libraries) = (Vec::new(), Vec::new());
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from) {
        packages.extend(site_packages(&root));
        libraries.push(root.join("lib"));
    }
    packages.extend_from_slice(packages_of_interpreter());
    let parts = |folder: &PathBuf| ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|part| folder.join(part));
    let mut folders: Vec<PathBuf> = packages.iter().flat_map(parts).chain(libraries).collect();
    let mut known = HashSet::new();
    folders.retain(|folder| known.insert(folder.clone()));
    folders
}

/// The folders of packages in an environment.
fn site_packages(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("lib")) else { return Vec::new() };
    let versions =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("python"));
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("site-packages")).collect();
    folders.sort();
    folders
}

/// The folders of packages of the interpreter on the path, which no variable has to name.
fn packages_of_interpreter() -> &'static [PathBuf] {
    const PROGRAM: &str =
        "import site; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))";
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let output = Command::new("python3").args(["-c", PROGRAM]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().lines().map(PathBuf::from).collect()
    })
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
