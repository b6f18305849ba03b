//! The documentation of a generated function: the sentences of `words`, the example, forms, kernels, versions.

use opsmith_core::{Backend, DTypeSet, Words};
use proc_macro2::TokenStream;
use quote::quote;

use super::api::{self, Function};
use super::example::example;
use super::words::{self, constraints, in_a_line, notes};
use super::{Generation, enums};
use crate::analysis::naming::{self, Form};
use crate::model::{Arg, Default, Kernel, KernelSource, Model, Op};

/// The documentation of a public function, as text: all that the spec says at the operator's first function, and at the
/// others the differences.
pub(super) fn function(generation: &Generation<'_>, function: &Function<'_>) -> String {
    let op = function.op;
    let first = api::own_forms(op).into_iter().next();
    let first =
        first.filter(|first| first.form != function.form || first.with_options != function.with_options);
    let Some(first) = first else { return whole(generation, function) };
    let summary = summary(op);
    let options = if function.with_options { ", with options" } else { "" };
    let name = first.name();
    let mut text = format!("{summary}\n\nAs [`{name}`](fn@super::{name}){options}.");
    if let Some(difference) = difference(op, function.form) {
        text.push_str(&format!(" {difference}"));
    }
    text.trim_start().to_owned()
}

/// Whether a form that is not the first has the documentation of all such forms, which the runtime's macro writes.
pub(super) fn is_plain_form(function: &Function<'_>) -> bool {
    function.form != Form::Inplace || function.op.forms.pairs.is_empty()
}

/// The first paragraph of the spec's text.
pub(super) fn summary(op: &Op) -> &str {
    op.doc.split("\n\n").next().unwrap_or_default()
}

/// How a form differs from the functional one, in sentences of Markdown; `None` for that one itself.
pub fn difference(op: &Op, form: Form) -> Option<String> {
    match form {
        Form::Functional => None,
        Form::Inplace if !op.forms.pairs.is_empty() => {
            let written: Vec<String> = op
                .forms
                .pairs
                .iter()
                .map(|(argument, output)| match &op.outputs[*output].name {
                    Some(name) => format!("`{name}` into `{}`", op.args[*argument].name),
                    None => format!("result {output} into `{}`", op.args[*argument].name),
                })
                .collect();
            Some(format!("In place: writes {}; returns the other results.", written.join(", ")))
        }
        Form::Inplace => Some(
            "In place: writes the result into the first argument; one of another shape, or of a dtype that does not hold it, is an error."
                .to_owned(),
        ),
        Form::Out => Some(
            "Writes the result into `out`, which must have the result's shape or no elements; any other is an error.".to_owned(),
        ),
    }
}

/// All that the spec says of an operator, and of the overload that has the same function.
fn whole(generation: &Generation<'_>, function: &Function<'_>) -> String {
    let (op, model) = (function.op, generation.model);
    let other = function.operand().and_then(|(argument, id)| Some((argument, model.ops.get(id.0)?)));
    let mut text = op.doc.clone();
    if let Some(difference) = difference(op, function.form) {
        text.push_str(&format!("\n\n{difference}"));
    }
    let second = other.map(|(_, other)| format!("{}\n", other.signature)).unwrap_or_default();
    text.push_str(&format!("\n\n```text\n{}\n{second}```\n", op.signature));
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n# {title}\n{}\n", lines.join("\n")));
        }
    };
    let own = |part: fn(&Op, &Model) -> Vec<String>| {
        let mut lines = part(op, model);
        if let Some((argument, other)) = other {
            let name = &op.args[argument].name;
            lines = with_number(lines, part(other, model), name);
        }
        lines.into_iter().map(|line| item(linked(generation, op, line))).collect()
    };
    section("Arguments", arguments(op, other));
    section("Results", own(results));
    section("Gradients", own(|op, _| words::gradients(op)));
    section("Errors", own(words::errors));
    section("Example", example(generation, function));
    for fact in forms(op).into_iter().chain(kernels(generation, op)).chain(facts(op)) {
        text.push_str(&format!("\n{fact}\n"));
    }
    text.push_str(&format!("\nDeclared at {}", place(op)));
    if let Some((_, other)) = other {
        text.push_str(&format!(" and {}", place(other)));
    }
    text.push('.');
    text.trim_start().to_owned()
}

