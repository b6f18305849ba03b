//! From a kernel's file to the shared object that is loaded for it.
//!
//! In: a kernel with its file. Out: a shared object, compiled or copied into the cache if it has to
//! be, and its library. Must not know calls.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use opsmith_runtime::error::Result;

use super::build::{self, Recipe};
use super::compiler::Language;
use super::elf::FINGERPRINT;
use super::file::KernelFile;
use super::kernel::{Kernel, State};
use super::library::Library;
use super::signature::compare_fingerprints;

/// A shared object, and the file that it was.
pub(super) struct SharedObject {
    path: PathBuf,
    stamp: Option<Stamp>,
}

/// The identity, size and time of a file's content.
#[derive(PartialEq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let facts = fs::metadata(path).ok()?;
        Some(Stamp { inode: facts.ino(), size: facts.size(), changed: (facts.ctime(), facts.ctime_nsec()) })
    }
}

impl Kernel {
    /// The shared object, compiled if it has to be. One of the cache that is not there any more, or not as it
    /// was, is made again.
    pub fn object(&self, state: &mut State) -> Result<KernelFile> {
        if let Some(object) = &state.object
            && object.stamp == Stamp::of(&object.path)
        {
            return KernelFile::open(&object.path);
        }
        let source = KernelFile::allowed(&self.source)?;
        let file = match Language::of(&self.source) {
            Some(language) => {
                let name = format!("{FINGERPRINT}{}", self.function);
                let text = self.signature.fingerprint(&self.function, self.place);
                let recipe = Recipe {
                    source: &source,
                    language,
                    flags: &self.options.flags,
                    fingerprint: Some((name, text)),
                };
                let built = build::build(&recipe)?;
                state.watched = watch(if self.options.reload { built.files } else { Vec::new() });
                state.compiled = built.compiled.or(state.compiled);
                built.library
            }
            None if self.options.reload => {
                state.watched = watch(vec![source.path().to_owned()]);
                KernelFile::open(&build::copy(&source)?)?
            }
            None => source,
        };
        let path = file.path().to_owned();
        state.object = Some(SharedObject { stamp: Stamp::of(&path), path });
        Ok(file)
    }

    /// Loads the library and compares the signature that it carries with the declared one.
    pub fn open(&self, object: &KernelFile) -> Result<Library> {
        let library = Library::open(object, &self.source, &self.function)?;
        if let Some(carried) = &library.fingerprint {
            compare_fingerprints(carried, &self.signature.fingerprint(&self.function, self.place))
                .map_err(|error| error.with_note(format!("in {}", object.path().display())))?;
        }
        Ok(library)
    }

    /// Forgets the library if a file that it was made from has changed since.
    pub fn refresh(&self, state: &mut State) -> Result<()> {
        let changed = state.watched.iter().any(|(path, known)| modified(path) != *known);
        if self.options.reload && changed {
            let old = std::mem::take(state);
            drop(old);
        }
        Ok(())
    }
}

fn watch(files: Vec<PathBuf>) -> Vec<(PathBuf, Option<SystemTime>)> {
    files.into_iter().map(|path| (path.clone(), modified(&path))).collect()
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|facts| facts.modified()).ok()
}
