//! Facts about the libraries that were made from one source, and of the files they were made from.
//!
//! In: the list of files that a compiler says it read. Out: their states, kept as text in the cache, and
//! whether they are still the same. A list has the hundreds of headers of a standard library and is read before each first
//! call, so its texts stay where they were read. Must not know compilers.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use opsmith_runtime::error::{Error, Result};
use serde::{Deserialize, Serialize};

use super::cache::Key;
use super::file::{self, KernelFile};

/// How many states of the included files are remembered for one source.
const REMEMBERED: usize = 8;

/// The libraries made from one source, the latest first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Manifest<'a> {
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
}

/// One library, and the files it was made from.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry<'a> {
    /// Its name in the cache.
    #[serde(borrow)]
    pub object: Cow<'a, str>,
    #[serde(borrow)]
    files: Vec<Dependency<'a>>,
}

/// A file as it was when it was read.
#[derive(Serialize, Deserialize)]
struct Dependency<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    #[serde(borrow)]
    hash: Cow<'a, str>,
}

/// A file whose content is known.
pub(super) struct Known<'a> {
    pub path: &'a Path,
    /// As [`hash_of`] says it.
    pub hash: &'a str,
}

/// The hash of a file's content, as manifests have it.
pub(super) fn hash_of(content: &[u8]) -> String {
    let mut key = Key::new("file 1");
    key.add(content);
    key.finish()
}

impl<'a> Manifest<'a> {
    /// The manifest in a file; an empty one if it cannot be read.
    pub fn read(file: &'a KernelFile) -> Manifest<'a> {
        file.read().ok().and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default()
    }

    /// The library whose files are as they are now. Files that were read a moment ago are not read again.
    pub fn current(&self, known: &[Known<'_>]) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| entry.files.iter().all(|file| file.is_current(known)))
    }

    /// Puts an entry before all others, in place of one of the same files.
    pub fn remember(&mut self, entry: Entry<'a>) {
        let same = |other: &Entry<'_>| other.hashes().eq(entry.hashes());
        self.entries.retain(|other| !same(other));
        self.entries.insert(0, entry);
        self.entries.truncate(REMEMBERED);
    }
}

impl Entry<'_> {
    /// An entry without a library yet, of the files that a compiler listed as read, in the syntax of make.
    ///
    /// # Errors
    /// If one of them cannot be read, or its name has a line break or is no UTF-8.
    pub fn of(list: &[u8]) -> Result<Entry<'static>> {
        let files = listed(list)?.iter().map(|path| Dependency::of(path)).collect::<Result<_>>()?;
        Ok(Entry { object: Cow::default(), files })
    }

    /// The contents of the files, in order.
    pub fn hashes(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.hash)
    }

    /// Whether no file was changed since that time. If one was, a compiler that ran meanwhile may have read
    /// either state of it.
    pub fn is_older_than(&self, time: SystemTime) -> bool {
        self.files.iter().all(|file| file.is_older_than(time))
    }

    /// The files save those that belong to the system.
    pub fn own_files(&self) -> Vec<PathBuf> {
        self.files.iter().filter(|file| !file.is_of_system()).map(|file| PathBuf::from(&*file.path)).collect()
    }
}

impl Dependency<'_> {
    fn of(path: &Path) -> Result<Dependency<'static>> {
        let path = std::path::absolute(path)
            .map_err(|error| Error::io(format!("cannot read {}: {error}", path.display())))?;
        let (content, facts) = file::read(&path)?;
        let hash = hash_of(&content).into();
        let path = path.into_os_string().into_string().map_err(|path| {
            Error::io(format!("the path {} is no UTF-8", path.display())).with_help("rename it")
        })?;
        Ok(Dependency {
            path: path.into(),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            hash,
        })
    }

    /// Whether the file is unchanged. Of the system's files, the time of the last change is enough.
    fn is_current(&self, known: &[Known<'_>]) -> bool {
        if let Some(known) = known.iter().find(|known| known.path.as_os_str() == &*self.path) {
            return known.hash == self.hash;
        }
        let path = Path::new(&*self.path);
        let unchanged = || file::read(path).is_ok_and(|(content, _)| hash_of(&content) == self.hash);
        if !self.is_of_system() {
            return unchanged();
        }
        let Ok(facts) = fs::metadata(path) else { return false };
        let same = facts.size() == self.size
            && (facts.mtime(), facts.mtime_nsec()) == self.modified
            && (facts.ctime(), facts.ctime_nsec()) == self.changed;
        same || unchanged()
    }

    fn is_of_system(&self) -> bool {
        self.path.starts_with("/usr/") || self.path.starts_with("/opt/")
    }

    fn is_older_than(&self, time: SystemTime) -> bool {
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanoseconds) = (time.as_secs() as i64, i64::from(time.subsec_nanos()));
        self.modified < (seconds, nanoseconds) && self.changed < (seconds, nanoseconds)
    }
}

