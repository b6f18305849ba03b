//! Operators whose first argument is `self` as methods of tensors.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::api::{Function, forms};
use super::names::doc;
use super::options::options_name;
use super::{Generation, Selection};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let methods: Vec<TokenStream> = generation
        .own_ops()
        .filter(|op| op.method && !op.facts.backward_only)
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
    let declared = params.iter().skip(1).map(|(name, ty)| {
        if name == "options" { quote!(#name: &super::functions::#options) } else { quote!(#name: #ty) }
    });
    let passed = params.iter().skip(1).map(|(name, _)| quote!(#name));
    let result = function.result();
    let summary = function.op.doc.split("\n\n").next().unwrap_or_default();
    let attributes = super::document::attributes(function.op);
    let doc = doc(&format!("{summary}\n\nSee [`{name}`](fn@super::{name})."));
    let receiver = format_ident!("self");
    quote! {
        #doc
        #attributes
        #[track_caller]
        fn #name(&#receiver, #(#declared),*) -> #result {
            super::functions::#name(#receiver.as_tensor(), #(#passed),*)
        }
    }
}
