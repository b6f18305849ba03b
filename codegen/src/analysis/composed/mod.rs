//! The results of compositions: the operator or argument that gives each, its shape and dtype in terms of the composition's arguments,
//! and the calls that the composed operators refuse.
//!
//! In: the model. Out: [`Source`]s, rules and conditions as expressions. Must not write words or formulas.

mod decide;
mod refusals;
mod rules;

use std::cell::Cell;

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Model, Op};

use decide::substituted;
pub(crate) use refusals::{Refusal, Refused, is_literal, negated, refusals};
pub(crate) use rules::{Fact, Told, told};
pub use rules::{dtype, shape};

/// The source of a result of a composition.
pub enum Source<'a> {
    /// An argument, by its position.
    Argument(usize),
    /// A result of a called operator.
    Call {
        /// The operator by the name that the composition uses.
        called: &'a Op,
        /// The operator that this name means.
        meant: &'a Op,
        /// The arguments of the call.
        args: &'a [Expr],
        /// The names that the call may use.
        scope: BoundNames<'a>,
        /// The result's position among those of the called operator.
        position: usize,
    },
    /// One of two sources.
    Either {
        /// The condition of the first.
        condition: &'a Expr,
        /// The names that the condition may use.
        scope: BoundNames<'a>,
        /// The sources.
        sources: Box<[Source<'a>; 2]>,
    },
}

/// The most names that are replaced in one expression.
const MOST_VALUES: usize = 200;

/// The names bound by `let` around a part of a composition, the innermost last.
#[derive(Clone, Default)]
pub struct BoundNames<'a>(Vec<&'a [(String, Expr)]>);

impl<'a> BoundNames<'a> {
    /// The value of a name, and the names that it may use: those bound before.
    fn value(&self, name: &str) -> Option<(&'a Expr, BoundNames<'a>)> {
        let (depth, at) = self.0.iter().enumerate().rev().find_map(|(depth, bindings)| {
            bindings.iter().rposition(|(known, _)| known == name).map(|at| (depth, at))
        })?;
        let mut before = self.0[..depth].to_vec();
        before.push(&self.0[depth][..at]);
        Some((&self.0[depth][at].1, BoundNames(before)))
    }

    fn with(&self, bindings: &'a [(String, Expr)]) -> BoundNames<'a> {
        BoundNames(self.0.iter().copied().chain([bindings]).collect())
    }

    /// An expression with values for its names; `None` if one has none.
    fn resolved(&self, expr: &Expr) -> Option<Expr> {
        self.resolved_within(expr, &Cell::new(MOST_VALUES))
    }

    /// As [`BoundNames::resolved`], with so many values at most: names of names of names would make an expression of any length.
    fn resolved_within(&self, expr: &Expr, left: &Cell<usize>) -> Option<Expr> {
        substituted(expr, &|variable, part| match variable {
            Variable::Local(name) => {
                left.set(left.get().checked_sub(1)?);
                let (value, scope) = self.value(name)?;
                scope.resolved_within(value, left)
            }
            _ => Some(part.clone()),
        })
    }
}

/// The source of a result of an operator's composition; `None` if the operator has none, or an expression gives it that is neither
/// an argument nor a call.
pub fn source<'a>(model: &'a Model, op: &'a Op, position: usize) -> Option<Source<'a>> {
    find(model, op.body.composite.as_ref()?, BoundNames::default(), position)
}

fn find<'a>(model: &'a Model, expr: &'a Expr, scope: BoundNames<'a>, position: usize) -> Option<Source<'a>> {
    match &expr.kind {
        ExprKind::Convert(inner) => find(model, inner, scope, position),
        ExprKind::Block(bindings, value) => find(model, value, scope.with(bindings), position),
        ExprKind::Variable(Variable::Local(name)) => {
            let (value, scope) = scope.value(name)?;
            find(model, value, scope, position)
        }
        ExprKind::Variable(Variable::Arg(index)) => Some(Source::Argument(*index)),
        ExprKind::Tuple(values) => find(model, values.get(position)?, scope, 0),
        ExprKind::Index(of, at) => match at.kind {
            ExprKind::Int(at) => find(model, of, scope, usize::try_from(at).ok()?),
            _ => None,
        },
        ExprKind::Op(id, args) => {
            let called = model.ops.get(id.0)?;
            let meant = called.alias_of.map_or(called, |id| &model.ops[id.0]);
            Some(Source::Call { called, meant, args, scope, position })
        }
        ExprKind::If(condition, yes, no) => {
            let yes = find(model, yes, scope.clone(), position)?;
            let no = find(model, no, scope.clone(), position)?;
            Some(Source::Either { condition, scope, sources: Box::new([yes, no]) })
        }
        _ => None,
    }
}

/// The compositions that are being followed.
#[derive(Clone, Copy)]
pub(crate) struct Callers<'a> {
    /// The innermost operator.
    pub op: &'a Op,
    /// Those around it.
    pub outer: Option<&'a Callers<'a>>,
}

impl Callers<'_> {
    /// A composition may call its own operator, with other arguments.
    pub(crate) fn have(&self, op: &Op) -> bool {
        std::ptr::eq(self.op, op) || self.outer.is_some_and(|outer| outer.have(op))
    }
}
