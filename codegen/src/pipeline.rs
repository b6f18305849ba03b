//! The stages, in order: read → sort into entries → lower → emit. Start reading here.
//!
//! In: a [`Config`]. Out: the files of a library, or every mistake of its spec.

use std::path::PathBuf;

use opsmith_core::Backend;

use crate::config::Config;
use crate::diagnostics::{Diagnostics, SourceMap};
use crate::emit::{self, File, Generation, Part, Selection};
use crate::expr::check::Undeclared;
use crate::kernel_file;
use crate::lower;
use crate::model::Model;
pub use crate::reader::Open;
use crate::reader::{Reader, Unreadable};

/// A spec that was read and checked.
pub struct Checked {
    /// The texts that were read.
    pub sources: SourceMap,
    /// The mistakes in them.
    pub diagnostics: Diagnostics,
    /// The model of them; incomplete if there are errors.
    pub model: Model,
    /// The files that were read, in order.
    pub files: Vec<PathBuf>,
}

/// The reason why a library was not generated.
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

impl From<Unreadable> for Failure {
    fn from(unreadable: Unreadable) -> Failure {
        Failure::Io(unreadable.path, unreadable.error)
    }
}

/// Reads and checks the spec of a configuration and the specs it builds on.
///
/// # Errors
/// If a file cannot be read. Mistakes in the spec are in the result's diagnostics.
pub fn check(config: &Config) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.read_spec(config)?;
    Ok(lower(reader, &backends(config), Undeclared::Refused))
}

/// The backends with kernels in Rust in a configuration.
fn backends(config: &Config) -> Vec<Backend> {
    config.backends.iter().map(|(backend, _)| *backend).collect()
}

/// Lowers the entries to a model, with all their mistakes.
fn lower(reader: Reader, backends: &[Backend], undeclared: Undeclared) -> Checked {
    let Reader { sources, mut diagnostics, documents, files, .. } = reader;
    let model = lower::lower(&documents, &sources, undeclared, backends, &mut diagnostics);
    // The parser keeps every text for its spans, which are no longer needed here.
    proc_macro2::extra::invalidate_current_thread_spans();
    Checked { sources, diagnostics, model, files }
}

/// Checks that the files of kernels exist, as a build does. Not for a spec outside of its crate's folder, as in a
/// comparison.
pub fn check_kernel_files(checked: &mut Checked, config: &Config) {
    let found = kernel_file::check(&checked.model, config, &checked.sources);
    checked.diagnostics.extend(found);
}

/// Checks a configuration as [`check`] does, with another text for its spec.
///
/// # Errors
/// If another file cannot be read.
pub fn check_as(config: &Config, text: &str) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.add_spec(config, text.as_bytes().to_vec());
    Ok(lower(reader, &backends(config), Undeclared::Refused))
}

/// As [`check_as`], with another source, such as a revision, for the spec and the files that it includes.
///
/// # Errors
/// If the spec or another file cannot be read.
pub fn check_from(config: &Config, open: Open<'_>) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.read_spec_from(config, open)?;
    Ok(lower(reader, &backends(config), Undeclared::Refused))
}

/// Checks one text, as [`check`] does for a file; `include`s are ignored.
pub fn check_text(name: &str, text: &str) -> Checked {
    check_draft(name, text, Undeclared::Refused)
}

/// Checks one text as [`check_text`] does; a draft may call undeclared functions.
pub fn check_draft(name: &str, text: &str, undeclared: Undeclared) -> Checked {
    let mut reader = Reader::default();
    reader.add_text(name, text);
    lower(reader, &[Backend::Cpu], undeclared)
}

/// The files of a library whose spec has no mistakes.
///
/// # Errors
/// If the generator wrote text that is not Rust.
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
