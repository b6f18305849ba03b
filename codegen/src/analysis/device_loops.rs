//! Loops of pointwise expressions on devices.
//!
//! In: a checked model, and the library whose scalar functions the device library has. Out: whether devices can compute an
//! operator's expression.

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Kind, Model, Op};

/// Marks the operators whose expressions devices can compute; `library` has the functions that they know, and is a parent by
/// its number, or the spec itself.
pub fn mark(model: &mut Model, library: Option<usize>) {
    let known: Vec<bool> = model.functions.iter().map(|function| function.parent == library).collect();
    for op in &mut model.ops {
        op.body.device_loops = op.combinations.is_empty()
            && op.body.pointwise.as_ref().is_some_and(|expr| is_expressible(op, expr, &known));
    }
}

fn is_expressible(op: &Op, expr: &Expr, known: &[bool]) -> bool {
    let mut expressible = true;
    expr.walk(&mut |part| {
        expressible &= match &part.kind {
            ExprKind::Function(id, _) => known[id.0],
            ExprKind::Convert(inner) if inner.ty.kind == Kind::Scalar => !depends_on_elements(op, inner),
            _ => true,
        };
    });
    expressible
}

/// Whether a value differs from element to element: it mentions a tensor, or a name bound to one.
pub fn depends_on_elements(op: &Op, expr: &Expr) -> bool {
    let mut depends = false;
    expr.walk(&mut |part| {
        depends |= match &part.kind {
            ExprKind::Variable(Variable::Arg(index)) => op.args[*index].ty.holds_tensors(),
            ExprKind::Variable(Variable::Local(_)) => true,
            _ => false,
        };
    });
    depends
}
