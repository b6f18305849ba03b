//! Gradients of pointwise operators that declare none: the expression is differentiated.
//!
//! In: the text of a pointwise expression. Out: formulas, checked like written ones. What cannot be
//! derived becomes an error when a gradient reaches it, never a silent zero.

use super::Context;
use super::derivatives::Derivatives;
use super::infer::{Expressions, output_element};
use super::symbolic::{Known, Missing, Sym, Writer};
use crate::diagnostics::{Diagnostics, catalogue};
use crate::expr::check::{Mode, Scope, check};
use crate::expr::{Expr, ExprKind, path};
use crate::model::{Backends, Body, Derivative, Element, Function, Infer, Kind, Op, Role, Ty};
use crate::spec::document::Text;

pub(super) fn lower(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    infer: Option<&Infer>,
    body: &Body,
) -> Derivatives {
    let op = expressions.op;
    let mut found = Derivatives::default();
    let differentiable = body.dtypes.iter().any(|set| set.iter().any(|dtype| dtype.is_differentiable()))
        && infer
            .is_some_and(|infer| output_element(&infer.dtypes[0], &infer.compute) == Some(Element::Dispatch));
    let inputs: Vec<usize> = (0..op.args.len())
        .filter(|&index| op.args[index].ty.is_tensor() && op.args[index].element == Element::Dispatch)
        .collect();
    let Some(tree) = syn::parse_str(text.as_str()).ok().filter(|_| differentiable) else { return found };
    let names = Names { op, functions: expressions.table.functions() };
    let writer = writer(expressions, &names, body);
    for index in inputs {
        let formula = match formula(&tree, &op.args[index].name, &names, &writer) {
            Ok(None) => {
                found.non_differentiable.push(index);
                continue;
            }
            Ok(Some(formula)) => checked(context, expressions, text, &formula).map(|expr| (expr, formula)),
            Err(reason) => Some((refusal(&reason), format!("not_implemented({reason:?})"))),
        };
        if let Some((formula, text)) = formula {
            found.formulas.push(Derivative {
                arguments: vec![index],
                formula,
                text,
                backends: Backends::ALL,
                derived: true,
            });
        }
    }
    found
}

/// For an operator of which nothing is known but its kernel: whoever asks for a gradient hears that there
/// is none, instead of going without.
pub(super) fn refused(op: &Op) -> Derivatives {
    let mut found = Derivatives::default();
    if op.outputs.iter().all(|output| !output.differentiable) {
        return found;
    }
    let reason = format!("`{}` declares none; its kernel is custom code", op.name);
    for (index, _) in op.args.iter().enumerate().filter(|(_, arg)| arg.ty.holds_tensors()) {
        let text = format!("not_implemented({reason:?})");
        found.formulas.push(Derivative {
            arguments: vec![index],
            formula: refusal(&reason),
            text,
            backends: Backends::ALL,
            derived: true,
        });
    }
    found
}

/// The gradient by one argument: `None` if the derivative is zero.
fn formula(
    tree: &syn::Expr,
    by: &str,
    names: &Names<'_>,
    writer: &Writer<'_>,
) -> Result<Option<String>, String> {
    let syntax = || "its expression has syntax that cannot be differentiated; write `derivatives`".to_owned();
    let body = Sym::read(tree).ok_or_else(syntax)?;
    let derivative = body.derive(by, names).map_err(|missing| match missing {
        Missing::Derivative(function) => {
            format!("the scalar function `{function}` declares no derivative by what depends on `{by}`")
        }
        Missing::Syntax => syntax(),
    })?;
    // The result is already there, unless its name is an argument's.
    let derivative = match names.op.arg_index("result") {
        None => derivative.replace(&body, &Sym::Name("result".to_owned())),
        Some(_) => derivative,
    };
    if derivative == Sym::Number(0.0) {
        return Ok(None);
    }
    writer.gradient(&derivative).map(Some).ok_or_else(|| {
        "its derivative chooses between elements, and no operator has `role: select`".to_owned()
    })
}

fn writer<'a>(expressions: &Expressions<'_>, names: &'a Names<'_>, body: &Body) -> Writer<'a> {
    // Overloads are found by base name, so the role may stand at any of them.
    let with_role = |role: Role| {
        expressions.table.ops().iter().find(|op| op.role == Some(role)).map(|op| callable(&op.base))
    };
    let complex = body.dtypes.iter().any(|set| set.iter().any(|dtype| dtype.is_complex()));
    Writer {
        known: names,
        grad: if expressions.op.arg_index("grad").is_some() { "grads[0].unwrap()" } else { "grad" },
        select: with_role(Role::Select),
        conjugate: with_role(Role::Conjugate).filter(|_| complex),
    }
}

/// A base name as formulas call it: one that is a Rust keyword has an underscore.
fn callable(base: &str) -> String {
    if path::is_identifier(base) { base.to_owned() } else { format!("{base}_") }
}

/// The formula as a typed expression; a mistake in it is reported as one of the pointwise expression.
fn checked(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    formula: &str,
) -> Option<Expr> {
    let scope = Scope {
        ops: expressions.table,
        args: &expressions.op.args,
        outputs: &expressions.op.outputs,
        mode: Mode::Derivative,
        locals: &[],
    };
    let mut problems = Diagnostics::new();
    let want = Ty::new(Kind::Tensor).or_none();
    let expr = check(formula, &scope, &want, &|_| text.span(), &mut problems);
    if let Some(problem) = problems.sorted().next() {
        let name = &expressions.op.name;
        context.push(catalogue::derived_unusable(text.span(), name, formula, problem));
    }
    expr
}

fn refusal(reason: &str) -> Expr {
    Expr { kind: ExprKind::NotImplemented(reason.to_owned()), ty: Ty::new(Kind::Tensor), range: 0..0 }
}

struct Names<'a> {
    op: &'a Op,
    functions: &'a [Function],
}

impl Known for Names<'_> {
    fn derivative(&self, function: &str, parameter: usize) -> Option<(Sym, Vec<String>)> {
        let function = self.functions.iter().find(|known| known.name == function)?;
        let text = function.derivatives.get(parameter)?.as_ref()?;
        Some((Sym::read(&syn::parse_str(text).ok()?)?, function.params.clone()))
    }

    fn is_tensor(&self, name: &str) -> bool {
        name == "result" || self.op.args.iter().any(|arg| arg.name == name && arg.ty.holds_tensors())
    }
}
