//! A new operator: its entry, a kernel skeleton, and a test that calls it.

use std::path::{Path, PathBuf};

use minijinja::context;

use super::{FileChange, Refusal, render, sample};
use crate::fmt;
use opsmith_codegen::analysis::naming;
use opsmith_codegen::config::Config;
use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};
use opsmith_codegen::emit;
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline;
use opsmith_codegen::spec::document::Document;
use opsmith_codegen::spec::schema::{BaseType, Schema, Type};
use opsmith_codegen::spec::yaml;

/// Maximal columns of a line of Rust.
const LINE: usize = 100;

/// The language of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelLanguage {
    /// A generic Rust function.
    Rust,
    /// A C++ function.
    Cpp,
    /// A Rust function for the host, and a CUDA file beside it.
    Cuda,
}

/// The planned changes for a new operator.
#[derive(Clone, Debug)]
pub struct NewOperator {
    /// Its full name.
    pub name: String,
    /// The files, the spec first.
    pub changes: Vec<FileChange>,
    /// The file with the kernel.
    pub kernel: PathBuf,
    /// The test, as a name for `cargo test --test`.
    pub test: String,
}

/// Plans a new operator in the crate of a spec.
///
/// # Errors
/// If the signature or the spec has mistakes, or a file would be overwritten.
pub fn operator(config: &Config, signature: &str, language: KernelLanguage) -> Result<NewOperator, Refusal> {
    let place = Place::of(config)?;
    let schema = read_signature(signature)?;
    let full_name = schema.name.to_string();
    let stem = naming::stem(&full_name);
    let spec = read(&config.spec)?;
    let entry = entry(&schema, signature, &stem, &place, language)?;
    let spec = insert(&config.spec_name, &spec, &entry)?;
    let checked = pipeline::check_as(config, &spec).map_err(|failure| failure.to_string())?;
    if checked.diagnostics.has_errors() {
        return Err(Refusal::Mistakes(checked.sources, checked.diagnostics));
    }
    let op = checked.model.ops.iter().find(|op| op.name == full_name && !op.is_external());
    let op = op.ok_or_else(|| format!("`{full_name}` did not become an operator, which is a defect"))?;
    let mut changes = vec![FileChange { path: config.spec.clone(), text: spec, exists: true }];
    let kernel = match language {
        KernelLanguage::Rust => rust_kernel(op, &stem, &place, &mut changes)?,
        KernelLanguage::Cpp => {
            foreign_kernel(op, &stem, &place, include_str!("templates/op/kernel.cc.j2"), "cc", &mut changes)?
        }
        KernelLanguage::Cuda => {
            let cuda = include_str!("templates/op/kernel.cu.j2");
            foreign_kernel(op, &stem, &place, cuda, "cu", &mut changes)?;
            rust_kernel(op, &stem, &place, &mut changes)?
        }
    };
    let test = place.tests.join(format!("{stem}.rs"));
    changes.push(new_file(test, sample::test(op, &stem, &place.library)?)?);
    Ok(NewOperator { name: full_name, changes, kernel, test: stem })
}

