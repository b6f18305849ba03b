//! The stages, in order: read → sort into entries → lower → emit. Start reading here.
//!
//! In: a [`Config`]. Out: the files of a library, or every mistake of its spec.

use std::path::{Path, PathBuf};

use opsmith_core::Backend;

use crate::analysis::device_loops;
use crate::code_places::{CodePlaces, documented};
use crate::config::{Config, DeviceLibrary, Tables};
use crate::diagnostics::{Diagnostics, SourceId, SourceMap};
use crate::emit::formatted::Formatted;
use crate::emit::{self, File, Generation, Part, Selection};
use crate::expr::check::Undeclared;
use crate::kernel_file;
use crate::lower::{self, KeptBodies};
use crate::model::Model;
pub use crate::reader::Open;
use crate::reader::{Parsed, Reader, Unreadable};
use crate::spec::document::Loaded;

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
    /// The entries of those that are YAML, in the same order; kept by [`check_again`] alone.
    pub documents: Vec<Loaded>,
    /// The files that are not YAML; their entries are unknown.
    pub unparsed: Vec<SourceId>,
    /// The cargo features of the library, each with a file that needs it.
    pub features: Vec<(String, String)>,
    /// The files of all libraries that were not read, since their features are off, each with these.
    pub left_out: Vec<(String, Vec<String>)>,
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

/// Reads and checks the spec of a configuration and the specs it builds on; of the kernel tables of some files, these alone.
///
/// # Errors
/// If a file cannot be read. Mistakes in the spec are in the result's diagnostics.
pub fn check(config: &Config) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    if let Tables::Families(files) = &config.tables {
        reader.read_files(config, files)?;
        return Ok(lower_tables(reader, &Targets::of(config)));
    }
    reader.read_parents(config)?;
    reader.read_spec(config)?;
    Ok(lower(reader, &Targets::of(config), Undeclared::Refused, None))
}

/// Lowers the entries of some files as far as their kernel tables need. The library's own build reports mistakes
/// in the entries: they may refer to those of files that are not read here.
fn lower_tables(reader: Reader, targets: &Targets) -> Checked {
    let Reader { sources, diagnostics, documents, files, unparsed, features, left_out, .. } = reader;
    let mut model = lower::lower_tables(&documents, &sources, &targets.rust);
    if let Some(device) = &targets.device {
        device_loops::mark(&mut model, device.library);
    }
    proc_macro2::extra::invalidate_current_thread_spans();
    Checked { sources, diagnostics, model, files, documents: Vec::new(), unparsed, features, left_out }
}

/// The backends of a configuration.
struct Targets {
    /// Those with kernels in Rust.
    rust: Vec<Backend>,
    /// The library of devices, if the configuration has one.
    device: Option<DeviceLibrary>,
}

impl Targets {
    fn of(config: &Config) -> Targets {
        Targets {
            rust: config.backends.iter().map(|(backend, _)| *backend).collect(),
            device: config.device.clone(),
        }
    }
}

/// Lowers the entries to a model, with all their mistakes.
fn lower(
    reader: Reader,
    targets: &Targets,
    undeclared: Undeclared,
    kept: Option<&mut KeptBodies>,
) -> Checked {
    let Reader { sources, mut diagnostics, documents, files, unparsed, features, left_out, .. } = reader;
    let keeps = kept.is_some();
    let mut model = lower::lower(&documents, &sources, undeclared, &targets.rust, &mut diagnostics, kept);
    if let Some(device) = &targets.device {
        device_loops::mark(&mut model, device.library);
    }
    // The parser keeps every text for its spans, which are no longer needed here.
    proc_macro2::extra::invalidate_current_thread_spans();
    let documents = if keeps { documents } else { Vec::new() };
    Checked { sources, diagnostics, model, files, documents, unparsed, features, left_out }
}

/// Checks that the files of kernels exist, as a build does. Not for a spec outside of its crate's folder, as in a
/// comparison.
pub fn check_kernel_files(checked: &mut Checked, config: &Config) {
    let found = kernel_file::check(&checked.model, config, &checked.sources);
    checked.diagnostics.extend(found);
}

