//! Locations of code that a spec names: file and line of Rust and C++ functions and of keys.
//!
//! Files are searched as text, not compiled: a module's file first, then the files it may re-export from. A location
//! that cannot be found is reported as unknown, never guessed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use opsmith_codegen::Backend;
use opsmith_codegen::config::{Config, RustPath};
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::Checked;

/// The root folders for a configuration's paths, with the files that were read.
pub struct Sources {
    /// The root folder of C and C++ files.
    spec_folder: PathBuf,
    /// The module `kernels::`.
    kernels: PathBuf,
    /// The modules of kernels, by backend.
    backends: Vec<(Backend, PathBuf)>,
    files: HashMap<PathBuf, String>,
}

impl Sources {
    /// The sources of a configuration.
    pub fn new(config: &Config) -> Sources {
        let folder = config.spec.parent().unwrap_or(Path::new("")).to_owned();
        let module = |path: &RustPath| {
            let names: Vec<&str> = path.names().collect();
            match names.split_first() {
                Some((&"crate", rest)) => folder.join("src").join(rest.join("/")),
                // The stock library's kernels are a crate beside the spec.
                Some((first, rest)) => {
                    let name = first.strip_prefix("opsmith_").unwrap_or(first);
                    folder.join(name).join("src").join(rest.join("/"))
                }
                None => folder.clone(),
            }
        };
        Sources {
            kernels: module(&config.kernels),
            backends: config.backends.iter().map(|(backend, path)| (*backend, module(path))).collect(),
            spec_folder: folder,
            files: HashMap::new(),
        }
    }

    /// A Rust function named from the kernels' module, as `file:line`.
    pub fn rust(&mut self, path: &str) -> Option<String> {
        let root = self.kernels.clone();
        self.function(&root, path)
    }

    /// A backend's kernel, as `file:line`.
    pub fn kernel(&mut self, path: &str, backend: Backend) -> Option<String> {
        let (_, root) = self.backends.iter().find(|(known, _)| *known == backend)?.clone();
        self.function(&root, path)
    }

    /// A C or C++ function, as `file:line`.
    pub fn foreign(&mut self, file: &Path, symbol: &str) -> Option<String> {
        let file = self.spec_folder.join(file);
        let text = self.read(&file)?;
        let line = text.lines().position(|line| {
            has_word(line, symbol)
                && line.contains('(')
                && !line.trim_start().starts_with("//")
                && !line.trim_end().ends_with(';')
        })?;
        Some(format!("{}:{}", file.display(), line + 1))
    }

    fn function(&mut self, root: &Path, path: &str) -> Option<String> {
        let path = path.split('(').next().unwrap_or(path);
        let mut segments: Vec<&str> = path.split("::").collect();
        let function = segments.pop()?;
        let module = segments.iter().fold(root.to_owned(), |folder, segment| folder.join(segment));
        let own = [module.with_extension("rs"), module.join("mod.rs")];
        if segments.is_empty() {
            // The root module of a crate is called `lib.rs`.
            if let Some(place) = self.declared_in(&module.join("lib.rs"), function) {
                return Some(place);
            }
        }
        for file in &own {
            if let Some(place) = self.declared_in(file, function) {
                return Some(place);
            }
        }
        // Re-exported from a module inside, or from a sibling.
        let name = self.original_name(&own, function).unwrap_or_else(|| function.to_owned());
        let folders = [module.clone(), module.parent().unwrap_or(root).to_owned()];
        folders.iter().find_map(|folder| {
            let found: Vec<String> =
                rust_files(folder).iter().filter_map(|file| self.declared_in(file, &name)).collect();
            // If several functions have that name, the intended one is unknown.
            <[String; 1]>::try_from(found).ok().map(|[place]| place)
        })
    }

    /// The original name of a function in `pub use …::original as function`.
    fn original_name(&mut self, files: &[PathBuf], function: &str) -> Option<String> {
        files.iter().find_map(|file| {
            let text = self.read(file)?;
            let (before, _) = text.split_once(&format!(" as {function}"))?;
            let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            Some(name.to_owned())
        })
    }

    /// The line of a public function's declaration, or of the macro call that makes it.
    fn declared_in(&mut self, file: &Path, function: &str) -> Option<String> {
        let text = self.read(file)?;
        let heads = [format!("fn {function}("), format!("fn {function}<")];
        let declares = |line: &str| {
            let line = line.trim_start();
            line.starts_with("pub") && heads.iter().any(|head| line.contains(head.as_str()))
        };
        let line = text.lines().position(declares).or_else(|| made_by_macro(text, function))?;
        Some(format!("{}:{}", file.display(), line + 1))
    }

    fn read(&mut self, file: &Path) -> Option<&String> {
        if !self.files.contains_key(file) {
            let text = std::fs::read_to_string(file).ok()?;
            self.files.insert(file.to_owned(), text);
        }
        self.files.get(file)
    }
}

/// The line of a key of an operator's entry, as `file:line`.
pub fn of_key(checked: &Checked, op: &Op, key: &str) -> Option<String> {
    let file = checked.sources.file(op.entry.source);
    let entry = checked.sources.slice(op.entry);
    let place = entry.match_indices(key).map(|(place, _)| place).find(|&place| {
        let before = entry[..place].chars().next_back();
        entry[place + key.len()..].starts_with(':') && before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })?;
    let (line, _) = file.line_column(op.entry.start as usize + place);
    Some(format!("{}:{line}", file.path()))
}

/// The line of a macro call at the top of a file whose arguments name the function.
fn made_by_macro(text: &str, function: &str) -> Option<usize> {
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let starts = !line.starts_with([' ', '/', '}', '#'])
            && line.contains("!")
            && !line.starts_with("macro_rules!");
        inside |= starts;
        if inside && has_word(line, function) && !line.trim_start().starts_with("//") {
            return Some(number);
        }
        if inside && (line.starts_with('}') || line.starts_with(')') || line.trim_end().ends_with(");")) {
            inside = false;
        }
    }
    None
}

/// Whether a line has a name as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(place, _)| {
        !line[..place].ends_with(is_part) && !line[place + word.len()..].starts_with(is_part)
    })
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
