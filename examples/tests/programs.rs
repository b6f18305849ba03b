//! The programs of `aot/`, run by the commands in its README; their whole output is compared.

use std::path::Path;
use std::process::Command;

/// The output of a program. The command for users builds it first, so it is never outdated. It runs in the workspace's
/// root, as the README has it: in the folder of this package, cargo would choose features for this package alone, and
/// compile the library for them.
#[track_caller]
fn printed(example: &str) -> String {
    printed_with(example, &[])
}

/// The same with environment variables.
#[track_caller]
fn printed_with(example: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    command.args(["run", "--quiet", "--example", example]).current_dir(root);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    command.envs(variables.iter().copied());
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

/// Without its compiler, the program reports that.
#[test]
fn device() {
    let told = printed_with("aot_device", &[("OPSMITH_NVCC", "/nonexistent")]);
    assert!(told.starts_with("not here: device_square: OPSMITH_NVCC names `/nonexistent`"), "{told}");
}

/// With the compiler, set by `.ci/run` in `OPSMITH_NVCC`, and stand-ins for the driver and CUDA's runtime.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn device_in_cuda() {
    // Builds it first, so that cargo itself does not see the settings below.
    printed_with("aot_device", &[("OPSMITH_NVCC", "/nonexistent")]);
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/examples-cudart");
    let flags = opsmith_stand_in::runtime(Path::new(folder));
    let told = printed_with("aot_device", &[("LD_LIBRARY_PATH", folder), ("NVCC_APPEND_FLAGS", &flags)]);
    assert!(told.starts_with("[4.0, 256.0, 2916.0]\nSTANDIN live=0 "), "{told}");
}

/// Each program fits a page, and its README has its name and output.
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
        let run = ["printed", "printed_with"].map(|how| tests.contains(&format!("{how}(\"{name}\"")));
        assert_ne!(run, [false; 2], "no test runs {name}");
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 60, "{name} has {lines} lines, more than a page");
    }
}
