//! The search for a library of CUDA, where people have it.
//!
//! In: names of the library. Out: the library, opened, or the places that were searched. Must not know functions of libraries.

use std::collections::HashSet;
use std::env;
use std::ffi::c_int;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A library to search for.
pub struct Wanted {
    /// Names of its file, newest first.
    pub names: &'static [&'static str],
    /// The variable that names a file, which is then the only place.
    pub variable: &'static str,
    /// Folders inside those of Python's packages.
    pub packages: &'static [&'static str],
}

/// A kind of place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The process has it already.
    Process,
    /// The folders of the loader.
    Loader,
    /// A file.
    File,
}

impl Origin {
    /// Flags of the loader besides the usual ones.
    pub fn flags(self) -> c_int {
        if self == Origin::Process { libc::RTLD_NOLOAD } else { 0 }
    }
}

/// The reason why no library was found.
#[derive(Clone, Debug)]
pub enum NotFound {
    /// The file that the variable names cannot be used.
    Named {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Places, those with a file that cannot be used with the reason.
    Nowhere(Vec<String>),
}

/// How to open a library, and which are accepted.
pub trait Opens {
    /// The library, opened.
    type Library;

    /// Opens a library.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn open(&self, name: &Path, origin: Origin) -> Result<Self::Library, String>;

    /// Whether a library that no variable names will do.
    ///
    /// # Errors
    /// The reason why it will not.
    fn accept(&self, library: &Self::Library) -> Result<(), String>;
}

/// Searches for a library.
///
/// # Errors
/// If none is found that is accepted, or the file that the variable names cannot be used.
pub fn find<O: Opens>(wanted: &Wanted, opens: &O) -> Result<O::Library, NotFound> {
    if let Some(path) = named(wanted) {
        let opened = opens.open(&path, Origin::File);
        return opened.map_err(|reason| NotFound::Named { path, reason });
    }
    let mut search = Search { wanted, opens, places: Vec::new() };
    search.everywhere().ok_or(NotFound::Nowhere(search.places))
}

/// The file that the library's variable names.
pub fn named(wanted: &Wanted) -> Option<PathBuf> {
    env::var_os(wanted.variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A search, with the places so far.
struct Search<'a, O> {
    wanted: &'a Wanted,
    opens: &'a O,
    places: Vec<String>,
}

impl<O: Opens> Search<'_, O> {
    fn everywhere(&mut self) -> Option<O::Library> {
        let (names, opens) = (self.wanted.names, self.opens);
        for name in names {
            if let Ok(found) = opens.open(Path::new(name), Origin::Process)
                && let Some(found) = self.accept((*name).to_owned(), Ok(found))
            {
                return Some(found);
            }
        }
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
        if let Some(found) = self.in_folders(toolkits.map(|root| root.join("lib64"))) {
            return Some(found);
        }
        for name in names {
            let place = format!("{name} by the loader (LD_LIBRARY_PATH, ldconfig)");
            let opened = opens.open(Path::new(name), Origin::Loader).map_err(|_| String::new());
            if let Some(found) = self.accept(place, opened) {
                return Some(found);
            }
        }
        self.in_folders(package_folders(self.wanted.packages).into_iter())
    }

    fn in_folders(&mut self, folders: impl Iterator<Item = PathBuf>) -> Option<O::Library> {
        for folder in folders {
            for name in self.wanted.names {
                let path = folder.join(name);
                if path.is_file() {
                    let opened = self.opens.open(&path, Origin::File);
                    if let Some(found) = self.accept(path.display().to_string(), opened) {
                        return Some(found);
                    }
                }
            }
            self.places.push(folder.display().to_string());
        }
        None
    }

    /// The library that was opened, if it is accepted; else the place is noted with the reason.
    fn accept(&mut self, place: String, opened: Result<O::Library, String>) -> Option<O::Library> {
        let accepted = opened.and_then(|found| self.opens.accept(&found).map(|()| found));
        let reason = match accepted {
            Ok(found) => return Some(found),
            Err(reason) => reason,
        };
        self.places.push(if reason.is_empty() { place } else { format!("{place}: {reason}") });
        None
    }
}

/// Folders of Python's and conda's packages.
fn package_folders(parts: &[&str]) -> Vec<PathBuf> {
    let (mut packages, mut libraries) = (Vec::new(), Vec::new());
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from) {
        packages.extend(site_packages(&root));
        libraries.push(root.join("lib"));
    }
    packages.extend_from_slice(packages_of_interpreter());
    let inside = |folder: &PathBuf| parts.iter().map(|part| folder.join(part)).collect::<Vec<_>>();
    let mut folders: Vec<PathBuf> = packages.iter().flat_map(inside).chain(libraries).collect();
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
