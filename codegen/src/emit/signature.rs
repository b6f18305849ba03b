//! The public functions of an operator as text, for people who ask how to call it.

use quote::quote;

use super::api;
use super::naming::Form;
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
            let name = function.name();
            let params = function.params();
            let typed = params.iter().map(|(name, ty)| quote!(#name: #ty));
            let result = function.result();
            let method = function.receiver().map(|receiver| {
                let others = params.iter().map(|(name, _)| name).filter(|name| **name != receiver);
                let others: Vec<String> = others.map(ToString::to_string).collect();
                format!("{receiver}.{name}({})", others.join(", "))
            });
            let function_text = one_line(quote!(pub fn #name(#(#typed),*) -> #result {}));
            Signature { form: function.form, function: function_text, method }
        })
        .collect()
}

/// The parameters of a Rust kernel that takes every argument, as text: `self_: View<'_, T>`.
pub fn rust_kernel_parameters(op: &Op) -> Vec<String> {
    let arguments: Vec<usize> = (0..op.args.len()).collect();
    rust_kernel(op, &arguments).1
}

/// The function that a Rust kernel of that name must be if it takes these arguments.
pub fn rust_kernel_signature(op: &Op, name: &str, arguments: &[usize]) -> String {
    let (generics, parameters) = rust_kernel(op, arguments);
    let generics: Vec<String> = generics.iter().map(|generic| format!("{generic}: Element")).collect();
    format!("pub fn {name}<{}>({}) -> Result<()>", generics.join(", "), parameters.join(", "))
}

/// The type parameters and the parameters of a Rust kernel.
fn rust_kernel(op: &Op, arguments: &[usize]) -> (Vec<String>, Vec<String>) {
    let (generics, parameters) = if op.combinations.is_empty() {
        (vec!["T".to_owned()], super::kernels::kernel_parameters(op, arguments))
    } else {
        // A type for each tensor, because rows of dtypes say which go together.
        let (generics, parameters) = super::combined::parameters(op, arguments);
        (generics.iter().map(ToString::to_string).collect(), parameters)
    };
    let text = |parameter| {
        let function = one_line(quote!(pub fn f(#parameter) {}));
        function.trim_start_matches("pub fn f(").trim_end_matches(')').to_owned()
    };
    (generics, parameters.into_iter().map(text).collect())
}

/// A function without its body, in one line and without the generator's name for the runtime.
fn one_line(item: proc_macro2::TokenStream) -> String {
    let text = match syn::parse2::<syn::File>(item.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        Err(_) => item.to_string(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace("rt::", "").replace("( ", "(").replace(", )", ")");
    line.trim_end_matches("{}").trim_end().to_owned()
}
