//! From a source file to a library: out of the cache, or through the compiler and into it.
//!
//! In: a source, flags, and the signature to embed. Out: the path of a shared object that was made from
//! exactly these. An entry of the cache is found in two steps: source, flags and compiler lead to a list
//! of included files with their times, and the entry whose included files are still the same names the object.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use opsmith_runtime::error::{Error, Result};

use super::cache::{Cache, Key};
use super::compiler::{Compiler, Language};
use super::file::KernelFile;
use super::manifest::{Entry, Known, Manifest, hash_of};

/// The header that kernels include, beside which existing sources compile unchanged.
const HEADER: &str = include_str!("custom_aot_extra.h");
const HEADER_NAME: &str = "custom_aot_extra.h";

/// The inputs of a build: source, compiler, flags.
#[derive(Debug)]
pub(super) struct Recipe<'a> {
    pub source: &'a KernelFile,
    pub language: Language,
    /// Flags of the user, after the default ones.
    pub flags: &'a [String],
    /// Name and text of the signature that the library carries.
    pub fingerprint: Option<(String, String)>,
}

/// A library that was made.
#[derive(Debug)]
pub(super) struct Built {
    pub library: KernelFile,
    /// How long the compiler ran, if it did.
    pub compiled: Option<Duration>,
    /// The source and the files that it includes, save those of the system.
    pub files: Vec<PathBuf>,
}

/// Makes the library, or finds it.
///
/// # Errors
/// If the source cannot be read, there is no compiler, or it refuses the source.
pub(super) fn build(recipe: &Recipe<'_>) -> Result<Built> {
    let source = recipe.source.path();
    if source.as_os_str().as_encoded_bytes().contains(&b'\n') {
        return Err(Error::io(format!("the path of the source has a line break: {}", source.display()))
            .with_help("compilers cannot list the files of such a source; rename it"));
    }
    let cache = Cache::of_user()?;
    let compiler = Compiler::find(recipe.language)?;
    let mut flags = compiler.default_flags();
    flags.push(format!("-I{}", source.parent().unwrap_or(Path::new("/")).display()));
    flags.push(format!("-I{}", header_folder(&cache)?.display()));
    flags.extend(recipe.flags.iter().cloned());
    let (before, signature) = fingerprint_header(&cache, recipe)?;
    let hash = hash_of(recipe.source.read()?);

    let mut key = Key::new("manifest 4");
    key.add(source.as_os_str().as_encoded_bytes());
    key.add(&hash);
    key.add(flags.join("\0"));
    key.add(before.as_os_str().as_encoded_bytes());
    key.add(compiler.identity(&flags));
    let key = key.finish();

    let known = [Known { path: source, hash: &hash }, Known { path: &before, hash: &signature }];
    if let Ok(file) = KernelFile::open(&cache.path(&format!("{key}.json")))
        && let Some(entry) = Manifest::read(&file).current(&known)
        && let Some(library) = cache.verified(&entry.object)
    {
        cache.touch(&library);
        cache.touch(&file);
        return Ok(Built { library, compiled: None, files: entry.own_files() });
    }
    compile(recipe, &cache, &compiler, &flags, &before, &key)
}

/// Runs the compiler, and puts the library into the cache.
fn compile(
    recipe: &Recipe<'_>,
    cache: &Cache,
    compiler: &Compiler,
    flags: &[String],
    before: &Path,
    key: &str,
) -> Result<Built> {
    let temporary = Temporary(cache.temporary(".so"));
    let dependencies = Temporary(cache.temporary(".d"));
    let (started, before_compiling) = (SystemTime::now(), Instant::now());
    compiler.compile(recipe.source.path(), flags, before, &temporary.0, &dependencies.0)?;
    let compiled = before_compiling.elapsed();
    let mut entry = Entry::of(KernelFile::open(&dependencies.0)?.read()?)?;
    let mut origin = Key::new("object 2");
    origin.add(key);
    entry.hashes().for_each(|hash| origin.add(hash));
    let library = cache.insert(&temporary.0, &origin.finish(), ".so")?;
    let files = entry.own_files();
    if entry.is_older_than(started) {
        entry.object = library.file_name().unwrap_or_default().to_string_lossy().into_owned().into();
        // Read again: another process may have added to it while the compiler ran.
        let file = KernelFile::open(&cache.path(&format!("{key}.json")));
        let mut known = file.as_ref().map(Manifest::read).unwrap_or_default();
        known.remember(entry);
        let text = serde_json::to_string(&known).map_err(|error| Error::io(error.to_string()))?;
        cache.write(&text, &format!("{key}.json"))?;
    }
    Ok(Built { library: KernelFile::open(&library)?, compiled: Some(compiled), files })
}

/// A place in the cache for a library that is not made here, by its content, so that the file it was
/// copied from can be replaced while it is in use.
///
/// # Errors
/// If it cannot be read or copied.
pub(super) fn copy(library: &KernelFile) -> Result<PathBuf> {
    Cache::of_user()?.store(library.read()?, "library", ".so")
}

/// The folder with our header, which sources find unless they have their own beside them.
fn header_folder(cache: &Cache) -> Result<PathBuf> {
    let mut key = Key::new("header 1");
    key.add(HEADER);
    let name = format!("include-{}", key.finish());
    let folder = cache.path(&name);
    let path = folder.join(HEADER_NAME);
    let is_right =
        || KernelFile::open(&path).is_ok_and(|file| file.read().is_ok_and(|text| text == HEADER.as_bytes()));
    if !is_right() {
        cache.make_folder(&name)?;
        cache.write(HEADER, &format!("{name}/{HEADER_NAME}"))?;
    }
    Ok(folder)
}

/// A header, included before the source, that puts the signature into the library; and the hash of its content.
fn fingerprint_header(cache: &Cache, recipe: &Recipe<'_>) -> Result<(PathBuf, String)> {
    let text = match &recipe.fingerprint {
        None => String::new(),
        Some((name, text)) => format!(
            "extern \"C\" {{\nextern const char {name}[] __attribute__((visibility(\"default\")));\n\
             const char {name}[] __attribute__((used)) = {text:?};\n}}\n"
        ),
    };
    Ok((cache.store(text.as_bytes(), "signature", ".h")?, hash_of(text.as_bytes())))
}

/// A file that is removed when this is dropped; not if it was moved to its place.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
