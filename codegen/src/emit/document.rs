//! What the documentation of a generated function says, from the spec: arguments with what they may be,
//! versions, determinism.

use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};
use opsmith_core::{Backend, DTypeSet, constraint};
use proc_macro2::TokenStream;
use quote::quote;

use super::api::{self, Function};
use super::example::example;
use super::{Generation, enums};
use crate::analysis::naming::{self, Form};
use crate::expr::print::print;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Arg, Default, Derivative, Kind, Model, NumberUse, Op, ValueUse};

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

/// The first paragraph of what the spec says.
pub(super) fn summary(op: &Op) -> &str {
    op.doc.split("\n\n").next().unwrap_or_default()
}

/// How a form differs from the functional one.
fn difference(op: &Op, form: Form) -> Option<String> {
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
        lines
    };
    section("Arguments", arguments(op, other));
    section("Results", own(results));
    section("Gradients", own(|op, _| gradients(op)));
    section("Errors", own(errors));
    section("Example", example(generation, function));
    for fact in facts(op) {
        text.push_str(&format!("\n{fact}\n"));
    }
    text.push_str(&format!("\nDeclared at {}", place(op)));
    if let Some((_, other)) = other {
        text.push_str(&format!(" and {}", place(other)));
    }
    text.push('.');
    text.trim_start().to_owned()
}

/// The lines of two overloads: those of tensors, then what differs if an argument is a number.
fn with_number(mut lines: Vec<String>, numbers: Vec<String>, argument: &str) -> Vec<String> {
    let differing: Vec<String> = numbers.into_iter().filter(|line| !lines.contains(line)).collect();
    let of_number = |line: String| format!("- `{argument}` a number: {}", line.trim_start_matches("- "));
    lines.extend(differing.into_iter().map(of_number));
    lines
}

/// What a caller gives; of two overloads, the argument that differs may be either.
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

/// The entry, as a link from the folder of the documentation where the spec is at the root of the workspace.
fn place(op: &Op) -> String {
    let (file, line) = op.location.rsplit_once(':').unwrap_or((&op.location, ""));
    format!("[`{}`](../../../{file}#L{line})", op.location)
}

/// Shape and dtype of each result as the rules say, and the dtypes that are computed with.
fn results(op: &Op, model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    let rules = op.infer.iter().flat_map(|infer| {
        let shapes = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
        shapes.iter().zip(&infer.dtypes)
    });
    for (index, (shape, dtype)) in rules.enumerate() {
        let name = match op.outputs.get(index).and_then(|output| output.name.as_ref()) {
            Some(name) => format!("`{name}`: "),
            None => String::new(),
        };
        let shape = rule(shape, op, model);
        let dtype = rule(dtype, op, model);
        lines.push(format!("- {name}shape {shape}; dtype {dtype}"));
    }
    let dtypes = op.body.dtypes_of_row(Backend::Cpu);
    if dtypes != DTypeSet::EMPTY {
        lines.push(format!("- computed in {}", named(dtypes)));
    }
    lines
}

/// A rule in the spec's words, with its meaning.
fn rule(expr: &Expr, op: &Op, model: &Model) -> String {
    let text = print(expr, op, model).replace('`', "'");
    let meaning = match &expr.kind {
        ExprKind::Rule(rule, _) => Some(format!(" ({})", rule.doc())),
        _ => None,
    };
    format!("`{text}`{}", meaning.unwrap_or_default())
}

/// A set of dtypes by its name, or by its members.
fn named(dtypes: DTypeSet) -> String {
    match DTypeSet::NAMED.iter().find(|(_, set)| *set == dtypes) {
        Some(("all", _)) => "all dtypes".to_owned(),
        Some((name, _)) => format!("{name} dtypes"),
        None => dtypes.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", "),
    }
}

