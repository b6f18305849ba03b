//! Backward formulas, each a function of the values saved by the call.

use std::collections::BTreeSet;

use opsmith_core::Backend;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::expr::Emit;
use super::names::{Taken, def_name, doc, local, parameter, part_name, position};
use super::{Generation, bind};
use crate::analysis::reads::{ReadValue, Reads, reads};
use crate::analysis::rows::defines_gradients;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Derivative, Forward, Kind, Op, Output};

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
    let formulas = op.derivatives.iter().enumerate();
    let formulas = formulas.map(|(index, derivative)| formula_entry(op, index, derivative));
    let formulas = quote!(&[#(#formulas),*]);
    let outputs = op.outputs.iter().enumerate();
    let chosen = |wanted: &dyn Fn(&Output) -> bool| -> Vec<_> {
        outputs.clone().filter(|(_, output)| wanted(output)).map(|(index, _)| position(index)).collect()
    };
    let differentiable = chosen(&|output| output.ty.holds_tensors() && output.differentiable);
    let constants = chosen(&|output| output.constant);
    let stopped: Vec<_> = op.non_differentiable.iter().map(|index| position(*index)).collect();
    let mut fields = TokenStream::new();
    if !constants.is_empty() {
        fields.extend(quote!(constant_outputs: bits(&[#(#constants),*]),));
    }
    if !stopped.is_empty() {
        fields.extend(quote!(non_differentiable: bits(&[#(#stopped),*]),));
    }
    // Most rules of tangents have a definition of their own.
    let new = match &op.forward {
        Forward::Linear => format_ident!("of_linear"),
        Forward::ElementWise { declared: false } => format_ident!("elementwise"),
        _ => {
            fields.extend(super::forward::rule(op).map(|rule| quote!(forward: #rule,)));
            format_ident!("new")
        }
    };
    let definition = quote!(GradDef::#new(#formulas, &[#(#differentiable),*]));
    let definition = match fields.is_empty() {
        true => definition,
        false => quote!(GradDef { #fields ..#definition }),
    };
    quote!(pub static #name: GradDef = #definition;)
}

/// A formula in the list of a definition: its function, and the values that it reads.
fn formula_entry(op: &Op, index: usize, derivative: &Derivative) -> TokenStream {
    let reads = reads(&derivative.formula);
    let arguments = derivative.arguments.iter().map(|index| position(*index));
    let function = formula_name(op, index);
    let mut tokens = quote!(GradientFormula::new(&[#(#arguments),*], #function));
    let mut add = |method: &str, read: &dyn Fn(&ReadValue) -> Option<usize>| {
        let positions: Vec<_> = reads.values.iter().filter_map(read).map(position).collect();
        if !positions.is_empty() {
            let method = format_ident!("{method}");
            tokens.extend(quote!(.#method(&[#(#positions),*])));
        }
    };
    let holds_tensors = |index: usize| op.args[index].ty.holds_tensors();
    add("reads_arguments", &|place| match place {
        ReadValue::Arg(index) if holds_tensors(*index) => Some(*index),
        _ => None,
    });
    add("reads_outputs", &|place| match place {
        ReadValue::Result(index) => Some(*index),
        _ => None,
    });
    add("reads_attributes", &|place| match place {
        ReadValue::Arg(index) if !holds_tensors(*index) => Some(*index),
        _ => None,
    });
    let all = Backend::ALL.iter().fold(0, |bits, backend| bits | 1u8 << backend.index());
    if derivative.backends.0 != all {
        let backends =
            Backend::ALL.iter().filter(|backend| derivative.backends.0 & 1 << backend.index() != 0);
        let backends = backends.map(|backend| format_ident!("{backend:?}"));
        tokens.extend(quote!(.on(&[#(rt::Backend::#backends),*])));
    }
    tokens
}

/// The function of a formula: `add_tensor_grad_other`, or with the formula's number if it is for several arguments, or
/// one of several for an argument, by backend.
fn formula_name(op: &Op, index: usize) -> Ident {
    let arguments = &op.derivatives[index].arguments;
    let several = op.derivatives.iter().filter(|other| other.arguments == *arguments).count() > 1;
    match arguments.as_slice() {
        [only] if !several => part_name(op, &format!("grad_{}", op.args[*only].name.to_lowercase())),
        _ => part_name(op, &format!("grads_{index}")),
    }
}

/// Names in the code of a formula.
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
            Variable::Result(index) => self.taken.free(&self.of_output("result", *index)),
            Variable::Grad(index) => self.taken.free(&self.of_output("grad", *index)),
            Variable::Grads => self.taken.free("grads"),
            Variable::GradInputMask => self.taken.free("grad_input_mask"),
            Variable::Tangent(index) => {
                let argument = self.op.args[*index].name.to_lowercase();
                self.taken.free(&format!("tangent_{argument}"))
            }
            Variable::Local(name) => local(self.op, name),
        }
    }

    /// The name of an output or its gradient, as formulas write it: `grad` if there is one, `grad_values` of several.
    fn of_output(&self, prefix: &str, index: usize) -> String {
        let names: Vec<Option<String>> = self
            .op
            .outputs
            .iter()
            .map(|output| output.name.as_ref().map(|name| name.to_lowercase()))
            .collect();
        match &names[index] {
            _ if names.len() == 1 => prefix.to_owned(),
            // `grad_input_mask` is another value of formulas.
            Some(name)
                if name != "input_mask"
                    && names.iter().flatten().filter(|other| *other == name).count() == 1 =>
            {
                format!("{prefix}_{name}")
            }
            _ => format!("{prefix}{index}"),
        }
    }
}

fn formula(generation: &Generation<'_>, op: &Op, index: usize, derivative: &Derivative) -> TokenStream {
    let name = formula_name(op, index);
    let reads = reads(&derivative.formula);
    let taken = Taken::by(op, [&derivative.formula]);
    let names = Names { op, cx: taken.free("cx"), taken };
    let cx = &names.cx;
    let bindings = bindings(&names, derivative, &reads);
    let variable = |variable: &Variable| {
        let name = names.of(variable);
        quote!(#name)
    };
    let metadata = |variable: &Variable, query: Query| metadata(&names, variable, query);
    let emit =
        Emit { model: generation.model, config: generation.config, variable: &variable, metadata: &metadata };
    let value = emit.owned(&derivative.formula);
    let result = match derivative.arguments.len() {
        1 => quote!(Ok(Gradient::one(#value))),
        count => {
            let each: Vec<_> = (0..count).map(|index| format_ident!("gradient{index}")).collect();
            quote! {
                let (#(#each),*) = #value;
                Ok(Gradient::each([#(#each.into()),*]))
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
        pub fn #name(#cx: &GradContext<'_>) -> rt::Result<Gradients> {
            #bindings
            #result
        }
    }
}

/// A query of a tensor's shape, dtype or device, answered from the metadata in the context instead of the tensor.
fn metadata(names: &Names<'_>, variable: &Variable, query: Query) -> Option<TokenStream> {
    let Names { op, cx, .. } = names;
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
                    return Ok(Gradient::none(#count));
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
            ReadValue::Arg(index) => {
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
            ReadValue::Result(index) => {
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
