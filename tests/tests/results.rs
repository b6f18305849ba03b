//! Recorded results of the stock library: a run writes them, the documents' reader finds every operator in them, and they
//! are what the checks found.

use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith::{DOCUMENTATION, LIBRARY};
use opsmith_codegen::model::Model;
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::OpDef;
use opsmith_testing::results::{self, CheckOutcome, VARIABLE};
use opsmith_testing::{checks, examples, of_each, report, runs_on_host};
use opsmith_tools::results::{Cell, Outcome, Results};

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

/// The programs of the documentation; a run with `OPSMITH_RESULTS` records their output for the site.
#[test]
fn every_example_of_the_documentation_runs() {
    examples::assert_run(&DOCUMENTATION);
}

/// The run that the test below starts.
#[test]
#[ignore = "records results; the test below runs it"]
fn a_recorded_run() {
    report(&LIBRARY, checks::runs).assert_right();
    every_example_of_the_documentation_runs();
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
        let is_wanted =
            |cell: &&Cell| (&*cell.backend, &*cell.dtype, &*cell.check) == ("CPU", dtype.name(), "forward");
        let cell = found.cells.iter().find(is_wanted);
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
