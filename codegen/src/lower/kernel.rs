//! `dispatch`: hand-written kernels, layout functions of views, host functions.

use std::path::PathBuf;

use opsmith_core::Backend;

use super::{Context, aot};
use crate::analysis::naming;
use crate::diagnostics::{Span, catalogue};
use crate::expr::path;
use crate::model::{Body, Kernel, KernelSource, Op};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};

/// The keys of `dispatch` that are not backends.
const VIEW: &str = "View";
const HOST: &str = "Host";

pub(super) fn lower(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &mut Body) {
    for (key, text) in raw.text_map(KeyName::Dispatch) {
        match key.text.as_str() {
            VIEW => body.view = Some(checked_path(context, &text)),
            HOST => body.host = Some(checked_path(context, &text)),
            name => match Backend::from_key(name) {
                Some(backend) => {
                    let Some(source) = source(context, op, raw, &text, backend) else { continue };
                    let (text, span) = (text.as_str().to_owned(), text.span());
                    let is_built = is_built(context, backend, &source);
                    body.kernels.push(Kernel { backend, source, text, span, is_built, place: None });
                }
                None => {
                    let backends = Backend::ALL.iter().map(|backend| backend.key());
                    let known: Vec<&str> = backends.chain([VIEW, HOST]).collect();
                    context.push(catalogue::backend_unknown(key.span, name, &known));
                }
            },
        }
    }
}

/// Whether a build compiles a kernel: Rust compiles those in the configured modules, the C++ compiler files of C and
/// C++, and custom kernels are compiled at run time.
fn is_built(context: &Context<'_>, backend: Backend, source: &KernelSource) -> bool {
    match source {
        KernelSource::Rust { .. } => context.backends.contains(&backend),
        KernelSource::Foreign { file, .. } => file.extension().is_none_or(|extension| extension != "cu"),
        KernelSource::Aot { .. } => true,
    }
}

/// A path in the form of generated code. An invalid one is kept, so that no missing body is reported.
fn checked_path(context: &mut Context<'_>, text: &Text) -> String {
    if let Err(problem) = path::check(text.as_str()) {
        let place = text.span_within(problem.range, context.sources);
        context.push(catalogue::kernel_path(place, problem.label));
    }
    text.as_str().to_owned()
}

/// `linalg::mm` is Rust, and so is `fill::full(size, value)`; `kernels/cpu/flip.cc:flip` is a function in a file, and
/// with the prefix `aot:` one that is loaded at run time.
fn source(
    context: &mut Context<'_>,
    op: &Op,
    raw: &RawOp,
    text: &Text,
    backend: Backend,
) -> Option<KernelSource> {
    let written = text.as_str();
    if let Some(rest) = written.strip_prefix(aot::PREFIX) {
        return aot::source(context, op, raw, text, rest, backend);
    }
    if let Some((path, list)) = written.trim_end().strip_suffix(')').and_then(|call| call.split_once('(')) {
        let path = checked_part(context, text, path)?;
        let names = list.split(',').filter(|name| !name.trim().is_empty());
        let arguments: Vec<Option<usize>> = names.map(|name| argument(context, op, text, name)).collect();
        let arguments = arguments.into_iter().collect::<Option<_>>()?;
        return Some(KernelSource::Rust { path, arguments });
    }
    let colon = written.rfind(':').filter(|colon| !written[..*colon].ends_with(':'));
    match colon {
        Some(colon) => foreign(context, text, &written[..colon], &written[colon + 1..]),
        None => {
            let path = checked_part(context, text, written)?;
            let first = usize::from(op.facts.updates);
            Some(KernelSource::Rust { path, arguments: (first..op.args.len()).collect() })
        }
    }
}

/// A part of a text as a path.
fn checked_part(context: &mut Context<'_>, text: &Text, part: &str) -> Option<String> {
    let trimmed = part.trim();
    match path::check(trimmed) {
        Ok(()) => Some(trimmed.to_owned()),
        Err(problem) => {
            let start = offset(text, trimmed);
            let range = start + problem.range.start..start + problem.range.end;
            let place = text.span_within(range, context.sources);
            context.push(catalogue::kernel_path(place, problem.label));
            None
        }
    }
}

fn argument(context: &mut Context<'_>, op: &Op, text: &Text, name: &str) -> Option<usize> {
    let name = name.trim();
    let found = op.arg_index(name);
    if found.is_none() {
        let start = offset(text, name);
        let place = text.span_within(start..start + name.len(), context.sources);
        let known: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
        context.push(catalogue::kernel_argument(place, &op.name, name, &known));
    }
    found
}

/// A function in a file of C or C++.
fn foreign(context: &mut Context<'_>, text: &Text, file: &str, symbol: &str) -> Option<KernelSource> {
    let (file, symbol) = (file.trim(), symbol.trim());
    let problem = match file.rsplit_once('.').map(|(_, extension)| extension) {
        Some("c" | "cc" | "cpp" | "cxx" | "cu") if file.starts_with('/') => Some("an absolute path"),
        Some("c" | "cc" | "cpp" | "cxx" | "cu") => None,
        Some("rs") => Some("a file of Rust; name the function by its path"),
        None if path::is_identifier(file) => Some("one colon; a path of Rust has `::`"),
        _ => Some("not the name of such a file"),
    };
    if let Some(label) = problem {
        let place = place(context, text, file);
        context.push(catalogue::kernel_file(place, label));
        return None;
    }
    let symbol = self::symbol(context, text, symbol)?;
    Some(KernelSource::Foreign { file: PathBuf::from(file), symbol })
}

/// The name of a C function, if it is valid.
pub(super) fn symbol(context: &mut Context<'_>, text: &Text, symbol: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let problem = match symbol.chars().next() {
        None => Some("no function after the colon"),
        Some(first) if first.is_ascii_digit() || !symbol.chars().all(is_word) => Some("not a name in C"),
        Some(_) if !path::is_identifier(symbol) => Some("a keyword of Rust"),
        Some(_) if naming::is_c_keyword(symbol) => Some("a keyword of C++"),
        Some(_) => None,
    };
    if let Some(label) = problem {
        let place = if symbol.is_empty() { text.span().after() } else { place(context, text, symbol) };
        context.push(catalogue::kernel_symbol(place, symbol, label));
        return None;
    }
    Some(symbol.to_owned())
}

/// The span of a part of a text.
pub(super) fn place(context: &Context<'_>, text: &Text, part: &str) -> Span {
    let start = offset(text, part);
    text.span_within(start..start + part.len(), context.sources)
}

/// The offset of a part of a text.
fn offset(text: &Text, part: &str) -> usize {
    part.as_ptr() as usize - text.as_str().as_ptr() as usize
}

/// Reports one C function used by two operators: it has one signature.
pub(super) fn refuse_shared_symbols(context: &mut Context<'_>, ops: &[Op]) {
    let mut seen = std::collections::HashMap::new();
    for op in ops.iter().filter(|op| !op.is_external()) {
        for kernel in &op.body.kernels {
            let KernelSource::Foreign { symbol, .. } = &kernel.source else { continue };
            match seen.get(symbol) {
                Some(first) => context.push(catalogue::kernel_symbol_twice(kernel.span, symbol, *first)),
                None => _ = seen.insert(symbol, kernel.span),
            }
        }
    }
}
