//! Recorded results of the stock library: a run writes them, the documents' reader finds every operator in them, and they
//! are what the checks found.

use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith::{DType, LIBRARY, Tensor, TensorOps, Value};
use opsmith_codegen::emit::{WorkedExample, WorkedTensor, worked};
use opsmith_codegen::model::Model;
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Complex64, boxed, random};
use opsmith_testing::calls::{tensors, with_tensors};
use opsmith_testing::results::{self, CheckOutcome, VARIABLE};
use opsmith_testing::{checks, of_each, report, runs_on_host};
use opsmith_tools::results::{Outcome, Results};

fn stock() -> Model {
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../ops.yaml");
    pipeline::check(&Config::stock(spec)).unwrap().model
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays among the temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tensor(made: &WorkedTensor) -> opsmith::Result<Tensor> {
    if made.dtype.is_complex() {
        let numbers: Vec<Complex64> = made.numbers.iter().map(|x| Complex64::new(*x, x / 2.0)).collect();
        return Tensor::from_slice(&numbers, &made.shape)?.to_dtype(made.dtype);
    }
    Tensor::from_slice(&made.numbers, &made.shape)?.to_dtype(made.dtype)
}

/// The printed results of the program in an operator's documentation.
fn output(op: &'static OpDef, example: &WorkedExample) -> opsmith::Result<String> {
    let sample = &op.samples[example.sample];
    let values = DType::ALL.into_iter().find_map(|dtype| sample.values(op, dtype).ok());
    let values = values.expect("the values of a sample can be made");
    let made = example.tensors.iter().map(tensor).collect::<opsmith::Result<Vec<_>>>()?;
    assert_eq!(tensors(&values).len(), made.len(), "{}", op.name);
    let values = with_tensors(&values, &made);
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    random::manual_seed(1);
    let found = boxed::functional(op, &args)?;
    let shown: Vec<String> = found.iter().map(printed).collect();
    Ok(shown.join("\n"))
}

fn printed(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => tensor.to_string(),
        Value::Tensors(list) => list.iter().map(Tensor::to_string).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}

/// Records the example of each operator that has one; returns the names of those whose call fails.
fn record_examples(model: &Model) -> Vec<String> {
    let mut failed = Vec::new();
    for op in LIBRARY.ops {
        let entry = model.ops.iter().find(|entry| entry.name == op.name);
        let Some(example) = entry.and_then(|entry| worked(entry, entry)) else { continue };
        match output(op, &example) {
            Ok(output) => results::record_example(op, &example.code, &output),
            Err(error) => failed.push(format!("{} ({}): {}\n{error}", op.name, op.location, example.code)),
        }
    }
    failed
}

/// The run that the test below starts; with `OPSMITH_RESULTS` set, it records the stock library for documents.
#[test]
#[ignore = "records results; the test below runs it"]
fn a_recorded_run() {
    report(&LIBRARY, checks::runs).assert_right();
    let failed = record_examples(&stock());
    assert!(failed.is_empty(), "{} examples:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn recorded_results_cover_every_operator_and_are_the_findings() {
    let folder = std::env::temp_dir().join(format!("opsmith-recorded-{}", std::process::id()));
    let folder = Folder(folder);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_recorded_run", "--ignored"])
        .env(VARIABLE, &folder.0)
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
    let model = stock();
    let recorded = Results::read(&folder.0).unwrap();
    assert!(recorded.is_of(&model), "the library has another fingerprint than its spec");
    let recorded = recorded.of(&model);
    let wrong = of_each(LIBRARY.ops, |op| differing(op, &recorded));
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} operators:\n{}", wrong.len(), wrong.join("\n"));
    let examples = recorded.operators().filter(|name| !recorded.operator(name).unwrap().examples.is_empty());
    assert!(examples.count() > 500, "hardly any operator has an example");
    assert_a_known_example(&recorded);
}

/// How the recorded cells of an operator differ from what its checks find here.
fn differing(op: &'static OpDef, recorded: &Results) -> Option<String> {
    if !runs_on_host(op) {
        return None;
    }
    let Some(found) = recorded.operator(op.name) else { return Some(format!("{} has no results", op.name)) };
    for (dtype, outcome) in checks::forward(op) {
        let cell = found.cells.iter().find(|cell| cell.dtype == dtype.name() && cell.check == "forward");
        let is_equal = match (&outcome, cell.map(|cell| &cell.outcome)) {
            (CheckOutcome::Passed(count), Some(Outcome::Passed(recorded))) => *count as u64 == *recorded,
            (CheckOutcome::Failed(findings), Some(Outcome::Failed(recorded))) => findings == recorded,
            (CheckOutcome::Skipped(_), Some(Outcome::Skipped(_))) => true,
            _ => false,
        };
        if !is_equal {
            return Some(format!("{} in {dtype}: {outcome:?}, but {cell:?}", op.name));
        }
    }
    let passed =
        found.cells.iter().any(|cell| matches!(cell.outcome, Outcome::Passed(_)) && cell.check == "forward");
    (!passed).then(|| format!("{} passes in no dtype", op.name))
}

fn assert_a_known_example(recorded: &Results) {
    let found = &recorded.operator("mm").unwrap().examples[0];
    assert!(found.code.contains("let result = mm(&x, &mat2)?;"), "{}", found.code);
    assert!(found.output.contains("float32") || found.output.contains('['), "{}", found.output);
}

#[test]
fn a_run_without_the_variable_records_nothing() {
    assert_eq!(std::env::var_os(VARIABLE).is_some(), results::wanted());
    assert!(!Path::new("results").join("recorded").exists());
}
