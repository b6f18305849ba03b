//! Changes of a signature: arguments and results.

use super::Changes;
use super::operators::Pair;
use crate::export;
use opsmith_codegen::analysis::naming;
use opsmith_codegen::model::{Arg, Element, Kind, NumberUse, Op, ValueUse};

pub(super) fn compare(pair: Pair<'_>, changes: &mut Changes) {
    let Pair { old, new, .. } = pair;
    let matched = matches(old, new);
    for (index, arg) in old.args.iter().enumerate() {
        if matched[index].is_none() {
            let migration = format!("leave `{}` out", arg.name);
            changes.push("argument-removed", &old.name, format!("`{}` is gone", arg.name), Some(migration));
        }
    }
    added(old, new, &matched, changes);
    order(old, new, &matched, changes);
    for (arg, now) in old.args.iter().zip(&matched).filter_map(|(arg, now)| Some((arg, &new.args[(*now)?]))) {
        argument(old, arg, now, changes);
    }
    results(old, new, changes);
}

/// The new operator with the old names of arguments, so that a renaming alone changes no expression.
pub(super) fn aligned(old: &Op, new: &Op) -> Op {
    let mut aligned = new.clone();
    for (arg, now) in old.args.iter().zip(matches(old, new)) {
        if let Some(now) = now {
            aligned.args[now].name.clone_from(&arg.name);
        }
    }
    aligned
}

/// The new position of each old argument: by its name, then by an alias that keeps the name, then the
/// one of the same type at the same position whose name is new too.
fn matches(old: &Op, new: &Op) -> Vec<Option<usize>> {
    let is_new = |arg: &Arg| old.arg_index(&arg.name).is_none();
    old.args
        .iter()
        .enumerate()
        .map(|(index, arg)| {
            let by_alias = || new.args.iter().position(|now| now.aliases.contains(&arg.name));
            let by_place = || {
                let now = new.args.get(index)?;
                (is_new(now) && now.ty == arg.ty && now.default.is_some() == arg.default.is_some())
                    .then_some(index)
            };
            new.arg_index(&arg.name).or_else(by_alias).or_else(by_place)
        })
        .collect()
}

fn added(old: &Op, new: &Op, matched: &[Option<usize>], changes: &mut Changes) {
    let last = matched.iter().flatten().copied().filter(|now| !new.args[*now].keyword_only).max();
    for (index, arg) in new.args.iter().enumerate().filter(|(index, _)| !matched.contains(&Some(*index))) {
        let shifts = !arg.keyword_only && last.is_some_and(|last| index < last);
        match &arg.default {
            None => changes.push(
                "argument-added",
                &old.name,
                format!("`{} {}` is new and has no default", arg.ty, arg.name),
                Some(format!("give `{}` in every call", arg.name)),
            ),
            Some(default) => {
                let what = format!("`{}` is new, {} by default", arg.name, export::default_value(default));
                changes.push("option-added", &old.name, what, None);
                if shifts {
                    let what = format!("`{}` stands before arguments that were there", arg.name);
                    let migration = "give the arguments behind it by name".to_owned();
                    changes.push("argument-reordered", &old.name, what, Some(migration));
                }
            }
        }
    }
}

fn order(old: &Op, new: &Op, matched: &[Option<usize>], changes: &mut Changes) {
    // Arguments after `*` have no position.
    let positional: Vec<usize> = old
        .args
        .iter()
        .zip(matched)
        .filter(|(arg, _)| !arg.keyword_only)
        .filter_map(|(_, now)| *now)
        .filter(|now| !new.args[*now].keyword_only)
        .collect();
    if !positional.is_sorted() {
        let names: Vec<&str> = new.args.iter().map(|arg| arg.name.as_str()).collect();
        let what = format!("the arguments have another order: {}", names.join(", "));
        changes.push(
            "argument-reordered",
            &old.name,
            what,
            Some("change the order in every call".to_owned()),
        );
    }
}

