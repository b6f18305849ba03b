//! Backward formulas, each a function of what was saved of the call.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::expr::Emit;
use super::names::{Taken, def_name, doc, local, parameter, part_name, position};
use super::{Generation, bind};
use crate::analysis::reads::{Place, Reads, reads};
use crate::analysis::rows::defines_gradients;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Derivative, Kind, Op};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for op in generation.own_definitions().filter(|op| defines_gradients(op)) {
        for (index, derivative) in op.derivatives.iter().enumerate() {
            tokens.extend(formula(generation, op, index, derivative));
        }
        tokens.extend(super::forward::function(generation, op));
        tokens.extend(definition(op));
    }
    tokens
}

fn definition(op: &Op) -> TokenStream {
    let name = def_name(op);
    let formulas = op.derivatives.iter().enumerate().map(|(index, derivative)| {
        let reads = reads(&derivative.formula);
        let arguments = derivative.arguments.iter().map(|index| *index as u8);
        let (mut tensors, mut attributes, mut outputs) = (0u64, 0u64, 0u64);
        for place in &reads.values {
            match place {
                Place::Arg(index) if op.args[*index].ty.holds_tensors() => tensors |= 1 << index,
                Place::Arg(index) => attributes |= 1 << index,
                Place::Result(index) => outputs |= 1 << index,
            }
        }
        let function = part_name(op, &index.to_string());
        let backends = derivative.backends.0;
        quote! {
            rt::op::Formula {
                arguments: &[#(#arguments),*],
                reads_arguments: #tensors,
                reads_outputs: #outputs,
                reads_attributes: #attributes,
                backends: #backends,
                backward: #function,
            }
        }
    });
    let outputs = op
        .outputs
        .iter()
        .enumerate()
        .filter(|(_, output)| output.ty.holds_tensors() && output.differentiable)
        .fold(0u64, |bits, (index, _)| bits | 1 << index);
    let constants = op
        .outputs
        .iter()
        .enumerate()
        .filter(|(_, output)| output.constant)
        .fold(0u64, |bits, (index, _)| bits | 1 << index);
    let stopped = op.non_differentiable.iter().fold(0u64, |bits, index| bits | 1 << index);
    let forward = super::forward::rule(op);
    quote! {
        pub static #name: rt::op::GradDef = rt::op::GradDef {
            formulas: &[#(#formulas),*],
            differentiable_outputs: #outputs,
            constant_outputs: #constants,
            non_differentiable: #stopped,
            forward: #forward,
        };
    }
}

/// What a formula's code calls things.
pub(super) struct Names<'a> {
    pub op: &'a Op,
    pub taken: Taken,
    /// The context it gets them from.
    pub cx: Ident,
}

impl Names<'_> {
    pub fn of(&self, variable: &Variable) -> Ident {
        match variable {
            Variable::Arg(index) => parameter(&self.op.args[*index]),
            Variable::Result(index) => self.taken.free(&format!("result{index}")),
            Variable::Grad(index) => self.taken.free(&format!("grad{index}")),
            Variable::Grads => self.taken.free("grads"),
            Variable::GradInputMask => self.taken.free("grad_input_mask"),
            Variable::Tangent(index) => self.taken.free(&format!("tangent{index}")),
            Variable::Local(name) => local(self.op, name),
        }
    }
}

