//! Inference rules as data: the expressions that `infer` compiles, once more as static trees, for sizes
//! that are not known yet.

use opsmith_core::rules::Rule;
use proc_macro2::TokenStream;
use quote::quote;

use super::Generation;
use super::expr::{plain_float as float, plain_int as int};
use super::names::{def_name, ident, position};
use crate::analysis::rows::has_rules;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Kind, Op, Symbol, Ty};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    generation.own_definitions().filter(|op| has_rules(op)).map(rules).collect()
}

fn rules(op: &Op) -> TokenStream {
    let mut fields = TokenStream::new();
    if !op.checks.is_empty() {
        let checks = op.checks.iter().map(|check| {
            let (condition, text) = (tree(&check.condition), &check.text);
            quote!(RuleCheck { condition: #condition, text: #text })
        });
        fields.extend(quote!(checks: &[#(#checks),*],));
    }
    if let Some(infer) = &op.infer {
        // Where a run decides, what is known before it.
        let shapes = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
        let (shapes, dtypes) = (shapes.iter().map(tree), infer.dtypes.iter().map(tree));
        let compute = tree(&infer.compute);
        fields.extend(quote!(shapes: &[#(#shapes),*], dtypes: &[#(#dtypes),*], compute: Some(#compute),));
        if let Some(length) = &infer.length {
            let length = tree(length);
            fields.extend(quote!(length: Some(#length),));
        }
    }
    if let Some(infer) = op.infer.as_ref().filter(|infer| !infer.run_sizes.is_empty()) {
        let sizes = infer.run_sizes.iter().map(|(name, bound)| {
            let bound = tree(bound);
            quote!((#name, #bound))
        });
        fields.extend(quote!(run_sizes: &[#(#sizes),*],));
    }
    if op.outputs.iter().any(|output| output.present.is_some()) {
        let present = op.outputs.iter().map(|output| match output.present.as_ref().map(tree) {
            Some(condition) => quote!(Some(#condition)),
            None => quote!(None),
        });
        fields.extend(quote!(present: &[#(#present),*],));
    }
    let name = def_name(op);
    quote! {
        pub static #name: Rules = Rules {
            #fields
            ..Rules::NONE
        };
    }
}

/// An expression as the runtime holds it.
fn tree(expr: &Expr) -> TokenStream {
    let all = |items: &[Expr]| {
        let items = items.iter().map(tree);
        quote!(&[#(#items),*])
    };
    let node = match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => {
            let index = position(*index);
            quote!(Arg(#index))
        }
        ExprKind::Variable(Variable::Local(name)) => quote!(Local(#name)),
        ExprKind::Int(value) => {
            let value = int(*value);
            quote!(Int(#value))
        }
        ExprKind::Float(value) => {
            let value = float(*value);
            quote!(Float(#value))
        }
        ExprKind::Imaginary => unreachable!("the checker knows the imaginary unit in formulas only"),
        ExprKind::Bool(value) => quote!(Bool(#value)),
        ExprKind::Str(text) => quote!(Str(#text)),
        ExprKind::DType(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(DType(DType::#dtype))
        }
        ExprKind::None => quote!(None),
        ExprKind::List(items) => {
            let items = all(items);
            quote!(List(#items))
        }
        ExprKind::Rule(rule, args) => {
            let (name, args) = (ident(rule.ident()), all(args));
            match rule {
                Rule::Shape(_) => quote!(ShapeRule(ShapeRule::#name, #args)),
                Rule::DType(_) => quote!(DTypeRule(DTypeRule::#name, #args)),
            }
        }
        ExprKind::Native(path, _) => quote!(Native(#path)),
        ExprKind::Query(query, base, args) => {
            let query = query_name(*query);
            let parts = std::iter::once(&**base).chain(args).map(tree);
            quote!(Query(Query::#query, &[#(#parts),*]))
        }
        ExprKind::Binary(symbol, a, b) => {
            let (operation, a, b) = (ident(&format!("{symbol:?}")), tree(a), tree(b));
            quote!(Binary(Operation::#operation, &[#a, #b]))
        }
        ExprKind::Logical(and, a, b) => {
            let (a, b) = (tree(a), tree(b));
            if *and { quote!(And(&[#a, #b])) } else { quote!(Or(&[#a, #b])) }
        }
        ExprKind::Unary(symbol, operand) => {
            let operand = tree(operand);
            if *symbol == Symbol::Not { quote!(Not(&#operand)) } else { quote!(Neg(&#operand)) }
        }
        ExprKind::If(condition, yes, no) => {
            let (condition, yes, no) = (tree(condition), tree(yes), tree(no));
            quote!(If(&[#condition, #yes, #no]))
        }
        ExprKind::Block(bindings, tail) => {
            let bindings = bindings.iter().map(|(name, value)| {
                let value = tree(value);
                quote!((#name, #value))
            });
            let tail = tree(tail);
            quote!(Block(&[#(#bindings),*], &#tail))
        }
        ExprKind::Index(base, at) => {
            let (base, at) = (tree(base), tree(at));
            quote!(Index(&[#base, #at]))
        }
        ExprKind::Convert(inner) => {
            let (to, inner) = (conversion(&inner.ty, &expr.ty), tree(inner));
            quote!(Convert(Conversion::#to, &#inner))
        }
        ExprKind::Variable(_)
        | ExprKind::Op(..)
        | ExprKind::Function(..)
        | ExprKind::Tuple(_)
        | ExprKind::NotImplemented(_)
        | ExprKind::Opaque(_) => unreachable!("the checker lets no rule say {expr:?}"),
    };
    quote!(Expr::#node)
}

fn query_name(query: Query) -> proc_macro2::Ident {
    ident(&format!("{query:?}"))
}

fn conversion(from: &Ty, to: &Ty) -> TokenStream {
    match (&from.kind, &to.kind) {
        (Kind::Int, Kind::Float) => quote!(Float),
        (Kind::Bool, Kind::Int) => quote!(Int),
        (Kind::Int, Kind::Ints(count)) => {
            let count = count.unwrap_or(1);
            quote!(Ints(#count))
        }
        (Kind::Ints(_), Kind::Floats) => quote!(Floats),
        _ => quote!(Same),
    }
}