/// The files that a compiler lists as read, in the syntax of make: one rule, and rules without files, which
/// flags of a user may ask for.
///
/// # Errors
/// If a name has a line break, which make cannot write: then it looks like the start of another rule.
fn listed(text: &[u8]) -> Result<Vec<PathBuf>> {
    let colon = text.windows(2).position(|pair| pair[0] == b':' && pair[1].is_ascii_whitespace());
    let mut rest = colon.map_or(&text[text.len()..], |colon| &text[colon + 1..]);
    let mut paths = vec![Vec::new()];
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let last = paths.last_mut().unwrap_or_else(|| unreachable!("there is always one"));
        match byte {
            b'\\' => rest = backslashes(rest, &mut paths),
            b'$' if rest.first() == Some(&b'$') => {
                last.push(b'$');
                rest = &rest[1..];
            }
            b'\n' => break,
            byte if byte.is_ascii_whitespace() => paths.push(Vec::new()),
            byte => last.push(byte),
        }
    }
    let more = rest.split(|byte| *byte == b'\n').find(|line| !line.is_empty() && !line.ends_with(b":"));
    if let Some(line) = more {
        return Err(Error::io(format!(
            "a file that the source includes has a line break in its name, before `{}`",
            String::from_utf8_lossy(line)
        ))
        .with_help("compilers cannot list such files; rename it"));
    }
    let paths = paths.into_iter().filter(|path| !path.is_empty());
    Ok(paths.map(|path| PathBuf::from(OsString::from_vec(path))).collect())
}

/// Reads a run of backslashes, of which one was read, and the character after it. Before a blank an odd number
/// makes it a part of the name, and each pair is one backslash; before `#` one belongs to it; before the end of
/// a line one continues it; elsewhere they are themselves.
fn backslashes<'a>(rest: &'a [u8], paths: &mut Vec<Vec<u8>>) -> &'a [u8] {
    let more = rest.iter().take_while(|byte| **byte == b'\\').count();
    let (count, rest) = (more + 1, &rest[more..]);
    let mut push = |count: usize, byte: Option<u8>| {
        if let Some(last) = paths.last_mut() {
            last.extend(std::iter::repeat_n(b'\\', count).chain(byte));
        }
    };
    match rest.first() {
        Some(&blank @ (b' ' | b'\t')) if count % 2 == 1 => push(count / 2, Some(blank)),
        Some(b' ' | b'\t') => {
            push(count / 2, None);
            paths.push(Vec::new());
        }
        Some(b'#') => push(count - 1, Some(b'#')),
        Some(b'\n') => {
            push(count - 1, None);
            paths.push(Vec::new());
        }
        _ => {
            push(count, None);
            return rest;
        }
    }
    &rest[1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_files_are_read_as_make_reads_them() {
        let text = "out: a.cc \\\n /usr/include/b.h with\\ blank.h \\\n  cost$$.h a\\b.h c\\\\\\ d.h e\\\\ f\\#.h\n\nb.h:\n";
        let expected =
            ["a.cc", "/usr/include/b.h", "with blank.h", "cost$.h", "a\\b.h", "c\\ d.h", "e\\", "f#.h"];
        assert_eq!(listed(text.as_bytes()).unwrap(), expected.map(PathBuf::from));
        assert_eq!(
            listed(b"out: \xff.h\n").unwrap(),
            [PathBuf::from(OsString::from_vec(vec![0xFF, b'.', b'h']))]
        );
        assert_eq!(listed(b"").unwrap(), Vec::<PathBuf>::new());
        let error = listed(b"out: a.cc b\nc.h d.h\n").unwrap_err();
        assert!(error.message().contains("line break"), "{error}");
    }
}
