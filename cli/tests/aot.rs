//! `opsmith aot`, run as a process.

#[path = "support/guide.rs"]
mod guide;
mod support;

use std::path::{Path, PathBuf};
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
    // Random numbers, an unconverted dtype, a file.
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

/// Each notation of an input, tested by a kernel's output.
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
    // A dtype: the kernel receives it, but does not support it.
    let add_reduce = kernel("add_reduce.cc:CustomKernel");
    let (x, y) = ("x=ones:f64:4x5", "y=ones:float64:4x5");
    let run = opsmith(&["aot", "run", &add_reduce, "--input", x, "--input", y, "--attr", "axis=1"]);
    // It writes half of the bytes, which debug builds detect in every call.
    run.assert_parts(&[match cfg!(debug_assertions) {
        true => "did not write every element of the output `output`: the first is at [2] of the shape (4)\n",
        false => "output: float64 (4)\n",
    }]);
}

/// Environment variables have the same meaning for the command as for every program.
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

/// The code that nvcc compiles from a source, with its launches, and stand-ins for the driver and for CUDA's runtime.
/// `.ci/run` sets `OPSMITH_NVCC` for it.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn a_source_for_cuda_runs_with_the_stand_in() {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/cli-cudart");
    let flags = opsmith_stand_in::runtime(Path::new(folder));
    let variables = [("LD_LIBRARY_PATH", folder), ("NVCC_APPEND_FLAGS", &flags)];
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

/// The device kernels of the guide: each compiles without problems, and runs with the stand-ins.
/// `.ci/run` sets `OPSMITH_NVCC` for it.
#[test]
#[ignore = "needs nvcc, which `.ci/run` installs before it calls it"]
fn the_cuda_kernels_of_the_guide_run_with_the_stand_in() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-guide");
    std::fs::create_dir_all(&folder).unwrap();
    let sources: Vec<(String, String)> = guide::files_of_page("docs/kernels.md")
        .into_iter()
        .filter(|(file, _)| file.ends_with(".cu"))
        .collect();
    assert_eq!(sources.len(), 2);
    let place = |file: &str| folder.join(Path::new(file).file_name().unwrap()).display().to_string();
    for (file, text) in &sources {
        std::fs::write(place(file), text).unwrap();
        let run = opsmith(&["aot", "check", &place(file)]);
        assert_eq!(
            (run.status, run.stdout.contains("problem")),
            (Some(0), false),
            "{}{}",
            run.stdout,
            run.stderr
        );
    }
    let driver = folder.join("cudart");
    let flags = opsmith_stand_in::runtime(&driver);
    let driver = driver.display().to_string();
    let run = |kernel: &str, arguments: &[&str]| {
        let variables = [("LD_LIBRARY_PATH", &*driver), ("NVCC_APPEND_FLAGS", &flags)];
        opsmith_with(&variables, &[&["aot", "run", &place(kernel), "--check"], arguments].concat())
    };
    let halve = run("halve.cu:Halve", &["--input", "x=arange:3", "--output", "y=3"]);
    halve.assert_parts(&["y: float32 (3)\n[0.0, 0.5, 1.0]\n"]);
    let scores = |rows: &str, weight: &str, result: &str| {
        let (rows, weight, result) =
            (format!("self={rows}"), format!("weight={weight}"), format!("y={result}"));
        let operands = ["--input", &rows, "--input", &weight, "--attr", "scale=0.5", "--output", &result];
        run("scores.cu:RowScores", &operands)
    };
    scores("arange:2x3", "ones:3", "2").assert_parts(&["y: float32 (2)\n[1.5, 6.0]\n"]);
    scores("arange:f64:2x3", "ones:f64:3", "f64:2").assert_parts(&["y: float64 (2)\n[1.5, 6.0]\n"]);
    scores("arange:2x0", "ones:0", "2").assert_parts(&["y: float32 (2)\n[0., 0.]\n"]);
    let refused = scores("arange:i32:2x3", "ones:i32:3", "i32:2");
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(refused.status != Some(0) && said.contains("returned 3"), "{said}");
}

