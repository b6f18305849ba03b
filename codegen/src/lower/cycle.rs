//! Endless compositions: an operator composed of itself.
//!
//! A kernel of one backend does not help: on another, where only the compositions exist, the call would not return. A
//! call inside a branch may end the cycle, so only unconditional calls are refused; of a cycle through branches, one
//! composition counts its levels when it runs.

use super::Context;
use crate::diagnostics::{Span, catalogue};
use crate::model::Op;
use crate::model::expr::{Expr, ExprKind};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;

pub(super) fn refuse(context: &mut Context<'_>, ops: &[Op], raws: &[&RawOp]) {
    find(ops, always_called, |chain| report(context, ops, raws, chain));
}

/// Marks one operator of each cycle through branches.
pub(super) fn mark(ops: &mut [Op]) {
    let mut first = Vec::new();
    find(ops, called, |chain| first.push(chain[0]));
    for index in first {
        ops[index].body.recursive = true;
    }
}

/// Reports each cycle of compositions, with `calls` the operators that an expression calls.
fn find(ops: &[Op], calls: fn(&Expr) -> Vec<usize>, mut report: impl FnMut(&[usize])) {
    let calls: Vec<Vec<usize>> =
        ops.iter().map(|op| op.body.composite.as_ref().map_or_else(Vec::new, calls)).collect();
    let mut state = vec![State::New; ops.len()];
    for start in 0..ops.len() {
        if state[start] == State::New {
            visit(start, &calls, &mut state, &mut report);
        }
    }
}

/// The operators that an expression calls, whether in branches or not.
fn called(expr: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    expr.walk(&mut |expr| {
        if let ExprKind::Op(id, _) = expr.kind {
            found.push(id.0);
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

fn always_called(expr: &Expr) -> Vec<usize> {
    let mut found = match &expr.kind {
        ExprKind::If(condition, yes, no) => {
            let (mut either, no) = (always_called(yes), always_called(no));
            either.retain(|id| no.contains(id));
            either.extend(always_called(condition));
            either
        }
        // The right side is evaluated only if the left does not decide.
        ExprKind::Logical(_, left, _) => always_called(left),
        _ => expr.children().into_iter().flat_map(always_called).collect(),
    };
    if let ExprKind::Op(id, _) = expr.kind {
        found.push(id.0);
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path from the start.
    Open,
    Done,
}

/// Visits every operator reachable from `start` and reports each cycle once. A loop instead of recursion, since a chain
/// can be as long as the spec.
fn visit(start: usize, calls: &[Vec<usize>], state: &mut [State], report: &mut dyn FnMut(&[usize])) {
    let mut path: Vec<(usize, usize)> = vec![(start, 0)];
    state[start] = State::Open;
    while let Some((node, next)) = path.last_mut() {
        let node = *node;
        let Some(&called) = calls[node].get(*next) else {
            state[node] = State::Done;
            path.pop();
            continue;
        };
        *next += 1;
        match state[called] {
            State::New => {
                state[called] = State::Open;
                path.push((called, 0));
            }
            State::Open => {
                let from = path.iter().position(|(known, _)| *known == called).unwrap_or_default();
                let chain: Vec<usize> = path[from..].iter().map(|(known, _)| *known).collect();
                report(&chain);
            }
            State::Done => {}
        }
    }
}

fn report(context: &mut Context<'_>, ops: &[Op], raws: &[&RawOp], chain: &[usize]) {
    let place = |index: usize| -> Span {
        let node = raws[index].entry(KeyName::Decompose);
        node.map_or(ops[index].span, |entry| entry.value.span)
    };
    let names: Vec<&str> = chain.iter().map(|&index| ops[index].name.as_str()).collect();
    let others: Vec<Span> = chain[1..].iter().map(|&index| place(index)).collect();
    context.push(catalogue::decompose_cycle(place(chain[0]), names[0], &names, &others));
}
