//! Hover: the documentation of the thing at a position.
//!
//! In: a spec and a [`Cursor`]. Out: Markdown, and the bytes that it is about.

use std::ops::Range;

use opsmith_codegen::emit;
use opsmith_codegen::model::Op;
use opsmith_codegen::spec::document::KeySpec;

use super::completion::{members, rule_head};
use super::cursor::Cursor;
use super::referent::{Referent, arguments, referent};
use super::{EditedSpec, definition};

/// Documentation for an editor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HoverText {
    /// Markdown.
    pub markdown: String,
    /// The bytes that it is about.
    pub range: Range<usize>,
}

/// The documentation of the thing at a position.
pub fn hover(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Option<HoverText> {
    let found = referent(spec, cursor)?;
    let range = match &found {
        Referent::Signature | Referent::Key(_) => cursor.range.clone(),
        _ => cursor.word(),
    };
    let markdown = match found {
        Referent::Key(row) => key(row),
        Referent::Signature => signature(spec, cursor)?,
        Referent::Argument(name) => argument(spec, cursor, &name),
        Referent::Operator(name) => operators(spec, &name)?,
        Referent::Function(name) => function(spec, &name)?,
        Referent::Rule(rule) => format!("{}\n\nAn inference rule: {}.", code(&rule_head(rule)), rule.doc()),
        Referent::Query(row) => format!("`{}`: {}.", row.name, row.doc),
        Referent::DType(dtype) => format!("`{}`: a dtype, `{}` in Rust.", dtype.name(), dtype.rust_type()),
        Referent::DTypes(name, set) => format!("`{name}`: the dtypes {}.", members(set)),
        Referent::Value(name) => value(spec, cursor, &name),
        Referent::Code(..) => {
            let places = definition::definitions(spec, cursor);
            let place = places.first()?;
            format!("`{}`", place.file.display())
        }
        Referent::File(name) => format!("The entries of `{name}`, relative to this file."),
    };
    Some(HoverText { markdown, range })
}

fn code(text: &str) -> String {
    format!("```text\n{text}\n```")
}

fn key(row: &KeySpec) -> String {
    let shown = row.shown();
    format!("**`{}`**: {}.\n\nWrite {}.", row.name, row.doc, shown.expected)
}

/// The parsed signature, its forms and its functions.
fn signature(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Option<String> {
    let (func, _) = cursor.entry.as_ref()?.func.as_ref()?;
    if cursor.path.first() == Some(&"functions") {
        return function(spec, func.split('(').next()?.trim());
    }
    let Some(op) = spec.operator_of(cursor) else {
        return super::rename::parsed(func).map(|schema| code(&schema.to_string()));
    };
    Some(operator(op))
}

fn operators(spec: &EditedSpec<'_>, name: &str) -> Option<String> {
    let full: Vec<&Op> = spec.model().ops.iter().filter(|op| op.name == name).collect();
    let found = if full.is_empty() { spec.overloads(name).collect() } else { full };
    let texts: Vec<String> = found.into_iter().map(operator).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n---\n\n"))
}

/// An operator with its signature, documentation, functions and place.
pub(super) fn operator(op: &Op) -> String {
    let functions: Vec<String> =
        emit::signatures(op).into_iter().map(|function| format!("{};", function.function)).collect();
    let deprecated = op.facts.deprecated.as_ref().map(|deprecated| match &deprecated.instead {
        Some((name, _)) => format!("\n\nDeprecated; use `{name}`."),
        None => "\n\nDeprecated.".to_owned(),
    });
    format!(
        "{}\n\n{}{}\n\n```rust\n{}\n```\n\nDeclared at `{}`.",
        code(&op.signature),
        op.doc,
        deprecated.unwrap_or_default(),
        functions.join("\n"),
        op.location
    )
}

fn function(spec: &EditedSpec<'_>, name: &str) -> Option<String> {
    let function = spec.function(name)?;
    let head = code(&format!("{}({})", function.name, function.params.join(", ")));
    Some(format!("{head}\n\nA scalar function for {}. {}", members(function.dtypes), function.doc))
}

fn argument(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, name: &str) -> String {
    let ty = arguments(spec, cursor).into_iter().find(|(known, _)| known == name);
    let declared = spec.operator_of(cursor).and_then(|op| op.args.iter().find(|arg| arg.name == name));
    let doc = declared.map(|arg| arg.doc.as_str()).filter(|doc| !doc.is_empty());
    let aliases = declared.map(|arg| arg.aliases.join("`, `")).filter(|aliases| !aliases.is_empty());
    let aliases = aliases.map(|aliases| format!(" Calls by name may say `{aliases}`.")).unwrap_or_default();
    let ty = ty.map(|(_, ty)| ty).unwrap_or_default();
    let doc = doc.map(|doc| format!("\n\n{doc}")).unwrap_or_default();
    format!("{}\n\nAn argument of the entry.{aliases}{doc}", code(&format!("{ty} {name}")))
}

fn value(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, name: &str) -> String {
    let op = spec.operator_of(cursor);
    let of = op.map(|op| format!(" of `{}`", op.name)).unwrap_or_default();
    let output = op.and_then(|op| op.outputs.iter().find(|output| output.name.as_deref() == Some(name)));
    if let Some(output) = output {
        let doc = if output.doc.is_empty() { String::new() } else { format!("\n\n{}", output.doc) };
        return format!("{}\n\n`{name}`: a result{of}.{doc}", code(&format!("{} {name}", output.ty)));
    }
    match name.starts_with("grad") {
        true => format!("`{name}`: the gradient of a result{of}."),
        false => format!("`{name}`: a result{of}."),
    }
}
