//! Rules that a signature must follow beyond its grammar.

use std::collections::HashMap;
use std::ops::Range;

use super::{Argument, Return, Schema, SchemaKind};
use crate::diagnostics::{Diagnostic, Span, catalogue};

/// Rules about names and defaults, for each argument separately.
pub(super) fn arguments(
    schema: &Schema,
    locate: &dyn Fn(Range<usize>) -> Span,
    errors: &mut Vec<Diagnostic>,
) {
    let name = schema.name.spelling();
    if name.ends_with("_out") {
        errors.push(catalogue::op_name_reserved_out(locate(schema.name_range.clone()), &name));
    }
    let mut seen: HashMap<&str, &Argument> = HashMap::new();
    let mut first_default: Option<&Argument> = None;
    for arg in &schema.args {
        let place = locate(arg.name_range.clone());
        if let Some(first) = seen.get(arg.name.as_str()) {
            let first = locate(first.name_range.clone());
            errors.push(catalogue::argument_twice(place, first, &arg.name));
        }
        seen.entry(&arg.name).or_insert(arg);
        if let Some(default) = arg.default.as_ref().filter(|_| arg.is_out()) {
            errors.push(catalogue::out_with_default(locate(default.range.clone()), &arg.name));
        }
        if arg.kwarg_only {
            continue;
        }
        match (&arg.default, first_default) {
            (Some(_), None) => first_default = Some(arg),
            (None, Some(first)) => {
                let first = (locate(first.range.clone()), first.name.as_str());
                errors.push(catalogue::required_after_default(place, first, &arg.name));
            }
            _ => {}
        }
    }
    let mut names: HashMap<&str, &Return> = HashMap::new();
    for ret in &schema.returns {
        let Some(name) = &ret.name else { continue };
        if let Some(first) = names.get(name.as_str()) {
            let first = locate(first.range.clone());
            errors.push(catalogue::return_twice(locate(ret.range.clone()), first, name));
        }
        names.entry(name).or_insert(ret);
    }
}

/// Rules about written and returned arguments.
pub(super) fn aliasing(schema: &Schema, locate: &dyn Fn(Range<usize>) -> Span, errors: &mut Vec<Diagnostic>) {
    let place = |range: &Range<usize>| locate(range.clone());
    if schema.name.inplace && schema.self_arg().is_none() {
        let name = schema.name.spelling();
        errors.push(catalogue::inplace_without_self(place(&schema.name_range), &name));
        return;
    }
    for ret in &schema.returns {
        returned_alias(schema, ret, &place, errors);
    }
    let mut out: Option<&Argument> = None;
    for arg in &schema.args {
        match out {
            Some(out) if !arg.is_out() => {
                errors.push(catalogue::argument_after_out(place(&arg.range), place(&out.range), &arg.name));
            }
            _ if arg.is_out() => out = Some(arg),
            _ => {}
        }
    }
    if errors.is_empty() {
        match schema.kind() {
            SchemaKind::Inplace => inplace(schema, &place, errors),
            SchemaKind::Out => out_returns(schema, &place, errors),
            SchemaKind::Functional | SchemaKind::Mutable => {}
        }
    }
}

/// A returned value may only share memory with an argument that has the same annotation.
fn returned_alias(
    schema: &Schema,
    ret: &Return,
    place: &dyn Fn(&Range<usize>) -> Span,
    errors: &mut Vec<Diagnostic>,
) {
    let Some(alias) = &ret.alias else { return };
    for letter in &alias.sets {
        let source =
            schema.args.iter().find(|arg| arg.alias.as_ref().is_some_and(|a| a.sets.contains(letter)));
        let Some(source) = source else {
            errors.push(catalogue::return_alias_unbound(place(&ret.range), *letter));
            continue;
        };
        let arg_place = place(&source.range);
        if alias.mutable && !source.is_mutable() {
            errors.push(catalogue::return_written_argument_not(place(&ret.range), arg_place, *letter));
        } else if !alias.mutable && source.is_mutable() {
            errors.push(catalogue::return_not_written_argument_is(place(&ret.range), arg_place, *letter));
        } else if alias.mutable && !source.is_out() && source.name != "self" {
            errors.push(catalogue::written_positional_returned(place(&ret.range), arg_place, &source.name));
        }
    }
}

/// `name_` writes `self` and returns it.
fn inplace(schema: &Schema, place: &dyn Fn(&Range<usize>) -> Span, errors: &mut Vec<Diagnostic>) {
    let name = schema.name.spelling();
    let Some(this) = schema.self_arg() else { return };
    if !this.is_mutable() {
        errors.push(catalogue::inplace_self_not_written(place(&this.range), &name));
        return;
    }
    // The in-place form of a list of tensors returns nothing.
    let returned = match schema.returns.as_slice() {
        [only] => only.alias == this.alias,
        [] => this.ty.is_list_like(),
        _ => false,
    };
    if !returned {
        let wanted = written_back(&[this]);
        errors.push(catalogue::inplace_returns_other(
            place(&schema.returns_range),
            place(&this.range),
            &name,
            &wanted,
        ));
    }
}

/// Out arguments are returned in order, unless they are lists or every result is an out argument.
fn out_returns(schema: &Schema, place: &dyn Fn(&Range<usize>) -> Span, errors: &mut Vec<Diagnostic>) {
    let outs: Vec<&Argument> = schema.out_args().collect();
    if schema.returns.is_empty() && outs.iter().all(|out| out.ty.is_list_like()) {
        return;
    }
    let returned: Vec<&Argument> =
        outs.into_iter().filter(|out| !out.name.starts_with("_scratch_")).collect();
    let wanted = written_back(&returned);
    if returned.len() != schema.returns.len() {
        let outs = returned.iter().map(|out| place(&out.range)).collect::<Vec<_>>();
        errors.push(catalogue::out_count(place(&schema.returns_range), &outs, schema.returns.len(), &wanted));
        return;
    }
    for (out, ret) in returned.into_iter().zip(&schema.returns) {
        if out.alias != ret.alias {
            errors.push(catalogue::out_order(place(&ret.range), place(&out.range), &out.name, &wanted));
        }
    }
}

/// The return part of a signature that returns these arguments.
fn written_back(args: &[&Argument]) -> String {
    let value = |arg: &&Argument| {
        Return { name: None, ty: arg.ty.clone(), alias: arg.alias.clone(), range: 0..0 }.to_string()
    };
    match args {
        [only] => value(only),
        _ => format!("({})", args.iter().map(value).collect::<Vec<_>>().join(", ")),
    }
}
