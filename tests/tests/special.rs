//! Every operator at special points and sizes: zeros of both signs, NaN, infinities, thresholds and their
//! neighbours, ties, complex attributes, sizes on both sides of every block of a kernel.
//!
//! `OPSMITH_DERIVE=FILE` writes the calls; `tests/data/special/record.py` adds PyTorch's results for them.
//! `OPSMITH_ONLY=sum,amax` derives or compares those of some operators.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};

use flate2::read::GzDecoder;
use opsmith::Tensor;
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::OpDef;
use opsmith_testing::checks;
use opsmith_testing::special::{Constants, Line, derive, read, scattered, sizes_around};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/special/record.jsonl.gz");

/// The record, or the lines of the operators that `OPSMITH_ONLY` names.
fn record() -> Vec<Line> {
    let packed = std::fs::File::open(RECORD).expect("the record is part of the repository");
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("the record is whole");
    let mut lines = read(&text).unwrap();
    if let Ok(only) = std::env::var("OPSMITH_ONLY") {
        lines.retain(|line| only.split(',').any(|name| name == line.op));
    }
    lines
}

/// The numbers that stand in the expressions of each operator.
fn constants() -> Constants {
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../ops.yaml");
    let checked = pipeline::check(&Config::stock(spec)).expect("the spec has no mistakes");
    let numbers = |expr: &Expr| {
        let mut found: Vec<f64> = Vec::new();
        expr.walk(&mut |part| match part.kind {
            ExprKind::Int(value) => found.push(value as f64),
            ExprKind::Float(value) => found.push(value),
            _ => {}
        });
        found
    };
    let of_op = |op: &opsmith_codegen::model::Op| {
        let bodies = op.body.pointwise.iter().chain(&op.body.composite);
        (op.name.clone(), bodies.flat_map(numbers).collect())
    };
    checked.model.ops.iter().map(of_op).collect()
}

/// The findings of a function for each item, in order.
fn of_each<T: Sync>(items: &[T], work: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    opsmith_testing::of_each(items, work).into_iter().flatten().collect()
}

#[test]
fn every_operator_has_a_sample_that_runs() {
    let missing = of_each(opsmith::LIBRARY.ops, |op: &&'static OpDef| match op.samples.is_empty() {
        true => vec![format!("{} ({}) has no samples", op.name, op.location)],
        false => checks::runs(op),
    });
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn derived_calls_are_written_where_they_are_asked_for() {
    let Ok(path) = std::env::var("OPSMITH_DERIVE") else { return };
    let (constants, sizes) = (constants(), sizes_around(&opsmith_kernels::cpu::blocks::sizes()));
    let only = std::env::var("OPSMITH_ONLY").ok();
    let mut ops = opsmith::LIBRARY.all_ops();
    ops.retain(|op| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == op.name)));
    let lines = of_each(&ops, |op: &&'static OpDef| {
        let constants = constants.get(op.name).map_or(&[][..], Vec::as_slice);
        derive(op, constants, &sizes).iter().map(|line| line.to_json().to_string()).collect()
    });
    let mut file = std::fs::File::create(path).unwrap();
    lines.iter().for_each(|line| writeln!(file, "{line}").unwrap());
}

fn differences(left_out: &[&str], change: impl Fn(&Tensor) -> Tensor + Sync) {
    let mut lines = record();
    lines.retain(|line| !left_out.contains(&line.op.as_str()));
    let ops: HashMap<&str, &'static OpDef> =
        opsmith::LIBRARY.all_ops().into_iter().map(|op| (op.name, op)).collect();
    let found = of_each(&lines, |line| match ops.get(line.op.as_str()) {
        Some(op) => line.differences(op, &mut |tensor| change(tensor)),
        None => vec![format!("there is no operator `{}`", line.op)],
    });
    let names: BTreeSet<&str> = found.iter().filter_map(|text| text.split(' ').next()).collect();
    assert!(found.is_empty(), "{} calls of {names:?} differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn results_and_gradients_are_the_recorded_ones() {
    differences(&[], Tensor::clone);
}

#[test]
fn results_and_gradients_do_not_depend_on_layouts() {
    // These depend on the memory layout by design: other layouts have other results, or none.
    differences(&["as_strided", "view", "view_as"], |tensor| scattered(tensor).unwrap());
}
