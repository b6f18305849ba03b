//! A pointwise expression as the text of a struct in CUDA C++.
//!
//! In: an expression without conditions on attributes. Out: the struct, and for each of its fields the Rust code of its
//! value.

use std::fmt::Write as _;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::super::Generation;
use super::super::hoisted::described;
use super::super::names::Taken;
use super::super::pointwise::attribute;
use crate::analysis::device_loops::depends_on_elements;
use crate::analysis::elements::{is_bound, is_computed, is_element, is_mask, is_of_attributes, is_rounded};
use crate::analysis::naming;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Element, Kind, Op, Operation};

/// Names that C++ or the struct gives to other things.
const RESERVED: &[&str] = &[
    "C",
    "R",
    "T",
    "and",
    "auto",
    "bool",
    "case",
    "char",
    "class",
    "compl",
    "const",
    "default",
    "delete",
    "do",
    "double",
    "dtype",
    "export",
    "float",
    "goto",
    "int",
    "long",
    "math",
    "namespace",
    "new",
    "not",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "short",
    "signed",
    "sizeof",
    "static",
    "switch",
    "template",
    "this",
    "throw",
    "try",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "xor",
];

/// The struct `Loop…` of a number, and the constants of the field of each; `dtype` is the call's.
pub fn of_loop(
    generation: &Generation<'_>,
    op: &Op,
    expr: &Expr,
    inputs: &[usize],
    (number, dtype): (u8, &Ident),
) -> (String, Vec<TokenStream>) {
    let mut fields = Fields {
        generation,
        op,
        dtype,
        taken: &Taken::by(op, [expr]),
        names: Vec::new(),
        types: Vec::new(),
        values: Vec::new(),
    };
    let value = fields.value(expr);
    let result = op.outputs[0].element;
    let mut text = format!("template <class T> struct Loop{number} {{\n");
    _ = writeln!(text, "  using C = Compute<T>;\n  using R = {};", stored(result));
    _ = writeln!(text, "  static constexpr int kInputs = {};", inputs.len());
    for (name, ty) in fields.names.iter().zip(&fields.types) {
        _ = writeln!(text, "  {ty} {name};");
    }
    let parameters: Vec<String> = inputs
        .iter()
        .map(|&index| {
            let arg = &op.args[index];
            let prefix = if is_mask(arg.element) { "" } else { "stored_" };
            format!("{} {prefix}{}", stored(arg.element), name(&naming::parameter(&arg.name)))
        })
        .collect();
    _ = writeln!(text, "  DEVICE R operator()({}) const {{", parameters.join(", "));
    for &index in inputs.iter().filter(|&&index| !is_mask(op.args[index].element)) {
        let name = name(&naming::parameter(&op.args[index].name));
        _ = writeln!(text, "    [[maybe_unused]] auto {name} = to_compute(stored_{name});");
    }
    let returned = if is_mask(result) { value } else { format!("from_compute<R>({value})") };
    _ = writeln!(text, "    return {returned};\n  }}\n}};");
    (text, fields.values)
}

/// The type of an operand's elements in memory.
fn stored(element: Element) -> String {
    match element {
        Element::Real => "Real<T>".to_owned(),
        Element::Opmath => "Compute<T>".to_owned(),
        Element::Fixed { kernel, .. } => format!("dtype::{}", kernel.ident()),
        Element::Dispatch | Element::Any | Element::NotTensor => "T".to_owned(),
    }
}

fn name(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    if RESERVED.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// The fields of a struct: numbers that are the same for all elements.
struct Fields<'a> {
    generation: &'a Generation<'a>,
    op: &'a Op,
    dtype: &'a Ident,
    taken: &'a Taken,
    names: Vec<String>,
    types: Vec<&'static str>,
    values: Vec<TokenStream>,
}

