//! The spec that a file belongs to: the outermost file that includes it.
//!
//! In: the path of a file. Out: that of its spec; `None` if the file is no spec. Specs are looked for in the folder of the
//! file and those around it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use opsmith_tools::fmt;

use super::documents::Documents;
use super::paths::identity;

/// Folders above a file that may have its spec.
const MAX_LEVELS: usize = 4;
/// Files of a folder that may be its spec.
const MAX_FILES: usize = 200;
/// Files that a spec may include, of those that are looked at.
const MAX_INCLUDED: usize = 500;

/// The spec of a file.
pub fn root_of(documents: &Documents, file: &Path) -> Option<PathBuf> {
    let mut root = identity(file);
    let mut found = is_spec(documents, &root);
    // Each round finds a file that includes the last; a cycle of includes ends by the limit.
    for _ in 0..MAX_LEVELS {
        let Some(outer) = including(documents, &root) else { break };
        (root, found) = (outer, true);
    }
    found.then_some(root)
}

/// A file that includes another, directly or through others.
fn including(documents: &Documents, file: &Path) -> Option<PathBuf> {
    for folder in file.ancestors().skip(1).take(MAX_LEVELS) {
        let listed = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_yaml = |path: &PathBuf| path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        let mut candidates: Vec<PathBuf> = listed.filter(is_yaml).take(MAX_FILES).collect();
        candidates.sort();
        let found = candidates
            .into_iter()
            .find(|candidate| identity(candidate) != file && included(documents, candidate).contains(file));
        if found.is_some() {
            return found.map(|found| identity(&found));
        }
    }
    None
}

/// The files that a spec includes, directly or through others; without itself, even if they include it.
fn included(documents: &Documents, spec: &Path) -> HashSet<PathBuf> {
    let mut found = HashSet::new();
    let mut open = vec![spec.to_owned()];
    while let Some(file) = open.pop() {
        let Ok(bytes) = documents.read(&file) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        if !text.lines().any(|line| line.starts_with("include:")) {
            continue;
        }
        let folder = file.parent().unwrap_or(Path::new(""));
        for name in includes(&text) {
            let inner = identity(&folder.join(name));
            if found.len() < MAX_INCLUDED && inner != identity(spec) && found.insert(inner.clone()) {
                open.push(inner);
            }
        }
    }
    found
}

/// The names after `include:`; by their lines, while the text is not YAML.
fn includes(text: &str) -> Vec<String> {
    let parsed = fmt::includes(text);
    if !parsed.is_empty() {
        return parsed;
    }
    let after = text.lines().skip_while(|line| !line.starts_with("include:")).skip(1);
    let items = after.map_while(|line| line.trim_start().strip_prefix("- "));
    items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect()
}

/// Whether a file has the keys of a spec at its top, or the usual name of one.
fn is_spec(documents: &Documents, file: &Path) -> bool {
    if file.file_name().is_some_and(|name| name == "ops.yaml") {
        return true;
    }
    let Ok(bytes) = documents.read(file) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    has("edition:") && (has("ops:") || has("functions:") || has("declarations:") || has("include:"))
}