/// An item of a list, whose parts are a list below it.
fn item(text: String) -> String {
    format!("- {}", text.replace(&format!("\n{}", Words::PART), "\n  - "))
}

/// A sentence about operators that a composition calls, with links to their functions.
fn linked(generation: &Generation<'_>, op: &Op, line: String) -> String {
    if !line.contains(words::FOR_CALLS) {
        return line;
    }
    let link = |name: &str| {
        let called = generation.own_definitions().find(|called| called.name == name)?;
        let function = api::own_forms(called).into_iter().next().filter(|_| !called.is_private())?;
        Some(format!("[`{name}`](fn@super::{})", function.name()))
    };
    let parts = line.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.to_owned(),
        _ if op.arg_index(part).is_some() => format!("`{part}`"),
        _ => link(part).unwrap_or_else(|| format!("`{part}`")),
    });
    parts.collect()
}

/// The lines of two overloads: those of tensors, then those that differ if an argument is a number.
fn with_number(mut lines: Vec<String>, numbers: Vec<String>, argument: &str) -> Vec<String> {
    let differing: Vec<String> = numbers.into_iter().filter(|line| !lines.contains(line)).collect();
    let of_number = |line: String| format!("`{argument}` a number: {line}");
    lines.extend(differing.into_iter().map(of_number));
    lines
}

/// The arguments of a call; of two overloads, the argument that differs may be either.
fn arguments(op: &Op, other: Option<(usize, &Op)>) -> Vec<String> {
    let mut lines: Vec<String> = op.args.iter().map(argument).collect();
    if let Some((index, other)) = other {
        let (tensor, number) = (&op.args[index], argument(&other.args[index]));
        let rest = number.split_once(": ").map_or("", |(_, rest)| rest);
        let more = lines[index].split_once("Tensor").map_or(String::new(), |(_, more)| more.to_owned());
        let more = if rest.contains(&more) { String::new() } else { more };
        lines[index] = format!("- `{}`: Tensor or {rest}{more}", tensor.name);
        if other.args[index].name != tensor.name {
            lines[index]
                .push_str(&format!("; in calls by name `{}` if it is a number", other.args[index].name));
        }
    }
    lines
}

/// Each result, the dtypes that are computed with, and the formula.
fn results(op: &Op, model: &Model) -> Vec<String> {
    let mut lines: Vec<String> =
        words::results(op, model).into_iter().filter(|line| !line.is_empty()).collect();
    let dtypes = op.body.dtypes_of_row(Backend::Cpu);
    if dtypes != DTypeSet::EMPTY {
        lines.push(format!("computed in {}", words::named(dtypes)));
    }
    lines.extend(words::definition(op, model));
    lines
}

/// The entry, as a link from the folder of the documentation where the spec is at the root of the workspace.
fn place(op: &Op) -> String {
    let (file, line) = op.location.rsplit_once(':').unwrap_or((&op.location, ""));
    format!("[`{}`](../../../{file}#L{line})", op.location)
}

/// `- `p`: float, at least 0 and at most 1, `0.5` by default: the probability of zero`
fn argument(arg: &Arg) -> String {
    let text = argument_values(arg);
    if arg.doc.is_empty() { text } else { format!("{text}: {}", in_a_line(&arg.doc)) }
}

/// The values that an argument may have, and its names.
fn argument_values(arg: &Arg) -> String {
    let mut text = format!("- `{}`: {}", arg.name, arg.ty);
    let words = constraints(arg);
    if !words.is_empty() {
        text.push_str(&format!(", {words}"));
    }
    if let Some(default) = &arg.default {
        text.push_str(&format!(", {} by default", self::default(default)));
    }
    if naming::named_values(arg).is_some() {
        text.push_str(&format!("; see [`{}`]", enums::name(arg)));
    }
    for note in notes(arg) {
        text.push_str(&format!("; {note}"));
    }
    text
}

/// The other functions of the operator, as links.
fn forms(op: &Op) -> Option<String> {
    let others = api::own_forms(op).into_iter().skip(1);
    let links: Vec<String> =
        others.map(|function| format!("[`{0}`](fn@super::{0})", function.name())).collect();
    (!links.is_empty()).then(|| format!("Forms: {}.", links.join(", ")))
}

