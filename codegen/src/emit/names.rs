//! Names in generated code.

use proc_macro2::Ident;
use quote::format_ident;

use crate::model::Op;

/// An identifier for a name of the spec; a keyword gets an underscore.
pub(super) fn ident(name: &str) -> Ident {
    match syn::parse_str::<Ident>(name) {
        Ok(ident) if name != "_" => ident,
        _ => format_ident!("{name}_"),
    }
}

/// The name of an operator's function that takes every argument: `add_tensor` for `add.Tensor`.
pub fn raw_name(op: &Op) -> Ident {
    ident(&rust_file_stem(&op.name))
}

/// A full name in snake case, as identifiers and file names want it.
pub fn rust_file_stem(name: &str) -> String {
    name.replace("::", "_").replace('.', "_").to_lowercase()
}

/// The name of an operator's definition: `ADD_TENSOR`.
pub(super) fn def_name(op: &Op) -> Ident {
    ident(&rust_file_stem(&op.name).to_uppercase())
}

/// A name of several words in upper camel case: `SumDim` for `sum_dim`.
pub(super) fn camel(name: &str) -> String {
    name.split('_')
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
                .unwrap_or_default()
        })
        .collect()
}

/// A position as generated code writes it, without a type suffix.
pub(super) fn position(index: usize) -> proc_macro2::Literal {
    proc_macro2::Literal::usize_unsuffixed(index)
}

/// Documentation as a comment wants it: each line set off from the slashes.
pub(super) fn doc(text: &str) -> proc_macro2::TokenStream {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote::quote!(#(#[doc = #lines])*)
}
