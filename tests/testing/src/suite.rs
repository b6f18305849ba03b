//! The tests that [`check_operators`](crate::check_operators) generates, one function each.
//!
//! In: a library. Each panics, as tests do, with all failures.

use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;

use crate::fuzz::Plan;
use crate::report::{Report, report};
use crate::{checks, special};

/// Number of odd calls of every operator.
const ODD_CALLS: u64 = 100;

/// Every sample of the spec is accepted, and some arguments of every operator.
#[track_caller]
pub fn samples_run(library: &'static Library) {
    report(library, checks::runs).assert_right();
}

/// Every check of derivatives, at every sample.
#[track_caller]
pub fn gradients(library: &'static Library) {
    report(library, checks::failures).assert_right();
}

/// Samples cover every argument with a derivative, and a wrong formula fails with them.
#[track_caller]
pub fn wrong_gradients(library: &'static Library) {
    let survivors = |op: &'static OpDef| -> Vec<String> {
        let unnoticed = checks::survivors(op).into_iter().chain(checks::complex_survivors(op));
        let unnoticed = unnoticed.chain(checks::read_results(op).survivors);
        let text = |mutation| format!("{mutation} goes unnoticed; give the entry a sample that shows it");
        checks::unreached(op).into_iter().chain(unnoticed.map(text)).collect()
    };
    report(library, survivors).assert_right();
}

/// Kernels write every element of their results, and read none before.
#[track_caller]
pub fn written(library: &'static Library) {
    report(library, checks::written).assert_right();
}

/// Violations of a constraint are rejected.
#[track_caller]
pub fn constraints(library: &'static Library) {
    report(library, checks::constraints).assert_right();
}

/// Out forms with empty tensors give the results of functional forms.
#[track_caller]
pub fn out_forms(library: &'static Library) {
    report(library, checks::out_form).assert_right();
}

/// Backward frees the saved tensors.
#[track_caller]
pub fn saved_memory(library: &'static Library) {
    report(library, checks::saved_memory).assert_right();
}

/// Results and gradients do not depend on memory layouts.
#[track_caller]
pub fn layouts(library: &'static Library) {
    report(library, special::layouts).assert_right();
}

/// Graphs give the results of calls.
#[track_caller]
pub fn graphs(library: &'static Library) {
    report(library, checks::graphs).assert_right();
}

/// Graphs of gradients give the results of backward.
#[track_caller]
pub fn graph_gradients(library: &'static Library) {
    report(library, checks::graph_gradients).assert_right();
}

/// Graphs with symbolic sizes give the results of calls at each size.
#[track_caller]
pub fn symbolic_graphs(library: &'static Library) {
    report(library, checks::symbolic_graphs).assert_right();
}

/// Graphs loaded from a file give the same results.
#[track_caller]
pub fn saved_graphs(library: &'static Library) {
    /// A folder that is removed at the end.
    struct Folder(PathBuf);
    impl Drop for Folder {
        fn drop(&mut self) {
            // A folder that cannot be removed stays among the temporary files.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
    let name = format!("opsmith-saved-graphs-{}-{}", library.name, std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let mut all = Report::default();
    library.ops.iter().for_each(|op| all.add(checks::saved_graphs(op, &folder.0)));
    all.assert_right();
}

/// Inference agrees with calls: for sizes, for symbols, and for inputs of unknown rank.
#[track_caller]
pub fn inference(library: &'static Library) {
    report(library, checks::inference).assert_right();
    report(library, checks::symbolic_inference).assert_right();
    report(library, checks::open_inference).assert_right();
}

/// Calls with odd arguments, in a separate process: this program again, running only the test of the given name.
///
/// # Panics
/// If a call ends with neither a result nor an error, or the process cannot be started.
pub fn odd_calls(library: &'static Library, test: &str) {
    const FIRST: &str = "OPSMITH_ODD_CALLS_FIRST";
    const FOLDER: &str = "OPSMITH_ODD_CALLS_FOLDER";
    const CASE: &str = "OPSMITH_ODD_CALL";
    let plan = Plan { library, seed: 1, each: Some(ODD_CALLS), seconds: 0, only: None };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(index) = number(CASE) {
        let case = plan.case(index);
        println!("{}", case.describe());
        println!("{:?}", case.run());
        return;
    }
    if let (Some(first), Ok(folder)) = (number(FIRST), std::env::var(FOLDER)) {
        plan.run(first, Path::new(&folder), |case| case.run());
        return;
    }
    // The name of a test has no crate as a prefix.
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    let findings = plan.supervise(&mut |first, _, folder| {
        let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
        command.args(["--exact", test, "--nocapture"]);
        command.env(FIRST, first.to_string()).env(FOLDER, folder);
        command
    });
    let findings = findings.expect("the tests can be started again, and files written");
    let again = |index: u64| format!("{CASE}={index} cargo test {test} -- --exact --nocapture");
    let made = findings.succeeded + findings.refused;
    assert!(findings.found.is_empty(), "{}", findings.describe(&plan, &again));
    assert_eq!(made, plan.each.unwrap_or(0) * library.ops.len() as u64, "every call is made");
}
