//! Conversions between types of expressions.

use super::{Checker, Mode, draft};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{ItemKind, Kind, Ty};

/// The cost of a conversion: none, an implicit widening, or impossible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fit {
    Exact,
    Converted,
    Never,
}

/// Whether a value of one type is acceptable where another is required.
pub(super) fn fit(found: &Ty, want: &Ty, is_empty_list: bool) -> Fit {
    if found == want {
        return Fit::Exact;
    }
    if want.optional {
        if found.kind == Kind::None {
            return Fit::Converted;
        }
        let inner = fit(&found.required(), &want.required(), is_empty_list);
        return if found.optional { inner } else { inner.max(Fit::Converted) };
    }
    if found.optional {
        return Fit::Never;
    }
    let converts = match (&found.kind, &want.kind) {
        (Kind::Ints(_), Kind::Ints(_)) | (Kind::Bools(_), Kind::Bools(_)) => return Fit::Exact,
        // The values of a call with several results, converted to optional ones.
        (Kind::Tuple(found), Kind::Tuple(want)) if found.len() == want.len() => {
            found.iter().zip(want).all(|(found, want)| found == want || becomes_optional(found, want))
        }
        (Kind::Int, Kind::Float | Kind::Scalar | Kind::Ints(_)) => true,
        (Kind::Float, Kind::Scalar) => true,
        (Kind::Bool, Kind::Scalar | Kind::Int) => true,
        (Kind::Int | Kind::Float | Kind::Scalar | Kind::RealElement, Kind::Element) => true,
        (Kind::Int | Kind::Float | Kind::Scalar, Kind::RealElement) => true,
        (Kind::Ints(_), Kind::Floats | Kind::Scalars) => true,
        (Kind::Tensors, Kind::OptionalTensors) => true,
        (Kind::Lists(ItemKind::Int), Kind::Lists(ItemKind::Float | ItemKind::Scalar)) => true,
        (Kind::Lists(_), Kind::Lists(_)) => is_empty_list,
        (
            Kind::Ints(_),
            Kind::Tensors
            | Kind::OptionalTensors
            | Kind::Bools(_)
            | Kind::Strs
            | Kind::DTypes
            | Kind::Lists(_),
        ) => is_empty_list,
        _ => false,
    };
    if converts { Fit::Converted } else { Fit::Never }
}

/// Whether one of several values can be converted independent of its expression.
pub(super) fn becomes_optional(found: &Ty, want: &Ty) -> bool {
    match (&found.kind, &want.kind) {
        (Kind::Tensor, Kind::Tensor) => !found.optional && want.optional,
        (Kind::Tensors, Kind::OptionalTensors) => !found.optional && !want.optional,
        (Kind::None, _) => want.optional,
        _ => false,
    }
}

/// Whether a list, or each of its rows, is empty, so that its kind is undetermined.
pub(super) fn is_empty_list(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::List(items) if items.iter().all(is_empty_list))
}

/// Empty rows, as rows of the required kind.
fn empty_rows(expr: Expr, want: &Ty) -> Expr {
    let row = want.kind.item();
    let kind = match (expr.kind, row) {
        (ExprKind::List(rows), Some(row)) => {
            ExprKind::List(rows.into_iter().map(|found| Expr { ty: row.clone(), ..found }).collect())
        }
        (kind, _) => kind,
    };
    Expr { kind, ty: want.required(), range: expr.range }
}

/// An expression that is always an error and so has every type.
fn is_refusal(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::NotImplemented(_) | ExprKind::Opaque(_))
}

