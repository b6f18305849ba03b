//! Loaded libraries: the functions of one kernel, found by name.
//!
//! In: the path of a shared object and the name of a function. Out: the addresses of that function and of those beside it
//! that the interface knows: `F`, `FInit`, `FInferShape`, `FInferType`. Must not know their types, nor how the object was
//! made.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use opsmith_runtime::error::{Error, Result};

use super::elf::{LibraryFacts, Names};
use super::file::KernelFile;

/// A loaded library, and one kernel in it. Closed when dropped.
#[derive(Debug)]
pub(super) struct Library {
    /// The file that the user named, for messages.
    pub source: PathBuf,
    /// `F`
    pub main: *const c_void,
    /// `FInit`
    pub init: Option<*const c_void>,
    /// `FInferShape`
    pub infer_shape: Option<*const c_void>,
    /// `FInferType`
    pub infer_type: Option<*const c_void>,
    /// How it says names of attributes, as far as its symbols show.
    names: Names,
    /// Whether it turned out to say them as vectors.
    vectors: AtomicBool,
    /// The signature that it was made for, if it carries one.
    pub fingerprint: Option<String>,
    /// Last: the functions live as long as it is open.
    _handle: Handle,
}

// SAFETY: addresses of functions in a library that stays open may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: `&Library` gives addresses of functions, texts and an atomic word.
unsafe impl Sync for Library {}

impl Library {
    /// Opens a library and finds a kernel in it; `source` is the path that the user knows it by.
    ///
    /// # Errors
    /// If it cannot be loaded, or has no such function; the error names it, and similar ones.
    pub fn open(file: &KernelFile, source: &Path, function: &str) -> Result<Library> {
        let facts = LibraryFacts::read(file)?;
        facts.check_types(source)?;
        let handle = load(file, source, &facts)?;
        let Some(main) = address(&handle, function) else { return Err(facts.missing(source, function)) };
        // Functions of libraries that it is linked with are found, too: beside a kernel of its own they are
        // another kernel's.
        let elsewhere = !facts.has(function);
        let beside = |end: &str| {
            let name = format!("{function}{end}");
            if elsewhere || facts.has(&name) { address(&handle, &name) } else { None }
        };
        Ok(Library {
            source: source.to_owned(),
            main,
            init: beside("Init"),
            infer_shape: beside("InferShape"),
            infer_type: beside("InferType"),
            names: facts.names(),
            vectors: AtomicBool::new(false),
            fingerprint: facts.fingerprint(function).map(str::to_owned),
            _handle: handle,
        })
    }

    /// How it says names of attributes, as far as that is known.
    pub fn names(&self) -> Names {
        if self.vectors.load(Ordering::Relaxed) { Names::Vectors } else { self.names }
    }

    /// Notes that it says names of attributes as vectors.
    pub fn note_vectors(&self) {
        self.vectors.store(true, Ordering::Relaxed);
    }
}

fn address(handle: &Handle, name: &str) -> Option<*const c_void> {
    // SAFETY: only the address is taken; it stays valid while the library is open, which its owner
    // guarantees.
    let symbol = unsafe { handle.get::<*const c_void>(name.as_bytes()) }.ok()?;
    Some(symbol.into_raw().cast_const()).filter(|address| !address.is_null())
}

/// Loads a library: its initialisers run.
///
/// # Errors
/// If the loader refuses it; the error has its message, and a symbol that no library defines.
pub(super) fn load(file: &KernelFile, source: &Path, facts: &LibraryFacts) -> Result<Handle> {
    // Everything it wants is looked for at once: later, a missing name would end the process. The path has a
    // slash, so that nothing else of that name is found along LD_LIBRARY_PATH.
    // SAFETY: the initialisers of the library run. The user who named the library
    // trusts them; the allow-list and the sandbox are for libraries that are not trusted.
    unsafe { Handle::open(Some(file.path()), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // The system's message is the source of the crate's error.
        let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        refused(source, facts, &said)
    })
}

#[cold]
fn refused(source: &Path, facts: &LibraryFacts, said: &str) -> Error {
    let error = Error::kernel(format!("the library of {} cannot be loaded: {said}", source.display()));
    let Some((_, rest)) = said.split_once("undefined symbol: ") else { return error };
    let symbol: String = rest.chars().take_while(|c| c.is_alphanumeric() || "_@.$".contains(*c)).collect();
    let near: Vec<String> = facts
        .near(&symbol)
        .into_iter()
        .filter(|near| strsim::levenshtein(near, &symbol) <= symbol.len().max(3) / 3)
        .map(|near| format!("`{near}`"))
        .collect();
    let near = if near.is_empty() { String::new() } else { format!(" (it has {})", near.join(", ")) };
    error.with_help(format!(
        "it calls `{symbol}`, which neither it nor a library it is linked with has{near}; link it with the library \
         that does, or define it"
    ))
}
