//! Rules of dtypes, shorter: of the arguments rather than of calls that keep their dtype.
//!
//! In: rules with arguments of a composition. Out: rules of the same dtype. Must not know operators but their rules.

use opsmith_core::rules::{DTypeRule, Rule};
use opsmith_core::{DType, Query};

use super::{Fact, Reading, of_call, of_tensor};
use crate::analysis::composed::Callers;
use crate::analysis::composed::decide::is_present;
use crate::model::Kind;
use crate::model::expr::{Expr, ExprKind};

/// A rule with shorter rules of the same dtype in its parts.
pub(super) fn shortened(reading: Reading<'_>, mut expr: Expr, callers: &Callers<'_>) -> Expr {
    if matches!(expr.kind, ExprKind::Op(..)) {
        return expr;
    }
    expr.change_parts(&mut |part| shortened(reading, part, callers));
    let kind = match &expr.kind {
        ExprKind::Convert(inner) if inner.ty == expr.ty => Some(inner.kind.clone()),
        ExprKind::Query(Query::DType, of, _) => of_call(reading, of, callers).map(|dtype| dtype.kind),
        ExprKind::Rule(Rule::DType(rule), args) => of_rule(reading, *rule, args, callers),
        _ => None,
    };
    match kind {
        Some(kind) => Expr { kind, ..expr },
        None => expr,
    }
}

fn of_rule(reading: Reading<'_>, rule: DTypeRule, args: &[Expr], callers: &Callers<'_>) -> Option<ExprKind> {
    let dtype = |tensor: &Expr| dtype(reading, tensor, callers);
    let again = |args: Vec<Expr>| Some(ExprKind::Rule(rule.into(), args));
    match (rule, args) {
        (DTypeRule::Follow, [tensor]) => dtype(tensor).map(|dtype| dtype.kind),
        (DTypeRule::OrDefault, [given]) | (DTypeRule::Accumulate, [_, given])
            if is_present(given) == Some(true) =>
        {
            Some(given.kind.clone())
        }
        (DTypeRule::Accumulate, [tensor, given]) => of_sum(dtype(tensor)?, given),
        (DTypeRule::Real | DTypeRule::Opmath | DTypeRule::Complex, [tensor]) => match dtype(tensor)?.kind {
            ExprKind::Query(Query::DType, of, _) => again(vec![*of]),
            _ => None,
        },
        (DTypeRule::Same | DTypeRule::Promote | DTypeRule::PromoteFloat, _) => {
            let mut kept: Vec<Expr> = Vec::new();
            for operand in args.iter().map(|operand| like(reading, rule, operand, callers)) {
                if !kept.iter().any(|known| known.same_value(&operand)) {
                    kept.push(operand);
                }
            }
            let mut tensors = kept.iter().filter(|operand| !is_real_number(operand));
            let only = match (tensors.next(), tensors.next()) {
                (Some(only), None) if only.ty.is_tensor() => dtype(only),
                _ => None,
            };
            // Numbers do not change the dtype of floats.
            let decides =
                |dtype: &Expr| is_float(dtype) || (kept.len() == 1 && rule != DTypeRule::PromoteFloat);
            only.filter(decides).map_or_else(|| again(kept.clone()), |dtype| Some(dtype.kind))
        }
        _ => None,
    }
}

/// The dtype of a sum of elements of a dtype.
fn of_sum(dtype: Expr, given: &Expr) -> Option<ExprKind> {
    match dtype.kind {
        ExprKind::DType(dtype) if is_present(given) == Some(false) => {
            let sums_as_it_is = dtype.is_float() || dtype.is_complex();
            Some(ExprKind::DType(if sums_as_it_is { dtype } else { DType::I64 }))
        }
        ExprKind::Query(Query::DType, of, _) => {
            Some(ExprKind::Rule(DTypeRule::Accumulate.into(), vec![*of, given.clone()]))
        }
        _ => None,
    }
}

/// The dtype of a tensor that is an argument or a call whose operator has a rule.
fn dtype(reading: Reading<'_>, tensor: &Expr, callers: &Callers<'_>) -> Option<Expr> {
    match &tensor.kind {
        ExprKind::Convert(inner) => dtype(reading, inner, callers),
        ExprKind::Variable(_) if tensor.ty.is_tensor() => Some(of_tensor(Fact::DType, tensor.clone())),
        _ => of_call(reading, tensor, callers),
    }
}

/// A tensor of the same dtype that is an argument of calls rather than their result; of the same shape too if the rule promotes, where
/// the number of dimensions decides.
fn like(reading: Reading<'_>, rule: DTypeRule, tensor: &Expr, callers: &Callers<'_>) -> Expr {
    if matches!(tensor.kind, ExprKind::Op(..) | ExprKind::If(..))
        && let Some(Expr { kind: ExprKind::Query(Query::DType, of, _), .. }) =
            of_call(reading, tensor, callers)
    {
        let shape = || of_call(reading.of(Fact::Sizes), tensor, callers);
        let is_of_its_shape = || match shape().map(|shape| shape.kind) {
            Some(ExprKind::Query(Query::Sizes, like, _)) => of.same_value(&like),
            _ => false,
        };
        if rule == DTypeRule::Same || is_of_its_shape() {
            return *of;
        }
    }
    tensor.clone()
}

/// Whether an operand is a number that is not complex.
fn is_real_number(operand: &Expr) -> bool {
    match &operand.kind {
        ExprKind::Convert(inner) => is_real_number(inner),
        _ => matches!(operand.ty.kind, Kind::Int | Kind::Float | Kind::Bool) && !operand.ty.optional,
    }
}

/// Whether a rule gives no dtype but of floats and complex numbers.
fn is_float(dtype: &Expr) -> bool {
    match &dtype.kind {
        ExprKind::Convert(inner) => is_float(inner),
        ExprKind::DType(dtype) => dtype.is_float() || dtype.is_complex(),
        ExprKind::If(_, yes, no) => is_float(yes) && is_float(no),
        ExprKind::Rule(Rule::DType(rule), _) => {
            matches!(rule, DTypeRule::PromoteFloat | DTypeRule::OrDefault | DTypeRule::Complex)
        }
        _ => false,
    }
}
