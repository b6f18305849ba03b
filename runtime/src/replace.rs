//! Atomic replacement of files: a reader sees the old bytes or the new, never a mixture.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file under a temporary name and renames it when it is complete. On failure the old file stays.
///
/// # Errors
/// Errors of `write`, and those of the file system.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // A symbolic link stays; the file that it points to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_beside(&path)?;
    let written = File::create_new(&temporary).map_err(E::from).and_then(|mut file| {
        write(&mut file)?;
        // Without this, a crash of the machine could leave an empty file under the new name.
        file.sync_all()?;
        Ok(fs::rename(&temporary, &path)?)
    });
    if written.is_err() {
        // The first error matters; there may be no file to remove.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// An unused name in the same folder, as renaming requires.
fn temporary_beside(path: &Path) -> io::Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file");
    let name = path.file_name().ok_or_else(unnamed)?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.{number}.tmp", std::process::id()));
    Ok(path.with_file_name(temporary))
}
