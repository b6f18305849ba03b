//! Names in generated code, as identifiers.

use proc_macro2::Ident;
use quote::format_ident;

use super::naming;
use crate::model::Op;

/// An identifier for a name of the spec; a keyword gets an underscore.
pub(super) fn ident(name: &str) -> Ident {
    match crate::expr::path::is_identifier(name) {
        true => format_ident!("{name}"),
        false => format_ident!("{name}_"),
    }
}

/// The name of an operator's function that takes every argument: `add_tensor` for `add.Tensor`.
pub fn raw_name(op: &Op) -> Ident {
    ident(&naming::stem(&op.name))
}

/// The name of an operator's definition: `ADD_TENSOR`.
pub(super) fn def_name(op: &Op) -> Ident {
    ident(&naming::stem(&op.name).to_uppercase())
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

/// The name of a function that belongs to an operator: `add_tensor_infer`. A keyword's underscore makes
/// way for the suffix.
pub(super) fn part_name(op: &Op, suffix: &str) -> Ident {
    let raw = raw_name(op).to_string();
    format_ident!("{}_{suffix}", raw.trim_end_matches('_'))
}
