//! Forward formulas: the tangents of an operator's outputs from those of its arguments.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use super::expr::Emit;
use super::gradients::Names;
use super::names::{Taken, doc, parameter, part_name, position};
use super::{Generation, bind};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Forward, Kind, Op};

/// How tangents flow, for the operator's definition, if not by the transpose of the backward formulas.
pub(super) fn rule(op: &Op) -> Option<TokenStream> {
    match &op.forward {
        Forward::Linear => Some(quote!(Forward::Linear)),
        Forward::ElementWise { declared } => Some(quote!(Forward::ElementWise { complex: #declared })),
        Forward::Formulas(_) => {
            let function = part_name(op, "forward");
            Some(quote!(Forward::Formula(#function)))
        }
        Forward::None | Forward::Composition | Forward::View | Forward::Transposed => None,
    }
}

/// The function of the formulas that the spec writes, if it writes any.
pub(super) fn function(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let Forward::Formulas(formulas) = &op.forward else { return TokenStream::new() };
    let name = part_name(op, "forward");
    let taken = Taken::by(op, formulas.iter().flat_map(|formula| &formula.terms));
    let names = Names { op, cx: taken.free("cx"), taken };
    let (cx, tangents) = (&names.cx, names.taken.free("tangents"));
    let count = position(op.outputs.len());
    let terms = formulas.iter().flat_map(|formula| {
        let output = position(formula.output);
        let (names, tangents) = (&names, &tangents);
        formula.terms.iter().map(move |term| {
            let read: BTreeSet<usize> = variables(term)
                .into_iter()
                .filter_map(|variable| match variable {
                    Variable::Tangent(index) => Some(index),
                    _ => None,
                })
                .collect();
            let read = read.into_iter().map(position);
            let bindings = bindings(names, term);
            let variable = |variable: &Variable| {
                let name = names.of(variable);
                quote!(#name)
            };
            let emit = Emit {
                model: generation.model,
                config: generation.config,
                variable: &variable,
                metadata: &|_, _| None,
            };
            let value = emit.owned(term);
            let cx = &names.cx;
            quote! {
                if #cx.any(&[#(#read),*]) {
                    #bindings
                    #cx.add(&mut #tangents[#output], #value)?;
                }
            }
        })
    });
    let texts: Vec<String> =
        formulas.iter().map(|formula| format!("`{}`", formula.text.replace('`', "'"))).collect();
    let doc = doc(&format!("`{}`, tangents: {} ({}).", op.name, texts.join(", "), op.location));
    quote! {
        #doc
        pub fn #name(#cx: &rt::autograd::ForwardContext<'_>) -> rt::Result<rt::op::Tangents> {
            let mut #tangents = rt::op::Tangents::from_elem(None, #count);
            #(#terms)*
            Ok(#tangents)
        }
    }
}

fn variables(term: &Expr) -> Vec<Variable> {
    let mut found = Vec::new();
    term.walk(&mut |part| {
        if let ExprKind::Variable(variable) = &part.kind
            && !found.contains(variable)
        {
            found.push(variable.clone());
        }
    });
    found
}

fn bindings(names: &Names<'_>, term: &Expr) -> TokenStream {
    let (op, cx) = (names.op, &names.cx);
    variables(term)
        .iter()
        .map(|variable| {
            let name = names.of(variable);
            match variable {
                Variable::Arg(index) => {
                    let arg = &op.args[*index];
                    let (name, at) = (parameter(arg), position(*index));
                    let value = bind::access(quote!(#cx.args()[#at]), &arg.ty);
                    quote!(let #name = #value;)
                }
                Variable::Tangent(index) if matches!(op.args[*index].ty.kind, Kind::Tensor) => {
                    let at = position(*index);
                    quote!(let #name = &#cx.tangent(#at)?;)
                }
                Variable::Tangent(index) => {
                    let at = position(*index);
                    quote!(let #name = &#cx.tangents(#at)?[..];)
                }
                Variable::Result(index) => {
                    let at = position(*index);
                    quote!(let #name = &#cx.result(#at)?;)
                }
                _ => TokenStream::new(),
            }
        })
        .collect()
}
