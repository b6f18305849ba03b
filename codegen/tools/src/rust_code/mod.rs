//! The Rust functions that a spec names, looked up in the sources of their crate.
//!
//! In: a model and the location of its crate's sources. Out: a diagnostic for each function that is certainly missing,
//! or certainly has another type. The files are parsed, not compiled: where a macro, a condition or another crate may
//! decide, there is no diagnostic, and the compiler decides.

mod bounds;
mod resolve;
mod signature;

use std::path::{Path, PathBuf};

use quote::quote;

use opsmith_codegen::Backend;
use opsmith_codegen::analysis::rows::kernel_dtypes;
use opsmith_codegen::config::{Config, RustPath};
use opsmith_codegen::diagnostics::{Diagnostic, SourceMap, Span, catalogue, nearest};
use opsmith_codegen::emit::{host_parameter_types, kernel_parameter_types, view_parameter_types};
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{KernelSource, Model, Op};
use opsmith_codegen::pipeline::Checked;

use resolve::{Crate, Found};
use signature::Wanted;

/// Looks up the Rust functions that the entries name, in the sources of their crate. A build leaves this to the
/// compiler.
pub fn check(checked: &mut Checked, config: &Config) {
    let found = wrong_functions(&checked.model, config, &checked.sources);
    checked.diagnostics.extend(found);
    proc_macro2::extra::invalidate_current_thread_spans();
}

/// The diagnostics of the functions that a model's own entries name.
fn wrong_functions(model: &Model, config: &Config, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut lookup = Lookup {
        kernels: Root::of(config, &config.kernels),
        backends: Vec::new(),
        sources,
        found: Vec::new(),
    };
    let roots = config.backends.iter().map(|(backend, module)| (*backend, Root::of(config, module)));
    lookup.backends = roots.collect();
    for op in model.ops.iter().filter(|op| !op.is_external() && op.alias_of.is_none()) {
        lookup.operator(op);
    }
    for function in model.functions.iter().filter(|function| !function.is_external()) {
        if !function.rust.is_empty() {
            let wanted = Wanted::count(function.params.len());
            lookup.kernels_function(&function.rust, function.entry, &wanted);
        }
    }
    lookup.found
}

/// The root module of paths, and its crate.
struct Root {
    code: Crate,
    /// The module's path inside the crate.
    module: Vec<String>,
    /// The folder that file names in messages are relative to.
    folder: PathBuf,
}

impl Root {
    /// The module in a configuration, if its crate's sources are at the expected location.
    fn of(config: &Config, module: &RustPath) -> Option<Root> {
        let names: Vec<String> = module.names().map(str::to_owned).collect();
        let (first, rest) = names.split_first()?;
        let folder = config.spec.parent().unwrap_or(Path::new(""));
        let (file, folder) = match first.as_str() {
            "crate" => own_root(&config.spec)?,
            // The stock library's kernels are a crate beside the spec.
            name => {
                let name = name.strip_prefix("opsmith_").unwrap_or(name);
                (folder.join(name).join("src/lib.rs"), folder.to_owned())
            }
        };
        file.is_file().then(|| Root { code: Crate::new(file), module: rest.to_vec(), folder })
    }
}

/// The root file of a spec's crate, and the crate's folder.
fn own_root(spec: &Path) -> Option<(PathBuf, PathBuf)> {
    let spec = std::path::absolute(spec).ok()?;
    let folder = spec.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file())?;
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let declared = manifest.split_once("[lib]").and_then(|(_, table)| {
        let lines = table.lines().map(str::trim).take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split_once('=')).find_map(|(key, value)| {
            (key.trim() == "path").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        })
    });
    let candidates = declared.into_iter().chain(["src/lib.rs".to_owned(), "src/main.rs".to_owned()]);
    let file = candidates.map(|name| folder.join(name)).find(|file| file.is_file())?;
    Some((file, folder.to_owned()))
}

struct Lookup<'a> {
    kernels: Option<Root>,
    /// The root modules of kernels, by backend.
    backends: Vec<(Backend, Option<Root>)>,
    sources: &'a SourceMap,
    found: Vec<Diagnostic>,
}

