//! Places of archives: the environment, crates of the program, this crate, the folder of the program.
//!
//! In: the environment. Out: the archives of this process, opened at the first request. An archive that cannot be opened is
//! a warning, once, and no obstacle to other ways to a kernel. Must not know devices.

use std::env;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::archive::ImageArchive;

/// Files of archives, separated as in `PATH`.
pub const VARIABLE: &str = "OPSMITH_CUDA_IMAGES";
/// The name of an archive beside the program, or beside the library that contains this crate.
pub const FILE_NAME: &str = "opsmith.images";

/// An archive that a crate of the program contains; see [`register_images!`](crate::register_images).
pub struct RegisteredImages {
    /// The name for messages.
    pub name: &'static str,
    /// The bytes of the archive.
    pub bytes: fn() -> &'static [u8],
}

opsmith_runtime::inventory::collect!(RegisteredImages);

#[cfg(embedded_images)]
opsmith_runtime::inventory::submit! {
    RegisteredImages {
        name: "embedded in opsmith-cuda",
        bytes: || include_bytes!(env!("OPSMITH_CUDA_EMBEDDED_FILE")),
    }
}

/// The archives of a process.
pub struct Places {
    /// Archives in the order of the search.
    pub archives: Vec<ImageArchive>,
    /// Places without an archive, with the reason.
    pub without: Vec<String>,
}

/// The archives of this process.
pub fn places() -> &'static Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    PLACES.get_or_init(search)
}

fn search() -> Places {
    let mut places = Places { archives: Vec::new(), without: Vec::new() };
    let named = env::var_os(VARIABLE).unwrap_or_default();
    let named: Vec<PathBuf> = env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    for path in &named {
        places.add(ImageArchive::open(path));
    }
    if named.is_empty() {
        places.without.push(format!("{VARIABLE} names no archive of images"));
    }
    let before = places.archives.len();
    for registered in opsmith_runtime::inventory::iter::<RegisteredImages> {
        places.add(ImageArchive::of_bytes(registered.name, (registered.bytes)()));
    }
    if places.archives.len() == before {
        places.without.push("no archive of images is part of the program".to_owned());
    }
    for path in folders().iter().map(|folder| folder.join(FILE_NAME)) {
        match path.is_file() {
            true => places.add(ImageArchive::open(&path)),
            false => places.without.push(format!("{} does not exist", path.display())),
        }
    }
    places
}

impl Places {
    fn add(&mut self, opened: opsmith_runtime::Result<ImageArchive>) {
        match opened {
            Ok(archive) => self.archives.push(archive),
            Err(error) => {
                warn(&error.to_string());
                self.without.push(error.message().to_owned());
            }
        }
    }
}

/// Writes a warning to the standard error, where nothing fails because of it.
pub fn warn(message: &str) {
    eprintln!("opsmith: warning: {message}");
}

/// The folders of the file that contains this code, and of the program.
fn folders() -> Vec<PathBuf> {
    let folder = |path: PathBuf| path.canonicalize().ok()?.parent().map(Path::to_owned);
    let mut folders: Vec<PathBuf> =
        [own_file(), env::current_exe().ok()].into_iter().flatten().filter_map(folder).collect();
    folders.dedup();
    folders
}

/// The file from which this code was loaded.
fn own_file() -> Option<PathBuf> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the address is that of a function of this program, and the result is a local variable.
    let code = unsafe { libc::dladdr(places as *const () as *const libc::c_void, found.as_mut_ptr()) };
    if code == 0 {
        return None;
    }
    // SAFETY: `dladdr` has filled the structure, because it returned something else than 0.
    let name = unsafe { found.assume_init() }.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's names end with a zero, and stay while the library is loaded.
    let name = unsafe { CStr::from_ptr(name) };
    Some(PathBuf::from(std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes()) as &std::ffi::OsStr))
}
