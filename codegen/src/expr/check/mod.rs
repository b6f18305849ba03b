//! Resolves names and types of a parsed expression.
//!
//! In: a syntax tree, the kind of expression ([`Mode`]), and its operator. Out: a typed tree, or diagnostics for all
//! mistakes. Checked expressions compile, so everything that an emitter cannot write is rejected here.

mod call;
mod coerce;
mod draft;
mod flow;
mod map;
mod name;
mod operators;
mod overload;
mod query;
mod scope;

use std::ops::Range;

use syn::Lit;

use super::parse::{self, ParseError, Places};
use crate::diagnostics::{Diagnostic, Diagnostics, Span, catalogue};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{ItemKind, Kind, Ty};

pub use name::names;
pub use scope::{Lookup, Mode, OpTable, Scope, Undeclared};

/// Parses and checks one expression; `want` is the required type.
///
/// Mistakes go to `diagnostics`, at the spans that `locate` gives for bytes of the text.
pub fn check(
    text: &str,
    scope: &Scope<'_>,
    want: &Ty,
    locate: &dyn Fn(Range<usize>) -> Span,
    diagnostics: &mut Diagnostics,
) -> Option<Expr> {
    let places = Places::new(text);
    let tree = match parse::parse(text, &places) {
        Ok(tree) => tree,
        Err(error) => {
            diagnostics.push(match error {
                ParseError::TooDeep(what) => catalogue::expression_too_deep(locate(0..text.len()), &what),
                ParseError::Bracket(range, bracket) => catalogue::expression_bracket(locate(range), bracket),
                ParseError::Syntax { message, hint, range } => {
                    catalogue::not_an_expression(locate(range), &message, hint)
                }
            });
            return None;
        }
    };
    let locals = scope.locals.to_vec();
    let mut checker = Checker {
        scope,
        places: &places,
        locate,
        diagnostics,
        locals,
        wants_elements: scope.mode == Mode::Pointwise && want.kind == Kind::Element,
    };
    let found = checker.expr_as(&tree, want)?;
    checker.refuse_mixed_gradients(&found)?;
    Some(found)
}

struct Checker<'a> {
    scope: &'a Scope<'a>,
    places: &'a Places<'a>,
    locate: &'a dyn Fn(Range<usize>) -> Span,
    diagnostics: &'a mut Diagnostics,
    locals: Vec<(String, Ty)>,
    /// Whether the whole expression is an element, which may be complex if the elements are.
    wants_elements: bool,
}

