//! Inference rules of a spec, computed over given arguments without building anything.
//!
//! In: typed expressions of the model and a value for each argument ([`arguments`]). Out: shapes and
//! dtypes, or why they cannot be known here. The named rules are the runtime's own functions, so an
//! answer is what a call would give; functions of the kernels crate are compiled code that this
//! command does not contain, and are said to be so.

mod arguments;
#[cfg(test)]
mod tests;

use opsmith_codegen::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Check, Infer, Kind, Op, Symbol};
use opsmith_core::rules::{self, RuleParam};
use opsmith_runtime::infer::{self, Operand};
use opsmith_runtime::lists::AnyLists;
use opsmith_runtime::{DType, Scalar, Tensor, Value, dispatch};

pub use arguments::{Given, values};

/// Why an expression has no value here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// The call itself would fail so.
    Error(String),
    /// It calls code that this command does not contain.
    Compiled(String),
}

type Result<T> = std::result::Result<T, Unknown>;

/// What inference says of a call.
pub struct Answer {
    /// The conditions that do not hold, or cannot be decided here.
    pub checks: Vec<(String, Unknown)>,
    /// The sizes of each output.
    pub shapes: Vec<Result<Vec<i64>>>,
    /// The dtype of each output.
    pub dtypes: Vec<Result<DType>>,
    /// The dtype that chooses the kernel.
    pub compute: Result<DType>,
}

/// Evaluates an operator's rules for the arguments of a call.
pub fn answer(op: &Op, infer: &Infer, args: &[Value]) -> Answer {
    let evaluate = |expr: &Expr| Evaluation { args, locals: Vec::new() }.value(expr);
    let dtype = |expr: &Expr| match evaluate(expr)? {
        Value::DType(dtype) => Ok(dtype),
        other => Err(unexpected(&other)),
    };
    let sizes = |expr: &Expr| match evaluate(expr)? {
        Value::Ints(sizes) => Ok(sizes),
        other => Err(unexpected(&other)),
    };
    // A hand-written function says it for every output.
    let function = infer.function.as_deref().map(|path| vec![path; op.outputs.len()]).unwrap_or_default();
    let compiled_shapes = function.iter().map(|path| Err(compiled(path)));
    let written = infer.dtypes.iter().filter(|_| function.is_empty()).map(dtype);
    Answer {
        checks: op.checks.iter().filter_map(|check| failed(check, args)).collect(),
        shapes: infer.shapes.iter().map(sizes).chain(compiled_shapes).collect(),
        dtypes: written.chain(function.iter().map(|path| Err(compiled(path)))).collect(),
        compute: dtype(&infer.compute),
    }
}

/// A condition that does not hold, with the error a call would give.
fn failed(check: &Check, args: &[Value]) -> Option<(String, Unknown)> {
    let mut evaluation = Evaluation { args, locals: Vec::new() };
    match evaluation.value(&check.condition) {
        Ok(Value::Bool(true)) => None,
        Ok(_) => {
            let sides = match &check.condition.kind {
                ExprKind::Binary(_, a, b) => [evaluation.int(a), evaluation.int(b)],
                _ => [Err(Unknown::Error(String::new())), Err(Unknown::Error(String::new()))],
            };
            let sides: Vec<i64> = sides.into_iter().filter_map(Result::ok).collect();
            Some((check.text.clone(), error(infer::check_failed(&check.text, &sides))))
        }
        Err(unknown) => Some((check.text.clone(), unknown)),
    }
}

struct Evaluation<'a> {
    args: &'a [Value],
    locals: Vec<(String, Value)>,
}

