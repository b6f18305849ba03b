//! The queries and the operations of a spec's expressions, which the generator checks and the runtime carries out.

/// Queries of a value that need no elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "each variant is the method's name")]
pub enum Query {
    Sizes,
    Size,
    Dim,
    Numel,
    Strides,
    StorageOffset,
    IsContiguous,
    DType,
    Device,
    Layout,
    IsComplex,
    IsFloat,
    IsInt,
    Len,
    SizesAlong,
    IsSome,
    IsNone,
    Unwrap,
    UnwrapOr,
    Conj,
    IsZero,
    Contains,
    Concat,
}

/// The symbols an operator can stand for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the variants are the symbols' usual names")]
pub enum Operation {
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

impl Operation {
    /// Every symbol with its spelling in a spec.
    pub const ALL: [(Operation, &'static str); 16] = [
        (Operation::Add, "+"),
        (Operation::Sub, "-"),
        (Operation::Mul, "*"),
        (Operation::Div, "/"),
        (Operation::Rem, "%"),
        (Operation::Neg, "neg"),
        (Operation::Not, "!"),
        (Operation::BitAnd, "&"),
        (Operation::BitOr, "|"),
        (Operation::BitXor, "^"),
        (Operation::Eq, "=="),
        (Operation::Ne, "!="),
        (Operation::Lt, "<"),
        (Operation::Le, "<="),
        (Operation::Gt, ">"),
        (Operation::Ge, ">="),
    ];

    /// The spelling in a spec.
    pub fn spelling(self) -> &'static str {
        Self::ALL.iter().find(|(symbol, _)| *symbol == self).map_or("", |(_, text)| text)
    }

    /// Whether the symbol takes one operand.
    pub fn is_unary(self) -> bool {
        matches!(self, Operation::Neg | Operation::Not)
    }

    /// Whether the result is a truth value for plain numbers.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Operation::Eq | Operation::Ne | Operation::Lt | Operation::Le | Operation::Gt | Operation::Ge
        )
    }
}
