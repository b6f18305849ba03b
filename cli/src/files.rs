//! Writes files, each at once.

use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use opsmith_tools::scaffold::Change;

/// Replaces a file all at once, keeping its permissions; a reader sees the old text or the new one.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    // A link stays a link.
    let file = std::fs::canonicalize(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let next = folder.join(format!(".{name}.{}", std::process::id()));
    let permissions = std::fs::metadata(&file)?.permissions();
    let written = std::fs::write(&next, text)
        .and_then(|()| std::fs::set_permissions(&next, permissions))
        .and_then(|()| std::fs::rename(&next, &file));
    if written.is_err() {
        // The first error says what went wrong; this file is of no use to anyone.
        _ = std::fs::remove_file(&next);
    }
    written
}

/// Makes every change: new files first, so that what refers to them comes last. If one fails, the new
/// files are taken back.
///
/// # Errors
/// If a file cannot be written; nothing that was there before is changed by then.
pub fn apply(changes: &[Change]) -> Result<()> {
    let mut made: Vec<&Path> = Vec::new();
    for change in changes.iter().filter(|change| !change.exists) {
        let written = create(&change.path, &change.text);
        if written.is_err() {
            // What cannot be removed is named by the error below as its neighbour.
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

/// A new file, which nobody made in the meantime.
fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}
