//! Graph mode against eager mode: for every operator and every sample.

use opsmith::LIBRARY;
use opsmith_testing::{checks, report};

#[test]
fn every_sample_gives_the_same_bits() {
    let report = report(&LIBRARY, checks::graphs);
    println!("{} graphs", report.compared);
    report.assert_right();
    assert!(report.compared > 5000, "{} graphs were compared", report.compared);
}

#[test]
fn every_gradient_has_the_same_bits() {
    let report = report(&LIBRARY, checks::graph_gradients);
    println!("{} graphs of gradients", report.compared);
    report.assert_right();
    assert!(report.compared > 2000, "{} graphs were compared", report.compared);
}

/// One graph for all sizes: its results at five of them are those of eager mode.
#[test]
fn symbolic_sizes_give_the_same_bits() {
    let report = report(&LIBRARY, checks::symbolic_graphs);
    println!("{} runs, {} of them refused by a guard", report.compared, report.left_out);
    report.assert_right();
    assert!(report.compared > 2000, "{} runs", report.compared);
    assert!(report.left_out * 10 < report.compared, "{} of {} guarded", report.left_out, report.compared);
}
