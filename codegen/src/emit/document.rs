//! What the documentation of a generated function says, from the spec: arguments with what they may be,
//! versions, determinism.

use opsmith_core::constraint;
use proc_macro2::TokenStream;
use quote::quote;

use super::api::Function;
use super::enums;
use crate::analysis::naming::{self, Form};
use crate::model::{Arg, Default, NumberUse, Op, ValueUse};

/// The documentation of a public function, as text.
pub(super) fn function(function: &Function<'_>) -> String {
    let op = function.op;
    let mut text = op.doc.clone();
    match function.form {
        Form::Functional => {}
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
            text.push_str(&format!(
                "\n\nIn place: writes {}; returns the other results.",
                written.join(", ")
            ));
        }
        Form::Inplace => text.push_str(
            "\n\nIn place: writes the result into the first argument, which must have the result's shape.",
        ),
        Form::Out => text
            .push_str("\n\nWrites the result into `out`, which must have the result's shape or no elements."),
    }
    text.push_str(&format!("\n\n```text\n{}\n```\n", op.signature));
    let described: Vec<String> = op.args.iter().map(argument).collect();
    if !described.is_empty() {
        text.push_str(&format!("\n# Arguments\n{}\n", described.join("\n")));
    }
    text.push_str("\n# Errors\nIf shapes, dtypes or attributes do not go together; the error says which and what to do.\n");
    for fact in facts(op) {
        text.push_str(&format!("\n{fact}\n"));
    }
    text.push_str(&format!("\nDeclared at `{}`.", op.location));
    text.trim_start().to_owned()
}

/// `- `p`: float, at least 0 and at most 1, `0.5` by default`
fn argument(arg: &Arg) -> String {
    let mut text = format!("- `{}`: {}", arg.name, arg.ty);
    if !arg.constraints.is_empty() {
        let list = if arg.ty.is_list() { "a list " } else { "" };
        let words = constraint::describe(&arg.constraints, arg.ty.is_list());
        let list = if words.starts_with("of ") { list } else { "" };
        text.push_str(&format!(", {list}{words}"));
    }
    if let Some(default) = &arg.default {
        text.push_str(&format!(", {} by default", self::default(default)));
    }
    if naming::named_values(arg).is_some() {
        text.push_str(&format!("; see [`{}`]", enums::name(arg)));
    }
    match arg.number {
        None | Some(NumberUse::Free | NumberUse::Computed) => {}
        Some(NumberUse::Held) => text.push_str("; the elements' dtype must hold it"),
        Some(NumberUse::Alike) => {
            text.push_str(
                "; the elements' dtype must hold it, and it is no float or complex number unless they are",
            );
        }
        Some(NumberUse::Lower | NumberUse::Upper) => {
            text.push_str("; may lie beyond what the elements' dtype holds, where no element is");
        }
    }
    match arg.value {
        ValueUse::None => {}
        ValueUse::Optional => {
            text.push_str("; if its elements are known, the result's shape is known better")
        }
        ValueUse::Masks => text.push_str(
            "; masks (`bool`, `uint8`) stand for the places where they hold, which decide the result's shape",
        ),
        ValueUse::Required => text.push_str("; its elements decide the result's shape or dtype"),
    }
    if !arg.aliases.is_empty() {
        let names: Vec<String> = arg.aliases.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("; by name also {}", names.join(", ")));
    }
    text
}

/// What is known besides what the operator computes, a sentence each.
fn facts(op: &Op) -> Vec<String> {
    let mut found = Vec::new();
    if !op.facts.deterministic {
        found.push("Not deterministic: equal inputs may give other results.".to_owned());
    }
    if let Some(version) = &op.facts.since {
        found.push(format!("Since {version}."));
    }
    if !op.facts.tags.is_empty() {
        found.push(format!("Tags: {}.", op.facts.tags.join(", ")));
    }
    found
}

/// Attributes of the items that users see: deprecation, and hiding what is for gradients only.
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

/// A default as documents show it.
pub(super) fn default(default: &Default) -> String {
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
        Default::MemoryFormat(name) => (*name).to_owned(),
    }
}
