//! The programs beside this folder; their whole output is compared.

use std::path::Path;
use std::process::Command;

/// The output of a program.
#[track_caller]
fn printed(name: &str) -> String {
    printed_with(name, &[])
}

/// The same with environment variables.
#[track_caller]
fn printed_with(name: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_opsmith-example-aot"))
        .arg(name)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed:\n{errors}");
    String::from_utf8(output.stdout).expect("programs print text")
}

#[test]
fn add_reduce() {
    let expected = "\
[10., 10., 10., 10.]
[Tensor(tensor([[8., 8., 8., 8., 8.]], dtype=float32, shape=(1, 5)))]
[([4], F32)]
";
    assert_eq!(printed("add_reduce"), expected);
}

#[test]
fn gradients() {
    assert_eq!(printed("gradients"), "[4.0, 256.0, 2916.0]\n[6.0]\n");
}

#[test]
fn several_outputs() {
    assert_eq!(printed("several_outputs"), "dx [5.0, 17.0, 37.0]\ndy [-1.0, -16.0, -81.0]\n");
}

/// Without its compiler, the program reports that.
#[test]
fn device() {
    let told = printed_with("device", &[("OPSMITH_NVCC", "/nonexistent")]);
    assert!(told.starts_with("not here: device_square: OPSMITH_NVCC names `/nonexistent`"), "{told}");
}

/// With the compiler, set by `.ci/run` in `OPSMITH_NVCC`, and stand-ins for the driver and CUDA's runtime.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn device_in_cuda() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/examples-cudart");
    let flags = opsmith_stand_in::runtime(Path::new(folder));
    let told = printed_with("device", &[("LD_LIBRARY_PATH", folder), ("NVCC_APPEND_FLAGS", &flags)]);
    assert!(told.starts_with("[4.0, 256.0, 2916.0]\nSTANDIN live=0 "), "{told}");
}

/// Each program fits a page, and its README has its name and output.
#[test]
fn every_program_is_short_documented_and_run_here() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let readme = std::fs::read_to_string(format!("{folder}/README.md")).unwrap();
    let tests = include_str!("programs.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy();
        if name == "main" {
            continue;
        }
        assert!(
            readme.contains(&format!("cargo run -p opsmith-example-aot -- {name}`")),
            "{name} is not in {folder}/README.md"
        );
        let run = ["printed", "printed_with"].map(|how| tests.contains(&format!("{how}(\"{name}\"")));
        assert_ne!(run, [false; 2], "no test runs {name}");
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 60, "{name} has {lines} lines, more than a page");
    }
}