fn argument(op: &Op, old: &Arg, new: &Arg, changes: &mut Changes) {
    let mut push =
        |rule, what: String, migration: Option<String>| changes.push(rule, &op.name, what, migration);
    let name = &old.name;
    names(op, old, new, &mut push);
    if old.ty != new.ty {
        let what = format!("`{name}` was {} and is {} now", old.ty, new.ty);
        match is_widened(old, new) {
            true => push("type-widened", what, None),
            false => push("type-changed", what, Some(format!("give a value of type {}", new.ty))),
        }
    }
    default(op, old, new, &mut push);
    match (old.keyword_only, new.keyword_only) {
        (false, true) => {
            push("keyword-only", format!("`{name}` must be named now"), Some(format!("write `{name}=…`")))
        }
        (true, false) => push("positional", format!("`{name}` may be given by position now"), None),
        _ => {}
    }
    constraints(old, new, &mut push);
    elements(name, old.element, new.element, &mut push);
    if old.contiguous != new.contiguous {
        push(
            "implementation",
            format!("kernels want `{name}` in another layout; it is copied if it must be"),
            None,
        );
    }
    if old.rounded != new.rounded {
        let how = if new.rounded { "rounded to the elements' dtype" } else { "used as it is" };
        push("implementation", format!("the number `{name}` is {how}"), None);
    }
    if old.number != new.number {
        let what = format!("the number `{name}` {}", relation(new.number));
        push("constraint-changed", what, None);
    }
    if old.value != new.value {
        let rule = if new.value == ValueUse::None { "implementation" } else { "value-dependence-changed" };
        push(rule, format!("the elements of `{name}` decide about shapes: {}", word(new.value)), None);
    }
}

