//! Rules of the checked model as the runtime holds them.
//!
//! In: typed expressions. Out: the static trees that `symbolic::infer` evaluates, the same that the generator writes
//! into code (`codegen/src/emit/rules.rs`). They are never freed: the command ends soon.

use opsmith_codegen::model::expr::{Expr, ExprKind, Variable};
use opsmith_codegen::model::{Combination, Kind, Op, Symbol, Ty, ValueUse};
use opsmith_core::rules::Rule;
use opsmith_runtime::facts::ValueUse as Use;
use opsmith_runtime::infer::expr::{Conversion, Expr as Tree, Rules};
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{self, ArgDef, ArgKind, ArgType, OpDef, ReturnDef, Schema};

/// Operators of the command are in no library.
static NOWHERE: Library = Library { name: "", ..Library::EMPTY };

fn forever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn list<T>(values: impl IntoIterator<Item = T>) -> &'static [T] {
    Vec::leak(values.into_iter().collect())
}

pub(super) fn text(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

/// A definition of an operator about which nothing is asked but some rules, which are for so many results.
pub(super) fn definition(op: &Op, rules: Rules, results: usize) -> &'static OpDef {
    let arg = |arg: &opsmith_codegen::model::Arg| ArgDef {
        name: text(&arg.name),
        ty: arg_type(&arg.ty),
        default: None,
        keyword_only: arg.keyword_only,
        aliases: &[],
        constraints: &[],
        value: match arg.value {
            ValueUse::None => Use::None,
            ValueUse::Optional => Use::Optional,
            ValueUse::Masks => Use::Masks,
            ValueUse::Required => Use::Required,
        },
    };
    let returns = match op.outputs.as_slice() {
        [only] if only.ty.kind == Kind::Tensors => list([ReturnDef { name: None, ty: arg_type(&only.ty) }]),
        _ => list((0..results).map(|_| ReturnDef { name: None, ty: arg_type(&Ty::new(Kind::Tensor)) })),
    };
    let schema = Schema { text: text(&op.signature), args: list(op.args.iter().map(arg)), returns };
    let row = |row: &Combination| op::Combination {
        inputs: list(row.inputs.iter().map(|(argument, dtype)| (*argument as u8, *dtype))),
        outputs: list(row.outputs.iter().copied()),
    };
    forever(OpDef {
        rules: Some(forever(rules)),
        combinations: list(op.combinations.iter().map(row)),
        ..OpDef::new(text(&op.name), schema, "", &NOWHERE)
    })
}

fn arg_type(ty: &Ty) -> ArgType {
    ArgType { kind: ty.kind.argument().unwrap_or(ArgKind::Tensor), optional: ty.optional }
}

/// An expression as the runtime holds it.
pub(super) fn tree(expr: &Expr) -> Tree {
    let all = |items: &[Expr]| list(items.iter().map(tree));
    let pair = |a: &Expr, b: &Expr| forever([tree(a), tree(b)]);
    match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => Tree::Arg(*index as u8),
        ExprKind::Variable(Variable::Local(name)) => Tree::Local(text(name)),
        ExprKind::Int(value) => Tree::Int(*value),
        ExprKind::Float(value) => Tree::Float(*value),
        ExprKind::Bool(value) => Tree::Bool(*value),
        ExprKind::Str(value) => Tree::Str(text(value)),
        ExprKind::DType(dtype) => Tree::DType(*dtype),
        ExprKind::None => Tree::None,
        ExprKind::List(items) => Tree::List(all(items)),
        ExprKind::Rule(Rule::Shape(rule), args) => Tree::ShapeRule(*rule, all(args)),
        ExprKind::Rule(Rule::DType(rule), args) => Tree::DTypeRule(*rule, all(args)),
        ExprKind::Native(path, _) => Tree::Native(text(path)),
        ExprKind::Query(query, base, args) => {
            Tree::Query(*query, list(std::iter::once(&**base).chain(args).map(tree)))
        }
        ExprKind::Binary(symbol, a, b) => Tree::Binary(*symbol, pair(a, b)),
        ExprKind::Logical(true, a, b) => Tree::And(pair(a, b)),
        ExprKind::Logical(false, a, b) => Tree::Or(pair(a, b)),
        ExprKind::Unary(Symbol::Not, operand) => Tree::Not(forever(tree(operand))),
        ExprKind::Unary(_, operand) => Tree::Neg(forever(tree(operand))),
        ExprKind::If(condition, yes, no) => Tree::If(forever([tree(condition), tree(yes), tree(no)])),
        ExprKind::Block(bindings, tail) => {
            let bindings = bindings.iter().map(|(name, value)| (text(name), tree(value)));
            Tree::Block(list(bindings), forever(tree(tail)))
        }
        ExprKind::Index(base, at) => Tree::Index(pair(base, at)),
        ExprKind::Convert(inner) => Tree::Convert(conversion(&inner.ty, &expr.ty), forever(tree(inner))),
        // The checker lets no rule say these.
        ExprKind::Variable(_)
        | ExprKind::Op(..)
        | ExprKind::Function(..)
        | ExprKind::Imaginary
        | ExprKind::Tuple(_)
        | ExprKind::NotImplemented(_)
        | ExprKind::Opaque(_) => Tree::Native("an operator"),
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

/// The function of the kernels crate that an expression calls, if it calls one.
pub(super) fn native(expr: &Expr) -> Option<String> {
    let mut found = None;
    expr.walk(&mut |part| {
        if let ExprKind::Native(path, _) = &part.kind {
            found.get_or_insert_with(|| path.clone());
        }
    });
    found
}