/// The locations of a crate's files.
struct Place {
    /// The module with Rust kernels, a folder with a `mod.rs`.
    rust: PathBuf,
    /// The folder of C++ files, and its name in the spec.
    foreign: (PathBuf, &'static str),
    /// The folder of CUDA files, and its name in the spec.
    cuda: (PathBuf, &'static str),
    /// The folder of integration tests.
    tests: PathBuf,
    /// The library that tests use.
    library: String,
    /// Whether the kernels are modules of the crate itself, not of the stock library.
    own: bool,
    /// The prefix of C function names.
    prefix: String,
}

impl Place {
    fn of(config: &Config) -> Result<Place, Refusal> {
        let folder = config.spec.parent().unwrap_or(Path::new("")).to_owned();
        let own = config.kernels.names().next() == Some("crate");
        let library = config.library.replace('-', "_");
        let place = if own {
            Place {
                rust: folder.join("src/kernels"),
                foreign: (folder.join("kernels"), "kernels"),
                cuda: (folder.join("kernels"), "kernels"),
                tests: folder.join("tests"),
                prefix: format!("{}_", library.to_lowercase()),
                library,
                own,
            }
        } else {
            Place {
                rust: folder.join("kernels/src/cpu"),
                foreign: (folder.join("kernels/cpu"), "kernels/cpu"),
                cuda: (folder.join("kernels/cuda"), "kernels/cuda"),
                tests: folder.join("tests/tests"),
                prefix: "opsmith_cpu_".to_owned(),
                library: "opsmith".to_owned(),
                own,
            }
        };
        if !place.rust.join("mod.rs").is_file() {
            return Err(Refusal::Because(format!(
                "{} is not there: {} belongs to no crate with kernels; `opsmith init` makes one",
                place.rust.join("mod.rs").display(),
                config.spec_name
            )));
        }
        Ok(place)
    }
}

/// The signature, or its mistakes with carets.
fn read_signature(signature: &str) -> Result<Schema, Refusal> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let source = sources.add("signature", signature);
    let locate = |range| opsmith_codegen::diagnostics::Span::new(source, range);
    let schema = Schema::parse(signature, &locate, &mut diagnostics);
    match schema {
        Some(schema) if !diagnostics.has_errors() => Ok(schema),
        _ => Err(Refusal::Mistakes(sources, diagnostics)),
    }
}

/// The entry in canonical form, at no indentation.
fn entry(
    schema: &Schema,
    signature: &str,
    stem: &str,
    place: &Place,
    language: KernelLanguage,
) -> Result<String, Refusal> {
    let tensor =
        schema.args.iter().find(|arg| arg.ty == Type::Base(BaseType::Tensor)).map(|arg| arg.name.clone());
    let count = schema.returns.len();
    if schema.returns.iter().any(|result| !result.ty.is_tensor_like()) || count == 0 {
        return Err(Refusal::Because(
            "`new` writes operators that return tensors; one that returns something else has a function of its \
             own under `dispatch: {Host: module::function}`"
                .to_owned(),
        ));
    }
    let (shape, dtype) = match &tensor {
        Some(name) => (format!("follow({name})"), format!("follow({name})")),
        None => ("\"[1]\"".to_owned(), "float32".to_owned()),
    };
    let each = |rule: &str| match count {
        1 => rule.to_owned(),
        _ => format!("[{}]", vec![rule; count].join(", ")),
    };
    let file = |(_, folder): &(PathBuf, &str), extension: &str| {
        format!("{folder}/{stem}.{extension}:{}{stem}", place.prefix)
    };
    let dispatch = match language {
        KernelLanguage::Rust => format!("{{CPU: \"{stem}::{stem}\"}}"),
        KernelLanguage::Cpp => format!("{{CPU: \"{}\"}}", file(&place.foreign, "cc")),
        KernelLanguage::Cuda => {
            format!("{{CPU: \"{stem}::{stem}\", CUDA: \"{}\"}}", file(&place.cuda, "cu"))
        }
    };
    // A build accepts an explicit refusal of a gradient, and warns of a missing one.
    let gradients = schema
        .args
        .iter()
        .filter(|arg| arg.ty.is_tensor_like())
        .map(|arg| format!("    {}: not_implemented(\"the gradient is not written yet\")\n", arg.name));
    let gradients: String = gradients.collect();
    let derivatives = if gradients.is_empty() { gradients } else { format!("  derivatives:\n{gradients}") };
    let samples = sample::entry(schema).map(|samples| format!("  samples: {samples}\n")).unwrap_or_default();
    let signature = signature.trim().replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!(
        "edition: 1\nops:\n- func: \"{signature}\"\n  doc: Not described yet.\n  shape: {}\n  dtype: {}\n  dispatch: {dispatch}\n{derivatives}{samples}",
        each(&shape),
        each(&dtype),
    );
    match fmt::format("the new entry", &text) {
        Ok(text) => Ok(text.split_once("ops:\n").map(|(_, entry)| entry.to_owned()).unwrap_or_default()),
        Err(fmt::NotFormatted::Mistakes(sources, diagnostics)) => {
            Err(Refusal::Mistakes(sources, diagnostics))
        }
        Err(fmt::NotFormatted::Defect(reason)) => Err(Refusal::Because(reason)),
    }
}

/// The spec with one more entry at the end, otherwise unchanged.
fn insert(name: &str, spec: &str, entry: &str) -> Result<String, Refusal> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let source = sources.add(name, spec);
    let root = yaml::parse(&sources, source, &mut diagnostics);
    let document = root.as_ref().and_then(|root| Document::from_node(root, &sources, &mut diagnostics));
    let Some(document) = document.filter(|_| !diagnostics.has_errors()) else {
        return Err(Refusal::Mistakes(sources, diagnostics));
    };
    let text = sources.text(source);
    let Some(last) = document.ops.last() else {
        let has_key = text.lines().any(|line| line.trim_end() == "ops:");
        let head = if has_key { "" } else { "\nops:\n" };
        return Ok(format!("{}\n{head}{entry}", text.trim_end()));
    };
    let range = last.span.range();
    let end = text[range.end..].find('\n').map_or(text.len(), |newline| range.end + newline);
    let line = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = " ".repeat(text[line..].len() - text[line..].trim_start().len());
    let entry: String = entry.lines().map(|line| format!("{indent}{line}\n")).collect();
    Ok(format!("{}\n\n{entry}{}", text[..end].trim_end(), &text[end.saturating_add(1).min(text.len())..]))
}