/// The argument's name and aliases.
fn names(op: &Op, old: &Arg, new: &Arg, push: &mut impl FnMut(&'static str, String, Option<String>)) {
    let name = &old.name;
    if new.name != *name {
        let what = format!("`{name}` is called `{}` now", new.name);
        // An option is a function of the struct of options, which has only one name.
        if new.aliases.contains(name) && old.default.is_none() {
            push("argument-renamed-with-alias", what, None);
        } else {
            let setter = if old.default.is_some() {
                format!("; in Rust `{}::new().{}(…)`", naming::options(op), naming::parameter(&new.name))
            } else {
                String::new()
            };
            push("argument-renamed", what, Some(format!("write `{}` where it is named{setter}", new.name)));
        }
    }
    for alias in new.aliases.iter().filter(|alias| !old.aliases.contains(alias) && *alias != name) {
        push("argument-alias-added", format!("`{}` may be called `{alias}` too", new.name), None);
    }
    for alias in old.aliases.iter().filter(|alias| !new.aliases.contains(alias) && **alias != new.name) {
        let migration = format!("write `{}`", new.name);
        push(
            "argument-alias-removed",
            format!("`{name}` may not be called `{alias}` any more"),
            Some(migration),
        );
    }
}

fn default(op: &Op, old: &Arg, new: &Arg, push: &mut impl FnMut(&'static str, String, Option<String>)) {
    let name = &old.name;
    let shown = |arg: &Arg| arg.default.as_ref().map(export::default_value);
    match (shown(old), shown(new)) {
        (None, Some(now)) => push(
            "default-added",
            format!("`{name}` is {now} by default now"),
            Some(format!(
                "in Rust, leave it out, or give it as `{}::new().{}(…)`",
                naming::options(op),
                naming::parameter(&new.name)
            )),
        ),
        (Some(_), None) => push(
            "default-removed",
            format!("`{name}` has no default any more"),
            Some(format!("give `{name}` in every call")),
        ),
        (Some(before), Some(now)) if before != now => push(
            "default-changed",
            format!("`{name}` was {before} by default and is {now} now"),
            Some(format!("write `{name}={before}` where it was left out")),
        ),
        _ => {}
    }
}

fn constraints(old: &Arg, new: &Arg, push: &mut impl FnMut(&'static str, String, Option<String>)) {
    let name = &old.name;
    let lost = new.constraints.is_empty() && !old.constraints.is_empty();
    if old.constraints != new.constraints {
        let shown = |arg: &Arg| {
            let all: Vec<String> = arg.constraints.iter().map(ToString::to_string).collect();
            if all.is_empty() { "anything".to_owned() } else { all.join(", ") }
        };
        let what = format!("`{name}` could be {} and can be {} now", shown(old), shown(new));
        let only_fewer = new.constraints.iter().all(|constraint| old.constraints.contains(constraint));
        match lost || only_fewer {
            true => push("constraint-removed", what, None),
            false => push("constraint-changed", what, Some("give an allowed value".to_owned())),
        }
    }
}

fn word(value: ValueUse) -> &'static str {
    ValueUse::WORDS.iter().find(|(_, known)| *known == value).map_or("no", |(word, _)| word)
}

/// The dtypes of tensors that an argument accepts.
fn elements(
    name: &str,
    old: Element,
    new: Element,
    push: &mut dyn FnMut(&'static str, String, Option<String>),
) {
    if old == new {
        return;
    }
    let accepted = |element: Element| match element {
        Element::Fixed { accepted, .. } => Some(accepted),
        _ => None,
    };
    let (what, narrower) = match (accepted(old), accepted(new)) {
        (Some(old), Some(new)) => {
            (format!("`{name}` accepts other dtypes"), old.iter().any(|dtype| !new.contains(dtype)))
        }
        (None, Some(_)) => (format!("`{name}` has a dtype of its own now"), true),
        _ => (format!("`{name}` has another relation to the dtype of the computation"), true),
    };
    match narrower {
        true => push("argument-dtypes-narrowed", what, Some(format!("convert `{name}` first"))),
        false => push("argument-dtypes-widened", what, None),
    }
}

/// Whether every value of the old type is accepted as the new one, by Rust's compiler too.
fn is_widened(old: &Arg, new: &Arg) -> bool {
    let number = matches!(old.ty.kind, Kind::Int | Kind::Float | Kind::Bool) && new.ty.kind == Kind::Scalar;
    let same_kind = old.ty.kind == new.ty.kind;
    // A parameter that becomes optional gets another type in Rust; a setter keeps its type.
    let is_option = old.default.is_some() && new.default.is_some();
    let optional = old.ty.optional == new.ty.optional || (is_option && new.ty.optional);
    (number || same_kind) && optional
}

fn results(old: &Op, new: &Op, changes: &mut Changes) {
    let types = |op: &Op| -> Vec<String> {
        op.outputs.iter().filter(|output| !output.hidden).map(|output| output.ty.to_string()).collect()
    };
    if types(old) != types(new) {
        let what =
            format!("it returned ({}) and returns ({}) now", types(old).join(", "), types(new).join(", "));
        changes.push(
            "return-changed",
            &old.name,
            what,
            Some("take the result apart in another way".to_owned()),
        );
        return;
    }
    for (index, (before, now)) in old.outputs.iter().zip(&new.outputs).enumerate() {
        if before.name != now.name {
            let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "nameless".to_owned());
            let what = format!("result {index} was {} and is {} now", shown(&before.name), shown(&now.name));
            let migration = "use the new name where results are given by name".to_owned();
            changes.push("return-renamed", &old.name, what, Some(migration));
        }
        match (before.differentiable, now.differentiable) {
            (true, false) => {
                changes.push(
                    "output-not-differentiable",
                    &old.name,
                    format!("result {index} has no gradient any more"),
                    None,
                );
            }
            (false, true) => {
                changes.push(
                    "output-differentiable",
                    &old.name,
                    format!("result {index} has a gradient now"),
                    None,
                );
            }
            _ => {}
        }
    }
}

/// The relation of a number to the elements, with its word of the key `numbers`.
fn relation(number: Option<NumberUse>) -> String {
    let effect = match number {
        None => return "has no relation to the elements any more (key `numbers`)".to_owned(),
        Some(NumberUse::Free) => "takes part in the promotion of dtypes, or is no element",
        Some(NumberUse::Computed) => "must be one that the dtype of the computation holds",
        Some(NumberUse::Held) => "must be one that the elements' dtype holds",
        Some(NumberUse::Real) => "must be real",
        Some(NumberUse::Alike) => "must be one that the elements' dtype holds, and of no higher category",
        Some(NumberUse::Lower) => {
            "is a lower bound, and must not be above all that the elements' dtype holds"
        }
        Some(NumberUse::Upper) => {
            "is an upper bound, and must not be below all that the elements' dtype holds"
        }
    };
    match number.map_or("", NumberUse::word) {
        "" => effect.to_owned(),
        word => format!("{effect} (`{word}`)"),
    }
}
