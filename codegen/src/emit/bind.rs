//! Values of each type taken from borrowed arguments, and their Rust types.

use std::collections::HashSet;

use opsmith_core::ArgKind;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use super::names::{ident, parameter, position};
use crate::model::{Arg, ItemKind, Kind, Ty};

/// The value of an argument, borrowed: `args[1].int()`.
pub(super) fn access(source: TokenStream, ty: &Ty) -> TokenStream {
    let kind = ty.kind.argument().expect("the type of an argument");
    let mut method = ident(kind.access()).into_token_stream();
    if let ArgKind::Lists(item) = kind {
        let item = item_type(item);
        method.extend(quote!(::<#item>));
    }
    if ty.optional { quote!(#source.optional(rt::Arg::#method)) } else { quote!(#source.#method()) }
}

/// `let` bindings of every argument of an operator, from a list of them.
pub(super) fn all(args: &[Arg], list: &Ident) -> TokenStream {
    bindings(args.iter().enumerate(), &list.to_token_stream())
}

/// The same bindings, of the arguments that code mentions.
pub(super) fn used(args: &[Arg], list: &Ident, code: &TokenStream) -> TokenStream {
    let mut mentioned = HashSet::new();
    mention(code.clone(), &mut mentioned);
    let used = args.iter().enumerate().filter(|(_, arg)| mentioned.contains(&parameter(arg).to_string()));
    bindings(used, &list.to_token_stream())
}

/// Bindings of arguments of a kernel's call to their values, from their names in a [`pattern`].
pub(super) fn by_name<'a>(args: impl Iterator<Item = &'a Arg>) -> TokenStream {
    together(args.map(|arg| {
        let name = parameter(arg);
        let value = access(name.to_token_stream(), &arg.ty);
        (name, value)
    }))
}

/// The names of all arguments in order, as a pattern; `_` for those that code does not mention.
pub(super) fn pattern(args: &[Arg], code: &TokenStream) -> TokenStream {
    let mut mentioned = HashSet::new();
    mention(code.clone(), &mut mentioned);
    let names = args.iter().map(|arg| {
        let name = parameter(arg);
        if mentioned.contains(&name.to_string()) { quote!(#name) } else { quote!(_) }
    });
    quote!([#(#names),*])
}

/// Bindings of some arguments from a list of all.
pub(super) fn bindings<'a>(args: impl Iterator<Item = (usize, &'a Arg)>, list: &TokenStream) -> TokenStream {
    together(args.map(|(index, arg)| {
        let index = position(index);
        (parameter(arg), access(quote!(#list[#index]), &arg.ty))
    }))
}

/// Bindings of names to values, as many a statement as its line holds.
pub(super) fn together(bindings: impl Iterator<Item = (Ident, TokenStream)>) -> TokenStream {
    /// The widest line, without its indentation and `let () = ();`.
    const WIDTH: usize = 90;
    let mut statements: Vec<Vec<(Ident, TokenStream)>> = Vec::new();
    let mut width = WIDTH;
    for (name, value) in bindings {
        let added = format!("{name}{value}").replace(' ', "").len() + 4;
        width += added;
        match statements.last_mut() {
            Some(statement) if width <= WIDTH => statement.push((name, value)),
            _ => {
                width = added;
                statements.push(vec![(name, value)]);
            }
        }
    }
    let statements = statements.iter().map(|statement| match statement.as_slice() {
        [(name, value)] => quote!(let #name = #value;),
        several => {
            let (names, values): (Vec<_>, Vec<_>) = several.iter().map(|(name, value)| (name, value)).unzip();
            quote!(let (#(#names),*) = (#(#values),*);)
        }
    });
    statements.collect()
}

/// Every identifier of some code.
fn mention(code: TokenStream, into: &mut HashSet<String>) {
    for token in code {
        match token {
            TokenTree::Ident(ident) => _ = into.insert(ident.to_string()),
            TokenTree::Group(group) => mention(group.stream(), into),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The Rust type of a borrowed value.
pub(super) fn borrowed_type(ty: &Ty) -> TokenStream {
    let plain = match ty.kind {
        Kind::Tensor => quote!(&rt::Tensor),
        Kind::Tensors => quote!(&[rt::Tensor]),
        Kind::OptionalTensors => quote!(&[Option<rt::Tensor>]),
        Kind::Bool => quote!(bool),
        Kind::Int => quote!(i64),
        Kind::Float => quote!(f64),
        Kind::Scalar => quote!(rt::Scalar),
        Kind::Str => quote!(&str),
        Kind::Ints(_) => quote!(&[i64]),
        Kind::Floats => quote!(&[f64]),
        Kind::Bools(_) => quote!(&[bool]),
        Kind::Scalars => quote!(&[rt::Scalar]),
        Kind::Strs => quote!(&[rt::Text]),
        Kind::DTypes => quote!(&[rt::DType]),
        Kind::Lists(item) => {
            let item = item_type(item);
            quote!(&rt::Lists<#item>)
        }
        Kind::DType => quote!(rt::DType),
        Kind::Device => quote!(rt::Device),
        Kind::MemoryFormat => quote!(rt::MemoryFormat),
        Kind::MemoryLayout => quote!(rt::MemoryLayout),
        Kind::Generator => quote!(&rt::Generator),
        Kind::Foreign(_) | Kind::None | Kind::Unit | Kind::Tuple(_) | Kind::Element | Kind::RealElement => {
            unreachable!("not the type of an argument")
        }
    };
    if ty.optional { quote!(Option<#plain>) } else { plain }
}

/// The Rust type of an item of a list of lists.
pub(super) fn item_type(item: ItemKind) -> TokenStream {
    match item {
        ItemKind::Bool => quote!(bool),
        ItemKind::Int => quote!(i64),
        ItemKind::Float => quote!(f64),
        ItemKind::Scalar => quote!(rt::Scalar),
        ItemKind::Str => quote!(rt::Text),
        ItemKind::DType => quote!(rt::DType),
    }
}

/// The Rust type of an owned value.
pub(super) fn owned_type(ty: &Ty) -> TokenStream {
    let plain = match &ty.kind {
        Kind::Tensor => quote!(rt::Tensor),
        Kind::Tensors => quote!(Vec<rt::Tensor>),
        Kind::OptionalTensors => quote!(Vec<Option<rt::Tensor>>),
        Kind::Str => quote!(String),
        Kind::Ints(_) => quote!(Vec<i64>),
        Kind::Floats => quote!(Vec<f64>),
        Kind::Bools(_) => quote!(Vec<bool>),
        Kind::Scalars => quote!(Vec<rt::Scalar>),
        Kind::Strs => quote!(Vec<rt::Text>),
        Kind::DTypes => quote!(Vec<rt::DType>),
        Kind::Lists(item) => {
            let item = item_type(*item);
            quote!(rt::Lists<#item>)
        }
        Kind::Generator => quote!(rt::Generator),
        Kind::Unit => quote!(()),
        Kind::Tuple(items) => {
            let items = items.iter().map(owned_type);
            quote!((#(#items),*))
        }
        _ => borrowed_type(&ty.required()),
    };
    if ty.optional { quote!(Option<#plain>) } else { plain }
}
