//! The stamp of a folder of generated files: skips the run if nothing changed.
//!
//! In: the generator, its configuration, the files it read and those it wrote. Out: a small file beside the outputs,
//! and whether an existing one is still valid. An output that was edited or deleted counts as a change; so does another
//! build of the generator.

use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::emit::File;

/// The stamp's name in the folder.
const NAME: &str = ".opsmith-stamp";

/// Whether the folder has the files that this generator would write for this configuration.
pub fn holds(folder: &Path, config: &Config) -> bool {
    holds_or_none(folder, config).is_some()
}

fn holds_or_none(folder: &Path, config: &Config) -> Option<()> {
    let stamp = std::fs::read_to_string(folder.join(NAME)).ok()?;
    let mut lines = stamp.lines();
    (lines.next()? == head(config)?).then_some(())?;
    let mut files = 0;
    for line in lines {
        let (kind, rest) = line.split_once(' ')?;
        let (hash, name) = rest.split_once(' ')?;
        let path = match kind {
            "read" => PathBuf::from(name),
            "wrote" => folder.join(name),
            _ => return None,
        };
        (hash == text_hash(&std::fs::read(path).ok()?)).then_some(())?;
        files += 1;
    }
    (files > 0).then_some(())
}

/// Writes the stamp of a folder.
///
/// # Errors
/// Errors of the file system.
pub fn write(folder: &Path, config: &Config, read: &[PathBuf], written: &[File]) -> io::Result<()> {
    let Some(mut stamp) = head(config) else { return remove(folder) };
    stamp.push('\n');
    for path in read {
        let _ = writeln!(stamp, "read {} {}", text_hash(&std::fs::read(path)?), path.display());
    }
    for file in written {
        let _ = writeln!(stamp, "wrote {} {}", text_hash(file.text.as_bytes()), file.name);
    }
    std::fs::write(folder.join(NAME), stamp)
}

/// Removes the stamp, so that the folder counts as changed.
///
/// # Errors
/// Errors of the file system.
pub fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The generator's build and configuration; `None` if the build cannot be identified.
fn head(config: &Config) -> Option<String> {
    Some(format!("{} {}", generator()?, text_hash(format!("{config:?}").as_bytes())))
}

/// The generator's build; `None` if it cannot be identified.
pub(super) fn generator() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let about = program.metadata().ok()?;
    let mut hasher = DefaultHasher::new();
    (program, about.len(), about.modified().ok()?, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    Some(format!("opsmith {} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish()))
}

pub(super) fn text_hash(text: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
