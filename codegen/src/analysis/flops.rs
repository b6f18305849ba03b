//! Arithmetic operations of kernels, which profilers compare with the limits of a machine.
//!
//! In pointwise expressions, an operator, a comparison or a call of a scalar function on elements is one operation; of a branch, the longer part counts.
//! Arithmetic on numbers alone happens once a call and is not counted.

use crate::model::expr::{Expr, ExprKind};
use crate::model::{Kind, Op, Operation, Ty};

/// Operations for one element of the result.
pub fn of_element(expr: &Expr) -> u32 {
    let all = |parts: &[Expr]| parts.iter().map(of_element).fold(0, u32::saturating_add);
    let one_on = |parts: &[&Expr]| {
        let inside = parts.iter().map(|part| of_element(part)).fold(0, u32::saturating_add);
        inside.saturating_add(u32::from(parts.iter().any(|part| is_element(part))))
    };
    match &expr.kind {
        ExprKind::Binary(_, left, right) => one_on(&[left, right]),
        ExprKind::Unary(_, operand) => one_on(&[operand]),
        ExprKind::Function(_, args) => one_on(&args.iter().collect::<Vec<_>>()),
        ExprKind::Logical(_, left, right) => of_element(left).saturating_add(of_element(right)),
        ExprKind::If(condition, yes, no) => {
            of_element(condition).saturating_add(of_element(yes).max(of_element(no)))
        }
        ExprKind::Block(bound, body) => {
            let bound = bound.iter().map(|(_, value)| of_element(value));
            bound.fold(of_element(body), u32::saturating_add)
        }
        ExprKind::List(items) | ExprKind::Tuple(items) | ExprKind::Native(_, items) => all(items),
        ExprKind::Query(_, base, args) => of_element(base).saturating_add(all(args)),
        ExprKind::Index(base, position) => of_element(base).saturating_add(of_element(position)),
        ExprKind::Convert(inner) => of_element(inner),
        _ => 0,
    }
}

/// Whether a loop over elements waits for memory on every processor: an expression of few instructions, without functions and
/// divisions.
pub fn is_light(expr: &Expr) -> bool {
    const MOST: u32 = 3;
    let mut slow = false;
    expr.walk(&mut |part| {
        slow |= matches!(
            part.kind,
            ExprKind::Function(..) | ExprKind::Binary(Operation::Div | Operation::Rem, ..)
        );
    });
    !slow && of_element(expr) <= MOST
}

fn is_element(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Convert(inner) => is_element(inner),
        _ => matches!(expr.ty.kind, Kind::Element | Kind::RealElement),
    }
}

/// The results that the key `flops` may read: position, name and type. Names are those of gradient formulas; an argument of
/// the same name comes first.
pub fn results(op: &Op) -> impl Iterator<Item = (usize, String, &Ty)> {
    let name = |index: usize, name: &Option<String>| match name {
        Some(name) => name.clone(),
        None if op.outputs.len() == 1 => "result".to_owned(),
        None => format!("result{index}"),
    };
    let named = op.outputs.iter().enumerate();
    named
        .map(move |(index, output)| (index, name(index, &output.name), &output.ty))
        .filter(|(_, name, ty)| ty.holds_tensors() && !ty.optional && op.arg_index(name).is_none())
}
