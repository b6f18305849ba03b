//! The operators that frameworks cannot have: a spec and the library that is built from it give the same reasons.

use std::collections::BTreeMap;
use std::path::Path;

use opsmith_codegen::{Config, pipeline};
use opsmith_example_abi as _;
use opsmith_tools::bridge;

#[test]
fn an_entry_and_its_definition_are_refused_for_the_same_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checked = pipeline::check(&Config::stock(root.join("ops.yaml"))).unwrap();
    let library = opsmith_runtime::library::linked().find(|library| library.name == "opsmith").unwrap();
    let definitions: BTreeMap<&str, _> = library.ops.iter().map(|op| (op.name, *op)).collect();
    let (mut compared, mut differences) = (0, Vec::new());
    for op in checked.model.ops.iter().filter(|op| op.alias_of.is_none() && op.supplied.is_none()) {
        let Some(definition) = definitions.get(op.name.as_str()) else { continue };
        compared += 1;
        let (entry, built) = (bridge::refusal(op), opsmith_abi::refusal(definition));
        if entry != built {
            differences.push(format!("{}: {entry:?} by its entry, {built:?} by its definition", op.name));
        }
    }
    assert!(compared > 800, "{compared} operators were compared");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
