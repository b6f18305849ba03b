//! Conversions between types of expressions to Rust: a number where an optional one is wanted, an
//! integer where a list is.

use proc_macro2::TokenStream;
use quote::quote;

use super::Emit;
use crate::emit::bind::item_type;
use crate::model::expr::Expr;
use crate::model::{ItemKind, Kind, Ty};

impl Emit<'_> {
    pub(super) fn plain_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if to.optional {
            if inner.ty.kind == Kind::None {
                return quote!(None);
            }
            let required = to.required();
            if inner.ty.optional {
                let value = self.plain(inner);
                let converted = convert_plain(quote!(value), &inner.ty.required(), &required);
                return quote!((#value).map(|value| #converted));
            }
            let value = convert_plain(self.plain(inner), &inner.ty, &required);
            return quote!(Some(#value));
        }
        convert_plain(self.plain(inner), &inner.ty, to)
    }

    pub(super) fn borrowed_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if inner.ty.kind == Kind::None {
            return quote!(None);
        }
        if to.optional {
            if inner.ty.optional {
                // `int?` where `int[]?` is wanted: a slice over the one integer.
                let value = self.plain(inner);
                return quote!((&#value).as_ref().map(std::slice::from_ref));
            }
            let required = to.required();
            let value = if inner.ty == required || !needs_conversion(&inner.ty, &required) {
                self.borrowed(inner)
            } else {
                self.borrowed_conversion(inner, &required)
            };
            return quote!(Some(#value));
        }
        match (&inner.ty.kind, &to.kind) {
            (Kind::Int, Kind::Ints(Some(length))) => {
                let (value, length) = (self.plain(inner), *length as usize);
                quote!(&[#value; #length][..])
            }
            (Kind::Int, Kind::Ints(None)) => {
                let value = self.plain(inner);
                quote!(&[#value][..])
            }
            (_, Kind::Lists(_)) => {
                let owned = self.owned_conversion(inner, to);
                quote!(&#owned)
            }
            _ => {
                let owned = self.owned_conversion(inner, to);
                quote!(&(#owned)[..])
            }
        }
    }

    pub(super) fn owned_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if inner.ty.kind == Kind::None {
            return quote!(None);
        }
        if to.optional && !inner.ty.optional {
            let required = to.required();
            let value = if needs_conversion(&inner.ty, &required) {
                self.owned_conversion(inner, &required)
            } else {
                self.owned(inner)
            };
            return quote!(Some(#value));
        }
        match (&inner.ty.kind, &to.kind) {
            (Kind::Tuple(from), Kind::Tuple(to)) => tuple_conversion(&self.owned(inner), from, to),
            (Kind::Tensors, Kind::OptionalTensors) => {
                let value = self.owned(inner);
                quote!((#value).into_iter().map(Some).collect::<Vec<_>>())
            }
            (
                Kind::Ints(_),
                Kind::Tensors | Kind::OptionalTensors | Kind::Bools(_) | Kind::Strs | Kind::DTypes,
            ) => quote!(Vec::new()),
            (Kind::Ints(_), Kind::Lists(item)) => {
                let item = item_type(*item);
                quote!(rt::Lists::<#item>::default())
            }
            (Kind::Lists(_), Kind::Lists(item)) => {
                let value = self.borrowed(inner);
                match item {
                    ItemKind::Scalar => quote!((#value).map(|value| rt::Scalar::Int(*value))),
                    _ => quote!((#value).map(|value| *value as f64)),
                }
            }
            (Kind::Ints(_), Kind::Floats) => {
                let value = self.borrowed(inner);
                // Nothing else says the type of an empty list.
                quote!((#value).iter().map(|value: &i64| *value as f64).collect::<Vec<f64>>())
            }
            (Kind::Ints(_), Kind::Scalars) => {
                let value = self.borrowed(inner);
                quote!((#value).iter().map(|value| rt::Scalar::Int(*value)).collect::<Vec<_>>())
            }
            (Kind::Int, Kind::Ints(_)) => {
                let value = self.borrowed_conversion(inner, to);
                quote!(rt::Dims::from_slice(#value))
            }
            _ => self.owned(inner),
        }
    }
}

/// The items of a tuple, each in the type that it should have.
fn tuple_conversion(tuple: &TokenStream, from: &[Ty], to: &[Ty]) -> TokenStream {
    let names: Vec<_> = (0..to.len()).map(|index| quote::format_ident!("value{index}")).collect();
    let items = names.iter().zip(from.iter().zip(to)).map(|(name, (from, to))| match to.optional {
        true if from.kind == Kind::None => quote!(None),
        true if !from.optional => quote!(Some(#name)),
        false if from.kind != to.kind => quote!(#name.into_iter().map(Some).collect()),
        _ => quote!(#name),
    });
    quote!({ let (#(#names),*) = #tuple; (#(#items),*) })
}

fn needs_conversion(from: &Ty, to: &Ty) -> bool {
    if let (Kind::Lists(from), Kind::Lists(to)) = (&from.kind, &to.kind) {
        return from != to;
    }
    std::mem::discriminant(&from.kind) != std::mem::discriminant(&to.kind)
}

fn convert_plain(value: TokenStream, from: &Ty, to: &Ty) -> TokenStream {
    match (&from.kind, &to.kind) {
        (Kind::Int, Kind::Float) => quote!((#value as f64)),
        (Kind::Bool, Kind::Int) => quote!(i64::from(#value)),
        (Kind::Int, Kind::Scalar) => quote!(rt::Scalar::Int(#value)),
        (Kind::Float, Kind::Scalar) => quote!(rt::Scalar::Float(#value)),
        (Kind::Bool, Kind::Scalar) => quote!(rt::Scalar::Bool(#value)),
        _ => value,
    }
}
