//! Archives: zip files of JSON and weights, read within limits.
//!
//! In: a file, or bytes. Out: the bytes of a member. Sizes that a file declares are never trusted: a member that
//! expands beyond the limits, or to another size than declared, is an error. Must not know the meaning of members.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use opsmith_runtime::error::{Error, Result};
use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;

use crate::errors::damaged;

/// Expansion that every archive may have, in bytes, and that per byte of the file. PyTorch stores members without
/// compression; the JSON of a large program compresses to a thirtieth.
const FREE_EXPANSION: u64 = 64 << 20;
const EXPANSION: u64 = 16;
/// Maximal number of members: a weight each.
const MEMBERS: usize = 1 << 20;

trait Source: Read + Seek + Send {}

impl<T: Read + Seek + Send> Source for T {}

/// An open archive.
pub(crate) struct Archive {
    zip: ZipArchive<Box<dyn Source>>,
    /// The name of the folder that holds everything, with its slash; empty if there is none.
    root: String,
    /// Expanded bytes that may still be read.
    budget: u64,
}

impl Archive {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no zip archive with safe names.
    pub fn open(path: &Path) -> Result<Archive> {
        let unreadable =
            |error: std::io::Error| Error::io(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(Error::io(format!("cannot read {}: it is no file", path.display())));
        }
        Archive::of(Box::new(BufReader::new(file)), metadata.len())
            .map_err(|error| error.with_note(format!("while {} was opened", path.display())))
    }

    /// Opens an archive in memory.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Archive> {
        let length = bytes.len() as u64;
        Archive::of(Box::new(Cursor::new(bytes)), length)
    }

    fn of(source: Box<dyn Source>, length: u64) -> Result<Archive> {
        // Nothing stands before the archive: a search for its start finds that of an archive inside.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let zip = ZipArchive::with_config(config, source).map_err(|error| {
            Error::io(format!("the file is no zip archive: {error}"))
                .with_help("a program is the file that `torch.export.save` writes, whole")
        })?;
        if zip.len() > MEMBERS {
            return Err(Error::io(format!(
                "the archive has {} members, at most {MEMBERS} are read",
                zip.len()
            )));
        }
        let mut roots = BTreeSet::new();
        for name in zip.file_names() {
            let name = name.map_err(|error| damaged("the table of names", error))?;
            if !is_safe(&name) {
                return Err(Error::io(format!("the name {name:?} in the archive leads out of it"))
                    .with_help(
                        "this is not an archive that PyTorch wrote: do not open it with other programs",
                    ));
            }
            roots.insert(name.split_once('/').map_or("", |(root, _)| root).to_owned());
        }
        let root = match roots.first() {
            Some(root) if roots.len() == 1 && !root.is_empty() => format!("{root}/"),
            _ => String::new(),
        };
        let budget = FREE_EXPANSION.saturating_add(length.saturating_mul(EXPANSION));
        Ok(Archive { zip, root, budget })
    }

    /// The names of all members below the root, sorted.
    pub fn names(&self) -> Vec<String> {
        // Every name was read when the archive was opened.
        let names = self.zip.file_names().flatten();
        let below = names.filter_map(|name| name.strip_prefix(self.root.as_str()).map(str::to_owned));
        let mut names: Vec<String> = below.collect();
        names.sort();
        names
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{}{name}", self.root)).is_some()
    }

    /// The bytes of a member.
    ///
    /// # Errors
    /// If there is none of this name, it is damaged, or it expands beyond the limits.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>> {
        let full = format!("{}{name}", self.root);
        let budget = self.budget;
        let member = self.zip.by_name(&full).map_err(|error| match error {
            ZipError::FileNotFound => Error::not_found(format!("the archive has no `{name}`"))
                .with_help("the archive is incomplete: save the program again with `torch.export.save`"),
            error => damaged(name, error),
        })?;
        let declared = member.size();
        if declared > budget {
            return Err(too_large(name));
        }
        // The capacity is a guess from the file: a lying size allocates no more than the data needs.
        let mut bytes = Vec::with_capacity(declared.min(member.compressed_size()) as usize);
        let mut limited = member.take(declared.saturating_add(1));
        limited.read_to_end(&mut bytes).map_err(|error| damaged(name, error))?;
        if bytes.len() as u64 != declared {
            let found =
                if bytes.len() as u64 > declared { "more".to_owned() } else { bytes.len().to_string() };
            return Err(damaged(name, format!("{declared} bytes were declared, and there are {found}")));
        }
        self.budget -= declared;
        Ok(bytes)
    }

    /// A member that is text.
    ///
    /// # Errors
    /// As [`Archive::read`]; and if it is no UTF-8.
    pub fn text(&mut self, name: &str) -> Result<String> {
        String::from_utf8(self.read(name)?).map_err(|error| damaged(name, error))
    }
}

fn too_large(name: &str) -> Error {
    Error::io(format!("`{name}` of the archive expands to more than the file can hold")).with_help(format!(
        "archives expand to at most {EXPANSION} times their size: save without compression"
    ))
}

/// Whether a name stays inside the archive.
fn is_safe(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\\', '\0'])
        && name.as_bytes().get(1).is_none_or(|byte| *byte != b':')
        && name.trim_end_matches('/').split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_unsafe() {
        for name in ["", "/etc/passwd", "../a", "a/../b", "a//b", "c:/a", "a\\b", "./a", "a\0b"] {
            assert!(!is_safe(name), "{name:?}");
        }
        for name in ["model/data/weights/weight_0", "model/.data/version", "a/"] {
            assert!(is_safe(name), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for bytes in [Vec::new(), b"PK\x03\x04".to_vec(), vec![0; 1000]] {
            let error = Archive::from_bytes(bytes).err().expect("no archive").to_string();
            assert!(error.contains("the file is no zip archive"), "{error}");
        }
    }
}
