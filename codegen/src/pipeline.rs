//! The stages, in order: read → sort into entries → lower → emit. Start reading here.
//!
//! In: a [`Config`]. Out: the files of a library, or every mistake of its spec.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::diagnostics::{Diagnostics, SourceId, SourceMap, Span, catalogue};
use crate::emit::{self, File, Generation, Part, Selection};
use crate::kernel_file;
use crate::lower::{self, Loaded};
use crate::model::{KernelSource, Model};
use crate::rust_code;
use crate::spec::document::Document;
use crate::spec::{encoding, yaml};

/// A spec that was read and checked.
pub struct Checked {
    /// The texts that were read.
    pub sources: SourceMap,
    /// What is wrong with them.
    pub diagnostics: Diagnostics,
    /// What they say; incomplete if there are errors.
    pub model: Model,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
}

/// Why a library was not generated.
#[derive(Debug)]
pub enum Failure {
    /// A file cannot be read or written.
    Io(PathBuf, std::io::Error),
    /// The generator has a defect.
    Defect(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Failure::Defect(text) => write!(f, "the generator has a defect; please report it: {text}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Reads and checks the spec of a configuration with the specs it builds on.
///
/// # Errors
/// If a file cannot be read. Mistakes in what it says are in the result's diagnostics.
pub fn check(config: &Config) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.read(&config.spec, &config.spec_name, None)?;
    Ok(reader.lower())
}

/// Looks for the functions in Rust that the entries name, in the sources of the crate that has them. A
/// build leaves that to the compiler, which knows more.
pub fn check_rust_functions(checked: &mut Checked, config: &Config) {
    let found = rust_code::check(&checked.model, config, &checked.sources);
    checked.diagnostics.extend(found);
    proc_macro2::extra::invalidate_current_thread_spans();
}

/// Looks for the files of kernels that the entries name, as a build will. A spec that stands elsewhere than
/// its crate, as for a comparison, is not looked at so.
pub fn check_kernel_files(checked: &mut Checked, config: &Config) {
    let folder = config.spec.parent().unwrap_or(Path::new(""));
    let own = checked.model.ops.iter().filter(|op| !op.is_external());
    let kernels = own.flat_map(|op| op.body.kernels.iter().filter(|kernel| op.body.refers_to(kernel)));
    for kernel in kernels {
        let (KernelSource::Foreign { file, symbol } | KernelSource::Aot { file, symbol }) = &kernel.source
        else {
            continue;
        };
        let (path, name) = (folder.join(file), file.display().to_string());
        if !path.is_file() {
            checked.diagnostics.push(catalogue::kernel_file_missing(kernel.span, &name));
        } else if let Some(known) = kernel_file::names_without(&path, symbol) {
            let place = place_of_symbol(&checked.sources, kernel.span, symbol);
            checked.diagnostics.push(catalogue::kernel_function_missing(place, &name, symbol, &known));
        }
    }
}

/// Where the function stands in the text that names a kernel.
fn place_of_symbol(sources: &SourceMap, span: Span, symbol: &str) -> Span {
    let found = sources.slice(span).rfind(symbol);
    let start = found.map(|found| span.range().start + found);
    start.map_or(span, |start| Span::new(span.source, start..start + symbol.len()))
}

/// Checks a configuration as [`check`] does, as if its spec had this text.
///
/// # Errors
/// If another file cannot be read.
pub fn check_as(config: &Config, text: &str) -> Result<Checked, Failure> {
    check_bytes(config, text.as_bytes().to_vec())
}

/// The same as if its spec were these bytes.
///
/// # Errors
/// If another file cannot be read.
pub fn check_bytes(config: &Config, bytes: Vec<u8>) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    if reader.is_new(&config.spec) {
        let name = &config.spec_name;
        let source = encoding::add(&mut reader.sources, name, bytes, &mut reader.diagnostics);
        reader.add_with_includes(&config.spec, source, None);
    }
    Ok(reader.lower())
}

/// Checks one text, as [`check`] does a file; `include`s are not followed.
pub fn check_text(name: &str, text: &str) -> Checked {
    let mut reader = Reader::default();
    let source = reader.sources.add(name, text);
    reader.add(source, None);
    reader.lower()
}

/// Whether formulas may call functions that nothing declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Undeclared {
    /// Such a call is a mistake.
    #[default]
    Refused,
    /// Such a call has whatever type its place wants: for a draft, whose model says what is to be
    /// declared, and from which nothing can be generated.
    Allowed,
}

