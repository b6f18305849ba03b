//! Rust operators that stand for calls, and what the runtime uses an operator for.

/// A Rust operator that stands for a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operator {
    /// The symbol.
    pub symbol: Symbol,
    /// Whether the operands are swapped: `2 - x` calls the operator with `x` first.
    pub reversed: bool,
}

/// The symbols an operator can stand for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the variants are the symbols' usual names")]
pub enum Symbol {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Neg,
    Not,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Symbol {
    /// Every symbol with its spelling in a spec.
    pub const ALL: [(Symbol, &'static str); 16] = [
        (Symbol::Add, "+"),
        (Symbol::Sub, "-"),
        (Symbol::Mul, "*"),
        (Symbol::Div, "/"),
        (Symbol::Rem, "%"),
        (Symbol::Neg, "neg"),
        (Symbol::Not, "!"),
        (Symbol::BitAnd, "&"),
        (Symbol::BitOr, "|"),
        (Symbol::BitXor, "^"),
        (Symbol::Eq, "=="),
        (Symbol::Ne, "!="),
        (Symbol::Lt, "<"),
        (Symbol::Le, "<="),
        (Symbol::Gt, ">"),
        (Symbol::Ge, ">="),
    ];

    /// The spelling in a spec.
    pub fn spelling(self) -> &'static str {
        Self::ALL.iter().find(|(symbol, _)| *symbol == self).map_or("", |(_, text)| text)
    }

    /// Whether the symbol takes one operand.
    pub fn is_unary(self) -> bool {
        matches!(self, Symbol::Neg | Symbol::Not)
    }

    /// Whether the result is a truth value for plain numbers.
    pub fn is_comparison(self) -> bool {
        matches!(self, Symbol::Eq | Symbol::Ne | Symbol::Lt | Symbol::Le | Symbol::Gt | Symbol::Ge)
    }
}

/// What the runtime uses an operator for.
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
