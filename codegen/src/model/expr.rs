//! Typed expressions: shapes, dtypes, checks, pointwise bodies, derivatives, compositions.
//!
//! Every name is resolved and every operand has the type its place wants; `expr` makes them from text.

use std::ops::Range;

pub use opsmith_core::Query;
use opsmith_core::rules::Rule;
use opsmith_core::{DType, MemoryFormat};

use super::{FunctionId, Kind, OpId, Operation, Ty};

/// The name of the imaginary unit in formulas and in derivatives of scalar functions.
pub const IMAGINARY_UNIT: &str = "imaginary_unit";

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Its bytes in the text it was written in.
    pub range: Range<usize>,
}

/// Kind of an expression.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A name.
    Variable(Variable),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// The imaginary unit, in formulas.
    Imaginary,
    /// A truth value.
    Bool(bool),
    /// A text.
    Str(String),
    /// An element type.
    DType(DType),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// `None`.
    None,
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `(a, b)`.
    Tuple(Vec<Expr>),
    /// A call of an operator with all its arguments in order.
    Op(OpId, Vec<Expr>),
    /// A call of a scalar function.
    Function(FunctionId, Vec<Expr>),
    /// A call of a named inference rule.
    Rule(Rule, Vec<Expr>),
    /// A call of a hand-written Rust function: `views::transpose(self, dim0, dim1)`.
    Native(String, Vec<Expr>),
    /// A query of a value that needs no elements: `self.size(0)`.
    Query(Query, Box<Expr>, Vec<Expr>),
    /// An operator between plain numbers or elements.
    Binary(Operation, Box<Expr>, Box<Expr>),
    /// `a && b` or `a || b`; true for `&&`.
    Logical(bool, Box<Expr>, Box<Expr>),
    /// `-a` or `!a` of a plain number, element or truth value.
    Unary(Operation, Box<Expr>),
    /// `if c { a } else { b }`.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `{ let a = …; b }`.
    Block(Vec<(String, Expr)>, Box<Expr>),
    /// `list[i]` or the i-th value of a tuple.
    Index(Box<Expr>, Box<Expr>),
    /// `list.map(|item, position| tensor)`: a list of tensors, with the names of the item and, if it has one, the position.
    Map(Box<Expr>, Vec<String>, Box<Expr>),
    /// A derivative that says why it cannot be computed.
    NotImplemented(String),
    /// A formula in another language, which nothing here can compute.
    Opaque(String),
    /// The operand, converted to this expression's type.
    Convert(Box<Expr>),
}

/// Meaning of a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Variable {
    /// An argument of the operator.
    Arg(usize),
    /// The gradient of an output.
    Grad(usize),
    /// The gradients of the tensors of an output that is a list.
    Grads,
    /// The tangent of an argument.
    Tangent(usize),
    /// An output.
    Result(usize),
    /// Whether the gradient of an argument is wanted, by position in the formula's own list.
    GradInputMask,
    /// A name bound by `let`.
    Local(String),
}

/// One row of the table of queries.
#[derive(Clone, Copy, Debug)]
pub struct QuerySpec {
    /// The method's name.
    pub name: &'static str,
    /// The query.
    pub query: Query,
    /// Its result, for documents and messages.
    pub doc: &'static str,
}

