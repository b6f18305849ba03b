//! `opsmith aot` from the outside.

#[path = "../../tests/cuda/stand_in.rs"]
mod stand_in;
mod support;

use std::path::Path;
use std::process::Command;

use support::{opsmith, opsmith_with};

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

/// Each way to write an input, seen in what a kernel makes of it.
#[test]
fn inputs_of_every_kind() {
    let square = kernel("square.cc:Square");
    let squared = |input: &str, output: &str| {
        let (input, output) = (format!("x={input}"), format!("y={output}"));
        let run = opsmith(&["aot", "run", &square, "--input", &input, "--output", &output]);
        assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
        run.stdout
    };
    let zeros = squared("zeros:2x2", "2x2");
    assert!(zeros.starts_with("y: float32 (2, 2)\n") && !zeros.contains(['1', '4']), "{zeros}");
    let range = squared("arange:2x3", "2x3");
    for number in ["0", "1", "4", "9", "16", "25"] {
        assert!(range.contains(number), "{range}");
    }
    // Without dimensions.
    let one = squared("ones:()", "()");
    assert!(one.starts_with("y: float32 ()\n") && one.contains('1'), "{one}");
    // A file. This kernel squares numbers of float32.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("input.npy");
    let tensor = opsmith_runtime::Tensor::from_slice(&[1.5f32, -3.0], &[2]).unwrap();
    tensor.save_npy(&file).unwrap();
    let from_file = squared(&format!("@{}", file.display()), "2");
    assert!(from_file.contains("2.25") && from_file.contains('9'), "{from_file}");
    // A dtype: the kernel is told, and this one is not for it.
    let add_reduce = kernel("add_reduce.cc:CustomKernel");
    let (x, y) = ("x=ones:f64:4x5", "y=ones:float64:4x5");
    let run = opsmith(&["aot", "run", &add_reduce, "--input", x, "--input", y, "--attr", "axis=1"]);
    run.assert_parts(&["output: float64 (4)\n"]);
}

/// The variables mean the same to the command as to every program.
#[test]
fn variables_reach_kernels() {
    let square = kernel("square.cc:Square");
    let arguments = ["aot", "run", &square, "--input", "x=arange:4", "--output", "y=5"];
    let run = opsmith_with(&[("OPSMITH_CHECK", "1")], &arguments);
    run.assert_parts(&["left 1 of 5 elements of its output `y` unwritten"]);
    assert_eq!(run.status, Some(1));
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let add_reduce = kernel("add_reduce.cc:CustomKernel");
    let arguments =
        ["aot", "run", &add_reduce, "--input", "x=ones:4x5", "--input", "y=ones:4x5", "--attr", "axis=1"];
    let run = opsmith_with(&[("OPSMITH_AOT_ALLOW", examples), ("OPSMITH_AOT_SANDBOX", "1")], &arguments);
    run.assert_parts(&["output: float32 (4)\n", "[10", "10"]);
    let run = opsmith_with(&[("OPSMITH_AOT_ALLOW", "/nowhere")], &arguments);
    run.assert_parts(&["is outside the folders that kernels may be loaded from"]);
    assert_eq!(run.status, Some(1));
}

#[test]
fn a_source_is_looked_into() {
    let run = opsmith(&["aot", "check", &kernel("add_reduce.cc")]);
    run.assert_parts(&[
        "compiled to ",
        "layout of std::string: old",
        "kernel CustomKernel (with Init, InferShape)\n",
    ]);
    assert_eq!((run.status, run.stdout.contains("problem")), (Some(0), false), "{}", run.stdout);
}