impl Fields<'_> {
    /// The name of a new field for the value of an expression.
    fn field(&mut self, expr: &Expr, ty: &'static str, value: TokenStream) -> String {
        let described = described(self.op, expr);
        let mut name = self.taken.free(&described).to_string();
        let mut count = 1;
        while self.names.contains(&name) {
            count += 1;
            name = self.taken.free(&format!("{described}_{count}")).to_string();
        }
        self.names.push(name.clone());
        self.types.push(ty);
        self.values.push(value);
        name
    }

    /// A number or truth value of the call, as it is.
    fn plain(&mut self, expr: &Expr) -> String {
        let value = attribute(self.generation, self.op, expr);
        match expr.ty.kind {
            Kind::Bool => self.field(expr, "bool", quote!(device_loop::Constant::bool(#value))),
            Kind::Int => self.field(expr, "i64", quote!(device_loop::Constant::int(#value))),
            Kind::Float => self.field(expr, "double", quote!(device_loop::Constant::float(#value))),
            ref other => unreachable!("the checker puts no {other:?} among elements"),
        }
    }

    fn value(&mut self, expr: &Expr) -> String {
        if is_computed(expr) && is_of_attributes(self.op, expr) {
            return self.plain(expr);
        }
        match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) if self.op.args[*index].ty.holds_tensors() => {
                name(&naming::parameter(&self.op.args[*index].name))
            }
            ExprKind::Variable(Variable::Local(local)) => name(&naming::local(self.op, local)),
            ExprKind::Variable(_) | ExprKind::Query(..) => self.plain(expr),
            ExprKind::Int(value) => int(*value),
            ExprKind::Float(value) => float(*value),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Convert(inner) => self.conversion(inner, expr),
            ExprKind::Function(id, args) => {
                let args: Vec<String> = args.iter().map(|arg| self.value(arg)).collect();
                format!("opsmith::{}({})", self.generation.model.functions[id.0].rust, args.join(", "))
            }
            ExprKind::Binary(symbol, a, b) => self.binary(*symbol, a, b),
            ExprKind::Logical(and, a, b) => {
                let (a, b) = (self.value(a), self.value(b));
                format!("({a} {} {b})", if *and { "&&" } else { "||" })
            }
            ExprKind::Unary(symbol, operand) => {
                let value = self.value(operand);
                match (symbol, is_element(operand)) {
                    (Operation::Neg, true) => format!("opsmith::neg({value})"),
                    (Operation::Neg, false) => format!("(-{value})"),
                    (_, true) => format!("opsmith::math::bitwise_not({value})"),
                    (_, false) => format!("(!{value})"),
                }
            }
            ExprKind::If(condition, yes, no) => {
                let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
                format!("({condition} ? {yes} : {no})")
            }
            ExprKind::Block(bindings, tail) => {
                let mut text = "[&] { ".to_owned();
                for (local, value) in used(bindings, tail) {
                    let value = self.value(value);
                    _ = write!(text, "auto {} = {value}; ", name(&naming::local(self.op, local)));
                }
                let tail = self.value(tail);
                format!("{text}return {tail}; }}()")
            }
            other => unreachable!("the checker lets no {other:?} into a pointwise expression"),
        }
    }

    /// A number where an element is wanted.
    fn conversion(&mut self, inner: &Expr, to: &Expr) -> String {
        let (real, op) = (to.ty.kind == Kind::RealElement, self.op);
        if !matches!(to.ty.kind, Kind::Element | Kind::RealElement) {
            return self.plain(to);
        }
        let ty = if real { "Compute<Real<T>>" } else { "C" };
        if matches!(inner.ty.kind, Kind::Element | Kind::RealElement) {
            return format!("opsmith::convert<{ty}>({})", self.value(inner));
        }
        let literal = matches!(inner.kind, ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_));
        if literal || depends_on_elements(op, inner) {
            return format!("opsmith::from_scalar<{ty}>({})", self.value(inner));
        }
        let value = attribute(self.generation, op, inner);
        let scalar = match inner.ty.kind {
            Kind::Int => quote!(rt::Scalar::Int(#value)),
            Kind::Float => quote!(rt::Scalar::Float(#value)),
            Kind::Bool => quote!(rt::Scalar::Bool(#value)),
            _ => value,
        };
        let dtype = self.dtype;
        let (bound, rounded) = (is_bound(op, inner), is_rounded(op, inner));
        let constant = match (real, bound, rounded) {
            (false, _, true) => quote!(rounded),
            (false, true, _) => quote!(bound),
            (false, false, _) => quote!(element),
            (true, true, _) => quote!(real_bound),
            (true, false, _) => quote!(real),
        };
        self.field(to, ty, quote!(device_loop::Constant::#constant(#dtype, #scalar)))
    }

    fn binary(&mut self, symbol: Operation, a: &Expr, b: &Expr) -> String {
        let elements = is_element(a);
        let (a, b) = (self.value(a), self.value(b));
        let function = match symbol {
            Operation::Add => "opsmith::add",
            Operation::Sub => "opsmith::sub",
            Operation::Mul => "opsmith::mul",
            Operation::Div => "opsmith::div",
            Operation::Rem => "opsmith::rem",
            Operation::Eq => "opsmith::equal",
            Operation::Ne => return format!("(!{})", call("opsmith::equal", elements, &a, &b, "==")),
            Operation::Lt => "opsmith::lt",
            Operation::Le => "opsmith::le",
            Operation::Gt => "opsmith::gt",
            Operation::Ge => "opsmith::ge",
            Operation::BitAnd => "opsmith::math::bitwise_and",
            Operation::BitOr => "opsmith::math::bitwise_or",
            Operation::BitXor => "opsmith::math::bitwise_xor",
            Operation::Neg | Operation::Not => unreachable!("an operator of one operand"),
        };
        let plain = match symbol {
            Operation::Add => "+",
            Operation::Sub => "-",
            Operation::Mul => "*",
            Operation::Div => "/",
            Operation::Rem => "%",
            Operation::Eq => "==",
            Operation::Lt => "<",
            Operation::Le => "<=",
            Operation::Gt => ">",
            Operation::Ge => ">=",
            Operation::BitAnd => "&",
            Operation::BitOr => "|",
            _ => "^",
        };
        call(function, elements, &a, &b, plain)
    }
}

/// An operation: of elements a function of the device library, of plain numbers and truth values an operator.
fn call(function: &str, elements: bool, a: &str, b: &str, plain: &str) -> String {
    if elements { format!("{function}({a}, {b})") } else { format!("({a} {plain} {b})") }
}

fn int(value: i64) -> String {
    match value {
        i64::MIN => "(-9223372036854775807ll - 1)".to_owned(),
        0.. => format!("{value}ll"),
        _ => format!("({value}ll)"),
    }
}

fn float(value: f64) -> String {
    if value.is_nan() {
        return "opsmith::not_a_number<double>()".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "opsmith::infinity<double>()" } else { "(-opsmith::infinity<double>())" }
            .to_owned();
    }
    let text = format!("{value:?}");
    if value.is_sign_negative() { format!("({text})") } else { text }
}

/// The bindings whose names the others or the tail mention: a derived expression may need some of its source's alone, and
/// the device's compiler warns of the rest.
fn used<'a>(bindings: &'a [(String, Expr)], tail: &'a Expr) -> Vec<&'a (String, Expr)> {
    let mut used: Vec<&(String, Expr)> = Vec::new();
    for binding in bindings.iter().rev() {
        let later = used.iter().map(|(_, value)| value).chain([tail]);
        if later.into_iter().any(|expr| mentions(expr, &binding.0)) {
            used.push(binding);
        }
    }
    used.reverse();
    used
}

fn mentions(expr: &Expr, local: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Variable(Variable::Local(name)) if name == local)
    });
    found
}
