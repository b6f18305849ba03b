//! Locations of code that a spec names: file and line of Rust and C++ functions.
//!
//! In: a configuration, and names. Out: places; nothing for a function that cannot be found, which is never guessed. Files
//! are searched as text, not compiled: a module's file first, then the files it may re-export from.

pub(crate) mod documented;
mod rust;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use opsmith_core::{Backend, cpp};

use crate::config::{Config, RustPath};
use crate::kernel_file;
use crate::model::{Kernel, KernelSource};
use rust::{Functions, is_part};

/// The root folders for a configuration's paths, with the files that were read.
pub struct CodePlaces {
    /// The root folder of C and C++ files.
    spec_folder: PathBuf,
    /// The folder of the crate with the kernels, if it is elsewhere.
    crate_folder: Option<PathBuf>,
    /// The module `kernels::`.
    kernels: ModuleRoot,
    /// The modules of kernels, by backend.
    backends: Vec<(Backend, ModuleRoot)>,
    files: HashMap<PathBuf, SourceFile>,
    /// The folders in which the file of a module may appear that some function is looked for in.
    awaited: BTreeSet<PathBuf>,
}

/// The folder of a module, and that of its crate's sources.
#[derive(Clone)]
struct ModuleRoot {
    module: PathBuf,
    sources: PathBuf,
}

/// A file that was read.
struct SourceFile {
    text: String,
    /// Its functions, if it is in Rust.
    functions: Functions,
}

impl CodePlaces {
    /// The places of a configuration.
    pub fn new(config: &Config) -> CodePlaces {
        let folder = config.spec.parent().unwrap_or(Path::new("")).to_owned();
        let module = |path: &RustPath| {
            let names: Vec<&str> = path.names().collect();
            let (root, rest) = match names.split_first() {
                // The stock library's kernels are a crate: beside the spec, unless packages have both.
                Some((first, rest)) if *first != "crate" => {
                    let name = first.strip_prefix("opsmith_").unwrap_or(first);
                    (config.kernel_crate.clone().unwrap_or_else(|| folder.join(name)), rest)
                }
                Some((_, rest)) => (folder.clone(), rest),
                None => (folder.clone(), &[][..]),
            };
            let sources = root.join("src");
            ModuleRoot { module: sources.join(rest.join("/")), sources }
        };
        CodePlaces {
            kernels: module(&config.kernels),
            backends: config.backends.iter().map(|(backend, path)| (*backend, module(path))).collect(),
            crate_folder: config.kernel_crate.clone(),
            spec_folder: folder,
            files: HashMap::new(),
            awaited: BTreeSet::new(),
        }
    }

    /// A Rust function named from the kernels' module, as `file:line`.
    pub fn rust(&mut self, path: &str) -> Option<String> {
        let root = self.kernels.clone();
        self.function(&root, path)
    }

    /// The documentation of a Rust function named from the kernels' module, and its parameters.
    fn documentation(&mut self, path: &str) -> Option<(String, Vec<String>)> {
        let place = self.rust(path)?;
        let (file, line) = place.rsplit_once(':')?;
        let text = &self.files.get(Path::new(file))?.text;
        rust::documentation(text, line.parse().ok()?)
    }

    /// The documentation of a backend's kernel in Rust.
    pub fn kernel_documentation(&mut self, path: &str, backend: Backend) -> Option<String> {
        let place = self.kernel(path, backend)?;
        let (file, line) = place.rsplit_once(':')?;
        let text = &self.files.get(Path::new(file))?.text;
        rust::documentation(text, line.parse().ok()?).map(|(text, _)| text)
    }

    /// A backend's kernel, as `file:line`.
    pub fn kernel(&mut self, path: &str, backend: Backend) -> Option<String> {
        let (_, root) = self.backends.iter().find(|(known, _)| *known == backend)?.clone();
        self.function(&root, path)
    }

