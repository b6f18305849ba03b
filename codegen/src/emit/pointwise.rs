//! Pointwise expressions to loops over elements.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::expr::{compared_numbers, float, function_path, int, punctuation};
use super::hoisted::Hoisted;
use super::kernels::element_type;
use super::names::{Taken, local, parameter};
use super::{Generation, bind};
use crate::analysis::device_loops::depends_on_elements;
use crate::analysis::elements::{
    is_bound, is_computed, is_element, is_mask, is_of_attributes, is_rounded, uniform_condition, with_branch,
};
use crate::analysis::flops::is_light;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Element, Kind, Op, Operation};

/// The body of a kernel for element type `T`, with elements computed as `C` and results of type `R`.
pub(super) fn kernel(generation: &Generation<'_>, op: &Op, call: &Ident) -> TokenStream {
    let Some(expr) = &op.body.pointwise else { return TokenStream::new() };
    if let ExprKind::Variable(Variable::Arg(index)) = expr.kind
        && op.args[index].element == Element::Any
    {
        // An expression that is just an input copies it, whatever its dtype.
        let argument = parameter(&op.args[index]);
        return quote!(pointwise::copy(#call, #argument.position));
    }
    let inputs = op.read_tensors(expr);
    let attributes = bind::by_name(op.args.iter().filter(|arg| !arg.ty.holds_tensors()));
    let loops = Loops { generation, op, inputs: &inputs, call, taken: &Taken::by(op, [expr]) }.of(expr);
    quote! {
        #attributes
        #loops
    }
}

/// The input for loops over elements.
struct Loops<'a> {
    generation: &'a Generation<'a>,
    op: &'a Op,
    /// The tensors whose elements are read.
    inputs: &'a [usize],
    /// The kernel's parameter.
    call: &'a Ident,
    taken: &'a Taken,
}

impl Loops<'_> {
    /// The loop. A condition that is the same for all elements chooses between loops instead of being
    /// asked in each step.
    fn of(&self, expr: &Expr) -> TokenStream {
        let Loops { generation, op, inputs, call, taken } = *self;
        let mut emit = Elements { generation, op, hoisted: Hoisted::of(op, taken) };
        if let Some(condition) = uniform_condition(op, expr) {
            let condition = emit.attribute(&condition);
            let yes = self.of(&with_branch(op, expr, true));
            let no = self.of(&with_branch(op, expr, false));
            return quote!(if #condition { #yes } else { #no });
        }
        let value = emit.value(expr);
        let hoisted = emit.hoisted.statements();
        let positions = inputs.iter().map(|&index| parameter(&op.args[index]));
        let map = match is_light(expr) {
            true => format_ident!("map{}_light", inputs.len()),
            false => format_ident!("map{}", inputs.len()),
        };
        let params = inputs.iter().map(|&index| {
            let name = parameter(&op.args[index]);
            let ty = element_type(op.args[index].element);
            quote!(#name: #ty)
        });
        let widened = inputs.iter().filter(|&&index| !is_mask(op.args[index].element)).map(|&index| {
            let name = parameter(&op.args[index]);
            let value = quote!(#name.to_compute());
            (name, value)
        });
        let widened = bind::together(widened);
        let result = match op.outputs[0].element {
            element if is_mask(element) => value,
            _ => quote!(R::from_compute(#value)),
        };
        quote! {
            #(#hoisted)*
            pointwise::#map(#call, [#(#positions.position),*], #[inline(always)] move |#(#params),*| {
                #widened
                #result
            })
        }
    }
}

struct Elements<'a> {
    generation: &'a Generation<'a>,
    op: &'a Op,
    /// Values that do not depend on the element, computed once a call.
    hoisted: Hoisted<'a>,
}

impl Elements<'_> {
    fn hoist(&mut self, expr: &Expr, value: TokenStream) -> TokenStream {
        let name = self.hoisted.name(expr, value);
        quote!(#name)
    }

    fn value(&mut self, expr: &Expr) -> TokenStream {
        if is_computed(expr) && is_of_attributes(self.op, expr) {
            let value = self.attribute(expr);
            return self.hoist(expr, value);
        }
        match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => {
                let name = parameter(&self.op.args[*index]);
                quote!(#name)
            }
            ExprKind::Variable(Variable::Local(name)) => {
                let name = local(self.op, name);
                quote!(#name)
            }
            ExprKind::Int(value) => int(*value),
            ExprKind::Float(value) => float(*value),
            ExprKind::Bool(value) => quote!(#value),
            ExprKind::Str(text) => quote!(#text),
            ExprKind::Convert(inner) => self.conversion(inner, expr),
            ExprKind::Function(id, args) => {
                let path = function_path(self.generation.model, self.generation.config, *id);
                let args: Vec<TokenStream> = args.iter().map(|arg| self.value(arg)).collect();
                quote!(#path(#(#args),*))
            }
            ExprKind::Binary(symbol, a, b) => self.binary(*symbol, a, b),
            ExprKind::Logical(and, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                if *and { quote!((#a && #b)) } else { quote!((#a || #b)) }
            }
            ExprKind::Unary(symbol, operand) => {
                let element = is_element(operand);
                let value = self.value(operand);
                match symbol {
                    Operation::Neg if element => quote!(Arithmetic::neg(#value)),
                    Operation::Neg => quote!((-#value)),
                    _ => quote!((!#value)),
                }
            }
            ExprKind::If(condition, yes, no) => {
                let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
                quote!(if #condition { #yes } else { #no })
            }
            ExprKind::Block(bindings, tail) => {
                let bindings: Vec<TokenStream> = bindings
                    .iter()
                    .map(|(name, value)| {
                        let (name, value) = (local(self.op, name), self.value(value));
                        quote!(let #name = #value;)
                    })
                    .collect();
                let tail = self.value(tail);
                quote!({ #(#bindings)* #tail })
            }
            ExprKind::Query(..) => {
                let owner = self.attribute(expr);
                quote!(#owner)
            }
            other => unreachable!("the checker lets no {other:?} into a pointwise expression"),
        }
    }

    fn attribute(&self, expr: &Expr) -> TokenStream {
        attribute(self.generation, self.op, expr)
    }

    /// A number where an element is wanted.
    fn conversion(&mut self, inner: &Expr, to: &Expr) -> TokenStream {
        if !matches!(to.ty.kind, Kind::Element | Kind::RealElement) {
            return self.attribute(to);
        }
        let value = match is_of_attributes(self.op, inner) {
            true => self.attribute(inner),
            false => self.value(inner),
        };
        let ty = if to.ty.kind == Kind::RealElement {
            quote!(<<T as Element>::Real as Element>::Compute)
        } else {
            quote!(C)
        };
        let scalar = match inner.ty.kind {
            Kind::Int => quote!(rt::Scalar::Int(#value)),
            Kind::Float => quote!(rt::Scalar::Float(#value)),
            Kind::Bool => quote!(rt::Scalar::Bool(#value)),
            Kind::Scalar => value,
            // A real part among complex elements.
            _ => return quote!(<#ty as From<_>>::from(#value)),
        };
        let converted = if to.ty.kind == Kind::Element && is_rounded(self.op, inner) {
            quote!(rt::element::rounded::<T>(#scalar))
        } else if is_bound(self.op, inner) {
            quote!(rt::element::bounded::<#ty>(#scalar))
        } else {
            match to.ty.kind {
                Kind::Element => quote!(C::from_scalar(#scalar)),
                _ => quote!(<#ty as Element>::from_scalar(#scalar)),
            }
        };
        if depends_on_elements(self.op, inner) { converted } else { self.hoist(to, converted) }
    }

    fn binary(&mut self, symbol: Operation, a: &Expr, b: &Expr) -> TokenStream {
        let elements = is_element(a);
        let (scalars, integers) = (a.ty.kind == Kind::Scalar, a.ty.kind == Kind::Int);
        if scalars && symbol.is_comparison() {
            let (a, b) = (self.attribute(a), self.attribute(b));
            return compared_numbers(symbol, &a, &b);
        }
        let (a, b) = (self.value(a), self.value(b));
        // Integers of attributes wrap as those of elements do.
        let computes = elements || integers && is_arithmetic(symbol);
        if !computes {
            let symbol = punctuation(symbol);
            return quote!((#a #symbol #b));
        }
        match symbol {
            Operation::Add => quote!(Arithmetic::add(#a, #b)),
            Operation::Sub => quote!(Arithmetic::sub(#a, #b)),
            Operation::Mul => quote!(Arithmetic::mul(#a, #b)),
            Operation::Div => quote!(Arithmetic::div(#a, #b)),
            Operation::Rem => quote!(Arithmetic::rem(#a, #b)),
            Operation::Eq => quote!(Arithmetic::equal(#a, #b)),
            Operation::Ne => quote!((!Arithmetic::equal(#a, #b))),
            Operation::Lt => quote!(Ordered::lt(#a, #b)),
            Operation::Le => quote!(Ordered::le(#a, #b)),
            Operation::Gt => quote!(Ordered::gt(#a, #b)),
            Operation::Ge => quote!(Ordered::ge(#a, #b)),
            _ => {
                let symbol = punctuation(symbol);
                quote!((#a #symbol #b))
            }
        }
    }
}

/// An expression of attributes alone, as in other places.
pub(super) fn attribute(generation: &Generation<'_>, op: &Op, expr: &Expr) -> TokenStream {
    let variable = |variable: &Variable| match variable {
        Variable::Arg(index) => {
            let name = parameter(&op.args[*index]);
            quote!(#name)
        }
        Variable::Local(name) => {
            let name = local(op, name);
            quote!(#name)
        }
        other => unreachable!("no gradients here: {other:?}"),
    };
    let metadata = |_: &Variable, _: crate::model::expr::Query| None;
    super::expr::Emit {
        model: generation.model,
        config: generation.config,
        variable: &variable,
        metadata: &metadata,
    }
    .borrowed(expr)
}

fn is_arithmetic(symbol: Operation) -> bool {
    matches!(symbol, Operation::Add | Operation::Sub | Operation::Mul | Operation::Div | Operation::Rem)
}
