//! Facts of a spec's operators beyond their computation, as users and tools of a library see them.

use opsmith_golden as golden;
use opsmith_runtime::facts::{Deprecated, Facts, ValueUse};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Result, Tensor};

fn op(name: &str) -> &'static OpDef {
    golden::LIBRARY.find(name).unwrap_or_else(|| panic!("{name}")).0
}

/// The `expect` attributes are the test: without the warnings, the build would complain.
#[test]
fn users_of_what_is_deprecated_are_warned() -> Result<()> {
    use golden::GoldenExt;
    let x = Tensor::of(&[1.0f32]);
    #[expect(deprecated, reason = "the test asks for the warning")]
    let function = golden::old_plus(&x, &x)?;
    #[expect(deprecated, reason = "the test asks for the warning")]
    let method = x.old_plus(&x)?;
    #[expect(deprecated, reason = "the test asks for the warning")]
    let other_name = golden::multiplied_once(&x, &x)?;
    #[expect(deprecated, reason = "the test asks for the warning")]
    golden::older_plus(&x, &x)?;
    assert_eq!(function.to_vec::<f32>()?, method.to_vec::<f32>()?);
    assert_eq!(other_name.to_vec::<f32>()?, [1.0]);
    Ok(())
}

#[test]
fn definitions_hold_the_facts() {
    let facts = Facts {
        since: Some("0.1"),
        deprecated: Some(Deprecated { since: Some("0.2"), instead: Some("plus.Tensor") }),
        tags: &["arithmetic", "old"],
        ..Facts::NONE
    };
    assert_eq!(op("old_plus").facts, facts);
    assert_eq!(op("noisy").facts, Facts { deterministic: false, ..Facts::NONE });
    assert_eq!(op("many_defaults_backward").facts, Facts { backward_only: true, ..Facts::NONE });
    assert_eq!(op("limited").facts, Facts::NONE);
    let mask = &op("chosen_by").schema.args[1];
    assert_eq!((mask.name, mask.value), ("mask", ValueUse::Required));
}

#[test]
fn other_names_of_arguments_give_way_to_arguments() {
    let names = |name: &str| -> Vec<&[&str]> { op(name).schema.args.iter().map(|arg| arg.aliases).collect() };
    assert_eq!(
        names("limited")[..4],
        [&["input", "x"][..], &["probability"], &[], &["kernel_size", "window"]]
    );
    // `x` is an argument of its own there.
    assert_eq!(op("many").schema.args[0].aliases, ["input"]);
    // The alias of the argument in the other entry.
    assert_eq!(op("times.Tensor").schema.args[1].aliases, ["y", "second"]);
}
