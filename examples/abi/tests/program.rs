//! The C interface from a program in C and in C++, compiled against the header that `opsmith bridge` writes.

use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith_abi::structures::{
    Api, Argument, InferredCall, InferredResult, Node, Operator, Outputs, SizeGuard, Stream, Tensor, Value,
};
use opsmith_tools::bridge;

/// The library of this crate, which cargo puts beside the test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let name = format!("{}opsmith_example_abi{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    folder.join(name)
}

/// Compiles the program and runs it; returns its output.
fn compiled_and_run(folder: &Path, compiler: &str, options: &[&str]) -> String {
    _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("opsmith_abi.h"), bridge::header()).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(options).args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(folder);
    command.arg(source).args(["-x", "none", "-ldl", "-o"]).arg(&program);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).arg(library()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The sizes of the structures, in the order in which the program prints those of the header.
fn expected() -> String {
    let sizes = [
        size_of::<Tensor>(),
        size_of::<Value>(),
        size_of::<Outputs>(),
        size_of::<Stream>(),
        size_of::<Argument>(),
        size_of::<Operator>(),
        size_of::<Node>(),
        size_of::<InferredResult>(),
        size_of::<SizeGuard>(),
        size_of::<InferredCall>(),
        size_of::<Api>(),
        offset_of!(Api, error_text),
        offset_of!(Outputs, stream),
    ];
    format!("sizes {}\n0 failures\n", sizes.map(|size| size.to_string()).join(" "))
}

#[test]
fn a_program_in_c_lists_infers_runs_differentiates_and_gets_errors() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program_c");
    assert_eq!(compiled_and_run(&folder, "cc", &["-std=c11", "-D_DEFAULT_SOURCE"]), expected());
}

#[test]
fn the_header_is_one_for_cpp() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("program_cpp");
    assert_eq!(compiled_and_run(&folder, "c++", &["-std=c++17", "-x", "c++"]), expected());
}
