//! The environment variables of custom kernels, each set for a separate process: their effects, and unchanged behaviour
//! without them.

mod aot_support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use aot_support::prebuilt;
use opsmith::{DType, Tensor};
use opsmith_aot::Declaration;

/// The process that the tests below start: calls a kernel, twice if a text is to be written to its source in between.
#[test]
fn worker() {
    let Ok(kernel) = std::env::var("AOT_WORKER") else { return };
    let (file, _) = kernel.rsplit_once(':').unwrap();
    let declaration = Declaration::new("aot_switched", &kernel).input("x").output("y");
    let declaration = declaration.dtypes([DType::F32; 2]);
    let op =
        declaration.output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()])).declare().expect("it is right");
    let call = || match op.call(&[&Tensor::of(&[1.0f32, 2.0, 3.0])]) {
        Ok(out) => println!("RESULT {:?}", out.to_vec::<f32>().expect("it has floats")),
        Err(error) => println!("FAILED {error}\nEND"),
    };
    call();
    if let Ok(text) = std::env::var("AOT_WORKER_REWRITES") {
        std::thread::sleep(Duration::from_millis(20));
        fs::write(file, text).unwrap();
        call();
    }
}

fn run(kernel: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env("AOT_WORKER", kernel);
    for switch in ["OPSMITH_CHECK", "OPSMITH_AOT_SANDBOX", "OPSMITH_AOT_RELOAD", "OPSMITH_AOT_ALLOW"] {
        command.env_remove(switch);
    }
    command.env("OPSMITH_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-switches-cache"));
    command.envs(variables.iter().copied()).output().unwrap()
}

/// The results of a kernel's calls, or their errors.
#[track_caller]
fn told(kernel: &str, variables: &[(&str, &str)]) -> String {
    let output = run(kernel, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("RESULT ") || text.contains("FAILED "), "the process itself ended: {output:?}");
    text
}

fn bad(function: &str) -> String {
    static LIBRARY: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| prebuilt("bad.cc", "bad-switches.so", &[]));
    format!("{}:{function}", *LIBRARY)
}

#[test]
fn opsmith_check_watches_every_call() {
    let plain = told(&bad("ChangeInput"), &[]);
    assert!(plain.contains("RESULT"), "{plain}");
    for value in ["0", ""] {
        let off = told(&bad("ChangeInput"), &[("OPSMITH_CHECK", value)]);
        assert!(off.contains("RESULT"), "{off}");
    }
    let told = |function| told(&bad(function), &[("OPSMITH_CHECK", "1")]);
    let changed = told("ChangeInput");
    assert!(changed.contains("FAILED") && changed.contains("`x`"), "{changed}");
    let past = told("PastOutput");
    assert!(past.contains("wrote past the end of output `y`: it has 12 bytes"), "{past}");
    let forgotten = told("Forget");
    assert!(forgotten.contains("left 1 of 3 elements of its output `y` unwritten"), "{forgotten}");
    assert!(told("Good").contains("RESULT [1.0, 2.0, 3.0]"));
}

#[test]
fn opsmith_aot_sandbox_keeps_crashes_and_hangs_away() {
    // Without it the process ends with the kernel.
    let output = run(&bad("Leave"), &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let on = ("OPSMITH_AOT_SANDBOX", "1");
    let left = told(&bad("Leave"), &[on]);
    assert!(left.contains("ended its process with exit status 3"), "{left}");
    let crashed = told(&bad("Crash"), &[on]);
    assert!(crashed.contains("crashed with signal 11"), "{crashed}");
    let start = Instant::now();
    let hung = told(&bad("Hang"), &[on, ("OPSMITH_AOT_TIMEOUT", "0.3")]);
    assert!(hung.contains("did not return within 0.3 s"), "{hung}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(told(&bad("Good"), &[on]).contains("RESULT [1.0, 2.0, 3.0]"));
}

/// Fills its output with a number; needs no header, so that it compiles in no time.
fn filling(number: u32) -> String {
    format!(
        "extern \"C\" int F(int, void **params, int *, long **shapes, const char **, void *, void *) {{\n  \
         for (long i = 0; i < shapes[0][0]; ++i) static_cast<float *>(params[1])[i] = {number};\n  \
         return 0;\n}}\n"
    )
}

#[test]
fn opsmith_aot_reload_follows_the_source() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-switches.cc");
    let kernel = format!("{}:F", source.display());
    let both = |variables: &[(&str, &str)]| {
        fs::write(&source, filling(1)).unwrap();
        let rewrites = ("AOT_WORKER_REWRITES", filling(2));
        let variables: Vec<(&str, &str)> =
            variables.iter().copied().chain([(rewrites.0, rewrites.1.as_str())]).collect();
        let text = told(&kernel, &variables);
        text.lines()
            .filter_map(|line| Some(line.split_once("RESULT ")?.1.to_owned()))
            .collect::<Vec<String>>()
    };
    assert_eq!(both(&[]), ["[1.0, 1.0, 1.0]", "[1.0, 1.0, 1.0]"]);
    assert_eq!(both(&[("OPSMITH_AOT_RELOAD", "1")]), ["[1.0, 1.0, 1.0]", "[2.0, 2.0, 2.0]"]);
}

#[test]
fn opsmith_aot_allow_names_the_only_folders() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).display().to_string();
    let other = env!("CARGO_MANIFEST_DIR");
    let good = bad("Good");
    assert!(told(&good, &[("OPSMITH_AOT_ALLOW", &folder)]).contains("RESULT"));
    assert!(told(&good, &[("OPSMITH_AOT_ALLOW", &format!("{other}:{folder}"))]).contains("RESULT"));
    let refused = told(&good, &[("OPSMITH_AOT_ALLOW", other)]);
    assert!(
        refused.contains("is outside the folders that kernels may be loaded from")
            && refused.contains("move the file there, or add its folder"),
        "{refused}"
    );
    let none = told(&good, &[("OPSMITH_AOT_ALLOW", "")]);
    assert!(none.contains("OPSMITH_AOT_ALLOW names no folder; unset it to allow all"), "{none}");
}
