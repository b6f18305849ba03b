//! Calls of undeclared functions in a draft: their type is the required one.
//!
//! Such a call is an [`ExprKind::Native`] whose name is not a path. Its type is [`Kind::Unit`] until the context
//! determines it. A model with such an expression is never used to generate code.

use std::ops::Range;

use super::call::Given;
use super::coerce::Fit;
use super::{Checker, Undeclared};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Kind, Ty};

impl Checker<'_> {
    /// The call of an undeclared function, if this is a draft.
    pub(super) fn undeclared(&self, name: &str, given: &Given, range: &Range<usize>) -> Option<Expr> {
        if self.scope.ops.undeclared == Undeclared::Refused {
            return None;
        }
        let named = given.named.iter().map(|named| &named.value);
        let arguments = given.positional.iter().chain(named).cloned().collect();
        let kind = ExprKind::Native(name.to_owned(), arguments);
        Some(Expr { kind, ty: Ty::new(Kind::Unit), range: range.clone() })
    }
}

/// Whether an expression is such a call without a type yet.
pub(super) fn is_open(expr: &Expr) -> bool {
    expr.ty.kind == Kind::Unit && matches!(&expr.kind, ExprKind::Native(name, _) if !name.contains("::"))
}

/// The cost of an open call's conversion; such functions mostly return tensors.
pub(super) fn fit(want: &Ty) -> Fit {
    if want.kind == Kind::Tensor { Fit::Exact } else { Fit::Converted }
}

/// An open call as the required type.
pub(super) fn decide(expr: Expr, want: &Ty) -> Expr {
    let own = Ty::new(match &want.kind {
        Kind::OptionalTensors => Kind::Tensors,
        Kind::Tuple(items) => Kind::Tuple(items.iter().map(Ty::required).collect()),
        other => other.clone(),
    });
    let decided = Expr { ty: own, ..expr };
    if decided.ty == *want {
        return decided;
    }
    let range = decided.range.clone();
    Expr { kind: ExprKind::Convert(Box::new(decided)), ty: want.clone(), range }
}

/// An open call as a tensor, where only a tensor is possible.
pub(super) fn settled(expr: Expr) -> Expr {
    if is_open(&expr) { decide(expr, &Ty::new(Kind::Tensor)) } else { expr }
}
