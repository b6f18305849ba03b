//! Typed expressions to Rust.
//!
//! A value is emitted *borrowed* (`&Tensor`, `Option<&Tensor>`, `&[i64]`, `&str`; plain numbers as
//! they are) or *owned* (`Tensor`, `Option<Tensor>`, `Vec<i64>`, …). Variables are bound to borrowed
//! values throughout, so the form of every use is known.

mod convert;
mod list;
mod literal;
mod query;

use opsmith_core::ArgKind;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::names::{ident, raw_name};
use crate::config::Config;
use crate::model::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{FunctionId, Kind, Model, OpId, Operation, Role, Ty};
pub(super) use literal::{float, int, plain_float, plain_int, punctuation};

/// Emits expressions of one place.
pub(super) struct Emit<'a> {
    pub model: &'a Model,
    pub config: &'a Config,
    /// The Rust expression a variable is bound to.
    pub variable: &'a dyn Fn(&Variable) -> TokenStream,
    /// The result of a query of a variable that needs no elements, where the elements are not at
    /// hand; `None` to query the value itself.
    pub metadata: &'a dyn Fn(&Variable, Query) -> Option<TokenStream>,
}

impl Emit<'_> {
    /// The expression as a borrowed value.
    pub fn borrowed(&self, expr: &Expr) -> TokenStream {
        if is_plain(&expr.ty) {
            return self.plain(expr);
        }
        match &expr.kind {
            ExprKind::Variable(variable) => (self.variable)(variable),
            ExprKind::None => quote!(None),
            ExprKind::Str(text) => quote!(#text),
            ExprKind::Convert(inner) => self.borrowed_conversion(inner, &expr.ty),
            ExprKind::List(items) if matches!(expr.ty.kind, Kind::Lists(_)) => {
                let lists = self.lists(items, &expr.ty.kind);
                quote!(&#lists)
            }
            ExprKind::List(items) => {
                let items = self.list_items(items, &expr.ty.kind);
                quote!(&[#(#items),*][..])
            }
            ExprKind::Query(Query::Sizes, base, _) => self.tensor_query(Query::Sizes, base, quote!(shape())),
            ExprKind::Query(Query::Strides, base, _) => {
                self.tensor_query(Query::Strides, base, quote!(strides()))
            }
            ExprKind::Query(Query::Unwrap, base, _) => {
                let base = self.borrowed(base);
                quote!(checked::present(#base)?)
            }
            ExprKind::Query(Query::UnwrapOr, base, args) => {
                let (base, other) = (self.borrowed(base), self.borrowed(&args[0]));
                quote!((#base).unwrap_or(#other))
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tensors) => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(checked::item(#base, #position)?)
            }
            ExprKind::Index(base, position) if base.ty.kind == Kind::OptionalTensors => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(checked::item(#base, #position)?.as_ref())
            }
            ExprKind::Index(base, position) if base.ty.kind == Kind::Strs => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!((&**checked::item(#base, #position)?))
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Lists(_)) => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(checked::row(#base, #position)?)
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tuple(_)) => {
                borrow(self.tuple_item(base, position), &expr.ty)
            }
            ExprKind::Op(id, args)
                if self.model.ops[id.0].role == Some(Role::Conjugate) && args.len() == 1 =>
            {
                // Nearly all tensors are real, and a call that returns its argument costs as much as one
                // that computes.
                let (path, tensor) = (self.op_path(*id), self.borrowed(&args[0]));
                quote!(&*call::conjugated(#tensor, #path)?)
            }
            _ => borrow(self.owned(expr), &expr.ty),
        }
    }

    /// One of several values, where it is.
    fn tuple_item(&self, base: &Expr, position: &Expr) -> TokenStream {
        let position = tuple_index(position);
        match &base.kind {
            ExprKind::Variable(variable) => {
                let base = (self.variable)(variable);
                quote!(#base.#position)
            }
            _ => {
                let base = self.owned(base);
                quote!((#base).#position)
            }
        }
    }

    /// The expression as an owned value.
    pub fn owned(&self, expr: &Expr) -> TokenStream {
        if is_plain(&expr.ty) {
            return self.plain(expr);
        }
        match &expr.kind {
            ExprKind::Op(id, args) => self.op_call(*id, args),
            ExprKind::List(items) if matches!(expr.ty.kind, Kind::Lists(_)) => {
                self.lists(items, &expr.ty.kind)
            }
            ExprKind::List(items) => {
                let is_sizes = matches!(expr.ty.kind, Kind::Ints(_));
                let items = self.list_items(items, &expr.ty.kind);
                if is_sizes {
                    quote!(rt::Dims::from_slice(&[#(#items),*]))
                } else {
                    quote!(vec![#(#items),*])
                }
            }
            ExprKind::Tuple(items) => {
                let items = items.iter().map(|item| self.owned(item));
                quote!((#(#items),*))
            }
            ExprKind::Convert(inner) => self.owned_conversion(inner, &expr.ty),
            ExprKind::None => quote!(None),
            ExprKind::If(condition, yes, no) => {
                let (condition, yes, no) = (self.plain(condition), self.owned(yes), self.owned(no));
                quote!(if #condition { #yes } else { #no })
            }
            ExprKind::Block(bindings, tail) => {
                let bindings = self.bindings(bindings);
                let tail = self.owned(tail);
                quote!({ #bindings #tail })
            }
            ExprKind::Map(list, names, item) => self.map(list, names, item),
            ExprKind::Rule(..) | ExprKind::Native(..) => self.inference_call(expr),
            ExprKind::Query(Query::SizesAlong, base, args) => self.sizes_along(base, &args[0]),
            ExprKind::Query(Query::Concat, base, args) => self.concat(base, &args[0], &expr.ty),
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tuple(_)) => {
                let item = self.tuple_item(base, position);
                match base.kind {
                    ExprKind::Variable(_) => quote!(#item.clone()),
                    _ => item,
                }
            }
            ExprKind::Variable(variable) if matches!(expr.ty.kind, Kind::Tuple(_)) => {
                let variable = (self.variable)(variable);
                quote!(#variable.clone())
            }
            ExprKind::NotImplemented(reason) => refusal(reason, &expr.ty),
            ExprKind::Opaque(text) => {
                refusal(&format!("its formula is in another language: {text}"), &expr.ty)
            }
            _ => self.copied(expr),
        }
    }

    /// An expression that is borrowed elsewhere, as a copy of its own.
    fn copied(&self, expr: &Expr) -> TokenStream {
        let borrowed = self.borrowed(expr);
        match (&expr.ty.kind, expr.ty.optional) {
            (Kind::Tensor, false) => quote!(#borrowed.clone()),
            (Kind::Tensor, true) => quote!((#borrowed).cloned()),
            (Kind::Str, false) => quote!((#borrowed).to_owned()),
            (Kind::Lists(_), false) => quote!((#borrowed).clone()),
            (Kind::Lists(_), true) => quote!((#borrowed).cloned()),
            (Kind::Ints(_), false) => quote!(rt::Dims::from_slice(#borrowed)),
            (Kind::Ints(_), true) => quote!((#borrowed).map(rt::Dims::from_slice)),
            (_, true) => quote!((#borrowed).map(ToOwned::to_owned)),
            (_, false) => quote!((#borrowed).to_vec()),
        }
    }

    fn op_call(&self, id: OpId, args: &[Expr]) -> TokenStream {
        let path = self.op_path(id);
        let args = args.iter().map(|arg| self.borrowed(arg));
        quote!(#path(#(#args),*)?)
    }

    /// The function that calls an operator.
    fn op_path(&self, id: OpId) -> TokenStream {
        let op = &self.model.ops[id.0];
        let function = raw_name(op);
        let module = self.config.module(op.parent, "raw");
        quote!(#module::#function)
    }

    fn list_items(&self, items: &[Expr], list: &Kind) -> Vec<TokenStream> {
        let items = items.iter().map(|item| self.owned(item));
        match list {
            Kind::Strs => items.map(|text| quote!(rt::Text::from(#text))).collect(),
            _ => items.collect(),
        }
    }

    /// A list of lists from its rows.
    fn lists(&self, rows: &[Expr], kind: &Kind) -> TokenStream {
        let Kind::Lists(item) = kind else { unreachable!("the checker gives rows to a list of lists") };
        let item = super::bind::item_type(*item);
        if rows.is_empty() {
            return quote!(rt::Lists::<#item>::default());
        }
        let rows = rows.iter().map(|row| match &row.kind {
            ExprKind::List(items) if items.is_empty() && row.ty.kind != Kind::Ints(None) => {
                quote!(Vec::<#item>::new())
            }
            _ => self.owned(row),
        });
        quote!(rt::Lists::<#item>::from_iter([#(#rows),*]))
    }

    fn bindings(&self, bindings: &[(String, Expr)]) -> TokenStream {
        bindings
            .iter()
            .map(|(name, value)| {
                let name = (self.variable)(&Variable::Local(name.clone()));
                let several = matches!(value.ty.kind, Kind::Tuple(_));
                if is_plain(&value.ty) || !several && matches!(value.kind, ExprKind::Variable(_)) {
                    let value = self.borrowed(value);
                    return quote!(let #name = #value;);
                }
                // A computed value is kept alive by a first binding of the same name.
                let owned = self.owned(value);
                let borrowed = (!several).then(|| {
                    let borrowed = borrow(quote!(#name), &value.ty);
                    quote!(let #name = #borrowed;)
                });
                quote!(let #name = #owned; #borrowed)
            })
            .collect()
    }

    /// A negation, which wraps for integers as the other arithmetic does.
    fn plain_unary(&self, symbol: Operation, operand: &Expr) -> TokenStream {
        let value = self.plain(operand);
        match (symbol, &operand.ty.kind) {
            (Operation::Neg, Kind::Int) => quote!((#value).wrapping_neg()),
            (Operation::Neg, _) => quote!((-#value)),
            _ => quote!((!#value)),
        }
    }

    /// Numbers, truth values, dtypes and the like, which are always copied.
    fn plain(&self, expr: &Expr) -> TokenStream {
        match &expr.kind {
            ExprKind::Variable(variable) => (self.variable)(variable),
            ExprKind::Int(value) => int(*value),
            ExprKind::Float(value) => float(*value),
            ExprKind::Imaginary => quote!(rt::Scalar::Complex(rt::Complex64::I)),
            ExprKind::Function(id, args) => {
                let path = function_path(self.model, self.config, *id);
                let args = args.iter().map(|arg| self.plain(arg));
                quote!(#path(#(#args),*))
            }
            ExprKind::Bool(value) => quote!(#value),
            ExprKind::MemoryFormat(format) => {
                let variant = ident(format.ident());
                quote!(rt::MemoryFormat::#variant)
            }
            ExprKind::DType(dtype) => {
                let variant = ident(dtype.ident());
                quote!(rt::DType::#variant)
            }
            ExprKind::None => quote!(None),
            ExprKind::Convert(inner) => self.plain_conversion(inner, &expr.ty),
            ExprKind::Binary(symbol, a, b) => self.arithmetic(*symbol, a, b),
            ExprKind::Logical(and, a, b) => {
                let (a, b) = (self.plain(a), self.plain(b));
                if *and { quote!((#a && #b)) } else { quote!((#a || #b)) }
            }
            ExprKind::Unary(symbol, operand) => self.plain_unary(*symbol, operand),
            ExprKind::If(condition, yes, no) => {
                let (condition, yes, no) = (self.plain(condition), self.plain(yes), self.plain(no));
                quote!(if #condition { #yes } else { #no })
            }
            ExprKind::Block(bindings, tail) => {
                let bindings = self.bindings(bindings);
                let tail = self.plain(tail);
                quote!({ #bindings #tail })
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tuple(_)) => {
                self.tuple_item(base, position)
            }
            ExprKind::Index(base, position) => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(*checked::item(#base, #position)?)
            }
            ExprKind::Rule(..) | ExprKind::Native(..) => self.inference_call(expr),
            ExprKind::Query(query, base, args) => self.query(*query, base, args),
            ExprKind::Op(id, args) => self.op_call(*id, args),
            ExprKind::NotImplemented(reason) => refusal(reason, &expr.ty),
            ExprKind::Opaque(text) => {
                refusal(&format!("its formula is in another language: {text}"), &expr.ty)
            }
            other => unreachable!("the checker gives no plain value to {other:?}"),
        }
    }

    fn arithmetic(&self, symbol: Operation, a: &Expr, b: &Expr) -> TokenStream {
        let kind = a.ty.kind.clone();
        let (a, b) = (self.borrowed(a), self.borrowed(b));
        if kind == Kind::Int {
            match symbol {
                Operation::Add => return quote!((#a).wrapping_add(#b)),
                Operation::Sub => return quote!((#a).wrapping_sub(#b)),
                Operation::Mul => return quote!((#a).wrapping_mul(#b)),
                Operation::Div => return quote!(checked::int_div(#a, #b)?),
                Operation::Rem => return quote!(checked::int_rem(#a, #b)?),
                _ => {}
            }
        }
        if kind == Kind::Scalar && symbol.is_comparison() {
            return compared_numbers(symbol, &a, &b);
        }
        let symbol = punctuation(symbol);
        quote!((#a #symbol #b))
    }
}

/// The Rust function behind a scalar function.
pub(super) fn function_path(model: &Model, config: &Config, id: FunctionId) -> TokenStream {
    let function = &model.functions[id.0];
    let path = match syn::parse_str::<syn::Path>(&function.rust) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    match function.parent {
        None => quote!(kernels::#path),
        parent => {
            let kernels = config.module(parent, "kernels");
            quote!(#kernels::#path)
        }
    }
}

/// Leaves with the reason why there is no value of the type.
fn refusal(reason: &str, ty: &Ty) -> TokenStream {
    let ty = super::bind::owned_type(ty);
    quote!(rt::autograd::not_implemented::<#ty>(#reason)?)
}

/// The borrowed form of an owned value.
fn borrow(owned: TokenStream, ty: &Ty) -> TokenStream {
    match (&ty.kind, ty.optional) {
        (Kind::Tensor | Kind::Lists(_), true) => quote!((#owned).as_ref()),
        (_, true) => quote!((#owned).as_deref()),
        (Kind::Tensor | Kind::Lists(_), false) => quote!(&#owned),
        (_, false) => quote!(&(#owned)[..]),
    }
}

/// Values that are copied rather than borrowed.
fn is_plain(ty: &Ty) -> bool {
    ty.kind.argument().is_some_and(ArgKind::is_copied)
}

fn tuple_index(position: &Expr) -> TokenStream {
    match position.kind {
        ExprKind::Int(value) => {
            let index = Literal::usize_unsuffixed(value.max(0) as usize);
            quote!(#index)
        }
        _ => unreachable!("the checker asks for a literal"),
    }
}

/// A comparison of two numbers. Equality is that of complex numbers, order that of real ones.
pub(super) fn compared_numbers(symbol: Operation, a: &TokenStream, b: &TokenStream) -> TokenStream {
    let part = match symbol {
        Operation::Eq | Operation::Ne => quote!(to_complex),
        _ => quote!(to_f64),
    };
    let symbol = punctuation(symbol);
    quote!(((#a).#part() #symbol (#b).#part()))
}
