//! Evaluation of a spec's expressions outside of loops: attributes of pointwise expressions, compositions, formulas.
//!
//! In: a typed expression, and the values of its names. Out: its value. Operations are those of the code that the generator
//! writes: integers wrap, divisions are checked, a call of an operator is a call of its definition.

use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{OpId, Operation};
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::autograd::{self, TensorMeta};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::{Complex64, Scalar, boxed, checked};
use smallvec::SmallVec;

use crate::infer;
use crate::item::{self, Item, defect};
use crate::operator::Spec;
use crate::query;

/// The values of an expression's names.
pub trait Names {
    /// The value of a name.
    ///
    /// # Errors
    /// If it was freed or overwritten.
    fn value(&self, variable: &Variable) -> Result<Item>;

    /// The facts of a tensor whose elements may not be at hand; `None` to ask the value.
    fn meta(&self, _variable: &Variable) -> Option<TensorMeta> {
        None
    }

    /// The facts of each tensor of a list, as [`Names::meta`].
    fn metas(&self, _variable: &Variable) -> Option<Vec<TensorMeta>> {
        None
    }
}

/// The arguments of a call as names.
pub struct Arguments<'a>(pub &'a [Arg<'a>]);

impl Names for Arguments<'_> {
    fn value(&self, variable: &Variable) -> Result<Item> {
        match variable {
            Variable::Arg(index) => checked::item(self.0, *index as i64).map(|arg| arg.to_value().into()),
            other => Err(unknown(other)),
        }
    }
}

#[cold]
pub fn unknown(variable: &Variable) -> Error {
    Error::argument(format!("a spec's expression reads {variable:?}, which is not at hand"))
        .with_help("this is a mistake of the checker: please report the spec")
}

/// Evaluates expressions of one place.
pub struct Evaluation<'a> {
    spec: &'a Spec,
    names: &'a dyn Names,
    /// Names bound by `let`, the innermost last.
    locals: Vec<(&'a str, Item)>,
}

impl<'a> Evaluation<'a> {
    /// With the names of a place.
    pub fn new(spec: &'a Spec, names: &'a dyn Names) -> Evaluation<'a> {
        Evaluation { spec, names, locals: Vec::new() }
    }

    /// Gives a name a value, in place of an earlier one.
    pub fn bind(&mut self, name: &'a str, item: Item) {
        self.locals.retain(|(known, _)| *known != name);
        self.locals.push((name, item));
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Errors of the operators that it calls, and of its checked operations.
    pub fn value(&mut self, expr: &'a Expr) -> Result<Item> {
        let value = match &expr.kind {
            ExprKind::Variable(variable) => return self.variable(variable),
            ExprKind::Int(value) => Value::Int(*value),
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Imaginary => Value::Scalar(Scalar::Complex(Complex64::I)),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::DType(dtype) => Value::DType(*dtype),
            ExprKind::MemoryFormat(format) => Value::MemoryFormat(*format),
            ExprKind::None => Value::None,
            ExprKind::List(items) => item::list(self.values(items)?, &expr.ty.kind)?,
            ExprKind::Tuple(items) => return self.values(items).map(Item::Several),
            ExprKind::Op(id, args) => return self.call(*id, args),
            ExprKind::Rule(rule, args) => infer::rule(*rule, &self.plain_values(args)?)?,
            ExprKind::Query(query, base, args) => return self.query(*query, base, args),
            ExprKind::Binary(operation, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                binary(*operation, &a, &b)?
            }
            ExprKind::Logical(and, a, b) => match (self.value(a)?.truth()?, *and) {
                (true, true) | (false, false) => Value::Bool(self.value(b)?.truth()?),
                (decided, _) => Value::Bool(decided),
            },
            ExprKind::Unary(operation, operand) => unary(*operation, &self.value(operand)?)?,
            ExprKind::If(condition, yes, no) => {
                let taken = if self.value(condition)?.truth()? { yes } else { no };
                return self.value(taken);
            }
            ExprKind::Block(bindings, tail) => return self.block(bindings, tail),
            ExprKind::Index(base, position) => {
                let (base, position) = (self.value(base)?, self.value(position)?.int()?);
                return base.at(position);
            }
            ExprKind::Map(list, names, item) => return self.map(list, names, item),
            ExprKind::Convert(inner) => return self.value(inner)?.converted(&expr.ty),
            ExprKind::NotImplemented(reason) => return autograd::not_implemented(reason),
            ExprKind::Opaque(text) => {
                return autograd::not_implemented(&format!("its formula is in another language: {text}"));
            }
            ExprKind::Function(..) | ExprKind::Native(..) => {
                return Err(Error::not_implemented(
                    "a function in Rust has no value in a spec that was loaded",
                ));
            }
        };
        Ok(Item::One(value))
    }

    fn values(&mut self, items: &'a [Expr]) -> Result<Vec<Item>> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn plain_values(&mut self, items: &'a [Expr]) -> Result<Vec<Value>> {
        items.iter().map(|item| self.value(item)?.one()).collect()
    }

    fn variable(&self, variable: &Variable) -> Result<Item> {
        let Variable::Local(name) = variable else { return self.names.value(variable) };
        let found = self.locals.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, item)| item.clone()).ok_or_else(|| unknown(variable))
    }

    fn block(&mut self, bindings: &'a [(String, Expr)], tail: &'a Expr) -> Result<Item> {
        let outside = self.locals.len();
        for (name, value) in bindings {
            let value = self.value(value)?;
            self.locals.push((name, value));
        }
        let value = self.value(tail);
        self.locals.truncate(outside);
        value
    }

    /// The tensor of each item of a list.
    fn map(&mut self, list: &'a Expr, names: &'a [String], body: &'a Expr) -> Result<Item> {
        let list = self.value(list)?;
        let length = query::answer(Query::Len, &list, &[])?.int()?;
        let outside = self.locals.len();
        let mut tensors = Vec::with_capacity(length as usize);
        for position in 0..length {
            let values = [list.clone().at(position)?, Value::Int(position).into()];
            self.locals.extend(names.iter().map(String::as_str).zip(values));
            let tensor = self.value(body).and_then(Item::tensor);
            self.locals.truncate(outside);
            tensors.push(tensor?);
        }
        Ok(Value::Tensors(tensors).into())
    }

    /// A call of an operator.
    fn call(&mut self, id: OpId, args: &'a [Expr]) -> Result<Item> {
        let values = self.plain_values(args)?;
        let target = self.spec.target(id)?;
        if let ([Value::Tensor(tensor)], true) = (&values[..], target.conjugates)
            && !tensor.dtype().is_complex()
        {
            // A real tensor is its own conjugate, which generated code does not copy either.
            return Ok(Value::Tensor(tensor.clone()).into());
        }
        let args: SmallVec<[Arg<'_>; 8]> = values.iter().map(Value::as_arg).collect();
        let mut results = boxed::functional(target.definition, &args)?;
        Ok(match results.len() {
            1 => Item::One(results.swap_remove(0)),
            _ => Item::Several(results.into_iter().map(Item::One).collect()),
        })
    }

    fn query(&mut self, question: Query, base: &'a Expr, args: &'a [Expr]) -> Result<Item> {
        let args = self.values(args)?;
        if let ExprKind::Variable(variable) = &base.kind {
            if let Some(meta) = self.names.meta(variable)
                && let Some(answer) = query::of_meta(question, &meta, &args)?
            {
                return Ok(answer.into());
            }
            if question == Query::SizesAlong
                && let Some(metas) = self.names.metas(variable)
            {
                let shapes = metas.iter().map(|meta| &meta.sizes[..]);
                let dim = checked::item(&args, 0)?.int()?;
                return Ok(Value::Ints(opsmith_runtime::infer::sizes_along(shapes, dim)?.to_vec()).into());
            }
        }
        query::answer(question, &self.value(base)?, &args)
    }
}