impl Evaluation<'_> {
    fn value(&mut self, expr: &Expr) -> Result<Value> {
        Ok(match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => self.args[*index].clone(),
            ExprKind::Variable(Variable::Local(name)) => {
                let known = self.locals.iter().rev().find(|(known, _)| known == name);
                known.map(|(_, value)| value.clone()).unwrap_or(Value::None)
            }
            ExprKind::Variable(_) => return Err(compiled("a gradient or result")),
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::DType(dtype) => Value::DType(*dtype),
            ExprKind::None => Value::None,
            ExprKind::List(items) => self.list(items)?,
            ExprKind::Rule(name, args) => self.rule(name, args, expr.ty.kind == Kind::DType)?,
            ExprKind::Native(path, _) => return Err(compiled(path)),
            ExprKind::Query(query, base, args) => self.query(*query, base, args)?,
            ExprKind::Binary(symbol, a, b) => self.binary(*symbol, a, b)?,
            ExprKind::Logical(and, a, b) => match (self.bool(a)?, and) {
                (false, true) => Value::Bool(false),
                (true, false) => Value::Bool(true),
                _ => Value::Bool(self.bool(b)?),
            },
            ExprKind::Unary(Symbol::Not, operand) => Value::Bool(!self.bool(operand)?),
            ExprKind::Unary(_, operand) => match self.value(operand)? {
                Value::Int(value) => Value::Int(value.wrapping_neg()),
                other => Value::Float(-scalar(&other)?.to_f64()),
            },
            ExprKind::If(condition, yes, no) => match self.bool(condition)? {
                true => self.value(yes)?,
                false => self.value(no)?,
            },
            ExprKind::Block(bindings, tail) => {
                let outside = self.locals.len();
                for (name, value) in bindings {
                    let value = self.value(value)?;
                    self.locals.push((name.clone(), value));
                }
                let value = self.value(tail);
                self.locals.truncate(outside);
                value?
            }
            ExprKind::Index(base, position) => self.index(base, position)?,
            ExprKind::Convert(inner) => convert(self.value(inner)?, &expr.ty.kind),
            ExprKind::Op(..) | ExprKind::Function(..) => return Err(compiled("an operator")),
            ExprKind::Tuple(_) | ExprKind::NotImplemented(_) | ExprKind::Opaque(_) => {
                return Err(compiled("several values"));
            }
        })
    }

    fn list(&mut self, items: &[Expr]) -> Result<Value> {
        let values: Vec<Value> = items.iter().map(|item| self.value(item)).collect::<Result<_>>()?;
        if values.iter().any(|value| matches!(value, Value::Tensor(_))) {
            let tensors = values.into_iter().filter_map(|value| match value {
                Value::Tensor(tensor) => Some(tensor),
                _ => None,
            });
            return Ok(Value::Tensors(tensors.collect()));
        }
        values.iter().map(int).collect::<Result<_>>().map(Value::Ints)
    }

    fn bool(&mut self, expr: &Expr) -> Result<bool> {
        match self.value(expr)? {
            Value::Bool(value) => Ok(value),
            other => Err(unexpected(&other)),
        }
    }

    fn int(&mut self, expr: &Expr) -> Result<i64> {
        int(&self.value(expr)?)
    }

    /// A named rule of the runtime.
    fn rule(&mut self, name: &str, args: &[Expr], is_dtype: bool) -> Result<Value> {
        let row = if is_dtype { rules::dtype_rule(name) } else { rules::shape_rule(name) };
        let values: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect::<Result<_>>()?;
        if row.is_some_and(|row| row.params == [RuleParam::Operands]) {
            let operands: Vec<Operand<'_>> = values.iter().map(|value| value.as_arg().into()).collect();
            return match name {
                "broadcast" => sizes(infer::shape::broadcast(&operands)),
                "same" => dtype(infer::dtype::same(&operands)),
                "promote" => dtype(infer::dtype::promote(&operands)),
                "promote_float" => dtype(infer::dtype::promote_float(&operands)),
                _ => Err(compiled(name)),
            };
        }
        match (is_dtype, name, values.as_slice()) {
            (false, "follow", [Value::Tensor(tensor)]) => sizes(infer::shape::follow(tensor)),
            (false, "reduce", [Value::Tensor(tensor), dims, Value::Bool(keepdim)]) => {
                let dims = match dims {
                    Value::Ints(dims) => Some(dims.as_slice()),
                    _ => None,
                };
                sizes(infer::shape::reduce(tensor, dims, *keepdim))
            }
            (false, "matmul", [Value::Tensor(a), Value::Tensor(b)]) => sizes(infer::shape::matmul(a, b)),
            (false, "cat", [Value::Tensors(tensors), Value::Int(dim)]) => {
                sizes(infer::shape::cat(tensors, *dim))
            }
            (false, "full", [Value::Ints(given)]) => sizes(infer::shape::full(given)),
            (true, "follow", [Value::Tensor(tensor)]) => dtype(infer::dtype::follow(tensor)),
            (true, "complex", [Value::Tensor(tensor)]) => dtype(infer::dtype::complex(tensor)),
            (true, "real", [Value::Tensor(tensor)]) => dtype(infer::dtype::real(tensor)),
            (true, "accumulate", [Value::Tensor(tensor), wanted]) => {
                dtype(infer::dtype::accumulate(tensor, optional_dtype(wanted)))
            }
            (true, "or_default", [wanted]) => dtype(infer::dtype::or_default(optional_dtype(wanted))),
            _ => Err(compiled(name)),
        }
    }

    fn query(&mut self, query: Query, base: &Expr, args: &[Expr]) -> Result<Value> {
        let value = self.value(base)?;
        Ok(match (query, &value) {
            (Query::IsSome, value) => Value::Bool(!matches!(value, Value::None)),
            (Query::IsNone, value) => Value::Bool(matches!(value, Value::None)),
            (Query::Unwrap, Value::None) => return Err(error(dispatch::present::<()>(None).unwrap_err())),
            (Query::Unwrap, value) => value.clone(),
            (Query::UnwrapOr, Value::None) => self.value(&args[0])?,
            (Query::UnwrapOr, value) => value.clone(),
            (Query::Sizes, Value::Tensor(tensor)) => Value::Ints(tensor.shape().to_vec()),
            (Query::Size, Value::Tensor(tensor)) => {
                let dim = self.int(&args[0])?;
                Value::Int(dispatch::size(tensor.shape(), dim).map_err(error)?)
            }
            (Query::Dim, Value::Tensor(tensor)) => Value::Int(tensor.dim() as i64),
            (Query::Numel, Value::Tensor(tensor)) => Value::Int(tensor.numel()),
            (Query::Strides, Value::Tensor(tensor)) => Value::Ints(tensor.strides().to_vec()),
            (Query::StorageOffset, Value::Tensor(_)) => Value::Int(0),
            (Query::IsContiguous, Value::Tensor(tensor)) => Value::Bool(tensor.is_contiguous()),
            (Query::DType, Value::Tensor(tensor)) => Value::DType(tensor.dtype()),
            (Query::Device, Value::Tensor(tensor)) => Value::Device(tensor.device()),
            (Query::IsComplex, value) => Value::Bool(dtype_of(value)?.is_complex()),
            (Query::IsFloat, value) => Value::Bool(dtype_of(value)?.is_float()),
            (Query::IsInt, value) => Value::Bool(dtype_of(value)?.is_int()),
            (Query::Len, value) => Value::Int(length(value)?),
            (Query::SizesAlong, Value::Tensors(tensors)) => {
                let dim = self.int(&args[0])?;
                sizes(infer::sizes_along(tensors.iter().map(Tensor::shape), dim))?
            }
            (Query::Contains, Value::Ints(list)) => Value::Bool(list.contains(&self.int(&args[0])?)),
            (Query::Concat, Value::Ints(list)) => match self.value(&args[0])? {
                Value::Ints(more) => Value::Ints([list.as_slice(), &more].concat()),
                other => return Err(unexpected(&other)),
            },
            (Query::IsZero, value) => Value::Bool(!scalar(value)?.to_bool()),
            (Query::Conj, Value::Scalar(value)) => Value::Scalar(value.conj()),
            (Query::Conj, value) => value.clone(),
            (_, other) => return Err(unexpected(other)),
        })
    }

    fn index(&mut self, base: &Expr, position: &Expr) -> Result<Value> {
        let at = self.int(position)?;
        match self.value(base)? {
            Value::Ints(list) => Ok(Value::Int(*dispatch::item(&list, at).map_err(error)?)),
            Value::Floats(list) => Ok(Value::Float(*dispatch::item(&list, at).map_err(error)?)),
            Value::Bools(list) => Ok(Value::Bool(*dispatch::item(&list, at).map_err(error)?)),
            Value::Scalars(list) => Ok(Value::Scalar(*dispatch::item(&list, at).map_err(error)?)),
            Value::Strs(list) => Ok(Value::Str(dispatch::item(&list, at).map_err(error)?.to_string())),
            Value::DTypes(list) => Ok(Value::DType(*dispatch::item(&list, at).map_err(error)?)),
            Value::Lists(lists) => row(lists.borrow(), at).map_err(error),
            Value::Tensors(list) => Ok(Value::Tensor(dispatch::item(&list, at).map_err(error)?.clone())),
            Value::OptionalTensors(list) => {
                let item = dispatch::item(&list, at).map_err(error)?.clone();
                Ok(item.map_or(Value::None, Value::Tensor))
            }
            other => Err(unexpected(&other)),
        }
    }

    fn binary(&mut self, symbol: Symbol, a: &Expr, b: &Expr) -> Result<Value> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        if symbol.is_comparison() {
            return comparison(symbol, &a, &b).map(Value::Bool);
        }
        if let (Value::Int(a), Value::Int(b)) = (&a, &b) {
            let (a, b) = (*a, *b);
            let whole = match symbol {
                Symbol::Add => a.checked_add(b),
                Symbol::Sub => a.checked_sub(b),
                Symbol::Mul => a.checked_mul(b),
                Symbol::Div => Some(dispatch::int_div(a, b).map_err(error)?),
                Symbol::Rem => a.checked_rem(b),
                Symbol::BitAnd => Some(a & b),
                Symbol::BitOr => Some(a | b),
                Symbol::BitXor => Some(a ^ b),
                _ => None,
            };
            return whole
                .map(Value::Int)
                .ok_or_else(|| Unknown::Error(format!("{a} {} {b} is no integer", symbol.spelling())));
        }
        let (a, b) = (scalar(&a)?.to_f64(), scalar(&b)?.to_f64());
        Ok(Value::Float(match symbol {
            Symbol::Add => a + b,
            Symbol::Sub => a - b,
            Symbol::Mul => a * b,
            Symbol::Div => a / b,
            Symbol::Rem => a % b,
            _ => return Err(compiled(symbol.spelling())),
        }))
    }
}

