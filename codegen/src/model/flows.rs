//! Whether gradients flow through a composition.
//!
//! In: the expression of a composition. Out: whether a result depends on a tensor argument through
//! operators that have gradients. `zeros(self.sizes())` does not, although it is made of operators.

use std::collections::HashMap;

use super::{GradientSource, Model, Op, OpId};
use crate::expr::{Expr, ExprKind, Variable};

/// A composition that may call itself is looked into so often.
const DEEPEST: usize = 32;

impl Model {
    /// Whether any gradient flows through an operator.
    pub fn gradients_flow(&self, op: &Op) -> bool {
        self.flows_through(op, DEEPEST)
    }

    fn flows_through(&self, op: &Op, depth: usize) -> bool {
        match op.gradient_source() {
            GradientSource::None => false,
            GradientSource::Composition => op.body.composite.as_ref().is_some_and(|composite| {
                depth > 0 && Walk { model: self, op, depth: depth - 1 }.flows(composite, &HashMap::new())
            }),
            GradientSource::View => true,
            GradientSource::Written | GradientSource::Derived => {
                (0..op.args.len()).any(|argument| has_formula(op, argument))
            }
        }
    }
}

fn has_formula(op: &Op, argument: usize) -> bool {
    op.derivatives.iter().any(|derivative| {
        derivative.arguments.contains(&argument)
            && !matches!(derivative.formula.kind, ExprKind::NotImplemented(_) | ExprKind::Opaque(_))
    })
}

/// A walk through the composition of one operator.
struct Walk<'a> {
    model: &'a Model,
    op: &'a Op,
    depth: usize,
}

impl Walk<'_> {
    /// Whether a value depends on a tensor argument; `known` says it of local names.
    fn flows(&self, expr: &Expr, known: &HashMap<&str, bool>) -> bool {
        let any = |parts: &[Expr]| parts.iter().any(|part| self.flows(part, known));
        match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => self.op.args[*index].ty.holds_tensors(),
            ExprKind::Variable(Variable::Local(name)) => known.get(name.as_str()).copied().unwrap_or(false),
            ExprKind::Op(id, args) => self.flows_through_call(*id, args, known),
            ExprKind::List(parts) | ExprKind::Tuple(parts) => any(parts),
            ExprKind::If(_, yes, no) => self.flows(yes, known) || self.flows(no, known),
            ExprKind::Block(bindings, tail) => {
                let mut known = known.clone();
                for (name, value) in bindings {
                    let flows = self.flows(value, &known);
                    known.insert(name, flows);
                }
                self.flows(tail, &known)
            }
            ExprKind::Index(base, position) => {
                let stopped = match (&base.kind, &position.kind) {
                    (ExprKind::Op(id, _), ExprKind::Int(position)) => self.model.ops[id.0]
                        .outputs
                        .get(*position as usize)
                        .is_some_and(|output| !output.differentiable),
                    _ => false,
                };
                !stopped && self.flows(base, known)
            }
            ExprKind::Convert(value) => self.flows(value, known),
            // Of the questions, those about optional tensors give the tensor itself.
            ExprKind::Query(_, base, args) => {
                expr.ty.holds_tensors() && (self.flows(base, known) || any(args))
            }
            _ => false,
        }
    }

    fn flows_through_call(&self, id: OpId, args: &[Expr], known: &HashMap<&str, bool>) -> bool {
        let called = &self.model.ops[id.0];
        let written = !called.derivatives.is_empty();
        let into =
            |(index, arg): (usize, &Expr)| (!written || has_formula(called, index)) && self.flows(arg, known);
        args.iter().enumerate().any(into) && self.model.flows_through(called, self.depth)
    }
}
