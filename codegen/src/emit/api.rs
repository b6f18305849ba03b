//! The functions users call, and the ones generated formulas call.
//!
//! An argument with a default is an option: `add(a, b)` uses the defaults, `add_with(a, b, options)`
//! takes them from a struct with a setter each, so that a new option breaks no caller.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::names::{doc, ident, parameter, position, raw_name};
use super::options::{option_argument, options_name, options_struct};
use super::{Generation, bind, document, enums};
use crate::analysis::naming::{self, Form};
use crate::model::{Arg, Kind, Op, OpId};

pub(super) fn emit_raw(generation: &Generation<'_>) -> TokenStream {
    generation.own_ops().map(|op| raw(generation, op)).collect()
}

fn raw(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let name = raw_name(op);
    let params = op.args.iter().map(|arg| {
        let (name, ty) = (parameter(arg), bind::borrowed_type(&arg.ty));
        quote!(#name: #ty)
    });
    let values = op.args.iter().map(|arg| {
        let name = parameter(arg);
        quote!(#name.into())
    });
    let result = bind::owned_type(&op.result_type());
    let def = generation.definition(op);
    let call = functional_call(op, &quote!(&#def), quote!(&[#(#values),*]));
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        #doc
        pub fn #name(#(#params),*) -> rt::Result<#result> {
            #call
        }
    }
}

/// The call of the functional form, with its result as Rust values; `def` refers to the definition.
fn functional_call(op: &Op, def: &TokenStream, args: TokenStream) -> TokenStream {
    if op.is_supplied() {
        return quote!(rt::call::supplied(#def));
    }
    if !op.returns_tensors() {
        return quote!(rt::call::host_result(rt::call::invoke_host(#def, #args)?));
    }
    if op.may_lack_results() {
        return with_absent(op, def, &args);
    }
    match op.outputs.as_slice() {
        [only] if only.ty.kind == Kind::Tensors => {
            quote!(Ok(rt::call::invoke(#def, #args)?.into_vec()))
        }
        [_] => quote!(rt::call::invoke_single(#def, #args)),
        several => {
            let hidden = several.len() - op.visible().len();
            taken_apart(op.visible().len(), hidden, quote!(rt::call::invoke(#def, #args)?))
        }
    }
}

/// Outputs as Rust values, without those that stand behind the ones that users get.
fn taken_apart(visible: usize, hidden: usize, outputs: TokenStream) -> TokenStream {
    let names: Vec<Ident> = (0..visible).map(|index| format_ident!("out{index}")).collect();
    let ignored = std::iter::repeat_n(quote!(_), hidden);
    let pattern = names.iter().map(|name| quote!(#name)).chain(ignored);
    quote! {
        let [#(#pattern),*] = rt::call::several(#outputs);
        Ok((#(#names),*))
    }
}

/// The same where some outputs may be absent: an output that is, is empty, and is no value.
fn with_absent(op: &Op, def: &TokenStream, args: &TokenStream) -> TokenStream {
    let names: Vec<Ident> = (0..op.outputs.len()).map(|index| format_ident!("out{index}")).collect();
    let values = names.iter().zip(op.visible()).enumerate().map(|(index, (name, output))| {
        let bit = position(index);
        match output.ty.optional {
            true => quote!((present & 1 << #bit != 0).then_some(#name)),
            false => quote!(#name),
        }
    });
    quote! {
        let args: &[rt::Arg<'_>] = #args;
        let [#(#names),*] = rt::call::several(rt::call::invoke(#def, args)?);
        let present = rt::op::OpDef::present_results(#def, args)?;
        Ok((#(#values),*))
    }
}

/// The call of the in-place form.
fn inplace_call(op: &Op, def: &TokenStream, args: &TokenStream) -> TokenStream {
    if op.forms.pairs.is_empty() {
        return quote!(rt::call::invoke_inplace(#def, #args));
    }
    match op.unpaired().count() {
        0 => quote!(rt::call::invoke_pairs(#def, #args).map(drop)),
        count => taken_apart(count, 0, quote!(rt::call::invoke_pairs(#def, #args)?)),
    }
}

pub(super) fn emit_functions(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = enums::all(generation);
    tokens.extend(generation.ops_with_functions().map(|op| functions(generation, op)));
    tokens
}

/// One public function: a form of an operator, with or without options.
pub(super) struct Function<'a> {
    pub op: &'a Op,
    pub form: Form,
    pub with_options: bool,
}

/// The public functions that are written at an operator: all but those that it shares with an overload that leads.
pub(super) fn own_forms(op: &Op) -> Vec<Function<'_>> {
    forms(op).into_iter().filter(|function| !naming::stands_elsewhere(op, function.form)).collect()
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

    /// The argument that is a tensor or a number, with the overload for numbers.
    pub fn operand(&self) -> Option<(usize, OpId)> {
        naming::operand(self.op, self.form)
    }

    /// The parameters of lifetimes that those of types refer to.
    pub fn lifetimes(&self) -> Option<TokenStream> {
        self.operand().map(|_| quote!(<'a>))
    }

    /// The parameter that the method is called on.
    pub fn receiver(&self) -> Option<Ident> {
        self.op.receiver.map(|index| parameter(&self.op.args[index]))
    }

    /// The parameters, that of the method included, with their types.
    pub fn params(&self) -> Vec<(Ident, TokenStream)> {
        let mut params: Vec<_> = self
            .op
            .args
            .iter()
            .enumerate()
            .filter(|(_, arg)| arg.default.is_none())
            .map(|(index, arg)| match self.operand() {
                Some((operand, _)) if operand == index => {
                    (parameter(arg), quote!(impl Into<rt::TensorOrScalar<'a>>))
                }
                _ => (parameter(arg), public_type(arg)),
            })
            .collect();
        if self.form == Form::Out {
            for name in out_names(self.op) {
                params.push((name, quote!(&mut rt::Tensor)));
            }
        }
        if self.with_options {
            let options = options_name(self.op);
            params.push((ident(naming::OPTIONS_PARAMETER), quote!(impl Into<#options>)));
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
            Form::Inplace => {
                let types: Vec<TokenStream> =
                    self.op.unpaired().map(|output| bind::owned_type(&output.ty)).collect();
                match types.as_slice() {
                    [only] => quote!(rt::Result<#only>),
                    types => quote!(rt::Result<(#(#types),*)>),
                }
            }
            Form::Out => quote!(rt::Result<()>),
        }
    }
}

fn out_names(op: &Op) -> Vec<Ident> {
    naming::out_parameters(op).iter().map(|name| ident(name)).collect()
}

/// The type of a parameter as users write it.
fn public_type(arg: &Arg) -> TokenStream {
    let ty = &arg.ty;
    match (&ty.kind, ty.optional) {
        (Kind::Int, false) if naming::named_values(arg).is_some() => quote!(impl Into<i64>),
        (Kind::Scalar, false) => quote!(impl Into<rt::Scalar>),
        (Kind::Tensors, false) => quote!(&[impl std::borrow::Borrow<rt::Tensor>]),
        (Kind::Ints(_), false) => quote!(impl AsRef<[i64]>),
        (Kind::Strs, false) => quote!(&[impl AsRef<str>]),
        (Kind::Lists(item), false) => {
            let item = bind::item_type(*item);
            quote!(impl Into<rt::Lists<#item>>)
        }
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
        (Kind::Strs, false) => (
            quote! {
                let #name: Vec<rt::Text> =
                    #name.iter().map(|text| rt::Text::Owned(text.as_ref().to_owned())).collect();
            },
            quote!(rt::Arg::Strs(&#name)),
        ),
        (Kind::Lists(item), false) => {
            let item = bind::item_type(*item);
            (quote!(let #name: rt::Lists<#item> = #name.into();), quote!(rt::Arg::from(&#name)))
        }
        (Kind::Int, false) if naming::named_values(arg).is_some() => {
            (quote!(), quote!(rt::Arg::Int(#name.into())))
        }
        _ => (quote!(), quote!(#name.into())),
    }
}

fn functions(generation: &Generation<'_>, op: &Op) -> TokenStream {
    // Overloads of one function have the same options.
    let mut tokens = match op.merged {
        Some(merged) if !merged.leads => TokenStream::new(),
        _ => options_struct(op),
    };
    for function in own_forms(op) {
        tokens.extend(public_function(generation, &function));
    }
    tokens
}

fn public_function(generation: &Generation<'_>, function: &Function<'_>) -> TokenStream {
    let op = function.op;
    let name = function.name();
    let lifetimes = function.lifetimes();
    let params = function.params();
    let params = params.iter().map(|(name, ty)| quote!(#name: #ty));
    let (bindings, call) = call(generation, function);
    let result = function.result();
    let doc = doc(&document::function(function, generation.model));
    let attributes = document::attributes(op);
    quote! {
        #doc
        #attributes
        #[track_caller]
        pub fn #name #lifetimes(#(#params),*) -> #result {
            #bindings
            #call
        }
    }
}

/// What a public function does: it binds its arguments, and calls the dispatcher.
fn call(generation: &Generation<'_>, function: &Function<'_>) -> (TokenStream, TokenStream) {
    let op = function.op;
    let def = generation.definition(op);
    if op.is_supplied() {
        return (TokenStream::new(), quote!(rt::call::supplied(&#def)));
    }
    let mut def = quote!(&#def);
    let (mut bindings, mut values) = (TokenStream::new(), Vec::new());
    if function.with_options {
        let (name, options) = (ident(naming::OPTIONS_PARAMETER), options_name(op));
        bindings.extend(quote!(let #name: #options = #name.into();));
    }
    for (index, arg) in op.args.iter().enumerate() {
        if let Some((operand, with)) = function.operand()
            && operand == index
        {
            let name = parameter(arg);
            let number = generation.definition(&generation.model.ops[with.0]);
            bindings.extend(quote!(let #name: rt::TensorOrScalar<'_> = #name.into();));
            def = quote!(#name.choose(#def, &#number));
            values.push(quote!(#name.into()));
            continue;
        }
        match (&arg.default, function.with_options) {
            (None, _) => {
                let (binding, value) = public_argument(arg);
                bindings.extend(binding);
                values.push(value);
            }
            (Some(_), true) => values.push(option_argument(arg)),
            (Some(default), false) => values.push(super::default::argument(default, &arg.ty)),
        }
    }
    let args = quote!(&[#(#values),*]);
    let call = match function.form {
        Form::Functional => functional_call(op, &def, args),
        Form::Inplace => inplace_call(op, &def, &args),
        Form::Out => {
            let outs = out_names(op);
            quote!(rt::call::invoke_out(#def, #args, &mut [#(#outs),*]))
        }
    };
    (bindings, call)
}
