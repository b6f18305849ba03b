//! The forms of an operator and their names.

use super::{Context, results};
use crate::diagnostics::{Span, catalogue};
use crate::model::{Arg, Forms, Output};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::{Schema, SchemaKind};

const FORMS: [&str; 3] = ["functional", "inplace", "out"];

pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    args: &[Arg],
    outputs: &[Output],
) -> Forms {
    let name = schema.name.to_string();
    let mut forms = Forms { pairs: results::pairs(context, raw, schema, args, outputs), ..Forms::default() };
    let writes = schema.kind() != SchemaKind::Functional;
    let named = names_for(&name, &schema.name.spelling());
    if has_all(raw) && !writes {
        // An impossible form is omitted: the entry did not request it.
        forms.inplace = named.inplace.clone().filter(|_| inplace_impossible(raw, args, outputs).is_none());
        forms.out = named.out.clone().filter(|_| out_impossible(raw, outputs).is_none());
    }
    for text in raw.texts(KeyName::Variants) {
        for (word, place) in words(context, &text) {
            match word {
                "functional" => {}
                "inplace" | "out" if writes => {
                    context.push(catalogue::not_functional(place, &name));
                }
                "inplace" => {
                    if let Some(reason) = inplace_impossible(raw, args, outputs) {
                        context.push(catalogue::inplace_impossible(place, &name, reason));
                    }
                    forms.inplace = named.inplace.clone();
                }
                "out" => {
                    if let Some(reason) = out_impossible(raw, outputs) {
                        context.push(catalogue::out_impossible(place, &name, reason));
                    }
                    forms.out = named.out.clone();
                }
                unknown => context.push(catalogue::form_unknown(place, unknown, &FORMS)),
            }
        }
    }
    rename(context, raw, &mut forms);
    forms
}

/// Whether an entry has every possible form: a pointwise one without `variants`.
fn has_all(raw: &RawOp) -> bool {
    raw.get(KeyName::Variants).is_none()
        && raw.get(KeyName::Pointwise).is_some()
        && raw.flag(KeyName::BackwardOnly) != Some(true)
}

/// The default names of an operator's forms: `add_.Tensor` and `add.Tensor_out`.
pub(super) fn names_for(name: &str, base: &str) -> Forms {
    let (namespace, rest) = name.split_once("::").map_or(("", name), |(space, rest)| (space, rest));
    let overload = rest.split_once('.').map_or("", |(_, overload)| overload);
    let full = |base: &str, overload: &str| {
        let separator = if namespace.is_empty() { "" } else { "::" };
        let dot = if overload.is_empty() { "" } else { "." };
        Some(format!("{namespace}{separator}{base}{dot}{overload}"))
    };
    let out = if overload.is_empty() { "out".to_owned() } else { format!("{overload}_out") };
    Forms { inplace: full(&format!("{base}_"), overload), out: full(base, &out), pairs: Vec::new() }
}

/// The words of `functional, inplace`, each with its span.
fn words<'t>(context: &Context<'_>, text: &'t Text) -> Vec<(&'t str, Span)> {
    let whole = text.as_str();
    whole
        .split(',')
        .map(|part| {
            let word = part.trim();
            let start = word.as_ptr() as usize - whole.as_ptr() as usize;
            (word, text.span_within(start..start + word.len(), context.sources))
        })
        .collect()
}

fn inplace_impossible(raw: &RawOp, args: &[Arg], outputs: &[Output]) -> Option<&'static str> {
    match (args.first(), outputs) {
        _ if raw.flag(KeyName::View) == Some(true) => Some("a view writes nothing"),
        _ if outputs.iter().any(|output| output.ty.optional) => Some("a result may be absent"),
        _ if raw.get(KeyName::Inplace).is_some() => None,
        (Some(first), [only]) if first.ty.is_tensor() && only.ty.is_tensor() => None,
        (Some(first), _) if !first.ty.is_tensor() => Some("the first argument is not a tensor"),
        (None, _) => Some("there is no argument to write"),
        (_, [_]) => Some("the result is not a tensor"),
        _ => Some("there are several results"),
    }
}

fn out_impossible(raw: &RawOp, outputs: &[Output]) -> Option<&'static str> {
    match outputs.iter().all(|output| output.ty.is_tensor()) {
        _ if raw.flag(KeyName::View) == Some(true) => Some("a view writes nothing"),
        true => None,
        false => Some("a result is not a single tensor"),
    }
}

/// `names: {out: add.out}`
pub(super) fn rename(context: &mut Context<'_>, raw: &RawOp, forms: &mut Forms) {
    const EXAMPLE: &str = "{out: add.out}";
    let Some(node) = raw.get(KeyName::Names) else { return };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::not_a_mapping(node.span, "names", EXAMPLE));
        return;
    };
    for (key, value) in entries {
        let slot = match key.text.as_str() {
            "inplace" => &mut forms.inplace,
            "out" => &mut forms.out,
            other => {
                context.push(catalogue::form_unnamed(key.span, other));
                continue;
            }
        };
        let Some(name) = value.as_text() else {
            context.push(catalogue::nested_not_text(value.span, "names", EXAMPLE));
            continue;
        };
        if slot.is_none() {
            context.push(catalogue::form_absent(key.span, &key.text));
        } else if !is_full_name(name) {
            context.push(catalogue::form_name_malformed(value.span, name));
        } else {
            *slot = Some(name.to_owned());
        }
    }
}

/// Whether a text is `name`, `name.overload` or either with a prefix `namespace::`.
fn is_full_name(text: &str) -> bool {
    let word = |text: &str| {
        let mut characters = text.chars();
        characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    let text =
        text.split_once("::").map_or(text, |(namespace, rest)| if word(namespace) { rest } else { "" });
    match text.split_once('.') {
        Some((name, overload)) => word(name) && word(overload),
        None => word(text),
    }
}
