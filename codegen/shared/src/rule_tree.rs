//! Inference rules as data: the expressions of a spec as trees.
//!
//! In: nothing but expressions that the generator checked, so every tree has the types its place wants. Out: trees that
//! generated code holds as static data, and that the runtime evaluates on sizes that are not known yet. Eager calls
//! never look at them; they run the functions that the same expressions were compiled to. Nothing here knows tensors.

pub use crate::query::{Operation, Query};
pub use crate::rules::{DTypeRule, ShapeRule};

/// The inference rules of an operator, as expressions over its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Conditions on the arguments.
    pub checks: &'a [RuleCheck<'a>],
    /// The sizes of each result; empty if the operator has no such rules.
    pub shapes: &'a [Expr<'a>],
    /// The dtype of each result.
    pub dtypes: &'a [Expr<'a>],
    /// The dtype that chooses the kernel.
    pub compute: Option<Expr<'a>>,
    /// How many tensors the only result has, if it is a list; the rules are then for each, by its position.
    pub length: Option<Expr<'a>>,
    /// When each result is there; `None` if it always is. Empty if all are.
    pub present: &'a [Option<Expr<'a>>],
    /// Data-dependent sizes of results, each with its upper bound. `shapes` name them.
    pub run_sizes: &'a [(&'a str, Expr<'a>)],
}

impl Rules<'_> {
    /// No rules at all.
    pub const NONE: Self = Rules {
        checks: &[],
        shapes: &[],
        dtypes: &[],
        compute: None,
        length: None,
        present: &[],
        run_sizes: &[],
    };
}

impl<'a> Rules<'a> {
    /// Sizes and dtype of each result, of which the first dtype chooses the kernel.
    pub const fn of(shapes: &'a [Expr<'a>], dtypes: &'a [Expr<'a>]) -> Rules<'a> {
        let compute = match dtypes {
            [first, ..] => Some(*first),
            [] => None,
        };
        Rules { shapes, dtypes, compute, checks: &[], length: None, present: &[], run_sizes: &[] }
    }
}

/// One condition.
#[derive(Clone, Copy, Debug)]
pub struct RuleCheck<'a> {
    /// The condition.
    pub condition: Expr<'a>,
    /// As written.
    pub text: &'a str,
}

/// An expression.
#[derive(Clone, Copy, Debug)]
pub enum Expr<'a> {
    /// An argument, by position.
    Arg(u8),
    /// A name bound by [`Expr::Block`], the position in a list, or a size that only a run tells.
    Local(&'a str),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Str(&'a str),
    /// An element type.
    DType(crate::DType),
    /// An absent value.
    None,
    /// A list.
    List(&'a [Expr<'a>]),
    /// A named rule for sizes.
    ShapeRule(ShapeRule, &'a [Expr<'a>]),
    /// A named rule for a dtype.
    DTypeRule(DTypeRule, &'a [Expr<'a>]),
    /// A function of the kernels crate, by its path. Only the compiled inference calls it.
    Native(&'a str),
    /// A query of the first part, with the others as its arguments.
    Query(Query, &'a [Expr<'a>]),
    /// One operation on two plain values.
    Binary(Operation, &'a [Expr<'a>; 2]),
    /// Both, of which the second is looked at only if the first holds.
    And(&'a [Expr<'a>; 2]),
    /// Either, of which the second is looked at only if the first does not hold.
    Or(&'a [Expr<'a>; 2]),
    /// The negative.
    Neg(&'a Expr<'a>),
    /// The opposite truth value.
    Not(&'a Expr<'a>),
    /// Condition, value if it holds, value if not.
    If(&'a [Expr<'a>; 3]),
    /// Names with their values, and an expression that may mention them.
    Block(&'a [(&'a str, Expr<'a>)], &'a Expr<'a>),
    /// The list and a position in it.
    Index(&'a [Expr<'a>; 2]),
    /// A value as another type.
    Convert(Conversion, &'a Expr<'a>),
}

impl ShapeRule {
    /// The rule for some operands.
    pub const fn of<'a>(self, operands: &'a [Expr<'a>]) -> Expr<'a> {
        Expr::ShapeRule(self, operands)
    }
}

impl DTypeRule {
    /// The rule for some operands.
    pub const fn of<'a>(self, operands: &'a [Expr<'a>]) -> Expr<'a> {
        Expr::DTypeRule(self, operands)
    }
}

/// The types that values are converted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// A float from an integer.
    Float,
    /// An integer from a truth value.
    Int,
    /// So many times the integer.
    Ints(u32),
    /// Floats from integers.
    Floats,
    /// A type that the value has already, as far as its evaluation is concerned.
    Same,
}
