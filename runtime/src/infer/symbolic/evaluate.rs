//! Evaluation of inference rules on sizes that may be unknown.
//!
//! In: expressions of an operator's rules and its arguments. Out: values, in which sizes are formulas and truth values
//! are conditions. An error of compiled inference is an error here too, if it is certain; an undecided check becomes a
//! condition.

use opsmith_core::DType;

use super::condition::{Condition, Context};
use super::extent::Formulas;
use super::rules;
use super::shape::{Shape, Sizes};
use super::size::Size;
use super::tensor_meta::{ArgumentMeta, Meta};
use crate::arg::Arg;
use crate::checked;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::infer::expr::{Conversion, Expr, Operation};
use crate::scalar::Scalar;

/// A value inside a rule.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    None,
    Truth(Condition),
    Size(Size),
    Float(f64),
    Scalar(Scalar),
    Str(&'a str),
    DType(DType),
    Device(Device),
    /// Sizes, possibly of unknown rank.
    Sizes(Shape),
    Tensor(&'a Meta),
    Tensors(&'a [Meta]),
    OptionalTensors(&'a [Option<Meta>]),
    /// An argument that rules only pass on.
    Other(Arg<'a>),
    /// An unknown value.
    Unknown,
}

/// One evaluation.
pub(super) struct Evaluation<'a, 'c> {
    /// The operator's name, for guards.
    pub name: &'static str,
    pub args: &'a [ArgumentMeta<'a>],
    pub context: &'c mut Context,
    /// Names with their values, the innermost last.
    pub locals: Vec<(&'a str, Value<'a>)>,
    /// Tensors given by constant arguments.
    pub constants: &'a [Option<Meta>],
}

impl<'a> Evaluation<'a, '_> {
    /// The value of an expression.
    pub fn value(&mut self, expr: &'a Expr<'a>) -> Result<Value<'a>> {
        Ok(match expr {
            Expr::Arg(index) => self.argument(usize::from(*index)),
            Expr::Local(name) => {
                let found = self.locals.iter().rev().find(|(known, _)| known == name);
                found.map_or(Value::Unknown, |(_, value)| value.clone())
            }
            Expr::Int(value) => Value::Size(Size::Const(*value)),
            Expr::Float(value) => Value::Float(*value),
            Expr::Bool(value) => Value::Truth(Condition::known(*value)),
            Expr::Str(text) => Value::Str(text),
            Expr::DType(dtype) => Value::DType(*dtype),
            Expr::None => Value::None,
            Expr::List(items) => self.list(items)?,
            Expr::ShapeRule(rule, args) => Value::Sizes(rules::shape(self, *rule, args)?),
            Expr::DTypeRule(rule, args) => {
                rules::dtype(self, *rule, args)?.map_or(Value::Unknown, Value::DType)
            }
            Expr::Native(_) => Value::Unknown,
            Expr::Query(query, parts) => self.query(*query, parts)?,
            Expr::Binary(operation, [a, b]) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(*operation, a, b)?
            }
            Expr::And([a, b]) => match self.truth(a)? {
                Condition::False => Value::Truth(Condition::False),
                left => Value::Truth(left.and(self.truth(b)?)),
            },
            Expr::Or([a, b]) => match self.truth(a)? {
                Condition::True => Value::Truth(Condition::True),
                left => {
                    // The right side may rely on the left one being false.
                    let right = self.truth(b).unwrap_or(Condition::Unknown);
                    Value::Truth(left.or(right))
                }
            },
            Expr::Not(inner) => Value::Truth(self.truth(inner)?.negated()),
            Expr::Neg(inner) => match self.value(inner)? {
                Value::Size(size) => Value::Size(-size),
                other => number(&other).map_or(Value::Unknown, |value| Value::Float(-value)),
            },
            Expr::If([condition, yes, no]) => match self.truth(condition)? {
                Condition::True => self.value(yes)?,
                Condition::False => self.value(no)?,
                open => self.open_choice(open, yes, no)?,
            },
            Expr::Block(bindings, tail) => self.block(bindings, tail)?,
            Expr::Index([base, at]) => {
                let (base, at) = (self.value(base)?, self.size(at)?);
                index(base, &at)?
            }
            Expr::Convert(to, inner) => convert(*to, self.value(inner)?),
        })
    }

    /// The value of an expression with names that hold in it alone.
    fn block(&mut self, bindings: &'a [(&'a str, Expr<'a>)], tail: &'a Expr<'a>) -> Result<Value<'a>> {
        let outside = self.locals.len();
        for (name, value) in bindings {
            let value = self.value(value)?;
            self.locals.push((name, value));
        }
        let value = self.value(tail);
        self.locals.truncate(outside);
        value
    }

    /// The value of an argument.
    fn argument(&self, index: usize) -> Value<'a> {
        match self.args[index] {
            ArgumentMeta::Tensor(meta) => Value::Tensor(meta),
            ArgumentMeta::Tensors(metas) => Value::Tensors(metas),
            ArgumentMeta::OptionalTensors(metas) => Value::OptionalTensors(metas),
            ArgumentMeta::Int(size) => Value::Size(size.clone()),
            ArgumentMeta::Ints(sizes) => Value::Sizes(sizes.iter().cloned().collect()),
            ArgumentMeta::Plain(arg) => match arg {
                Arg::None => Value::None,
                Arg::Bool(value) => Value::Truth(Condition::known(value)),
                Arg::Int(value) => Value::Size(Size::Const(value)),
                Arg::Float(value) => Value::Float(value),
                Arg::Scalar(Scalar::Int(value)) => Value::Size(Size::Const(value)),
                Arg::Scalar(value) => Value::Scalar(value),
                Arg::Str(text) => Value::Str(text),
                Arg::Ints(values) => Value::Sizes(Shape::concrete(values)),
                Arg::DType(dtype) => Value::DType(dtype),
                Arg::Device(device) => Value::Device(device),
                Arg::Tensor(_) => self.constants[index].as_ref().map_or(Value::Unknown, Value::Tensor),
                other => Value::Other(other),
            },
        }
    }

    pub fn truth(&mut self, expr: &'a Expr<'a>) -> Result<Condition> {
        Ok(match self.value(expr)? {
            Value::Truth(condition) => condition,
            _ => Condition::Unknown,
        })
    }

    /// An expression as an integer; unknown for a value of another kind.
    pub fn size(&mut self, expr: &'a Expr<'a>) -> Result<Size> {
        Ok(match self.value(expr)? {
            Value::Size(size) => size,
            Value::Scalar(scalar) => Size::Const(scalar.as_integer()?),
            Value::Truth(Condition::True) => Size::Const(1),
            Value::Truth(Condition::False) => Size::Const(0),
            _ => Size::Unknown,
        })
    }

    /// An expression as sizes.
    pub fn sizes(&mut self, expr: &'a Expr<'a>) -> Result<Shape> {
        Ok(match self.value(expr)? {
            Value::Sizes(sizes) => sizes,
            _ => Shape::UnknownRank,
        })
    }

    fn list(&mut self, items: &'a [Expr<'a>]) -> Result<Value<'a>> {
        let sizes = items.iter().map(|item| self.size(item)).collect::<Result<Sizes>>()?;
        Ok(Value::Sizes(Shape::Known(sizes)))
    }

    /// An undecided choice: the common part of both branches, else the branch that the symbols' example values select,
    /// which becomes a guard.
    fn open_choice(&mut self, open: Condition, yes: &'a Expr<'a>, no: &'a Expr<'a>) -> Result<Value<'a>> {
        let (first, second) = (self.value(yes), self.value(no));
        let (first, second) = match (first, second) {
            (Ok(first), Ok(second)) => (first, second),
            // A branch that fails is not taken.
            (Ok(first), Err(_)) => {
                self.guard(open, "another branch of its rule is not possible");
                return Ok(first);
            }
            (Err(_), Ok(second)) => {
                self.guard(open.negated(), "another branch of its rule is not possible");
                return Ok(second);
            }
            (Err(error), Err(_)) => return Err(error),
        };
        if let Some(common) = common(&first, &second) {
            return Ok(common);
        }
        let symbols = &self.context.symbols;
        match open.decided_by(&|size| size.evaluate(|symbol| symbols.example(symbol))) {
            Some(true) => {
                self.guard(open, "its rule chooses by this, and the example had it so");
                Ok(first)
            }
            Some(false) => {
                self.guard(open.negated(), "its rule chooses by this, and the example had it so");
                Ok(second)
            }
            None => Ok(merged(&first, &second)),
        }
    }

    pub fn guard(&mut self, condition: Condition, reason: &str) {
        self.formulas().guard(condition, reason);
    }

    /// Comparisons and arithmetic of sizes, with guards.
    pub fn formulas(&mut self) -> Formulas<'_> {
        Formulas { op: self.name, context: &mut *self.context }
    }

    fn binary(&mut self, operation: Operation, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>> {
        if operation.is_comparison() {
            return Ok(Value::Truth(self.comparison(operation, &a, &b)));
        }
        if let (Value::Size(a), Value::Size(b)) = (&a, &b) {
            let symbols = &mut self.context.symbols;
            return Ok(Value::Size(match operation {
                Operation::Add => a + b,
                Operation::Sub => a - b,
                Operation::Mul => a * b,
                Operation::Div | Operation::Rem if *b == 0 => {
                    return Err(checked::int_div(a.known().unwrap_or(0), 0).unwrap_err());
                }
                Operation::Div => symbols.quotient(a, b),
                Operation::Rem => symbols.remainder(a, b),
                _ => match (a.known(), b.known(), operation) {
                    (Some(a), Some(b), Operation::BitAnd) => Size::Const(a & b),
                    (Some(a), Some(b), Operation::BitOr) => Size::Const(a | b),
                    (Some(a), Some(b), Operation::BitXor) => Size::Const(a ^ b),
                    _ => Size::Unknown,
                },
            }));
        }
        let (Some(a), Some(b)) = (number(&a), number(&b)) else { return Ok(Value::Unknown) };
        Ok(match operation {
            Operation::Add => Value::Float(a + b),
            Operation::Sub => Value::Float(a - b),
            Operation::Mul => Value::Float(a * b),
            Operation::Div => Value::Float(a / b),
            Operation::Rem => Value::Float(a % b),
            _ => Value::Unknown,
        })
    }

    fn comparison(&self, operation: Operation, a: &Value<'_>, b: &Value<'_>) -> Condition {
        use Operation::{Eq, Ge, Gt, Le, Lt, Ne};
        let equal = match (a, b) {
            (Value::Size(a), Value::Size(b)) => {
                return match operation {
                    Eq => self.context.equal(a, b),
                    Ne => self.context.equal(a, b).negated(),
                    Lt => self.context.less(a, b),
                    Gt => self.context.less(b, a),
                    Le => self.context.less(b, a).negated(),
                    _ => self.context.less(a, b).negated(),
                };
            }
            (Value::Str(a), Value::Str(b)) => Some(Condition::known(a == b)),
            (Value::DType(a), Value::DType(b)) => Some(Condition::known(a == b)),
            (Value::Device(a), Value::Device(b)) => Some(Condition::known(a == b)),
            (Value::Sizes(a), Value::Sizes(b)) => Some(match (a.sizes(), b.sizes()) {
                (Some(a), Some(b)) if a.len() == b.len() => {
                    a.iter().zip(b).fold(Condition::True, |all, (a, b)| all.and(self.context.equal(a, b)))
                }
                (Some(_), Some(_)) => Condition::False,
                _ => Condition::Unknown,
            }),
            (Value::Truth(a), Value::Truth(b)) => Some(match (a, b) {
                (Condition::True, other) | (other, Condition::True) => other.clone(),
                (Condition::False, other) | (other, Condition::False) => other.clone().negated(),
                _ => Condition::Unknown,
            }),
            _ => None,
        };
        if let Some(equal) = equal {
            return if operation == Ne { equal.negated() } else { equal };
        }
        let (Some(a), Some(b)) = (number(a), number(b)) else { return Condition::Unknown };
        Condition::known(match operation {
            Eq => a == b,
            Ne => a != b,
            Lt => a < b,
            Le => a <= b,
            Gt => a > b,
            Ge => a >= b,
            _ => return Condition::Unknown,
        })
    }
}

