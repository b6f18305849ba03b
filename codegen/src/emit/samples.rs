//! Samples and tolerances of an operator, as static data of its definition.

use proc_macro2::TokenStream;
use quote::quote;

use super::expr::{plain_float as float, plain_int as int};
use super::names::ident;
use crate::model::{Fill, Op, SampleTensor, SampleValue, ToleranceOf};

pub(super) fn samples(op: &Op) -> TokenStream {
    let samples = op.samples.iter().map(|sample| {
        let args = sample.args.iter().map(|(index, given)| {
            let (name, value) = (&op.args[*index].name, value(given));
            quote!((#name, #value))
        });
        let text = &sample.text;
        quote!(Sample::new(#text, &[#(#args),*]))
    });
    quote!(&[#(#samples),*])
}

pub(super) fn tolerances(op: &Op) -> TokenStream {
    let tolerances = op.tolerances.iter().map(|tolerance| {
        let of = match tolerance.of {
            ToleranceOf::DType(dtype) => {
                let dtype = ident(dtype.ident());
                quote!(DType(DType::#dtype))
            }
            ToleranceOf::Check(check) => {
                let check = ident(&format!("{check:?}"));
                quote!(Check(Check::#check))
            }
        };
        let allow = match tolerance.allow {
            Some(allow) => {
                let allow = float(allow);
                quote!(Some(#allow))
            }
            None => quote!(None),
        };
        let reason = &tolerance.reason;
        quote!(Tolerance::of(ToleranceOf::#of, #allow, #reason))
    });
    quote!(&[#(#tolerances),*])
}

/// The value of an argument; variants that many samples have stand without their type.
fn value(given: &SampleValue) -> TokenStream {
    match given {
        SampleValue::None => quote!(SampleValue::None),
        SampleValue::Bool(value) => quote!(Bool(#value)),
        SampleValue::Int(value) => {
            let value = int(*value);
            quote!(Int(#value))
        }
        SampleValue::Float(value) => {
            let value = float(*value);
            quote!(Float(#value))
        }
        SampleValue::Complex(re, im) => {
            let (re, im) = (float(*re), float(*im));
            quote!(Complex(#re, #im))
        }
        SampleValue::Str(value) => quote!(Str(#value)),
        SampleValue::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(SampleValue::DType(DType::#dtype))
        }
        SampleValue::List(items) => {
            let items = items.iter().map(value);
            quote!(List(&[#(#items),*]))
        }
        SampleValue::Tensor(given) => tensor(given),
        SampleValue::Tensors(items) => {
            let items = items.iter().map(|item| match item {
                Some(given) => {
                    let tensor = tensor(given);
                    quote!(Some(SampleTensor::#tensor))
                }
                None => quote!(None),
            });
            quote!(SampleValue::Tensors(&[#(#items),*]))
        }
    }
}

/// A tensor by the function that makes it, which has one name as the value of an argument and as an item of a list.
fn tensor(given: &SampleTensor) -> TokenStream {
    let shape = given.shape.iter().map(|size| int(*size));
    let shape = quote!(&[#(#shape),*]);
    match &given.fill {
        Fill::Between(-1.0, 1.0) => quote!(spread(#shape)),
        Fill::Between(low, high) => {
            let (low, high) = (float(*low), float(*high));
            quote!(between(#shape, #low, #high))
        }
        Fill::Integers(low, high) => {
            let (low, high) = (int(*low), int(*high));
            quote!(integers(#shape, #low, #high))
        }
        Fill::Mask => quote!(mask(#shape)),
        Fill::Numbers(values) => {
            let values = values.iter().map(|value| float(*value));
            quote!(numbers(#shape, &[#(#values),*]))
        }
        Fill::Places(values) => {
            let values = values.iter().map(|value| int(*value));
            quote!(places(#shape, &[#(#values),*]))
        }
    }
}