impl Lookup<'_> {
    fn operator(&mut self, op: &Op) {
        for kernel in op.body.kernels.iter().filter(|kernel| op.body.refers_to(kernel)) {
            if let KernelSource::Rust { path, arguments } = &kernel.source {
                let backend = kernel.backend;
                let (generics, types) = kernel_parameter_types(op, arguments, backend);
                let wanted = Wanted::new(generics, types).of_dtypes(kernel_dtypes(op, arguments, backend));
                let root = self.backends.iter().find(|(known, _)| *known == backend);
                let root = root.and_then(|(_, root)| root.as_ref());
                let diagnostics = look(root, path, self.place(path, kernel.span), &wanted);
                self.found.extend(diagnostics);
            }
        }
        if let Some(path) = &op.body.view {
            self.kernels_function(path, op.entry, &Wanted::new(0, view_parameter_types(op)));
        }
        if let Some(path) = &op.body.host {
            self.kernels_function(path, op.entry, &Wanted::new(0, host_parameter_types(op)));
        }
        if let Some(path) = op.infer.as_ref().and_then(|infer| infer.function.as_ref()) {
            self.kernels_function(
                path,
                op.entry,
                &Wanted::new(0, vec![quote!(&mut rt::infer::InferContext)]),
            );
        }
        let mut native = Vec::new();
        for expression in expressions(op) {
            expression.walk(&mut |part| {
                if let ExprKind::Native(path, args) = &part.kind
                    && !native.contains(&(path.clone(), args.len()))
                {
                    native.push((path.clone(), args.len()));
                }
            });
        }
        for (path, count) in native {
            self.kernels_function(&path, op.entry, &Wanted::count(count));
        }
    }

    fn kernels_function(&mut self, path: &str, entry: Span, wanted: &Wanted) {
        let diagnostic = look(self.kernels.as_ref(), path, self.place(path, entry), wanted);
        self.found.extend(diagnostic);
    }

    /// The span of a path inside an entry.
    fn place(&self, path: &str, entry: Span) -> Span {
        let text = self.sources.slice(entry);
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        let stands_alone = |start: &usize| {
            let (before, after) = (&text[..*start], &text[start + path.len()..]);
            !before.ends_with(|c: char| c != ':' && is_part(c)) && !after.starts_with(is_part)
        };
        match text.match_indices(path).map(|(start, _)| start).find(stands_alone) {
            Some(start) => {
                let start = entry.range().start + start;
                Span::new(entry.source, start..start + path.len())
            }
            None => entry,
        }
    }
}

/// Every expression of an operator that may call functions by path.
fn expressions(op: &Op) -> impl Iterator<Item = &Expr> {
    let checks = op.checks.iter().map(|check| &check.condition);
    let rules = op.infer.iter().flat_map(|infer| {
        infer
            .length
            .iter()
            .chain(&infer.shapes)
            .chain(&infer.dtypes)
            .chain([&infer.compute])
            .chain(&infer.run_shapes)
    });
    let formulas = op.derivatives.iter().map(|derivative| &derivative.formula);
    checks.chain(rules).chain(formulas).chain(&op.body.composite)
}

/// Looks up a function and compares it with the required type.
fn look(root: Option<&Root>, path: &str, place: Span, wanted: &Wanted) -> Option<Diagnostic> {
    let root = root?;
    let names: Vec<&str> = root.module.iter().map(String::as_str).chain(path.split("::")).collect();
    let shown = |file: &Path| file.strip_prefix(&root.folder).unwrap_or(file).display().to_string();
    match root.code.function(&names) {
        Found::Unknown => None,
        Found::Missing { name, file, known } => {
            let near = nearest(&name, known.iter().map(String::as_str));
            Some(catalogue::rust_function_missing(place, path, &name, &shown(&file), near))
        }
        Found::Function(function) => {
            let problem = wanted.misfit(&function)?;
            let at = format!("{}:{}", shown(&function.file), function.line());
            Some(catalogue::rust_function_type(place, path, &problem, &at, &wanted.to_string()))
        }
    }
}
