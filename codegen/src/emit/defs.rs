//! The static definition of each operator.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::names::{def_name, ident, raw_name};
use super::{Generation, kernels};
use crate::model::{Arg, Default, Element, Kind, Op, Ty};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    generation.own_ops().map(definition).collect()
}

fn definition(op: &Op) -> TokenStream {
    let name = def_name(op);
    let raw = raw_name(op);
    let (full_name, signature, doc, location) = (&op.name, &op.signature, &op.doc, &op.location);
    let args = op.args.iter().map(argument);
    let returns = op.outputs.iter().map(|output| {
        let name = optional_text(output.name.as_deref());
        let ty = arg_type(&output.ty);
        quote!(rt::op::ReturnDef { name: #name, ty: #ty })
    });
    let inplace = optional_text(op.forms.inplace.as_deref());
    let out = optional_text(op.forms.out.as_deref());
    let elementwise = op.body.pointwise.is_some();
    let elements = op.args.iter().map(|arg| element(arg.element));
    let contiguous = op
        .args
        .iter()
        .enumerate()
        .filter(|(_, arg)| arg.contiguous)
        .fold(0u64, |bits, (index, _)| bits | 1 << index);
    let function = |prefix: &str, there: bool| {
        if there {
            let name = format_ident!("{prefix}_{raw}");
            quote!(Some(super::inference::#name))
        } else {
            quote!(None)
        }
    };
    let infer = function("infer", op.infer.is_some());
    let view = function("view", op.body.view.is_some());
    let composite = function("composite", op.body.composite.is_some());
    let host = function("host", op.body.host.is_some());
    let kernels =
        if kernels::has_kernels(op) { quote!(Some(&super::kernel_tables::#name)) } else { quote!(None) };
    let grad = if op.derivatives.is_empty() { quote!(None) } else { quote!(Some(&super::gradients::#name)) };
    let summary = format!("`{signature}`, declared at {location}.");
    quote! {
        #[doc = #summary]
        pub static #name: rt::op::OpDef = rt::op::OpDef {
            name: #full_name,
            schema: rt::op::Schema { text: #signature, args: &[#(#args),*], returns: &[#(#returns),*] },
            doc: #doc,
            location: #location,
            forms: rt::op::Forms { inplace: #inplace, out: #out, elementwise: #elementwise },
            infer: #infer,
            element_types: &[#(#elements),*],
            contiguous: #contiguous,
            kernels: #kernels,
            view: #view,
            composite: #composite,
            host: #host,
            grad: #grad,
            library: &super::library::LIBRARY,
        };
    }
}

fn optional_text(text: Option<&str>) -> TokenStream {
    match text {
        Some(text) => quote!(Some(#text)),
        None => quote!(None),
    }
}

fn argument(arg: &Arg) -> TokenStream {
    let (name, keyword_only) = (&arg.name, arg.keyword_only);
    let ty = arg_type(&arg.ty);
    let default = match &arg.default {
        Some(default) => {
            let value = default_value(default);
            quote!(Some(#value))
        }
        None => quote!(None),
    };
    quote!(rt::op::ArgDef { name: #name, ty: #ty, default: #default, keyword_only: #keyword_only })
}

fn arg_type(ty: &Ty) -> TokenStream {
    let length = |length: &Option<u32>| match length {
        Some(length) => quote!(Some(#length)),
        None => quote!(None),
    };
    let kind = match &ty.kind {
        Kind::Tensor => quote!(Tensor),
        Kind::Tensors => quote!(Tensors),
        Kind::OptionalTensors => quote!(OptionalTensors),
        Kind::Bool => quote!(Bool),
        Kind::Int => quote!(Int),
        Kind::Float => quote!(Float),
        Kind::Scalar => quote!(Scalar),
        Kind::Str => quote!(Str),
        Kind::Ints(count) => {
            let count = length(count);
            quote!(Ints(#count))
        }
        Kind::Floats => quote!(Floats),
        Kind::Bools(count) => {
            let count = length(count);
            quote!(Bools(#count))
        }
        Kind::Scalars => quote!(Scalars),
        Kind::DType => quote!(DType),
        Kind::Device => quote!(Device),
        Kind::MemoryFormat => quote!(MemoryFormat),
        Kind::MemoryLayout => quote!(MemoryLayout),
        Kind::Generator => quote!(Generator),
        Kind::None | Kind::Unit | Kind::Tuple(_) | Kind::Element | Kind::RealElement => {
            unreachable!("not the type of an argument")
        }
    };
    let optional = ty.optional;
    quote!(rt::op::ArgType { kind: rt::op::ArgKind::#kind, optional: #optional })
}

fn default_value(default: &Default) -> TokenStream {
    let value = match default {
        Default::None => quote!(None),
        Default::Bool(value) => quote!(Bool(#value)),
        Default::Int(value) => {
            let value = super::expr::int(*value);
            quote!(Int(#value))
        }
        Default::Float(value) => {
            let value = super::expr::float(*value);
            quote!(Float(#value))
        }
        Default::Str(value) => quote!(Str(#value)),
        Default::Ints(values) => {
            let values = values.iter().map(|value| super::expr::int(*value));
            quote!(Ints(&[#(#values),*]))
        }
        Default::Floats(values) => {
            let values = values.iter().map(|value| super::expr::float(*value));
            quote!(Floats(&[#(#values),*]))
        }
        Default::Bools(values) => quote!(Bools(&[#(#values),*])),
        Default::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(DType(rt::DType::#dtype))
        }
        Default::MemoryFormat(name) => {
            let name = ident(name);
            quote!(MemoryFormat(rt::MemoryFormat::#name))
        }
    };
    quote!(rt::op::DefaultValue::#value)
}

fn element(element: Element) -> TokenStream {
    match element {
        Element::NotTensor => quote!(rt::op::ElementType::NotTensor),
        Element::Dispatch => quote!(rt::op::ElementType::Dispatch),
        Element::Real => quote!(rt::op::ElementType::Real),
        Element::Any => quote!(rt::op::ElementType::Any),
        Element::Fixed(kernel, accepted) => {
            let kernel = ident(kernel.ident());
            let bits = accepted.0;
            quote! {
                rt::op::ElementType::Fixed { kernel: rt::DType::#kernel, accepted: rt::DTypeSet(#bits) }
            }
        }
    }
}