/// A Rust kernel skeleton, in a module of its own.
fn rust_kernel(
    op: &Op,
    stem: &str,
    place: &Place,
    changes: &mut Vec<FileChange>,
) -> Result<PathBuf, Refusal> {
    let path = place.rust.join(format!("{stem}.rs"));
    let parameters = emit::rust_kernel_parameters(op);
    let text = parameters.join(", ");
    let is_used =
        |name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    // In rustfmt's order.
    let imports = [
        "Complex32",
        "Complex64",
        "DType",
        "Device",
        "Element",
        "Error",
        "Generator",
        "Lists",
        "MemoryFormat",
        "MemoryLayout",
        "Result",
        "Scalar",
        "Text",
        "View",
        "ViewMut",
        "bf16",
        "f16",
    ];
    let imports: Vec<&str> = imports
        .into_iter()
        .filter(|name| matches!(*name, "Element" | "Error" | "Result") || is_used(name))
        .collect();
    let rendered = render(
        include_str!("templates/op/kernel.rs.j2"),
        context! {
            name => op.name.as_str(),
            signature => op.signature.as_str(),
            function => stem,
            parameters => on_lines(&parameters, stem.len() + "pub fn <T: Element>() -> Result<()> {".len()),
            imports => imports.join(", "),
            // Items that the library's root lacks are in the runtime's.
            runtime => if place.own { "::runtime" } else { "_runtime" },
        },
    )?;
    changes.push(new_file(path.clone(), rendered)?);
    let module = place.rust.join("mod.rs");
    let text = with_module(&read(&module)?, stem);
    changes.push(FileChange { path: module, text, exists: true });
    Ok(path)
}

/// Parameters on one line, or each on its own if they and the rest are too long for it.
fn on_lines(parameters: &[String], rest: usize) -> String {
    let line = parameters.join(", ");
    if line.len() + rest <= LINE { line } else { format!("\n    {},\n", parameters.join(",\n    ")) }
}

/// A module's text with one more public module, in sorted order.
fn with_module(text: &str, module: &str) -> String {
    let line = format!("pub mod {module};");
    let mut lines: Vec<&str> = text.lines().collect();
    let name_of = |line: &&str| {
        line.strip_prefix("pub mod ")
            .or(line.strip_prefix("mod "))
            .map(|rest| rest.trim_end_matches(';').to_owned())
    };
    let after = lines.iter().rposition(|line| name_of(line).is_some_and(|name| name.as_str() < module));
    let first = lines.iter().position(|line| name_of(line).is_some());
    let at = after.map(|at| at + 1).or(first).unwrap_or(lines.len());
    lines.insert(at, &line);
    lines.join("\n") + "\n"
}

fn foreign_kernel(
    op: &Op,
    stem: &str,
    place: &Place,
    template: &str,
    extension: &str,
    changes: &mut Vec<FileChange>,
) -> Result<PathBuf, Refusal> {
    let (folder, _) = if extension == "cu" { &place.cuda } else { &place.foreign };
    let path = folder.join(format!("{stem}.{extension}"));
    let declaration = emit::c_declaration(op, &format!("{}{stem}", place.prefix));
    // The parameters are unused until the kernel is written; warnings about that would not help.
    let (head, parameters) = declaration.split_once(", ").unwrap_or((&declaration, ""));
    let parameters =
        parameters.trim_end_matches(')').split(", ").map(|name| format!("[[maybe_unused]] {name}"));
    let declaration = format!("{head},\n    {})", parameters.collect::<Vec<_>>().join(",\n    "));
    let rendered = render(
        template,
        context! {
            name => op.name.as_str(),
            signature => op.signature.as_str(),
            declaration,
        },
    )?;
    changes.push(new_file(path.clone(), rendered)?);
    Ok(path)
}

fn new_file(path: PathBuf, text: String) -> Result<FileChange, Refusal> {
    if path.exists() {
        return Err(Refusal::Because(format!("{} is there already; nothing was written", path.display())));
    }
    Ok(FileChange { path, text, exists: false })
}

fn read(path: &Path) -> Result<String, Refusal> {
    std::fs::read_to_string(path)
        .map_err(|error| Refusal::Because(format!("cannot read {}: {error}", path.display())))
}
