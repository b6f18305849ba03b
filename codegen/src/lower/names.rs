//! Names that must differ: full names, Rust functions, structs of options, parameters.
//!
//! Names that the emitters derive are derived here too, and equal ones are reported, because the code would not
//! compile, or one item would hide the other.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::{Context, Head};
use crate::analysis::naming::{self, Form};
use crate::diagnostics::{Span, catalogue};
use crate::model::Op;
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;

pub(super) fn check(context: &mut Context<'_>, heads: &[Head<'_>]) {
    full_names(context, heads);
    // Each library has modules of its own.
    let libraries: BTreeSet<Option<usize>> = heads.iter().map(|head| head.op.parent).collect();
    for library in libraries {
        let own: Vec<&Head<'_>> = heads.iter().filter(|head| head.op.parent == library).collect();
        definitions(context, &own);
        functions(context, &own);
        enums(context, &own);
        own.iter().for_each(|head| parameters(context, head));
    }
}

/// A name in a call must denote one form.
fn full_names(context: &mut Context<'_>, heads: &[Head<'_>]) {
    let mut operators: HashMap<&str, &Op> = HashMap::new();
    for Head { op, .. } in heads {
        match operators.get(op.name.as_str()) {
            Some(first) if first.parent == op.parent => {
                context.push(catalogue::operator_twice(op.span, &op.name, first.span));
            }
            Some(first) => {
                let own = op.parent.is_none();
                context.push(catalogue::declared_in_two_libraries(op.span, &op.name, first.span, own));
            }
            None => _ = operators.insert(&op.name, op),
        }
    }
    let mut seen: HashMap<&str, (Span, &'static str)> =
        operators.iter().map(|(name, op)| (*name, (op.span, "the operator"))).collect();
    // Of two declarations of one operator, only the name is reported.
    let first =
        |head: &&Head<'_>| operators.get(head.op.name.as_str()).is_some_and(|op| op.span == head.op.span);
    for head in heads.iter().filter(first) {
        let forms = [(&head.op.forms.inplace, "inplace"), (&head.op.forms.out, "out")];
        for (name, key) in forms {
            let Some(name) = name else { continue };
            let what = if key == "out" { "the out form" } else { "the in-place form" };
            let place = form_place(head.raw, key, head.op.span);
            if let Some((first, first_what)) = seen.get(name.as_str()) {
                context.push(catalogue::form_twice(place, name, what, *first, first_what));
            }
            seen.entry(name).or_insert((place, what));
        }
    }
}

/// The span of a form's name.
fn form_place(raw: &RawOp, key: &str, otherwise: Span) -> Span {
    let named = raw.text_map(KeyName::Names).into_iter().find(|(known, _)| known.text == key);
    let variants = raw.texts(KeyName::Variants).into_iter().find(|text| text.as_str().contains(key));
    named.map(|(_, text)| text).or(variants).map_or(otherwise, |text| text.span())
}

/// Definitions, and functions that take every argument.
fn definitions(context: &mut Context<'_>, heads: &[&Head<'_>]) {
    let mut seen: [HashMap<String, &Op>; 2] = Default::default();
    for Head { op, .. } in heads {
        for (name, seen) in naming::identifiers(&op.name).into_iter().zip(&mut seen) {
            match seen.get(&name) {
                // Equal full names are reported separately.
                Some(first) if first.name == op.name => {}
                Some(first) => {
                    context.push(catalogue::rust_identifier_twice(op.span, &name, first.span, &first.name));
                    break;
                }
                None => _ = seen.insert(name, op),
            }
        }
    }
}

