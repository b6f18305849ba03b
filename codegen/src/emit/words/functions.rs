//! Rust functions in words: the sentences of their documentation, with the arguments of a call in the places of their parameters.
//!
//! In: a function's path and the arguments of a call. Out: parts of sentences; Markdown.

use super::{argument_of, code};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{DocumentedFunction, Model, Op};

/// The longest argument that stands in a sentence.
const LONGEST: usize = 40;

/// The result of a function that has all arguments of an operator.
pub(super) fn given_by_own(path: &str, op: &Op, model: &Model) -> Option<String> {
    Some(format!("as `{path}` gives it: {}", gives(path, &own_arguments(op), op, model)?))
}

/// The refusals of a function that has all arguments of an operator.
pub(super) fn refused_by_own(path: &str, op: &Op, model: &Model) -> Option<String> {
    refuses(path, &own_arguments(op), op, model)
}

fn own_arguments(op: &Op) -> Vec<Expr> {
    let variable = |(index, arg): (usize, &crate::model::Arg)| Expr {
        kind: ExprKind::Variable(Variable::Arg(index)),
        ty: arg.ty.clone(),
        range: 0..0,
    };
    op.args.iter().enumerate().map(variable).collect()
}

/// The result of a call. The call stands there unless the sentence, or the operator's only tensor, says all of it.
pub(super) fn given_by(path: &str, args: &[Expr], op: &Op, model: &Model) -> Option<String> {
    let gives = gives(path, args, op, model)?;
    let function = documented(path, op, model)?;
    if is_whole(function, function.gives.as_deref(), args, op) {
        return Some(format!("as `{path}` gives it: {gives}"));
    }
    Some(format!("as `{}` gives it: {gives}", call(path, args, op, model)))
}

/// The refusals of a call that a composition makes, with the call as in [`given_by`]; empty if there are none.
pub(super) fn refused_by(path: &str, args: &[Expr], op: &Op, model: &Model) -> Option<String> {
    let refused = refuses(path, args, op, model)?;
    let function = documented(path, op, model)?;
    let text = function.refuses.as_deref();
    if refused.is_empty() || names_any(function, text) && is_whole(function, text, args, op) {
        return Some(refused);
    }
    let call = call(path, args, op, model);
    (call.len() <= LONGEST_CALL).then(|| format!("{refused} (`{call}`)"))
}

/// The longest call that stands in a sentence.
const LONGEST_CALL: usize = 80;

fn names(text: Option<&str>, name: &str) -> bool {
    text.is_some_and(|text| text.contains(&format!("`{name}`")))
}

fn names_any(function: &DocumentedFunction, text: Option<&str>) -> bool {
    function.parameters.iter().any(|name| names(text, name))
}

/// Whether a sentence about some parameters leaves no doubt which tensors a function is called with.
fn is_whole(function: &DocumentedFunction, text: Option<&str>, args: &[Expr], op: &Op) -> bool {
    let has_one_tensor = op.args.iter().filter(|arg| arg.ty.holds_tensors()).count() == 1;
    let is_plain = |arg: &Expr| {
        let (mut calls, mut tensors) = (false, false);
        arg.walk(&mut |part| {
            calls |= matches!(part.kind, ExprKind::Op(..));
            tensors |= part.ty.holds_tensors();
        });
        !tensors || has_one_tensor && !calls
    };
    let mut all = args.iter().zip(&function.parameters);
    names_any(function, text) && all.all(|(arg, name)| names(text, name) || is_plain(arg))
}

fn call(path: &str, args: &[Expr], op: &Op, model: &Model) -> String {
    let args = args.iter().map(|arg| code(arg, op, model).trim_matches('`').to_owned());
    format!("{path}({})", args.collect::<Vec<_>>().join(", "))
}

/// The documentation of a function that an operator of the spec itself names.
fn documented<'a>(path: &str, op: &Op, model: &'a Model) -> Option<&'a DocumentedFunction> {
    model.documented.get(path).filter(|_| !op.is_external())
}

/// The result of a call of a function; `None` if no documentation says it.
pub fn gives(path: &str, args: &[Expr], op: &Op, model: &Model) -> Option<String> {
    let function = documented(path, op, model)?;
    let text = function.gives.as_ref().filter(|text| !text.is_empty())?;
    with_arguments(text, &function.parameters, args, op, model)
}

/// The refusals of a call, the rest of a sentence; empty if there are none, `None` if no documentation has them.
pub(super) fn refuses(path: &str, args: &[Expr], op: &Op, model: &Model) -> Option<String> {
    let function = documented(path, op, model)?;
    let text = with_arguments(function.refuses.as_ref()?, &function.parameters, args, op, model)?;
    (text.is_empty() || text.starts_with("if ")).then_some(text)
}

/// A text about parameters with arguments in their places; `None` if one is long, or in the middle of code.
fn with_arguments(
    text: &str,
    parameters: &[String],
    args: &[Expr],
    op: &Op,
    model: &Model,
) -> Option<String> {
    let mut out = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 0 {
            out.push_str(part);
            continue;
        }
        let Some(at) = parameters.iter().position(|name| name == part) else {
            let has = |name: &String| {
                part.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
            };
            let is_changed = |(name, arg): (&String, &Expr)| has(name) && argument_of(arg, op) != Some(name);
            if parameters.iter().zip(args).any(is_changed) {
                return None;
            }
            out.push_str(&format!("`{part}`"));
            continue;
        };
        let argument = code(args.get(at)?, op, model);
        if argument.len() > LONGEST {
            return None;
        }
        out.push_str(&argument);
    }
    Some(out)
}
