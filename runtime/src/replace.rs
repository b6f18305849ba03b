//! Files that are replaced at once: whoever reads one sees the old bytes or the new, never some of them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file under another name and gives it its own when all of it is there. If anything fails, what was there
/// stays.
///
/// # Errors
/// Those of `write`, and those of the file system.
pub(crate) fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // A link keeps pointing where it did; what it points to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_beside(&path)?;
    let written = File::create_new(&temporary).map_err(E::from).and_then(|mut file| {
        write(&mut file)?;
        // Without this, a crash of the machine could leave the new name on an empty file.
        file.sync_all()?;
        Ok(fs::rename(&temporary, &path)?)
    });
    if written.is_err() {
        // The first error matters; there may be nothing to remove.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A name in the same folder, which renaming needs, that nothing else uses.
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
