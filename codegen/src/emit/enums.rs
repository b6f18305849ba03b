//! Rust enums for integers whose values have names: `Reduction::Mean` for `enum: {none: 0, mean: 1}`.
//!
//! Arguments of one name share an enum; `lower` has seen to it that they have the same values.

use std::borrow::Cow;
use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use super::names::{doc, ident};
use super::{Generation, Selection};
use crate::analysis::naming;
use crate::model::Arg;

/// The enum of an argument.
pub(super) fn name(arg: &Arg) -> String {
    naming::camel(&arg.name)
}

/// The names of a library's enums.
pub(super) fn names(generation: &Generation<'_>) -> BTreeSet<String> {
    let args = generation.model.ops.iter().flat_map(|op| &op.args);
    args.filter(|arg| naming::named_values(arg).is_some()).map(name).collect()
}

/// The enums of a library, each once.
pub(super) fn all(generation: &Generation<'_>) -> TokenStream {
    let whole = match generation.selection {
        // The first piece of the module has those of all.
        Selection::Range(ref range) if range.start > 0 => return TokenStream::new(),
        Selection::Range(_) => Selection::All,
        ref other => other.clone(),
    };
    let generation = Generation { model: generation.model, config: generation.config, selection: whole };
    let mut written = BTreeSet::new();
    let mut tokens = TokenStream::new();
    for arg in generation.own_ops().flat_map(|op| &op.args) {
        if let Some(names) = naming::named_values(arg)
            && written.insert(name(arg))
        {
            tokens.extend(definition(arg, names));
        }
    }
    tokens
}

fn definition(arg: &Arg, names: &[(Cow<'static, str>, i64)]) -> TokenStream {
    let name = ident(&name(arg));
    let variants = names.iter().map(|(name, value)| {
        let variant = ident(&naming::camel(name));
        let doc = doc(&format!("`{name}`, which is {value}."));
        let value = super::expr::plain_int(*value);
        quote!(#doc #variant = #value)
    });
    let doc = doc(&format!("The values of arguments called `{}`.", arg.name));
    quote! {
        #doc
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(i64)]
        pub enum #name { #(#variants),* }

        impl From<#name> for i64 {
            fn from(value: #name) -> i64 {
                value as i64
            }
        }
    }
}
