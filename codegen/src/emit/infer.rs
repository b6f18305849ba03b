//! Inference functions, layout functions of views, compositions and host functions.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};

use super::expr::Emit;
use super::names::{Taken, def_name, doc, ident, local, parameter, part_name, position};
use super::{Generation, bind};
use crate::analysis::flops;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Infer, Kind, Op, POSITION, Ty};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for op in generation.own_definitions() {
        if op.infer.is_some() {
            tokens.extend(infer(generation, op));
        }
        if op.may_lack_results() {
            tokens.extend(present(generation, op));
        }
        if let Some(formula) = &op.flops {
            tokens.extend(flops(generation, op, formula));
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
            let name = parameter(&op.args[*index]);
            quote!(#name)
        }
        Variable::Local(name) => {
            let name = local(op, name);
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
        let rules = infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]);
        let taken = Taken::by(op, rules.chain(conditions(op)));
        let [args, compute] = ["args", "compute"].map(|name| taken.free(name));
        let checks = checks(emit, op, &args);
        let rule = emit.borrowed(&infer.compute);
        if let Some(path) = &infer.function {
            let bindings = bind::used(&op.args, &args, &quote!(#checks #rule));
            return by_function(
                op,
                infer,
                path,
                &name,
                &args,
                &quote!(#bindings #checks let #compute = #rule;),
                &compute,
            );
        }
        let outs = (0..infer.shapes.len()).map(|index| output(emit, (op, infer), index, &args, &compute));
        let result = match (&infer.length, device(op, &args)) {
            (Some(length), device) => {
                let length = emit.borrowed(length);
                let position = local(op, POSITION);
                let device = device.unwrap_or(quote!(device_of(#args)?));
                quote! {
                    let device = #device;
                    Inferred::list(#length, |#position: i64| Ok(#(#outs)*), #compute, device)
                }
            }
            (None, Some(device)) => quote! {
                let device = #device;
                Ok(Inferred::new([#(#outs),*], #compute, device))
            },
            (None, None) => quote!(Inferred::of(#args, #compute, || Ok([#(#outs),*]))),
        };
        let bindings = bind::used(&op.args, &args, &quote!(#checks #rule #result));
        let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
        quote! {
            #doc
            pub fn #name(#args: &[rt::Arg<'_>]) -> rt::Result<Inferred> {
                #bindings
                #checks
                let #compute = #rule;
                #result
            }
        }
    })
}

/// The sizes and the dtype of an output.
fn output(
    emit: &Emit<'_>,
    (op, infer): (&Op, &Infer),
    index: usize,
    args: &Ident,
    compute: &Ident,
) -> TokenStream {
    let (sizes, dtype) = (emit.owned(&infer.shapes[index]), &infer.dtypes[index]);
    // The compute dtype is computed once, also if it is the first output's dtype.
    let shared = index == 0 && dtype.same_meaning(&infer.compute);
    let dtype = if shared { quote!(#compute) } else { emit.borrowed(dtype) };
    if op.outputs[index].ty.optional {
        // Absent tensors have no elements, and rules that may rely on other absent arguments are not run.
        let (present, bit) = (part_name(op, "present"), position(index));
        return quote! {
            if #present(#args)? & 1 << #bit != 0 {
                (#sizes, #dtype)
            } else {
                (rt::Dims::from_slice(&[0]), #compute)
            }
        };
    }
    quote!((#sizes, #dtype))
}

/// The device that an argument gives, if there is one for it.
fn device(op: &Op, args: &Ident) -> Option<TokenStream> {
    let arg = op.args.iter().find(|arg| arg.ty.kind == Kind::Device)?;
    let name = parameter(arg);
    Some(match arg.ty.optional {
        true => quote!(match #name { Some(device) => device, None => device_of(#args)? }),
        false => name.to_token_stream(),
    })
}

/// Inference by a hand-written function, and the function itself for sizes that are not known yet.
fn by_function(
    op: &Op,
    infer: &Infer,
    path: &str,
    name: &Ident,
    args: &Ident,
    start: &TokenStream,
    compute: &Ident,
) -> TokenStream {
    let path = match syn::parse_str::<syn::Path>(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let (def, function) = (def_name(op), part_name(op, "infer_function"));
    let written = infer.dtypes.iter().map(|dtype| match dtype.kind {
        ExprKind::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(Some(rt::DType::#dtype))
        }
        _ => quote!(None),
    });
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        #doc
        pub fn #name(#args: &[rt::Arg<'_>]) -> rt::Result<Inferred> {
            #start
            rt::infer::context::infer_by(&defs::#def, #args, kernels::#path, #compute, &[#(#written),*])
        }

        #doc
        pub fn #function(context: &mut rt::infer::InferContext<'_>) -> rt::Result<()> {
            kernels::#path(context)
        }
    }
}

/// Which results are there, a bit each.
fn present(generation: &Generation<'_>, op: &Op) -> TokenStream {
    with_args(generation, op, |emit| {
        let conditions = || op.outputs.iter().filter_map(|output| output.present.as_ref());
        let taken = Taken::by(op, conditions());
        let [args, found] = ["args", "found"].map(|name| taken.free(name));
        let bits: TokenStream = op
            .outputs
            .iter()
            .enumerate()
            .map(|(index, output)| {
                let condition =
                    output.present.as_ref().map_or(quote!(true), |condition| emit.borrowed(condition));
                let bit = position(index);
                quote!(#found |= u64::from(#condition) << #bit;)
            })
            .collect();
        let bindings = bind::used(&op.args, &args, &bits);
        let name = part_name(op, "present");
        let doc =
            doc(&format!("Which results of `{}` are there, declared at {}.", op.signature, op.location));
        quote! {
            #doc
            pub fn #name(#args: &[rt::Arg<'_>]) -> rt::Result<u64> {
                #bindings
                let mut #found = 0u64;
                #bits
                Ok(#found)
            }
        }
    })
}

/// The arithmetic operations of a call, from the sizes of arguments and results.
fn flops(generation: &Generation<'_>, op: &Op, formula: &Expr) -> TokenStream {
    with_args(generation, op, |emit| {
        let taken = Taken::by(op, [formula]);
        let [args, outs] = ["args", "outs"].map(|name| taken.free(name));
        let value = emit.borrowed(formula);
        let mut read = Vec::new();
        formula.walk(&mut |part| {
            if let ExprKind::Variable(Variable::Local(name)) = &part.kind {
                read.push(name.clone());
            }
        });
        let results = flops::results(op).filter(|(_, name, _)| read.contains(name));
        let results = results.map(|(index, name, ty)| {
            let name = local(op, &name);
            match ty.kind {
                Kind::Tensor => {
                    quote!(let #name = #outs.get(#index).ok_or_else(|| rt::op::absent_result(#index))?;)
                }
                _ => quote!(let #name = #outs;),
            }
        });
        let bindings = bind::used(&op.args, &args, &value);
        let name = part_name(op, "flops");
        let doc = doc(&format!("Arithmetic operations of `{}`, declared at {}.", op.signature, op.location));
        quote! {
            #doc
            pub fn #name(#args: &[rt::Arg<'_>], #outs: &[rt::Tensor]) -> rt::Result<i64> {
                #bindings
                #(#results)*
                Ok(#value)
            }
        }
    })
}

fn conditions(op: &Op) -> impl Iterator<Item = &Expr> {
    op.checks.iter().map(|check| &check.condition)
}

/// The constraints of attributes, then the conditions.
fn checks(emit: &Emit<'_>, op: &Op, args: &Ident) -> TokenStream {
    let mut tokens = TokenStream::new();
    if op.args.iter().any(|arg| !arg.constraints.is_empty()) {
        let def = def_name(op);
        tokens.extend(quote!(rt::constraint::check(&defs::#def, #args)?;));
    }
    if !op.combinations.is_empty() {
        let def = def_name(op);
        tokens.extend(quote!(rt::infer::check_combination(&defs::#def, #args)?;));
    }
    tokens.extend(op.checks.iter().map(|check| {
        let condition = emit.borrowed(&check.condition);
        let text = &check.text;
        let values = compared_values(emit, &check.condition);
        quote! {
            if !#condition {
                return Err(rt::infer::check_failed(#text, &[#(#values),*]));
            }
        }
    }));
    tokens
}

/// Both sides of a comparison of integers, so that the error can show them.
fn compared_values(emit: &Emit<'_>, condition: &Expr) -> Vec<TokenStream> {
    let ExprKind::Binary(symbol, a, b) = &condition.kind else { return Vec::new() };
    if !symbol.is_comparison() || a.ty != Ty::new(Kind::Int) {
        return Vec::new();
    }
    [a, b].into_iter().map(|side| emit.borrowed(side)).collect()
}

fn view(generation: &Generation<'_>, op: &Op, path: &str) -> TokenStream {
    let name = part_name(op, "view");
    let list = Taken::by(op, conditions(op)).free("args");
    let bindings = bind::all(&op.args, &list);
    let path = match syn::parse_str::<syn::Path>(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let args = op.args.iter().enumerate().map(|(index, arg)| {
        let name = parameter(arg);
        if index == 0 { quote!(#name.layout()) } else { quote!(#name) }
    });
    let (result, layouts) = if op.gives_list() {
        let layouts = quote!(rt::smallvec::SmallVec<[rt::Layout; 1]>);
        (quote!(Ok(kernels::#path(#(#args),*)?.into_iter().collect())), layouts)
    } else {
        (quote!(kernels::#path(#(#args),*)), quote!(rt::Layout))
    };
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    let checks = with_args(generation, op, |emit| checks(emit, op, &list));
    quote! {
        #doc
        pub fn #name(#list: &[rt::Arg<'_>]) -> rt::Result<#layouts> {
            #bindings
            #checks
            #result
        }
    }
}

fn composite(generation: &Generation<'_>, op: &Op, body: &Expr) -> TokenStream {
    with_args(generation, op, |emit| {
        let name = part_name(op, "composite");
        let list = Taken::by(op, conditions(op).chain([body])).free("args");
        let checks = checks(emit, op, &list);
        let value = emit.owned(body);
        let bindings = bind::used(&op.args, &list, &quote!(#checks #value));
        let result = match op.outputs.as_slice() {
            [only] if only.ty.kind == Kind::Tensors => quote!(Ok(rt::op::Outputs::from_vec(#value))),
            [only] if only.ty.optional => {
                quote!(Ok(std::iter::once(call::or_empty(#value)?).collect()))
            }
            [_] => quote!(Ok(std::iter::once(#value).collect())),
            several => {
                let names: Vec<_> = (0..several.len()).map(|index| format_ident!("out{index}")).collect();
                let values = names.iter().zip(several).map(|(name, output)| match output.ty.optional {
                    true => quote!(call::or_empty(#name)?),
                    false => quote!(#name),
                });
                quote! {
                    let (#(#names),*) = #value;
                    Ok([#(#values),*].into_iter().collect())
                }
            }
        };
        let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
        let level = op.body.recursive.then(|| quote!(let _level = checked::level()?;));
        quote! {
            #doc
            pub fn #name(#list: &[rt::Arg<'_>]) -> rt::Result<rt::op::Outputs> {
                #level
                #bindings
                #checks
                #result
            }
        }
    })
}

fn host(generation: &Generation<'_>, op: &Op, path: &str) -> TokenStream {
    let name = part_name(op, "host");
    let list = Taken::by(op, conditions(op)).free("args");
    let bindings = bind::all(&op.args, &list);
    let path = match syn::parse_str::<syn::Path>(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let args = op.args.iter().map(parameter);
    let checks = with_args(generation, op, |emit| checks(emit, op, &list));
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        #doc
        pub fn #name(#list: &[rt::Arg<'_>]) -> rt::Result<Vec<rt::Value>> {
            #bindings
            #checks
            Ok(vec![kernels::#path(#(#args),*)?.into()])
        }
    }
}
