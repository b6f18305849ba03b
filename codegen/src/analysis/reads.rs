//! The values that a formula reads, which a call has to save for it.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::model::expr::{Expr, ExprKind, Query, Variable};

/// Values read by a formula, which the node has to save.
#[derive(Clone, Default, Debug)]
pub struct Reads {
    /// Arguments and results whose value is read.
    pub values: BTreeSet<ReadValue>,
    /// Gradients of outputs.
    pub grads: BTreeSet<usize>,
    /// Whether the gradients of a list are read.
    pub all_grads: bool,
    /// Whether the mask of wanted gradients is read.
    pub mask: bool,
}

/// An argument or a result, by position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReadValue {
    /// An argument.
    Arg(usize),
    /// A result.
    Result(usize),
}

/// Values read by a formula. Queries of metadata read none.
pub fn reads(formula: &Expr) -> Reads {
    let mut reads = Reads::default();
    collect(formula, &mut reads);
    reads
}

/// Whether an expression is a metadata query of an argument or result, which needs no elements. Its first part is the
/// argument.
fn asks_metadata(expr: &Expr) -> bool {
    let ExprKind::Query(query, base, _) = &expr.kind else { return false };
    matches!(base.kind, ExprKind::Variable(Variable::Arg(_) | Variable::Result(_)))
        && (base.ty.is_tensor() || *query == Query::SizesAlong)
        && matches!(
            query,
            Query::Sizes
                | Query::Size
                | Query::Dim
                | Query::Numel
                | Query::DType
                | Query::Device
                | Query::IsComplex
                | Query::IsFloat
                | Query::IsInt
                | Query::SizesAlong
        )
}

fn collect(expr: &Expr, reads: &mut Reads) {
    if asks_metadata(expr) {
        return expr.children().into_iter().skip(1).for_each(|arg| collect(arg, reads));
    }
    match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => _ = reads.values.insert(ReadValue::Arg(*index)),
        ExprKind::Variable(Variable::Result(index)) => _ = reads.values.insert(ReadValue::Result(*index)),
        ExprKind::Variable(Variable::Grad(index)) => _ = reads.grads.insert(*index),
        ExprKind::Variable(Variable::Grads) => reads.all_grads = true,
        ExprKind::Variable(Variable::GradInputMask) => reads.mask = true,
        _ => {}
    }
    expr.children().into_iter().for_each(|child| collect(child, reads));
}

/// The first read of an argument's elements in a formula.
pub fn first_read(formula: &Expr, argument: usize) -> Option<Range<usize>> {
    if asks_metadata(formula) {
        return formula.children().into_iter().skip(1).find_map(|part| first_read(part, argument));
    }
    match formula.kind {
        ExprKind::Variable(Variable::Arg(index)) if index == argument => Some(formula.range.clone()),
        _ => formula.children().into_iter().find_map(|part| first_read(part, argument)),
    }
}
