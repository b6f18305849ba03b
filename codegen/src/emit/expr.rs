//! Typed expressions to Rust.
//!
//! A value is emitted *borrowed* (`&Tensor`, `Option<&Tensor>`, `&[i64]`, `&str`; plain numbers as
//! they are) or *owned* (`Tensor`, `Option<Tensor>`, `Vec<i64>`, …). Variables are bound to borrowed
//! values throughout, so every place knows what it gets.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::names::{ident, raw_name};
use crate::config::Config;
use crate::expr::{Expr, ExprKind, Query, Variable};
use crate::model::{Kind, Model, Symbol, Ty};

/// Emits expressions of one place.
pub(super) struct Emit<'a> {
    pub model: &'a Model,
    pub config: &'a Config,
    /// The Rust expression a variable is bound to.
    pub variable: &'a dyn Fn(&Variable) -> TokenStream,
    /// The answer to a question about a variable that needs no elements, where the elements are not at
    /// hand; `None` to ask the value itself.
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
            ExprKind::List(items) => {
                let items = self.list_items(items);
                quote!(&[#(#items),*][..])
            }
            ExprKind::Query(Query::Sizes, base, _) => self.tensor_query(Query::Sizes, base, quote!(shape())),
            ExprKind::Query(Query::Strides, base, _) => {
                self.tensor_query(Query::Strides, base, quote!(strides()))
            }
            ExprKind::Query(Query::Unwrap, base, _) => {
                let base = self.borrowed(base);
                quote!(rt::dispatch::present(#base)?)
            }
            ExprKind::Query(Query::UnwrapOr, base, args) => {
                let (base, other) = (self.borrowed(base), self.borrowed(&args[0]));
                quote!((#base).unwrap_or(#other))
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tensors) => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(rt::dispatch::item(#base, #position)?)
            }
            ExprKind::Index(base, position) if base.ty.kind == Kind::OptionalTensors => {
                let (base, position) = (self.borrowed(base), self.plain(position));
                quote!(rt::dispatch::item(#base, #position)?.as_ref())
            }
            ExprKind::Index(base, position) if matches!(base.ty.kind, Kind::Tuple(_)) => {
                borrow(self.tuple_item(base, position), &expr.ty)
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
            ExprKind::Op(id, args) => {
                let op = &self.model.ops[id.0];
                let function = raw_name(op);
                let path = match (op.external, self.config.parents.first()) {
                    (true, Some(parent)) => {
                        let path = &parent.path;
                        quote!(#path::raw::#function)
                    }
                    _ => quote!(super::raw::#function),
                };
                let args = args.iter().map(|arg| self.borrowed(arg));
                quote!(#path(#(#args),*)?)
            }
            ExprKind::List(items) => {
                let is_sizes = matches!(expr.ty.kind, Kind::Ints(_));
                let items = self.list_items(items);
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
            ExprKind::Rule(..) | ExprKind::Native(..) => self.inference_call(expr),
            ExprKind::Query(Query::SizesAlong, base, args) => {
                let metas = match &base.kind {
                    ExprKind::Variable(variable) => (self.metadata)(variable, Query::SizesAlong),
                    _ => None,
                };
                let dim = self.plain(&args[0]);
                match metas {
                    Some(metas) => {
                        quote!(rt::infer::sizes_along(#metas.iter().map(|meta| &meta.sizes[..]), #dim)?)
                    }
                    None => {
                        let base = self.borrowed(base);
                        quote!(rt::infer::sizes_along(#base.iter().map(|tensor| tensor.shape()), #dim)?)
                    }
                }
            }
            ExprKind::Query(Query::Concat, base, args) => {
                let (base, other) = (self.borrowed(base), self.borrowed(&args[0]));
                quote!(rt::Dims::from_vec([#base, #other].concat()))
            }
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
            ExprKind::Opaque(text) => refusal(&format!("its formula is in another language: {text}"), &expr.ty),
            _ => {
                let borrowed = self.borrowed(expr);
                match (&expr.ty.kind, expr.ty.optional) {
                    (Kind::Tensor, false) => quote!(#borrowed.clone()),
                    (Kind::Tensor, true) => quote!((#borrowed).cloned()),
                    (Kind::Str, false) => quote!((#borrowed).to_owned()),
                    (Kind::Ints(_), false) => quote!(rt::Dims::from_slice(#borrowed)),
                    (Kind::Ints(_), true) => quote!((#borrowed).map(rt::Dims::from_slice)),
                    (_, true) => quote!((#borrowed).map(ToOwned::to_owned)),
                    (_, false) => quote!((#borrowed).to_vec()),
                }
            }
        }
    }

    fn list_items(&self, items: &[Expr]) -> Vec<TokenStream> {
        items.iter().map(|item| self.owned(item)).collect()
    }

    fn bindings(&self, bindings: &[(String, Expr)]) -> TokenStream {
        bindings
            .iter()
            .map(|(name, value)| {
                let name = ident(name);
                let several = matches!(value.ty.kind, Kind::Tuple(_));
                if is_plain(&value.ty) || !several && matches!(value.kind, ExprKind::Variable(_)) {
                    let value = self.borrowed(value);
                    return quote!(let #name = #value;);
                }
                // What is computed is kept alive by a first binding of the same name.
                let owned = self.owned(value);
                let borrowed = (!several).then(|| {
                    let borrowed = borrow(quote!(#name), &value.ty);
                    quote!(let #name = #borrowed;)
                });
                quote!(let #name = #owned; #borrowed)
            })
            .collect()
    }

    /// Numbers, truth values, dtypes and the like, which are always copied.
    fn plain(&self, expr: &Expr) -> TokenStream {
        match &expr.kind {
            ExprKind::Variable(variable) => (self.variable)(variable),
            ExprKind::Int(value) => int(*value),
            ExprKind::Float(value) => float(*value),
            ExprKind::Bool(value) => quote!(#value),
            ExprKind::Str(text) if expr.ty.kind == Kind::MemoryFormat => {
                let variant = ident(text);
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
            ExprKind::Unary(symbol, operand) => {
                let value = self.plain(operand);
                match (symbol, &operand.ty.kind) {
                    (Symbol::Neg, Kind::Int) => quote!((#value).wrapping_neg()),
                    (Symbol::Neg, _) => quote!((-#value)),
                    _ => quote!((!#value)),
                }
            }
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
                quote!(*rt::dispatch::item(#base, #position)?)
            }
            ExprKind::Rule(..) | ExprKind::Native(..) => self.inference_call(expr),
            ExprKind::Query(query, base, args) => self.query(*query, base, args),
            ExprKind::NotImplemented(reason) => refusal(reason, &expr.ty),
            ExprKind::Opaque(text) => refusal(&format!("its formula is in another language: {text}"), &expr.ty),
            other => unreachable!("the checker gives no plain value to {other:?}"),
        }
    }

    fn arithmetic(&self, symbol: Symbol, a: &Expr, b: &Expr) -> TokenStream {
        let kind = a.ty.kind.clone();
        let (a, b) = (self.borrowed(a), self.borrowed(b));
        if kind == Kind::Int {
            match symbol {
                Symbol::Add => return quote!((#a).wrapping_add(#b)),
                Symbol::Sub => return quote!((#a).wrapping_sub(#b)),
                Symbol::Mul => return quote!((#a).wrapping_mul(#b)),
                Symbol::Div => return quote!(rt::dispatch::int_div(#a, #b)?),
                Symbol::Rem => return quote!(rt::dispatch::int_rem(#a, #b)?),
                _ => {}
            }
        }
        if kind == Kind::Scalar && symbol.is_comparison() && !matches!(symbol, Symbol::Eq | Symbol::Ne) {
            let symbol = punctuation(symbol);
            return quote!(((#a).to_f64() #symbol (#b).to_f64()));
        }
        if kind == Kind::Scalar && matches!(symbol, Symbol::Eq | Symbol::Ne) {
            let symbol = punctuation(symbol);
            return quote!(((#a).to_complex() #symbol (#b).to_complex()));
        }
        let symbol = punctuation(symbol);
        quote!((#a #symbol #b))
    }

    /// A question to a tensor: answered from saved metadata if its elements are not at hand.
    fn tensor_query(&self, query: Query, base: &Expr, method: TokenStream) -> TokenStream {
        if let ExprKind::Variable(variable) = &base.kind
            && let Some(answer) = (self.metadata)(variable, query)
        {
            return answer;
        }
        let base = self.borrowed(base);
        quote!((#base).#method)
    }

    fn query(&self, query: Query, base: &Expr, args: &[Expr]) -> TokenStream {
        let tensor = base.ty.holds_tensors() && !base.ty.optional;
        match query {
            Query::Size => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                let dim = self.plain(&args[0]);
                quote!(rt::dispatch::size(#sizes, #dim)?)
            }
            Query::Dim => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                quote!(((#sizes).len() as i64))
            }
            Query::Numel => {
                let sizes = self.tensor_query(Query::Sizes, base, quote!(shape()));
                quote!((#sizes).iter().product::<i64>())
            }
            Query::StorageOffset => self.tensor_query(query, base, quote!(layout().offset)),
            Query::IsContiguous => self.tensor_query(query, base, quote!(is_contiguous())),
            Query::DType => self.tensor_query(query, base, quote!(dtype())),
            Query::Device => self.tensor_query(query, base, quote!(device())),
            // Only one layout exists.
            Query::Layout => quote!(rt::MemoryLayout::Strided),
            Query::IsComplex | Query::IsFloat | Query::IsInt => {
                let dtype = if tensor {
                    self.tensor_query(Query::DType, base, quote!(dtype()))
                } else {
                    self.plain(base)
                };
                let method = match query {
                    Query::IsComplex => quote!(is_complex),
                    Query::IsFloat => quote!(is_float),
                    _ => quote!(is_int),
                };
                quote!((#dtype).#method())
            }
            Query::Len => {
                let base = self.borrowed(base);
                quote!(((#base).len() as i64))
            }
            Query::IsSome | Query::IsNone => {
                if let ExprKind::Variable(variable) = &base.kind
                    && let Some(answer) = (self.metadata)(variable, query)
                {
                    return answer;
                }
                let base = self.borrowed(base);
                let method = if query == Query::IsSome { quote!(is_some) } else { quote!(is_none) };
                quote!((#base).#method())
            }
            Query::Unwrap => {
                let base = self.plain(base);
                quote!(rt::dispatch::present(#base)?)
            }
            Query::UnwrapOr => {
                let (base, other) = (self.plain(base), self.plain(&args[0]));
                quote!((#base).unwrap_or(#other))
            }
            Query::Conj => {
                let value = self.plain(base);
                if base.ty.kind == Kind::Scalar { quote!((#value).conj()) } else { value }
            }
            Query::IsZero => {
                let value = self.plain(base);
                match base.ty.kind {
                    Kind::Scalar => quote!((!(#value).to_bool())),
                    Kind::Bool => quote!((!#value)),
                    Kind::Float => quote!((#value == 0.0)),
                    _ => quote!((#value == 0)),
                }
            }
            Query::Contains => {
                let (base, value) = (self.borrowed(base), self.plain(&args[0]));
                quote!((#base).contains(&(#value)))
            }
            Query::Sizes | Query::Strides | Query::Concat | Query::SizesAlong => {
                unreachable!("lists are not plain")
            }
        }
    }

    fn inference_call(&self, expr: &Expr) -> TokenStream {
        let module = if expr.ty.kind == Kind::DType { quote!(dtype) } else { quote!(shape) };
        match &expr.kind {
            ExprKind::Rule(name, args) => {
                let function = ident(name);
                let operands = is_operand_rule(name, expr.ty.kind == Kind::DType);
                if operands {
                    let args = args.iter().map(|arg| {
                        let value = self.borrowed(arg);
                        quote!(#value.into())
                    });
                    return quote!(rt::infer::#module::#function(&[#(#args),*])?);
                }
                let args = args.iter().map(|arg| self.borrowed(arg));
                quote!(rt::infer::#module::#function(#(#args),*)?)
            }
            ExprKind::Native(path, args) => {
                let path: syn::Path = syn::parse_str(path).expect("checked as a path");
                let args = args.iter().map(|arg| self.borrowed(arg));
                quote!(kernels::#path(#(#args),*)?)
            }
            other => unreachable!("not an inference call: {other:?}"),
        }
    }

    fn plain_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if to.optional {
            if inner.ty.kind == Kind::None {
                return quote!(None);
            }
            let required = to.required();
            if inner.ty.optional {
                let value = self.plain(inner);
                let converted = convert_plain(quote!(value), &inner.ty.required(), &required);
                return quote!((#value).map(|value| #converted));
            }
            let value = convert_plain(self.plain(inner), &inner.ty, &required);
            return quote!(Some(#value));
        }
        convert_plain(self.plain(inner), &inner.ty, to)
    }

    fn borrowed_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if inner.ty.kind == Kind::None {
            return quote!(None);
        }
        if to.optional {
            if inner.ty.optional {
                // `int?` where `int[]?` is wanted: a slice over the one integer.
                let value = self.plain(inner);
                return quote!((&#value).as_ref().map(std::slice::from_ref));
            }
            let required = to.required();
            let value = if inner.ty == required || !needs_conversion(&inner.ty, &required) {
                self.borrowed(inner)
            } else {
                self.borrowed_conversion(inner, &required)
            };
            return quote!(Some(#value));
        }
        match (&inner.ty.kind, &to.kind) {
            (Kind::Int, Kind::Ints(Some(length))) => {
                let (value, length) = (self.plain(inner), *length as usize);
                quote!(&[#value; #length][..])
            }
            (Kind::Int, Kind::Ints(None)) => {
                let value = self.plain(inner);
                quote!(&[#value][..])
            }
            _ => {
                let owned = self.owned_conversion(inner, to);
                quote!(&(#owned)[..])
            }
        }
    }

    fn owned_conversion(&self, inner: &Expr, to: &Ty) -> TokenStream {
        if inner.ty.kind == Kind::None {
            return quote!(None);
        }
        if to.optional && !inner.ty.optional {
            let required = to.required();
            let value = if needs_conversion(&inner.ty, &required) {
                self.owned_conversion(inner, &required)
            } else {
                self.owned(inner)
            };
            return quote!(Some(#value));
        }
        match (&inner.ty.kind, &to.kind) {
            (Kind::Tuple(from), Kind::Tuple(to)) => {
                let value = self.owned(inner);
                let names: Vec<_> = (0..to.len()).map(|index| quote::format_ident!("value{index}")).collect();
                let items =
                    names.iter().zip(from.iter().zip(to)).map(|(name, (from, to))| match to.optional {
                        true if from.kind == Kind::None => quote!(None),
                        true if !from.optional => quote!(Some(#name)),
                        false if from.kind != to.kind => quote!(#name.into_iter().map(Some).collect()),
                        _ => quote!(#name),
                    });
                quote!({ let (#(#names),*) = #value; (#(#items),*) })
            }
            (Kind::Tensors, Kind::OptionalTensors) => {
                let value = self.owned(inner);
                quote!((#value).into_iter().map(Some).collect::<Vec<_>>())
            }
            (Kind::Ints(_), Kind::Tensors | Kind::OptionalTensors | Kind::Bools(_)) => quote!(Vec::new()),
            (Kind::Ints(_), Kind::Floats) => {
                let value = self.borrowed(inner);
                quote!((#value).iter().map(|value| *value as f64).collect::<Vec<f64>>())
            }
            (Kind::Ints(_), Kind::Scalars) => {
                let value = self.borrowed(inner);
                quote!((#value).iter().map(|value| rt::Scalar::Int(*value)).collect::<Vec<_>>())
            }
            (Kind::Int, Kind::Ints(_)) => {
                let value = self.borrowed_conversion(inner, to);
                quote!(rt::Dims::from_slice(#value))
            }
            _ => self.owned(inner),
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
        (Kind::Tensor, true) => quote!((#owned).as_ref()),
        (_, true) => quote!((#owned).as_deref()),
        (Kind::Tensor, false) => quote!(&#owned),
        (_, false) => quote!(&(#owned)[..]),
    }
}

/// Values that are copied rather than borrowed.
fn is_plain(ty: &Ty) -> bool {
    matches!(
        ty.kind,
        Kind::Bool
            | Kind::Int
            | Kind::Float
            | Kind::Scalar
            | Kind::DType
            | Kind::Device
            | Kind::MemoryFormat
            | Kind::MemoryLayout
            | Kind::Generator
    )
}

fn needs_conversion(from: &Ty, to: &Ty) -> bool {
    std::mem::discriminant(&from.kind) != std::mem::discriminant(&to.kind)
}

fn convert_plain(value: TokenStream, from: &Ty, to: &Ty) -> TokenStream {
    match (&from.kind, &to.kind) {
        (Kind::Int, Kind::Float) => quote!((#value as f64)),
        (Kind::Bool, Kind::Int) => quote!(i64::from(#value)),
        (Kind::Int, Kind::Scalar) => quote!(rt::Scalar::Int(#value)),
        (Kind::Float, Kind::Scalar) => quote!(rt::Scalar::Float(#value)),
        (Kind::Bool, Kind::Scalar) => quote!(rt::Scalar::Bool(#value)),
        _ => value,
    }
}

fn is_operand_rule(name: &str, dtype: bool) -> bool {
    let rule =
        if dtype { opsmith_core::rules::dtype_rule(name) } else { opsmith_core::rules::shape_rule(name) };
    rule.is_some_and(|rule| rule.params == [opsmith_core::rules::RuleParam::Operands])
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

pub(super) fn punctuation(symbol: Symbol) -> TokenStream {
    match symbol {
        Symbol::Add => quote!(+),
        Symbol::Sub | Symbol::Neg => quote!(-),
        Symbol::Mul => quote!(*),
        Symbol::Div => quote!(/),
        Symbol::Rem => quote!(%),
        Symbol::Not => quote!(!),
        Symbol::BitAnd => quote!(&),
        Symbol::BitOr => quote!(|),
        Symbol::BitXor => quote!(^),
        Symbol::Eq => quote!(==),
        Symbol::Ne => quote!(!=),
        Symbol::Lt => quote!(<),
        Symbol::Le => quote!(<=),
        Symbol::Gt => quote!(>),
        Symbol::Ge => quote!(>=),
    }
}

pub(super) fn int(value: i64) -> TokenStream {
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

pub(super) fn float(value: f64) -> TokenStream {
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
