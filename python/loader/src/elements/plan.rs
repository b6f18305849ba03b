//! From a checked expression to the tree of a call.
//!
//! In: a pointwise expression, and the arguments of a call. Out: a tree in which values of attributes alone are constants, each
//! computed once, and a condition of attributes has chosen its branch. The choices are those of the generator.

use opsmith_codegen::analysis::elements::{is_bound, is_element, is_of_attributes, is_rounded};
use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{FunctionId, Kind, Op, Operation};
use opsmith_runtime::Scalar;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::element::{Element, bounded};
use opsmith_runtime::error::{Error, Result};

use super::block::{Block, Row};
use super::function::Function;
use super::lane::Lane;
use super::node::{Conversion, Node};
use crate::evaluate::{Arguments, Evaluation};
use crate::item::{Item, defect};
use crate::operator::{Operator, Spec};

/// The plan of a call.
pub struct Plan<'a, C: Lane> {
    spec: &'a Spec,
    op: &'a Op,
    /// The tensors whose elements are read.
    inputs: &'a [usize],
    args: &'a [Arg<'a>],
    /// A number rounded to the elements' dtype.
    rounded: fn(Scalar) -> C,
}

impl<'a, C: Lane> Plan<'a, C> {
    /// Of a call of an operator.
    pub fn new(
        operator: &'a Operator,
        inputs: &'a [usize],
        args: &'a [Arg<'a>],
        rounded: fn(Scalar) -> C,
    ) -> Plan<'a, C> {
        Plan { spec: operator.spec, op: operator.op(), inputs, args, rounded }
    }

    /// The tree of an expression.
    ///
    /// # Errors
    /// Errors of attributes, and of functions that the program does not have.
    pub fn of(&self, expr: &Expr) -> Result<Node<C>> {
        if is_of_attributes(self.op, expr) {
            return self.constant(expr);
        }
        Ok(match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => {
                let input = self.inputs.iter().position(|input| input == index);
                Node::Input(input.ok_or_else(|| self.unknown(expr))?)
            }
            ExprKind::Variable(Variable::Local(name)) => Node::Local(name.clone()),
            ExprKind::Convert(inner) => self.conversion(inner, expr)?,
            ExprKind::Function(id, args) => self.function(*id, args)?,
            ExprKind::Binary(operation, a, b) => Node::Binary(*operation, self.two(a, b)?),
            ExprKind::Logical(true, a, b) => Node::And(self.two(a, b)?),
            ExprKind::Logical(false, a, b) => Node::Or(self.two(a, b)?),
            ExprKind::Unary(Operation::Neg, operand) => Node::Neg(Box::new(self.of(operand)?)),
            ExprKind::Unary(_, operand) => Node::Not(Box::new(self.of(operand)?)),
            ExprKind::If(condition, yes, no) if is_of_attributes(self.op, condition) => {
                let holds = self.attribute(condition)?.truth()?;
                return self.of(if holds { yes } else { no });
            }
            ExprKind::If(condition, yes, no) => {
                Node::If(Box::new([self.of(condition)?, self.of(yes)?, self.of(no)?]))
            }
            ExprKind::Block(bindings, tail) => {
                let bindings = bindings.iter().map(|(name, value)| Ok((name.clone(), self.of(value)?)));
                Node::Block(bindings.collect::<Result<_>>()?, Box::new(self.of(tail)?))
            }
            _ => return Err(self.unknown(expr)),
        })
    }

    fn two(&self, a: &Expr, b: &Expr) -> Result<Box<[Node<C>; 2]>> {
        Ok(Box::new([self.of(a)?, self.of(b)?]))
    }

    #[cold]
    fn unknown(&self, expr: &Expr) -> Error {
        Error::not_implemented(format!(
            "the expression of `{}` has a part that no loop computes: {:?}",
            self.op.name, expr.kind
        ))
        .with_help("this is a mistake of the checker: please report the spec")
    }

    /// The value of attributes.
    fn attribute(&self, expr: &Expr) -> Result<Item> {
        let names = Arguments(self.args);
        Evaluation::new(self.spec, &names).value(expr)
    }

    fn constant(&self, expr: &Expr) -> Result<Node<C>> {
        Ok(Node::Constant(match self.attribute(expr)? {
            Item::One(Value::Bool(value)) => Block::Bool(Row::Same(value)),
            Item::One(Value::Int(value)) => Block::Int(Row::Same(value)),
            Item::One(Value::Float(value)) => Block::Float(Row::Same(value)),
            Item::One(Value::Scalar(value)) => Block::Number(Row::Same(value)),
            other => return Err(defect("a number", &other)),
        }))
    }

    /// A value in another type. A value computed of attributes is converted once.
    fn conversion(&self, inner: &Expr, to: &Expr) -> Result<Node<C>> {
        let (rounds, bounds) = (is_rounded(self.op, inner), is_bound(self.op, inner));
        let conversion = match (&inner.ty.kind, &to.ty.kind) {
            (Kind::RealElement, Kind::Element) => Conversion::OfPart,
            (_, Kind::Element) if rounds => Conversion::Element(self.rounded),
            (_, Kind::Element) if bounds => Conversion::Element(bounded::<C>),
            (_, Kind::Element) => Conversion::Element(C::from_scalar),
            (_, Kind::RealElement) if bounds => Conversion::Part(bounded::<C::Part>),
            (_, Kind::RealElement) => Conversion::Part(C::Part::from_scalar),
            (Kind::Int, Kind::Float) => Conversion::Float,
            (Kind::Bool, Kind::Int) => Conversion::Int,
            (_, Kind::Scalar) => Conversion::Number,
            _ => Conversion::Same,
        };
        let node = self.of(inner)?;
        let is_constant = matches!(node, Node::Constant(_));
        let node = Node::Convert(conversion, Box::new(node));
        match is_constant {
            true => Ok(Node::Constant(super::run::Environment::new(Vec::new()).value(&node))),
            false => Ok(node),
        }
    }

    fn function(&self, id: FunctionId, args: &[Expr]) -> Result<Node<C>> {
        let function = &self.spec.functions[id.0];
        let name =
            function.rust.strip_prefix("math::").filter(|_| function.is_external() || self.spec.is_stock);
        let of_parts = args.first().is_some_and(|arg| arg.ty.kind == Kind::RealElement);
        let nodes = args.iter().map(|arg| self.of(arg)).collect::<Result<Vec<_>>>()?;
        debug_assert!(args.iter().all(is_element), "the checker converts arguments to elements");
        let missing = || {
            Error::not_implemented(format!(
                "the function `{}` of numbers is `{}` in Rust, which a program that is running does not have for {}",
                function.name,
                function.rust,
                C::DTYPE
            ))
            .with_help("write it with the functions of the stock spec, or build a package of the spec")
        };
        let name = name.ok_or_else(missing)?;
        Ok(match of_parts {
            true => Node::CallOfParts(Function::named(name).ok_or_else(missing)?, nodes),
            false => Node::Call(Function::named(name).ok_or_else(missing)?, nodes),
        })
    }
}
