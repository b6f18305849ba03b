//! Values of expressions in double precision, element by element.
//!
//! In: an expression of an operator and the values of its arguments, a number for each tensor. Out: a value, or the reason
//! why it has none: a kernel, sizes, complex numbers. Must not know pictures.

use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Default, Kind, Model, Op, OpId, Operation, Role};
use opsmith_core::DType;

use crate::scalar;

/// The deepest calls of operators in each other.
const DEPTH: usize = 24;
/// The most expressions of one value: compositions may call themselves.
const STEPS: usize = 20_000;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Number(f64),
    Bool(bool),
    Text(String),
    DType(DType),
    None,
    List(Vec<Value>),
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Bool(holds) => Some(f64::from(u8::from(*holds))),
            _ => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Value::Bool(holds) => Some(*holds),
            Value::Number(number) => Some(*number != 0.0),
            _ => None,
        }
    }
}

/// The value of a default.
pub(super) fn default(default: &Default) -> Value {
    match default {
        Default::None => Value::None,
        Default::Bool(value) => Value::Bool(*value),
        Default::Int(value) => Value::Number(*value as f64),
        Default::Float(value) => Value::Number(*value),
        Default::Str(text) => Value::Text(text.clone()),
        Default::List(items) => Value::List(items.iter().map(self::default).collect()),
        Default::DType(dtype) => Value::DType(*dtype),
        Default::MemoryFormat(format) => Value::Text(format.ident().to_owned()),
    }
}

/// The values that the names of an expression have.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    pub args: Vec<Value>,
    pub grad: Option<f64>,
    pub result: Option<f64>,
}

/// Evaluates expressions.
pub(super) struct Evaluator<'a> {
    model: &'a Model,
    steps: usize,
}

impl<'a> Evaluator<'a> {
    pub fn new(model: &'a Model) -> Evaluator<'a> {
        Evaluator { model, steps: 0 }
    }

    /// One element of the result of an operator.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn operator(&mut self, op: &'a Op, names: &Names, depth: usize) -> Result<Value, String> {
        let op = op.alias_of.and_then(|OpId(id)| self.model.ops.get(id)).unwrap_or(op);
        let body = op.body.pointwise.as_ref().or(op.body.composite.as_ref());
        let body = body.filter(|_| depth < DEPTH);
        let body = body.ok_or_else(|| format!("it calls `{}`, which has no expression", op.name))?;
        self.expression(body, names, &mut Vec::new(), depth)
    }

    /// An expression. `locals` are the bindings around it, the innermost last.
    ///
    /// # Errors
    /// As [`Evaluator::operator`].
    pub fn expression(
        &mut self,
        expr: &'a Expr,
        names: &Names,
        locals: &mut Vec<(&'a str, Value)>,
        depth: usize,
    ) -> Result<Value, String> {
        self.steps += 1;
        if self.steps > STEPS {
            return Err("its expression is too long".to_owned());
        }
        let mut value = |expr: &'a Expr| self.expression(expr, names, locals, depth);
        Ok(match &expr.kind {
            ExprKind::Variable(variable) => variable_of(variable, names, locals)?,
            ExprKind::Int(value) => Value::Number(*value as f64),
            ExprKind::Float(value) => Value::Number(*value),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Str(text) => Value::Text(text.clone()),
            ExprKind::DType(dtype) => Value::DType(*dtype),
            ExprKind::None => Value::None,
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                Value::List(items.iter().map(&mut value).collect::<Result<_, _>>()?)
            }
            ExprKind::Convert(inner) => value(inner)?,
            ExprKind::Logical(and, a, b) => {
                let first = truth(value(a)?)?;
                if first == *and { value(b)? } else { Value::Bool(first) }
            }
            ExprKind::Unary(Operation::Not, operand) => Value::Bool(!truth(value(operand)?)?),
            ExprKind::Unary(_, operand) => Value::Number(-number(value(operand)?)?),
            ExprKind::Binary(symbol, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                operation(*symbol, a, b, expr.ty.kind == Kind::Int)?
            }
            ExprKind::If(condition, yes, no) => {
                if truth(value(condition)?)? {
                    value(yes)?
                } else {
                    value(no)?
                }
            }
            ExprKind::Block(bindings, tail) => {
                let outside = locals.len();
                for (name, bound) in bindings {
                    let bound = self.expression(bound, names, locals, depth)?;
                    locals.push((name, bound));
                }
                let result = self.expression(tail, names, locals, depth);
                locals.truncate(outside);
                result?
            }
            ExprKind::Index(list, position) => {
                let (list, position) = (value(list)?, number(value(position)?)?);
                match list {
                    Value::List(items) => {
                        let index = if position < 0.0 { position + items.len() as f64 } else { position };
                        let item = (index >= 0.0).then(|| items.get(index as usize)).flatten();
                        item.cloned().ok_or("a position is outside of its list")?
                    }
                    _ => return Err("it reads tensors by position".to_owned()),
                }
            }
            ExprKind::Query(query, base, args) => {
                let base = value(base)?;
                let args = args.iter().map(&mut value).collect::<Result<Vec<_>, _>>()?;
                answer(*query, base, args)?
            }
            ExprKind::Function(id, args) => {
                let args = args.iter().map(&mut value).collect::<Result<Vec<_>, _>>()?;
                self.function(id.0, args)?
            }
            ExprKind::Op(id, args) => {
                let args = args.iter().map(&mut value).collect::<Result<Vec<_>, _>>()?;
                self.call(*id, args, depth)?
            }
            ExprKind::Imaginary
            | ExprKind::MemoryFormat(_)
            | ExprKind::Rule(..)
            | ExprKind::Native(..)
            | ExprKind::NotImplemented(_)
            | ExprKind::Map(..)
            | ExprKind::Opaque(_) => return Err("it depends on more than elements".to_owned()),
        })
    }

