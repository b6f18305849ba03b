//! The folder of a site: written whole, and only over a site.
//!
//! In: the files of a site. Out: the folder with these files and [`MARK`], which lists them. Files that an earlier run listed
//! and that this one does not have are removed. A folder with other files than a site's is refused.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};
use opsmith_tools::site::SiteFile;

/// The file that marks a folder as a site's; a file of the site in each line.
pub const MARK: &str = ".opsmith-docs";

/// Writes a site into a folder.
///
/// # Errors
/// If the folder has other files, or something cannot be written.
pub fn write(folder: &Path, files: &[SiteFile]) -> Result<()> {
    let earlier = earlier(folder)?;
    let mut made: BTreeSet<&Path> = BTreeSet::new();
    // A run that is interrupted leaves a mark, so that the next one may finish it.
    let now: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let all: BTreeSet<&str> = earlier.iter().map(String::as_str).chain(now.iter().copied()).collect();
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    mark(folder, &all)?;
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = Path::new(&file.path).parent().filter(|parent| made.insert(parent)) {
            let parent = folder.join(parent);
            std::fs::create_dir_all(&parent)
                .with_context(|| format!("cannot make the folder {}", parent.display()))?;
        }
        std::fs::write(&path, &file.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for file in earlier.iter().filter(|file| !now.contains(file.as_str())) {
        let path = folder.join(file);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
            _ => {}
        }
    }
    mark(folder, &now)
}

fn mark(folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    let text: String = files.iter().map(|file| format!("{file}\n")).collect();
    let path = folder.join(MARK);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The files that an earlier run wrote; nothing for a folder that is empty or not there.
fn earlier(folder: &Path) -> Result<Vec<String>> {
    match std::fs::read_to_string(folder.join(MARK)) {
        // A damaged list removes nothing outside of the folder.
        Ok(text) => Ok(text.lines().filter(|line| is_inside(line)).map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_empty = match std::fs::read_dir(folder) {
                Ok(mut entries) => entries.next().is_none(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot read the folder {}", folder.display()));
                }
            };
            if !is_empty {
                bail!(
                    "{} has files that no `opsmith docs` wrote; name an empty folder by -o, or empty this one yourself",
                    folder.display()
                );
            }
            Ok(Vec::new())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", folder.join(MARK).display())),
    }
}

/// Whether a path stays inside the folder that it is relative to.
pub fn is_inside(path: &str) -> bool {
    let names = || Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    !path.is_empty() && !path.contains('\\') && !path.contains('\0') && names()
}
