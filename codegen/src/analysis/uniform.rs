//! Calls that need no inference because all operands have one form.

use opsmith_core::DType;
use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Element, Kind, Op};

/// The dtype of the result for operands of one shape and dtype; the shape is theirs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uniform {
    /// The operands' own.
    Same,
    /// The operands' own if it is floating or complex; inference runs for others.
    SameIfInexact,
    /// Always this one.
    Fixed(DType),
}

/// The result of inference for operands of one form: known for pointwise operators that broadcast, from the rule of the
/// dtype.
pub fn uniform(op: &Op) -> Option<Uniform> {
    // A device argument determines the result's device, independently of the operands'.
    let names_device = op.args.iter().any(|arg| arg.ty.kind == Kind::Device);
    let decidable = op.body.pointwise.is_some() && !checks_arguments(op) && !names_device;
    let infer = op.infer.as_ref().filter(|_| decidable)?;
    let tensors: Vec<&Arg> = op.args.iter().filter(|arg| arg.ty.holds_tensors()).collect();
    let plain =
        tensors.iter().all(|arg| arg.ty.is_tensor() && arg.element == Element::Dispatch && !arg.contiguous);
    let by_shape = matches!(
        infer.shapes[0].kind,
        ExprKind::Rule(Rule::Shape(ShapeRule::Broadcast | ShapeRule::Follow), _)
    );
    let names_all = |rule: &[Expr]| {
        // Every tensor takes part, so that no other argument can influence the result.
        let mut named = Vec::new();
        rule.iter().for_each(|operand| {
            operand.walk(&mut |part| {
                if let ExprKind::Variable(Variable::Arg(index)) = part.kind {
                    named.push(index);
                }
            })
        });
        op.args.iter().enumerate().all(|(index, arg)| !arg.ty.holds_tensors() || named.contains(&index))
    };
    let (inexact, by_compute) = match &infer.compute.kind {
        ExprKind::Rule(Rule::DType(DTypeRule::Promote | DTypeRule::Same | DTypeRule::Follow), operands) => {
            (false, names_all(operands))
        }
        ExprKind::Rule(Rule::DType(DTypeRule::PromoteFloat), operands) => (true, names_all(operands)),
        _ => (false, false),
    };
    if tensors.is_empty() || !plain || !by_shape || !by_compute {
        return None;
    }
    Some(match (&infer.dtypes[0].kind, op.outputs[0].element) {
        (ExprKind::DType(dtype), _) if !inexact => Uniform::Fixed(*dtype),
        (_, Element::Dispatch) if inexact => Uniform::SameIfInexact,
        (_, Element::Dispatch) => Uniform::Same,
        _ => return None,
    })
}

/// Whether a call checks its arguments before inference.
pub fn checks_arguments(op: &Op) -> bool {
    !op.checks.is_empty()
        || !op.combinations.is_empty()
        || op.args.iter().any(|arg| !arg.constraints.is_empty())
}