fn comparison(symbol: Symbol, a: &Value, b: &Value) -> Result<bool> {
    let equal = match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a == b),
        (Value::DType(a), Value::DType(b)) => Some(a == b),
        (Value::Ints(a), Value::Ints(b)) => Some(a == b),
        (Value::Bool(a), Value::Bool(b)) => Some(a == b),
        (Value::Device(a), Value::Device(b)) => Some(a == b),
        _ => None,
    };
    match (equal, symbol) {
        (Some(equal), Symbol::Eq) => return Ok(equal),
        (Some(equal), Symbol::Ne) => return Ok(!equal),
        _ => {}
    }
    let (a, b) = (scalar(a)?.to_f64(), scalar(b)?.to_f64());
    Ok(match symbol {
        Symbol::Eq => a == b,
        Symbol::Ne => a != b,
        Symbol::Lt => a < b,
        Symbol::Le => a <= b,
        Symbol::Gt => a > b,
        _ => a >= b,
    })
}

/// A value as a wider type.
fn convert(value: Value, to: &Kind) -> Value {
    match (to, value) {
        (Kind::Scalar, Value::Int(value)) => Value::Scalar(Scalar::Int(value)),
        (Kind::Scalar, Value::Float(value)) => Value::Scalar(Scalar::Float(value)),
        (Kind::Scalar, Value::Bool(value)) => Value::Scalar(Scalar::Bool(value)),
        (Kind::Float, Value::Int(value)) => Value::Float(value as f64),
        (Kind::Ints(_), Value::Int(value)) => Value::Ints(vec![value]),
        (_, value) => value,
    }
}

