//! Compiled images on disk: a folder of the user, safe to share between processes.
//!
//! In: keys and images. Out: the same images, in this process or another. A file starts with the hash of its image, which
//! is verified at each read, so that a damaged file is as good as none; it appears whole, by renaming. Where there is no
//! folder that only this user can write to, nothing is kept. Must not know the compiler.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use opsmith_runtime::internals;
use sha2::{Digest, Sha256};

/// The size limit of the folder in bytes, unless `OPSMITH_CACHE_SIZE` sets another.
const DEFAULT_LIMIT: u64 = 1 << 30;
const HASH_BYTES: usize = 32;

/// The folder.
pub struct Cache {
    root: PathBuf,
    limit: u64,
}

impl Cache {
    /// The user's: `cuda` in `OPSMITH_CACHE_DIR`, or in `opsmith` in `XDG_CACHE_HOME` or `~/.cache`. `None` if there is no
    /// such place, or others may write to it.
    pub fn of_user() -> Option<Cache> {
        let limit = env::var("OPSMITH_CACHE_SIZE").ok().and_then(|text| crate::settings::parse_bytes(&text));
        let limit = limit.map_or(DEFAULT_LIMIT, |bytes| bytes as u64);
        Cache::at(internals::cache_folder()?.join("cuda"), limit)
    }

    fn at(root: PathBuf, limit: u64) -> Option<Cache> {
        DirBuilder::new().recursive(true).mode(0o700).create(&root).ok()?;
        let facts = fs::metadata(&root).ok()?;
        // SAFETY: it only reads the user of the process.
        let is_own = facts.uid() == unsafe { libc::geteuid() };
        (is_own && facts.permissions().mode() & 0o022 == 0).then_some(Cache { root, limit })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.join(format!("{key}.image"))
    }

    /// The image of a key, if it is there and undamaged.
    pub fn read(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let mut content = fs::read(&path).ok()?;
        let image = content.split_off(content.len().min(HASH_BYTES));
        if content != Sha256::digest(&image).as_slice() {
            _ = fs::remove_file(path);
            return None;
        }
        // If the use cannot be noted, the file only leaves the cache sooner.
        _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(image)
    }

    /// Keeps an image; a failure to write it is no error, as it is compiled again.
    pub fn write(&self, key: &str, image: &[u8]) {
        let path = self.path(key);
        let written = internals::replace(&path, |file| {
            file.write_all(&Sha256::digest(image))?;
            file.write_all(image)
        });
        if written.map_err(|error: std::io::Error| error).is_ok() {
            self.evict(&path);
        }
    }

    /// Removes the least recently used files until the rest fits; never `keep`.
    fn evict(&self, keep: &Path) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        let facts = |entry: fs::DirEntry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries.flatten().filter_map(facts).collect();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        if total <= self.limit {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total > self.limit && path != keep && fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("opsmith-cuda-{}-{name}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_damaged_image_is_none() {
        let root = folder("damaged");
        let cache = Cache::at(root.clone(), 1 << 20).unwrap();
        assert_eq!(cache.read("a"), None);
        cache.write("a", b"image");
        assert_eq!(cache.read("a").as_deref(), Some(&b"image"[..]));
        for damage in [&b""[..], b"short", &[0; 40]] {
            fs::write(cache.path("a"), damage).unwrap();
            assert_eq!(cache.read("a"), None);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let root = folder("full");
        let cache = Cache::at(root.clone(), 100).unwrap();
        for (age, key) in [(30, "a"), (20, "b")] {
            cache.write(key, &[1; 10]);
            let time = SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().append(true).open(cache.path(key)).unwrap().set_modified(time).unwrap();
        }
        assert!(cache.read("a").is_some(), "a use makes it recent");
        cache.write("c", &[1; 10]);
        assert_eq!(["a", "b", "c"].map(|key| cache.read(key).is_some()), [true, false, true]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_of_others_is_not_used() {
        let root = folder("open");
        fs::create_dir_all(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Cache::at(root.clone(), 100).is_none());
        fs::remove_dir_all(root).unwrap();
    }
}
