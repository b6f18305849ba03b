//! Loaded libraries: the functions of one kernel, found by name.
//!
//! In: the path of a shared object and the name of a function. Out: the function, and those beside it that
//! the interface knows: `F`, `FInit`, `FInferShape`, `FInferType`. Must not know how the object was made.

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

use super::elf::LibraryFacts;
use super::strings::{RawVector, StringAbi};
use crate::error::{Error, Result};

/// `F`
pub(super) type MainFn = unsafe extern "C-unwind" fn(
    c_int,
    *mut *mut c_void,
    *mut c_int,
    *mut *mut i64,
    *mut *const c_char,
    *mut c_void,
    *mut c_void,
) -> c_int;
/// `FInit`
pub(super) type InitFn =
    unsafe extern "C-unwind" fn(*mut c_int, *mut *mut i64, *mut *const c_char, *mut c_void) -> c_int;
/// `FInferShape`: of one output a vector of sizes, of several a vector of such vectors. Both are three
/// words, returned in memory.
pub(super) type InferShapeFn =
    unsafe extern "C-unwind" fn(*mut c_int, *mut *mut i64, *mut c_void) -> RawVector;
/// `FInferType` of one output. The vector is passed by the address of a temporary.
pub(super) type InferTypeFn = unsafe extern "C-unwind" fn(*mut RawVector, *mut c_void) -> c_int;
/// `FInferType` of several outputs.
pub(super) type InferTypesFn = unsafe extern "C-unwind" fn(*mut RawVector, *mut c_void) -> RawVector;

/// The start of the name under which a library carries the signature of one of its functions.
pub(super) const FINGERPRINT: &str = "opsmith_aot_signature_";

/// A loaded library, and one kernel in it. Closed when dropped.
#[derive(Debug)]
pub(super) struct Library {
    /// The file that the user named, for messages.
    pub source: PathBuf,
    pub main: MainFn,
    pub init: Option<InitFn>,
    pub infer_shape: Option<InferShapeFn>,
    infer_type: Option<*const c_void>,
    /// The layout of strings that it takes and gives.
    pub strings: StringAbi,
    /// The signature that it was made for, if it carries one.
    pub fingerprint: Option<String>,
    /// Last: the functions live as long as it is open.
    _handle: Handle,
}

// SAFETY: addresses of functions in a library that stays open may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above; nothing here changes.
unsafe impl Sync for Library {}

impl Library {
    /// Opens a library and finds a kernel in it; `source` is what the user knows it by.
    ///
    /// # Errors
    /// If it cannot be loaded, or has no such function: what is missing, and what looks like it.
    pub fn open(path: &Path, source: &Path, function: &str) -> Result<Library> {
        let facts = LibraryFacts::read(path)?;
        if facts.libcxx {
            return Err(Error::kernel(format!(
                "{} was compiled with libc++, whose strings and vectors are not those of the interface",
                path.display()
            ))
            .with_help("compile it with g++, or with clang++ -stdlib=libstdc++"));
        }
        // Everything it wants is looked for at once: later, a missing name would end the process.
        // SAFETY: the initialisers of the library run. That they do no harm is for whoever named the
        // library to know; the allow-list and the sandbox are for those who do not.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            // What the system says is behind what the crate says.
            let said =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            refused(source, &facts, &said)
        })?;
        let find = |name: &str| address(&handle, name);
        let Some(main) = find(function) else { return Err(missing(source, &facts, function)) };
        let carried = find(&format!("{FINGERPRINT}{function}"));
        let fingerprint = carried.map(|text| {
            // SAFETY: what has this name is a text that ends in a zero; only `build.rs` makes it.
            unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned()
        });
        let init = find(&format!("{function}Init"));
        let infer_shape = find(&format!("{function}InferShape"));
        let infer_type = find(&format!("{function}InferType"));
        // SAFETY: functions of these names have these types; the interface says so, and nothing else can
        // be known of them.
        let (main, init, infer_shape) = unsafe {
            use std::mem::transmute;
            (
                transmute::<*const c_void, MainFn>(main),
                init.map(|init| transmute::<*const c_void, InitFn>(init)),
                infer_shape.map(|infer| transmute::<*const c_void, InferShapeFn>(infer)),
            )
        };
        Ok(Library {
            source: source.to_owned(),
            main,
            init,
            infer_shape,
            infer_type,
            strings: facts.strings.unwrap_or(StringAbi::New),
            fingerprint,
            _handle: handle,
        })
    }

    /// `FInferType` of a kernel with one output.
    pub fn infer_type(&self) -> Option<InferTypeFn> {
        // SAFETY: as in `open`; how many outputs there are decides between the two types.
        self.infer_type.map(|infer| unsafe { std::mem::transmute::<*const c_void, InferTypeFn>(infer) })
    }

    /// `FInferType` of a kernel with several outputs.
    pub fn infer_types(&self) -> Option<InferTypesFn> {
        // SAFETY: as in `open`.
        self.infer_type.map(|infer| unsafe { std::mem::transmute::<*const c_void, InferTypesFn>(infer) })
    }
}

