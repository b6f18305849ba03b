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
    let only = converted(op);
    let fields = optional.iter().map(|(arg, default)| {
        let is_only = only.is_some_and(|only| std::ptr::eq(only, *arg));
        field(arg, default, is_only)
    });
    let converts = only.map_or(String::new(), |only| format!(" `{}` alone converts to them.", only.name));
    let doc = doc(&format!("Options of [`{0}`](fn@{0}).{converts}", op.rust_name));
    // Those of a function that only formulas call are as hidden as it is.
    let hidden = op.facts.backward_only.then(|| quote!(#[doc(hidden)]));
    quote! {
        rt::options! {
            #doc
            #hidden
            #name;
            #(#fields)*
        }
    }
}

/// The option whose value alone converts to the options: the first, if callers by position may give it, as in
/// `argmax(x, 1)`. Options that are added later come after it, so it stays the first.
pub(super) fn converted(op: &Op) -> Option<&Arg> {
    op.args.iter().find(|arg| arg.default.is_some()).filter(|arg| !arg.keyword_only)
}

/// The generic parameters and the type of a value that converts to the options, where its setter takes a type.
fn source(given: &TokenStream, arg: &Arg) -> TokenStream {
    let of = |bound: TokenStream| quote!([V: #bound] V);
    match &arg.ty.kind {
        Kind::Int if naming::named_values(arg).is_some() => of(quote!(Into<i64>)),
        Kind::Scalar => of(quote!(Into<rt::Scalar>)),
        Kind::Ints(_) => of(quote!(AsRef<[i64]>)),
        Kind::Floats => of(quote!(AsRef<[f64]>)),
        Kind::Bools(_) => of(quote!(AsRef<[bool]>)),
        Kind::DTypes => of(quote!(AsRef<[rt::DType]>)),
        Kind::Strs => quote!([V: AsRef<str>] &[V]),
        Kind::Lists(item) => {
            let item = bind::item_type(*item);
            of(quote!(Into<rt::Lists<#item>>))
        }
        _ => quote!([] #given),
    }
}

/// A field: its type and default, then the argument and value of its setter, and its conversions to the options.
fn field(arg: &Arg, default: &Default, converts: bool) -> TokenStream {
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
    let source = converts.then(|| {
        let source = source(&ty, arg);
        quote!(, from #source)
    });
    quote! {
        #doc
        #name: #field = #default, set #ty => #value #source;
    }
}
