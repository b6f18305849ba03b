//! From a source file to a library: out of the cache, or through the compiler and into it.
//!
//! In: a source, flags, and the signature to embed. Out: the path of a shared object that was made from
//! exactly these. What is in the cache is found in two steps: source, flags and compiler lead to a list
//! of what was included when, and the entry whose included files are still the same names the object.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::cache::{Cache, Key};
use super::compiler::{Compiler, Language};
use crate::error::{Error, Result};

/// The header that kernels include, beside which existing sources compile unchanged.
const HEADER: &str = include_str!("../../../kernels/include/custom_aot_extra.h");
const HEADER_NAME: &str = "custom_aot_extra.h";
/// How many states of the included files are remembered for one source.
const REMEMBERED: usize = 8;

/// What a library is made from.
#[derive(Clone, Debug)]
pub(super) struct Recipe<'a> {
    pub source: &'a Path,
    pub language: Language,
    /// Flags of the user, after the default ones.
    pub flags: &'a [String],
    /// Name and text of the signature that the library carries.
    pub fingerprint: Option<(String, String)>,
}

/// A library that was made.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub library: PathBuf,
    /// How long the compiler ran, if it did.
    pub compiled: Option<Duration>,
    /// The source and what it includes, save what belongs to the system.
    pub files: Vec<PathBuf>,
}

/// Makes the library, or finds it.
///
/// # Errors
/// If the source cannot be read, there is no compiler, or it refuses the source.
pub(super) fn build(recipe: &Recipe<'_>) -> Result<Built> {
    let source = fs::canonicalize(recipe.source).map_err(|error| unreadable(recipe.source, &error))?;
    let cache = Cache::of_user()?;
    let compiler = Compiler::find(recipe.language)?;
    let mut flags = compiler.default_flags();
    flags.push(format!("-I{}", source.parent().unwrap_or(Path::new("/")).display()));
    flags.push(format!("-I{}", header_folder(&cache)?.display()));
    flags.extend(recipe.flags.iter().cloned());
    let before = fingerprint_header(&cache, recipe)?;

    let started = SystemTime::now();
    let content = fs::read(&source).map_err(|error| unreadable(&source, &error))?;
    let mut key = Key::new("manifest 2");
    key.add(source.as_os_str().as_encoded_bytes());
    key.add(&content);
    key.add(flags.join("\0"));
    key.add(before.as_os_str().as_encoded_bytes());
    key.add(compiler.identity(&flags));
    let key = key.finish();

    let manifest = cache.path(&format!("{key}.json"));
    let known = Manifest::read(&manifest);
    if let Some(entry) = known.entries.iter().find(|entry| entry.is_current()) {
        let library = cache.path(&entry.object);
        if fs::metadata(&library).is_ok_and(|facts| facts.len() > 0) {
            cache.touch(&library);
            cache.touch(&manifest);
            return Ok(Built { library, compiled: None, files: entry.own_files() });
        }
    }
    let temporary = Temporary(cache.temporary(".so"));
    let dependencies = Temporary(cache.temporary(".d"));
    let before_compiling = Instant::now();
    compiler.compile(&source, &flags, &before, &temporary.0, &dependencies.0)?;
    let compiled = before_compiling.elapsed();
    let read = fs::read_to_string(&dependencies.0).map_err(|error| unreadable(&dependencies.0, &error))?;
    let mut entry = Entry { object: String::new(), files: Vec::new() };
    let mut object = Key::new("object 1");
    object.add(&key);
    let mut settled = true;
    for path in listed(&read) {
        let file =
            Dependency::of(&path).ok_or_else(|| unreadable(&path, &std::io::Error::other("it went away")))?;
        // A file that was changed while the compiler ran: nobody knows which state it read.
        settled &= file.is_older_than(started);
        object.add(&file.hash);
        entry.files.push(file);
    }
    entry.object = format!("{}.so", object.finish());
    let library = cache.insert(&temporary.0, &entry.object)?;
    let files = entry.own_files();
    if settled {
        // Read again: another process may have added to it while the compiler ran.
        let mut known = Manifest::read(&manifest);
        known.entries.retain(|other| other.object != entry.object);
        known.entries.insert(0, entry);
        known.entries.truncate(REMEMBERED);
        let text = serde_json::to_string(&known).map_err(|error| Error::io(error.to_string()))?;
        cache.insert_text(&text, &format!("{key}.json"))?;
    }
    Ok(Built { library, compiled: Some(compiled), files })
}

/// A place in the cache for a library that is not made here, by its content, so that the file it was
/// copied from can be replaced while it is in use.
///
/// # Errors
/// If it cannot be read or copied.
pub(super) fn copy(library: &Path) -> Result<PathBuf> {
    let content = fs::read(library).map_err(|error| unreadable(library, &error))?;
    let cache = Cache::of_user()?;
    let mut key = Key::new("copy 1");
    key.add(&content);
    let name = format!("{}.so", key.finish());
    let path = cache.path(&name);
    if path.is_file() {
        cache.touch(&path);
        return Ok(path);
    }
    let temporary = Temporary(cache.temporary(".so"));
    fs::write(&temporary.0, &content).map_err(|error| unreadable(&temporary.0, &error))?;
    cache.insert(&temporary.0, &name)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("cannot read {}: {error}", path.display()))
}