fn address(handle: &Handle, name: &str) -> Option<*const c_void> {
    // SAFETY: only the address is taken; it stays valid while the library is open, which its owner
    // guarantees.
    let symbol = unsafe { handle.get::<*const c_void>(name.as_bytes()) }.ok()?;
    Some(symbol.into_raw().cast_const()).filter(|address| !address.is_null())
}

#[cold]
fn missing(source: &Path, facts: &LibraryFacts, function: &str) -> Error {
    let mangled = facts.functions.iter().any(|name| {
        name.strip_prefix("_Z").is_some_and(|rest| rest.starts_with(&format!("{}{function}", function.len())))
    });
    let error = Error::not_found(format!("there is no function `{function}` in {}", source.display()));
    if mangled {
        return error
            .with_help(format!("`{function}` is there as a function of C++: declare it extern \"C\""));
    }
    let near: Vec<String> = facts.near(function).into_iter().map(|name| format!("`{name}`")).collect();
    error.with_help(match near.as_slice() {
        [] => "it has no extern \"C\" function at all".to_owned(),
        near => format!("the functions there are: {}", near.join(", ")),
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
        .filter(|near| crate::library::edit_distance(near, &symbol) <= symbol.len().max(3) / 3)
        .map(|near| format!("`{near}`"))
        .collect();
    let near = if near.is_empty() { String::new() } else { format!(" (it has {})", near.join(", ")) };
    error.with_help(format!(
        "it calls `{symbol}`, which neither it nor a library it is linked with has{near}; link it with the library \
         that does, or define it"
    ))
}

/// Refuses a file outside the folders that `OPSMITH_AOT_ALLOW` names, separated by colons. Without it, every
/// file is allowed.
///
/// # Errors
/// If the file is outside: which folders there are.
pub(super) fn check_allowed(path: &Path) -> Result<()> {
    let Some(list) = env::var_os("OPSMITH_AOT_ALLOW") else { return Ok(()) };
    // Links are followed, so that none leads out.
    let real = std::fs::canonicalize(path)
        .map_err(|error| Error::io(format!("cannot read {}: {error}", path.display())))?;
    let folders: Vec<PathBuf> =
        env::split_paths(&list).filter(|folder| !folder.as_os_str().is_empty()).collect();
    let inside =
        |folder: &PathBuf| std::fs::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder));
    if folders.iter().any(inside) {
        return Ok(());
    }
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(Error::value(format!("{} is outside the folders that kernels may be loaded from", real.display()))
        .with_help(match folders.as_slice() {
            [] => "OPSMITH_AOT_ALLOW names no folder; unset it to allow all".to_owned(),
            folders => format!(
                "OPSMITH_AOT_ALLOW names {}; move the file there, or add its folder",
                folders.join(", ")
            ),
        }))
}