/// Checks one text as [`check_text`] does; a draft may call functions that nothing declares.
pub fn check_draft(name: &str, text: &str, undeclared: Undeclared) -> Checked {
    let mut reader = Reader { undeclared, ..Reader::default() };
    let source = reader.sources.add(name, text);
    reader.add(source, None);
    reader.lower()
}

/// The files of a library whose spec has no mistakes.
///
/// # Errors
/// If the generator wrote something that is not Rust.
pub fn generate(checked: &Checked, config: &Config) -> Result<Vec<File>, Failure> {
    emit::emit(&Generation { model: &checked.model, config, selection: Selection::All })
        .map_err(Failure::Defect)
}

/// One operator's share of each generated module. The rest of the spec may have mistakes.
///
/// # Errors
/// As [`generate`].
pub fn expand(checked: &Checked, config: &Config, name: &str) -> Result<Vec<Part>, Failure> {
    emit::emit_operator(&Generation { model: &checked.model, config, selection: Selection::Named(name) })
        .map_err(Failure::Defect)
}

#[derive(Default)]
struct Reader {
    sources: SourceMap,
    diagnostics: Diagnostics,
    documents: Vec<Loaded>,
    files: Vec<PathBuf>,
    undeclared: Undeclared,
    /// The same files, by paths that are one for each.
    known: HashSet<PathBuf>,
}

impl Reader {
    /// Reads a file and those it includes; a file is read once however often it is included.
    fn read(&mut self, path: &Path, name: &str, parent: Option<usize>) -> Result<(), Failure> {
        let bytes = std::fs::read(path).map_err(|error| Failure::Io(path.to_owned(), error))?;
        if self.is_new(path) {
            let source = encoding::add(&mut self.sources, name, bytes, &mut self.diagnostics);
            self.add_with_includes(path, source, parent);
        }
        Ok(())
    }

    fn read_parents(&mut self, config: &Config) -> Result<(), Failure> {
        for (number, parent) in config.parents.iter().enumerate() {
            self.read(&parent.spec, &parent.spec.display().to_string(), Some(number))?;
        }
        Ok(())
    }

    /// Notes a file; whether it was not known before, under whatever path.
    fn is_new(&mut self, path: &Path) -> bool {
        let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let new = self.known.insert(whole);
        if new {
            self.files.push(path.to_owned());
        }
        new
    }

    fn add_with_includes(&mut self, path: &Path, source: SourceId, parent: Option<usize>) {
        let Some(document) = self.add(source, parent) else { return };
        let includes = document.include.clone();
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = PathBuf::from(self.sources.file(source).path());
        for include in includes {
            let path = folder.join(include.as_str());
            match std::fs::read(&path) {
                Ok(bytes) if self.is_new(&path) => {
                    let name = name.with_file_name(include.as_str()).display().to_string();
                    let source = encoding::add(&mut self.sources, &name, bytes, &mut self.diagnostics);
                    self.add_with_includes(&path, source, parent);
                }
                Ok(_) => {}
                Err(error) => {
                    let why = match error.kind() {
                        std::io::ErrorKind::NotFound => "there is no such file",
                        std::io::ErrorKind::PermissionDenied => "it may not be read",
                        _ => "it cannot be read",
                    };
                    self.diagnostics.push(catalogue::include_unreadable(
                        include.span(),
                        include.as_str(),
                        why,
                    ));
                }
            }
        }
    }

    fn add(&mut self, source: SourceId, parent: Option<usize>) -> Option<&Document> {
        let errors = self.diagnostics.error_count();
        let root = yaml::parse(&self.sources, source, &mut self.diagnostics)?;
        let intact = self.diagnostics.error_count() == errors;
        let mut document = Document::from_node(&root, &self.sources, &mut self.diagnostics)?;
        if !intact {
            document.mark_incomplete();
        }
        self.documents.push(Loaded { document, parent });
        self.documents.last().map(|loaded| &loaded.document)
    }

    fn lower(mut self) -> Checked {
        let model = lower::lower(&self.documents, &self.sources, self.undeclared, &mut self.diagnostics);
        // The parser keeps every text it was given, for places that were looked up by now.
        proc_macro2::extra::invalidate_current_thread_spans();
        Checked { sources: self.sources, diagnostics: self.diagnostics, model, files: self.files }
    }
}
