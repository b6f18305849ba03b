//! The tree of a call's expression: operations on blocks.
//!
//! In: nothing. Out: plain data, made by `plan` and evaluated by `run`.

use opsmith_codegen::model::Operation;
use opsmith_runtime::Scalar;

use super::block::Block;
use super::function::Function;
use super::lane::Lane;

/// A part of an expression whose elements are computed as `C`.
pub enum Node<C: Lane> {
    /// The same for all elements of the call.
    Constant(Block<C>),
    /// The elements of an input, by its position among those that are read.
    Input(usize),
    /// A name bound by `let`.
    Local(String),
    /// A value in another type.
    Convert(Conversion<C>, Box<Node<C>>),
    /// A function of elements.
    Call(&'static Function<C>, Vec<Node<C>>),
    /// A function of real parts.
    CallOfParts(&'static Function<C::Part>, Vec<Node<C>>),
    /// An operation on two values.
    Binary(Operation, Box<[Node<C>; 2]>),
    /// Both; the second is computed for elements for which the first holds.
    And(Box<[Node<C>; 2]>),
    /// Either; the second is computed for elements for which the first does not hold.
    Or(Box<[Node<C>; 2]>),
    /// The negative.
    Neg(Box<Node<C>>),
    /// The opposite truth value.
    Not(Box<Node<C>>),
    /// A condition, and two values of which one is computed for each element.
    If(Box<[Node<C>; 3]>),
    /// Names with their values, and a value that may mention them.
    Block(Vec<(String, Node<C>)>, Box<Node<C>>),
}

/// A conversion between types of values.
#[derive(Clone, Copy)]
pub enum Conversion<C: Lane> {
    /// A real part as an element.
    OfPart,
    /// A number as an element.
    Element(fn(Scalar) -> C),
    /// A number as a real part.
    Part(fn(Scalar) -> C::Part),
    /// An integer as a float.
    Float,
    /// A truth value as an integer.
    Int,
    /// A number as one of any kind.
    Number,
    /// None.
    Same,
}