impl Checker<'_> {
    /// How well an expression fits a type.
    pub(super) fn fit(&self, expr: &Expr, want: &Ty) -> Fit {
        if draft::is_open(expr) {
            return draft::fit(want);
        }
        if is_refusal(expr) || self.is_native_value(expr, want) {
            return Fit::Exact;
        }
        let int = Ty::new(Kind::Int);
        let found = if self.is_native_number(expr, want) { &int } else { &expr.ty };
        fit(found, want, is_empty_list(expr))
    }

    /// Whether a Rust function is called where a number is required: it then returns an integer.
    fn is_native_number(&self, expr: &Expr, want: &Ty) -> bool {
        matches!(want.kind, Kind::Float | Kind::Scalar) && self.is_native_value(expr, &Ty::new(Kind::Int))
    }

    /// The result of a Rust function as the required plain type; any other expression unchanged.
    pub(super) fn native_as(&self, expr: Expr, want: &Ty) -> Expr {
        if self.is_native_value(&expr, want) { Expr { ty: want.clone(), ..expr } } else { expr }
    }

    /// Whether a Rust function returns the required plain value. The Rust compiler checks its type.
    fn is_native_value(&self, expr: &Expr, want: &Ty) -> bool {
        matches!(expr.kind, ExprKind::Native(..))
            && matches!(self.scope.mode, Mode::Derivative | Mode::Forward | Mode::Decompose)
            && !want.optional
            && matches!(want.kind, Kind::Bool | Kind::Int | Kind::DType | Kind::Ints(_))
            && matches!(expr.ty.kind, Kind::Ints(_))
    }

    /// The expression as the required type.
    pub(super) fn coerce(&self, expr: Expr, want: &Ty) -> Option<Expr> {
        if draft::is_open(&expr) {
            return Some(draft::decide(expr, want));
        }
        if is_refusal(&expr) || self.is_native_value(&expr, want) {
            return Some(Expr { ty: want.clone(), ..expr });
        }
        let expr = match self.is_native_number(&expr, want) {
            true => self.native_as(expr, &Ty::new(Kind::Int)),
            false => expr,
        };
        let expr = match (&expr.ty.kind, &want.kind) {
            (Kind::Lists(_), Kind::Lists(_)) if is_empty_list(&expr) => empty_rows(expr, want),
            _ => expr,
        };
        match self.fit(&expr, want) {
            Fit::Exact => Some(expr),
            Fit::Converted => {
                let range = expr.range.clone();
                Some(Expr { kind: ExprKind::Convert(Box::new(expr)), ty: want.clone(), range })
            }
            Fit::Never => None,
        }
    }

    /// The expression as the required type, or a diagnostic.
    pub(super) fn coerce_or_report(&mut self, expr: Expr, want: &Ty) -> Option<Expr> {
        if self.fit(&expr, want) != Fit::Never {
            return self.coerce(expr, want);
        }
        let span = self.at(&expr.range);
        if let (Kind::Tuple(wanted), false) = (&want.kind, want.optional) {
            let found = match &expr.ty.kind {
                Kind::Tuple(items) => items.len(),
                _ => 1,
            };
            if found != wanted.len() {
                return self.refuse(catalogue::value_count(span, wanted.len(), found));
            }
        }
        let hint = self.conversion_hint(&expr.ty, want);
        self.refuse(catalogue::type_mismatch(span, &want.to_string(), &expr.ty.to_string(), hint))
    }

    /// The correct conversion of one type to another, as a hint.
    fn conversion_hint(&self, found: &Ty, want: &Ty) -> Option<String> {
        if found.optional && fit(&found.required(), want, false) != Fit::Never {
            return Some("it may be absent: test it with `is_some()` and take it with `unwrap()`".to_owned());
        }
        if found.kind == Kind::None {
            return Some(format!("a `{want}` is always there"));
        }
        if found.holds_tensors() && (want.is_number() || want.kind == Kind::DType) {
            return Some(
                "a tensor's value is not known here; only its sizes, dtype and device are".to_owned(),
            );
        }
        match (&found.kind, &want.kind) {
            (Kind::Int, Kind::Bool) => Some("write a comparison, such as `n != 0`".to_owned()),
            (Kind::Float, Kind::Int) => Some("write an integer".to_owned()),
            (Kind::Bool, Kind::Element) if self.scope.mode == Mode::FunctionDerivative => {
                Some("write `if … { 1 } else { 0 }`".to_owned())
            }
            (Kind::Bool, Kind::Element) => {
                Some("write `dtype: bool` if the output is a mask, or `if … { a } else { b }`".to_owned())
            }
            (Kind::Element, Kind::Bool) => Some("write a comparison, such as `self != 0`".to_owned()),
            (Kind::Element, Kind::RealElement) => {
                Some("take the real part or the absolute value with a scalar function".to_owned())
            }
            (Kind::Tuple(_), Kind::Tuple(_)) => Some(
                "take the values out and put them together again: `{ let all = …; (all[0], …) }`".to_owned(),
            ),
            (Kind::Tuple(_), _) => Some("take one of the values: `values[0]`".to_owned()),
            (Kind::Int, Kind::DType) | (Kind::Str, Kind::DType) => {
                Some("write a dtype's name such as `float32`, or a rule".to_owned())
            }
            (Kind::DType, Kind::Ints(_)) => Some("`dtype` has a key of its own".to_owned()),
            _ => None,
        }
    }

    /// Both expressions converted to a common type.
    pub(super) fn unify(&mut self, a: Expr, b: Expr) -> Option<(Expr, Expr)> {
        if draft::is_open(&a) && draft::is_open(&b) {
            return Some((draft::settled(a), draft::settled(b)));
        }
        let (a, b) = match draft::is_open(&a) {
            true => (draft::decide(a, &b.ty), b),
            false => (a, b),
        };
        if self.fit(&b, &a.ty) != Fit::Never {
            let ty = a.ty.clone();
            return Some((a, self.coerce(b, &ty)?));
        }
        if self.fit(&a, &b.ty) != Fit::Never {
            let ty = b.ty.clone();
            return Some((self.coerce(a, &ty)?, b));
        }
        // `None` in one branch makes the other optional.
        if a.ty.kind == Kind::None || b.ty.kind == Kind::None {
            let ty = if a.ty.kind == Kind::None { b.ty.clone() } else { a.ty.clone() }.or_none();
            return Some((self.coerce(a, &ty)?, self.coerce(b, &ty)?));
        }
        let (first, second) = (a.ty.to_string(), b.ty.to_string());
        let (first_span, span) = (self.at(&a.range), self.at(&b.range));
        self.refuse(catalogue::branch_types(span, &second, first_span, &first))
    }
}