/// The hand-written kernels by backend, of which those in Rust are links, or that the loops come from the expression.
fn kernels(generation: &Generation<'_>, op: &Op) -> Option<String> {
    let name = |kernel: &Kernel| {
        let module = generation.config.kernels_of(kernel.backend);
        match (&kernel.source, module) {
            (KernelSource::Rust { path, .. }, Some(module)) => {
                let module: Vec<&str> = module.names().collect();
                format!("[`{}`](fn@{}::{path})", kernel.text, module.join("::"))
            }
            _ => format!("`{}`", kernel.text),
        }
    };
    let rows = op.body.kernels.iter().map(|kernel| format!("{} ({})", name(kernel), kernel.backend.key()));
    let mut names: Vec<String> = rows.collect();
    if op.body.pointwise.is_some() {
        names.push("a loop made from the expression".to_owned());
    }
    (!names.is_empty()).then(|| format!("Kernels: {}.", names.join(", ")))
}

/// A module whose documentation lists the public functions by the file of the spec that declares them.
pub(super) fn families(generation: &Generation<'_>) -> TokenStream {
    let mut families: Vec<(&str, Vec<String>)> = Vec::new();
    let shown = generation.own_definitions().filter(|op| !op.facts.backward_only);
    for op in shown {
        let Some(first) = api::own_forms(op).into_iter().next() else { continue };
        let link = format!("[`{0}`](fn@{0})", first.name());
        match families.iter_mut().find(|(file, _)| *file == op.file()) {
            Some((_, links)) => links.push(link),
            None => families.push((op.file(), vec![link])),
        }
    }
    let sections = families.iter().map(|(file, links)| format!("# `{file}`\n\n{}\n", links.join(", ")));
    let text = format!(
        "The operators by the file of the spec that declares them; other forms of each (in place, out, with options) are on its page.\n\n{}",
        sections.collect::<Vec<_>>().join("\n")
    );
    let doc = super::names::doc(&text);
    quote! {
        #doc
        pub mod operators_by_family {}
    }
}

/// Facts besides the operator's computation, a sentence each.
fn facts(op: &Op) -> Vec<String> {
    let mut found = Vec::new();
    let deterministic = match op.facts.deterministic {
        true => "Deterministic: equal inputs give equal results, whatever the number of threads.",
        false => "Not deterministic: equal inputs may give other results.",
    };
    found.push(deterministic.to_owned());
    if let Some(version) = &op.facts.since {
        found.push(format!("Since {version}."));
    }
    if !op.facts.tags.is_empty() {
        found.push(format!("Tags: {}.", op.facts.tags.join(", ")));
    }
    found
}

/// Attributes of the items that users see: deprecation, and hiding those for gradients only.
pub(super) fn attributes(op: &Op) -> TokenStream {
    let mut tokens = TokenStream::new();
    if op.facts.backward_only {
        tokens.extend(quote!(#[doc(hidden)]));
    }
    if let Some(deprecated) = &op.facts.deprecated {
        let since = deprecated.since.as_ref().map(|since| quote!(since = #since));
        let note = deprecated.instead.as_ref().map(|(full, rust)| {
            let note = format!("use `{rust}` (`{full}`) instead");
            quote!(note = #note)
        });
        let parts: Vec<TokenStream> = since.into_iter().chain(note).collect();
        tokens.extend(match parts.as_slice() {
            [] => quote!(#[deprecated]),
            parts => quote!(#[deprecated(#(#parts),*)]),
        });
    }
    tokens
}

/// A default as documents show it; Markdown.
pub fn default(default: &Default) -> String {
    format!("`{}`", written(default))
}

fn written(default: &Default) -> String {
    match default {
        Default::None => "None".to_owned(),
        Default::Bool(value) => value.to_string(),
        Default::Int(value) => value.to_string(),
        Default::Float(value) => format!("{value:?}"),
        Default::Str(value) => format!("{value:?}"),
        Default::List(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Default::DType(dtype) => dtype.to_string(),
        Default::MemoryFormat(format) => format.ident().to_owned(),
    }
}
