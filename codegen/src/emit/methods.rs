//! Operators as methods of the tensor that their entries say, `self` or the first one.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::api::{Function, own_forms};
use super::names::{doc, methods_name};
use super::options::options_name;
use super::{Generation, Selection, document};
use crate::analysis::naming;

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let methods: Vec<TokenStream> = generation
        .ops_with_functions()
        .filter(|op| op.receiver.is_some())
        .flat_map(own_forms)
        .map(|function| method(&function))
        .collect();
    if methods.is_empty() && generation.selection != Selection::All {
        return TokenStream::new();
    }
    let name = methods_name(generation.config);
    let doc = doc(&format!("The operators of `{}` as methods of tensors.", generation.config.library));
    quote! {
        #doc
        pub trait #name {
            /// The tensor the methods work on.
            fn as_tensor(&self) -> &Tensor;
            #(#methods)*
        }
        impl #name for Tensor {
            fn as_tensor(&self) -> &Tensor {
                self
            }
        }
    }
}

fn method(function: &Function<'_>) -> TokenStream {
    let name = function.name();
    let (lifetimes, params) = (function.lifetimes(), function.params());
    let options = options_name(function.op);
    let own = function.receiver();
    let declared = params.iter().filter(|(name, _)| Some(name) != own.as_ref()).map(|(name, ty)| {
        // Without such a struct an argument may have its name.
        match naming::has_options(function.op) && name == naming::OPTIONS_PARAMETER {
            true => quote!(#name: impl Into<functions::#options>),
            false => quote!(#name: #ty),
        }
    });
    let result = function.result();
    let summary = document::summary(function.op).replace('\n', " ");
    let attributes = document::attributes(function.op);
    let doc = doc(&format!("[`{name}`](fn@super::{name}): {summary}"));
    let receiver = format_ident!("self");
    let passed = params.iter().map(|(name, _)| {
        if Some(name) == own.as_ref() { quote!(#receiver.as_tensor()) } else { quote!(#name) }
    });
    quote! {
        #doc
        #attributes
        #[track_caller]
        fn #name #lifetimes(&#receiver, #(#declared),*) -> #result {
            functions::#name(#(#passed),*)
        }
    }
}
