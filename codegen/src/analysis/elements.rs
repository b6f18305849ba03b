//! Facts about the values of pointwise expressions: which are elements, which are the same for all of them, and how
//! numbers relate to elements.
//!
//! In: a checked operator. Out: answers for emitters, and for the loader, which computes expressions without compiling them.

use opsmith_core::DType;

use super::device_loops::depends_on_elements;
use super::rows::has_kernels;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Element, Kind, NumberUse, Op, Operation};

/// Whether elements are truth values, whatever the dtype of the call.
pub fn is_mask(element: Element) -> bool {
    matches!(element, Element::Fixed { kernel: DType::Bool, .. })
}

/// The first condition of an `if` that is the same for all elements.
pub fn uniform_condition(op: &Op, expr: &Expr) -> Option<Expr> {
    let mut found = None;
    expr.walk(&mut |part| {
        if let ExprKind::If(condition, _, _) = &part.kind
            && found.is_none()
            && is_of_attributes(op, condition)
        {
            found = Some((**condition).clone());
        }
    });
    found
}

/// The expression with that `if` replaced by one of its branches.
pub fn with_branch(op: &Op, expr: &Expr, yes: bool) -> Expr {
    let (mut result, mut replaced) = (expr.clone(), false);
    result.walk_mut(&mut |part| {
        if let ExprKind::If(condition, first, second) = &part.kind
            && !replaced
            && is_of_attributes(op, condition)
        {
            replaced = true;
            let branch = if yes { first } else { second };
            *part = (**branch).clone();
        }
    });
    result
}

/// Whether a value is one of elements.
pub fn is_element(expr: &Expr) -> bool {
    matches!(expr.ty.kind, Kind::Element | Kind::RealElement)
}

/// Whether a value is more than a name or a literal.
pub fn is_computed(expr: &Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Variable(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_)
    )
}

/// Whether a number is a bound, which may lie outside the dtype's range.
pub fn is_bound(op: &Op, expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        if let ExprKind::Variable(Variable::Arg(index)) = part.kind {
            found |= matches!(op.args[index].number, Some(NumberUse::Lower | NumberUse::Upper));
        }
    });
    found
}

/// Whether a number is one that the entry wants rounded to the elements' dtype.
pub fn is_rounded(op: &Op, expr: &Expr) -> bool {
    let mut rounded = false;
    expr.walk(&mut |part| {
        rounded |= matches!(&part.kind, ExprKind::Variable(Variable::Arg(index)) if op.args[*index].rounded);
    });
    rounded
}

/// Whether a value is computed of attributes alone, and in their types: scalar functions compute in that of elements.
pub fn is_of_attributes(op: &Op, expr: &Expr) -> bool {
    let mut elements = false;
    expr.walk(&mut |part| elements |= is_element(part));
    !elements && !depends_on_elements(op, expr)
}

/// The numbers that elements are computed with, by position.
pub fn numbers(op: &Op) -> Vec<(usize, NumberUse)> {
    if !has_kernels(op) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for index in 0..op.args.len() {
        let number = op.number_use(index).filter(|number| *number != NumberUse::Free);
        let real = is_among_reals(op, index).then_some(NumberUse::Real);
        found.extend(number.into_iter().chain(real).map(|number| (index, number)));
    }
    found
}

/// Whether a loop made from an expression uses a number as a real one, whatever the elements are.
fn is_among_reals(op: &Op, argument: usize) -> bool {
    let mut found = false;
    let mut look = |part: &Expr| {
        part.walk(&mut |part| {
            found |= matches!(part.kind, ExprKind::Variable(Variable::Arg(index)) if index == argument)
                && op.args[argument].ty.kind == Kind::Scalar;
        });
    };
    if let Some(expr) = &op.body.pointwise {
        expr.walk(&mut |part| match &part.kind {
            ExprKind::Convert(number)
                if part.ty.kind == Kind::RealElement && number.ty.kind == Kind::Scalar =>
            {
                look(number);
            }
            ExprKind::Binary(Operation::Lt | Operation::Le | Operation::Gt | Operation::Ge, a, b)
                if a.ty.kind == Kind::Scalar =>
            {
                look(a);
                look(b);
            }
            _ => {}
        });
    }
    found
}
