//! Every operator of the spec, its arguments and its results have a meaning in words.

use opsmith_codegen::model::Model;

use super::{assert_none, stock};

#[test]
fn every_operator_is_documented() {
    let offenders = opsmith::LIBRARY.ops.iter().filter(|op| {
        let first = op.doc.lines().next().unwrap_or_default();
        op.doc.trim() != op.doc || first.is_empty() || !op.doc.trim_end().ends_with(['.', '`', ')', '|'])
    });
    let named = offenders.map(|op| format!("{} ({}): {:?}", op.name, op.location, op.doc));
    assert_none(named.collect(), "`doc` says what the operator computes, in sentences");
}

#[test]
fn every_argument_and_named_result_is_described() {
    let model: Model = stock().model;
    // Another name has a page of its own, and perhaps other names of arguments.
    let public = model.ops.iter().filter(|op| !op.facts.backward_only);
    let mut offenders = Vec::new();
    for op in public {
        let arguments = op.args.iter().map(|arg| (&arg.name, &arg.doc));
        let results = op.outputs.iter().filter(|output| !output.hidden && !op.name.starts_with('_'));
        let results = results.filter_map(|output| Some((output.name.as_ref()?, &output.doc)));
        for (name, doc) in arguments.chain(results) {
            // A part of a line of a list: neither a sentence nor empty.
            let sound = !doc.is_empty() && doc.trim() == doc && !doc.ends_with('.');
            if !sound {
                offenders.push(format!("{} ({}): `{name}`: {doc:?}", op.name, op.location));
            }
        }
    }
    assert_none(offenders, "`descriptions`, of the entry or at the head of ops.yaml, say what it is");
}

#[test]
fn documents_have_the_numbers_of_operators() {
    let root = super::root();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let spec = read("ops.yaml");
    let features = spec.split_once("\nfeatures:\n").expect("families").1.split("\n\n").next().unwrap();
    let is_always_there = |file: &str| !features.contains(file);
    let all = opsmith::LIBRARY.ops;
    let always = all.iter().filter(|op| is_always_there(op.location.split(':').next().unwrap())).count();
    let texts = [
        ("README.md", format!("{always} operators of {}", all.len())),
        ("docs/design/generator.md", format!("Of the {} operators {always} belong to none", all.len())),
    ];
    let missing = texts.into_iter().filter(|(name, text)| !read(name).contains(text));
    assert_none(missing.map(|(name, text)| format!("{name}: {text}")).collect(), "as many are in ops.yaml");
}
