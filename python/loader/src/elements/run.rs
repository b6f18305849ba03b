//! Evaluation of a tree on a block of elements.
//!
//! In: the elements of the inputs. Out: those of the result. Of two branches each element has one computed, as in a compiled
//! loop, so that an integer is divided by zero only where the expression does it.

use opsmith_codegen::model::Operation;
use opsmith_runtime::Scalar;
use opsmith_runtime::arith::Arithmetic;

use super::block::{Block, Row};
use super::function::{one, two};
use super::lane::Lane;
use super::node::{Conversion, Node};
use crate::evaluate::ordered;

/// The values of names for a block of elements.
pub struct Environment<C: Lane> {
    inputs: Vec<Block<C>>,
    /// Names bound by `let`, the innermost last.
    locals: Vec<(String, Block<C>)>,
}

impl<C: Lane> Environment<C> {
    /// With the elements of the inputs.
    pub fn new(inputs: Vec<Block<C>>) -> Environment<C> {
        Environment { inputs, locals: Vec::new() }
    }

    /// The value of a part.
    pub fn value(&mut self, node: &Node<C>) -> Block<C> {
        match node {
            Node::Constant(block) => block.clone(),
            Node::Input(at) => self.inputs[*at].clone(),
            Node::Local(name) => {
                let found = self.locals.iter().rev().find(|(known, _)| known == name);
                found.map_or(Block::Bool(Row::Same(false)), |(_, block)| block.clone())
            }
            Node::Convert(conversion, inner) => convert(*conversion, self.value(inner)),
            Node::Call(function, args) => {
                let args: Vec<Row<C>> = args.iter().map(|arg| elements(self.value(arg))).collect();
                function.call(&args).unwrap_or(Block::Bool(Row::Same(false)))
            }
            Node::CallOfParts(function, args) => {
                let args: Vec<Row<C::Part>> = args.iter().map(|arg| parts(self.value(arg))).collect();
                match function.call(&args) {
                    Some(Block::Element(row) | Block::Part(row)) => Block::Part(row),
                    Some(Block::Bool(row)) => Block::Bool(row),
                    _ => Block::Bool(Row::Same(false)),
                }
            }
            Node::Binary(operation, sides) => {
                let (a, b) = (self.value(&sides[0]), self.value(&sides[1]));
                binary(*operation, &a, &b)
            }
            Node::And(sides) => self.logical(&sides[0], &sides[1], true),
            Node::Or(sides) => self.logical(&sides[0], &sides[1], false),
            Node::Neg(operand) => negative(&self.value(operand)),
            Node::Not(operand) => Block::Bool(self.value(operand).truths().map(|value| !value)),
            Node::If(parts) => {
                let condition = self.value(&parts[0]).truths();
                self.choice(&condition, &parts[1], &parts[2])
            }
            Node::Block(bindings, tail) => {
                let outside = self.locals.len();
                for (name, value) in bindings {
                    let value = self.value(value);
                    self.locals.push((name.clone(), value));
                }
                let value = self.value(tail);
                self.locals.truncate(outside);
                value
            }
        }
    }

    /// `a && b`, or `a || b`.
    fn logical(&mut self, a: &Node<C>, b: &Node<C>, and: bool) -> Block<C> {
        let (first, decided) = (self.value(a).truths(), Node::Constant(Block::Bool(Row::Same(!and))));
        match and {
            true => self.choice(&first, b, &decided),
            false => self.choice(&first, &decided, b),
        }
    }

    /// The value of the first part where the condition holds, and of the second elsewhere.
    fn choice(&mut self, condition: &Row<bool>, yes: &Node<C>, no: &Node<C>) -> Block<C> {
        let mask = match condition {
            Row::Same(holds) => return self.value(if *holds { yes } else { no }),
            Row::Each(mask) => mask,
        };
        let of = |wanted: bool| -> Vec<usize> { (0..mask.len()).filter(|at| mask[*at] == wanted).collect() };
        let (holding, failing) = (of(true), of(false));
        if failing.is_empty() {
            return self.value(yes);
        }
        if holding.is_empty() {
            return self.value(no);
        }
        let (yes, no) = (self.chosen(&holding).value(yes), self.chosen(&failing).value(no));
        Block::merged(mask, &yes, &no)
    }

    /// The values of names at these positions.
    fn chosen(&self, positions: &[usize]) -> Environment<C> {
        Environment {
            inputs: self.inputs.iter().map(|block| block.chosen(positions)).collect(),
            locals: self.locals.iter().map(|(name, block)| (name.clone(), block.chosen(positions))).collect(),
        }
    }
}