/// `.ci/run` sets `OPSMITH_NVCC` for it.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn a_source_for_cuda_compiles_to_a_library_without_problems() {
    let run = opsmith(&["aot", "check", &kernel("square.cu")]);
    run.assert_parts(&["compiled to ", ".so\n", "kernel Square\n"]);
    assert_eq!((run.status, run.stdout.contains("problem")), (Some(0), false), "{}", run.stdout);
    let broken = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.cu");
    std::fs::write(&broken, "extern \"C\" int F() { return nothing; }\n").unwrap();
    let run = opsmith(&["aot", "check", broken.to_str().unwrap()]);
    assert!(run.stderr.contains("broken.cu does not compile"), "{}", run.stderr);
    assert!(run.stderr.contains("identifier \"nothing\" is undefined"), "{}", run.stderr);
    assert_eq!(run.status, Some(2));
}

/// What nvcc makes of a source, its launches too, with stand-ins for the driver and for CUDA's runtime.
/// `.ci/run` sets `OPSMITH_NVCC` for it.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn a_source_for_cuda_runs_with_the_stand_in() {
    let (folder, flags) = stand_in::runtime("cli-cudart");
    let folder = folder.display().to_string();
    let variables = [("LD_LIBRARY_PATH", folder.as_str()), ("NVCC_APPEND_FLAGS", &flags)];
    let square = kernel("square.cu:Square");
    let arguments = ["aot", "run", &square, "--input", "x=arange:3", "--output", "y=3"];
    for more in [&[][..], &["--check"], &["--sandbox"], &["--check", "--sandbox"]] {
        let run = opsmith_with(&variables, &[&arguments, more].concat());
        run.assert_parts(&["y: float32 (3)\n[0., 1., 4.]\n"]);
        assert_eq!((run.status, run.stdout.contains("refused=0")), (Some(0), !more.contains(&"--sandbox")));
    }
    // More elements than threads of a launch.
    let many = ["aot", "run", &square, "--input", "x=ones:600000", "--output", "y=600000", "--check"];
    opsmith_with(&variables, &many).assert_parts(&["y: float32 (600000)\n[1., 1., 1., ", "1., 1., 1.]\n"]);
    let bprop = kernel("square.cu:SquareBprop");
    let inputs = ["x=arange:3", "out=zeros:3", "dout=ones:3"].map(|input| ["--input", input]).concat();
    let arguments = [&["aot", "run", &bprop, "--output", "dx=3"], inputs.as_slice()].concat();
    opsmith_with(&variables, &arguments).assert_parts(&["dx: float32 (3)\n[0., 2., 4.]\n"]);
}

/// A kernel for a device, where a stand-in for the driver is, and where there is none.
#[test]
fn a_kernel_for_a_device_is_tried() {
    let scale = concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/golden/custom_device.cc:CustomDevice");
    let run = |folder: &Path, target: &str| {
        let folder = folder.display().to_string();
        let arguments =
            ["aot", "run", scale, "--input", "x=arange:3", "--attr", "scale=2.5", "--output", "y=3"];
        opsmith_with(&[("LD_LIBRARY_PATH", &folder)], &[arguments.as_slice(), &["--target", target]].concat())
    };
    let driver = stand_in::driver("cli-aot");
    for target in ["cuda", "CUDA"] {
        let tried = run(&driver, target);
        tried.assert_parts(&["y: float32 (3)\n", "2.5", "5", "launches=1 refused=0"]);
        assert_eq!(tried.status, Some(0), "{}", tried.stderr);
    }
    // The kernel looks for the driver that is loaded where it runs.
    assert!(run(&driver, "cpu").stdout.contains("returned 2"));
    let none = run(&stand_in::no_driver("cli-aot-none"), "cuda");
    none.assert_parts(&["kernel: no CUDA driver was found: libcuda.so.1 cannot be loaded", "help: "]);
    assert_eq!(none.status, Some(1));
    let wrong = run(&driver, "gpu");
    assert!(wrong.stderr.contains("there are cpu and cuda"), "{}", wrong.stderr);
    assert_eq!(wrong.status, Some(2));
    // A source says where it runs.
    let square = kernel("square.cu:Square");
    let run = opsmith(&["aot", "run", &square, "--input", "x=ones:3", "--output", "y=3", "--target", "cpu"]);
    assert!(run.stderr.contains("square.cu is a source for CUDA, and is declared for CPU"), "{}", run.stderr);
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
