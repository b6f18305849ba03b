//! The checks of every operator, at every sample.
//!
//! In: an operator's definition. Out: failures, in sentences. A check of derivatives is skipped only if the spec
//! declares that with a reason (`tolerance: {second_order: {skip: why}}`).

mod call;
mod constraints;
mod device;
mod forms;
mod forward;
mod graph;
mod inference;
mod memory;
mod mutation;
mod numeric;
mod open;
mod precision;
mod sizes;
mod written;

use opsmith::{DType, Error, ErrorKind, Result, Value};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::sample::{Check, ToleranceOf};
use opsmith_runtime::{Arg, boxed};

use crate::report::Report;
use crate::results::{self, CheckOutcome};
use crate::samples::{exact_dtype, repeatable, samples};
pub use call::{Call, elements, leaf, numbers_like, pull, weights};
pub use device::{Agreement, forms_in, forms_on, gradients_on, graphs_on};
pub use forward::forward;
pub use graph::saved_graphs;
pub use inference::Bound;
pub use mutation::{complex_survivors, read_results, survivors};
pub use numeric::{forward_mode, gradient, second_order};
pub use open::Open;
pub use precision::precision;

/// Checks of one operator whose outcome is recorded, under a name for documents, if results are wanted.
macro_rules! recorded {
    ($($(#[$doc:meta])* $name:ident in $module:ident as $label:literal -> $result:ident $(. $report:ident)?;)*) => {$(
        $(#[$doc])*
        pub fn $name(op: &'static OpDef) -> $result {
            let found = $module::$name(op);
            if results::wanted() {
                results::record(op, None, $label, &CheckOutcome::from(&found$(.$report)?));
            }
            found
        }
    )*};
}

recorded! {
    /// Whether every violation of a constraint is rejected with an error that names it.
    constraints in constraints as "constraints" -> Report;
    /// Graphs, as traced and after every pass, against calls, at every sample.
    graphs in graph as "graph" -> Report;
    /// Graphs of gradients against backward, at every sample.
    graph_gradients in graph as "graph gradient" -> Report;
    /// Graphs with symbolic sizes against calls at each size.
    symbolic_graphs in graph as "symbolic graph" -> Report;
    /// Inference from sizes against calls, at every sample.
    inference in inference as "inference" -> Report;
    /// Inference with a symbol for every size of every sample, each then bound to several numbers, against calls at those.
    symbolic_inference in inference as "symbolic inference" -> Bound.report;
    /// The first sample as a graph of one call, for inputs of any rank, then of unknown sizes, against the call.
    open_inference in open as "open inference" -> Open.report;
    /// Whether backward frees all saved tensors, at every sample.
    saved_memory in memory as "saved memory" -> Report;
    /// Whether the out form gives empty tensors the shape and elements of the results.
    out_form in memory as "out" -> Report;
    /// Whether kernels write every element of their results, and read none before.
    written in written as "written" -> Report;
}

/// Whether a derivative of the operator exists: a sample has a result that depends on its inputs.
pub fn is_differentiable(op: &'static OpDef) -> bool {
    exact_calls(op).iter().any(|call| call.gradients(&[], false).is_ok_and(|run| run.is_tracked()))
}

/// The calls of an operator's samples.
pub fn calls(op: &'static OpDef, dtype: DType) -> Vec<Call> {
    let call = |args| Call { op, args }.with_dtype(DType::F64, dtype);
    if op.host.is_some() {
        return Vec::new();
    }
    let mut calls: Vec<Call> = samples(op, dtype).into_iter().map(call).collect();
    if dtype.is_complex() {
        let with_complex: Vec<Call> = calls.iter().flat_map(Call::with_complex_scalars).collect();
        calls.extend(with_complex);
    }
    calls.retain(|call| dtype == DType::F64 || call.run().is_ok());
    calls
}

/// The calls in `float64`, or in the most exact dtype that the operator supports.
fn exact_calls(op: &'static OpDef) -> Vec<Call> {
    let real = calls(op, DType::F64);
    match real.iter().all(|call| call.run().is_err_and(|error| is_unsupported(&error))) {
        true => exact_dtype(op).map_or(Vec::new(), |dtype| calls(op, dtype)),
        false => real,
    }
}

/// Runs a check; a panic in it is a failure.
pub(crate) fn caught<R>(
    check: impl FnOnce() -> std::result::Result<R, String>,
) -> std::result::Result<R, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("panicked: {text}"))
    })
}

/// Whether some arguments are accepted, as every other check requires; and whether each sample of the spec is, in at
/// least one dtype.
pub fn runs(op: &'static OpDef) -> Vec<String> {
    let found = unaccepted(op);
    if results::wanted() {
        results::record(op, None, "samples", &CheckOutcome::from(&Report::from(found.clone())));
        for (dtype, outcome) in forward(op) {
            results::record(op, Some(dtype), "forward", &outcome);
        }
    }
    found
}

fn unaccepted(op: &'static OpDef) -> Vec<String> {
    let dtypes = [DType::F64, DType::C128, DType::F32, DType::I64, DType::Bool];
    let run = |args: Vec<Value>| {
        let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
        repeatable(op, || boxed::functional(op, &args))
    };
    for (number, sample) in op.samples.iter().enumerate() {
        let result = |dtype| sample.values(op, dtype).and_then(run);
        if dtypes.into_iter().all(|dtype| result(dtype).is_err())
            && let Err(error) = result(dtypes[0])
        {
            return vec![format!("{} ({}): sample {number} fails: {error}", op.name, op.location)];
        }
    }
    match exact_dtype(op) {
        Some(_) => Vec::new(),
        None => vec![format!(
            "{} ({}): nothing that was tried is accepted by it; give the entry `samples`",
            op.name, op.location
        )],
    }
}