fn elements<C: Lane>(block: Block<C>) -> Row<C> {
    match block {
        Block::Element(row) => row,
        Block::Part(row) => row.map(C::of_part),
        other => other.numbers().map(C::from_scalar),
    }
}

fn parts<C: Lane>(block: Block<C>) -> Row<C::Part> {
    match block {
        Block::Part(row) => row,
        other => other.numbers().map(<C::Part as opsmith_runtime::Element>::from_scalar),
    }
}

fn convert<C: Lane>(conversion: Conversion<C>, block: Block<C>) -> Block<C> {
    match (conversion, block) {
        (Conversion::OfPart, Block::Part(row)) => Block::Element(row.map(C::of_part)),
        (Conversion::Element(of), block) => Block::Element(block.numbers().map(of)),
        (Conversion::Part(of), block) => Block::Part(block.numbers().map(of)),
        (Conversion::Float, Block::Int(row)) => Block::Float(row.map(|value| value as f64)),
        (Conversion::Int, Block::Bool(row)) => Block::Int(row.map(i64::from)),
        (Conversion::Number, block) => Block::Number(block.numbers()),
        (_, block) => block,
    }
}

fn negative<C: Lane>(block: &Block<C>) -> Block<C> {
    match block {
        Block::Element(row) => Block::Element(one(row, C::neg)),
        Block::Part(row) => Block::Part(one(row, <C::Part as Arithmetic>::neg)),
        Block::Int(row) => Block::Int(row.map(i64::wrapping_neg)),
        Block::Float(row) => Block::Float(row.map(|value| -value)),
        other => Block::Number(other.numbers().map(|value| -value)),
    }
}

fn binary<C: Lane>(operation: Operation, a: &Block<C>, b: &Block<C>) -> Block<C> {
    match (a, b) {
        (Block::Element(a), Block::Element(b)) => match arithmetic(operation, a, b) {
            Ok(row) => Block::Element(row),
            Err(truths) => Block::Bool(truths),
        },
        (Block::Part(a), Block::Part(b)) => match arithmetic(operation, a, b) {
            Ok(row) => Block::Part(row),
            Err(truths) => Block::Bool(truths),
        },
        (Block::Int(a), Block::Int(b)) => match arithmetic(operation, a, b) {
            Ok(row) => Block::Int(row),
            Err(truths) => Block::Bool(truths),
        },
        (Block::Float(a), Block::Float(b)) => match arithmetic(operation, a, b) {
            Ok(row) => Block::Float(row),
            Err(truths) => Block::Bool(truths),
        },
        (Block::Bool(a), Block::Bool(b)) => Block::Bool(a.zip(b, |a, b| of_truths(operation, a, b))),
        _ => {
            let (a, b) = (a.numbers(), b.numbers());
            Block::Bool(a.zip(&b, |a, b| of_numbers(operation, a, b)))
        }
    }
}

/// An operation on numbers of one type: a number, or a truth value as the error.
fn arithmetic<V: Lane>(operation: Operation, a: &Row<V>, b: &Row<V>) -> Result<Row<V>, Row<bool>> {
    Ok(match operation {
        Operation::Add => two(a, b, V::add),
        Operation::Sub => two(a, b, V::sub),
        Operation::Mul => two(a, b, V::mul),
        Operation::Div => two(a, b, V::div),
        Operation::Rem => two(a, b, V::rem),
        Operation::BitAnd | Operation::BitOr | Operation::BitXor => a.zip(b, |a, b| V::bits(operation, a, b)),
        Operation::Eq => return Err(two(a, b, V::equal)),
        Operation::Ne => return Err(two(a, b, |a, b| !V::equal(a, b))),
        _ => return Err(two(a, b, |a, b| V::order(operation, a, b))),
    })
}

fn of_truths(operation: Operation, a: bool, b: bool) -> bool {
    match operation {
        Operation::BitAnd => a & b,
        Operation::BitOr => a | b,
        Operation::BitXor | Operation::Ne => a ^ b,
        Operation::Eq => a == b,
        _ => ordered(operation, &a, &b),
    }
}

/// A comparison of numbers of any kind: equality is that of complex numbers, order that of real ones.
fn of_numbers(operation: Operation, a: Scalar, b: Scalar) -> bool {
    match operation {
        Operation::Eq => a.to_complex() == b.to_complex(),
        Operation::Ne => a.to_complex() != b.to_complex(),
        _ => ordered(operation, &a.to_f64(), &b.to_f64()),
    }
}
