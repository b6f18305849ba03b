//! Which types go where others are wanted.

use super::{Checker, Mode};
use crate::expr::{Expr, ExprKind};
use crate::model::{Kind, Ty};

/// How much a conversion changes: none, an implied widening, or not possible.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fit {
    Exact,
    Converted,
    Never,
}

/// Whether a value of one type may stand where another is wanted.
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
        // The values of a call that returns several; each is converted where it is taken out.
        (Kind::Tuple(found), Kind::Tuple(want)) if found.len() == want.len() => {
            let all = found.iter().zip(want).all(|(found, want)| fit(found, want, false) != Fit::Never);
            return if all { Fit::Exact } else { Fit::Never };
        }
        (Kind::Int, Kind::Float | Kind::Scalar | Kind::Ints(_)) => true,
        (Kind::Float, Kind::Scalar) => true,
        (Kind::Bool, Kind::Scalar | Kind::Int) => true,
        (Kind::Int | Kind::Float | Kind::Scalar | Kind::RealElement, Kind::Element) => true,
        (Kind::Int | Kind::Float | Kind::Scalar, Kind::RealElement) => true,
        (Kind::Ints(_), Kind::Floats | Kind::Scalars) => true,
        (Kind::Tensors, Kind::OptionalTensors) => true,
        (Kind::Ints(_), Kind::Tensors | Kind::OptionalTensors | Kind::Bools(_)) => is_empty_list,
        _ => false,
    };
    if converts { Fit::Converted } else { Fit::Never }
}

fn is_empty_list(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::List(items) if items.is_empty())
}

impl Checker<'_> {
    /// How well an expression fits a type.
    pub(super) fn fit(&self, expr: &Expr, want: &Ty) -> Fit {
        if matches!(expr.kind, ExprKind::NotImplemented(_)) || self.is_native_value(expr, want) {
            return Fit::Exact;
        }
        let expr = self.native_number(expr, want);
        fit(&expr.ty, want, is_empty_list(&expr))
    }

    /// A Rust function where a number is wanted gives an integer.
    fn native_number(&self, expr: &Expr, want: &Ty) -> Expr {
        match want.kind {
            Kind::Float | Kind::Scalar => self.native_as(expr.clone(), &Ty::new(Kind::Int)),
            _ => expr.clone(),
        }
    }

    /// The result of a Rust function as the wanted plain type; anything else as it is.
    pub(super) fn native_as(&self, expr: Expr, want: &Ty) -> Expr {
        if self.is_native_value(&expr, want) { Expr { ty: want.clone(), ..expr } } else { expr }
    }

    /// Whether a Rust function gives the plain value wanted. Its type is the compiler's to check.
    fn is_native_value(&self, expr: &Expr, want: &Ty) -> bool {
        matches!(expr.kind, ExprKind::Native(..))
            && matches!(self.scope.mode, Mode::Derivative | Mode::Decompose)
            && !want.optional
            && matches!(want.kind, Kind::Bool | Kind::Int | Kind::DType | Kind::Ints(_))
            && matches!(expr.ty.kind, Kind::Ints(_))
    }

    /// The expression as the wanted type.
    pub(super) fn coerce(&self, expr: Expr, want: &Ty) -> Option<Expr> {
        if matches!(expr.kind, ExprKind::NotImplemented(_)) || self.is_native_value(&expr, want) {
            return Some(Expr { ty: want.clone(), ..expr });
        }
        let expr = self.native_number(&expr, want);
        match self.fit(&expr, want) {
            Fit::Exact => Some(expr),
            Fit::Converted => {
                let range = expr.range.clone();
                Some(Expr { kind: ExprKind::Convert(Box::new(expr)), ty: want.clone(), range })
            }
            Fit::Never => None,
        }
    }

    /// The expression as the wanted type, or a diagnostic.
    pub(super) fn coerce_or_report(&mut self, expr: Expr, want: &Ty) -> Option<Expr> {
        if let (Kind::Tuple(wanted), ExprKind::Tuple(_)) = (&want.kind, &expr.kind) {
            return self.coerce_tuple(expr, wanted);
        }
        if let Some(converted) = self.coerce(expr.clone(), want) {
            return Some(converted);
        }
        let found = expr.ty.to_string();
        let help = match (&expr.ty, want) {
            (found, want) if found.optional && found.required() == *want => {
                Some("it may be absent: test it with `is_some()` and take it with `unwrap()`".to_owned())
            }
            (found, _) if found.holds_tensors() && want.is_number() && self.scope.mode != Mode::Pointwise => {
                Some("a tensor's value is not known here; only its sizes, dtype and device are".to_owned())
            }
            _ => None,
        };
        self.report(
            "E0310",
            format!("a `{want}` is needed here"),
            expr.range,
            format!("this is a `{found}`"),
        )
        .help_if(help);
        None
    }

    fn coerce_tuple(&mut self, expr: Expr, wanted: &[Ty]) -> Option<Expr> {
        let ExprKind::Tuple(items) = expr.kind else { return None };
        if items.len() != wanted.len() {
            let (want, found) = (wanted.len(), items.len());
            self.report(
                "E0311",
                format!("{want} values are needed here"),
                expr.range,
                format!("these are {found}"),
            );
            return None;
        }
        let items: Vec<Option<Expr>> =
            items.into_iter().zip(wanted).map(|(item, want)| self.coerce_or_report(item, want)).collect();
        let items = items.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr {
            kind: ExprKind::Tuple(items),
            ty: Ty::new(Kind::Tuple(wanted.to_vec())),
            range: expr.range,
        })
    }

    /// Both expressions as one type.
    pub(super) fn unify(&mut self, a: Expr, b: Expr) -> Option<(Expr, Expr)> {
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
        let place = (self.locate)(a.range.clone());
        self.report(
            "E0312",
            "the two branches have different types",
            b.range,
            format!("this is a `{second}`"),
        )
        .secondary(place, format!("this is a `{first}`"));
        None
    }
}