/// A kernel for a device, with a stand-in for the driver, and without one.
#[test]
fn a_kernel_for_a_device_is_tried() {
    let scale = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixture/custom_device.cc:CustomDevice");
    let run = |folder: &Path, target: &str| {
        let folder = folder.display().to_string();
        let arguments =
            ["aot", "run", scale, "--input", "x=arange:3", "--attr", "scale=2.5", "--output", "y=3"];
        opsmith_with(&[("LD_LIBRARY_PATH", &folder)], &[arguments.as_slice(), &["--target", target]].concat())
    };
    let driver = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-aot");
    opsmith_stand_in::driver(&driver);
    for target in ["cuda", "CUDA"] {
        let tried = run(&driver, target);
        tried.assert_parts(&["y: float32 (3)\n", "2.5", "5", "launches=1 refused=0"]);
        assert_eq!(tried.status, Some(0), "{}", tried.stderr);
    }
    // The kernel looks for the driver loaded in its process.
    assert!(run(&driver, "cpu").stdout.contains("returned 2"));
    let none = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli-aot-none");
    opsmith_stand_in::no_driver(&none);
    let none = run(&none, "cuda");
    none.assert_parts(&["kernel: no CUDA driver was found: libcuda.so.1 cannot be loaded", "help: "]);
    assert_eq!(none.status, Some(1));
    let wrong = run(&driver, "gpu");
    assert!(wrong.stderr.contains("there are cpu and cuda"), "{}", wrong.stderr);
    assert_eq!(wrong.status, Some(2));
    // A source determines its target.
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

/// A separate folder with the library of a kernel that copies, and runs code when it is loaded.
fn library(name: &str, loaded: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("aot-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/aot/initialisers.cc");
    opsmith_stand_in::compile(source, &folder.join("libmine.so"), &[&format!("-DLOADED={loaded}")]);
    folder
}

/// The library of the examples in the help: named without a folder.
#[test]
fn a_library_in_this_folder_is_named_without_it() {
    let folder = library("bare", "(void)0");
    let run = |variables: &[(&str, &str)], more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_opsmith"))
            .args(["aot", "run", "libmine.so:F", "--input", "x=arange:3", "--output", "y=3"])
            .args(more)
            .current_dir(&folder)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    for variables in [&[][..], &[("OPSMITH_AOT_ALLOW", ".")], &[("LD_LIBRARY_PATH", "/nowhere")]] {
        for more in [&[][..], &["--check", "--sandbox"]] {
            let output = run(variables, more);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("y: float32 (3)\n[0., 1., 2.]\n") && output.status.success(), "{output:?}");
        }
    }
    let output = run(&[("OPSMITH_AOT_ALLOW", "/usr")], &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("libmine.so is outside the folders"), "{text}");
}

/// For any behaviour of a library at load time, the command reports it and continues.
#[test]
fn libraries_that_end_their_process() {
    for (name, loaded, expected) in [
        ("aborts", "std::abort()", "crashed with signal 6 (SIGABRT"),
        ("leaves", "_exit(0)", "ended its process with exit status 0"),
    ] {
        let path = library(name, loaded).join("libmine.so").display().to_string();
        let kernel = format!("{path}:F");
        let arguments = ["aot", "run", &kernel, "--input", "x=arange:3", "--output", "y=3", "--sandbox"];
        let run = opsmith(&arguments);
        run.assert_parts(&["kernel: the kernel `F`", expected]);
        assert_eq!(run.status, Some(1), "{loaded}");
        let run = opsmith(&["aot", "check", &path]);
        run.assert_parts(&["kernel F (with InferType)\n", "problem: loading ", expected]);
        assert_eq!(run.status, Some(1), "{loaded}");
    }
}

/// Files without kernels are rejected immediately.
#[test]
fn files_that_are_none() {
    for (file, expected) in [("/dev/zero", "is a device, no file"), ("/dev", "is a folder, no file")] {
        let kernel = format!("{file}:K");
        let run = opsmith(&["aot", "run", &kernel, "--input", "x=ones:3", "--output", "y=3"]);
        run.assert_parts(&[expected]);
        assert_eq!(run.status, Some(1));
        let run = opsmith(&["aot", "check", file]);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
        assert_eq!(run.status, Some(2));
    }
}

#[test]
fn a_kernel_that_reads_what_it_has_not_written() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unwritten.cc");
    std::fs::write(
        &source,
        "#include \"custom_aot_extra.h\"\n\
         extern \"C\" int FInit(int *, int64_t **shapes, const char **, AotExtra *extra) {\n  \
         extra->SetWorkSpace({shapes[0][0] * sizeof(float)});\n  return 0;\n}\n\
         extern \"C\" int F(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {\n  \
         auto *sums = static_cast<float *>(params[2]);\n  auto *out = static_cast<float *>(params[1]);\n  \
         for (int i = 0; i < shapes[1][0]; ++i) sums[i] = static_cast<float *>(params[0])[i];\n  \
         out[0] = 0;\n  for (int i = 0; i < shapes[0][0]; ++i) out[0] += sums[i];\n  return 0;\n}\n",
    )
    .unwrap();
    let kernel = format!("{}:F", source.display());
    let run = opsmith(&["aot", "run", &kernel, "--input", "x=ones:5", "--output", "y=1", "--check"]);
    run.assert_parts(&[
        "computes its output `y` from what workspace 0 held before the call",
        "found by OPSMITH_CHECK",
        "write every element of a workspace before reading it",
    ]);
    assert_eq!(run.status, Some(1));
}

#[test]
fn a_library_of_the_other_variant_is_looked_into() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-dual");
    std::fs::create_dir_all(&folder).unwrap();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/aot");
    let (library, source) = (folder.join("dual.so"), format!("{tests}/dual.cc"));
    opsmith_stand_in::compile(&source, &library, &["-DWITH_DATA", "-I", tests]);
    let run = opsmith(&["aot", "check", library.to_str().unwrap()]);
    run.assert_parts(&[
        "interface: AotExtraDualABI (custom_aot_extra_dual_abi.h)\n",
        "kernel Echo (with Init)\n",
    ]);
    assert_eq!(run.status, Some(0), "{}", run.stdout);
    let kernel = format!("{}:Real", library.display());
    let run = opsmith(&[
        "aot", "run", &kernel, "--input", "x=ones:1", "--attr", "real=0.5", "--output", "y=u8:256",
    ]);
    assert!(run.stdout.contains("y: uint8 (256)\n[48, 46, 53, "), "{}", run.stdout);
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
