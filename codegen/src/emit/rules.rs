//! Inference rules as data: the trees of `opsmith_core` as static items, for sizes that are not known yet.

use opsmith_core::DType;
use opsmith_core::rule_tree::{Conversion, Expr, RuleCheck, Rules};
use proc_macro2::TokenStream;
use quote::quote;

use super::Generation;
use super::expr::{plain_float as float, plain_int as int};
use super::names::{def_name, ident};
use crate::analysis::rows::has_rules;
use crate::analysis::rule_trees::{self, Memory};
use crate::model::Op;

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    generation.own_definitions().filter(|op| has_rules(op)).map(rules).collect()
}

fn rules(op: &Op) -> TokenStream {
    let memory = Memory::default();
    let Rules { checks, shapes, dtypes, compute, length, present, run_sizes } =
        rule_trees::rules(&memory, op);
    let mut fields = TokenStream::new();
    if !checks.is_empty() {
        let checks = checks.iter().map(|RuleCheck { condition, text }| {
            let condition = tree(condition);
            quote!(RuleCheck { condition: #condition, text: #text })
        });
        fields.extend(quote!(checks: &[#(#checks),*],));
    }
    let base = match &compute {
        Some(compute) => {
            let (shapes, of_dtypes, of_compute) = (trees(shapes), trees(dtypes), tree(compute));
            if dtypes.first().map(tree).is_none_or(|first| first.to_string() != of_compute.to_string()) {
                fields.extend(quote!(compute: Some(#of_compute),));
            }
            quote!(Rules::of(#shapes, #of_dtypes))
        }
        None => quote!(Rules::NONE),
    };
    if let Some(length) = &length {
        let length = tree(length);
        fields.extend(quote!(length: Some(#length),));
    }
    if !run_sizes.is_empty() {
        let sizes = named(run_sizes);
        fields.extend(quote!(run_sizes: #sizes,));
    }
    if !present.is_empty() {
        let present = present.iter().map(|condition| match condition.as_ref().map(tree) {
            Some(condition) => quote!(Some(#condition)),
            None => quote!(None),
        });
        fields.extend(quote!(present: &[#(#present),*],));
    }
    let name = def_name(op);
    let rules = if fields.is_empty() { base } else { quote!(Rules { #fields ..#base }) };
    quote!(pub static #name: Rules = #rules;)
}

fn trees(trees: &[Expr<'_>]) -> TokenStream {
    let trees = trees.iter().map(tree);
    quote!(&[#(#trees),*])
}

fn named(trees: &[(&str, Expr<'_>)]) -> TokenStream {
    let trees = trees.iter().map(|(name, value)| {
        let value = tree(value);
        quote!((#name, #value))
    });
    quote!(&[#(#trees),*])
}

/// A tree as the expression that makes it.
fn tree(expr: &Expr<'_>) -> TokenStream {
    let node = match expr {
        Expr::Arg(index) => {
            let index = int(i64::from(*index));
            return quote!(Arg(#index));
        }
        Expr::Local(name) => quote!(Local(#name)),
        Expr::Int(value) => {
            let value = int(*value);
            quote!(Int(#value))
        }
        Expr::Float(value) => {
            let value = float(*value);
            quote!(Float(#value))
        }
        Expr::Bool(value) => quote!(Bool(#value)),
        Expr::Str(text) => quote!(Str(#text)),
        Expr::DType(dtype) => {
            let dtype = ident(DType::ident(*dtype));
            quote!(DType(DType::#dtype))
        }
        Expr::None => quote!(None),
        Expr::Native(path) => quote!(Native(#path)),
        Expr::List(items) => {
            let items = trees(items);
            quote!(List(#items))
        }
        Expr::ShapeRule(rule, args) => {
            let (rule, args) = (ident(rule.ident()), trees(args));
            return quote!(ShapeRule::#rule.of(#args));
        }
        Expr::DTypeRule(rule, args) => {
            let (rule, args) = (ident(rule.ident()), trees(args));
            return quote!(DTypeRule::#rule.of(#args));
        }
        Expr::Query(query, parts) => {
            let (query, parts) = (ident(&format!("{query:?}")), trees(parts));
            quote!(Query(Query::#query, #parts))
        }
        Expr::Binary(operation, sides) => {
            let (operation, sides) = (ident(&format!("{operation:?}")), trees(*sides));
            quote!(Binary(Operation::#operation, #sides))
        }
        Expr::And(sides) => with("And", trees(*sides)),
        Expr::Or(sides) => with("Or", trees(*sides)),
        Expr::If(parts) => with("If", trees(*parts)),
        Expr::Index(parts) => with("Index", trees(*parts)),
        Expr::Neg(inner) => with("Neg", reference(inner)),
        Expr::Not(inner) => with("Not", reference(inner)),
        Expr::Block(bindings, tail) => {
            let (bindings, tail) = (named(bindings), reference(tail));
            quote!(Block(#bindings, #tail))
        }
        Expr::Convert(to, inner) => {
            let (to, inner) = (conversion(*to), reference(inner));
            quote!(Convert(Conversion::#to, #inner))
        }
    };
    quote!(Expr::#node)
}

fn with(variant: &str, content: TokenStream) -> TokenStream {
    let variant = ident(variant);
    quote!(#variant(#content))
}

fn reference(expr: &Expr<'_>) -> TokenStream {
    let tree = tree(expr);
    quote!(&#tree)
}

fn conversion(to: Conversion) -> TokenStream {
    match to {
        Conversion::Float => quote!(Float),
        Conversion::Int => quote!(Int),
        Conversion::Ints(count) => quote!(Ints(#count)),
        Conversion::Floats => quote!(Floats),
        Conversion::Same => quote!(Same),
    }
}
