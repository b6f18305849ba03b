//! Blocks of elements: the values of an expression's parts.
//!
//! In: elements. Out: the same in another order or type. A value that is the same for all elements is kept once.

use opsmith_runtime::Scalar;

use super::lane::Lane;

/// One value for each element of a block.
#[derive(Clone, Debug)]
pub enum Row<V> {
    /// The same for all.
    Same(V),
    /// One for each.
    Each(Vec<V>),
}

impl<V: Copy> Row<V> {
    /// A function of each value.
    pub fn map<R>(&self, function: impl Fn(V) -> R) -> Row<R> {
        match self {
            Row::Same(value) => Row::Same(function(*value)),
            Row::Each(values) => Row::Each(values.iter().map(|value| function(*value)).collect()),
        }
    }

    /// A function of the values of two rows.
    pub fn zip<W: Copy, R>(&self, other: &Row<W>, function: impl Fn(V, W) -> R) -> Row<R> {
        match (self, other) {
            (Row::Same(a), Row::Same(b)) => Row::Same(function(*a, *b)),
            (Row::Same(a), Row::Each(b)) => Row::Each(b.iter().map(|b| function(*a, *b)).collect()),
            (Row::Each(a), Row::Same(b)) => Row::Each(a.iter().map(|a| function(*a, *b)).collect()),
            (Row::Each(a), Row::Each(b)) => {
                Row::Each(std::iter::zip(a, b).map(|(a, b)| function(*a, *b)).collect())
            }
        }
    }

    /// The values, one for each element.
    pub fn spread(&self, length: usize) -> std::borrow::Cow<'_, [V]> {
        match self {
            Row::Same(value) => vec![*value; length].into(),
            Row::Each(values) => values.into(),
        }
    }

    /// The values at these positions.
    fn chosen(&self, positions: &[usize]) -> Row<V> {
        match self {
            Row::Same(value) => Row::Same(*value),
            Row::Each(values) => Row::Each(positions.iter().map(|at| values[*at]).collect()),
        }
    }

    /// The values of two rows, of which the first has those where the mask holds, and the second the others.
    fn merged(mask: &[bool], yes: &Row<V>, no: &Row<V>) -> Row<V> {
        let (mut from_yes, mut from_no) = (0, 0);
        let next = |row: &Row<V>, at: &mut usize| {
            let value = match row {
                Row::Same(value) => *value,
                Row::Each(values) => values[*at],
            };
            *at += 1;
            value
        };
        let each = mask.iter().map(|holds| match holds {
            true => next(yes, &mut from_yes),
            false => next(no, &mut from_no),
        });
        Row::Each(each.collect())
    }
}

/// The value of a part of an expression whose elements are computed as `C`.
#[derive(Clone, Debug)]
pub enum Block<C: Lane> {
    /// Elements.
    Element(Row<C>),
    /// Real parts of elements.
    Part(Row<C::Part>),
    /// Truth values.
    Bool(Row<bool>),
    /// Integers of attributes.
    Int(Row<i64>),
    /// Floats of attributes.
    Float(Row<f64>),
    /// Numbers of attributes.
    Number(Row<Scalar>),
}

/// A function of the row of a block, whatever its type is.
macro_rules! each_type {
    ($block:expr, $row:ident => $function:expr) => {
        match $block {
            Block::Element($row) => Block::Element($function),
            Block::Part($row) => Block::Part($function),
            Block::Bool($row) => Block::Bool($function),
            Block::Int($row) => Block::Int($function),
            Block::Float($row) => Block::Float($function),
            Block::Number($row) => Block::Number($function),
        }
    };
}

impl<C: Lane> Block<C> {
    /// The elements at these positions.
    pub fn chosen(&self, positions: &[usize]) -> Block<C> {
        each_type!(self, row => row.chosen(positions))
    }

    /// The elements of two blocks of one type, of which the first has those where the mask holds, and the second the others.
    pub fn merged(mask: &[bool], yes: &Block<C>, no: &Block<C>) -> Block<C> {
        match (yes, no) {
            (Block::Element(a), Block::Element(b)) => Block::Element(Row::merged(mask, a, b)),
            (Block::Part(a), Block::Part(b)) => Block::Part(Row::merged(mask, a, b)),
            (Block::Bool(a), Block::Bool(b)) => Block::Bool(Row::merged(mask, a, b)),
            (Block::Int(a), Block::Int(b)) => Block::Int(Row::merged(mask, a, b)),
            (Block::Float(a), Block::Float(b)) => Block::Float(Row::merged(mask, a, b)),
            (a, b) => Block::Number(Row::merged(mask, &a.numbers(), &b.numbers())),
        }
    }

    /// Truth values.
    pub fn truths(&self) -> Row<bool> {
        match self {
            Block::Bool(row) => row.clone(),
            other => other.numbers().map(Scalar::to_bool),
        }
    }

    /// Numbers of any kind.
    pub fn numbers(&self) -> Row<Scalar> {
        match self {
            Block::Element(row) => row.map(C::to_scalar),
            Block::Part(row) => row.map(<C::Part as opsmith_runtime::Element>::to_scalar),
            Block::Bool(row) => row.map(Scalar::Bool),
            Block::Int(row) => row.map(Scalar::Int),
            Block::Float(row) => row.map(Scalar::Float),
            Block::Number(row) => row.clone(),
        }
    }
}