fn unary(operation: Operation, operand: &Item) -> Result<Value> {
    Ok(match (operation, operand) {
        (Operation::Neg, Item::One(Value::Int(value))) => Value::Int(value.wrapping_neg()),
        (Operation::Neg, Item::One(Value::Float(value))) => Value::Float(-value),
        (Operation::Neg, other) => Value::Scalar(-other.scalar()?),
        (_, other) => Value::Bool(!other.truth()?),
    })
}

fn binary(operation: Operation, a: &Item, b: &Item) -> Result<Value> {
    use Operation::{Add, BitAnd, BitOr, BitXor, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Rem, Sub};
    match operation {
        Eq => return query::equal(a, b).map(Value::Bool),
        Ne => return query::equal(a, b).map(|equal| Value::Bool(!equal)),
        _ => {}
    }
    Ok(match (operation, a, b) {
        (_, Item::One(Value::Int(a)), Item::One(Value::Int(b))) => match operation {
            Add => Value::Int(a.wrapping_add(*b)),
            Sub => Value::Int(a.wrapping_sub(*b)),
            Mul => Value::Int(a.wrapping_mul(*b)),
            Div => Value::Int(checked::int_div(*a, *b)?),
            Rem => Value::Int(checked::int_rem(*a, *b)?),
            BitAnd => Value::Int(a & b),
            BitOr => Value::Int(a | b),
            BitXor => Value::Int(a ^ b),
            _ => Value::Bool(ordered(operation, a, b)),
        },
        (_, Item::One(Value::Float(a)), Item::One(Value::Float(b))) => match operation {
            Add => Value::Float(a + b),
            Sub => Value::Float(a - b),
            Mul => Value::Float(a * b),
            Div => Value::Float(a / b),
            Rem => Value::Float(a % b),
            _ => Value::Bool(ordered(operation, a, b)),
        },
        (BitAnd, ..) => Value::Bool(a.truth()? & b.truth()?),
        (BitOr, ..) => Value::Bool(a.truth()? | b.truth()?),
        (BitXor, ..) => Value::Bool(a.truth()? ^ b.truth()?),
        (Lt | Le | Gt | Ge, ..) => {
            Value::Bool(ordered(operation, &a.scalar()?.to_f64(), &b.scalar()?.to_f64()))
        }
        (Add, ..) => Value::Scalar(a.scalar()? + b.scalar()?),
        (Sub, ..) => Value::Scalar(a.scalar()? - b.scalar()?),
        (Mul, ..) => Value::Scalar(a.scalar()? * b.scalar()?),
        (Div, ..) => Value::Scalar(a.scalar()? / b.scalar()?),
        _ => return Err(defect("a number", a)),
    })
}

/// A comparison; every one with NaN is false.
pub fn ordered<T: PartialOrd>(operation: Operation, a: &T, b: &T) -> bool {
    match operation {
        Operation::Lt => a < b,
        Operation::Le => a <= b,
        Operation::Gt => a > b,
        _ => a >= b,
    }
}