fn formula(generation: &Generation<'_>, op: &Op, index: usize, derivative: &Derivative) -> TokenStream {
    let name = part_name(op, &index.to_string());
    let reads = reads(&derivative.formula);
    let taken = Taken::by(op, [&derivative.formula]);
    let names = Names { op, cx: taken.free("cx"), taken };
    let cx = &names.cx;
    let bindings = bindings(&names, derivative, &reads);
    let variable = |variable: &Variable| {
        let name = names.of(variable);
        quote!(#name)
    };
    let metadata = |variable: &Variable, query: Query| {
        let meta = match variable {
            Variable::Arg(index) if op.args[*index].ty.is_tensor() => {
                let index = position(*index);
                quote!(#cx.meta(#index))
            }
            Variable::Arg(index) if op.args[*index].ty.kind == Kind::Tensors => {
                let index = position(*index);
                quote!(#cx.metas(#index))
            }
            Variable::Result(index) => {
                let index = position(*index);
                quote!(#cx.result_meta(#index))
            }
            _ => return None,
        };
        match query {
            Query::SizesAlong => Some(quote!(#meta)),
            Query::Sizes => Some(quote!((&#meta.sizes[..]))),
            Query::DType => Some(quote!(#meta.dtype)),
            Query::Device => Some(quote!(#meta.device)),
            _ => None,
        }
    };
    let emit =
        Emit { model: generation.model, config: generation.config, variable: &variable, metadata: &metadata };
    let value = emit.owned(&derivative.formula);
    let result = match derivative.arguments.len() {
        1 => quote!(Ok(rt::autograd::Gradient::one(#value))),
        count => {
            let each: Vec<_> = (0..count).map(|index| format_ident!("gradient{index}")).collect();
            quote! {
                let (#(#each),*) = #value;
                Ok(rt::autograd::Gradient::each([#(#each.into()),*]))
            }
        }
    };
    let wanted: Vec<&str> = derivative.arguments.iter().map(|index| op.args[*index].name.as_str()).collect();
    let doc = doc(&format!(
        "`{}`, {}: `{}` ({}).",
        op.name,
        wanted.join(", "),
        derivative.text.replace('`', "'"),
        op.location
    ));
    quote! {
        #doc
        #[allow(unused_variables, reason = "a formula may consist of a refusal")]
        pub fn #name(#cx: &rt::autograd::GradContext<'_>) -> rt::Result<rt::op::Gradients> {
            #bindings
            #result
        }
    }
}

fn bindings(names: &Names<'_>, derivative: &Derivative, reads: &Reads) -> TokenStream {
    let (op, cx) = (names.op, &names.cx);
    let mut tokens = TokenStream::new();
    let optional_grads = optional_grads(&derivative.formula);
    let count = derivative.arguments.len();
    for &output in &reads.grads {
        let name = names.of(&Variable::Grad(output));
        if optional_grads.contains(&output) {
            tokens.extend(quote!(let #name = #cx.grad(#output);));
        } else {
            let count = position(count);
            let output = position(output);
            tokens.extend(quote! {
                let Some(#name) = #cx.grad(#output) else {
                    return Ok(rt::autograd::Gradient::none(#count));
                };
            });
        }
    }
    if reads.all_grads {
        let name = names.of(&Variable::Grads);
        tokens.extend(quote!(let #name = #cx.grads();));
    }
    if reads.mask {
        let arguments = derivative.arguments.iter().map(|index| position(*index));
        let name = names.of(&Variable::GradInputMask);
        tokens.extend(quote!(let #name = &[#(#cx.needs(#arguments)),*][..];));
    }
    for place in &reads.values {
        let (name, value, ty) = match place {
            Place::Arg(index) => {
                let arg = &op.args[*index];
                let index = position(*index);
                let value = match (&arg.ty.kind, arg.ty.optional) {
                    (Kind::Tensor, false) => quote!(#cx.tensor(#index)?),
                    (Kind::Tensor, true) => quote!(#cx.optional_tensor(#index)?),
                    (Kind::Tensors, _) => quote!(#cx.tensors(#index)?),
                    (Kind::OptionalTensors, _) => quote!(#cx.optional_tensors(#index)?),
                    _ => bind::access(quote!(#cx.attribute(#index)), &arg.ty),
                };
                (parameter(arg), value, arg.ty.clone())
            }
            Place::Result(index) => {
                let (at, ty) = (position(*index), op.outputs[*index].ty.clone());
                let value = match ty.kind {
                    Kind::Tensors => quote!(#cx.results()?),
                    _ => quote!(#cx.result(#at)?),
                };
                (names.of(&Variable::Result(*index)), value, ty)
            }
        };
        tokens.extend(match (&ty.kind, ty.optional) {
            (Kind::Tensor, false) => quote!(let #name = &#value;),
            (Kind::Tensor, true) => quote!(let #name = #value; let #name = #name.as_ref();),
            (Kind::Tensors | Kind::OptionalTensors, _) => quote!(let #name = #value; let #name = &#name[..];),
            _ => quote!(let #name = #value;),
        });
    }
    tokens
}

/// The gradients a formula takes as possibly absent.
fn optional_grads(formula: &Expr) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    formula.walk(&mut |part| {
        if let ExprKind::Variable(Variable::Grad(index)) = part.kind
            && part.ty.optional
        {
            found.insert(index);
        }
    });
    found
}
