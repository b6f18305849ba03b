//! Every operator on a device whose memory the host cannot read, against the host.

use opsmith::LIBRARY;
use opsmith_protected::{device, install};
use opsmith_runtime::library::Library;
use opsmith_testing::checks::Agreement;
use opsmith_testing::{Report, checks, report};

/// The stock operators with kernels of the device.
fn installed() -> &'static Library {
    install(LIBRARY.ops);
    &LIBRARY
}

#[test]
fn every_form_gives_the_same_bits() {
    let report = report(installed(), |op| checks::forms_on(op, device(0), Agreement::Bits));
    println!("{} calls", report.compared);
    report.assert_right();
    assert!(report.compared > 5000, "{} calls were compared", report.compared);
}

#[test]
fn every_gradient_has_the_same_bits() {
    let report = report(installed(), |op| checks::gradients_on(op, device(0), Agreement::Bits));
    println!("{} gradients", report.compared);
    report.assert_right();
    assert!(report.compared > 2000, "{} gradients were compared", report.compared);
}

#[test]
fn every_graph_gives_the_same_bits() {
    let report = report(installed(), |op| checks::graphs_on(op, device(0), Agreement::Bits));
    println!("{} graphs", report.compared);
    report.assert_right();
    assert!(report.compared > 2000, "{} graphs were compared", report.compared);
}

/// Those of the examples have kernels in Rust, in C++, and custom ones that are compiled while the program runs.
#[test]
fn operators_of_the_examples_give_the_same_bits() {
    installed();
    for library in [&opsmith_example_custom_op::LIBRARY, &opsmith_example_graph::LIBRARY] {
        install(library.ops);
        let report = report(library, |op| {
            let mut all = Report::default();
            [checks::forms_on, checks::gradients_on, checks::graphs_on]
                .into_iter()
                .for_each(|check| all.add(check(op, device(0), Agreement::Bits)));
            all
        });
        println!("{}: {} results", library.name, report.compared);
        report.assert_right();
        assert!(report.compared > 20, "{} results were compared", report.compared);
    }
}
