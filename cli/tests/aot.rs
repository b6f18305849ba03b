//! `opsmith aot` from the outside.

mod support;

use std::path::Path;
use std::process::Command;

use support::opsmith;

fn kernel(name: &str) -> String {
    format!("{}/../examples/aot/kernels/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_kernel_is_tried_from_the_shell() {
    let add_reduce = kernel("add_reduce.cc:CustomKernel");
    let run = opsmith(&[
        "aot",
        "run",
        &add_reduce,
        "--input",
        "x=ones:4x5",
        "--input",
        "y=ones:f32:4x5",
        "--attr",
        "axis=1",
    ]);
    run.assert_parts(&["output: float32 (4)\n", "[10", "10", "10", "10"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("ran in"), "{}", run.stderr);
    // Random numbers, another dtype that is converted by nobody, a file.
    let run = opsmith(&[
        "aot",
        "run",
        &add_reduce,
        "--input",
        "x=ones:4x5",
        "--input",
        "y=randn:4x5",
        "--attr",
        "axis=1",
    ]);
    run.assert_parts(&["output: float32 (4)\n"]);
    let run = opsmith(&[
        "aot",
        "run",
        &kernel("square.cc:Square"),
        "--input",
        "x=arange:4",
        "--output",
        "y=4",
        "--check",
        "--sandbox",
    ]);
    run.assert_parts(&["y: float32 (4)\n", "[0", "1", "4", "9"]);
    assert_eq!(run.status, Some(0), "{}", run.stderr);
}

#[test]
fn what_is_wrong_is_said() {
    let square = kernel("square.cc:Square");
    let run = opsmith(&["aot", "run", &square, "--input", "x=arange:4"]);
    run.assert_parts(&[
        "kernel: nothing says the shape of the outputs: there is no function `SquareInferShape`",
    ]);
    assert_eq!(run.status, Some(1));
    let run = opsmith(&["aot", "run", &square, "--input", "x=arange:4", "--output", "y=5", "--check"]);
    run.assert_parts(&["left 1 of 5 elements of its output `y` unwritten"]);
    assert_eq!(run.status, Some(1));
    let run = opsmith(&["aot", "run", &square, "--input", "x"]);
    run.assert(2, "", "error: --input x: write NAME=VALUE\n");
    for (input, expected) in [
        ("x=many:4", "there is no input `many`"),
        ("x=ones:f99:4", "`f99` is no dtype"),
        ("x=ones:4y", "is no shape"),
        ("x=@nothing.npy", "nothing.npy"),
    ] {
        let run = opsmith(&["aot", "run", &square, "--input", input]);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        assert_eq!(run.status, Some(2), "{input}");
    }
}

#[test]
fn a_library_is_looked_into() {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("add_reduce.so");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/include");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let status = Command::new(compiler)
        .args(["-std=c++17", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", "-I", include, "-o"])
        .arg(&library)
        .arg(kernel("add_reduce.cc"))
        .status();
    assert!(status.expect("there is a C++ compiler").success());
    let run = opsmith(&["aot", "check", library.to_str().unwrap()]);
    run.assert_parts(&[
        "layout of std::string: old (_GLIBCXX_USE_CXX11_ABI=0)\n",
        "kernel CustomKernel (with Init, InferShape)\n",
    ]);
    assert_eq!((run.status, run.stdout.contains("problem")), (Some(0), false), "{}", run.stdout);
    let run = opsmith(&["aot", "check", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert!(run.stderr.contains("it is no shared object"), "{}", run.stderr);
    assert_eq!(run.status, Some(2));
}