/// The arguments with a derivative that no sample covers.
pub fn unreached(op: &'static OpDef) -> Vec<String> {
    let calls = [exact_calls(op), calls(op, DType::C128)];
    let reached = |argument: usize| {
        calls.iter().flatten().any(|call| {
            let mut there = false;
            call.args[argument].as_arg().for_each_tensor(|t| there |= t.dtype().is_differentiable());
            there
        })
    };
    let arguments = op.grad.into_iter().flat_map(|grad| grad.formulas).flat_map(|formula| formula.arguments);
    let missing = arguments.filter(|argument| !reached(usize::from(**argument)));
    let name = |argument: &u8| op.schema.args[usize::from(*argument)].name;
    missing
        .map(|argument| format!("{} ({}): no sample gives `{}`", op.name, op.location, name(argument)))
        .collect()
}

/// Runs every check of derivatives at every sample; returns the failures.
pub fn failures(op: &'static OpDef) -> Vec<String> {
    let mut failures = Vec::new();
    let exact = exact_calls(op);
    let dtype = exact.first().and_then(|call| call.inputs().first().map(opsmith::Tensor::dtype));
    for (number, call) in exact.iter().enumerate() {
        for check in Check::ALL.into_iter().filter(|check| *check != Check::Complex) {
            if skipped(op, check) {
                record_skip(op, check);
                continue;
            }
            let result = caught(|| match check {
                Check::Complex => Ok(()),
                Check::Gradient => numeric::gradient(call),
                Check::SecondOrder => numeric::second_order(call),
                Check::ForwardMode => numeric::forward_mode(call),
                Check::Strided => forms::strided(call),
                Check::Empty => forms::empty(call),
                Check::Undefined => forms::undefined(call),
                Check::Inplace => forms::inplace(call),
                Check::Precision => precision::precision(call),
            });
            // Precision is that of narrower dtypes.
            let dtype = dtype.filter(|_| check != Check::Precision);
            failures.extend(judged(op, dtype, check, number, result));
        }
    }
    if skipped(op, Check::Complex) {
        record_skip(op, Check::Complex);
        return failures;
    }
    for (number, call) in calls(op, DType::C128).iter().enumerate() {
        // Support of complex numbers is optional.
        if call.run().is_err() || call.inputs().iter().all(|input| !input.dtype().is_complex()) {
            continue;
        }
        let result = caught(|| numeric::gradient(call))
            .and_then(|()| if skipped(op, Check::ForwardMode) { Ok(()) } else { numeric::forward_mode(call) })
            .and_then(
                |()| if skipped(op, Check::SecondOrder) { Ok(()) } else { numeric::second_order(call) },
            );
        failures.extend(judged(op, Some(DType::C128), Check::Complex, number, result));
    }
    failures
}

/// The failure of a check at a sample, if it failed. The outcome is recorded if the operator has gradients.
fn judged(
    op: &'static OpDef,
    dtype: Option<DType>,
    check: Check,
    sample: usize,
    result: std::result::Result<(), String>,
) -> Option<String> {
    let (failure, outcome) = match result {
        Ok(()) => (None, CheckOutcome::Passed(1)),
        Err(why) if is_refusal(&why) => (None, CheckOutcome::Skipped(why)),
        Err(why) => {
            let failure = describe(op, check, sample, &why);
            (Some(failure.clone()), CheckOutcome::Failed(vec![failure]))
        }
    };
    if results::wanted() && (failure.is_some() || is_differentiable(op)) {
        results::record(op, dtype, check.name(), &outcome);
    }
    failure
}

/// Records a check that the entry leaves out, with its reason.
fn record_skip(op: &OpDef, check: Check) {
    let reason = op.tolerances.iter().find(|tolerance| tolerance.of == ToleranceOf::Check(check));
    if let Some(tolerance) = reason.filter(|_| results::wanted()) {
        results::record(op, None, check.name(), &CheckOutcome::Skipped(tolerance.reason.to_string()));
    }
}

fn describe(op: &OpDef, check: Check, sample: usize, why: &str) -> String {
    format!("{} ({}), {} at sample {sample}: {why}", op.name, op.location, check.name())
}

fn skipped(op: &OpDef, check: Check) -> bool {
    op.tolerances
        .iter()
        .any(|tolerance| tolerance.of == ToleranceOf::Check(check) && tolerance.allow.is_none())
}

/// The relative error that a check allows an operator.
fn allowed(op: &OpDef, of: ToleranceOf, usual: f64) -> f64 {
    op.tolerances
        .iter()
        .find(|tolerance| tolerance.of == of)
        .and_then(|tolerance| tolerance.allow)
        .unwrap_or(usual)
}

/// Whether a formula returned an error with the spec's reason: `not_implemented("why")`.
fn is_refusal(why: &str) -> bool {
    why.contains("the derivative is not implemented: ")
}

/// Unimplemented derivatives of an operator's formulas, by check.
pub fn refusals(op: &'static OpDef) -> Vec<String> {
    let mut checks: Vec<&str> = Vec::new();
    for call in exact_calls(op) {
        for (check, result) in [
            (Check::Gradient, numeric::gradient(&call)),
            (Check::SecondOrder, numeric::second_order(&call)),
            (Check::ForwardMode, numeric::forward_mode(&call)),
        ] {
            if result.is_err_and(|why| is_refusal(&why)) && !checks.contains(&check.name()) {
                checks.push(check.name());
            }
        }
    }
    if checks.is_empty() { Vec::new() } else { vec![format!("{}: {}", op.name, checks.join(", "))] }
}

/// The text of an error, for failures.
fn text<T>(result: Result<T>) -> std::result::Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Whether an operator does not support its arguments.
fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotImplemented | ErrorKind::DType)
}
