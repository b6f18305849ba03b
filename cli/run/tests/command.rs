//! The `opsmith-run` command from the outside, on the programs of the tests.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn data(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/programs").join(file).display().to_string()
}

fn run<T: AsRef<OsStr> + Debug>(arguments: &[T]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opsmith-run")).args(arguments).output().unwrap()
}

#[track_caller]
fn succeeds<T: AsRef<OsStr> + Debug>(arguments: &[T]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A file of this process alone.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("opsmith-run-{}-{name}", std::process::id()))
}

/// A reader that ends early ends the command, without a panic.
#[test]
fn a_closed_pipe_is_no_panic() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opsmith-run"));
    let (out, errors) = (Stdio::piped(), Stdio::piped());
    let mut child =
        command.args([&data("mlp.pt2"), "--describe"]).stdout(out).stderr(errors).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_ne!(output.status.code(), Some(101));
}

#[test]
fn results_are_written_and_compared() {
    let (program, recorded) = (data("mlp.pt2"), data("mlp.npz"));
    let results = scratch("results.npz");
    let input = format!("x=@{recorded}:case1.in0");
    assert_eq!(succeeds(&[&program, "--input", &input, "--outputs", results.to_str().unwrap()]), "");
    let by_position = format!("0=@{recorded}:case1.in0");
    let same = succeeds(&[&program, "--input", &by_position, "--compare", results.to_str().unwrap()]);
    assert!(same.starts_with("out0: float32 [3, 10], largest difference 0.000e0"), "{same}");
    let other = format!("x=@{recorded}:case2.in0");
    let output = run(&[&program, "--input", &other, "--compare", results.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("is float32 [7, 10], expected float32 [3, 10]"));
    std::fs::remove_file(results).unwrap();
}

#[test]
fn a_program_is_checked_and_described() {
    let program = data("convnet.pt2");
    let text = succeeds(&[&program, "--check"]);
    assert!(text.contains("input x: float32 (s77, 1, 28, 28)") && text.ends_with("no mistakes\n"), "{text}");
    let text = succeeds(&[&program, "--shapes"]);
    assert!(text.contains("output out0: float32 (s77, 10)\nsymbol s77: at least 0"), "{text}");
    let page = scratch("page.html");
    let text = succeeds(&[&program, "--describe", "--at", "s77=8", "--html", page.to_str().unwrap()]);
    assert!(text.contains("with s77=8: arena "), "{text}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<html"));
    std::fs::remove_file(page).unwrap();
}

#[test]
fn one_of_several_models_is_named() {
    let (program, recorded) = (data("coders.pt2"), data("coders.npz"));
    for model in ["encoder", "decoder"] {
        let (input, expected) = (format!("x=@{recorded}:{model}.in"), scratch(&format!("{model}.npz")));
        succeeds(&[&program, "--model", model, "--input", &input, "--outputs", expected.to_str().unwrap()]);
        let text = succeeds(&[
            &program,
            "--model",
            model,
            "--input",
            &input,
            "--compare",
            expected.to_str().unwrap(),
        ]);
        assert!(text.contains("largest difference 0.000e0"), "{text}");
        std::fs::remove_file(expected).unwrap();
    }
    let refused = |arguments: &[&str]| String::from_utf8(run(arguments).stderr).unwrap();
    let text = refused(&[&program]);
    assert!(text.contains("several models: decoder, encoder") && text.contains("--model NAME"), "{text}");
    let text = refused(&[&program, "--model", "coder"]);
    assert!(text.contains("no model `coder`") && text.contains("its models are decoder, encoder"), "{text}");
    let text = refused(&[&data("mlp.pt2"), "--model", "mlp"]);
    assert!(text.contains("no model `mlp`") && text.contains("its models are model"), "{text}");
}

#[test]
fn runs_are_timed() {
    let (program, recorded) = (data("lstm.pt2"), data("lstm.npz"));
    let input = format!("x=@{recorded}:case0.in0");
    let text = succeeds(&[&program, "--input", &input, "--bench", "3"]);
    assert!(text.starts_with("3 runs: median ") && text.contains(", least "), "{text}");
}

