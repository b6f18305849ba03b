//! Expressions with others in the places of their variables, and without the choices that constants decide.
//!
//! In: expressions. Out: shorter ones of the same value. Must not know operators.

use std::cmp::Ordering;

use opsmith_core::Query;

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Kind, Operation};

/// An expression with others in the places of its variables; `None` if one has none.
pub(super) fn substituted(expr: &Expr, value: &dyn Fn(&Variable, &Expr) -> Option<Expr>) -> Option<Expr> {
    let mut found = expr.clone();
    substitute(&mut found, value).then_some(found)
}

/// Whether each variable has a value, which is in its place then.
fn substitute(expr: &mut Expr, value: &dyn Fn(&Variable, &Expr) -> Option<Expr>) -> bool {
    let ExprKind::Variable(variable) = &expr.kind else {
        return expr.children_mut().into_iter().all(|part| substitute(part, value));
    };
    match value(variable, expr) {
        Some(found) => {
            *expr = found;
            true
        }
        None => false,
    }
}

/// An expression without the choices that its constants decide.
pub(super) fn decided(mut expr: Expr) -> Expr {
    expr.change_parts(&mut decided);
    let truth = |value: bool| ExprKind::Bool(value);
    let kind = match &expr.kind {
        ExprKind::Query(query @ (Query::IsSome | Query::IsNone), of, _) => {
            is_present(of).map(|present| truth(present == (*query == Query::IsSome)))
        }
        ExprKind::Query(Query::Unwrap, of, _) if is_present(of) == Some(true) => Some(of.kind.clone()),
        ExprKind::Query(Query::UnwrapOr, of, other) => match is_present(of) {
            Some(true) => Some(of.kind.clone()),
            Some(false) => other.first().map(|other| other.kind.clone()),
            None => None,
        },
        ExprKind::Unary(Operation::Not, of) => match of.kind {
            ExprKind::Bool(value) => Some(truth(!value)),
            _ => None,
        },
        ExprKind::Logical(and, a, b) => match (&a.kind, &b.kind) {
            (ExprKind::Bool(value), other) | (other, ExprKind::Bool(value)) => {
                Some(if value == and { other.clone() } else { truth(*value) })
            }
            _ => None,
        },
        ExprKind::Binary(symbol, a, b) if symbol.is_comparison() => compared(*symbol, a, b).map(truth),
        ExprKind::Index(list, at) => match (&list.kind, &at.kind) {
            (ExprKind::List(items), ExprKind::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| items.get(at)).map(|item| item.kind.clone())
            }
            _ => None,
        },
        ExprKind::If(condition, yes, no) => match condition.kind {
            ExprKind::Bool(true) => Some(yes.kind.clone()),
            ExprKind::Bool(false) => Some(no.kind.clone()),
            _ if yes.same_meaning(no) || is_choice_of_equals(condition, yes, no) => Some(no.kind.clone()),
            _ => None,
        },
        _ => None,
    };
    match kind {
        Some(kind) => Expr { kind, ..expr },
        None => expr,
    }
}

/// Whether a comparison holds; `None` if a call decides.
fn compared(symbol: Operation, a: &Expr, b: &Expr) -> Option<bool> {
    let order = match (&a.kind, &b.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => a.cmp(b),
        (ExprKind::DType(a), ExprKind::DType(b)) if a == b => Ordering::Equal,
        (ExprKind::DType(_), ExprKind::DType(_)) if symbol == Operation::Eq => return Some(false),
        // NaN is not equal to itself.
        _ if matches!(a.ty.kind, Kind::Int | Kind::Ints(_) | Kind::DType) && a.same_value(b) => {
            Ordering::Equal
        }
        _ => return None,
    };
    Some(match symbol {
        Operation::Eq => order.is_eq(),
        Operation::Ne => order.is_ne(),
        Operation::Lt => order.is_lt(),
        Operation::Le => order.is_le(),
        Operation::Gt => order.is_gt(),
        Operation::Ge => order.is_ge(),
        _ => return None,
    })
}

/// Whether a choice is one of equal values, `if a == b { a } else { b }`, so that it is always the second.
pub(super) fn is_choice_of_equals(condition: &Expr, yes: &Expr, no: &Expr) -> bool {
    match &condition.kind {
        ExprKind::Binary(Operation::Eq, a, b) => {
            let is = |first: &Expr, second: &Expr| first.same_value(yes) && second.same_value(no);
            is(a, b) || is(b, a)
        }
        // `a == b && c` decides between equal values too.
        ExprKind::Logical(true, a, b) => is_choice_of_equals(a, yes, no) || is_choice_of_equals(b, yes, no),
        _ => false,
    }
}

/// Whether an optional value is there; `None` if a call decides.
pub(super) fn is_present(value: &Expr) -> Option<bool> {
    match &value.kind {
        ExprKind::Convert(inner) => is_present(inner),
        ExprKind::None => Some(false),
        ExprKind::Variable(_) => (!value.ty.optional).then_some(true),
        ExprKind::Query(..) if !value.ty.optional => Some(true),
        ExprKind::If(_, yes, no) => is_present(yes).filter(|present| is_present(no) == Some(*present)),
        ExprKind::Block(..) | ExprKind::Query(..) | ExprKind::Index(..) => None,
        _ => Some(true),
    }
}
