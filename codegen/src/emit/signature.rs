//! The public functions of an operator as text, for people who ask how to call it.

use opsmith_core::Backend;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::adapter::{Parameter, Views};
use super::{adapter, api, bind, combined};
use crate::analysis::naming::Form;
use crate::model::Op;

/// One public function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The form it calls.
    pub form: Form,
    /// The function, as Rust writes it: `pub fn add(self_: &Tensor, other: &Tensor) -> Result<Tensor>`.
    pub function: String,
    /// The call as a method of a tensor, if there is one: `self_.add(other)`.
    pub method: Option<String>,
}

/// Every public function of an operator, in the order of the documentation.
pub fn signatures(op: &Op) -> Vec<Signature> {
    api::forms(op)
        .iter()
        .map(|function| {
            let (name, lifetimes) = (function.name(), function.lifetimes());
            let params = function.params();
            let typed = params.iter().map(|(name, ty)| quote!(#name: #ty));
            let result = function.result();
            let method = function.receiver().map(|receiver| {
                let others = params.iter().map(|(name, _)| name).filter(|name| **name != receiver);
                let others: Vec<String> = others.map(ToString::to_string).collect();
                format!("{receiver}.{name}({})", others.join(", "))
            });
            let function_text = one_line(quote!(pub fn #name #lifetimes(#(#typed),*) -> #result {}));
            Signature { form: function.form, function: function_text, method }
        })
        .collect()
}

/// The parameters of the host's Rust kernel that takes every argument, as text: `self_: View<'_, T>`.
pub fn rust_kernel_parameters(op: &Op) -> Vec<String> {
    let arguments: Vec<usize> = (0..op.args.len()).collect();
    rust_kernel(op, &arguments, Backend::Cpu).1
}

/// The function that a backend's Rust kernel of that name must be if it takes these arguments.
pub fn rust_kernel_signature(op: &Op, name: &str, arguments: &[usize], backend: Backend) -> String {
    let (generics, parameters) = rust_kernel(op, arguments, backend);
    let generics: Vec<String> = generics.iter().map(|generic| format!("{generic}: Element")).collect();
    let generics = if generics.is_empty() { String::new() } else { format!("<{}>", generics.join(", ")) };
    format!("pub fn {name}{generics}({}) -> Result<()>", parameters.join(", "))
}

/// The type parameters and the parameters of a Rust kernel.
fn rust_kernel(op: &Op, arguments: &[usize], backend: Backend) -> (Vec<String>, Vec<String>) {
    let (generics, parameters) = if op.combinations.is_empty() {
        let generics = Views::of(backend).generics(vec![format_ident!("T")]);
        (generics, adapter::parameters(op, arguments, backend))
    } else {
        // A type for each tensor, because rows of dtypes say which go together.
        combined::parameters(op, arguments, backend)
    };
    let generics = generics.iter().map(ToString::to_string).collect();
    let text = |parameter: Parameter| {
        let parameter = parameter.declared();
        let function = one_line(quote!(pub fn f(#parameter) {}));
        function.trim_start_matches("pub fn f(").trim_end_matches(')').to_owned()
    };
    (generics, parameters.into_iter().map(text).collect())
}

/// A function without its body, in one line and without the generator's name for the runtime.
fn one_line(item: TokenStream) -> String {
    let text = match syn::parse2::<syn::File>(item.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        Err(_) => item.to_string(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace("rt::", "").replace("( ", "(").replace(", )", ")");
    line.trim_end_matches("{}").trim_end().to_owned()
}

/// The number of element types and the types of the parameters of a backend's Rust kernel that takes these arguments.
pub fn kernel_parameter_types(op: &Op, arguments: &[usize], backend: Backend) -> (usize, Vec<TokenStream>) {
    let (generics, parameters) = match op.combinations.is_empty() {
        true => (usize::from(Views::of(backend).typed), adapter::parameters(op, arguments, backend)),
        false => {
            let (generics, parameters) = combined::parameters(op, arguments, backend);
            (generics.len(), parameters)
        }
    };
    (generics, parameters.into_iter().map(|parameter| parameter.ty).collect())
}

/// The types of the parameters of a layout function.
pub fn view_parameter_types(op: &Op) -> Vec<TokenStream> {
    let mut types = host_parameter_types(op);
    if let Some(first) = types.first_mut() {
        *first = quote!(&rt::Layout);
    }
    types
}

/// The types of the parameters of a function that takes every argument.
pub fn host_parameter_types(op: &Op) -> Vec<TokenStream> {
    op.args.iter().map(|arg| bind::borrowed_type(&arg.ty)).collect()
}
