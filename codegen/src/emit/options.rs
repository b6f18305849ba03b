//! The struct of options of an operator: a setter for each argument with a default.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::names::{doc, ident, parameter};
use super::{bind, document};
use crate::analysis::naming;
use crate::model::{Arg, Default, Kind, Op};

/// The name of an operator's struct of options.
pub(super) fn options_name(op: &Op) -> Ident {
    ident(&naming::options(op))
}

/// An option as an argument of the dispatcher.
pub(super) fn option_argument(arg: &Arg) -> TokenStream {
    let name = parameter(arg);
    match (&arg.ty.kind, arg.ty.optional) {
        (Kind::Tensor | Kind::Generator | Kind::Lists(_), true) => {
            quote!(options.#name.as_ref().into())
        }
        (
            Kind::Str
            | Kind::Ints(_)
            | Kind::Floats
            | Kind::Bools(_)
            | Kind::Scalars
            | Kind::Strs
            | Kind::DTypes
            | Kind::Tensors
            | Kind::OptionalTensors,
            true,
        ) => {
            quote!(options.#name.as_deref().into())
        }
        (Kind::Tensor | Kind::Generator | Kind::Lists(_), false) => quote!(rt::Arg::from(&options.#name)),
        (Kind::Str, false) => quote!(options.#name.as_str().into()),
        (
            Kind::Ints(_)
            | Kind::Floats
            | Kind::Bools(_)
            | Kind::Scalars
            | Kind::Strs
            | Kind::DTypes
            | Kind::Tensors
            | Kind::OptionalTensors,
            false,
        ) => {
            quote!(rt::Arg::from(&options.#name[..]))
        }
        _ => quote!(options.#name.into()),
    }
}

/// The struct with its defaults and setters; nothing if no argument has a default.
pub(super) fn options_struct(op: &Op) -> TokenStream {
    let optional: Vec<(&Arg, &Default)> =
        op.args.iter().filter_map(|arg| Some((arg, arg.default.as_ref()?))).collect();
    if optional.is_empty() {
        return TokenStream::new();
    }
    let name = options_name(op);
    let fields = optional.iter().map(|(arg, default)| field(arg, default));
    let doc = doc(&format!("Options of [`{0}`](fn@{0}).", op.rust_name));
    quote! {
        rt::options! {
            #doc
            #name;
            #(#fields)*
        }
    }
}

/// A field: its type and default, then what its setter takes and makes of it.
fn field(arg: &Arg, default: &Default) -> TokenStream {
    let name = parameter(arg);
    let doc = doc(&format!("Sets `{}` ({}, {} by default).", arg.name, arg.ty, document::default(default)));
    let (ty, value) = match &arg.ty.kind {
        Kind::Int if naming::named_values(arg).is_some() => (quote!(impl Into<i64>), quote!(#name.into())),
        Kind::Scalar => (quote!(impl Into<rt::Scalar>), quote!(#name.into())),
        Kind::Str => (quote!(&str), quote!(#name.to_owned())),
        Kind::Ints(_) => (quote!(impl AsRef<[i64]>), quote!(#name.as_ref().to_vec())),
        Kind::Floats => (quote!(impl AsRef<[f64]>), quote!(#name.as_ref().to_vec())),
        Kind::Bools(_) => (quote!(impl AsRef<[bool]>), quote!(#name.as_ref().to_vec())),
        Kind::Strs => {
            let texts = quote!(#name.iter().map(|text| rt::Text::Owned(text.as_ref().to_owned())).collect());
            (quote!(&[impl AsRef<str>]), texts)
        }
        Kind::DTypes => (quote!(impl AsRef<[rt::DType]>), quote!(#name.as_ref().to_vec())),
        Kind::Lists(item) => {
            let item = bind::item_type(*item);
            (quote!(impl Into<rt::Lists<#item>>), quote!(#name.into()))
        }
        Kind::Tensor | Kind::Generator => {
            let ty = bind::borrowed_type(&arg.ty.required());
            (ty, quote!(#name.clone()))
        }
        _ => (bind::owned_type(&arg.ty.required()), quote!(#name)),
    };
    let value = if arg.ty.optional { quote!(Some(#value)) } else { value };
    let (field, default) = (bind::owned_type(&arg.ty), super::default::field(default, &arg.ty));
    quote! {
        #doc
        #name: #field = #default, set #ty => #value;
    }
}
