//! Names of an operator for callers: the argument that it is a method of, its names in other libraries, and the
//! namespaces of these.
//!
//! In: entries and the tables at the head of a file. Out: receivers, and [`ForeignNames`] of the whole spec.

use std::collections::HashMap;

use super::{Context, Head};
use crate::diagnostics::{Span, catalogue};
use crate::model::{Arg, ForeignNames, Kind};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{Loaded, RawOp};

/// The value of `method` for an operator without a method.
const NO_METHOD: &str = "none";

/// The argument that an operator is a method of: the one named by `method`; else `self`; else the first required
/// tensor. `None` for an operator that only formulas call.
pub(super) fn receiver(context: &mut Context<'_>, raw: &RawOp, args: &[Arg]) -> Option<usize> {
    let receives = |arg: &Arg| arg.ty.kind == Kind::Tensor && !arg.ty.optional && arg.default.is_none();
    let Some(text) = raw.text(KeyName::Method) else {
        if raw.flag(KeyName::BackwardOnly) == Some(true) {
            return None;
        }
        let named = args.iter().position(|arg| arg.name == "self" && receives(arg));
        return named.or_else(|| args.iter().position(receives));
    };
    if text.as_str() == NO_METHOD {
        return None;
    }
    let found = args.iter().position(|arg| arg.name == text.as_str() && receives(arg));
    if found.is_none() {
        let known: Vec<&str> = args.iter().filter(|arg| receives(arg)).map(|arg| arg.name.as_str()).collect();
        context.push(catalogue::receiver_unknown(text.span(), text.as_str(), &known));
    }
    found
}

/// `known_as: [power]`: names in other libraries.
pub(super) fn known_as(context: &mut Context<'_>, raw: &RawOp) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in raw.texts(KeyName::KnownAs) {
        let name = text.as_str();
        if !is_dotted_name(name) {
            context.push(catalogue::known_name_malformed(text.span(), name));
        } else if names.iter().any(|known| known == name) {
            context.push(catalogue::known_name_twice(text.span(), name, None));
        } else {
            names.push(name.to_owned());
        }
    }
    names
}

/// Letters, digits and underscores, with `.` or `::` between parts.
fn is_dotted_name(name: &str) -> bool {
    let part = |part: &str| {
        part.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && part.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    name.replace("::", ".").split('.').all(part)
}

/// The tables of all files, and their contradictions with the operators.
pub(super) fn tables(context: &mut Context<'_>, documents: &[Loaded], heads: &[Head<'_>]) -> ForeignNames {
    let mut names = ForeignNames::default();
    for loaded in documents {
        for (prefix, begins) in &loaded.document.namespaces {
            if prefix.text.is_empty() {
                context.push(catalogue::namespace_empty(prefix.span));
                continue;
            }
            names.namespaces.push((prefix.text.clone(), begins.as_str().to_owned(), loaded.parent.is_some()));
        }
        for (name, advice) in &loaded.document.unlike {
            names.unlike.push((name.text.clone(), advice.as_str().to_owned(), loaded.parent.is_some()));
        }
    }
    // A library may name its operators freely, even like a foreign name of its parents' operators.
    let bases: HashMap<(Option<usize>, &str), Span> =
        heads.iter().map(|head| ((head.op.parent, head.op.base.as_str()), head.op.span)).collect();
    let mut seen: HashMap<(Option<usize>, &str), (&str, Span)> = HashMap::new();
    for head in heads {
        let texts = head.raw.texts(KeyName::KnownAs);
        for name in &head.op.facts.known_as {
            let place =
                texts.iter().find(|text| text.as_str() == name).map_or(head.op.span, |text| text.span());
            if let Some(span) = bases.get(&(head.op.parent, name.as_str())) {
                context.push(catalogue::known_name_taken(place, name, *span));
            } else if let Some((base, first)) = seen.get(&(head.op.parent, name.as_str())) {
                if *base != head.op.base {
                    context.push(catalogue::known_name_twice(place, name, Some(*first)));
                }
            } else {
                seen.insert((head.op.parent, name), (&head.op.base, place));
                names.known_as.push((name.clone(), head.op.base.clone(), head.op.parent.is_some()));
            }
        }
    }
    for loaded in documents {
        for (name, _) in &loaded.document.unlike {
            let key = (loaded.parent, name.text.as_str());
            if bases.contains_key(&key) || seen.contains_key(&key) {
                context.push(catalogue::unlike_is_known(name.span, &name.text));
            }
        }
    }
    names
}
