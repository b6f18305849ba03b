//! The parts of a definition that exclude each other: no operator of the library has two of them.

use opsmith::runtime::op::{OpDef, UniformCall};

use super::assert_none;

/// The rule that a definition breaks.
fn contradiction(op: &OpDef) -> Option<&'static str> {
    let (kernels, composite, view) = (op.kernels.is_some(), op.composite.is_some(), op.view.is_some());
    let skips_inference = op.uniform != UniformCall::No;
    let broken = [
        ("a view computes a layout alone", view && (kernels || composite || op.host.is_some())),
        ("a result that is no tensor has no kernel", op.host.is_some() && kernels),
        ("kernels need inference for their outputs", kernels && op.infer.is_none()),
        ("inference calls the hand-written function", op.infer_function.is_some() && op.infer.is_none()),
        ("only an inference that exists can be skipped", skips_inference && op.infer.is_none()),
        ("a compiled library declares nothing at run time", op.custom.is_some()),
    ];
    broken.into_iter().find(|(_, broken)| *broken).map(|(rule, _)| rule)
}

#[test]
fn parts_of_a_definition_that_exclude_each_other_are_not_both_there() {
    let offenders = opsmith::LIBRARY.ops.iter().filter_map(|op| Some((op, contradiction(op)?)));
    let named = offenders.map(|(op, rule)| format!("{} ({}): {rule}", op.name, op.location));
    assert_none(named.collect(), "docs/design/dispatch.md#definitions lists the parts that combine");
}