    fn function(&self, id: usize, args: Vec<Value>) -> Result<Value, String> {
        let function = self.model.functions.get(id).ok_or("a function is not known")?;
        let unknown = || format!("the value of the function `{}` is not known here", function.name);
        let row = scalar::known(function).ok_or_else(unknown)?;
        let numbers: Option<Vec<f64>> = args.iter().map(Value::number).collect();
        let value = match (row.value, numbers.as_deref()) {
            (scalar::Value::One(f), Some(&[x])) => f(x),
            (scalar::Value::Two(f), Some(&[a, b])) => f(a, b),
            (scalar::Value::Three(f), Some(&[a, b, c])) => f(a, b, c),
            _ => return Err(unknown()),
        };
        let is_truth = function.returns == opsmith_codegen::model::FunctionReturn::Bool;
        Ok(if is_truth { Value::Bool(value != 0.0) } else { Value::Number(value) })
    }

    fn call(&mut self, id: OpId, args: Vec<Value>, depth: usize) -> Result<Value, String> {
        let op = self.model.ops.get(id.0).ok_or("an operator is not known")?;
        match (op.role, args.as_slice()) {
            (Some(Role::Select), [condition, yes, no]) => {
                Ok(if truth(condition.clone())? { yes.clone() } else { no.clone() })
            }
            (Some(Role::Conjugate | Role::Cast), [tensor, ..]) => Ok(tensor.clone()),
            _ => self.operator(op, &Names { args, ..Names::default() }, depth + 1),
        }
    }
}

fn variable_of(variable: &Variable, names: &Names, locals: &[(&str, Value)]) -> Result<Value, String> {
    let found = match variable {
        Variable::Arg(index) => names.args.get(*index).cloned(),
        Variable::Grad(_) => names.grad.map(Value::Number),
        Variable::Result(_) => names.result.map(Value::Number),
        Variable::Local(text) => {
            locals.iter().rfind(|(name, _)| name == text).map(|(_, value)| value.clone())
        }
        Variable::Grads | Variable::Tangent(_) | Variable::GradInputMask => None,
    };
    found.ok_or_else(|| "it reads more than one result".to_owned())
}

fn number(value: Value) -> Result<f64, String> {
    value.number().ok_or_else(|| "an operand is no number".to_owned())
}

fn truth(value: Value) -> Result<bool, String> {
    value.truth().ok_or_else(|| "a condition is no truth value".to_owned())
}

fn operation(symbol: Operation, a: Value, b: Value, is_integer: bool) -> Result<Value, String> {
    match symbol {
        Operation::Eq if a.number().is_none() || b.number().is_none() => return Ok(Value::Bool(a == b)),
        Operation::Ne if a.number().is_none() || b.number().is_none() => return Ok(Value::Bool(a != b)),
        _ => {}
    }
    let both = (truth(a.clone()), truth(b.clone()));
    let (a, b) = (number(a)?, number(b)?);
    Ok(match symbol {
        Operation::Add => Value::Number(a + b),
        Operation::Sub => Value::Number(a - b),
        Operation::Mul => Value::Number(a * b),
        Operation::Div if is_integer => Value::Number((a / b).trunc()),
        Operation::Div => Value::Number(a / b),
        Operation::Rem => Value::Number(a % b),
        Operation::Eq => Value::Bool(a == b),
        Operation::Ne => Value::Bool(a != b),
        Operation::Lt => Value::Bool(a < b),
        Operation::Le => Value::Bool(a <= b),
        Operation::Gt => Value::Bool(a > b),
        Operation::Ge => Value::Bool(a >= b),
        Operation::BitAnd => Value::Bool(both.0? && both.1?),
        Operation::BitOr => Value::Bool(both.0? || both.1?),
        Operation::BitXor => Value::Bool(both.0? != both.1?),
        Operation::Neg | Operation::Not => return Err("an operator has one operand".to_owned()),
    })
}

/// The result of a query of a value: of a tensor, as of one of `float64`.
fn answer(query: Query, base: Value, args: Vec<Value>) -> Result<Value, String> {
    Ok(match query {
        Query::IsSome => Value::Bool(base != Value::None),
        Query::IsNone => Value::Bool(base == Value::None),
        Query::Unwrap if base != Value::None => base,
        Query::UnwrapOr => match (base, args.into_iter().next()) {
            (Value::None, Some(other)) => other,
            (base, _) => base,
        },
        Query::Conj => base,
        Query::IsZero => Value::Bool(number(base)? == 0.0),
        Query::DType => Value::DType(DType::F64),
        Query::IsComplex => match base {
            Value::DType(dtype) => Value::Bool(dtype.is_complex()),
            _ => Value::Bool(false),
        },
        Query::IsFloat => match base {
            Value::DType(dtype) => Value::Bool(dtype.is_float()),
            _ => Value::Bool(true),
        },
        Query::IsInt => match base {
            Value::DType(dtype) => Value::Bool(dtype.is_int()),
            _ => Value::Bool(false),
        },
        Query::Len => match base {
            Value::List(items) => Value::Number(items.len() as f64),
            _ => return Err("it depends on lengths".to_owned()),
        },
        _ => return Err("it depends on sizes".to_owned()),
    })
}