/// The methods that are not operators.
pub const QUERIES: &[QuerySpec] = &[
    QuerySpec { name: "sizes", query: Query::Sizes, doc: "a tensor's sizes" },
    QuerySpec { name: "size", query: Query::Size, doc: "a tensor's size along a dimension" },
    QuerySpec { name: "dim", query: Query::Dim, doc: "a tensor's number of dimensions" },
    QuerySpec { name: "numel", query: Query::Numel, doc: "a tensor's number of elements" },
    QuerySpec {
        name: "strides",
        query: Query::Strides,
        doc: "elements to step in memory for one step along each dimension of a tensor",
    },
    QuerySpec {
        name: "storage_offset",
        query: Query::StorageOffset,
        doc: "elements of its memory before a tensor's first",
    },
    QuerySpec {
        name: "is_contiguous",
        query: Query::IsContiguous,
        doc: "whether a tensor lies in memory in row-major order without gaps",
    },
    QuerySpec { name: "dtype", query: Query::DType, doc: "a tensor's element type" },
    QuerySpec { name: "device", query: Query::Device, doc: "a tensor's device" },
    QuerySpec { name: "layout", query: Query::Layout, doc: "how a tensor is stored" },
    QuerySpec {
        name: "is_complex",
        query: Query::IsComplex,
        doc: "whether a tensor, dtype or number is complex",
    },
    QuerySpec {
        name: "is_float",
        query: Query::IsFloat,
        doc: "whether a tensor or dtype is real floating point",
    },
    QuerySpec { name: "is_int", query: Query::IsInt, doc: "whether a tensor or dtype is an integer type" },
    QuerySpec { name: "len", query: Query::Len, doc: "a list's length" },
    QuerySpec {
        name: "sizes_along",
        query: Query::SizesAlong,
        doc: "the size of each tensor of a list along a dimension; 0 for empty vectors among others",
    },
    QuerySpec { name: "is_some", query: Query::IsSome, doc: "whether an optional value is there" },
    QuerySpec { name: "is_none", query: Query::IsNone, doc: "whether an optional value is absent" },
    QuerySpec { name: "unwrap", query: Query::Unwrap, doc: "an optional value that is there" },
    QuerySpec { name: "unwrap_or", query: Query::UnwrapOr, doc: "an optional value, or the given one" },
    QuerySpec { name: "conj", query: Query::Conj, doc: "a number's complex conjugate" },
    QuerySpec { name: "is_zero", query: Query::IsZero, doc: "whether a number is zero" },
    QuerySpec { name: "contains", query: Query::Contains, doc: "whether a list of integers has a value" },
    QuerySpec {
        name: "concat",
        query: Query::Concat,
        doc: "a list of integers or tensors followed by another",
    },
];

