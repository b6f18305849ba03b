//! Flow of gradients through operators, and its limits.
//!
//! In: the derivatives and compositions of the model. Out: whether a result depends on a tensor argument through
//! differentiable operators (`zeros(self.sizes())` does not); results that formulas read but whose gradient they
//! ignore; the reason for a missing second derivative.

use std::collections::{HashMap, HashSet};

use opsmith_core::DTypeSet;

use super::reads::{ReadValue, reads};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Derivative, Element, Forward, GradientSource, Kind, Model, Op, OpId, Output};

/// Whether any gradient flows through each operator.
///
/// Compositions may call themselves: nothing flows at first, and each found flow makes more flow, until a round finds
/// nothing. A walk into each call takes as many steps as there are paths, which no depth bounds usefully.
pub fn gradients_flow(model: &Model) -> Vec<bool> {
    let mut flowing = vec![false; model.ops.len()];
    loop {
        let mut changed = false;
        for (index, op) in model.ops.iter().enumerate() {
            if !flowing[index] && flows_through(model, op, &flowing) {
                (flowing[index], changed) = (true, true);
            }
        }
        if !changed {
            return flowing;
        }
    }
}

fn flows_through(model: &Model, op: &Op, flowing: &[bool]) -> bool {
    match op.gradient_source() {
        GradientSource::None => false,
        GradientSource::Composition => {
            let walk = Walk { model, op, flowing };
            op.body.composite.as_ref().is_some_and(|composite| walk.flows(composite, &HashMap::new()))
        }
        GradientSource::View => true,
        GradientSource::Written | GradientSource::Derived => {
            (0..op.args.len()).any(|argument| has_formula(op, argument))
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
    /// Whether a gradient is known to flow through each operator.
    flowing: &'a [bool],
}

impl Walk<'_> {
    /// Whether a value depends on a tensor argument; `known` has the answer for local names.
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
            ExprKind::Map(list, names, item) => {
                let mut known = known.clone();
                known.extend(names.first().map(|name| (name.as_str(), self.flows(list, &known))));
                self.flows(item, &known)
            }
            // Queries about optional tensors are the only ones that return the tensor itself.
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
        self.flowing[id.0] && args.iter().enumerate().any(into)
    }
}

/// Results without a gradient that a formula reads and that may change with an input: a derivative of that formula
/// would be wrong. Operands whose derivative is a refusal have none that could be.
pub fn unfollowed_results(ops: &[Op], op: &Op, formula: &Expr) -> Option<usize> {
    let mut read = reads(formula).values.into_iter().filter_map(|place| match place {
        ReadValue::Result(index) if is_unfollowed(op, &op.outputs[index]) => Some(index),
        _ => None,
    });
    read.find(|&index| is_read_unrefused(ops, formula, index))
}

/// Whether an expression reads a result other than as an operand whose derivative is refused.
fn is_read_unrefused(ops: &[Op], expr: &Expr, result: usize) -> bool {
    match &expr.kind {
        ExprKind::Variable(Variable::Result(index)) => *index == result,
        ExprKind::Op(id, args) => args.iter().enumerate().any(|(position, arg)| {
            refusal_of(&ops[id.0], position).is_none() && is_read_unrefused(ops, arg, result)
        }),
        _ => expr.children().into_iter().any(|part| is_read_unrefused(ops, part, result)),
    }
}

/// The reason why a call has no gradient of an argument, if an entry says so.
fn refusal_of(op: &Op, argument: usize) -> Option<&str> {
    let mut of = op.derivatives.iter().filter(|derivative| derivative.arguments.contains(&argument));
    of.find_map(|derivative| match &derivative.formula.kind {
        ExprKind::NotImplemented(why) => Some(why.as_str()),
        _ => None,
    })
}

/// Whether a result may change with an input and has no gradient.
fn is_unfollowed(op: &Op, output: &Output) -> bool {
    let inexact = DTypeSet::INEXACT;
    let overlaps = |set: DTypeSet| set.intersection(inexact) != DTypeSet::EMPTY;
    let is_inexact = match output.element {
        Element::NotTensor => false,
        Element::Fixed { accepted, .. } => overlaps(accepted),
        Element::Any => true,
        Element::Dispatch | Element::Real | Element::Opmath => op.body.dtypes.iter().copied().any(overlaps),
    };
    !output.differentiable && !output.constant && output.ty.holds_tensors() && is_inexact
}

/// The reason why the gradients of an operator cannot be differentiated again, if there is one: that of the first
/// operator in a formula that has it, or in a composition.
pub fn second_order_refusal(model: &Model, op: &Op) -> Option<String> {
    let unfollowed = |op: &Op, derivative: &Derivative| {
        let result = unfollowed_results(&model.ops, op, &derivative.formula)?;
        Some(format!("`{}`: its derivative reads `{}`, which has none", op.name, op.result_name(result)))
    };
    let own = |op: &Op| {
        let read = op.derivatives.iter().find_map(|derivative| unfollowed(op, derivative));
        read.or_else(|| op.derivatives.iter().find_map(|derivative| refusal_in(model, &derivative.formula)))
    };
    of_parts(model, op, &own)
}

/// The reason why an operator has no tangents, if there is one: those that transpose its backward formulas need the
/// derivatives of these.
pub fn tangent_refusal(model: &Model, op: &Op) -> Option<String> {
    let own = |op: &Op| match op.forward {
        Forward::Transposed => {
            op.derivatives.iter().find_map(|derivative| refusal_in(model, &derivative.formula))
        }
        _ => None,
    };
    of_parts(model, op, &own)
}

/// The first reason that an operator has, or an operator in its composition, if that gives its gradients.
fn of_parts(model: &Model, op: &Op, own: &dyn Fn(&Op) -> Option<String>) -> Option<String> {
    let mut open = vec![op];
    let mut seen = HashSet::new();
    while let Some(part) = open.pop() {
        if let Some(reason) = own(part) {
            return Some(reason);
        }
        if part.gradient_source() != GradientSource::Composition {
            continue;
        }
        let mut look = |expr: &Expr| {
            if let ExprKind::Op(id, _) = expr.kind
                && seen.insert(id.0)
            {
                open.push(&model.ops[id.0]);
            }
        };
        part.body.composite.iter().for_each(|body| body.walk(&mut look));
    }
    None
}

/// The reason of a differentiable call that cannot be differentiated again.
fn refusal_in(model: &Model, formula: &Expr) -> Option<String> {
    let mut found = None;
    formula.walk(&mut |part| {
        let ExprKind::Op(id, args) = &part.kind else { return };
        let called = &model.ops[id.0];
        for (index, _) in args.iter().enumerate().filter(|(_, arg)| reads_gradient(arg)) {
            if let Some(why) = refusal_of(called, index) {
                found.get_or_insert_with(|| format!("`{}`: {why}", called.name));
            }
        }
    });
    found
}

fn reads_gradient(expr: &Expr) -> bool {
    let mut reads = false;
    expr.walk(&mut |part| {
        let gradient = matches!(part.kind, ExprKind::Variable(Variable::Grad(_) | Variable::Grads));
        // A local variable may have one.
        let local = matches!(part.kind, ExprKind::Variable(Variable::Local(_)))
            && matches!(part.ty.kind, Kind::Tensor);
        reads |= gradient || local;
    });
    reads
}
