//! The recorded calls in `data/parity` and `data/recorded`, values, gradients and refusals. The program `parity`
//! runs any folder of them.

use std::path::Path;

use opsmith::Device;
use opsmith_tests::parity::{Report, Selection, overloads, run_overload};

/// Runs every overload of a folder of `data`, which must have at least `least` of them.
fn check(folder: &str, least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(folder);
    let (names, _) = overloads(&folder, &Selection::default()).unwrap();
    assert!(names.len() >= least, "only {names:?} were found");
    let reports: Vec<Report> =
        names.iter().map(|name| run_overload(&folder, name, Device::CPU).unwrap()).collect();
    let failed: Vec<String> =
        reports.iter().filter(|report| !report.failures.is_empty()).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn recorded_calls_give_the_recorded_results() {
    check("parity", 30);
}

#[test]
fn calls_at_which_operators_are_easily_wrong_give_what_was_recorded() {
    check("recorded", 55);
}