impl Checker<'_> {
    /// The span of some bytes of the text.
    fn at(&self, range: &Range<usize>) -> Span {
        (self.locate)(range.clone())
    }

    /// Reports a mistake. `None`, so that callers can return it.
    fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.diagnostics.push(diagnostic);
        None
    }

    /// An expression of any type.
    fn expr(&mut self, tree: &syn::Expr) -> Option<Expr> {
        let range = self.places.of(tree);
        match tree {
            syn::Expr::Lit(literal) => self.literal(&literal.lit, range),
            syn::Expr::Path(path) => self.name(path, range),
            syn::Expr::Paren(inner) => self.expr(&inner.expr),
            syn::Expr::Group(inner) => self.expr(&inner.expr),
            syn::Expr::Reference(inner) => self.expr(&inner.expr),
            syn::Expr::Array(array) => self.list(array.elems.iter(), range),
            syn::Expr::Tuple(tuple) => self.tuple(tuple.elems.iter(), range),
            syn::Expr::Call(call) => self.call(call, range),
            syn::Expr::MethodCall(call) => self.method(call, range),
            syn::Expr::Binary(binary) => self.binary(binary, range),
            syn::Expr::Unary(unary) => self.unary(unary, range),
            syn::Expr::If(branch) => self.branch(branch, None, range),
            syn::Expr::Block(block) => self.block(&block.block, None, range),
            syn::Expr::Index(index) => self.index(index, range),
            _ => self.refuse(catalogue::syntax_without_meaning(self.at(&range), "not supported here")),
        }
    }

    /// An expression of a required type. The requirement is passed into branches, blocks and brackets, so that each is
    /// checked, and each mistake shown, at its own span.
    fn expr_as(&mut self, tree: &syn::Expr, want: &Ty) -> Option<Expr> {
        let range = self.places.of(tree);
        match tree {
            syn::Expr::Paren(inner) => self.expr_as(&inner.expr, want),
            syn::Expr::Group(inner) => self.expr_as(&inner.expr, want),
            syn::Expr::Reference(inner) => self.expr_as(&inner.expr, want),
            syn::Expr::If(branch) => self.branch(branch, Some(want), range),
            syn::Expr::Block(block) => self.block(&block.block, Some(want), range),
            syn::Expr::Tuple(tuple) => match &want.kind {
                Kind::Tuple(items) if !want.optional => self.tuple_as(tuple, items, range),
                _ => {
                    let found = self.expr(tree)?;
                    self.coerce_or_report(found, want)
                }
            },
            syn::Expr::Array(array) => match want.kind.item() {
                Some(item) => {
                    let items: Vec<Option<Expr>> =
                        array.elems.iter().map(|element| self.expr_as(element, &item)).collect();
                    let items = items.into_iter().collect::<Option<Vec<_>>>()?;
                    let list = Expr { kind: ExprKind::List(items), ty: want.required(), range };
                    self.coerce_or_report(list, want)
                }
                None => {
                    let found = self.expr(tree)?;
                    self.coerce_or_report(found, want)
                }
            },
            _ => {
                let found = self.expr(tree)?;
                self.coerce_or_report(found, want)
            }
        }
    }

    fn literal(&mut self, literal: &Lit, range: Range<usize>) -> Option<Expr> {
        let suffix = ("a number has no suffix here", "its type follows from its place");
        let found = match literal {
            Lit::Int(value) if !value.suffix().is_empty() => Err(suffix),
            Lit::Float(value) if !value.suffix().is_empty() => Err(suffix),
            Lit::Int(value) => match value.base10_parse::<i64>() {
                Ok(value) => Ok((ExprKind::Int(value), Kind::Int)),
                Err(_) => Err(("the number does not fit 64 bits", "too large")),
            },
            Lit::Float(value) => match value.base10_parse::<f64>() {
                Ok(value) if value.is_finite() => Ok((ExprKind::Float(value), Kind::Float)),
                Ok(_) => Err(("the number is too large for a float of 64 bits", "write `inf`")),
                Err(_) => Err(("this is not a number", "cannot be read as a 64-bit float")),
            },
            Lit::Bool(value) => Ok((ExprKind::Bool(value.value), Kind::Bool)),
            Lit::Str(value) => Ok((ExprKind::Str(value.value()), Kind::Str)),
            _ => Err(("this kind of literal has no meaning in a spec", "not a number, text or truth value")),
        };
        match found {
            Ok((kind, ty)) => Some(Expr { kind, ty: Ty::new(ty), range }),
            Err((message, label)) => self.refuse(catalogue::literal(self.at(&range), message, label)),
        }
    }

    /// A list whose type is that of its items.
    fn list<'t>(&mut self, items: impl Iterator<Item = &'t syn::Expr>, range: Range<usize>) -> Option<Expr> {
        // All items are checked before a failure, so that all mistakes are reported.
        let items: Vec<Option<Expr>> = items.map(|item| self.expr(item)).collect();
        let items: Vec<Expr> =
            items.into_iter().map(|item| item.map(draft::settled)).collect::<Option<_>>()?;
        let has = |kind: Kind| items.iter().any(|item| item.ty.kind == kind);
        let optional = items.iter().any(|item| item.ty.kind == Kind::Tensor && item.ty.optional);
        let list = match () {
            () if optional || has(Kind::None) => Kind::OptionalTensors,
            () if has(Kind::Tensor) => Kind::Tensors,
            () if has(Kind::Bool) => Kind::Bools(None),
            () if has(Kind::Str) => Kind::Strs,
            () if has(Kind::DType) => Kind::DTypes,
            () if has(Kind::Scalar) => Kind::Scalars,
            () if has(Kind::Float) => Kind::Floats,
            // A Rust function may return the required number.
            () if items
                .iter()
                .any(|item| item.ty.kind.item().is_some() && !matches!(item.kind, ExprKind::Native(..))) =>
            {
                Kind::Lists(rows_of(&items)?)
            }
            () => Kind::Ints(None),
        };
        let item = list.item()?;
        let items: Vec<Option<Expr>> =
            items.into_iter().map(|found| self.coerce_or_report(found, &item)).collect();
        let items = items.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::List(items), ty: Ty::new(list), range })
    }

    fn tuple<'t>(&mut self, items: impl Iterator<Item = &'t syn::Expr>, range: Range<usize>) -> Option<Expr> {
        let items: Vec<Option<Expr>> = items.map(|item| self.expr(item)).collect();
        let items: Vec<Expr> = items.into_iter().collect::<Option<_>>()?;
        let ty = Ty::new(Kind::Tuple(items.iter().map(|item| item.ty.clone()).collect()));
        Some(Expr { kind: ExprKind::Tuple(items), ty, range })
    }

    fn tuple_as(&mut self, tuple: &syn::ExprTuple, want: &[Ty], range: Range<usize>) -> Option<Expr> {
        if tuple.elems.len() != want.len() {
            let span = self.at(&range);
            return self.refuse(catalogue::value_count(span, want.len(), tuple.elems.len()));
        }
        let items: Vec<Option<Expr>> =
            tuple.elems.iter().zip(want).map(|(item, want)| self.expr_as(item, want)).collect();
        let items = items.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::Tuple(items), ty: Ty::new(Kind::Tuple(want.to_vec())), range })
    }

    /// Reports two uses of one gradient, as present and as optional: generated code can only have one of them.
    fn refuse_mixed_gradients(&mut self, expr: &Expr) -> Option<()> {
        match name::mixed_gradients(expr) {
            Some((optional, required)) => {
                let (optional, required) = (self.at(&optional), self.at(&required));
                self.refuse(catalogue::gradients_mixed(optional, required))
            }
            None => Some(()),
        }
    }
}

/// The common kind of the items of all rows, if rows are lists of values: the type that the others widen to. Empty rows
/// are ignored.
fn rows_of(rows: &[Expr]) -> Option<ItemKind> {
    let is = |item: ItemKind| {
        rows.iter().any(|row| same_list(&row.ty.kind, &item.list().into()) && !coerce::is_empty_list(row))
    };
    let order = [ItemKind::Bool, ItemKind::Str, ItemKind::DType, ItemKind::Scalar, ItemKind::Float];
    Some(order.into_iter().find(|item| is(*item)).unwrap_or(ItemKind::Int))
}

/// Whether two kinds of lists are equal apart from their declared lengths.
fn same_list(a: &Kind, b: &Kind) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}
