//! Memory that calls keep, and results written into given tensors.

use opsmith::{DType, Tensor, Value};
use opsmith_runtime::Arg;
use opsmith_runtime::generated::call;
use opsmith_runtime::op::OpDef;

use super::exact_calls;
use crate::calls::{bits, call};
use crate::report::Report;
use crate::samples::{arguments, exact_dtype, repeatable};

/// Whether backward frees all saved tensors, at every sample.
pub fn saved_memory(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    for (number, call) in exact_calls(op).iter().enumerate() {
        let Ok(outs) = call.run() else { continue };
        let starts = outs.iter().map(opsmith::ones_like).collect::<opsmith::Result<Vec<_>>>();
        let Ok(starts) = starts else { continue };
        let starts: Vec<Option<Tensor>> = starts.into_iter().map(Some).collect();
        let Ok(run) = call.gradients(&starts, false) else { continue };
        let left: usize = run.outs.iter().filter_map(Tensor::graph_node).map(|node| node.saved_bytes()).sum();
        report.compare((left != 0).then(|| {
            format!("{} ({}) at sample {number} holds {left} bytes after backward", op.name, op.location)
        }));
    }
    report
}

/// Whether the out form gives empty tensors the shape and elements of the results.
pub fn out_form(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.forms.out.is_none() {
        return report;
    }
    let dtype = exact_dtype(op).unwrap_or(DType::F32);
    for (number, args) in arguments(op, dtype).iter().enumerate() {
        let Ok(expected) = repeatable(op, || call(op, args)) else { continue };
        // Some results are for the gradient alone, and have no out tensor.
        let shown = expected.len().saturating_sub(op.hidden);
        let wrong = written_into_empty(op, args, &expected[..shown]);
        let wrong = wrong.unwrap_or_else(|error| Some(error.to_string()));
        let what = |wrong| format!("{} ({}), out form at sample {number}: {wrong}", op.name, op.location);
        report.compare(wrong.map(what));
    }
    report
}

fn written_into_empty(
    op: &'static OpDef,
    args: &[Value],
    expected: &[Tensor],
) -> opsmith::Result<Option<String>> {
    let empty = |like: &Tensor| opsmith::to_dtype(&opsmith::zeros([0])?, like.dtype());
    let mut outs = expected.iter().map(empty).collect::<opsmith::Result<Vec<Tensor>>>()?;
    let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
    repeatable(op, || call::invoke_out(op, &args, &mut outs.iter_mut().collect::<Vec<_>>()))?;
    Ok(outs.iter().zip(expected).enumerate().find_map(|(number, (out, like))| {
        if out.shape() != like.shape() {
            return Some(format!("result {number} has the shape {:?}, not {:?}", out.shape(), like.shape()));
        }
        (op.facts.deterministic && bits(out) != bits(like))
            .then(|| format!("result {number} is {out} in place of {like}"))
    }))
}