/// The folder with our header, which sources find unless they have their own beside them.
fn header_folder(cache: &Cache) -> Result<PathBuf> {
    let mut key = Key::new("header 1");
    key.add(HEADER);
    let folder = cache.path(&format!("include-{}", key.finish()));
    let path = folder.join(HEADER_NAME);
    if !path.is_file() {
        fs::create_dir_all(&folder).map_err(|error| unreadable(&folder, &error))?;
        let temporary = Temporary(cache.temporary(".h"));
        fs::write(&temporary.0, HEADER).map_err(|error| unreadable(&temporary.0, &error))?;
        fs::rename(&temporary.0, &path).map_err(|error| unreadable(&path, &error))?;
    }
    Ok(folder)
}

/// A header, included before the source, that puts the signature into the library.
fn fingerprint_header(cache: &Cache, recipe: &Recipe<'_>) -> Result<PathBuf> {
    let text = match &recipe.fingerprint {
        None => String::new(),
        Some((name, text)) => format!(
            "extern \"C\" {{\nextern const char {name}[] __attribute__((visibility(\"default\")));\n\
             const char {name}[] __attribute__((used)) = {text:?};\n}}\n"
        ),
    };
    let mut key = Key::new("signature 1");
    key.add(&text);
    let name = format!("{}.h", key.finish());
    let path = cache.path(&name);
    if path.is_file() { Ok(path) } else { cache.insert_text(&text, &name) }
}

/// The files that a compiler lists as read, in the syntax of make.
fn listed(text: &str) -> Vec<PathBuf> {
    let text = text.replace("\\\n", " ");
    let Some((_, files)) = text.split_once(": ") else { return Vec::new() };
    let mut paths = vec![String::new()];
    let mut characters = files.chars().peekable();
    while let Some(character) = characters.next() {
        let last = paths.last_mut().unwrap_or_else(|| unreachable!("there is always one"));
        match character {
            '\\' if matches!(characters.peek(), Some(' ' | '#' | '\\')) => last.extend(characters.next()),
            '$' if characters.peek() == Some(&'$') => last.extend(characters.next()),
            '\n' => break,
            character if character.is_whitespace() => paths.push(String::new()),
            character => last.push(character),
        }
    }
    paths.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// What is known of the libraries made from one source.
#[derive(Default, Serialize, Deserialize)]
struct Manifest {
    entries: Vec<Entry>,
}

/// One library, and the files it was made from.
#[derive(Serialize, Deserialize)]
struct Entry {
    object: String,
    files: Vec<Dependency>,
}

/// A file as it was when it was read.
#[derive(Serialize, Deserialize)]
struct Dependency {
    path: PathBuf,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    hash: String,
}

impl Manifest {
    /// What was written; nothing if there is none, or none that can be read.
    fn read(path: &Path) -> Manifest {
        fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }
}

impl Entry {
    fn is_current(&self) -> bool {
        self.files.iter().all(Dependency::is_current)
    }

    fn own_files(&self) -> Vec<PathBuf> {
        self.files.iter().filter(|file| !file.is_of_system()).map(|file| file.path.clone()).collect()
    }
}

impl Dependency {
    fn of(path: &Path) -> Option<Dependency> {
        let path = std::path::absolute(path).ok()?;
        let facts = fs::metadata(&path).ok()?;
        let mut key = Key::new("file 1");
        key.add(fs::read(&path).ok()?);
        Some(Dependency {
            path,
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            hash: key.finish(),
        })
    }

    /// Whether the file is what it was. Of the system's files, when they were changed is enough.
    fn is_current(&self) -> bool {
        if !self.is_of_system() {
            return Dependency::of(&self.path).is_some_and(|now| now.hash == self.hash);
        }
        let Ok(facts) = fs::metadata(&self.path) else { return false };
        let same = facts.size() == self.size
            && (facts.mtime(), facts.mtime_nsec()) == self.modified
            && (facts.ctime(), facts.ctime_nsec()) == self.changed;
        same || Dependency::of(&self.path).is_some_and(|now| now.hash == self.hash)
    }

    fn is_of_system(&self) -> bool {
        self.path.starts_with("/usr") || self.path.starts_with("/opt")
    }

    fn is_older_than(&self, time: SystemTime) -> bool {
        let time = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanoseconds) = (time.as_secs() as i64, i64::from(time.subsec_nanos()));
        self.modified < (seconds, nanoseconds) && self.changed < (seconds, nanoseconds)
    }
}

/// A file that is removed when nobody wants it any more; not if it was moved to its place.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_files_are_read_as_make_reads_them() {
        let text = "out.so: a.cc \\\n /usr/include/b.h with\\ blank.h \\\n  cost$$.h\n\nb.h:\n";
        let expected = ["a.cc", "/usr/include/b.h", "with blank.h", "cost$.h"].map(PathBuf::from);
        assert_eq!(listed(text), expected);
    }
}
