//! Every check of every derivative of the stock operators: no operator needs a test of its own, and none is skipped
//! without a reason in its entry.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::DType;
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_testing::checks;
use opsmith_tools::coverage::coverage;

/// The findings of a function for every operator, in the order of the spec.
fn of_each(check: impl Fn(&'static OpDef) -> Vec<String> + Sync) -> Vec<String> {
    opsmith_testing::of_each(opsmith::LIBRARY.ops, |op| check(op)).into_iter().flatten().collect()
}

#[track_caller]
fn assert_none(found: Vec<String>) {
    assert!(found.is_empty(), "{} failures:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_derivative_passes_every_check() {
    assert_none(of_each(checks::failures));
}

#[test]
fn every_operator_with_a_derivative_has_a_sample() {
    assert_none(of_each(checks::unreached));
}

#[test]
fn a_wrong_formula_never_passes() {
    assert_none(of_each(checks::survivors));
}

#[test]
fn a_missing_conjugate_never_passes() {
    assert_none(of_each(checks::complex_survivors));
}

/// Formulas read results such as means and deviations. Their derivatives are wrong if such a result is treated as a
/// constant; this tests that the checks detect it, for every operator whose formula reads a result.
#[test]
fn a_result_read_as_a_constant_never_passes() {
    let tried = AtomicUsize::new(0);
    assert_none(of_each(|op| {
        let found = checks::read_results(op);
        tried.fetch_add(found.tried, Ordering::Relaxed);
        found.survivors
    }));
    assert!(tried.into_inner() >= 30, "hardly any formula reads a result");
}

/// Unimplemented derivatives, with the reasons of the spec: a new one must be a decision. The table of `opsmith
/// coverage` agrees with the checks for every operator: gradients, second ones, tangents.
#[test]
fn refusals_are_known_and_in_the_coverage_table() {
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../ops.yaml");
    let checked = pipeline::check(&Config::stock(spec)).expect("the spec has no mistakes");
    let table = coverage(&checked.model, &|_| true);
    let row_of = |op: &OpDef| table.rows.iter().find(|row| row.op == op.name && row.backend == "CPU");
    let untrue = Mutex::new(Vec::new());
    let refusals = of_each(|op| {
        let refusals = checks::refusals(op);
        let refused = |check: &str| refusals.iter().any(|refusal| refusal.contains(check));
        let row = row_of(op).expect("every operator has a row");
        let runs = [DType::F64, DType::C128].map(|dtype| checks::calls(op, dtype));
        let tried = runs.iter().flatten().any(|call| call.run().is_ok());
        let flows = checks::is_differentiable(op);
        let found = [!row.backward.is_empty(), row.second_order, !row.forward_mode.is_empty()];
        let expected = ["gradient", "second_order", "forward_mode"].map(|check| flows && !refused(check));
        if tried && (flows || row.differentiable) && found != expected {
            untrue.lock().unwrap().push(format!("{}: the table says {found:?}, not {expected:?}", op.name));
        }
        refusals
    });
    assert_eq!(
        refusals,
        [
            "heaviside: gradient, second_order, forward_mode",
            "histc: gradient, second_order, forward_mode",
            "bincount: gradient, second_order, forward_mode",
            // Positive and negative parts are summed as logarithms.
            "logcumsumexp: second_order, forward_mode",
            "logcumsumexp_backward: gradient, second_order, forward_mode",
            "_unique2: gradient, second_order, forward_mode",
            // Steps of recurrent layers have gradients by a kernel, which has none.
            "lstm.input: second_order, forward_mode",
            "gru.input: second_order, forward_mode",
            "rnn_tanh.input: second_order, forward_mode",
            "rnn_relu.input: second_order, forward_mode",
            "_recurrent_sequence: second_order, forward_mode",
            "_recurrent_layers: second_order, forward_mode",
            "_recurrent_layer: second_order, forward_mode",
            "_recurrent_direction: second_order, forward_mode",
            "_recurrent_steps: second_order, forward_mode",
            "_recurrent_steps_backward: gradient, second_order, forward_mode",
            // Sums over paths have a gradient, and none of it.
            "ctc_loss.IntList: second_order, forward_mode",
            "_ctc_loss: second_order, forward_mode",
            "_ctc_loss_backward: gradient, second_order, forward_mode",
            // Floats of few bits are for inference.
            "_scaled_mm: gradient, second_order, forward_mode",
        ]
    );
    assert_none(untrue.into_inner().unwrap());
}

/// Compositions differentiate through their bodies; a sample that runs shows that they do.
#[test]
fn every_composition_has_a_sample_that_runs() {
    assert_none(of_each(|op| {
        let takes_tensors =
            op.schema.args.iter().any(|arg| {
                matches!(arg.ty.kind, ArgKind::Tensor | ArgKind::Tensors | ArgKind::OptionalTensors)
            });
        if op.composite.is_none() || !takes_tensors {
            return Vec::new();
        }
        let runs = [DType::F64, DType::C128].map(|dtype| checks::calls(op, dtype));
        match runs.iter().flatten().any(|call| call.run().is_ok()) {
            true => Vec::new(),
            false => vec![format!("{} ({})", op.name, op.location)],
        }
    }));
}
