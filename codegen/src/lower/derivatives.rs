//! `derivatives`: formulas for the gradients of arguments.

use opsmith_core::Backend;

use super::infer::Expressions;
use super::{Context, names};
use crate::diagnostics::{Span, catalogue};
use crate::expr::check::Mode;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Backends, Derivative, Kind, Op, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};
use crate::spec::yaml::{Key, Node};

#[derive(Clone, Default)]
pub(super) struct Derivatives {
    pub formulas: Vec<Derivative>,
    pub non_differentiable: Vec<usize>,
}

/// Names with a meaning in formulas, which an argument would hide.
const GRADIENT_NAMES: [&str; 4] = ["grad", "grads", "result", "grad_input_mask"];

pub(super) fn lower(context: &mut Context<'_>, expressions: &Expressions<'_>, raw: &RawOp) -> Derivatives {
    let mut found = Derivatives::default();
    let Some(node) = raw.get(KeyName::Derivatives) else { return found };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::derivatives_not_mapping(node.span));
        return found;
    };
    let op = expressions.op;
    let hidden: Vec<&str> = GRADIENT_NAMES.into_iter().filter(|name| op.arg_index(name).is_some()).collect();
    for name in &hidden {
        let place = names::argument_place(context, raw, name).unwrap_or(op.span);
        context.push(catalogue::argument_hides_gradient(place, name));
    }
    if !hidden.is_empty() {
        return found;
    }
    if let Some(why) = nothing_differentiable(op)
        && let Some(entry) = raw.entry(KeyName::Derivatives)
    {
        context.push(catalogue::nothing_differentiable(entry.key.span, &op.name, why));
        return found;
    }
    let mut seen: Vec<(usize, Span)> = Vec::new();
    for (key, value) in entries {
        let Some(arguments) = arguments(context, op, key, &mut seen) else { continue };
        if let Some(variants) = value.as_map() {
            for (text, backends) in by_backend(context, key, variants) {
                found.add(context, expressions, &text, arguments.clone(), backends);
            }
            continue;
        }
        if value.as_text().is_none() {
            let place = if value.is_null() { key.span } else { value.span };
            context.push(catalogue::formula_not_text(place));
            continue;
        }
        let text = Text { node: value.clone() };
        if text.as_str().trim() == "non_differentiable" {
            found.non_differentiable.extend(arguments);
            continue;
        }
        found.add(context, expressions, &text, arguments, Backends::ALL);
    }
    found
}

impl Derivatives {
    /// Whether an argument's gradient is declared.
    pub fn mentions(&self, argument: usize) -> bool {
        self.non_differentiable.contains(&argument)
            || self.formulas.iter().any(|formula| formula.arguments.contains(&argument))
    }

    fn add(
        &mut self,
        context: &mut Context<'_>,
        expressions: &Expressions<'_>,
        text: &Text,
        arguments: Vec<usize>,
        backends: Backends,
    ) {
        if let Some(formula) = formula(context, expressions, text, &arguments) {
            let text = text.as_str().to_owned();
            self.formulas.push(Derivative { arguments, formula, text, backends, derived: false });
        }
    }
}

/// `self: {default: …, CUDA: …}`: a formula for some backends, and one for the others.
fn by_backend(context: &mut Context<'_>, argument: &Key, variants: &[(Key, Node)]) -> Vec<(Text, Backends)> {
    const DEFAULT: &str = "default";
    let known: Vec<&str> =
        Backend::ALL.iter().map(|backend| backend.key()).chain(std::iter::once(DEFAULT)).collect();
    let mut rest = Backends::ALL;
    let mut found = Vec::new();
    let mut default = None;
    for (key, value) in variants {
        let text = Text { node: value.clone() };
        if value.as_text().is_none() || text.as_str().trim() == "non_differentiable" {
            context.push(catalogue::formula_of_backend(if value.is_null() { key.span } else { value.span }));
            continue;
        }
        match Backend::from_key(&key.text) {
            Some(backend) => {
                rest = rest.without(Backends::only(backend));
                found.push((text, Backends::only(backend)));
            }
            None if key.text == DEFAULT => default = Some(text),
            None => context.push(catalogue::backend_unknown(key.span, &key.text, &known)),
        }
    }
    let named = variants.iter().any(|(key, _)| key.text == DEFAULT);
    match default {
        Some(text) => found.push((text, rest)),
        None if named => {}
        None => context.push(catalogue::formula_without_default(argument.span, &argument.text)),
    }
    found.retain(|(_, backends)| backends.0 != 0);
    found
}

