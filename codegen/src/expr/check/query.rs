//! Methods: metadata queries, and operators called as methods.

use std::ops::Range;

use super::{Checker, Mode, draft};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind, QUERIES, Query};
use crate::model::{Kind, Ty};

impl Checker<'_> {
    pub(super) fn method(&mut self, call: &syn::ExprMethodCall, range: Range<usize>) -> Option<Expr> {
        let name = call.method.to_string();
        let place = self.places.of(&call.method);
        if let Some(turbofish) = &call.turbofish {
            let place = self.places.of(turbofish);
            return self.refuse(catalogue::syntax_without_meaning(self.at(&place), "methods have no types"));
        }
        if name == "map" && self.scope.mode == Mode::Decompose {
            return self.map(call, range);
        }
        let receiver = self.expr(&call.receiver);
        let given = self.arguments(call.args.iter());
        let (receiver, mut given) = (draft::settled(receiver?), given?);
        if let Some(row) = QUERIES.iter().find(|row| row.name == name)
            && let Some(ty) = query_type(row.query, &receiver.ty)
        {
            let args = self.unnamed(given)?;
            return self.query(row.query, ty, receiver, args, (&name, range));
        }
        let calls_operators = matches!(self.scope.mode, Mode::Derivative | Mode::Forward | Mode::Decompose);
        if receiver.ty.kind == Kind::Tensor && calls_operators {
            given.positional.insert(0, receiver);
            return self.overloaded(&name, given, place, range);
        }
        let known: Vec<&str> = QUERIES
            .iter()
            .filter(|row| query_type(row.query, &receiver.ty).is_some())
            .map(|row| row.name)
            .collect();
        let span = self.at(&place);
        self.refuse(catalogue::method_unknown(span, &name, &receiver.ty.to_string(), &known))
    }

    fn query(
        &mut self,
        query: Query,
        ty: Ty,
        receiver: Expr,
        args: Vec<Expr>,
        (name, range): (&str, Range<usize>),
    ) -> Option<Expr> {
        let wanted: Vec<Ty> = match query {
            Query::Size | Query::Contains | Query::SizesAlong => vec![Ty::new(Kind::Int)],
            Query::Concat if receiver.ty.kind == Kind::Tensors => vec![Ty::new(Kind::Tensors)],
            Query::Concat => vec![Ty::new(Kind::Ints(None))],
            Query::UnwrapOr => vec![receiver.ty.required()],
            _ => Vec::new(),
        };
        if args.len() != wanted.len() {
            let (span, what) = (self.at(&range), format!("`{name}`"));
            let doc = QUERIES.iter().find(|row| row.name == name).map_or("", |row| row.doc);
            let hint = format!("it gives {doc}");
            let found = args.len();
            return self.refuse(catalogue::argument_count(span, &what, wanted.len(), found, Some(&hint)));
        }
        let args: Vec<Option<Expr>> =
            args.into_iter().zip(&wanted).map(|(arg, want)| self.coerce_or_report(arg, want)).collect();
        let args = args.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::Query(query, Box::new(receiver), args), ty, range })
    }
}

/// The type of a query's result, if the receiver has that query.
fn query_type(query: Query, receiver: &Ty) -> Option<Ty> {
    let tensor = receiver.is_tensor();
    let dtype = *receiver == Ty::new(Kind::DType);
    let list = !receiver.optional && receiver.kind.item().is_some();
    let number = receiver.is_number();
    let ints = !receiver.optional && matches!(receiver.kind, Kind::Ints(_));
    let kind = match query {
        Query::Sizes | Query::Strides if tensor => Kind::Ints(None),
        Query::Size | Query::Dim | Query::Numel | Query::StorageOffset if tensor => Kind::Int,
        Query::IsContiguous if tensor => Kind::Bool,
        Query::DType if tensor => Kind::DType,
        Query::Device if tensor => Kind::Device,
        Query::Layout if tensor => Kind::MemoryLayout,
        Query::IsComplex if *receiver == Ty::new(Kind::Scalar) => Kind::Bool,
        Query::IsComplex | Query::IsFloat | Query::IsInt if tensor || dtype => Kind::Bool,
        Query::Len if list => Kind::Int,
        Query::SizesAlong if *receiver == Ty::new(Kind::Tensors) => Kind::Ints(None),
        Query::IsSome | Query::IsNone if receiver.optional => Kind::Bool,
        Query::Unwrap | Query::UnwrapOr if receiver.optional => return Some(receiver.required()),
        Query::Conj if number => return Some(receiver.clone()),
        Query::IsZero if number => Kind::Bool,
        Query::Contains if ints => Kind::Bool,
        Query::Concat if ints => Kind::Ints(None),
        Query::Concat if *receiver == Ty::new(Kind::Tensors) => Kind::Tensors,
        _ => return None,
    };
    Some(Ty::new(kind))
}
