//! `alias_of`: an entry that is an alias of an operator.
//!
//! In: the heads of all operators. Out: the alias with the forms of the operator, or the mismatch. An alias has no
//! definition of its own: its functions, methods and names call the operator's, so it costs nothing and behaves the
//! same in every respect.

use std::collections::HashMap;

use super::names::argument_place;
use super::{Context, Head, forms};
use crate::diagnostics::{Span, catalogue, nearest};
use crate::model::{Forms, Op, OpId};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;

/// The keys allowed in an entry with `alias_of`; the operator has all others.
pub(super) const KEYS: [KeyName; 13] = [
    KeyName::Func,
    KeyName::Doc,
    KeyName::AliasOf,
    KeyName::Variants,
    KeyName::Names,
    KeyName::RustName,
    KeyName::Since,
    KeyName::Deprecated,
    KeyName::Tags,
    KeyName::ArgumentAliases,
    KeyName::Descriptions,
    KeyName::KnownAs,
    KeyName::Method,
];

/// Finds the operator of each alias. Afterwards `alias_of` of an operator is the position of its head.
pub(super) fn resolve(context: &mut Context<'_>, heads: &mut [Head<'_>], broken: &[String]) {
    let names: HashMap<String, usize> =
        heads.iter().enumerate().map(|(index, head)| (head.op.name.clone(), index)).collect();
    let found: Vec<Option<usize>> =
        heads.iter().map(|head| target(context, head, heads, &names, broken)).collect();
    for (index, target) in found.into_iter().enumerate() {
        let Some(target) = target else { continue };
        let (target_forms, elements): (Forms, Vec<_>) = {
            let target = &heads[target].op;
            (target.forms.clone(), target.args.iter().map(|arg| (arg.element, arg.value)).collect())
        };
        // Calls by name reach the operator's definition, with the alias's names of arguments.
        if !heads[target].op.is_external() {
            let own: Vec<String> = heads[index].op.args.iter().map(|arg| arg.name.clone()).collect();
            let args = &mut heads[target].op.args;
            for (position, name) in own.into_iter().enumerate() {
                let taken = args.iter().any(|arg| arg.name == name || arg.aliases.contains(&name));
                if !taken {
                    args[position].aliases.push(name);
                }
            }
        }
        if heads[target].op.is_external() && !heads[index].op.is_external() {
            renamed_arguments(context, &heads[index], &heads[target].op);
        }
        // Neither is for users if the operator is for formulas alone.
        let backward_only = heads[target].op.facts.backward_only;
        let head = &mut heads[index];
        head.op.facts.backward_only = backward_only;
        head.op.receiver = head.op.receiver.filter(|_| !backward_only);
        head.op.alias_of = Some(OpId(target));
        head.op.forms = alias_forms(context, head.raw, &head.op, &target_forms);
        for (arg, (element, value)) in head.op.args.iter_mut().zip(elements) {
            (arg.element, arg.value) = (element, value);
        }
    }
}

/// Generates the documentation of aliases without one, once the functions have their names.
pub(super) fn document(heads: &mut [Head<'_>]) {
    for index in 0..heads.len() {
        let Some(OpId(target)) = heads[index].op.alias_of else { continue };
        if heads[index].op.doc.is_empty() {
            heads[index].op.doc = format!("Another name of `{}`.", heads[target].op.rust_name);
        }
    }
}

/// Warns of names of arguments that a definition of another library does not have.
fn renamed_arguments(context: &mut Context<'_>, head: &Head<'_>, target: &Op) {
    for (own, known) in head.op.args.iter().zip(&target.args) {
        if own.name != known.name && !known.aliases.contains(&own.name) {
            let place = argument_place(context, head.raw, &own.name).unwrap_or(head.op.span);
            let (name, known) = (&own.name, &known.name);
            context.push(catalogue::alias_argument_renamed(place, name, &target.name, known));
        }
    }
}

fn target(
    context: &mut Context<'_>,
    head: &Head<'_>,
    heads: &[Head<'_>],
    names: &HashMap<String, usize>,
    broken: &[String],
) -> Option<usize> {
    let text = head.raw.text(KeyName::AliasOf)?;
    for entry in head.raw.entries.iter().filter(|entry| !KEYS.contains(&entry.spec.key)) {
        context.push(catalogue::alias_says_more(entry.key.span, entry.spec.name, text.span(), text.as_str()));
    }
    let Some(&index) = names.get(text.as_str()) else {
        let base = text.as_str().split('.').next().unwrap_or_default();
        if !broken.iter().any(|name| name == base) {
            let same_base: Vec<&str> = heads
                .iter()
                .map(|head| head.op.name.as_str())
                .filter(|name| name.split('.').next() == Some(base))
                .collect();
            let near = match same_base.as_slice() {
                [] => nearest(text.as_str(), names.keys().map(String::as_str)).into_iter().collect(),
                _ => same_base,
            };
            context.push(catalogue::alias_target_unknown(text.span(), text.as_str(), &near));
        }
        return None;
    };
    let target = &heads[index];
    if target.raw.get(KeyName::AliasOf).is_some() {
        context.push(catalogue::alias_of_alias(text.span(), text.as_str(), target.op.span));
        return None;
    }
    match difference(&head.op, &target.op) {
        Some(what) => {
            context.push(catalogue::alias_differs(head.op.span, &head.op.name, &what, target.op.span));
            None
        }
        None => Some(index),
    }
}

/// The difference of two signatures beyond names.
fn difference(alias: &Op, target: &Op) -> Option<String> {
    if alias.args.len() != target.args.len() {
        return Some(format!("it takes {} arguments, not {}", target.args.len(), alias.args.len()));
    }
    for (own, other) in alias.args.iter().zip(&target.args) {
        if own.ty != other.ty {
            let name = if own.name == other.name { String::new() } else { format!(", `{}`", other.name) };
            return Some(format!("`{}` is a `{}` there{name}", own.name, other.ty));
        }
        if own.default != other.default {
            return Some(format!("`{}` has another default there", own.name));
        }
        if own.keyword_only != other.keyword_only {
            return Some(format!("`{}` stands on the other side of `*` there", own.name));
        }
    }
    let types = |op: &Op| op.outputs.iter().map(|output| output.ty.clone()).collect::<Vec<_>>();
    (types(alias) != types(target)).then(|| "it returns something else".to_owned())
}

/// The operator's forms under the alias's name; `variants` may select fewer.
fn alias_forms(context: &mut Context<'_>, raw: &RawOp, op: &Op, target: &Forms) -> Forms {
    let all = forms::names_for(&op.name, &op.base);
    if raw.get(KeyName::Variants).is_none() {
        let mut forms = Forms {
            inplace: target.inplace.as_ref().and(all.inplace),
            out: target.out.as_ref().and(all.out),
            pairs: target.pairs.clone(),
        };
        forms::rename(context, raw, &mut forms);
        return forms;
    }
    let place = |key: &str| -> Span {
        let texts = raw.texts(KeyName::Variants);
        texts.iter().find(|text| text.as_str().contains(key)).map_or(op.span, |text| text.span())
    };
    for (form, there, key) in
        [(&op.forms.inplace, &target.inplace, "inplace"), (&op.forms.out, &target.out, "out")]
    {
        if form.is_some() && there.is_none() {
            context.push(catalogue::alias_form(place(key), key, &op.name));
        }
    }
    Forms { pairs: target.pairs.clone(), ..op.forms.clone() }
}
