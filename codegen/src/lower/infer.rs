//! `shape`, `dtype`, `compute` and `check`.

use std::ops::Range;

use opsmith_core::DType;

use super::Context;
use crate::diagnostics::Diagnostic;
use crate::expr::check::{self, Mode, OpTable, Scope};
use crate::expr::{Expr, ExprKind, Variable};
use crate::model::{Check, Element, Function, Infer, Kind, Op, Ty};
use crate::spec::document::{RawOp, Text};

/// Checks the expressions of one operator.
pub(super) struct Expressions<'a> {
    pub op: &'a Op,
    pub table: &'a OpTable<'a>,
    pub functions: &'a [Function],
}

impl Expressions<'_> {
    pub fn check(&self, context: &mut Context<'_>, text: &Text, mode: Mode, want: &Ty) -> Option<Expr> {
        let scope = Scope {
            ops: self.table,
            functions: self.functions,
            args: &self.op.args,
            outputs: &self.op.outputs,
            mode,
        };
        let sources = context.sources;
        let locate = |range: Range<usize>| text.span_within(range, sources);
        check::check(text.as_str(), &scope, want, &locate, context.diagnostics)
    }
}

pub(super) fn checks(context: &mut Context<'_>, expressions: &Expressions<'_>, raw: &RawOp) -> Vec<Check> {
    raw.texts("check")
        .iter()
        .filter_map(|text| {
            let condition = expressions.check(context, text, Mode::Check, &Ty::new(Kind::Bool))?;
            Some(Check { condition, text: text.as_str().to_owned() })
        })
        .collect()
}

/// The inference rules; pointwise operators broadcast and promote if they say nothing else.
pub(super) fn lower(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    is_pointwise: bool,
) -> Option<Infer> {
    let op = expressions.op;
    let count = op.outputs.len();
    let sizes = Ty::new(Kind::Ints(None));
    let dtype = Ty::new(Kind::DType);
    let shapes = match raw.get("shape") {
        Some(_) => each(context, expressions, raw, "shape", Mode::Shape, &sizes)?,
        None if is_pointwise => vec![rule("broadcast", tensors(op), sizes)],
        None => return None,
    };
    let dtypes = match raw.get("dtype") {
        Some(_) => each(context, expressions, raw, "dtype", Mode::DType, &dtype)?,
        None if is_pointwise => vec![rule("promote", operands(op), dtype.clone())],
        None => {
            context.diagnostics.push(
                Diagnostic::error(
                    "E0430",
                    format!("`{}` has a shape but no dtype", op.name),
                    raw.func.span(),
                    "`dtype` is missing",
                )
                .with_help("add `dtype: promote(…)`, `dtype: same(…)` or a dtype's name"),
            );
            return None;
        }
    };
    for (key, found) in [("shape", shapes.len()), ("dtype", dtypes.len())] {
        if found != count
            && let Some(node) = raw.get(key)
        {
            context.diagnostics.push(Diagnostic::error(
                "E0431",
                format!("`{}` has {count} outputs", op.name),
                node.span,
                format!("{found} given; list one for each output"),
            ));
            return None;
        }
    }
    let compute = match raw.text("compute") {
        Some(text) => expressions.check(context, &text, Mode::DType, &Ty::new(Kind::DType))?,
        None => default_compute(op, &dtypes, is_pointwise),
    };
    Some(Infer { shapes, dtypes, compute })
}

/// A text or a list of texts, each an expression.
fn each(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    key: &str,
    mode: Mode,
    want: &Ty,
) -> Option<Vec<Expr>> {
    let checked: Vec<Option<Expr>> =
        raw.texts(key).iter().map(|text| expressions.check(context, text, mode, want)).collect();
    checked.into_iter().collect()
}

fn variable(op: &Op, index: usize) -> Expr {
    Expr { kind: ExprKind::Variable(Variable::Arg(index)), ty: op.args[index].ty.clone(), range: 0..0 }
}

fn rule(name: &'static str, args: Vec<Expr>, ty: Ty) -> Expr {
    Expr { kind: ExprKind::Rule(name, args), ty, range: 0..0 }
}

fn tensors(op: &Op) -> Vec<Expr> {
    (0..op.args.len())
        .filter(|&index| op.args[index].ty.holds_tensors())
        .map(|index| variable(op, index))
        .collect()
}

/// The arguments that decide the dtype: tensors without a type of their own, and numbers.
fn operands(op: &Op) -> Vec<Expr> {
    (0..op.args.len())
        .filter(|&index| {
            let arg = &op.args[index];
            arg.element == Element::Dispatch || arg.ty.kind == Kind::Scalar
        })
        .map(|index| variable(op, index))
        .collect()
}

/// The dtype that chooses the kernel, if the spec does not say: the first output's, or that of the
/// inputs if the output's is fixed.
fn default_compute(op: &Op, dtypes: &[Expr], is_pointwise: bool) -> Expr {
    let decided_by_inputs = !matches!(&dtypes[0].kind, ExprKind::DType(_) | ExprKind::Rule("real", _));
    if decided_by_inputs {
        return dtypes[0].clone();
    }
    let ty = Ty::new(Kind::DType);
    if is_pointwise {
        return rule("promote", operands(op), ty);
    }
    match (0..op.args.len()).find(|&index| op.args[index].element == Element::Dispatch) {
        Some(index) => rule("follow", vec![variable(op, index)], ty),
        None => dtypes[0].clone(),
    }
}

/// The element type a kernel writes, from the rule of an output's dtype.
pub(super) fn output_element(dtype: &Expr, compute: &Expr) -> Option<Element> {
    match &dtype.kind {
        ExprKind::DType(dtype) => Some(fixed(*dtype)),
        ExprKind::Rule("real", _) => Some(Element::Real),
        _ if same(dtype, compute) => Some(Element::Dispatch),
        _ => None,
    }
}

fn fixed(dtype: DType) -> Element {
    Element::Fixed(dtype, opsmith_core::DTypeSet::of(dtype))
}

/// Whether two expressions say the same, whatever their places.
fn same(a: &Expr, b: &Expr) -> bool {
    let text = |expr: &Expr| {
        let mut text = String::new();
        expr.walk(&mut |part| text.push_str(&format!("{:?};", std::mem::discriminant(&part.kind))));
        expr.walk(&mut |part| {
            if let ExprKind::Variable(variable) = &part.kind {
                text.push_str(&format!("{variable:?};"));
            }
            if let ExprKind::Rule(name, _) = &part.kind {
                text.push_str(name);
            }
        });
        text
    };
    text(a) == text(b)
}