fn scalar(value: &Value) -> Result<Scalar> {
    match value {
        Value::Int(value) => Ok(Scalar::Int(*value)),
        Value::Float(value) => Ok(Scalar::Float(*value)),
        Value::Bool(value) => Ok(Scalar::Bool(*value)),
        Value::Scalar(value) => Ok(*value),
        other => Err(unexpected(other)),
    }
}

fn int(value: &Value) -> Result<i64> {
    match value {
        Value::Int(value) => Ok(*value),
        Value::Scalar(value) => value.as_integer().map_err(error),
        other => Err(unexpected(other)),
    }
}

fn dtype_of(value: &Value) -> Result<DType> {
    match value {
        Value::Tensor(tensor) => Ok(tensor.dtype()),
        Value::DType(dtype) => Ok(*dtype),
        other => Err(unexpected(other)),
    }
}

fn optional_dtype(value: &Value) -> Option<DType> {
    match value {
        Value::DType(dtype) => Some(*dtype),
        _ => None,
    }
}

/// A row of a list of lists.
fn row(lists: AnyLists<'_>, at: i64) -> opsmith_runtime::Result<Value> {
    Ok(match lists {
        AnyLists::Bool(lists) => Value::Bools(dispatch::row(lists, at)?.to_vec()),
        AnyLists::Int(lists) => Value::Ints(dispatch::row(lists, at)?.to_vec()),
        AnyLists::Float(lists) => Value::Floats(dispatch::row(lists, at)?.to_vec()),
        AnyLists::Scalar(lists) => Value::Scalars(dispatch::row(lists, at)?.to_vec()),
        AnyLists::Str(lists) => Value::Strs(dispatch::row(lists, at)?.to_vec()),
        AnyLists::DType(lists) => Value::DTypes(dispatch::row(lists, at)?.to_vec()),
    })
}

fn length(value: &Value) -> Result<i64> {
    Ok(match value {
        Value::Ints(list) => list.len(),
        Value::Floats(list) => list.len(),
        Value::Bools(list) => list.len(),
        Value::Scalars(list) => list.len(),
        Value::Strs(list) => list.len(),
        Value::DTypes(list) => list.len(),
        Value::Lists(lists) => lists.borrow().len(),
        Value::Tensors(list) => list.len(),
        Value::OptionalTensors(list) => list.len(),
        other => return Err(unexpected(other)),
    } as i64)
}

fn sizes(result: opsmith_runtime::Result<opsmith_runtime::Dims>) -> Result<Value> {
    result.map(|sizes| Value::Ints(sizes.to_vec())).map_err(error)
}

fn dtype(result: opsmith_runtime::Result<DType>) -> Result<Value> {
    result.map(Value::DType).map_err(error)
}

fn error(error: opsmith_runtime::Error) -> Unknown {
    Unknown::Error(error.to_string())
}

fn compiled(what: &str) -> Unknown {
    Unknown::Compiled(what.to_owned())
}

fn unexpected(value: &Value) -> Unknown {
    Unknown::Error(format!("{} does not fit here", value.as_arg().kind()))
}