#[test]
fn a_run_is_profiled() {
    let (program, recorded) = (data("mlp.pt2"), data("mlp.npz"));
    let (page, profile) = (scratch("profile.html"), scratch("profile.json"));
    let input = format!("x=@{recorded}:case1.in0");
    let text = succeeds(&[&program, "--input", &input, "--profile", page.to_str().unwrap()]);
    // Steps of the graph, the pass that runs them, and lines of the Python source.
    assert!(text.contains("addmm") && text.contains("\ngraph ") && text.contains(".py:"), "{text}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("<h2>Operators</h2>"));
    succeeds(&[&program, "--input", &input, "--profile", profile.to_str().unwrap()]);
    let read = opsmith_profile::Profile::load(&profile).unwrap();
    assert!(read.name.ends_with("mlp.pt2") && !read.events.is_empty());
    std::fs::remove_file(page).unwrap();
    std::fs::remove_file(profile).unwrap();
}

/// The same programs on a device, for which stand-ins run the texts of its kernels on the host.
#[test]
fn a_program_runs_on_a_device() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-cuda");
    opsmith_stand_in::driver(&folder);
    opsmith_stand_in::nvrtc(&folder);
    opsmith_stand_in::cublaslt(&folder);
    opsmith_stand_in::cudnn(&folder);
    let examples = "../../../examples/programs";
    for (name, arrays) in [
        ("mlp", &["case1.in0"][..]),
        ("convnet", &["case1.in0"]),
        ("lstm", &["case1.in0"]),
        (&format!("{examples}/digits"), &["images"]),
        (&format!("{examples}/text"), &["prompt", "positions"]),
    ] {
        let (program, recorded) = (data(&format!("{name}.pt2")), data(&format!("{name}.npz")));
        let results = scratch("host.npz");
        let results = results.to_str().unwrap();
        let input = |(number, array)| ["--input".to_owned(), format!("{number}=@{recorded}:{array}")];
        let inputs: Vec<String> = arrays.iter().enumerate().flat_map(input).collect();
        let with = |options: &[&str]| {
            let all = std::iter::once(program.as_str()).chain(options.iter().copied());
            all.chain(inputs.iter().map(String::as_str)).map(str::to_owned).collect::<Vec<String>>()
        };
        succeeds(&with(&["--outputs", results]));
        let output = on_device(&folder, &with(&["--device", "cuda", "--compare", results, "--bench", "1"]));
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {text}{errors}");
        assert!(text.contains("1 runs: median ") && text.contains("out0: float32"), "{name}: {text}");
        std::fs::remove_file(results).unwrap();
    }
}

#[test]
fn a_device_that_is_missing_is_named_with_its_cure() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("run-no-cuda");
    opsmith_stand_in::no_driver(&folder);
    let input = format!("x=@{}:case1.in0", data("mlp.npz"));
    let output = on_device(&folder, &[&data("mlp.pt2"), "--device", "cuda", "--input", &input]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("mlp.pt2 cannot be moved to cuda:0: "), "{errors}");
    assert!(errors.contains("help: "), "{errors}");
    let output = on_device(&folder, &[&data("mlp.pt2"), "--device", "gpu", "--check"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("write `cpu`, `cuda` or, for one of several, `cuda:1`"), "{errors}");
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/onnx/mlp.onnx");
    let output = on_device(&folder, &[model.to_str().unwrap(), "--device", "cuda", "--check"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("an ONNX model on cuda:0") && errors.contains("run it on the CPU"), "{errors}");
}

/// Runs the command with the drivers of a folder.
fn on_device<T: AsRef<OsStr>>(folder: &Path, arguments: &[T]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_opsmith-run"))
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .env("OPSMITH_CACHE_DIR", folder.join("cache"))
        .env_remove("OPSMITH_NVRTC")
        .env_remove("OPSMITH_CUBLASLT")
        .env_remove("OPSMITH_CUDNN")
        .env("OPSMITH_CUDA_LIBRARIES", "cublaslt,cudnn")
        .output()
        .unwrap()
}

#[test]
fn mistakes_name_their_cure() {
    let program = data("mlp.pt2");
    for (arguments, part) in [
        (vec![], "no input is given; the program takes\n  x: float32 (s77, 64)"),
        (vec!["--input", "y=@y.npy"], "the program has no input \"y\"; it takes\n  x: float32 (s77, 64)"),
        (vec!["--input", "x"], "write NAME=@FILE"),
        (vec!["--input", "x=@missing.npy"], "missing.npy"),
        (vec!["--describe", "--at", "s77"], "write SYMBOL=SIZE"),
    ] {
        let arguments: Vec<&str> = std::iter::once(program.as_str()).chain(arguments).collect();
        let output = run(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(part), "{part:?} is not in\n{errors}");
    }
    let output = run(&[&data("mlp.npz"), "--check"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no exported program"));
}

#[test]
fn commands_of_the_guide_succeed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/programs.md")).unwrap();
    let folder = scratch("guide");
    std::fs::create_dir_all(&folder).unwrap();
    let commands: Vec<&str> = guide.lines().filter(|line| line.starts_with("opsmith-run tests/")).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        // Results are written where the command runs.
        let data = root.join("tests/data").display().to_string();
        let command = command.replace("tests/data", &data);
        let arguments = command.split(' ').skip(1);
        let mut process = Command::new(env!("CARGO_BIN_EXE_opsmith-run"));
        let output = process.args(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