/// The functions that users call, and the structs of their options.
fn functions(context: &mut Context<'_>, heads: &[&Head<'_>]) {
    let mut seen: HashMap<String, (&Op, Span, String)> = HashMap::new();
    let mut options: HashMap<String, (&Op, Span)> = HashMap::new();
    for head in heads {
        let op = &head.op;
        let place = head.raw.text(KeyName::RustName).map_or(op.span, |text| text.span());
        let mut own = BTreeSet::new();
        let forms = naming::forms(op).into_iter();
        for (form, with_options) in forms.filter(|(form, _)| !naming::stands_elsewhere(op, *form)) {
            let name = naming::identifier(&naming::function(op, form, with_options));
            let what = describe(op, form, with_options);
            if let Some((_, used_for)) = naming::RESERVED_FUNCTIONS.iter().find(|(known, _)| *known == name) {
                context.push(catalogue::rust_name_reserved(place, &name, used_for));
                break;
            }
            let twice_here = !own.insert(name.clone());
            match seen.get(&name) {
                // Two operators of one name are reported separately.
                Some((first, ..)) if first.name == op.name && !twice_here => {}
                Some((_, first, first_what)) => {
                    context.push(catalogue::rust_function_twice(place, &name, &what, *first, first_what));
                    // The other forms clash for the same reason.
                    break;
                }
                None => _ = seen.insert(name, (op, place, what)),
            }
        }
        if naming::has_options(op) {
            let name = naming::options(op);
            match options.get(&name) {
                Some((first, _)) if first.rust_name == op.rust_name => {}
                Some((first, span)) => {
                    context.push(catalogue::options_twice(place, &name, *span, &first.name))
                }
                None => _ = options.insert(name, (op, place)),
            }
        }
    }
}

fn describe(op: &Op, form: Form, with_options: bool) -> String {
    let form = match form {
        Form::Functional => "",
        Form::Inplace => "the in-place form of ",
        Form::Out => "the out form of ",
    };
    let options = if with_options { " with options" } else { "" };
    format!("{form}`{}`{options}", op.name)
}

/// A name and its integer.
type Named = (Cow<'static, str>, i64);

/// The Rust enums of integers with named values; arguments of one name share an enum.
fn enums(context: &mut Context<'_>, heads: &[&Head<'_>]) {
    let mut seen: HashMap<String, (&[Named], Span)> = HashMap::new();
    for head in heads {
        for arg in &head.op.args {
            let Some(names) = naming::named_values(arg) else { continue };
            let rust = naming::camel(&arg.name);
            let place = super::body::key_in(head.raw, KeyName::Attributes, &arg.name).unwrap_or(head.op.span);
            match seen.get(&rust) {
                Some((known, _)) if *known == names => {}
                Some((_, first)) => context.push(catalogue::enum_differs(place, &rust, *first)),
                None if naming::is_reserved_type(&rust) => {
                    context.push(catalogue::enum_reserved(place, &rust));
                }
                None => _ = seen.insert(rust, (names, place)),
            }
        }
    }
}

/// The parameters of one operator's functions.
fn parameters(context: &mut Context<'_>, head: &Head<'_>) {
    let op = &head.op;
    let place =
        |name: &str, context: &Context<'_>| argument_place(context, head.raw, name).unwrap_or(op.span);
    let mut seen: HashMap<String, &str> = HashMap::new();
    if op.forms.out.is_some() {
        let names = naming::out_parameters(op);
        if let Some(name) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            context.push(catalogue::parameter_twice(op.span, name.1, None, "another output of the out form"));
        }
    }
    for arg in &op.args {
        let parameter = naming::parameter(&arg.name);
        if let Some(first) = seen.get(&parameter) {
            let (span, first) = (place(&arg.name, context), place(first, context));
            context.push(catalogue::parameter_twice(span, &parameter, Some(first), ""));
            continue;
        }
        if arg.default.is_some() && naming::RESERVED_OPTIONS.contains(&parameter.as_str()) {
            let span = place(&arg.name, context);
            context.push(catalogue::option_reserved(span, &parameter));
        }
        if arg.default.is_none() {
            if naming::has_options(op) && parameter == naming::OPTIONS_PARAMETER {
                let span = place(&arg.name, context);
                context.push(catalogue::parameter_twice(span, &parameter, None, "the struct of options"));
            }
            let written = op.forms.out.is_some() && naming::out_parameters(op).contains(&parameter);
            if written {
                let span = place(&arg.name, context);
                context.push(catalogue::parameter_twice(span, &parameter, None, "an output of the out form"));
            }
        }
        seen.insert(parameter, &arg.name);
    }
}

/// The span of an argument's name in the signature.
pub(super) fn argument_place(context: &Context<'_>, raw: &RawOp, name: &str) -> Option<Span> {
    let schema = raw.parse_schema(context.sources, &mut crate::diagnostics::Diagnostics::new())?;
    let arg = schema.arg(name)?;
    Some(raw.func.span_within(arg.name_range.clone(), context.sources))
}
