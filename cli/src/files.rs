//! Atomic replacement of files.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use opsmith_tools::scaffold::FileChange;

/// Replaces a file atomically, keeping its permissions; a reader sees the old text or the new one.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    // A symbolic link stays one.
    let file = std::fs::canonicalize(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let next = folder.join(format!(".{name}.{}", std::process::id()));
    let permissions = std::fs::metadata(&file)?.permissions();
    let written = std::fs::write(&next, text)
        .and_then(|()| std::fs::set_permissions(&next, permissions))
        .and_then(|()| std::fs::rename(&next, &file));
    if written.is_err() {
        // The first error explains the failure; this file is useless.
        _ = std::fs::remove_file(&next);
    }
    written
}

/// Applies every change: new files first, so that references to them come last. If one fails, the new files are
/// removed.
///
/// # Errors
/// If a file cannot be written; existing files are unchanged then.
pub fn apply(changes: &[FileChange]) -> Result<()> {
    let mut made: Vec<&Path> = Vec::new();
    for change in changes.iter().filter(|change| !change.exists) {
        let written = create(&change.path, &change.text);
        if written.is_err() {
            // The error below names the neighbour of a file that cannot be removed.
            made.iter().for_each(|path| _ = std::fs::remove_file(path));
        }
        written.with_context(|| format!("cannot write {}", change.path.display()))?;
        made.push(&change.path);
    }
    for change in changes.iter().filter(|change| change.exists) {
        replace(&change.path, &change.text)
            .with_context(|| format!("cannot write {}", change.path.display()))?;
    }
    Ok(())
}

/// Creates a file; an error if it exists by now.
fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
