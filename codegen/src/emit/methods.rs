//! Operators as methods of the tensor that their entries say, `self` or the first one.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::api::{Function, forms};
use super::names::doc;
use super::options::options_name;
use super::{Generation, Selection};
use crate::analysis::naming;

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let methods: Vec<TokenStream> = generation
        .own_ops()
        .filter(|op| op.receiver.is_some())
        .flat_map(forms)
        .map(|function| method(&function))
        .collect();
    if methods.is_empty() && generation.selection != Selection::All {
        return TokenStream::new();
    }
    let doc = doc(&format!("The operators of `{}` as methods of tensors.", generation.config.library));
    quote! {
        #doc
        pub trait TensorOps {
            /// The tensor the methods work on.
            fn as_tensor(&self) -> &rt::Tensor;
            #(#methods)*
        }

        impl TensorOps for rt::Tensor {
            fn as_tensor(&self) -> &rt::Tensor {
                self
            }
        }
    }
}

fn method(function: &Function<'_>) -> TokenStream {
    let name = function.name();
    let params = function.params();
    let options = options_name(function.op);
    let own = function.receiver();
    let declared = params.iter().filter(|(name, _)| Some(name) != own.as_ref()).map(|(name, ty)| {
        // Without such a struct an argument may have its name.
        match naming::has_options(function.op) && name == naming::OPTIONS_PARAMETER {
            true => quote!(#name: &super::functions::#options),
            false => quote!(#name: #ty),
        }
    });
    let result = function.result();
    let summary = function.op.doc.split("\n\n").next().unwrap_or_default();
    let attributes = super::document::attributes(function.op);
    let doc = doc(&format!("{summary}\n\nSee [`{name}`](fn@super::{name})."));
    let receiver = format_ident!("self");
    let passed = params.iter().map(|(name, _)| {
        if Some(name) == own.as_ref() { quote!(#receiver.as_tensor()) } else { quote!(#name) }
    });
    quote! {
        #doc
        #attributes
        #[track_caller]
        fn #name(&#receiver, #(#declared),*) -> #result {
            super::functions::#name(#(#passed),*)
        }
    }
}
