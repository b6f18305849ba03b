//! Inference rules as data: the expressions of a spec, as the generator writes them into static trees.
//!
//! In: nothing but what the generator checked, so every tree has the types its place wants. Out: trees
//! that `symbolic` evaluates on sizes that are not known yet, and that tools can show. Eager calls never
//! look at them; they run the functions that the same expressions were compiled to.

pub use opsmith_core::rules::{DTypeRule, ShapeRule};
pub use opsmith_core::{Query, Symbol as Operation};

/// What inference of an operator says, as expressions over its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Conditions on the arguments.
    pub checks: &'static [RuleCheck],
    /// The sizes of each result; empty if the operator has no such rules.
    pub shapes: &'static [Expr],
    /// The dtype of each result.
    pub dtypes: &'static [Expr],
    /// The dtype that chooses the kernel.
    pub compute: Option<Expr>,
    /// How many tensors the only result has, if it is a list; the rules are then for each, by its position.
    pub length: Option<Expr>,
    /// When each result is there; `None` if it always is. Empty if all are.
    pub present: &'static [Option<Expr>],
    /// Sizes of results that only a run tells, each with what it is at most. `shapes` name them.
    pub run_sizes: &'static [(&'static str, Expr)],
}

impl Rules {
    /// No rules at all.
    pub const NONE: Rules = Rules {
        checks: &[],
        shapes: &[],
        dtypes: &[],
        compute: None,
        length: None,
        present: &[],
        run_sizes: &[],
    };
}

/// One condition.
#[derive(Clone, Copy, Debug)]
pub struct RuleCheck {
    /// The condition.
    pub condition: Expr,
    /// As written.
    pub text: &'static str,
}

/// An expression.
#[derive(Clone, Copy, Debug)]
pub enum Expr {
    /// An argument, by position.
    Arg(u8),
    /// A name bound by [`Expr::Block`], the position in a list, or a size that only a run tells.
    Local(&'static str),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Str(&'static str),
    /// An element type.
    DType(opsmith_core::DType),
    /// An absent value.
    None,
    /// A list.
    List(&'static [Expr]),
    /// A named rule for sizes.
    ShapeRule(ShapeRule, &'static [Expr]),
    /// A named rule for a dtype.
    DTypeRule(DTypeRule, &'static [Expr]),
    /// A function of the kernels crate, by its path. Only the compiled inference calls it.
    Native(&'static str),
    /// A question about the first part, with the others as its arguments.
    Query(Query, &'static [Expr]),
    /// One operation on two plain values.
    Binary(Operation, &'static [Expr; 2]),
    /// Both, of which the second is looked at only if the first holds.
    And(&'static [Expr; 2]),
    /// Either, of which the second is looked at only if the first does not hold.
    Or(&'static [Expr; 2]),
    /// The negative.
    Neg(&'static Expr),
    /// The opposite truth value.
    Not(&'static Expr),
    /// Condition, then what it is if that holds, and if not.
    If(&'static [Expr; 3]),
    /// Names with their values, and an expression that may mention them.
    Block(&'static [(&'static str, Expr)], &'static Expr),
    /// The list and a position in it.
    Index(&'static [Expr; 2]),
    /// A value as another type.
    Convert(Conversion, &'static Expr),
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
