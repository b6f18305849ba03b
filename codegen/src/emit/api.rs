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
    let (mut rows, mut functions) = (TokenStream::new(), TokenStream::new());
    for op in generation.own_ops() {
        let tokens = if invoke(op).is_some() { &mut rows } else { &mut functions };
        tokens.extend(raw(generation, op));
    }
    if !rows.is_empty() {
        rows = quote!(rt::raw! { #rows });
    }
    quote!(#rows #functions)
}

/// A function that takes every argument: a row of the runtime's macro, or more where one call is not all.
fn raw(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let name = raw_name(op);
    let params = op.args.iter().map(|arg| {
        let (name, ty) = (parameter(arg), bind::borrowed_type(&arg.ty));
        quote!(#name: #ty)
    });
    let result = bind::owned_type(&op.result_type());
    let def = generation.definition(op);
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    if let Some(invoke) = invoke(op) {
        return quote!(#doc fn #name(#(#params),*) -> #result = #invoke(&#def););
    }
    let values = op.args.iter().map(|arg| {
        let name = parameter(arg);
        quote!(#name.into())
    });
    let call = functional_call(op, &quote!(&#def), quote!(&[#(#values),*]));
    quote! {
        #doc
        pub fn #name(#(#params),*) -> rt::Result<#result> {
            #call
        }
    }
}

/// The function of the runtime that calls the functional form and gives its result as Rust values, if one does.
fn invoke(op: &Op) -> Option<Ident> {
    /// The runtime takes apart so many outputs.
    const MOST: usize = 8;
    if op.is_supplied() || op.may_lack_results() {
        return None;
    }
    Some(format_ident!(
        "{}",
        match (op.returns_tensors(), op.outputs.as_slice()) {
            (false, _) => "invoke_value",
            (true, [only]) if only.ty.kind == Kind::Tensors => "invoke_list",
            (true, [_]) => "invoke_single",
            (true, _) if (2..=MOST).contains(&op.visible().len()) => "invoke_several",
            (true, _) => return None,
        }
    ))
}

/// The call of the functional form, with its result as Rust values; `def` refers to the definition.
fn functional_call(op: &Op, def: &TokenStream, args: TokenStream) -> TokenStream {
    if let Some(invoke) = invoke(op) {
        return quote!(call::#invoke(#def, #args));
    }
    if op.is_supplied() {
        return quote!(call::supplied(#def));
    }
    if op.may_lack_results() {
        return with_absent(op, def, &args);
    }
    let hidden = op.outputs.len() - op.visible().len();
    taken_apart(op.visible().len(), hidden, quote!(call::invoke(#def, #args)?))
}

/// Outputs as Rust values, without those that stand behind the ones that users get.
fn taken_apart(visible: usize, hidden: usize, outputs: TokenStream) -> TokenStream {
    let names: Vec<Ident> = (0..visible).map(|index| format_ident!("out{index}")).collect();
    let ignored = std::iter::repeat_n(quote!(_), hidden);
    let pattern = names.iter().map(|name| quote!(#name)).chain(ignored);
    quote! {
        let [#(#pattern),*] = call::several(#outputs);
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
        let [#(#names),*] = call::several(call::invoke(#def, args)?);
        let present = rt::op::OpDef::present_results(#def, args)?;
        Ok((#(#values),*))
    }
}

/// The call of the in-place form.
fn inplace_call(op: &Op, def: &TokenStream, args: &TokenStream) -> TokenStream {
    if op.forms.pairs.is_empty() {
        return quote!(call::invoke_inplace(#def, #args));
    }
    match op.unpaired().count() {
        0 => quote!(call::invoke_pairs(#def, #args).map(drop)),
        count => taken_apart(count, 0, quote!(call::invoke_pairs(#def, #args)?)),
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

    /// The parameters that may be given as anything that converts to a type, with that type.
    fn converted(&self) -> Vec<(Ident, TokenStream)> {
        let operand = self.operand().map(|(index, _)| parameter(&self.op.args[index]));
        let operand = operand.map(|name| (name, quote!(rt::TensorOrScalar<'a>)));
        let options = self.with_options.then(|| {
            let options = options_name(self.op);
            (ident(naming::OPTIONS_PARAMETER), quote!(#options))
        });
        operand.into_iter().chain(options).filter(|_| !self.op.is_supplied()).collect()
    }

    /// The type of its result.
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
    let forms = own_forms(op);
    let Some(first) = forms.first() else { return tokens };
    tokens.extend(public_function(generation, first));
    let (rows, others): (Vec<_>, Vec<_>) =
        forms[1..].iter().partition(|function| document::is_plain_form(function));
    if !rows.is_empty() {
        let rows = rows.into_iter().map(|function| row(generation, function));
        let (name, summary) = (first.name(), document::summary(op));
        tokens.extend(quote!(rt::forms! { #name: #summary; #(#rows)* }));
    }
    for function in others {
        tokens.extend(public_function(generation, function));
    }
    tokens
}

fn public_function(generation: &Generation<'_>, function: &Function<'_>) -> TokenStream {
    let op = function.op;
    let name = function.name();
    let lifetimes = function.lifetimes();
    let params = function.params();
    let params = params.iter().map(|(name, ty)| quote!(#name: #ty));
    let converted = function.converted();
    let converted = converted.iter().map(|(name, ty)| quote!(let #name: #ty = #name.into();));
    let (bindings, call) = call(generation, function);
    let result = function.result();
    let doc = doc(&document::function(generation, function));
    let attributes = document::attributes(op);
    quote! {
        #doc
        #attributes
        #[track_caller]
        pub fn #name #lifetimes(#(#params),*) -> #result {
            #(#converted)*
            #bindings
            #call
        }
    }
}

/// A form whose documentation is how it differs from the first, as a row of the runtime's macro.
fn row(generation: &Generation<'_>, function: &Function<'_>) -> TokenStream {
    let (name, lifetimes, result) = (function.name(), function.lifetimes(), function.result());
    let form = match function.form {
        Form::Functional => None,
        Form::Inplace => Some(format_ident!("inplace")),
        Form::Out => Some(format_ident!("out")),
    };
    let options = function.with_options.then(|| format_ident!("options"));
    let converted = function.converted();
    let params = function.params().into_iter().map(|(name, ty)| {
        match converted.iter().find(|(other, _)| *other == name) {
            Some((_, into)) => quote!(#name => #into),
            None => quote!(#name: #ty),
        }
    });
    let (bindings, call) = call(generation, function);
    let body = if bindings.is_empty() { call } else { quote!({ #bindings #call }) };
    let attributes = document::attributes(function.op);
    quote! {
        #attributes
        [#form #options] fn #name #lifetimes(#(#params),*) -> #result = #body;
    }
}

/// The body of a public function whose converted parameters have their types: bindings of arguments, and the call.
fn call(generation: &Generation<'_>, function: &Function<'_>) -> (TokenStream, TokenStream) {
    let op = function.op;
    let def = generation.definition(op);
    if op.is_supplied() {
        return (TokenStream::new(), quote!(call::supplied(&#def)));
    }
    let mut def = quote!(&#def);
    let (mut bindings, mut values) = (TokenStream::new(), Vec::new());
    for (index, arg) in op.args.iter().enumerate() {
        if let Some((operand, with)) = function.operand()
            && operand == index
        {
            let name = parameter(arg);
            let number = generation.definition(&generation.model.ops[with.0]);
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
            quote!(call::invoke_out(#def, #args, &mut [#(#outs),*]))
        }
    };
    (bindings, call)
}
