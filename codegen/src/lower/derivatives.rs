//! `derivatives`: which formula gives the gradients of which arguments.

use super::Context;
use super::infer::Expressions;
use crate::diagnostics::{Diagnostic, Span, nearest};
use crate::expr::check::Mode;
use crate::expr::{Expr, ExprKind, Variable};
use crate::model::{Derivative, Kind, Op, Ty};
use crate::spec::document::{RawOp, Text};
use crate::spec::yaml::Key;

#[derive(Default)]
pub(super) struct Derivatives {
    pub formulas: Vec<Derivative>,
    pub non_differentiable: Vec<usize>,
}

pub(super) fn lower(context: &mut Context<'_>, expressions: &Expressions<'_>, raw: &RawOp) -> Derivatives {
    let mut found = Derivatives::default();
    let Some(node) = raw.get("derivatives") else { return found };
    let Some(entries) = node.as_map() else {
        context.diagnostics.push(
            Diagnostic::error(
                "E0440",
                "`derivatives` maps arguments to formulas",
                node.span,
                "not a mapping",
            )
            .with_help("write `derivatives: {self: grad}`"),
        );
        return found;
    };
    for name in ["grad", "grads", "result"] {
        if expressions.op.arg_index(name).is_some() {
            context.diagnostics.push(
                Diagnostic::error(
                    "E0446",
                    format!("an argument is called `{name}`, which means something else in formulas"),
                    raw.func.span(),
                    "rename the argument",
                )
                .with_help(format!("call it `{name}_output`, for instance")),
            );
        }
    }
    let mut seen: Vec<(usize, Span)> = Vec::new();
    for (key, value) in entries {
        let Some(arguments) = arguments(context, expressions.op, key, &mut seen) else { continue };
        let text = Text { node: value.clone() };
        if value.as_text().is_none() {
            context.diagnostics.push(Diagnostic::error(
                "E0440",
                "a formula is one expression",
                value.span,
                "not text",
            ));
            continue;
        }
        if text.as_str().trim() == "non_differentiable" {
            found.non_differentiable.extend(arguments);
            continue;
        }
        if let Some(formula) = formula(context, expressions, &text, &arguments) {
            found.formulas.push(Derivative { arguments, formula, text: text.as_str().to_owned() });
        }
    }
    found
}

/// The arguments a key names: `self`, or `self, other`.
fn arguments(
    context: &mut Context<'_>,
    op: &Op,
    key: &Key,
    seen: &mut Vec<(usize, Span)>,
) -> Option<Vec<usize>> {
    let mut indices = Vec::new();
    for name in key.text.split(',').map(str::trim) {
        let Some(index) = op.arg_index(name) else {
            let names: Vec<&str> =
                op.args.iter().filter(|arg| arg.ty.holds_tensors()).map(|arg| arg.name.as_str()).collect();
            let help = match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the tensor arguments are: {}", names.join(", ")),
            };
            context.diagnostics.push(
                Diagnostic::error(
                    "E0441",
                    format!("`{}` has no argument `{name}`", op.name),
                    key.span,
                    "no such argument",
                )
                .with_help(help),
            );
            return None;
        };
        if !op.args[index].ty.holds_tensors() {
            context.diagnostics.push(
                Diagnostic::error(
                    "E0442",
                    format!("`{name}` is a `{}`, which has no gradient", op.args[index].ty),
                    key.span,
                    "not a tensor",
                )
                .with_help("only tensors have gradients; remove this line"),
            );
            return None;
        }
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == index) {
            context.diagnostics.push(
                Diagnostic::error("E0443", format!("`{name}` has two formulas"), key.span, "again here")
                    .with_secondary(*first, "first here"),
            );
            return None;
        }
        seen.push((index, key.span));
        indices.push(index);
    }
    Some(indices)
}

fn formula(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    arguments: &[usize],
) -> Option<Expr> {
    let gradient_type = |index: &usize| match &expressions.op.args[*index].ty.kind {
        Kind::Tensor => Ty::new(Kind::Tensor).or_none(),
        _ => Ty::new(Kind::OptionalTensors),
    };
    let want = match arguments {
        [only] => gradient_type(only),
        several => Ty::new(Kind::Tuple(several.iter().map(gradient_type).collect())),
    };
    let formula = expressions.check(context, text, Mode::Derivative, &want)?;
    let (mut uses_grad, mut refuses) = (false, false);
    formula.walk(&mut |part| {
        uses_grad |= matches!(part.kind, ExprKind::Variable(Variable::Grad(_) | Variable::Grads));
        refuses |= matches!(part.kind, ExprKind::NotImplemented(_) | ExprKind::None);
    });
    if !uses_grad && !refuses {
        context.diagnostics.push(
            Diagnostic::error(
                "E0444",
                "the formula never uses `grad`",
                text.span(),
                "a gradient is linear in `grad`",
            )
            .with_help("multiply by `grad`, or write `non_differentiable` if nothing flows"),
        );
        return None;
    }
    Some(formula)
}
