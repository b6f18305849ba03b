//! `opsmith check` from the outside: formats, exit status, and which operators a formula may call.

mod support;

use std::path::Path;

use support::opsmith;

const MISTAKES: &str = "cli/tests/data/mistakes.yaml";

#[test]
fn specs_without_mistakes() {
    let run = opsmith(&["check", "ops.yaml", "examples/custom_op/ops.yaml"]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let lines: Vec<&str> = run.stdout.lines().collect();
    let [stock, custom] = lines[..] else { panic!("{}", run.stdout) };
    assert!(stock.starts_with("ops.yaml: ") && stock.ends_with(" operators, no mistakes"), "{stock}");
    assert_eq!(custom, "examples/custom_op/ops.yaml: 7 operators, no mistakes");
}

#[test]
fn every_mistake_with_its_source() {
    opsmith(&["check", MISTAKES]).assert(
        1,
        "\
error[E0305]: nothing is called `sefl` here
  --> cli/tests/data/mistakes.yaml:10:21
   |
10 |   pointwise: self + sefl
   |                     ^^^^ unknown name
   |
   = help: did you mean `self`?

error[E0110]: unknown type `Tensr`
  --> cli/tests/data/mistakes.yaml:12:30
   |
12 | - func: half(Tensor self) -> Tensr
   |                              ^^^^^ no such type
   |
   = help: did you mean `Tensor`?

cli/tests/data/mistakes.yaml: 2 errors
",
        "",
    );
}

#[test]
fn one_line_a_mistake() {
    opsmith(&["check", "--format", "short", MISTAKES]).assert(
        1,
        "\
cli/tests/data/mistakes.yaml:10:21: error[E0305]: nothing is called `sefl` here
cli/tests/data/mistakes.yaml:12:30: error[E0110]: unknown type `Tensr`
cli/tests/data/mistakes.yaml: 2 errors
",
        "",
    );
}

#[test]
fn one_object_a_mistake() {
    let run = opsmith(&["check", "--format", "json", MISTAKES]);
    let objects: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(MISTAKES)).unwrap();
    let byte = text.find("sefl").unwrap();
    assert_eq!(
        objects[0],
        serde_json::json!({
            "file": MISTAKES, "line": 10, "column": 21, "end_line": 10, "end_column": 25,
            "utf16_column": 21, "utf16_end_column": 25, "byte_start": byte, "byte_end": byte + 4,
            "severity": "error", "code": "E0305", "message": "nothing is called `sefl` here",
            "label": "unknown name", "help": "did you mean `self`?", "notes": [], "related": [],
        })
    );
    assert_eq!((run.status, &*run.stderr), (Some(1), ""));
}

#[test]
fn commands_for_github() {
    opsmith(&["check", "--format", "github", MISTAKES]).assert(
        1,
        "\
::error file=cli/tests/data/mistakes.yaml,line=10,col=21,endLine=10,endColumn=25,title=E0305::nothing is called `sefl` here%0Aunknown name%0Ahelp: did you mean `self`?
::error file=cli/tests/data/mistakes.yaml,line=12,col=30,endLine=12,endColumn=35,title=E0110::unknown type `Tensr`%0Ano such type%0Ahelp: did you mean `Tensor`?
",
        "",
    );
}

#[test]
fn colours_only_if_asked_for() {
    let plain = opsmith(&["check", MISTAKES]).stdout;
    let colored = opsmith(&["check", "--color", "always", MISTAKES]).stdout;
    assert!(!plain.contains('\u{1b}'));
    assert!(colored.contains("\u{1b}[1m\u{1b}[91merror[E0305]"), "{colored:?}");
}

#[test]
fn formulas_call_the_operators_of_libraries_the_crate_depends_on() {
    let custom = "examples/custom_op/ops.yaml";
    let alone = opsmith(&["check", "--format", "short", "--stand-alone", custom]);
    alone.assert_parts(&[": error[E", "there is no scalar function `exp`", "errors\n"]);
    assert_eq!(alone.status, Some(1));
    let explicit = opsmith(&["check", "--builds-on", "ops.yaml", custom]);
    explicit.assert(0, "examples/custom_op/ops.yaml: 7 operators, no mistakes\n", "");
}

/// A definition of another library takes no further names, so an alias should have its names.
#[test]
fn arguments_of_another_name_of_a_stock_operator() {
    let spec = "cli/tests/data/renamed.yaml";
    opsmith(&["check", "--builds-on", "ops.yaml", "--format", "short", spec]).assert(
        0,
        "cli/tests/data/renamed.yaml:3:35: warning[W0510]: calls by name know `added` as `other` only\n\
         cli/tests/data/renamed.yaml: 1 warning\n",
        "",
    );
}

/// What a build would say, with the place in the spec.
#[test]
fn files_of_kernels_that_are_not_there() {
    let spec = "codegen/tests/bad/kernel-file-missing/spec.yaml";
    let run = opsmith(&["check", "--format", "short", "--stand-alone", spec]);
    run.assert_parts(&[
        ":7:19: error[E0472]: there is no file `kernels/none.cc`\n",
        ":13:20: error[E0472]: there is no file `kernels/none.cu`\n",
    ]);
    assert_eq!(run.status, Some(1));
}

#[test]
fn a_file_that_is_not_there() {
    opsmith(&["check", "nowhere.yaml"]).assert(
        2,
        "",
        "error: nowhere.yaml: No such file or directory (os error 2)\n",
    );
}

#[test]
fn help_has_examples() {
    let run = opsmith(&["check", "--help"]);
    run.assert_parts(&[
        "Checks specs and shows every mistake\n",
        "Usage: opsmith check",
        "Examples:\n  opsmith check ops.yaml\n",
    ]);
    assert_eq!(run.status, Some(0));
}

#[test]
fn warnings_are_mistakes_if_asked_for() {
    let warned = "cli/tests/data/warned.yaml";
    let line = "cli/tests/data/warned.yaml:3:31: warning[W0501]: nothing uses the argument `n`\n\
                cli/tests/data/warned.yaml: 1 warning\n";
    opsmith(&["check", "--format", "short", "--stand-alone", warned]).assert(0, line, "");
    opsmith(&["check", "--deny-warnings", "--format", "short", "--stand-alone", warned]).assert(1, line, "");
}

/// The stock spec, and those that teach, are what users copy from.
#[test]
fn our_own_specs_have_no_warnings() {
    let own = ["ops.yaml", "examples/custom_op/ops.yaml", "codegen/golden/spec.yaml"];
    let run = opsmith(&[&["check", "--deny-warnings"], &own[..]].concat());
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{}", run.stdout);
}
