//! Inference functions, layout functions of views, compositions and host functions.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::expr::Emit;
use super::names::{doc, ident, part_name};
use super::{Generation, bind};
use crate::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Check, Infer, Kind, Op};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for op in generation.own_ops() {
        if op.infer.is_some() {
            tokens.extend(infer(generation, op));
        }
        if let Some(path) = &op.body.view {
            tokens.extend(view(generation, op, path));
        }
        if let Some(body) = &op.body.composite {
            tokens.extend(composite(generation, op, body));
        }
        if let Some(path) = &op.body.host {
            tokens.extend(host(generation, op, path));
        }
    }
    tokens
}

/// Emits expressions whose variables are the operator's arguments.
fn with_args<R>(generation: &Generation<'_>, op: &Op, body: impl FnOnce(&Emit<'_>) -> R) -> R {
    let variable = |variable: &Variable| match variable {
        Variable::Arg(index) => {
            let name = ident(&op.args[*index].name);
            quote!(#name)
        }
        Variable::Local(name) => {
            let name = ident(name);
            quote!(#name)
        }
        other => unreachable!("no gradients here: {other:?}"),
    };
    let metadata = |_: &Variable, _: Query| None;
    body(&Emit {
        model: generation.model,
        config: generation.config,
        variable: &variable,
        metadata: &metadata,
    })
}

fn infer(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let Some(infer) = &op.infer else { return TokenStream::new() };
    with_args(generation, op, |emit| {
        let name = part_name(op, "infer");
        let bindings = bind::all(&op.args);
        let checks = checks(emit, &op.checks);
        let compute = emit.borrowed(&infer.compute);
        let shared = shared_dtype(infer);
        let outs = infer.shapes.iter().zip(&infer.dtypes).enumerate().map(|(index, (shape, dtype))| {
            let sizes = emit.owned(shape);
            let dtype = if shared == Some(index) { quote!(compute) } else { emit.borrowed(dtype) };
            quote!((#sizes, #dtype))
        });
        let device = match op.args.iter().find(|arg| arg.ty.kind == Kind::Device) {
            Some(arg) if arg.ty.optional => {
                let arg = ident(&arg.name);
                quote!(match #arg { Some(device) => device, None => rt::infer::device_of(args)? })
            }
            Some(arg) => {
                let arg = ident(&arg.name);
                quote!(#arg)
            }
            None => quote!(rt::infer::device_of(args)?),
        };
        let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
        quote! {
            #doc
            #[allow(unused_variables, reason = "a rule need not use every argument")]
            pub fn #name(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Inferred> {
                #bindings
                #checks
                let compute = #compute;
                let device = #device;
                Ok(rt::op::Inferred::new([#(#outs),*], compute, device))
            }
        }
    })
}

/// The first output, if its dtype is the one that chooses the kernel, so that it is computed once.
fn shared_dtype(infer: &Infer) -> Option<usize> {
    let same = format!("{:?}", infer.dtypes.first()?.kind) == format!("{:?}", infer.compute.kind);
    same.then_some(0)
}

fn checks(emit: &Emit<'_>, checks: &[Check]) -> TokenStream {
    checks
        .iter()
        .map(|check| {
            let condition = emit.borrowed(&check.condition);
            let text = &check.text;
            let values = compared_values(emit, &check.condition);
            quote! {
                if !#condition {
                    return Err(rt::infer::check_failed(#text, &[#(#values),*]));
                }
            }
        })
        .collect()
}

/// Both sides of a comparison of integers, so that the error can say what they are.
fn compared_values(emit: &Emit<'_>, condition: &Expr) -> Vec<TokenStream> {
    let ExprKind::Binary(symbol, a, b) = &condition.kind else { return Vec::new() };
    if !symbol.is_comparison() || a.ty.kind != Kind::Int {
        return Vec::new();
    }
    [a, b].into_iter().map(|side| emit.borrowed(side)).collect()
}

fn view(generation: &Generation<'_>, op: &Op, path: &str) -> TokenStream {
    let name = part_name(op, "view");
    let bindings = bind::all(&op.args);
    let path: syn::Path = match syn::parse_str(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let args = op.args.iter().enumerate().map(|(index, arg)| {
        let name = ident(&arg.name);
        if index == 0 { quote!(#name.layout()) } else { quote!(#name) }
    });
    let several = matches!(op.outputs.as_slice(), [only] if only.ty.kind == Kind::Tensors);
    let result = if several {
        quote!(Ok(kernels::#path(#(#args),*)?.into_iter().collect()))
    } else {
        quote!(Ok(std::iter::once(kernels::#path(#(#args),*)?).collect()))
    };
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    let checks = with_args(generation, op, |emit| checks(emit, &op.checks));
    quote! {
        #doc
        pub fn #name(args: &[rt::Arg<'_>]) -> rt::Result<rt::smallvec::SmallVec<[rt::Layout; 1]>> {
            #bindings
            #checks
            #result
        }
    }
}

fn composite(generation: &Generation<'_>, op: &Op, body: &Expr) -> TokenStream {
    with_args(generation, op, |emit| {
        let name = part_name(op, "composite");
        let bindings = bind::all(&op.args);
        let checks = checks(emit, &op.checks);
        let value = emit.owned(body);
        let result = match op.outputs.as_slice() {
            [only] if only.ty.kind == Kind::Tensors => quote!(Ok(rt::op::Outputs::from_vec(#value))),
            [_] => quote!(Ok(std::iter::once(#value).collect())),
            several => {
                let names: Vec<_> = (0..several.len()).map(|index| format_ident!("out{index}")).collect();
                quote! {
                    let (#(#names),*) = #value;
                    Ok([#(#names),*].into_iter().collect())
                }
            }
        };
        let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
        quote! {
            #doc
            #[allow(unused_variables, reason = "a composition need not use every argument")]
            pub fn #name(args: &[rt::Arg<'_>]) -> rt::Result<rt::op::Outputs> {
                #bindings
                #checks
                #result
            }
        }
    })
}

fn host(generation: &Generation<'_>, op: &Op, path: &str) -> TokenStream {
    let name = part_name(op, "host");
    let bindings = bind::all(&op.args);
    let path: syn::Path = match syn::parse_str(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let args = op.args.iter().map(|arg| ident(&arg.name));
    let checks = with_args(generation, op, |emit| checks(emit, &op.checks));
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        #doc
        pub fn #name(args: &[rt::Arg<'_>]) -> rt::Result<Vec<rt::Value>> {
            #bindings
            #checks
            Ok(vec![kernels::#path(#(#args),*)?.into()])
        }
    }
}
