//! Queries of values (`size`, `len`, `is_some`, …) and inference rules to Rust.

use opsmith_core::rules::{Rule, RuleParam};
use proc_macro2::TokenStream;
use quote::quote;

use super::Emit;
use crate::emit::names::ident;
use crate::model::Kind;
use crate::model::expr::{Expr, ExprKind, Query};

impl Emit<'_> {
    /// A query of a tensor, or of its presence: answered from saved metadata if its elements are not at hand.
    pub(super) fn tensor_query(&self, query: Query, base: &Expr, method: TokenStream) -> TokenStream {
        if let ExprKind::Variable(variable) = &base.kind
            && let Some(answer) = (self.metadata)(variable, query)
        {
            return answer;
        }
        let base = self.borrowed(base);
        quote!((#base).#method)
    }

    pub(super) fn query(&self, query: Query, base: &Expr, args: &[Expr]) -> TokenStream {
        match query {
            Query::Size => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                let dim = self.plain(&args[0]);
                quote!(checked::size(#sizes, #dim)?)
            }
            Query::Dim => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                quote!(((#sizes).len() as i64))
            }
            Query::Numel => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                quote!((#sizes).iter().product::<i64>())
            }
            Query::StorageOffset => self.tensor_query(query, base, quote!(layout().offset)),
            Query::IsContiguous => self.tensor_query(query, base, quote!(is_contiguous())),
            Query::DType => self.tensor_query(query, base, quote!(dtype())),
            Query::Device => self.tensor_query(query, base, quote!(device())),
            // Only one layout exists.
            Query::Layout => quote!(rt::MemoryLayout::Strided),
            Query::IsComplex | Query::IsFloat | Query::IsInt => self.dtype_query(query, base),
            Query::Len => {
                let base = self.borrowed(base);
                quote!(((#base).len() as i64))
            }
            Query::IsSome => self.tensor_query(query, base, quote!(is_some())),
            Query::IsNone => self.tensor_query(query, base, quote!(is_none())),
            Query::Unwrap => {
                let base = self.plain(base);
                quote!(checked::present(#base)?)
            }
            Query::UnwrapOr => {
                let (base, other) = (self.plain(base), self.plain(&args[0]));
                quote!((#base).unwrap_or(#other))
            }
            Query::Conj => {
                let value = self.plain(base);
                if base.ty.kind == Kind::Scalar { quote!((#value).conj()) } else { value }
            }
            Query::IsZero => self.zero_test(base),
            Query::Contains => {
                let (base, value) = (self.borrowed(base), self.plain(&args[0]));
                quote!((#base).contains(&(#value)))
            }
            Query::Sizes | Query::Strides | Query::Concat | Query::SizesAlong => {
                unreachable!("lists are not plain")
            }
        }
    }

    /// A query of a dtype, or of that of a tensor or a number.
    fn dtype_query(&self, query: Query, base: &Expr) -> TokenStream {
        let dtype = if base.ty.holds_tensors() && !base.ty.optional {
            self.tensor_query(Query::DType, base, quote!(dtype()))
        } else if base.ty.kind == Kind::Scalar {
            let value = self.plain(base);
            quote!((#value).dtype())
        } else {
            self.plain(base)
        };
        let method = match query {
            Query::IsComplex => quote!(is_complex),
            Query::IsFloat => quote!(is_float),
            _ => quote!(is_int),
        };
        quote!((#dtype).#method())
    }

    /// Whether a number is zero, or a condition false.
    fn zero_test(&self, base: &Expr) -> TokenStream {
        let value = self.plain(base);
        match base.ty.kind {
            Kind::Scalar => quote!((!(#value).to_bool())),
            Kind::Bool => quote!((!#value)),
            Kind::Float => quote!((#value == 0.0)),
            _ => quote!((#value == 0)),
        }
    }

    pub(super) fn inference_call(&self, expr: &Expr) -> TokenStream {
        match &expr.kind {
            ExprKind::Rule(rule, args) => {
                let module = match rule {
                    Rule::Shape(_) => quote!(shape),
                    Rule::DType(_) => quote!(dtype),
                };
                let function = ident(rule.name());
                if rule.params() == [RuleParam::Operands] {
                    let args = args.iter().map(|arg| {
                        let value = self.borrowed(arg);
                        quote!(#value.into())
                    });
                    return quote!(#module::#function(&[#(#args),*])?);
                }
                let args = args.iter().map(|arg| self.borrowed(arg));
                quote!(#module::#function(#(#args),*)?)
            }
            ExprKind::Native(path, args) => {
                let path = syn::parse_str::<syn::Path>(path).expect("checked as a path");
                let args = args.iter().map(|arg| self.borrowed(arg));
                quote!(kernels::#path(#(#args),*)?)
            }
            other => unreachable!("not an inference call: {other:?}"),
        }
    }
}
