//! Results that follow other results: `shape: [reduce(x, dim, false), follow(first)]`.
//!
//! In: the rules of an operator's results as written, separately for shapes and for dtypes: the source of a result's
//! shape does not determine its dtype. Out: for each result the result whose rule it uses, at the end of the chain,
//! which follows arguments only. Ambiguous references are errors.

use super::{Context, dtypes};
use crate::diagnostics::catalogue;
use crate::expr::path;
use crate::model::{Kind, Op};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};

/// The result at the end of each result's chain; reports cycles, and sources that are unknown, ambiguous or possibly
/// absent.
pub(super) fn roots(context: &mut Context<'_>, op: &Op, raw: &RawOp, texts: &[Text]) -> Option<Vec<usize>> {
    let mut fine = Some(());
    let mut next: Vec<Option<usize>> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let Some(name) = followed(text.as_str()) else {
            next.push(None);
            continue;
        };
        let result = result_called(op, name);
        let is_argument = op.arg_index(name).is_some();
        match result {
            None if !is_argument => {
                missing(context, op, text, name);
                fine = None;
            }
            Some(_) if is_argument => {
                context.push(catalogue::follow_ambiguous(text.span(), name));
                fine = None;
            }
            Some(source) if may_lack(op, raw, source, index) => {
                context.push(catalogue::follow_absent(text.span(), name_of(op, index), name));
                fine = None;
            }
            _ => {}
        }
        next.push(result);
    }
    fine?;
    let mut roots = Vec::with_capacity(texts.len());
    for (start, text) in texts.iter().enumerate() {
        let mut chain = vec![start];
        while let Some(source) = next[chain[chain.len() - 1]] {
            if chain.contains(&source) {
                // Each cycle is reported once, at its first result.
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

/// Reports a result whose shape follows another one in calls but not before a run, or the reverse: `run_shape` may only
/// refine a shape.
pub(super) fn agrees(context: &mut Context<'_>, op: &Op, raw: &RawOp) {
    let mut texts =
        |key: KeyName| raw.get(key).and_then(|node| dtypes::words(context, key.name(), "[n]", node));
    let (Some(calls), Some(runs)) = (texts(KeyName::Shape), texts(KeyName::RunShape)) else { return };
    let source = |text: &Text| followed(text.as_str()).and_then(|name| result_called(op, name));
    for (index, (call, run)) in calls.iter().zip(&runs).enumerate() {
        let (Some(of_call), of_run) = (source(call), source(run)) else { continue };
        // A repetition of the same sizes is equivalent.
        let same = of_run == Some(of_call) || runs.get(of_call).is_some_and(|of| of.as_str() == run.as_str());
        if !same {
            let names = (name_of(op, index), name_of(op, of_call));
            context.push(catalogue::follow_changed(run.span(), names, call.span()));
        }
    }
}

fn result_called(op: &Op, name: &str) -> Option<usize> {
    op.outputs.iter().position(|output| output.name.as_deref() == Some(name))
}

/// Whether a result may be absent while another one, which follows it, is present.
fn may_lack(op: &Op, raw: &RawOp, source: usize, follower: usize) -> bool {
    let present = raw.text_map(KeyName::Present);
    let condition = |index: usize| {
        let name = op.outputs[index].name.as_deref();
        present.iter().find(|(key, _)| Some(key.text.as_str()) == name).map(|(_, text)| text.as_str().trim())
    };
    op.outputs[source].ty.optional
        && (!op.outputs[follower].ty.optional || condition(source) != condition(follower))
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
