//! Differences between the saved and the present definition of an operator.

use opsmith_runtime::op::{DefaultValue, ElementType, OpDef};

use super::format::{Arg, Operator};

/// The record of a present definition.
pub(super) fn record(op: &OpDef) -> Operator {
    let arg = |(position, arg): (usize, &opsmith_runtime::op::ArgDef)| Arg {
        name: arg.name.to_owned(),
        ty: arg.ty.to_string(),
        default: arg.default.map(|default| default_text(&default)),
        elements: op
            .element_types
            .get(position)
            .filter(|ty| **ty != ElementType::NotTensor)
            .map(element_text),
        row_major: op.contiguous & (1 << position) != 0,
    };
    Operator {
        signature: op.schema.text.to_owned(),
        args: op.schema.args.iter().enumerate().map(arg).collect(),
        returns: op.schema.returns.iter().map(|result| result.ty.to_string()).collect(),
        kind: if op.view.is_some() { "view" } else { "kernel" }.to_owned(),
        deterministic: op.facts.deterministic,
        element_wise: op.forms.elementwise,
    }
}

fn default_text(default: &DefaultValue) -> String {
    match default {
        DefaultValue::None => "none".to_owned(),
        DefaultValue::Bool(value) => value.to_string(),
        DefaultValue::Int(value) => value.to_string(),
        DefaultValue::Float(value) => value.to_string(),
        DefaultValue::Str(value) => format!("{value:?}"),
        DefaultValue::Ints(value) => format!("{value:?}"),
        DefaultValue::Floats(value) => format!("{value:?}"),
        DefaultValue::Bools(value) => format!("{value:?}"),
        DefaultValue::Scalars(value) => format!("{value:?}"),
        DefaultValue::Strs(value) => format!("{value:?}"),
        DefaultValue::DTypes(value) => format!("{value:?}"),
        DefaultValue::Lists(value) => format!("{value:?}"),
        DefaultValue::DType(value) => value.to_string(),
        DefaultValue::MemoryFormat(value) => format!("{value:?}"),
    }
}

fn element_text(ty: &ElementType) -> String {
    match ty {
        ElementType::NotTensor => "no tensor".to_owned(),
        ElementType::Dispatch => "the dtype of the kernel".to_owned(),
        ElementType::Real => "the real dtype of the kernel".to_owned(),
        ElementType::Opmath => "the dtype in which the kernel computes".to_owned(),
        ElementType::Fixed { kernel, .. } => kernel.to_string(),
        ElementType::Any => "any dtype".to_owned(),
    }
}

/// Every difference between the saved and the present definition, a sentence each.
pub(super) fn between(was: &Operator, is: &Operator) -> Vec<String> {
    let mut found = Vec::new();
    for (position, old) in was.args.iter().enumerate() {
        match is.args.iter().position(|new| new.name == old.name) {
            None => found.push(format!("the argument `{}` was removed", old.name)),
            Some(now) => {
                if now != position {
                    found
                        .push(format!("the argument `{}` moved from position {position} to {now}", old.name));
                }
                of_argument(old, &is.args[now], &mut found);
            }
        }
    }
    for new in is.args.iter().filter(|new| was.args.iter().all(|old| old.name != new.name)) {
        found.push(match &new.default {
            Some(default) => {
                format!("the argument `{}` was added: {}, {default} by default", new.name, new.ty)
            }
            None => format!("the argument `{}` was added: {}, required", new.name, new.ty),
        });
    }
    if was.returns != is.returns {
        found.push(format!("it returned {}, and returns {}", list(&was.returns), list(&is.returns)));
    }
    if was.kind != is.kind {
        found.push(format!("it was a {}, and is a {}", was.kind, is.kind));
    }
    let turned = |what: &str, was: bool, is: bool| {
        (was != is).then(|| format!("it {} {what}", if is { "is now" } else { "is no longer" }))
    };
    found.extend(turned("deterministic", was.deterministic, is.deterministic));
    found.extend(turned("element-wise", was.element_wise, is.element_wise));
    if found.is_empty() && was.signature != is.signature {
        found.push(format!("its signature was {}, and is {}", was.signature, is.signature));
    }
    found
}

fn of_argument(old: &Arg, new: &Arg, found: &mut Vec<String>) {
    let name = &old.name;
    if old.ty != new.ty {
        found.push(format!("the argument `{name}` was {}, and is {}", old.ty, new.ty));
    }
    match (&old.default, &new.default) {
        (Some(was), Some(is)) if was != is => {
            found.push(format!("the default of `{name}` was {was}, and is {is}"));
        }
        (Some(was), None) => {
            found.push(format!("the argument `{name}` had the default {was}, and is required"))
        }
        (None, Some(is)) => {
            found.push(format!("the argument `{name}` was required, and has the default {is}"))
        }
        _ => {}
    }
    if old.elements != new.elements {
        let text = |elements: &Option<String>| elements.clone().unwrap_or_else(|| "no tensor".to_owned());
        found.push(format!(
            "kernels saw `{name}` as {}, and see it as {}",
            text(&old.elements),
            text(&new.elements)
        ));
    }
    if old.row_major != new.row_major {
        let now = if new.row_major { "want" } else { "no longer want" };
        found.push(format!("kernels {now} `{name}` in row-major order"));
    }
}

fn list(types: &[String]) -> String {
    if types.is_empty() { "nothing".to_owned() } else { types.join(", ") }
}
