//! Compositions that never end: an operator that is built from itself.
//!
//! A kernel of one backend does not help: on another, where only the compositions are left, the call
//! would not return. So no circle is allowed at all.

use super::Context;
use crate::diagnostics::{Span, catalogue};
use crate::expr::ExprKind;
use crate::model::Op;
use crate::spec::document::RawOp;

pub(super) fn refuse(context: &mut Context<'_>, ops: &[Op], raws: &[&RawOp]) {
    let calls: Vec<Vec<usize>> = ops.iter().map(calls).collect();
    let mut state = vec![State::New; ops.len()];
    for start in 0..ops.len() {
        if state[start] == State::New {
            visit(start, &calls, &mut state, &mut |chain| report(context, ops, raws, chain));
        }
    }
}

/// The operators with a composition that an operator's composition calls.
fn calls(op: &Op) -> Vec<usize> {
    let mut found = Vec::new();
    if let Some(body) = &op.body.composite {
        body.walk(&mut |part| {
            if let ExprKind::Op(id, _) = part.kind
                && !found.contains(&id.0)
            {
                found.push(id.0);
            }
        });
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the way from the start.
    Open,
    Done,
}

/// Walks everything that is reached from `start` and reports each circle once. A loop instead of
/// recursion, since a chain can be as long as the spec.
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
        let node = raws[index].entry("decompose");
        node.map_or(ops[index].span, |entry| entry.value.span)
    };
    let names: Vec<&str> = chain.iter().map(|&index| ops[index].name.as_str()).collect();
    let others: Vec<Span> = chain[1..].iter().map(|&index| place(index)).collect();
    context.push(catalogue::decompose_cycle(place(chain[0]), names[0], &names, &others));
}
