//! Where compiled kernels are kept: a folder of the user, safe to share between processes.
//!
//! In: keys and finished files. Out: the same files, in this process or another, until they have not been
//! used for longest and the folder is full. A file appears whole, by renaming it into place, so readers
//! need no lock; its name says the hash of its content, which is verified before each use, so that a file
//! that was damaged is made again. Must not know the content of the files.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use sha2::{Digest, Sha256};

use super::file::KernelFile;

/// The size limit of the folder in bytes, unless `OPSMITH_CACHE_SIZE` sets another.
const DEFAULT_LIMIT: u64 = 1 << 30;
/// How long a file that is being written may be there.
const ABANDONED: Duration = Duration::from_secs(3600);
/// How exactly the time of the last use is known.
const MOMENT: Duration = Duration::from_secs(60);

/// Names that are the hash of a content.
pub(super) struct Key(Sha256);

impl Key {
    pub fn new(purpose: &str) -> Key {
        let mut key = Key(Sha256::new());
        key.add(purpose);
        key
    }

    /// Adds a part. Its length goes with it, so that no two lists of parts look alike.
    pub fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// 128 bits of it as text.
    pub fn finish(self) -> String {
        // Digit by digit, without a text for each byte: a build hashes the hundreds of headers of a standard library.
        let digits = self.0.finalize().into_iter().take(16).flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }
}

/// The folder.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    root: PathBuf,
    limit: u64,
}

impl Cache {
    /// The user's: `OPSMITH_CACHE_DIR`, or `opsmith` in `XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// If there is no such place, or others may write to it.
    pub fn of_user() -> Result<Cache> {
        let folder = internals::cache_folder().ok_or_else(|| {
            Error::io(
                "there is no folder to keep compiled kernels in: neither XDG_CACHE_HOME nor HOME is set",
            )
            .with_help("name one in OPSMITH_CACHE_DIR")
        })?;
        let limit = match env::var("OPSMITH_CACHE_SIZE") {
            Err(_) => DEFAULT_LIMIT,
            Ok(text) => parse_size(&text).ok_or_else(|| {
                Error::value(format!("OPSMITH_CACHE_SIZE is `{text}`, which is no size"))
                    .with_help("write bytes, or a number with K, M or G: 500M")
            })?,
        };
        Cache::at(folder.join("aot"), limit)
    }

    /// One in a given folder, which is made if it is not there.
    ///
    /// # Errors
    /// As [`Cache::of_user`].
    pub fn at(root: PathBuf, limit: u64) -> Result<Cache> {
        make_private(&root)?;
        Ok(Cache { root, limit })
    }