/// The agreement of two values, if they are equal.
fn common<'a>(a: &Value<'a>, b: &Value<'a>) -> Option<Value<'a>> {
    let same = match (a, b) {
        (Value::Size(a), Value::Size(b)) => a == b && !a.is_unknown(),
        (Value::Sizes(Shape::Known(a)), Value::Sizes(Shape::Known(b))) => {
            a == b && !a.iter().any(Size::is_unknown)
        }
        (Value::DType(a), Value::DType(b)) => a == b,
        (Value::Truth(a), Value::Truth(b)) => a == b,
        (Value::None, Value::None) => true,
        _ => false,
    };
    same.then(|| a.clone())
}

/// The agreement of two possible values.
fn merged<'a>(a: &Value<'a>, b: &Value<'a>) -> Value<'a> {
    match (a, b) {
        (Value::Sizes(Shape::Known(a)), Value::Sizes(Shape::Known(b))) if a.len() == b.len() => {
            let sizes = a.iter().zip(b).map(|(a, b)| if a == b { a.clone() } else { Size::Unknown });
            Value::Sizes(sizes.collect())
        }
        (Value::Sizes(_), Value::Sizes(_)) => Value::Sizes(Shape::UnknownRank),
        (Value::Size(_), Value::Size(_)) => Value::Size(Size::Unknown),
        (Value::Truth(_), Value::Truth(_)) => Value::Truth(Condition::Unknown),
        _ => Value::Unknown,
    }
}

