//! The sentences about an operator that its functions' documentation, the site and other languages' documents share.
//!
//! In: an operator. Out: lines of Markdown: formula, arguments, results, gradients and errors. Must not know
//! which document shows them.

mod errors;
mod functions;
mod result_rules;

use opsmith_core::{DTypeSet, Query, Words, constraint};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Generation;
use super::example::{WorkedExample, worked};
use super::expr::{plain_float, plain_int};
use super::names::{def_name, ident};
use crate::expr::print::print;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Derivative, Formula, GradientSource, Model, NumberUse, Op, ValueUse};

pub use errors::errors;
pub use functions::gives;
pub use result_rules::{ResultWords, rules_of_results};

/// The end of a sentence about operators that a composition calls with more than its own arguments.
pub(super) const FOR_CALLS: &str = "the arguments of its call";

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    generation.own_definitions().map(|op| row(op, generation.model)).collect()
}

/// The sentences about one operator, as static data.
fn row(op: &Op, model: &Model) -> TokenStream {
    let name = def_name(op);
    let Words { definition, arguments, results, gradients, errors, .. } = words(op, model);
    let example = example_call(op);
    quote! {
        pub static #name: Words = Words::of([#definition, #arguments, #results, #gradients, #errors], #example);
    }
}

/// The program of an operator's documentation, as static data.
fn example_call(op: &Op) -> TokenStream {
    let Some(WorkedExample { code, sample, tensors }) = worked(op, op) else { return quote!(None) };
    let sample = Literal::usize_unsuffixed(sample);
    let tensors = tensors.iter().map(|tensor| {
        let dtype = ident(tensor.dtype.ident());
        let shape = tensor.shape.iter().map(|size| plain_int(*size));
        let numbers = tensor.numbers.iter().map(|number| plain_float(*number));
        quote!(ExampleTensor { dtype: DType::#dtype, shape: &[#(#shape),*], numbers: &[#(#numbers),*] })
    });
    quote!(Some(ExampleCall { code: #code, sample: #sample, tensors: &[#(#tensors),*] }))
}

/// The sentences about an operator.
pub fn words(op: &Op, model: &Model) -> Words {
    let lines = |lines: Vec<String>| lines.join("\n").into();
    Words {
        definition: lines(definition(op, model)),
        arguments: lines(op.args.iter().map(meaning_of_argument).collect()),
        results: lines(results(op, model)),
        gradients: lines(gradients(op)),
        errors: lines(errors(op, model)),
        example: None,
    }
}

/// A text of Markdown in one line, as items of lists have it.
pub(super) fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An expression as Markdown shows it, in one line.
fn code(expr: &Expr, op: &Op, model: &Model) -> String {
    format!("`{}`", in_a_line(&print(expr, op, model).replace('`', "'")))
}

/// The formula, the expression of an element or the composition, and the number of arithmetic operations.
pub(super) fn definition(op: &Op, model: &Model) -> Vec<String> {
    let formula = op.facts.formula.as_ref().map(formula);
    let element = op.body.pointwise.as_ref().map(|expr| format!("each element: {}", code(expr, op, model)));
    let composite = op.body.composite.as_ref().filter(|_| element.is_none());
    let composite = composite.map(|expr| format!("in terms of other operators: {}", code(expr, op, model)));
    let flops = op.flops.as_ref().map(|expr| format!("arithmetic operations: {}", code(expr, op, model)));
    formula.into_iter().chain(element).chain(composite).chain(flops).collect()
}

/// A formula: of one line behind its title, of several with a line for each below it.
fn formula(formula: &Formula) -> String {
    let lines = formula.lines.iter().map(|line| format!("`{}`", line.text.replace('`', "'")));
    match &lines.collect::<Vec<_>>()[..] {
        [line] => format!("formula: {line}"),
        lines => std::iter::once("formula:".to_owned())
            .chain(lines.iter().map(|line| format!("{}{line}", Words::PART)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// The meaning of an argument and remarks on it, without its other names.
fn meaning_of_argument(arg: &Arg) -> String {
    let meaning = in_a_line(&arg.doc);
    let all = std::iter::once(meaning.trim_end_matches('.').to_owned()).chain(remarks(arg));
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Remarks on an argument: its relation to the elements, the use of its own elements; the rest of a sentence each.
fn remarks(arg: &Arg) -> impl Iterator<Item = String> {
    let number = match arg.number {
        None | Some(NumberUse::Free | NumberUse::Computed | NumberUse::Real) => None,
        Some(NumberUse::Held) => Some("the elements' dtype must hold it"),
        Some(NumberUse::Alike) => {
            Some("the elements' dtype must hold it, and it is no float or complex number unless they are")
        }
        Some(NumberUse::Lower | NumberUse::Upper) => {
            Some("may lie beyond what the elements' dtype holds, where no element is")
        }
    };
    let value = match arg.value {
        ValueUse::None => None,
        ValueUse::Optional => Some("if its elements are known, the result's shape is known better"),
        ValueUse::Masks => Some(
            "masks (`bool`, `uint8`) stand for the places where they hold, which decide the result's shape",
        ),
        ValueUse::Required => Some("its elements decide the result's shape or dtype"),
    };
    number.into_iter().chain(value).map(str::to_owned)
}

/// Remarks on an argument with its other names; Markdown, the rest of a sentence each.
pub fn notes(arg: &Arg) -> Vec<String> {
    let aliases: Vec<String> = arg.aliases.iter().map(|name| format!("`{name}`")).collect();
    let aliases = (!aliases.is_empty()).then(|| format!("by name also {}", aliases.join(", ")));
    remarks(arg).chain(aliases).collect()
}

/// The values that an argument may have, in words; empty if its type has no others.
pub fn constraints(arg: &Arg) -> String {
    if arg.constraints.is_empty() {
        return String::new();
    }
    let words = constraint::describe(&arg.constraints, arg.ty.is_list());
    let list = if arg.ty.is_list() && words.starts_with("of ") { "a list " } else { "" };
    format!("{list}{words}")
}

/// Meaning, shape and dtype of each result.
pub(super) fn results(op: &Op, model: &Model) -> Vec<String> {
    let rules = rules_of_results(op, model);
    let line = |(index, output): (usize, &crate::model::Output)| {
        let mut parts: Vec<String> = Vec::new();
        if !output.doc.is_empty() {
            parts.push(in_a_line(&output.doc).trim_end_matches('.').to_owned());
        }
        if let Some(rules) = rules.get(index) {
            parts.push(format!("shape {}", rules.shape));
            parts.push(format!("dtype {}", rules.dtype));
        }
        let name = output.name.as_ref().map_or(String::new(), |name| format!("`{name}`: "));
        format!("{name}{}", parts.join("; "))
    };
    op.visible().iter().enumerate().map(line).collect()
}

/// A rule of inference in the spec's words, with its meaning; Markdown.
pub fn rule(expr: &Expr, op: &Op, model: &Model) -> String {
    let code = code(expr, op, model);
    meaning(expr, op, model).map_or(code.clone(), |meaning| format!("{code} ({meaning})"))
}

/// The value of a rule in words; `None` if the text of the rule says as much.
fn meaning(expr: &Expr, op: &Op, model: &Model) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Rule(rule, _) => rule.doc().to_owned(),
        ExprKind::Convert(inner) => return meaning(inner, op, model),
        ExprKind::Native(path, args) => functions::gives(path, args, op, model)
            .unwrap_or_else(|| format!("as the Rust function `{path}` says")),
        ExprKind::List(sizes) if sizes.is_empty() => "no dimensions".to_owned(),
        ExprKind::List(sizes) => {
            let each: Vec<String> = sizes.iter().map(|size| size_in_words(size, op, model)).collect();
            let dimensions = if sizes.len() == 1 { "dimension" } else { "dimensions" };
            format!("{} {dimensions}: {}", sizes.len(), each.join(" by "))
        }
        ExprKind::Query(Query::Sizes, of, _) => format!("the shape of `{}`", argument_of(of, op)?),
        ExprKind::Query(Query::DType, of, _) => format!("the dtype of `{}`", argument_of(of, op)?),
        ExprKind::If(condition, yes, no) => format!(
            "{} if {}, else {}",
            meaning(yes, op, model)?,
            code(condition, op, model),
            meaning(no, op, model)?
        ),
        _ => return None,
    })
}

fn size_in_words(size: &Expr, op: &Op, model: &Model) -> String {
    match &size.kind {
        ExprKind::Convert(inner) => size_in_words(inner, op, model),
        ExprKind::Query(Query::Size, of, which) => match (argument_of(of, op), which.as_slice()) {
            (Some(name), [Expr { kind: ExprKind::Int(index), .. }]) if *index >= 0 => {
                format!("size {index} of `{name}`")
            }
            (Some(name), [Expr { kind: ExprKind::Int(-1), .. }]) => format!("the last size of `{name}`"),
            _ => code(size, op, model),
        },
        ExprKind::Query(Query::Numel, of, _) => match argument_of(of, op) {
            Some(name) => format!("the number of elements of `{name}`"),
            None => code(size, op, model),
        },
        _ => code(size, op, model),
    }
}

/// The name of the argument that an expression is.
fn argument_of<'a>(expr: &Expr, op: &'a Op) -> Option<&'a str> {
    match expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => op.args.get(index).map(|arg| arg.name.as_str()),
        _ => None,
    }
}

/// A set of dtypes by its name, or by its members; Markdown.
pub fn named(dtypes: DTypeSet) -> String {
    match DTypeSet::NAMED.iter().find(|(_, set)| *set == dtypes) {
        Some(("all", _)) => "all dtypes".to_owned(),
        Some((name, _)) => format!("{name} dtypes"),
        None => dtypes.iter().map(|dtype| format!("`{dtype}`")).collect::<Vec<_>>().join(", "),
    }
}

/// The gradient formulas, or the source of gradients.
pub(super) fn gradients(op: &Op) -> Vec<String> {
    let formula = |derivative: &Derivative| {
        let arguments: Vec<String> =
            derivative.arguments.iter().map(|index| format!("`{}`", op.args[*index].name)).collect();
        let derived = if derivative.derived { ", derived from the expression" } else { "" };
        let text = in_a_line(&derivative.text.replace('`', "'"));
        format!("{}: `{text}`{derived}", arguments.join(", "))
    };
    if !op.derivatives.is_empty() {
        return op.derivatives.iter().map(formula).collect();
    }
    vec![source_of_gradients(op).to_owned()]
}

/// The source of gradients of an operator without formulas.
pub fn source_of_gradients(op: &Op) -> &'static str {
    match op.gradient_source() {
        GradientSource::Composition => "those of the operators that it is composed of",
        GradientSource::View => "that of the view, from its layout",
        _ if op.facts.backward_only => "none: only formulas call it",
        _ => "none: the result has no gradient",
    }
}
