//! Reading and checking of a spec, by the generator's own stages.
//!
//! In: a file or a text. Out: the checked model, or mistakes with their places. The stock library's spec, which formulas
//! refer to, is part of the program and is parsed once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use opsmith_codegen::diagnostics::{Diagnostic, Severity, SourceMap, render, summary};
use opsmith_codegen::model::{Body, Forward, KernelSource, Op};
use opsmith_codegen::pipeline::{self, Checked, Kept};
use opsmith_codegen::{Config, Parent};
use opsmith_runtime::error::Error;

/// The files of the stock library's spec, by their paths from its root.
static STOCK: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/stock.rs"));

/// The folder of those files in messages and to the reader.
const STOCK_FOLDER: &str = "<opsmith>";

/// The text of a spec.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its file; files that it includes and kernels lie beside it.
    path: PathBuf,
    /// Its name in messages.
    name: String,
    /// The text, if it is no file.
    text: Option<String>,
}

impl Source {
    /// A file.
    pub fn file(path: impl Into<PathBuf>) -> Source {
        let path = path.into();
        Source { name: path.display().to_string(), path, text: None }
    }

    /// A text, as if it were a file of that name in the current folder.
    pub fn text(name: &str, text: &str) -> Source {
        Source { path: PathBuf::from(name), name: name.to_owned(), text: Some(text.to_owned()) }
    }

    /// The stock library's own spec.
    pub(crate) fn stock() -> Source {
        Source::file(Path::new(STOCK_FOLDER).join("ops.yaml"))
    }

    /// Whether it is the stock library's own.
    pub(crate) fn is_stock(&self) -> bool {
        self.path.starts_with(STOCK_FOLDER)
    }

    /// The name of the library: that of the file without folder and ending.
    pub(crate) fn library_name(&self) -> String {
        self.path.file_stem().map_or_else(|| "spec".to_owned(), |stem| stem.to_string_lossy().into_owned())
    }

    /// The folder of the file.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if let Ok(inside) = path.strip_prefix(STOCK_FOLDER) {
            let found = STOCK.iter().find(|(name, _)| Path::new(name) == inside);
            return found
                .map(|(_, text)| text.as_bytes().to_vec())
                .ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        match &self.text {
            Some(text) if path == self.path => Ok(text.as_bytes().to_vec()),
            _ => std::fs::read(path),
        }
    }
}

/// One mistake of a spec.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Whether nothing was loaded because of it; else it is a warning.
    pub is_error: bool,
    /// A stable name such as `E0102`.
    pub code: String,
    /// The headline.
    pub message: String,
    /// The file.
    pub file: String,
    /// The line and the column of its start and of its end, from 1; columns count characters, and the last is exclusive.
    pub start: (usize, usize),
    /// See `start`.
    pub end: (usize, usize),
    /// The text beside the underlined place.
    pub label: String,
    /// The correction.
    pub help: Option<String>,
    /// Facts that explain the rule.
    pub notes: Vec<String>,
    /// All of it, with the underlined source, as `opsmith check` prints it.
    pub text: String,
}

impl Mistake {
    fn of(sources: &SourceMap, diagnostic: &Diagnostic) -> Mistake {
        let span = diagnostic.primary.span;
        let file = sources.file(span.source);
        Mistake {
            is_error: diagnostic.severity == Severity::Error,
            code: diagnostic.code.to_owned(),
            message: diagnostic.message.clone(),
            file: file.path().to_owned(),
            start: file.line_column(span.start as usize),
            end: file.line_column(span.end as usize),
            label: diagnostic.primary.text.clone(),
            help: diagnostic.help.as_ref().map(|help| help.text.clone()),
            notes: diagnostic.notes.clone(),
            text: render(sources, diagnostic, false),
        }
    }
}