    /// The function of a kernel, as `file:line` from the spec's folder; a file of another crate from the folder that
    /// contains it, so that the place is the same on every machine.
    pub fn of_kernel(&mut self, kernel: &Kernel) -> Option<String> {
        let place = match &kernel.source {
            KernelSource::Rust { path, .. } => self.kernel(path, kernel.backend),
            KernelSource::Foreign { file, symbol } | KernelSource::Aot { file, symbol } => {
                self.foreign(file, symbol)
            }
        }?;
        let elsewhere = self.crate_folder.as_deref().and_then(Path::parent);
        let roots = [Some(self.spec_folder.as_path()), elsewhere];
        let inside = roots.into_iter().flatten().find_map(|root| Path::new(&place).strip_prefix(root).ok());
        inside.map(|place| place.display().to_string().replace('\\', "/"))
    }

    /// The files and folders whose changes may change a place: files that were read, and folders in which the file of a module was
    /// missing.
    pub fn watched(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().chain(&self.awaited).map(PathBuf::as_path)
    }

    /// A C or C++ function, as `file:line`; none in a library, which has no text.
    pub fn foreign(&mut self, file: &Path, symbol: &str) -> Option<String> {
        if file.extension().is_some_and(|extension| extension == "so") {
            return None;
        }
        let file = self.spec_folder.join(file);
        let line = cpp::definition(&self.read(&file)?.text, symbol)?;
        Some(format!("{}:{line}", file.display()))
    }

    fn function(&mut self, root: &ModuleRoot, path: &str) -> Option<String> {
        let path = path.split('(').next().unwrap_or(path);
        let mut segments: Vec<&str> = path.split("::").collect();
        let function = segments.pop()?;
        let module = segments.iter().fold(root.module.clone(), |folder, segment| folder.join(segment));
        let mut own = vec![module.with_extension("rs"), module.join("mod.rs")];
        if segments.is_empty() {
            // The root module of a crate is called `lib.rs`.
            own.insert(0, module.join("lib.rs"));
        }
        for file in &own {
            if let Some(place) = self.declared_in(file, function) {
                return Some(place);
            }
        }
        // Re-exported from a module inside, or from a sibling.
        let name = self.original_name(&own, function).unwrap_or_else(|| function.to_owned());
        let folders = [module.clone(), module.parent().unwrap_or(&root.module).to_owned()];
        let found = folders.iter().find_map(|folder| {
            let found: Vec<String> =
                rust_files(folder).iter().filter_map(|file| self.declared_in(file, &name)).collect();
            // If several functions have that name, the intended one is unknown.
            <[String; 1]>::try_from(found).ok().map(|[place]| place)
        });
        if found.is_none() && !own.iter().any(|file| self.files.contains_key(file)) {
            // The innermost folder that is there changes when the file, or a folder on the way to it, is made. Never the crate's
            // own, in which builds write.
            let inside = |folder: &&Path| folder.starts_with(&root.sources) && folder.is_dir();
            self.awaited.extend(module.ancestors().skip(1).find(inside).map(Path::to_owned));
        }
        found
    }

    /// The original name of a function in `pub use …::original as function`.
    fn original_name(&mut self, files: &[PathBuf], function: &str) -> Option<String> {
        files.iter().find_map(|file| {
            let text = &self.read(file)?.text;
            let (before, _) = text.split_once(&format!(" as {function}"))?;
            let name = before.rsplit(|c| !is_part(c)).next()?;
            Some(name.to_owned())
        })
    }

    /// The line of a public function's declaration, or of the macro call that makes it.
    fn declared_in(&mut self, file: &Path, function: &str) -> Option<String> {
        let Functions { declared, made } = &self.read(file)?.functions;
        let line = declared.get(function).or_else(|| made.get(function))?;
        Some(format!("{}:{}", file.display(), line + 1))
    }

    fn read(&mut self, file: &Path) -> Option<&SourceFile> {
        if !self.files.contains_key(file) {
            // Comments in C may be in another encoding.
            let text = String::from_utf8_lossy(&kernel_file::read(file)?).into_owned();
            let is_rust = file.extension().is_some_and(|extension| extension == "rs");
            let functions = if is_rust { Functions::of(&text) } else { Functions::default() };
            self.files.insert(file.to_owned(), SourceFile { text, functions });
        }
        self.files.get(file)
    }
}

/// The Rust files of a folder and those inside it, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