/// The reason why no gradient can reach the operator, if there is one.
fn nothing_differentiable(op: &Op) -> Option<&'static str> {
    if op.outputs.iter().all(|output| !output.ty.holds_tensors()) {
        return Some("it returns no tensor");
    }
    op.outputs.iter().all(|output| !output.differentiable).then_some("`output_differentiability` says so")
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
            let tensors: Vec<&str> =
                op.args.iter().filter(|arg| arg.ty.holds_tensors()).map(|arg| arg.name.as_str()).collect();
            context.push(catalogue::differentiated_unknown(key.span, &op.name, name, &tensors));
            return None;
        };
        let ty = &op.args[index].ty;
        if !ty.holds_tensors() {
            context.push(catalogue::differentiated_not_tensor(key.span, name, &ty.to_string()));
            return None;
        }
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == index) {
            context.push(catalogue::differentiated_twice(key.span, name, *first));
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
    let op = expressions.op;
    let gradient_type = |index: &usize| match &op.args[*index].ty.kind {
        Kind::Tensor => Ty::new(Kind::Tensor).or_none(),
        _ => Ty::new(Kind::OptionalTensors),
    };
    let want = match arguments {
        [only] => gradient_type(only),
        several => Ty::new(Kind::Tuple(several.iter().map(gradient_type).collect())),
    };
    let formula = expressions.check(context, text, Mode::Derivative, &want)?;
    let (mut uses_grad, mut refuses) = (false, false);
    let mut flat = None;
    formula.walk(&mut |part| match part.kind {
        ExprKind::Variable(Variable::Grad(output)) => {
            uses_grad = true;
            if !op.outputs[output].differentiable {
                flat.get_or_insert((output, part.range.clone()));
            }
        }
        ExprKind::Variable(Variable::Grads) => uses_grad = true,
        ExprKind::NotImplemented(_) | ExprKind::Opaque(_) | ExprKind::None => refuses = true,
        _ => {}
    });
    if let Some((output, range)) = flat {
        let place = text.span_within(range, context.sources);
        let output = match &op.outputs[output].name {
            Some(name) => format!("the output `{name}`"),
            None => format!("output {output}"),
        };
        context.push(catalogue::gradient_of_flat_output(place, &output));
        return None;
    }
    if let Some(range) = item_without_grad(&formula) {
        context.push(catalogue::formula_without_grad(text.span_within(range, context.sources)));
        return None;
    }
    if !uses_grad && !refuses {
        context.push(catalogue::formula_without_grad(text.span()));
        return None;
    }
    Some(formula)
}

/// The first of several gradients that does not depend on a gradient of an output.
fn item_without_grad(formula: &Expr) -> Option<std::ops::Range<usize>> {
    let items = match &formula.kind {
        ExprKind::Tuple(items) => items,
        ExprKind::If(_, yes, no) => return item_without_grad(yes).or_else(|| item_without_grad(no)),
        ExprKind::Block(_, tail) => return item_without_grad(tail),
        _ => return None,
    };
    let is_flat = |item: &&Expr| {
        let mut uses = false;
        item.walk(&mut |part| {
            uses |= matches!(
                part.kind,
                ExprKind::Variable(Variable::Grad(_) | Variable::Grads | Variable::Local(_))
                    | ExprKind::NotImplemented(_)
                    | ExprKind::None
            );
        });
        !uses
    };
    items.iter().find(is_flat).map(|item| item.range.clone())
}
