//! The table of a library's operators, their data for the runtime, and calls by name.

use proc_macro2::TokenStream;
use quote::quote;

use super::Generation;
use super::names::{def_name, ident, raw_name};
use crate::analysis::fingerprint::fingerprint;
use crate::model::{Kind, Op, Operator, Role};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let name = &generation.config.library;
    let ops = generation.own_definitions().map(def_name);
    let names = names(generation);
    let words = generation.own_definitions().map(|op| {
        let name = def_name(op);
        quote!(&words::#name)
    });
    let direct =
        || generation.config.parents.iter().filter(|parent| parent.direct).map(|parent| &parent.path);
    let (parents, documented) = (direct(), direct());
    let roles = roles(generation);
    let operators = operators(generation);
    let fingerprint = format!("{:016x}", fingerprint(generation.model));
    let foreign = &generation.model.foreign_names;
    let (namespaces, known_as, unlike) =
        (rows(&foreign.namespaces), rows(&foreign.known_as), rows(&foreign.unlike));
    quote! {
        /// The operators of this crate.
        pub static LIBRARY: Library = Library {
            name: #name,
            ops: rt::definitions!(#(#ops)*),
            names: &[#(#names),*],
            parents: &[#(&#parents::LIBRARY),*],
            roles: #roles,
            operators: &[#(#operators),*],
            namespaces: &[#(#namespaces),*],
            known_as: &[#(#known_as),*],
            unlike: &[#(#unlike),*],
            fingerprint: #fingerprint,
        };

        rt::library::register!(&LIBRARY);

        /// Sentences about the operators of this crate and of the libraries that it builds on, for documents in other
        /// languages. A program that does not name them does not contain them.
        pub static DOCUMENTATION: Documentation = Documentation {
            library: &LIBRARY,
            words: &[#(#words),*],
            parents: &[#(&#documented::DOCUMENTATION),*],
        };

        /// Calls an operator by name, e.g. `call("mm", &[(&a).into(), (&b).into()], &[])`.
        ///
        /// A full name such as `add.Tensor` is that overload. A name without overload means the overload that
        /// takes these arguments with the fewest conversions, the first declared of equals. Names in other
        /// libraries (`torch.abs`, `aten::abs`, `abs_out`) are found as the spec says.
        ///
        /// Arguments are given by position, keyword arguments by name; an argument left out takes its
        /// default. An in-place or out form is called by its own name, or by giving `out`.
        ///
        /// # Errors
        /// If there is no such operator (near names are listed), if no overload takes the arguments (each is
        /// listed with the reason), if the arguments do not fit its
        /// signature, and whatever the operator itself reports.
        #[track_caller]
        pub fn call(name: &str, args: &[rt::Value], kwargs: &[(&str, rt::Value)]) -> rt::Result<Vec<rt::Value>> {
            rt::boxed::call(&LIBRARY, name, args, kwargs)
        }
    }
}

/// The rows of a table of names that stand in the spec itself, sorted.
fn rows(rows: &[(String, String, bool)]) -> Vec<TokenStream> {
    let mut own: Vec<(&str, &str)> = rows
        .iter()
        .filter(|(.., external)| !external)
        .map(|(name, meant, _)| (name.as_str(), meant.as_str()))
        .collect();
    own.sort_unstable();
    own.into_iter().map(|(name, meant)| quote!((#name, #meant))).collect()
}

/// Every callable name, sorted.
fn names(generation: &Generation<'_>) -> Vec<TokenStream> {
    let mut rows: Vec<(String, TokenStream)> = Vec::new();
    for op in generation.own_ops() {
        let def = generation.definition(op);
        let forms = [
            (Some(&op.name), quote!(Functional)),
            (op.forms.inplace.as_ref(), quote!(Inplace)),
            (op.forms.out.as_ref(), quote!(Out)),
        ];
        for (name, form) in forms {
            if let Some(name) = name {
                rows.push((name.clone(), quote!((#name, &#def, Form::#form))));
            }
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn roles(generation: &Generation<'_>) -> TokenStream {
    let find = |role: Role| generation.own_ops().find(|op| op.role == Some(role));
    let (Some(accumulate), Some(sum_to), Some(cast)) =
        (find(Role::Accumulate), find(Role::SumTo), find(Role::Cast))
    else {
        return quote!(None);
    };
    let accumulate = role_call(accumulate, &["a", "b"]);
    let sum_to = role_call(sum_to, &["tensor", "sizes"]);
    let cast = role_call(cast, &["tensor", "dtype"]);
    let conjugate = match find(Role::Conjugate) {
        Some(conjugate) => {
            let call = role_call(conjugate, &["tensor"]);
            quote!(Some(|tensor| #call))
        }
        None => quote!(None),
    };
    quote! {
        Some(Roles {
            accumulate: |a, b| #accumulate,
            sum_to: |tensor, sizes| #sum_to,
            cast: |tensor, dtype| #cast,
            conjugate: #conjugate,
        })
    }
}

/// A call with the first arguments given and defaults for the rest.
fn role_call(op: &Op, given: &[&str]) -> TokenStream {
    let function = raw_name(op);
    let args = op.args.iter().enumerate().map(|(index, arg)| match given.get(index) {
        Some(name) => {
            let name = ident(name);
            if arg.ty.optional { quote!(Some(#name)) } else { quote!(#name) }
        }
        None => match &arg.default {
            Some(crate::model::Default::Int(value)) if arg.ty.kind == Kind::Scalar => {
                let value = super::expr::int(*value);
                quote!(rt::Scalar::Int(#value))
            }
            Some(crate::model::Default::Bool(value)) => quote!(#value),
            Some(crate::model::Default::Int(value)) => super::expr::int(*value),
            _ => quote!(None),
        },
    });
    quote!(raw::#function(#(#args),*))
}

fn operators(generation: &Generation<'_>) -> Vec<TokenStream> {
    generation
        .own_ops()
        .flat_map(|op| op.operators.iter().map(move |operator| (op, *operator)))
        .filter_map(|(op, operator)| row(op, operator))
        .collect()
}

/// Symbols that Rust lets types overload with a result of their own.
fn row(op: &Op, Operator { symbol, reversed }: Operator) -> Option<TokenStream> {
    // Rust's comparisons give `bool`.
    if symbol.is_comparison() {
        return None;
    }
    let symbol = ident(&format!("{symbol:?}"));
    let operand = match op.args.get(1).map(|arg| &arg.ty.kind) {
        Some(Kind::Tensor) => quote!(Tensor),
        Some(Kind::Scalar) => quote!(Scalar),
        _ => quote!(None),
    };
    let def = def_name(op);
    Some(quote! {
        OperatorRow::new(Operation::#symbol, OperandKind::#operand, #reversed, &defs::#def)
    })
}