    /// Where a file of that name is, whether it exists or not.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Notes that a file is used, unless that was noted a moment ago.
    pub fn touch(&self, file: &KernelFile) {
        let now = SystemTime::now();
        let noted =
            file.facts().modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age < MOMENT));
        if !noted {
            // If it cannot be noted, the file only leaves the cache sooner.
            let _ = File::options().append(true).open(file.path()).and_then(|file| file.set_modified(now));
        }
    }

    /// A name for a file that is being written, which no other process or thread uses.
    pub fn temporary(&self, suffix: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        self.root.join(format!("tmp-{}-{count}-{time:x}{suffix}", std::process::id()))
    }

    /// The file of that name, if it is there and its content is the one that the name says. A file that was
    /// cut off, overwritten, or cannot be read is as good as none.
    pub fn verified(&self, name: &str) -> Option<KernelFile> {
        // A name out of a damaged list must not lead out of the folder.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        let (stem, _) = name.split_once('.')?;
        let (_, hash) = stem.rsplit_once('-').filter(|_| name.bytes().all(plain))?;
        let file = KernelFile::open(&self.path(name)).ok()?;
        (hash_of(file.read().ok()?) == hash).then_some(file)
    }

    /// Puts a finished file in its place, and removes the least recently used files if the folder
    /// is full. Its name is `origin`, the hash of its content, and `end`.
    ///
    /// # Errors
    /// If it cannot be read or moved.
    pub fn insert(&self, temporary: &Path, origin: &str, end: &str) -> Result<PathBuf> {
        let name = format!("{origin}-{}{end}", hash_of(KernelFile::open(temporary)?.read()?));
        let path = self.path(&name);
        // Another process that made the same may have it open already.
        if self.verified(&name).is_none() {
            place(temporary, &path)?;
        }
        self.evict(&path);
        Ok(path)
    }

    /// A file with that content, which is written unless it is there; named as [`Cache::insert`] does.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, content: &[u8], origin: &str, end: &str) -> Result<PathBuf> {
        let name = format!("{origin}-{}{end}", hash_of(content));
        if let Some(file) = self.verified(&name) {
            self.touch(&file);
        } else {
            self.evict(&self.write(content, &name)?);
        }
        Ok(self.path(&name))
    }

    /// Writes a file of any name, which appears whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, content: impl AsRef<[u8]>, name: &str) -> Result<PathBuf> {
        let temporary = self.temporary("");
        let path = self.path(name);
        let written = File::create_new(&temporary)
            .and_then(|mut file| file.write_all(content.as_ref()))
            .map_err(|error| failed("write", &temporary, &error))
            .and_then(|()| place(&temporary, &path));
        if written.is_err() {
            _ = fs::remove_file(&temporary);
        }
        written.map(|()| path)
    }

    /// Makes a folder in it, in place of anything else of that name.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make_folder(&self, name: &str) -> Result<()> {
        let folder = self.path(name);
        if !folder.is_dir() {
            _ = fs::remove_file(&folder);
        }
        fs::create_dir_all(&folder).map_err(|error| failed("make", &folder, &error))
    }

    /// Removes the least recently used files until the rest fits; never `keep`.
    fn evict(&self, keep: &Path) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        let now = SystemTime::now();
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let (Ok(facts), path) = (entry.metadata(), entry.path()) else { continue };
            let Ok(used) = facts.modified() else { continue };
            let temporary = entry.file_name().to_string_lossy().starts_with("tmp-");
            if !facts.is_file() {
                continue;
            }
            match temporary {
                true if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                    _ = fs::remove_file(path)
                }
                true => {}
                false => files.push((used, facts.len(), path)),
            }
        }
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        files.sort();
        for (_, size, path) in files {
            if total <= self.limit {
                break;
            }
            // Another process may have removed it already. One that has it open keeps it.
            if path != keep && fs::remove_file(&path).is_ok() {
                total -= size;
            }
        }
    }
}

/// The hash of a file's content, as names have it.
fn hash_of(content: &[u8]) -> String {
    let mut key = Key::new("content 1");
    key.add(content);
    key.finish()
}

/// Renames a finished file. A folder in its place, which no version of this program makes, goes.
fn place(temporary: &Path, path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir()) {
        _ = fs::remove_dir_all(path);
    }
    fs::rename(temporary, path).map_err(|error| failed("move into", path, &error))
}

/// Makes a folder that only this user can enter, or checks that one is.
fn make_private(folder: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| failed("make", folder, &error))?;
    let facts = fs::metadata(folder).map_err(|error| failed("look at", folder, &error))?;
    // SAFETY: it only reads the user of the process.
    let user = unsafe { libc::geteuid() };
    if facts.uid() != user {
        return Err(Error::io(format!(
            "the cache folder {} belongs to user {}, not to user {user} who runs this: others could place kernels there",
            folder.display(),
            facts.uid()
        ))
        .with_help("name a folder of your own in OPSMITH_CACHE_DIR"));
    }
    if facts.permissions().mode() & 0o022 != 0 {
        return Err(Error::io(format!(
            "the cache folder {} can be written by other users, who could place kernels there",
            folder.display()
        ))
        .with_help(format!("chmod 700 {}", folder.display())));
    }
    Ok(())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("cannot {what} {}: {error}", path.display()))
        .with_help("compiled kernels are kept there; OPSMITH_CACHE_DIR names another folder")
}

fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = match text.to_ascii_uppercase().trim_end_matches('B').chars().last()? {
        'K' => (text.len() - 1, 10),
        'M' => (text.len() - 1, 20),
        'G' => (text.len() - 1, 30),
        _ => (text.len(), 0),
    };
    let digits = text.get(..digits)?.trim_end_matches(['K', 'M', 'G', 'k', 'm', 'g']).trim();
    digits.parse::<u64>().ok()?.checked_mul(1 << unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_units() {
        for (text, size) in [("1000", 1000), ("4K", 4096), ("2m", 2 << 20), (" 3 G ", 3 << 30)] {
            assert_eq!(parse_size(text), Some(size), "{text}");
        }
        for text in ["", "-1", "M", "1T", "x"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
