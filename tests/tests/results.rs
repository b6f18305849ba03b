//! Recorded results of the stock library: a run writes them, the documents' reader finds every operator in them, and they
//! equal the findings of the checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith::{DOCUMENTATION, LIBRARY};
use opsmith_codegen::model::{Model, Op};
use opsmith_codegen::{Config, pipeline};
use opsmith_runtime::op::OpDef;
use opsmith_testing::results::{self, CheckOutcome, VARIABLE};
use opsmith_testing::{checks, examples, of_each, report, runs_on_host};
use opsmith_tools::results::{Cell, Outcome, Results};
use opsmith_tools::typeset;

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
    report(&LIBRARY, checks::symbolic_inference).assert_right();
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
    assert_examples_are_executed(&model, &recorded);
    assert_a_known_example(&recorded);
    assert_sizes_are_in_symbols(&model, &recorded);
}

/// The example on the page of every operator for users has an output; another name shows that of the operator that is meant.
fn assert_examples_are_executed(model: &Model, recorded: &Results) {
    let has_one = |op: &Op| recorded.operator(&op.name).is_some_and(|found| !found.examples.is_empty());
    let public = model.ops.iter().filter(|op| !op.facts.backward_only && !op.is_supplied());
    let silent: Vec<&str> = public
        .filter(|op| {
            let of_alias = op.alias_of.map(|meant| &model.ops[meant.0]);
            !has_one(op) && !of_alias.is_some_and(|meant| meant.facts.backward_only || has_one(meant))
        })
        .map(|op| op.name.as_str())
        .collect();
    assert!(silent.is_empty(), "{} operators have no executed example: {silent:?}", silent.len());
}

/// Every operator that returns tensors has a rule that is typeset with sizes, or formulas of its results' sizes at a sample; a size without one
/// is that of a run, or open, which a page says.
fn assert_sizes_are_in_symbols(model: &Model, recorded: &Results) {
    let is_typeset = |op: &Op| {
        typeset::shapes(model, op).iter().all(Option::is_some) && !typeset::shapes_name_rules(model, op)
    };
    let has_formulas = |op: &Op| recorded.operator(&op.name).is_some_and(|found| !found.sizes.is_empty());
    let returning = model.ops.iter().filter(|op| op.alias_of.is_none() && op.returns_tensors());
    let silent: Vec<&str> = returning
        .filter(|op| !op.visible().is_empty() && !is_typeset(op) && !has_formulas(op))
        .map(|op| op.name.as_str())
        .collect();
    assert_eq!(silent, [""; 0], "no sizes in symbols");
    let sizes = |name: &str| &recorded.operator(name).unwrap().sizes[0];
    assert_eq!(sizes("mm").results, [Some(vec![Some("s0".to_owned()), Some("s3".to_owned())])]);
    let chosen = sizes("masked_select");
    assert_eq!((chosen.run[0].size.as_str(), chosen.run[0].most.as_deref()), ("u4", Some("s0*s1")));
}

/// The difference between the recorded cells of an operator and the findings of its checks here.
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
