//! Inference rules of an operator as trees of `opsmith_core`: for generated code, and for the command that evaluates
//! them.
//!
//! In: checked expressions, and memory for the trees. Out: trees that borrow both. Must not know the emitted code.

use std::cell::OnceCell;

use opsmith_core::rule_tree::{Conversion, Expr as Tree, RuleCheck, Rules};
use opsmith_core::rules::Rule;

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Infer, Kind, Op, Operation, Ty};

/// The arena of trees.
#[derive(Default)]
pub struct Memory<'a> {
    trees: Chunks<Tree<'a>>,
    named: Chunks<(&'a str, Tree<'a>)>,
    present: Chunks<Option<Tree<'a>>>,
    checks: Chunks<RuleCheck<'a>>,
}

/// Lists with stable addresses while others are added.
struct Chunks<T> {
    items: Vec<T>,
    next: OnceCell<Box<Chunks<T>>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { items: Vec::new(), next: OnceCell::new() }
    }
}

impl<T> Chunks<T> {
    fn keep(&self, items: impl IntoIterator<Item = T>) -> &[T] {
        let items: Vec<T> = items.into_iter().collect();
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        &last.next.get_or_init(|| Box::new(Chunks { items, next: OnceCell::new() })).items
    }
}

/// All rules of an operator.
pub fn rules<'a>(memory: &'a Memory<'a>, op: &'a Op) -> Rules<'a> {
    let checks = op
        .checks
        .iter()
        .map(|check| RuleCheck { condition: memory.tree(&check.condition), text: &check.text });
    let mut rules = Rules { checks: memory.checks.keep(checks), ..Rules::NONE };
    if let Some(infer) = &op.infer {
        rules.shapes = memory.list(shape_rules(infer));
        rules.dtypes = memory.list(&infer.dtypes);
        rules.compute = Some(memory.tree(&infer.compute));
        rules.length = infer.length.as_ref().map(|length| memory.tree(length));
        rules.run_sizes = memory.run_sizes(infer);
    }
    if op.outputs.iter().any(|output| output.present.is_some()) {
        let present = op.outputs.iter().map(|output| output.present.as_ref().map(|when| memory.tree(when)));
        rules.present = memory.present.keep(present);
    }
    rules
}

/// The rules of shapes: those with data-dependent sizes, if the entry has them.
pub fn shape_rules(infer: &Infer) -> &[Expr] {
    if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes }
}

impl<'a> Memory<'a> {
    /// One condition.
    pub fn check(&'a self, condition: &'a Expr, text: &'a str) -> &'a [RuleCheck<'a>] {
        self.checks.keep([RuleCheck { condition: self.tree(condition), text }])
    }

    /// The data-dependent sizes, each with its upper bound.
    pub fn run_sizes(&'a self, infer: &'a Infer) -> &'a [(&'a str, Tree<'a>)] {
        self.bindings(&infer.run_sizes)
    }

    /// Several trees.
    pub fn list(&'a self, items: impl IntoIterator<Item = &'a Expr>) -> &'a [Tree<'a>] {
        self.trees.keep(items.into_iter().map(|item| self.tree(item)))
    }

    /// An expression in the form that the runtime evaluates.
    pub fn tree(&'a self, expr: &'a Expr) -> Tree<'a> {
        match &expr.kind {
            ExprKind::Variable(Variable::Arg(index)) => {
                Tree::Arg(u8::try_from(*index).expect("a signature has at most 64 arguments"))
            }
            ExprKind::Variable(Variable::Local(name)) => Tree::Local(name),
            ExprKind::Int(value) => Tree::Int(*value),
            ExprKind::Float(value) => Tree::Float(*value),
            ExprKind::Bool(value) => Tree::Bool(*value),
            ExprKind::Str(text) => Tree::Str(text),
            ExprKind::MemoryFormat(format) => Tree::Str(format.ident()),
            ExprKind::DType(dtype) => Tree::DType(*dtype),
            ExprKind::None => Tree::None,
            ExprKind::List(items) => Tree::List(self.list(items)),
            ExprKind::Rule(Rule::Shape(rule), args) => Tree::ShapeRule(*rule, self.list(args)),
            ExprKind::Rule(Rule::DType(rule), args) => Tree::DTypeRule(*rule, self.list(args)),
            ExprKind::Native(path, _) => Tree::Native(path),
            ExprKind::Query(query, base, args) => {
                Tree::Query(*query, self.list(std::iter::once(&**base).chain(args)))
            }
            ExprKind::Binary(symbol, a, b) => Tree::Binary(*symbol, self.parts([a, b])),
            ExprKind::Logical(true, a, b) => Tree::And(self.parts([a, b])),
            ExprKind::Logical(false, a, b) => Tree::Or(self.parts([a, b])),
            ExprKind::Unary(Operation::Not, operand) => Tree::Not(self.part(operand)),
            ExprKind::Unary(_, operand) => Tree::Neg(self.part(operand)),
            ExprKind::If(condition, yes, no) => Tree::If(self.parts([condition, yes, no])),
            ExprKind::Block(bindings, tail) => Tree::Block(self.bindings(bindings), self.part(tail)),
            ExprKind::Index(base, at) => Tree::Index(self.parts([base, at])),
            ExprKind::Convert(inner) => Tree::Convert(conversion(&inner.ty, &expr.ty), self.part(inner)),
            ExprKind::Variable(_)
            | ExprKind::Op(..)
            | ExprKind::Function(..)
            | ExprKind::Imaginary
            | ExprKind::Tuple(_)
            | ExprKind::Map(..)
            | ExprKind::NotImplemented(_)
            | ExprKind::Opaque(_) => unreachable!("the checker lets no rule say {expr:?}"),
        }
    }

    fn bindings(&'a self, bindings: &'a [(String, Expr)]) -> &'a [(&'a str, Tree<'a>)] {
        self.named.keep(bindings.iter().map(|(name, value)| (name.as_str(), self.tree(value))))
    }

    fn part(&'a self, expr: &'a Expr) -> &'a Tree<'a> {
        let [part] = self.parts([expr]);
        part
    }

    fn parts<const N: usize>(&'a self, parts: [&'a Expr; N]) -> &'a [Tree<'a>; N] {
        self.list(parts).first_chunk().expect("a list has as many trees as expressions")
    }
}

fn conversion(from: &Ty, to: &Ty) -> Conversion {
    match (&from.kind, &to.kind) {
        (Kind::Int, Kind::Float) => Conversion::Float,
        (Kind::Bool, Kind::Int) => Conversion::Int,
        (Kind::Int, Kind::Ints(count)) => Conversion::Ints(count.unwrap_or(1)),
        (Kind::Ints(_), Kind::Floats) => Conversion::Floats,
        _ => Conversion::Same,
    }
}

/// The function of the kernels crate that an expression calls, if any.
pub fn native(expr: &Expr) -> Option<&str> {
    let own = match &expr.kind {
        ExprKind::Native(path, _) => Some(path.as_str()),
        _ => None,
    };
    own.or_else(|| expr.children().into_iter().find_map(native))
}
