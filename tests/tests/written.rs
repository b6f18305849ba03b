//! Kernels write every element of their results: what was in the memory before never shows.

use opsmith_tests::checks::written;

#[test]
fn every_element_of_a_result_is_written() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for op in opsmith::LIBRARY.all_ops() {
        let (failures, calls) = written(op);
        wrong.extend(failures);
        count += calls;
    }
    println!("{count} calls");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 5000, "{count} calls were made");
}
