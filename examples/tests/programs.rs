//! The programs of `aot/`, run by the commands that its README gives; all that they print is compared.

use std::process::Command;

/// What a program prints. The command that users run builds it first, so it is never an old one.
#[track_caller]
fn printed(example: &str) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--example", example]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().expect("cargo runs this test, so it is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example} failed:\n{errors}");
    String::from_utf8(output.stdout).expect("programs print text")
}

#[test]
fn add_reduce() {
    let expected = "\
[10., 10., 10., 10.]
[Tensor(tensor([[8., 8., 8., 8., 8.]], dtype=float32, shape=(1, 5)))]
[([4], F32)]
";
    assert_eq!(printed("aot_add_reduce"), expected);
}

#[test]
fn gradients() {
    assert_eq!(printed("aot_gradients"), "[4.0, 256.0, 2916.0]\n[6.0]\n");
}

#[test]
fn several_outputs() {
    assert_eq!(printed("aot_several_outputs"), "dx [5.0, 17.0, 37.0]\ndy [-1.0, -16.0, -81.0]\n");
}

/// Each program is under a page, and its README names it with what it prints.
#[test]
fn every_program_is_short_documented_and_run_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/aot");
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let tests = include_str!("programs.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let name = format!("aot_{}", path.file_stem().unwrap().to_string_lossy());
        assert!(
            readme.contains(&format!("cargo run --example {name}`")),
            "{name} is not in {folder}/README.md"
        );
        assert!(tests.contains(&format!("printed(\"{name}\")")), "no test runs {name}");
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 60, "{name} has {lines} lines, more than a page");
    }
}
