//! `opsmith import-torch` and `opsmith generate`, run as processes, on the real files.

mod support;

use std::fs;
use std::path::PathBuf;

use support::opsmith;

const NATIVE: &str = "codegen/tests/data/pytorch/native_functions.yaml";
const DERIVATIVES: &str = "codegen/tests/data/pytorch/derivatives.yaml";

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn torch_becomes_a_spec_without_mistakes() {
    let spec = folder("import").join("torch.yaml");
    let spec = spec.to_str().unwrap();
    let run = opsmith(&["import-torch", NATIVE, DERIVATIVES, "--json", "-o", spec]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["natives"], 2590);
    let features = report["features"].as_array().unwrap();
    let backward = features.iter().find(|row| row["feature"] == "backward formulas").unwrap();
    assert_eq!(backward["count"], 785);
    let kept = backward["kept"].as_u64().unwrap();
    let listed = report["opaque"].as_array().unwrap().iter();
    let listed = listed.filter(|row| row["forward"] == false && row["formula"] != "non_differentiable");
    assert_eq!(listed.count() as u64, kept);
    let run = opsmith(&["check", "--stand-alone", "--deny-warnings", spec]);
    assert_eq!(run.status, Some(0), "{}", run.stdout);
}

#[test]
fn the_report_is_a_table() {
    let run = opsmith(&["import-torch", NATIVE, DERIVATIVES]);
    assert_eq!(run.status, Some(0));
    run.assert_parts(&[
        "\n  kernels of dispatch                 5630        5630       0\n",
        "--list shows them with the reasons",
    ]);
}

#[test]
fn files_that_are_not_there_or_not_torch_s() {
    let missing = "error: cannot read nothing.yaml: No such file or directory (os error 2)\n";
    opsmith(&["import-torch", "nothing.yaml", DERIVATIVES]).assert(2, "", missing);
    let run = opsmith(&["import-torch", DERIVATIVES, DERIVATIVES]);
    assert_eq!(run.status, Some(1));
    assert!(run.stdout.contains("derivatives.yaml:"), "{}", &run.stdout[..run.stdout.len().min(400)]);
}

#[test]
fn nothing_is_done_if_nothing_changed() {
    let out = folder("generate");
    let spec = folder("generate-spec").join("spec.yaml");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/golden/small/spec.yaml"), &spec).unwrap();
    let (spec_name, out_name) = (spec.to_str().unwrap(), out.to_str().unwrap());
    let generate = || {
        let run = opsmith(&["generate", "--stand-alone", spec_name, "-o", out_name]);
        assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{}", run.stdout);
        run.stdout.lines().last().unwrap_or_default().rsplit(": ").next().unwrap_or_default().to_owned()
    };
    let changed = |said: &str| said.rsplit(", ").next().unwrap_or_default().to_owned();
    assert!(generate().ends_with(" changed"));
    assert_eq!(generate(), "nothing changed");
    // An output that was edited or deleted is written again.
    let definitions = out.join("defs.rs");
    let text = fs::read_to_string(&definitions).unwrap();
    fs::write(&definitions, format!("{text}// edited\n")).unwrap();
    assert_eq!(changed(&generate()), "1 changed");
    assert_eq!(fs::read_to_string(&definitions).unwrap(), text);
    fs::remove_file(&definitions).unwrap();
    assert_eq!(changed(&generate()), "1 changed");
    assert_eq!(generate(), "nothing changed");
    // So is every output affected by an edit of the spec.
    let source = fs::read_to_string(&spec).unwrap();
    fs::write(&spec, source.replacen("doc: ", "doc: Edited. ", 1)).unwrap();
    assert_ne!(generate(), "nothing changed");
    assert!(fs::read_to_string(&definitions).unwrap().contains("Edited."));
    // A spec with mistakes changes nothing.
    fs::write(&spec, "edition: 1\nops: 1\n").unwrap();
    assert_eq!(opsmith(&["generate", "--stand-alone", spec_name, "-o", out_name]).status, Some(1));
    assert!(definitions.is_file());
}

#[test]
fn the_stock_library() {
    let out = folder("generate-stock");
    let out_name = out.to_str().unwrap();
    let run = opsmith(&["generate", "ops.yaml", "-o", out_name]);
    assert_eq!((run.status, &*run.stderr), (Some(0), ""), "{}", run.stdout);
    let definitions = fs::read_to_string(out.join("defs.rs")).unwrap();
    let spec = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../ops.yaml"));
    let checked = opsmith_codegen::pipeline::check(&opsmith_codegen::Config::stock(spec)).unwrap();
    // An alias has no definition of its own.
    let defined = checked.model.ops.iter().filter(|op| op.alias_of.is_none()).count();
    assert_eq!(definitions.matches("pub static ").count(), defined);
    assert!(fs::read_to_string(out.join("functions.rs")).unwrap().contains("pub fn mm("));
    let again = opsmith(&["generate", "ops.yaml", "-o", out_name]);
    assert!(again.stdout.contains("nothing changed"), "{}", again.stdout);
}
