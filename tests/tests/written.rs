//! Kernels write every element of their results: former contents of memory never show.

use opsmith_testing::{checks, report};

#[test]
fn every_element_of_a_result_is_written() {
    let report = report(&opsmith::LIBRARY, checks::written);
    println!("{} calls", report.compared);
    report.assert_right();
    assert!(report.compared > 5000, "{} calls were made", report.compared);
}
