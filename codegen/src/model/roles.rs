//! Rust operators that stand for calls, and the jobs of operators for the runtime.

pub use opsmith_core::Operation;

/// A Rust operator that stands for a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operator {
    /// The symbol.
    pub symbol: Operation,
    /// Whether the operands are swapped: `2 - x` calls the operator with `x` first.
    pub reversed: bool,
}

/// The job of an operator for the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The sum of two gradients.
    Accumulate,
    /// Sums a broadcast gradient back.
    SumTo,
    /// Converts to another dtype.
    Cast,
    /// Chooses between two tensors element by element; gradients derived from expressions call it.
    Select,
    /// The complex conjugate; gradients derived from expressions call it.
    Conjugate,
}

impl Role {
    /// Every role with its spelling in a spec.
    pub const ALL: [(Role, &'static str); 5] = [
        (Role::Accumulate, "accumulate"),
        (Role::SumTo, "sum_to"),
        (Role::Cast, "cast"),
        (Role::Select, "select"),
        (Role::Conjugate, "conjugate"),
    ];
}
