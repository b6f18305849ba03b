//! The options of printing. They are global to the process, so this file has only one test.

use opsmith_runtime::Tensor;
use opsmith_runtime::print::{PrintOptions, print_options, set_print_options};

#[test]
fn options_change_the_text() {
    let tensor = Tensor::of(&[0.123_456_78f64, 10.0, 2.0]);
    let check = |change: fn(&mut PrintOptions), expected: &str| {
        let mut options = PrintOptions::default();
        change(&mut options);
        let before = set_print_options(options);
        assert_eq!(tensor.to_string(), expected);
        set_print_options(before);
    };
    check(|_| (), "[ 0.1235, 10.0000,  2.0000]");
    check(|options| options.precision = 6, "[ 0.123457, 10.000000,  2.000000]");
    check(|options| options.sci_mode = Some(true), "[1.2346e-01, 1.0000e+01, 2.0000e+00]");
    check(|options| options.line_width = 16, "[ 0.1235,\n 10.0000,\n  2.0000]");
    check(
        |options| {
            options.threshold = 2;
            options.edge_items = 1;
        },
        "[0.1235, ..., 2.0000]",
    );
    assert_eq!(print_options(), PrintOptions::default());

    let small = Tensor::of(&[1e-9f64, 1.0]);
    assert_eq!(small.to_string(), "[1.e-09, 1.e+00]");
    let mut options = PrintOptions::default();
    options.sci_mode = Some(false);
    set_print_options(options);
    assert_eq!(small.to_string(), "[0., 1.]");
    set_print_options(PrintOptions::default());
    assert_eq!(format!("{tensor:.1}"), "[ 0.1, 10.0,  2.0]");
}