/// The reason why a spec was not loaded.
#[derive(Debug)]
pub enum Failure {
    /// A file cannot be read, or there is no room for more operators.
    Error(Error),
    /// Mistakes in it, and their number in words.
    Mistakes(Vec<Mistake>, String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Error(error) => error.fmt(f),
            Failure::Mistakes(mistakes, count) => {
                mistakes.iter().try_for_each(|mistake| write!(f, "{}\n\n", mistake.text))?;
                f.write_str(count)
            }
        }
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// Checks a spec.
///
/// # Errors
/// If a file cannot be read, or the spec has mistakes or needs a compiler for Rust.
pub fn check(source: &Source) -> Result<Checked, Failure> {
    static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);
    if source.is_stock() {
        let checked = pipeline::check_from(&Config::stock(&source.path), &|path| source.read(path));
        return checked.map_err(|failure| Error::io(failure.to_string()).into());
    }
    let mut config = Config::new(&source.path);
    config.spec_name.clone_from(&source.name);
    config.parents.push(Parent::new(Source::stock().path, "opsmith"));
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let checked = pipeline::check_again(&config, &|path| source.read(path), &mut kept);
    drop(kept);
    let mut checked = checked.map_err(|failure| Error::io(failure.to_string()))?;
    let found = checked.model.ops.iter().filter(|op| !op.is_external()).filter_map(needs_compiler);
    let found: Vec<Diagnostic> = found.collect();
    if !checked.diagnostics.has_errors() {
        pipeline::check_kernel_files(&mut checked, &config);
        pipeline::find_kernels(&mut checked, &config);
    }
    checked.diagnostics.extend(found);
    if checked.diagnostics.has_errors() {
        let all = checked.diagnostics.sorted().map(|diagnostic| Mistake::of(&checked.sources, diagnostic));
        return Err(Failure::Mistakes(all.collect(), summary(&checked.diagnostics)));
    }
    Ok(checked)
}

/// The mistake of an operator whose code only a compiler for Rust can make.
pub fn needs_compiler(op: &Op) -> Option<Diagnostic> {
    let Body { kernels, view, host, .. } = &op.body;
    let compiled = kernels.iter().find(|kernel| !matches!(kernel.source, KernelSource::Aot { .. }));
    let (span, what) = match compiled {
        Some(kernel) if matches!(kernel.source, KernelSource::Rust { .. }) => (kernel.span, "kernel in Rust"),
        Some(kernel) => (kernel.span, "kernel of the header that a build writes"),
        None if view.is_some() => (op.span, "view by a function in Rust"),
        None if host.is_some() => (op.span, "function in Rust"),
        None => match native(op) {
            Some(_) => (op.span, "function in Rust among its expressions"),
            None if op.infer.as_ref().is_some_and(|infer| !infer.run_sizes.is_empty()) => {
                (op.span, "size that only its kernel knows")
            }
            None => return None,
        },
    };
    let message = format!("`{}` has a {what}, which cannot be loaded into a running program", op.name);
    Some(
        Diagnostic::error("L0001", message, span, "compiled by a build alone").with_help(
            "give it `pointwise`, `decompose` or a kernel `aot:FILE:FUNCTION`, or build a package of it: `opsmith init --python NAME` makes one",
        ),
    )
}

/// The function in Rust that an operator's expressions call.
fn native(op: &Op) -> Option<&str> {
    let infer = op.infer.as_ref();
    let rules = infer.into_iter().flat_map(|infer| {
        infer.shapes.iter().chain(&infer.dtypes).chain(&infer.length).chain([&infer.compute])
    });
    let conditions = op.checks.iter().map(|check| &check.condition);
    let conditions = conditions.chain(op.outputs.iter().filter_map(|output| output.present.as_ref()));
    let tangents = match &op.forward {
        Forward::Formulas(formulas) => &formulas[..],
        _ => &[],
    };
    let formulas = op.derivatives.iter().map(|derivative| &derivative.formula);
    let formulas = formulas.chain(tangents.iter().flat_map(|formula| &formula.terms));
    let mut all = rules.chain(conditions).chain(formulas).chain(&op.body.composite);
    let function = infer.and_then(|infer| infer.function.as_deref());
    function.or_else(|| all.find_map(opsmith_codegen::analysis::rule_trees::native))
}
