//! Lists made of others to Rust.

use proc_macro2::TokenStream;
use quote::quote;

use super::Emit;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Kind, Ty};

impl Emit<'_> {
    /// The tensor of each item of a list.
    pub(super) fn map(&self, list: &Expr, names: &[String], body: &Expr) -> TokenStream {
        let name = |name: &String| (self.variable)(&Variable::Local(name.clone()));
        let item = name(&names[0]);
        let (pattern, convert) = match &list.ty.kind {
            Kind::Tensors => (quote!(#item), None),
            Kind::OptionalTensors => (quote!(#item), Some(quote!(let #item = #item.as_ref();))),
            Kind::Strs => (quote!(#item), Some(quote!(let #item = &**#item;))),
            _ => (quote!(&#item), None),
        };
        let (list, body) = (self.borrowed(list), self.owned(body));
        match names.get(1).map(name) {
            Some(position) => quote! {
                checked::map((#list).iter().enumerate(), |(#position, #pattern)| {
                    let #position = #position as i64;
                    #convert
                    Ok(#body)
                })?
            },
            None => quote!(checked::map((#list).iter(), |#pattern| { #convert Ok(#body) })?),
        }
    }

    /// A list followed by another.
    pub(super) fn concat(&self, first: &Expr, other: &Expr, ty: &Ty) -> TokenStream {
        let (first, other) = (self.borrowed(first), self.borrowed(other));
        match ty.kind {
            Kind::Tensors => quote!([#first, #other].concat()),
            _ => quote!(rt::Dims::from_vec([#first, #other].concat())),
        }
    }

    /// The sizes of the tensors of a list along one dimension.
    pub(super) fn sizes_along(&self, base: &Expr, dim: &Expr) -> TokenStream {
        let metas = match &base.kind {
            ExprKind::Variable(variable) => (self.metadata)(variable, Query::SizesAlong),
            _ => None,
        };
        let dim = self.plain(dim);
        match metas {
            Some(metas) => {
                quote!(rt::infer::sizes_along(#metas.iter().map(|meta| &meta.sizes[..]), #dim)?)
            }
            None => {
                let base = self.borrowed(base);
                quote!(rt::infer::sizes_along(#base.iter().map(|tensor| tensor.shape()), #dim)?)
            }
        }
    }
}
