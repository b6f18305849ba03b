//! The functions users call, and the ones generated formulas call.
//!
//! An argument with a default is an option: `add(a, b)` uses the defaults, `add_with(a, b, options)`
//! takes them from a struct with a setter each, so that a new option breaks no caller.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::names::{def_name, doc, ident, parameter, raw_name};
use super::naming::{self, Form};
use super::{Generation, bind};
use crate::model::{Arg, Default, Kind, Op, Ty};

pub(super) fn emit_raw(generation: &Generation<'_>) -> TokenStream {
    generation.own_ops().map(raw).collect()
}

fn raw(op: &Op) -> TokenStream {
    let name = raw_name(op);
    let params = op.args.iter().map(|arg| {
        let (name, ty) = (parameter(arg), bind::borrowed_type(&arg.ty));
        quote!(#name: #ty)
    });
    let values = op.args.iter().map(|arg| {
        let name = parameter(arg);
        quote!(rt::Arg::from(#name))
    });
    let result = bind::owned_type(&op.result_type());
    let call = functional_call(op, quote!(&[#(#values),*]));
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        #doc
        #[doc = ""]
        #[doc = " # Errors"]
        #[doc = " As the function users call."]
        pub fn #name(#(#params),*) -> rt::Result<#result> {
            #call
        }
    }
}

/// The call of the functional form, with its result as Rust values.
fn functional_call(op: &Op, args: TokenStream) -> TokenStream {
    let def = def_name(op);
    if op.is_supplied() {
        return quote!(rt::dispatch::supplied(&super::defs::#def, #args));
    }
    if !op.returns_tensors() {
        return quote!(rt::dispatch::host_result(rt::dispatch::invoke_host(&super::defs::#def, #args)?));
    }
    match op.outputs.as_slice() {
        [only] if only.ty.kind == Kind::Tensors => {
            quote!(Ok(rt::dispatch::invoke(&super::defs::#def, #args)?.into_vec()))
        }
        [_] => quote!(rt::dispatch::invoke_single(&super::defs::#def, #args)),
        several => {
            let names: Vec<Ident> = (0..several.len()).map(|index| format_ident!("out{index}")).collect();
            quote! {
                let [#(#names),*] = rt::dispatch::several(rt::dispatch::invoke(&super::defs::#def, #args)?);
                Ok((#(#names),*))
            }
        }
    }
}

pub(super) fn emit_functions(generation: &Generation<'_>) -> TokenStream {
    generation.own_ops().map(functions).collect()
}

/// One public function: a form of an operator, with or without options.
pub(super) struct Function<'a> {
    pub op: &'a Op,
    pub form: Form,
    pub with_options: bool,
}

/// Every public function of an operator.
pub(super) fn forms(op: &Op) -> Vec<Function<'_>> {
    let forms = naming::forms(op).into_iter();
    forms.map(|(form, with_options)| Function { op, form, with_options }).collect()
}

impl Function<'_> {
    /// `add`, `add_with`, `add_`, `add_with_`, `add_out`, `add_with_out`.
    pub fn name(&self) -> Ident {
        ident(&naming::function(self.op, self.form, self.with_options))
    }

    /// The parameters, `self` included, with their types.
    pub fn params(&self) -> Vec<(Ident, TokenStream)> {
        let mut params: Vec<_> = self
            .op
            .args
            .iter()
            .filter(|arg| arg.default.is_none())
            .map(|arg| (parameter(arg), public_type(&arg.ty)))
            .collect();
        if self.form == Form::Out {
            for name in out_names(self.op) {
                params.push((name, quote!(&mut rt::Tensor)));
            }
        }
        if self.with_options {
            let options = options_name(self.op);
            params.push((ident(naming::OPTIONS_PARAMETER), quote!(&#options)));
        }
        params
    }

    /// What it returns.
    pub fn result(&self) -> TokenStream {
        match self.form {
            Form::Functional => {
                let ty = bind::owned_type(&self.op.result_type());
                quote!(rt::Result<#ty>)
            }
            Form::Inplace | Form::Out => quote!(rt::Result<()>),
        }
    }

    /// Documentation, as text.
    pub fn doc(&self) -> String {
        let op = self.op;
        let mut text = op.doc.clone();
        match self.form {
            Form::Functional => {}
            Form::Inplace => text.push_str("\n\nIn place: writes the result into the first argument, which must have the result's shape."),
            Form::Out => text.push_str("\n\nWrites the result into `out`, which must have the result's shape or no elements."),
        }
        text.push_str(&format!("\n\n```text\n{}\n```\n", op.signature));
        let described: Vec<String> = op
            .args
            .iter()
            .map(|arg| match &arg.default {
                Some(default) => {
                    format!("- `{}`: {}, {} by default", arg.name, arg.ty, describe_default(default))
                }
                None => format!("- `{}`: {}", arg.name, arg.ty),
            })
            .collect();
        if !described.is_empty() {
            text.push_str(&format!("\n# Arguments\n{}\n", described.join("\n")));
        }
        text.push_str("\n# Errors\nIf shapes, dtypes or attributes do not go together; the error says which and what to do.\n");
        text.push_str(&format!("\nDeclared at `{}`.", op.location));
        text
    }
}

fn describe_default(default: &Default) -> String {
    match default {
        Default::None => "`None`".into(),
        Default::Bool(value) => format!("`{value}`"),
        Default::Int(value) => format!("`{value}`"),
        Default::Float(value) => format!("`{value:?}`"),
        Default::Str(value) => format!("`{value:?}`"),
        Default::Ints(values) => format!("`{values:?}`"),
        Default::Floats(values) => format!("`{values:?}`"),
        Default::Bools(values) => format!("`{values:?}`"),
        Default::DType(dtype) => format!("`{dtype}`"),
        Default::MemoryFormat(name) => format!("`{name}`"),
    }
}

fn out_names(op: &Op) -> Vec<Ident> {
    naming::out_parameters(op).iter().map(|name| ident(name)).collect()
}

/// The name of an operator's struct of options.
pub(super) fn options_name(op: &Op) -> Ident {
    ident(&naming::options(op))
}

/// The type of a parameter as users write it.
fn public_type(ty: &Ty) -> TokenStream {
    match (&ty.kind, ty.optional) {
        (Kind::Scalar, false) => quote!(impl Into<rt::Scalar>),
        (Kind::Tensors, false) => quote!(&[impl std::borrow::Borrow<rt::Tensor>]),
        (Kind::Ints(_), false) => quote!(impl AsRef<[i64]>),
        _ => bind::borrowed_type(ty),
    }
}

/// Turns a parameter of the public type into an argument.
fn public_argument(arg: &Arg) -> (TokenStream, TokenStream) {
    let name = parameter(arg);
    match (&arg.ty.kind, arg.ty.optional) {
        (Kind::Scalar, false) => (quote!(), quote!(rt::Arg::Scalar(#name.into()))),
        (Kind::Tensors, false) => (
            quote!(let #name: Vec<rt::Tensor> = #name.iter().map(|tensor| tensor.borrow().clone()).collect();),
            quote!(rt::Arg::Tensors(&#name)),
        ),
        (Kind::Ints(_), false) => (quote!(), quote!(rt::Arg::Ints(#name.as_ref()))),
        _ => (quote!(), quote!(rt::Arg::from(#name))),
    }
}

fn functions(op: &Op) -> TokenStream {
    let mut tokens = options_struct(op);
    for function in forms(op) {
        tokens.extend(public_function(&function));
    }
    tokens
}

fn public_function(function: &Function<'_>) -> TokenStream {
    let op = function.op;
    let name = function.name();
    let params = function.params();
    let params = params.iter().map(|(name, ty)| quote!(#name: #ty));
    let (mut bindings, mut values) = (TokenStream::new(), Vec::new());
    for arg in &op.args {
        match (&arg.default, function.with_options) {
            (None, _) => {
                let (binding, value) = public_argument(arg);
                bindings.extend(binding);
                values.push(value);
            }
            (Some(_), true) => values.push(option_argument(arg)),
            (Some(default), false) => values.push(default_argument(default, &arg.ty)),
        }
    }
    let args = quote!(&[#(#values),*]);
    let def = def_name(op);
    let call = match function.form {
        Form::Functional => functional_call(op, args),
        Form::Inplace | Form::Out if op.is_supplied() => {
            quote!(rt::dispatch::supplied(&super::defs::#def, #args))
        }
        Form::Inplace => quote!(rt::dispatch::invoke_inplace(&super::defs::#def, #args)),
        Form::Out => {
            let outs = out_names(op);
            quote!(rt::dispatch::invoke_out(&super::defs::#def, #args, &mut [#(#outs),*]))
        }
    };
    let result = function.result();
    let doc = doc(&function.doc());
    quote! {
        #doc
        pub fn #name(#(#params),*) -> #result {
            #bindings
            #call
        }
    }
}

fn default_argument(default: &Default, ty: &Ty) -> TokenStream {
    match default {
        Default::None => quote!(rt::Arg::None),
        Default::Bool(value) => {
            scalar_or(ty, quote!(rt::Scalar::Bool(#value)), quote!(rt::Arg::Bool(#value)))
        }
        Default::Int(value) => {
            let value = super::expr::int(*value);
            scalar_or(ty, quote!(rt::Scalar::Int(#value)), quote!(rt::Arg::Int(#value)))
        }
        Default::Float(value) => {
            let value = super::expr::float(*value);
            scalar_or(ty, quote!(rt::Scalar::Float(#value)), quote!(rt::Arg::Float(#value)))
        }
        Default::Str(value) => quote!(rt::Arg::Str(#value)),
        Default::Ints(values) => {
            let values = values.iter().map(|value| super::expr::int(*value));
            quote!(rt::Arg::Ints(&[#(#values),*]))
        }
        Default::Floats(values) => {
            let values = values.iter().map(|value| super::expr::float(*value));
            quote!(rt::Arg::Floats(&[#(#values),*]))
        }
        Default::Bools(values) => quote!(rt::Arg::Bools(&[#(#values),*])),
        Default::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(rt::Arg::DType(rt::DType::#dtype))
        }
        Default::MemoryFormat(name) => {
            let name = ident(name);
            quote!(rt::Arg::MemoryFormat(rt::MemoryFormat::#name))
        }
    }
}

fn scalar_or(ty: &Ty, scalar: TokenStream, plain: TokenStream) -> TokenStream {
    if ty.kind == Kind::Scalar { quote!(rt::Arg::Scalar(#scalar)) } else { plain }
}

fn option_argument(arg: &Arg) -> TokenStream {
    let name = parameter(arg);
    match (&arg.ty.kind, arg.ty.optional) {
        (Kind::Tensor | Kind::Generator, true) => quote!(rt::Arg::from(options.#name.as_ref())),
        (
            Kind::Str
            | Kind::Ints(_)
            | Kind::Floats
            | Kind::Bools(_)
            | Kind::Scalars
            | Kind::Tensors
            | Kind::OptionalTensors,
            true,
        ) => {
            quote!(rt::Arg::from(options.#name.as_deref()))
        }
        (Kind::Tensor | Kind::Generator, false) => quote!(rt::Arg::from(&options.#name)),
        (Kind::Str, false) => quote!(rt::Arg::from(options.#name.as_str())),
        (
            Kind::Ints(_)
            | Kind::Floats
            | Kind::Bools(_)
            | Kind::Scalars
            | Kind::Tensors
            | Kind::OptionalTensors,
            false,
        ) => {
            quote!(rt::Arg::from(&options.#name[..]))
        }
        _ => quote!(rt::Arg::from(options.#name)),
    }
}

fn options_struct(op: &Op) -> TokenStream {
    let optional: Vec<(&Arg, &Default)> =
        op.args.iter().filter_map(|arg| Some((arg, arg.default.as_ref()?))).collect();
    if optional.is_empty() {
        return TokenStream::new();
    }
    let name = options_name(op);
    let fields = optional.iter().map(|(arg, _)| {
        let (name, ty) = (parameter(arg), bind::owned_type(&arg.ty));
        quote!(#name: #ty)
    });
    let defaults = optional.iter().map(|(arg, default)| {
        let (name, value) = (parameter(arg), default_field(default, &arg.ty));
        quote!(#name: #value)
    });
    let setters = optional.iter().map(|(arg, default)| setter(arg, default));
    let doc = doc(&format!("Options of [`{0}`](fn@{0}).", op.rust_name));
    quote! {
        #doc
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct #name { #(#fields),* }

        impl Default for #name {
            fn default() -> Self {
                #name { #(#defaults),* }
            }
        }

        impl #name {
            /// The defaults.
            pub fn new() -> Self {
                Self::default()
            }
            #(#setters)*
        }
    }
}

fn default_field(default: &Default, ty: &Ty) -> TokenStream {
    let value = match default {
        Default::None => return quote!(None),
        Default::Bool(value) if ty.kind == Kind::Scalar => quote!(rt::Scalar::Bool(#value)),
        Default::Bool(value) => quote!(#value),
        Default::Int(value) => {
            let value = super::expr::int(*value);
            if ty.kind == Kind::Scalar { quote!(rt::Scalar::Int(#value)) } else { value }
        }
        Default::Float(value) => {
            let value = super::expr::float(*value);
            if ty.kind == Kind::Scalar { quote!(rt::Scalar::Float(#value)) } else { value }
        }
        Default::Str(value) => quote!(#value.to_owned()),
        Default::Ints(values) => {
            let values = values.iter().map(|value| super::expr::int(*value));
            quote!(vec![#(#values),*])
        }
        Default::Floats(values) => {
            let values = values.iter().map(|value| super::expr::float(*value));
            quote!(vec![#(#values),*])
        }
        Default::Bools(values) => quote!(vec![#(#values),*]),
        Default::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(rt::DType::#dtype)
        }
        Default::MemoryFormat(name) => {
            let name = ident(name);
            quote!(rt::MemoryFormat::#name)
        }
    };
    if ty.optional { quote!(Some(#value)) } else { value }
}

fn setter(arg: &Arg, default: &Default) -> TokenStream {
    let name = parameter(arg);
    let doc = doc(&format!("Sets `{}` ({}, {} by default).", arg.name, arg.ty, describe_default(default)));
    let (ty, value) = match &arg.ty.kind {
        Kind::Scalar => (quote!(impl Into<rt::Scalar>), quote!(#name.into())),
        Kind::Str => (quote!(&str), quote!(#name.to_owned())),
        Kind::Ints(_) => (quote!(impl AsRef<[i64]>), quote!(#name.as_ref().to_vec())),
        Kind::Floats => (quote!(impl AsRef<[f64]>), quote!(#name.as_ref().to_vec())),
        Kind::Bools(_) => (quote!(impl AsRef<[bool]>), quote!(#name.as_ref().to_vec())),
        Kind::Tensor | Kind::Generator => {
            let ty = bind::borrowed_type(&arg.ty.required());
            (ty, quote!(#name.clone()))
        }
        _ => (bind::owned_type(&arg.ty.required()), quote!(#name)),
    };
    let value = if arg.ty.optional { quote!(Some(#value)) } else { value };
    quote! {
        #doc
        pub fn #name(mut self, #name: #ty) -> Self {
            self.#name = #value;
            self
        }
    }
}
