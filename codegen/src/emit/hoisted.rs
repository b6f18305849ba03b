//! Values that are the same for all elements of a call, computed before its loop.
//!
//! In: the expression and the code of each. Out: a name for it, made of those in the expression: `one_minus_weight` for
//! `1 - weight`, `weight_element` for the element that the number `weight` is converted to.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::names::Taken;
use crate::analysis::naming;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Kind, Op, Operation};

/// The longest name made of an expression.
const LONGEST: usize = 32;

/// The values of one loop; equal ones are one.
pub(super) struct Hoisted<'a> {
    op: &'a Op,
    taken: &'a Taken,
    values: Vec<(Ident, TokenStream)>,
}

impl<'a> Hoisted<'a> {
    pub fn of(op: &'a Op, taken: &'a Taken) -> Hoisted<'a> {
        Hoisted { op, taken, values: Vec::new() }
    }

    /// The name of a value.
    pub fn name(&mut self, expr: &Expr, value: TokenStream) -> Ident {
        let code = value.to_string();
        if let Some((name, _)) = self.values.iter().find(|(_, known)| known.to_string() == code) {
            return name.clone();
        }
        let described = described(self.op, expr);
        let is_known = |name: &Ident| self.values.iter().any(|(known, _)| known == name);
        let name = (1..)
            .map(|count| if count == 1 { described.clone() } else { format!("{described}_{count}") })
            .map(|name| self.taken.free(&name))
            .find(|name| !is_known(name))
            .expect("a number that no name has");
        self.values.push((name.clone(), value));
        name
    }

    /// The statements that compute the values.
    pub fn statements(&self) -> impl Iterator<Item = TokenStream> {
        self.values.iter().map(|(name, value)| quote!(let #name = #value;))
    }
}

/// A name that describes the value of an expression of attributes.
pub(super) fn described(op: &Op, expr: &Expr) -> String {
    let (inner, converted) = match &expr.kind {
        ExprKind::Convert(inner) => (&**inner, &expr.ty.kind),
        _ => (expr, &Kind::None),
    };
    let words = words(op, inner).filter(|words| is_name(words)).unwrap_or_else(|| "number".to_owned());
    let is_word_of_its_own = matches!(
        inner.kind,
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Binary(..) | ExprKind::Unary(..)
    );
    match converted {
        Kind::RealElement => format!("{words}_real"),
        _ if is_word_of_its_own => words,
        Kind::Element => format!("{words}_element"),
        _ => format!("{words}_value"),
    }
}

fn is_name(words: &str) -> bool {
    let mut letters = words.chars();
    letters.next().is_some_and(|first| first.is_ascii_lowercase())
        && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
        && words.len() <= LONGEST
}

/// An expression in words; `None` if it has parts without a short one.
fn words(op: &Op, expr: &Expr) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => {
            naming::parameter(&op.args[*index].name).trim_end_matches('_').to_owned()
        }
        ExprKind::Int(value) => {
            let small =
                ["nought", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
            (*small.get(usize::try_from(*value).ok()?)?).to_owned()
        }
        ExprKind::Float(0.0) => "nought".to_owned(),
        ExprKind::Float(0.5) => "half".to_owned(),
        ExprKind::Float(1.0) => "one".to_owned(),
        ExprKind::Convert(inner) => words(op, inner)?,
        ExprKind::Query(_, base, given) if given.is_empty() => words(op, base)?,
        ExprKind::Unary(Operation::Neg, operand) => format!("minus_{}", words(op, operand)?),
        ExprKind::Binary(symbol, a, b) => {
            let symbol = match symbol {
                Operation::Add => "plus",
                Operation::Sub => "minus",
                Operation::Mul => "times",
                Operation::Div => "over",
                _ => return None,
            };
            format!("{}_{symbol}_{}", words(op, a)?, words(op, b)?)
        }
        _ => return None,
    })
}
