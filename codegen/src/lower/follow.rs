//! Results that follow other results: `shape: [reduce(x, dim, false), follow(first)]`.
//!
//! In: the rules of an operator's results as written. Out: for each result the one whose rule it has, at
//! the end of the chain, which follows arguments only.

use super::Context;
use crate::diagnostics::catalogue;
use crate::expr::path;
use crate::model::{Kind, Op};
use crate::spec::document::Text;

/// The result at the end of each result's chain; reports rings and sources that are not there.
pub(super) fn roots(context: &mut Context<'_>, op: &Op, texts: &[Text]) -> Option<Vec<usize>> {
    let mut fine = Some(());
    let mut next: Vec<Option<usize>> = Vec::with_capacity(texts.len());
    for text in texts {
        let source = followed(text.as_str());
        let is_argument = |name: &str| op.arg_index(name).is_some();
        next.push(match source {
            Some(name) if !is_argument(name) => {
                let found = op.outputs.iter().position(|output| output.name.as_deref() == Some(name));
                if found.is_none() {
                    missing(context, op, text, name);
                    fine = None;
                }
                found
            }
            _ => None,
        });
    }
    fine?;
    let mut roots = Vec::with_capacity(texts.len());
    for (start, text) in texts.iter().enumerate() {
        let mut chain = vec![start];
        while let Some(source) = next[chain[chain.len() - 1]] {
            if chain.contains(&source) {
                // Each ring is reported once, at its first result.
                if source == start && chain.iter().all(|index| *index >= start) {
                    let names: Vec<&str> =
                        chain.iter().chain([&source]).map(|&index| name_of(op, index)).collect();
                    context.push(catalogue::follow_ring(text.span(), &names.join(" → ")));
                }
                fine = None;
                break;
            }
            chain.push(source);
        }
        roots.push(chain[chain.len() - 1]);
    }
    fine.map(|()| roots)
}

/// The name in `follow(name)`.
fn followed(text: &str) -> Option<&str> {
    let inside =
        text.trim().strip_prefix("follow")?.trim_start().strip_prefix('(')?.strip_suffix(')')?.trim();
    path::is_identifier(inside).then_some(inside)
}

fn name_of(op: &Op, index: usize) -> &str {
    op.outputs[index].name.as_deref().unwrap_or("a result without a name")
}

fn missing(context: &mut Context<'_>, op: &Op, text: &Text, name: &str) {
    let args = op.args.iter().filter(|arg| arg.ty.kind == Kind::Tensor).map(|arg| arg.name.as_str());
    let known: Vec<&str> =
        args.chain(op.outputs.iter().filter_map(|output| output.name.as_deref())).collect();
    let start = text.as_str().find(name).unwrap_or(0);
    let place = text.span_within(start..start + name.len(), context.sources);
    context.push(catalogue::follow_source_missing(place, name, &known));
}
