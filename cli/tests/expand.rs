//! `opsmith expand`, run as a process: the parts, their emitters, and unknown operators.

mod support;

use std::path::Path;

use support::opsmith;

const CUSTOM: &str = "examples/custom_op/ops.yaml";
const MISTAKES: &str = "cli/tests/data/mistakes.yaml";

/// The whole text of one operator is recorded, so that a change of the generated code shows in review.
#[test]
fn everything_generated_from_one_entry() {
    let run = opsmith(&["expand", "shift", "--spec", MISTAKES]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert_eq!(
        run.stderr,
        "note: other entries have mistakes; `opsmith check cli/tests/data/mistakes.yaml` shows them\n"
    );
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shift.rs.txt");
    if std::env::var_os("OPSMITH_BLESS").is_some() {
        std::fs::write(&recorded, &run.stdout).unwrap();
    }
    assert!(
        std::fs::read_to_string(&recorded).unwrap_or_default() == run.stdout,
        "the text differs from cli/tests/data/shift.rs.txt; if it is right, run\n    \
         OPSMITH_BLESS=1 cargo test -p opsmith-cli --test expand\n\n{}",
        run.stdout
    );
}

#[test]
fn parts_say_which_emitter_wrote_them() {
    opsmith(&["expand", "transpose_copy", "--spec", CUSTOM]).assert_parts(&[
        "// transpose_copy(Tensor x, int[] perm) -> Tensor\n// declared at examples/custom_op/ops.yaml:8\n",
        "// ---- defs ---- written by codegen/src/emit/defs.rs\n",
        "// ---- functions ---- written by codegen/src/emit/api.rs\n",
        "pub fn transpose_copy(",
        "// ---- inference ---- written by codegen/src/emit/infer.rs\n",
        "// ---- kernel_tables ---- written by codegen/src/emit/kernels.rs\n",
        "// SAFETY: the generated header declares the function",
        "// ---- gradients ---- written by codegen/src/emit/gradients.rs\n",
        "// ---- opsmith_kernels ---- written by codegen/src/emit/header.rs\n",
        "int custom_transpose_copy(OpsmithContext* context,",
    ]);
}

#[test]
fn only_one_emitter() {
    let run = opsmith(&["expand", "gaussian", "--spec", CUSTOM, "--emitter", "kernel_tables"]);
    run.assert_parts(&["// ---- kernel_tables ----", "rt::pointwise_kernels! {\n"]);
    assert_eq!(run.stdout.matches("// ----").count(), 1);

    let unknown = opsmith(&["expand", "gaussian", "--spec", CUSTOM, "--emitter", "kernels"]);
    assert_eq!(unknown.status, Some(2));
    assert!(unknown.stderr.contains("[possible values: defs, raw, functions,"), "{}", unknown.stderr);
}

#[test]
fn every_stock_operator_can_be_shown() {
    let names = opsmith_codegen::pipeline::check(&opsmith_codegen::Config::stock(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops.yaml"),
    ))
    .unwrap();
    // A run of the command for each operator would take too long; every tenth is enough.
    for op in names.model.ops.iter().step_by(10) {
        let run = opsmith(&["expand", &op.name]);
        assert_eq!(run.status, Some(0), "{}: {}", op.name, run.stderr);
        // An alias has no definition of its own.
        let first = if op.alias_of.is_some() { "// ---- raw ----" } else { "// ---- defs ----" };
        run.assert_parts(&[&op.signature, first, "// ---- functions ----"]);
    }
}

#[test]
fn an_operator_with_mistakes_shows_them() {
    let run = opsmith(&["expand", "twice", "--spec", MISTAKES]);
    run.assert_parts(&["error[E0305]: nothing is called `sefl` here\n", "did you mean `self`?"]);
    assert!(!run.stdout.contains("Tensr"), "{}", run.stdout);
    assert_eq!(run.status, Some(1));
}

#[test]
fn names_that_mean_nothing_or_several_operators() {
    opsmith(&["expand", "laplacean", "--spec", CUSTOM]).assert(
        2,
        "",
        "error: there is no operator `laplacean`; did you mean `laplacian`?\n",
    );
    let run = opsmith(&["expand", "add"]);
    assert!(run.stderr.starts_with("error: `add` has "), "{}", run.stderr);
    assert!(run.stderr.contains("`add.Tensor`"), "{}", run.stderr);
    let run = opsmith(&["expand", "add.Tensor", "--spec", CUSTOM]);
    assert!(run.stderr.starts_with("error: `add.Tensor` is declared in "), "{}", run.stderr);
    assert!(run.stderr.ends_with("ops.yaml\n"), "{}", run.stderr);
}
