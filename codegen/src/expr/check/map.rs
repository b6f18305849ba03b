//! Lists of tensors, one for each item of another list: `list.map(|item, position| tensor)`.

use std::ops::Range;

use super::flow::plain_name;
use super::{Checker, draft};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Kind, Ty};

impl Checker<'_> {
    pub(super) fn map(&mut self, call: &syn::ExprMethodCall, range: Range<usize>) -> Option<Expr> {
        let list = draft::settled(self.expr(&call.receiver)?);
        let item = match list.ty.kind.item() {
            Some(item) if !list.ty.optional && !matches!(list.ty.kind, Kind::Lists(_)) => item,
            _ => {
                let span = self.at(&list.range);
                return self.refuse(catalogue::not_a_list(span, &list.ty.to_string(), list.ty.optional));
            }
        };
        let closure = match call.args.first() {
            Some(syn::Expr::Closure(closure)) if call.args.len() == 1 && is_plain(closure) => closure,
            _ => return self.refuse(catalogue::map_without_function(self.at(&range))),
        };
        let outside = self.locals.len();
        let types = [item, Ty::new(Kind::Int)];
        let mut names = Vec::new();
        for (input, ty) in closure.inputs.iter().zip(types) {
            let name = self.item_name(input)?;
            self.locals.push((name.clone(), ty));
            names.push(name);
        }
        let body = self.expr_as(&closure.body, &Ty::new(Kind::Tensor));
        self.locals.truncate(outside);
        let kind = ExprKind::Map(Box::new(list), names, Box::new(body?));
        Some(Expr { kind, ty: Ty::new(Kind::Tensors), range })
    }

    /// A new name: those of items hide no other, so that a name has one meaning wherever an expression is taken apart.
    fn item_name(&mut self, input: &syn::Pat) -> Option<String> {
        let place = self.places.of(input);
        let Some(name) = plain_name(input) else {
            return self.refuse(catalogue::item_not_a_name(self.at(&place)));
        };
        let taken = self.locals.iter().map(|(name, _)| name);
        if taken.chain(self.scope.args.iter().map(|arg| &arg.name)).any(|known| *known == name) {
            return self.refuse(catalogue::item_name_taken(self.at(&place), &name));
        }
        Some(name)
    }
}

/// Whether a function has one or two names, and nothing else before its expression.
fn is_plain(closure: &syn::ExprClosure) -> bool {
    (1..=2).contains(&closure.inputs.len())
        && matches!(closure.output, syn::ReturnType::Default)
        && closure.asyncness.is_none()
        && closure.capture.is_none()
        && closure.lifetimes.is_none()
        && closure.constness.is_none()
}
