//! The recorded calls in `data/parity`, values and gradients. The program `parity` runs any folder of them.

use std::path::Path;

use opsmith_tests::parity::{Report, Selection, overloads, run_overload};

#[test]
fn recorded_calls_give_the_recorded_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/parity");
    let (names, _) = overloads(&folder, &Selection::default()).unwrap();
    assert!(names.len() >= 20, "only {names:?} were found");
    let reports: Vec<Report> = names.iter().map(|name| run_overload(&folder, name).unwrap()).collect();
    let failed: Vec<String> =
        reports.iter().filter(|report| !report.failures.is_empty()).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
