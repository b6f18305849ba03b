//! Writes generated files: all of them or none, and only those that changed.

pub mod formatted;
pub mod stamp;

use std::io;
use std::path::Path;

use crate::emit::File;

/// Writes files into the folder. A file with the same text is not touched, so that its dependents are not rebuilt; a
/// file that is no longer generated is removed.
///
/// # Errors
/// Errors of the file system.
pub fn write(folder: &Path, files: &[File]) -> io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut written = 0;
    for file in files {
        let path = folder.join(&file.name);
        if std::fs::read(&path).is_ok_and(|old| old == file.text.as_bytes()) {
            continue;
        }
        // An interrupted run leaves the old file or the new one, never a part.
        let temporary = folder.join(format!(".{}.tmp", file.name));
        std::fs::write(&temporary, &file.text)?;
        std::fs::rename(&temporary, &path)?;
        written += 1;
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let stale = entry.file_name().to_str().is_some_and(|name| {
            (name.ends_with(".rs") || name.ends_with(".h")) && !files.iter().any(|file| file.name == name)
        });
        if stale {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(written)
}