fn gradients(op: &Op) -> Vec<String> {
    let formula = |derivative: &Derivative| {
        let arguments: Vec<String> =
            derivative.arguments.iter().map(|index| format!("`{}`", op.args[*index].name)).collect();
        let text = derivative.text.replace('`', "'");
        let derived = if derivative.derived { ", derived from the expression" } else { "" };
        format!(
            "- {}: `{}`{derived}",
            arguments.join(", "),
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        )
    };
    op.derivatives.iter().map(formula).collect()
}

/// Refused calls: by the conditions of the spec, and by every operator.
fn errors(op: &Op, model: &Model) -> Vec<String> {
    let mut lines: Vec<String> =
        op.checks.iter().map(|check| format!("- unless `{}`", check.text.replace('`', "'"))).collect();
    for arg in op.args.iter().filter(|arg| !arg.constraints.is_empty()) {
        let words = constraint::describe(&arg.constraints, arg.ty.is_list());
        lines.push(format!("- if `{}` is not {words}", arg.name));
    }
    for arg in op.args.iter().filter(|arg| matches!(arg.number, Some(NumberUse::Held | NumberUse::Alike))) {
        lines.push(format!("- if the dtype of the elements does not hold `{}`", arg.name));
    }
    lines.extend(refused_by_rules(op, model));
    if op.args.iter().filter(|arg| arg.ty.holds_tensors()).count() > 1 {
        lines.push("- if tensors are on several devices".to_owned());
    }
    if lines.is_empty() {
        lines.push("- if there is no memory for the result".to_owned());
    }
    lines
}

/// What a rule refuses of so many tensors, as the rest of a sentence.
fn refused(rule: Rule, tensors: usize) -> Option<&'static str> {
    match rule {
        Rule::Shape(ShapeRule::Broadcast) => (tensors > 1).then_some("cannot be broadcast together"),
        Rule::Shape(ShapeRule::Reduce) => Some("lacks a dimension to reduce"),
        Rule::Shape(ShapeRule::Matmul) => Some("cannot be multiplied as matrices"),
        Rule::Shape(ShapeRule::Cat) => Some("differ in a dimension besides the one they are joined along"),
        Rule::Shape(ShapeRule::Full | ShapeRule::Follow) => None,
        Rule::DType(DTypeRule::Same) => (tensors > 1).then_some("have different dtypes"),
        Rule::DType(
            DTypeRule::Follow
            | DTypeRule::Promote
            | DTypeRule::PromoteFloat
            | DTypeRule::Real
            | DTypeRule::Complex
            | DTypeRule::Accumulate
            | DTypeRule::OrDefault,
        ) => None,
    }
}

/// Calls that a rule of a result refuses, by the names of its arguments.
fn refused_by_rules(op: &Op, model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    let rules =
        op.infer.iter().flat_map(|infer| infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]));
    for expr in rules {
        let ExprKind::Rule(rule, args) = &expr.kind else { continue };
        let tensors = args.iter().filter(|arg| matches!(arg.ty.kind, Kind::Tensor | Kind::Tensors));
        let names: Vec<String> =
            tensors.map(|arg| format!("`{}`", print(arg, op, model).replace('`', "'"))).collect();
        let Some(refused) = refused(*rule, names.len()) else { continue };
        let line = format!("- if {} {refused}", names.join(", "));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let dtypes = op.body.dtypes_of_row(Backend::Cpu);
    let all = DTypeSet::NAMED.iter().find(|(name, _)| *name == "all").map(|(_, set)| *set);
    if dtypes != DTypeSet::EMPTY && Some(dtypes) != all && op.args.iter().any(|arg| arg.ty.holds_tensors()) {
        lines.push(format!("- if the dtype to compute in is outside {}", named(dtypes)));
    }
    if op.infer.as_ref().is_some_and(|infer| infer.function.is_some()) || op.body.view.is_some() {
        lines.push("- if shapes and attributes do not go together".to_owned());
    }
    lines
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
        None | Some(NumberUse::Free | NumberUse::Computed | NumberUse::Real) => {}
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
        Default::MemoryFormat(format) => format.ident().to_owned(),
    }
}