/// Finds the functions of the kernels whose tables the configuration has, as far as their files are there, and the documentation of
/// those that rules and views name; returns the
/// files that were read, and folders in which the file of a kernel's module is missing, without which the places would be out of
/// date.
pub fn find_kernels(checked: &mut Checked, config: &Config) -> Vec<PathBuf> {
    let mut places = CodePlaces::new(config);
    for op in checked.model.ops.iter_mut().filter(|op| !op.is_external() && config.tables.has(op.file())) {
        for kernel in &mut op.body.kernels {
            kernel.place = places.of_kernel(kernel);
        }
    }
    checked.model.forget_kept();
    find_documentation(&mut checked.model, config, &mut places);
    let mut watched: Vec<PathBuf> = places.watched().map(Path::to_owned).collect();
    watched.sort();
    watched
}

/// Finds the documentation of the Rust functions that rules and views name, whose words documents show; as [`find_kernels`] does, for
/// documents that are written without a build.
pub fn find_functions(checked: &mut Checked, config: &Config) {
    find_documentation(&mut checked.model, config, &mut CodePlaces::new(config));
}

fn find_documentation(model: &mut Model, config: &Config, places: &mut CodePlaces) {
    if !matches!(config.tables, Tables::Families(_)) {
        model.documented = documented::functions(model, places);
        model.forget_kept();
    }
}

/// Checks a configuration as [`check`] does, with another text for its spec.
///
/// # Errors
/// If another file cannot be read.
pub fn check_as(config: &Config, text: &str) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.add_spec(config, text.as_bytes().to_vec());
    Ok(lower(reader, &Targets::of(config), Undeclared::Refused, None))
}

/// As [`check_as`], with another source, such as a revision, for the spec and the files that it includes.
///
/// # Errors
/// If the spec or another file cannot be read.
pub fn check_from(config: &Config, open: Open<'_>) -> Result<Checked, Failure> {
    let mut reader = Reader::default();
    reader.read_parents(config)?;
    reader.read_spec_from(config, open)?;
    Ok(lower(reader, &Targets::of(config), Undeclared::Refused, None))
}

/// The parts of a check that the next one need not repeat: for a spec that is checked again and again while it is edited.
#[derive(Default)]
pub struct Kept {
    parsed: Parsed,
    bodies: KeptBodies,
}

/// As [`check`], with another source for every file, such as the unsaved texts of an editor, and the results of the
/// last check of this configuration. While a file is not YAML, the model is empty and the diagnostics are those of reading:
/// entries that are missing for a moment would make mistakes of all that refer to them.
///
/// # Errors
/// As [`check`].
pub fn check_again(config: &Config, open: Open<'_>, kept: &mut Kept) -> Result<Checked, Failure> {
    let mut reader = Reader::with_parsed(std::mem::take(&mut kept.parsed));
    let read = reader.read_parents_from(config, open).and_then(|()| reader.read_spec_from(config, open));
    kept.parsed = std::mem::take(&mut reader.parsed);
    read?;
    if !reader.unparsed.is_empty() {
        let Reader { sources, diagnostics, documents, files, unparsed, features, left_out, .. } = reader;
        return Ok(Checked {
            sources,
            diagnostics,
            model: Model::default(),
            files,
            documents,
            unparsed,
            features,
            left_out,
        });
    }
    Ok(lower(reader, &Targets::of(config), Undeclared::Refused, Some(&mut kept.bodies)))
}

/// Checks one text, as [`check`] does for a file; `include`s are ignored.
pub fn check_text(name: &str, text: &str) -> Checked {
    check_draft(name, text, Undeclared::Refused)
}

/// Checks one text as [`check_text`] does; a draft may call undeclared functions.
pub fn check_draft(name: &str, text: &str, undeclared: Undeclared) -> Checked {
    let mut reader = Reader::default();
    reader.add_text(name, text);
    lower(reader, &Targets { rust: vec![Backend::Cpu], device: None }, undeclared, None)
}

/// The files of a library whose spec has no mistakes.
///
/// # Errors
/// If the generator wrote text that is not Rust.
pub fn generate(checked: &Checked, config: &Config) -> Result<Vec<File>, Failure> {
    generate_after(checked, config, &Formatted::default())
}

/// The same, with the text of an earlier run: pieces with the same tokens are taken from there.
///
/// # Errors
/// As [`generate`].
pub fn generate_after(checked: &Checked, config: &Config, earlier: &Formatted) -> Result<Vec<File>, Failure> {
    emit::emit(&Generation { model: &checked.model, config, selection: Selection::All }, earlier)
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