/// A plain number, if it is known.
pub(super) fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Size(size) => size.known().map(|value| value as f64),
        Value::Float(value) => Some(*value),
        Value::Scalar(value) => Some(value.to_f64()),
        Value::Truth(Condition::True) => Some(1.0),
        Value::Truth(Condition::False) => Some(0.0),
        _ => None,
    }
}

fn convert<'a>(to: Conversion, value: Value<'a>) -> Value<'a> {
    match (to, value) {
        (Conversion::Float, Value::Size(size)) => {
            size.known().map_or(Value::Unknown, |v| Value::Float(v as f64))
        }
        (Conversion::Int, Value::Truth(Condition::True)) => Value::Size(Size::Const(1)),
        (Conversion::Int, Value::Truth(Condition::False)) => Value::Size(Size::Const(0)),
        (Conversion::Int, Value::Truth(_)) => Value::Size(Size::Unknown),
        (Conversion::Ints(count), Value::Size(size)) => {
            Value::Sizes((0..count).map(|_| size.clone()).collect())
        }
        (_, value) => value,
    }
}

fn index<'a>(base: Value<'a>, at: &Size) -> Result<Value<'a>> {
    let Some(at) = at.known() else {
        return Ok(match base {
            Value::Sizes(_) => Value::Size(Size::Unknown),
            _ => Value::Unknown,
        });
    };
    Ok(match base {
        Value::Sizes(Shape::Known(sizes)) => Value::Size(checked::item(&sizes, at)?.clone()),
        Value::Sizes(Shape::UnknownRank) => Value::Size(Size::Unknown),
        Value::Tensors(list) => Value::Tensor(checked::item(list, at)?),
        Value::OptionalTensors(list) => checked::item(list, at)?.as_ref().map_or(Value::None, Value::Tensor),
        Value::Other(Arg::Floats(list)) => Value::Float(*checked::item(list, at)?),
        Value::Other(Arg::Bools(list)) => Value::Truth(Condition::known(*checked::item(list, at)?)),
        Value::Other(Arg::Scalars(list)) => Value::Scalar(*checked::item(list, at)?),
        Value::Other(Arg::Strs(list)) => Value::Str(checked::item(list, at)?),
        Value::Other(Arg::DTypes(list)) => Value::DType(*checked::item(list, at)?),
        Value::None => return Err(Error::argument("an optional argument is absent that this call needs")),
        _ => Value::Unknown,
    })
}