/// The direct parts of an expression, borrowed one way or the other.
macro_rules! children {
    ($(#[$doc:meta])* $name:ident, $ty:ty, $iter:ident $(, $mutable:tt)?) => {
        $(#[$doc])*
        pub fn $name(&$($mutable)? self) -> Vec<&$($mutable)? $ty> {
            match &$($mutable)? self.kind {
                ExprKind::Variable(_)
                | ExprKind::Int(_)
                | ExprKind::Float(_)
                | ExprKind::Imaginary
                | ExprKind::Bool(_)
                | ExprKind::Str(_)
                | ExprKind::DType(_)
                | ExprKind::MemoryFormat(_)
                | ExprKind::None
                | ExprKind::NotImplemented(_)
                | ExprKind::Opaque(_) => Vec::new(),
                ExprKind::List(items)
                | ExprKind::Tuple(items)
                | ExprKind::Op(_, items)
                | ExprKind::Function(_, items)
                | ExprKind::Rule(_, items)
                | ExprKind::Native(_, items) => items.$iter().collect(),
                ExprKind::Query(_, base, args) => {
                    let mut parts = vec![&$($mutable)? **base];
                    parts.extend(args.$iter());
                    parts
                }
                ExprKind::Binary(_, a, b)
                | ExprKind::Logical(_, a, b)
                | ExprKind::Index(a, b)
                | ExprKind::Map(a, _, b) => vec![&$($mutable)? **a, &$($mutable)? **b],
                ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => vec![&$($mutable)? **operand],
                ExprKind::If(condition, yes, no) => {
                    vec![&$($mutable)? **condition, &$($mutable)? **yes, &$($mutable)? **no]
                }
                ExprKind::Block(bindings, tail) => {
                    let mut parts: Vec<_> = bindings.$iter().map(|(_, value)| value).collect();
                    parts.push(&$($mutable)? **tail);
                    parts
                }
            }
        }
    };
}

impl Expr {
    /// A call of a named rule; its table decides the type.
    pub fn rule(rule: impl Into<Rule>, args: Vec<Expr>, range: Range<usize>) -> Expr {
        let rule = rule.into();
        let kind = match rule {
            Rule::Shape(_) => Kind::Ints(None),
            Rule::DType(_) => Kind::DType,
        };
        Expr { kind: ExprKind::Rule(rule, args), ty: Ty::new(kind), range }
    }

    /// Calls `visit` with this expression and every one inside it.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        self.children().into_iter().for_each(|child| child.walk(visit));
    }

    /// Whether two expressions say the same, wherever they are written.
    pub fn same_meaning(&self, other: &Expr) -> bool {
        let (parts, others) = (self.children(), other.children());
        self.ty == other.ty
            && self.same_head(other)
            && parts.len() == others.len()
            && parts.into_iter().zip(others).all(|(part, other)| part.same_meaning(other))
    }

    /// As [`Expr::same_meaning`], of values that conversions leave as they are.
    pub fn same_value(&self, other: &Expr) -> bool {
        match (&self.kind, &other.kind) {
            (ExprKind::Convert(inner), _) => inner.same_value(other),
            (_, ExprKind::Convert(inner)) => self.same_value(inner),
            _ => self.same_meaning(other),
        }
    }

    /// Whether two expressions say the same but for their parts.
    fn same_head(&self, other: &Expr) -> bool {
        match (&self.kind, &other.kind) {
            (ExprKind::Variable(a), ExprKind::Variable(b)) => a == b,
            (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
            (ExprKind::Float(a), ExprKind::Float(b)) => a.to_bits() == b.to_bits(),
            (ExprKind::Bool(a), ExprKind::Bool(b)) => a == b,
            (ExprKind::Str(a), ExprKind::Str(b)) => a == b,
            (ExprKind::DType(a), ExprKind::DType(b)) => a == b,
            (ExprKind::Op(a, _), ExprKind::Op(b, _)) => a == b,
            (ExprKind::Function(a, _), ExprKind::Function(b, _)) => a == b,
            (ExprKind::Rule(a, _), ExprKind::Rule(b, _)) => a == b,
            (ExprKind::Native(a, _), ExprKind::Native(b, _)) => a == b,
            (ExprKind::Query(a, ..), ExprKind::Query(b, ..)) => a == b,
            (ExprKind::Binary(a, ..), ExprKind::Binary(b, ..)) => a == b,
            (ExprKind::Logical(a, ..), ExprKind::Logical(b, ..)) => a == b,
            (ExprKind::Unary(a, _), ExprKind::Unary(b, _)) => a == b,
            (ExprKind::NotImplemented(a), ExprKind::NotImplemented(b))
            | (ExprKind::Opaque(a), ExprKind::Opaque(b)) => a == b,
            (ExprKind::Block(a, _), ExprKind::Block(b, _)) => {
                a.iter().map(|(name, _)| name).eq(b.iter().map(|(name, _)| name))
            }
            (ExprKind::Map(_, a, _), ExprKind::Map(_, b, _)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// Calls `visit` with this expression, then with every one inside the expression that `visit` left there.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit(self);
        self.children_mut().into_iter().for_each(|child| child.walk_mut(visit));
    }

    /// Changes each direct part, which is moved to `change` and not copied.
    pub fn change_parts(&mut self, change: &mut dyn FnMut(Expr) -> Expr) {
        for part in self.children_mut() {
            let kind = std::mem::replace(&mut part.kind, ExprKind::None);
            *part = change(Expr { kind, ..part.clone() });
        }
    }

    children!(
        /// The direct parts, in order.
        children, Expr, iter
    );
    children!(
        /// The direct parts, in order, to change.
        children_mut, Expr, iter_mut, mut
    );
}
