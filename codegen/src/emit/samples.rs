//! Samples and tolerances of an operator, as static data of its definition.

use proc_macro2::TokenStream;
use quote::quote;

use super::expr::{float, int};
use super::names::{ident, position};
use crate::model::{Fill, Op, SampleTensor, SampleValue, ToleranceOf};

pub(super) fn samples(op: &Op) -> TokenStream {
    let samples = op.samples.iter().map(|sample| {
        let args = sample.args.iter().map(|(index, given)| {
            let (index, value) = (position(*index), value(given));
            quote!((#index, rt::sample::SampleValue::#value))
        });
        let text = &sample.text;
        quote!(rt::sample::Sample { args: &[#(#args),*], text: #text })
    });
    quote!(&[#(#samples),*])
}

pub(super) fn tolerances(op: &Op) -> TokenStream {
    let tolerances = op.tolerances.iter().map(|tolerance| {
        let of = match tolerance.of {
            ToleranceOf::DType(dtype) => {
                let dtype = ident(dtype.ident());
                quote!(DType(rt::DType::#dtype))
            }
            ToleranceOf::Check(check) => {
                let check = ident(&format!("{check:?}"));
                quote!(Check(rt::sample::Check::#check))
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
        quote!(rt::sample::Tolerance { of: rt::sample::ToleranceOf::#of, allow: #allow, reason: #reason })
    });
    quote!(&[#(#tolerances),*])
}

fn value(given: &SampleValue) -> TokenStream {
    match given {
        SampleValue::None => quote!(None),
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
            quote!(DType(rt::DType::#dtype))
        }
        SampleValue::List(items) => {
            let items = items.iter().map(|item| {
                let item = value(item);
                quote!(rt::sample::SampleValue::#item)
            });
            quote!(List(&[#(#items),*]))
        }
        SampleValue::Tensor(given) => {
            let tensor = tensor(given);
            quote!(Tensor(#tensor))
        }
        SampleValue::Tensors(items) => {
            let items = items.iter().map(|item| match item {
                Some(given) => {
                    let tensor = tensor(given);
                    quote!(Some(#tensor))
                }
                None => quote!(None),
            });
            quote!(Tensors(&[#(#items),*]))
        }
    }
}

fn tensor(given: &SampleTensor) -> TokenStream {
    let shape = given.shape.iter().map(|size| int(*size));
    let fill = match &given.fill {
        Fill::Between(low, high) => {
            let (low, high) = (float(*low), float(*high));
            quote!(Between(#low, #high))
        }
        Fill::Integers(low, high) => {
            let (low, high) = (int(*low), int(*high));
            quote!(Integers(#low, #high))
        }
        Fill::Mask => quote!(Mask),
        Fill::Numbers(values) => {
            let values = values.iter().map(|value| float(*value));
            quote!(Numbers(&[#(#values),*]))
        }
        Fill::Places(values) => {
            let values = values.iter().map(|value| int(*value));
            quote!(Places(&[#(#values),*]))
        }
    };
    quote!(rt::sample::SampleTensor { shape: &[#(#shape),*], fill: rt::sample::Fill::#fill })
}
