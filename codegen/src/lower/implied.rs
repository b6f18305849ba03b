//! The default dtype rule of a pointwise operator: the one that its expression implies.
//!
//! In: the text of the expression, and the scalar functions of the spec. Out: `bool` for a comparison, the dtype of the
//! real part for a real function of one tensor, a float for functions that integers do not have, else the promoted
//! dtype. Mistakes in the text are left to the checker.

use opsmith_core::rules::DTypeRule;
use opsmith_core::{DType, DTypeSet};
use syn::visit::{self, Visit};

use crate::expr::parse;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Function, FunctionReturn, Kind, Ty};

/// The rule, over the arguments that determine a dtype.
pub(super) fn dtype(text: &str, functions: &[Function], operands: Vec<Expr>) -> Expr {
    let tree = parse::tree(text);
    let find = |name: &str| functions.iter().find(|function| function.name == name);
    let alone = matches!(operands.as_slice(), [only] if only.ty.is_tensor());
    let result = tree.as_ref().map_or(FunctionReturn::Element, |tree| result(tree, &find));
    let rule = match result {
        FunctionReturn::Bool => {
            return Expr { kind: ExprKind::DType(DType::Bool), ty: Ty::new(Kind::DType), range: 0..0 };
        }
        FunctionReturn::Real if alone => DTypeRule::Real,
        _ if tree.as_ref().is_some_and(|tree| needs_floats(tree, &find)) => DTypeRule::PromoteFloat,
        _ if alone => DTypeRule::Follow,
        _ => DTypeRule::Promote,
    };
    Expr::rule(rule, operands, 0..0)
}

/// The type of an expression, from its outermost part.
fn result<'f>(tree: &syn::Expr, find: &dyn Fn(&str) -> Option<&'f Function>) -> FunctionReturn {
    match tree {
        syn::Expr::Paren(inner) => result(&inner.expr, find),
        syn::Expr::Group(inner) => result(&inner.expr, find),
        syn::Expr::Block(block) => of_block(&block.block, find),
        syn::Expr::If(choice) => of_block(&choice.then_branch, find),
        syn::Expr::Unary(part) => result(&part.expr, find),
        syn::Expr::Call(call) => called(call)
            .and_then(|name| find(&name))
            .map_or(FunctionReturn::Element, |function| function.returns),
        syn::Expr::Binary(part) => match part.op {
            syn::BinOp::Eq(_)
            | syn::BinOp::Ne(_)
            | syn::BinOp::Lt(_)
            | syn::BinOp::Le(_)
            | syn::BinOp::Gt(_)
            | syn::BinOp::Ge(_)
            | syn::BinOp::And(_)
            | syn::BinOp::Or(_) => FunctionReturn::Bool,
            _ => FunctionReturn::Element,
        },
        _ => FunctionReturn::Element,
    }
}

fn of_block<'f>(block: &syn::Block, find: &dyn Fn(&str) -> Option<&'f Function>) -> FunctionReturn {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(tail, None)) => result(tail, find),
        _ => FunctionReturn::Element,
    }
}

/// The name of the called function.
fn called(call: &syn::ExprCall) -> Option<String> {
    match &*call.func {
        syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        _ => None,
    }
}

/// Whether a function in the expression is undefined for integers.
fn needs_floats<'f>(tree: &syn::Expr, find: &dyn Fn(&str) -> Option<&'f Function>) -> bool {
    let mut calls = Calls(Vec::new());
    calls.visit_expr(tree);
    let inexact = |set: DTypeSet| set.intersection(DTypeSet::INTEGRAL) == DTypeSet::EMPTY;
    calls.0.iter().filter_map(|name| find(name)).any(|function| inexact(function.dtypes))
}

/// The names of called functions.
struct Calls(Vec<String>);

impl<'t> Visit<'t> for Calls {
    fn visit_expr_call(&mut self, call: &'t syn::ExprCall) {
        self.0.extend(called(call));
        visit::visit_expr_call(self, call);
    }
}
