//! Branches, blocks and indices.

use std::ops::Range;

use syn::Stmt;

use super::{Checker, Mode};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Kind, Ty};

impl Checker<'_> {
    pub(super) fn branch(
        &mut self,
        branch: &syn::ExprIf,
        want: Option<&Ty>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let condition = self.expr_as(&branch.cond, &Ty::new(Kind::Bool));
        let yes = self.block(&branch.then_branch, want, self.places.of(&branch.then_branch));
        let no = match (&branch.else_branch, want) {
            (Some((_, no)), Some(want)) => self.expr_as(no, want),
            (Some((_, no)), None) => self.expr(no),
            (None, _) => {
                let label = "has no value when the condition is false";
                self.refuse(catalogue::no_value(self.at(&range), "`if` needs an `else` here", label))
            }
        };
        let (condition, yes, no) = (condition?, yes?, no?);
        let (yes, no) = match want {
            Some(_) => (yes, no),
            None => self.unify(yes, no)?,
        };
        let ty = want.cloned().unwrap_or_else(|| yes.ty.clone());
        Some(Expr { kind: ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no)), ty, range })
    }

    pub(super) fn block(
        &mut self,
        block: &syn::Block,
        want: Option<&Ty>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let outer = self.locals.len();
        let result = self.statements(&block.stmts, want, range);
        self.locals.truncate(outer);
        result
    }

    fn statements(&mut self, statements: &[Stmt], want: Option<&Ty>, range: Range<usize>) -> Option<Expr> {
        let mut bindings = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            match statement {
                Stmt::Local(local) => bindings.push(self.binding(local)?),
                Stmt::Expr(tail, None) if index + 1 == statements.len() => {
                    let tail = match want {
                        Some(want) => self.expr_as(tail, want)?,
                        None => self.expr(tail)?,
                    };
                    if bindings.is_empty() {
                        return Some(tail);
                    }
                    let ty = tail.ty.clone();
                    return Some(Expr { kind: ExprKind::Block(bindings, Box::new(tail)), ty, range });
                }
                other => {
                    let place = self.places.of(other);
                    return self.refuse(catalogue::statement_without_effect(self.at(&place)));
                }
            }
        }
        let label = "ends without an expression";
        self.refuse(catalogue::no_value(self.at(&range), "the block has no value", label))
    }

    /// `let name = value;`
    fn binding(&mut self, local: &syn::Local) -> Option<(String, Expr)> {
        let Some(name) = plain_name(&local.pat) else {
            let place = self.places.of(&local.pat);
            return self.refuse(catalogue::binding_not_a_name(self.at(&place)));
        };
        let Some(init) = local.init.as_ref().filter(|init| init.diverge.is_none()) else {
            let place = self.places.of(local);
            return self.refuse(catalogue::binding_without_value(self.at(&place)));
        };
        let value = self.expr(&init.expr)?;
        if matches!(value.ty.kind, Kind::None | Kind::Unit) {
            return self.refuse(catalogue::binding_without_value(self.at(&value.range)));
        }
        self.locals.push((name.clone(), value.ty.clone()));
        Some((name, value))
    }

    pub(super) fn index(&mut self, index: &syn::ExprIndex, range: Range<usize>) -> Option<Expr> {
        if let syn::Expr::Path(path) = &*index.expr
            && path.path.is_ident("grads")
            && self.scope.mode == Mode::Derivative
            && !matches!(self.scope.outputs, [only] if only.ty.kind == Kind::Tensors)
        {
            return self.grads_index(index, range);
        }
        let base = self.expr(&index.expr);
        let position = self.expr_as(&index.index, &Ty::new(Kind::Int));
        let (base, position) = (base?, position?);
        let ty = match (&base.ty.kind, base.ty.optional) {
            (Kind::Tuple(items), false) => match position.kind {
                ExprKind::Int(position) if (0..items.len() as i64).contains(&position) => {
                    items[position as usize].clone()
                }
                _ => {
                    let span = self.at(&position.range);
                    return self.refuse(catalogue::index_out_of_range(span, items.len()));
                }
            },
            (list, optional) => match list.item() {
                Some(item) if !optional => item,
                _ => {
                    let span = self.at(&base.range);
                    return self.refuse(catalogue::not_indexable(span, &base.ty.to_string(), optional));
                }
            },
        };
        Some(Expr { kind: ExprKind::Index(Box::new(base), Box::new(position)), ty, range })
    }
}

/// The name of a pattern that is a new name and nothing else.
pub(super) fn plain_name(pattern: &syn::Pat) -> Option<String> {
    match pattern {
        syn::Pat::Ident(pattern)
            if pattern.by_ref.is_none()
                && pattern.mutability.is_none()
                && pattern.subpat.is_none()
                && pattern.ident != "self" =>
        {
            Some(pattern.ident.to_string())
        }
        _ => None,
    }
}
