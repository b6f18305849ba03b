//! Defaults of arguments as Rust: an argument of a call, a field of the options, static data.
//!
//! In: a default and the type of its argument. Out: tokens. The type of a list's items follows from the
//! type alone, because lowering has checked them against it.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

use super::bind::item_type;
use super::expr::{plain_float as float, plain_int as int};
use super::names::ident;
use crate::model::{Default, ItemKind, Kind, Ty};

/// As an argument of the dispatcher: `rt::Arg::Int(1)`.
pub(super) fn argument(default: &Default, ty: &Ty) -> TokenStream {
    match (default, &ty.kind) {
        (Default::None, _) => quote!(rt::Arg::None),
        (Default::List(rows), Kind::Lists(item)) => {
            let lists = lists(rows, *item);
            quote!(rt::Arg::from(const { &#lists }))
        }
        (Default::List(items), kind) => {
            let (variant, items) = (variant(kind), flat(items, kind));
            quote!(rt::Arg::#variant(const { &[#(#items),*] }))
        }
        (Default::Str(text), _) => quote!(rt::Arg::Str(#text)),
        (default, kind) => {
            let (variant, value) = (variant(kind), plain(default, kind));
            quote!(rt::Arg::#variant(#value))
        }
    }
}

/// As an owned value: `vec![1, 2]`.
pub(super) fn field(default: &Default, ty: &Ty) -> TokenStream {
    let value = match (default, &ty.kind) {
        (Default::None, _) => return quote!(None),
        (Default::List(rows), Kind::Lists(item)) => lists(rows, *item),
        (Default::List(items), kind) => {
            let items = flat(items, kind);
            quote!(vec![#(#items),*])
        }
        (Default::Str(text), _) => quote!(#text.to_owned()),
        (default, kind) => plain(default, kind),
    };
    if ty.optional { quote!(Some(#value)) } else { value }
}

/// As static data of a definition: `DefaultValue::Int(1)`. A number is of the kind that it was
/// written as, also where any number is taken.
pub(super) fn constant(default: &Default, ty: &Ty) -> TokenStream {
    let value = match (default, &ty.kind) {
        (Default::None, _) => quote!(None),
        (Default::List(rows), Kind::Lists(item)) => {
            let (variant, lists) = (variant(&item.kind().into()), lists(rows, *item));
            quote!(Lists(rt::lists::AnyLists::#variant(const { &#lists })))
        }
        (Default::List(items), kind) => {
            let (variant, items) = (variant(kind), flat(items, kind));
            quote!(#variant(const { &[#(#items),*] }))
        }
        (Default::Bool(value), _) => quote!(Bool(#value)),
        (Default::Int(value), _) => {
            let value = match *value {
                value @ 0.. => proc_macro2::Literal::i64_unsuffixed(value).into_token_stream(),
                value => int(value),
            };
            quote!(Int(#value))
        }
        (Default::Float(value), _) => {
            let value = float(*value);
            quote!(Float(#value))
        }
        (Default::Str(text), _) => quote!(Str(#text)),
        (default, kind) => {
            let (variant, value) = (variant(kind), plain(default, kind));
            quote!(#variant(#value))
        }
    };
    quote!(DefaultValue::#value)
}

/// The runtime's name of values of a kind.
fn variant(kind: &Kind) -> proc_macro2::Ident {
    ident(match kind {
        Kind::Bool => "Bool",
        Kind::Int => "Int",
        Kind::Float => "Float",
        Kind::Scalar => "Scalar",
        Kind::Str => "Str",
        Kind::DType => "DType",
        Kind::MemoryFormat => "MemoryFormat",
        Kind::Bools(_) => "Bools",
        Kind::Ints(_) => "Ints",
        Kind::Floats => "Floats",
        Kind::Scalars => "Scalars",
        Kind::Strs => "Strs",
        Kind::DTypes => "DTypes",
        other => unreachable!("no default is {other:?}"),
    })
}

/// The items of a list of that kind.
fn flat(items: &[Default], list: &Kind) -> Vec<TokenStream> {
    let item = list.item().expect("the type of a list").kind;
    items.iter().map(|value| plain(value, &item)).collect()
}

/// Rows, all items in order and where each row ends.
fn lists(rows: &[Default], item: ItemKind) -> TokenStream {
    let (mut items, mut ends) = (Vec::new(), Vec::new());
    for row in rows {
        if let Default::List(row) = row {
            items.extend(row.iter().map(|value| plain(value, &item.kind().into())));
        }
        ends.push(items.len());
    }
    let ty = item_type(item);
    quote!(rt::Lists::<#ty>::of_static(const { &[#(#items),*] }, &[#(#ends),*]))
}

/// One value of a kind.
fn plain(default: &Default, kind: &Kind) -> TokenStream {
    let is_scalar = *kind == Kind::Scalar;
    match default {
        Default::Bool(value) if is_scalar => quote!(rt::Scalar::Bool(#value)),
        Default::Bool(value) => quote!(#value),
        Default::Int(value) => {
            let value = int(*value);
            if is_scalar { quote!(rt::Scalar::Int(#value)) } else { value }
        }
        Default::Float(value) => {
            let value = float(*value);
            if is_scalar { quote!(rt::Scalar::Float(#value)) } else { value }
        }
        Default::Str(text) => quote!(rt::Text::Borrowed(#text)),
        Default::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(rt::DType::#dtype)
        }
        Default::MemoryFormat(format) => {
            let variant = ident(format.ident());
            quote!(rt::MemoryFormat::#variant)
        }
        Default::None | Default::List(_) => unreachable!("no plain value: {default:?}"),
    }
}
