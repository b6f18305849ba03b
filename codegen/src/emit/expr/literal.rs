//! Numbers and symbols of operators as Rust tokens.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use crate::model::Operation;

pub fn punctuation(symbol: Operation) -> TokenStream {
    match symbol {
        Operation::Add => quote!(+),
        Operation::Sub | Operation::Neg => quote!(-),
        Operation::Mul => quote!(*),
        Operation::Div => quote!(/),
        Operation::Rem => quote!(%),
        Operation::Not => quote!(!),
        Operation::BitAnd => quote!(&),
        Operation::BitOr => quote!(|),
        Operation::BitXor => quote!(^),
        Operation::Eq => quote!(==),
        Operation::Ne => quote!(!=),
        Operation::Lt => quote!(<),
        Operation::Le => quote!(<=),
        Operation::Gt => quote!(>),
        Operation::Ge => quote!(>=),
    }
}

pub fn int(value: i64) -> TokenStream {
    match value {
        i64::MIN => quote!(i64::MIN),
        0.. => {
            let literal = Literal::i64_suffixed(value);
            quote!(#literal)
        }
        _ => {
            let literal = Literal::i64_suffixed(-value);
            quote!((-#literal))
        }
    }
}

pub fn float(value: f64) -> TokenStream {
    if value.is_nan() {
        quote!(f64::NAN)
    } else if value == f64::INFINITY {
        quote!(f64::INFINITY)
    } else if value == f64::NEG_INFINITY {
        quote!(f64::NEG_INFINITY)
    } else if value.is_sign_negative() {
        let literal = Literal::f64_suffixed(-value);
        quote!((-#literal))
    } else {
        let literal = Literal::f64_suffixed(value);
        quote!(#literal)
    }
}

/// An integer where its type is known from its place.
pub fn plain_int(value: i64) -> TokenStream {
    match value {
        i64::MIN => quote!(i64::MIN),
        _ => {
            let literal = Literal::u64_unsuffixed(value.unsigned_abs());
            if value < 0 { quote!(-#literal) } else { quote!(#literal) }
        }
    }
}

/// A floating-point number where its type is known from its place.
pub fn plain_float(value: f64) -> TokenStream {
    if !value.is_finite() {
        return float(value);
    }
    let literal = Literal::f64_unsuffixed(value.abs());
    if value.is_sign_negative() { quote!(-#literal) } else { quote!(#literal) }
}
