//! The cost of the whole command on the largest known spec: PyTorch's 2,590 entries, imported.
//!
//! Figures of a release build; `.ci/run` calls it. Success and memory are asserted; times are printed, with the
//! expected ones where they are exceeded.

#[allow(dead_code, reason = "what a run printed is not compared here")]
mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../codegen/tests/data/pytorch");

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scale").join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The fastest of several runs; other load only adds time.
fn fastest(runs: usize, mut run: impl FnMut() -> Duration) -> Duration {
    (0..runs).map(|_| run()).min().unwrap()
}

/// The recent number of runnable programs per processor.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or(0.0);
    load / std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// Reports a time that is longer than expected. It fails nothing: load influences every time, so times are compared in
/// `bench`.
fn at_most(what: &str, took: Duration, allowed: Duration) {
    if took > allowed {
        let load = load();
        println!("{what} took {took:?}, more than {allowed:?}, with {load:.1} programs a processor");
    }
}

#[track_caller]
fn time(arguments: &[&str]) -> Duration {
    let start = Instant::now();
    let run = support::opsmith(arguments);
    let took = start.elapsed();
    assert_eq!(run.status, Some(0), "{}{}", run.stdout, run.stderr);
    took
}

/// Peak memory of a run, in MiB, as counted by the system.
#[track_caller]
fn memory(arguments: &[&str]) -> u64 {
    // The shell reads its child's peak: `time -v` is not available everywhere, the process's file is.
    let script = "\"$@\" >/dev/null & child=$!; most=0; while [ -r /proc/$child/status ]; do \
                  now=$(sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$child/status 2>/dev/null); \
                  [ -n \"$now\" ] && [ \"$now\" -gt \"$most\" ] && most=$now; done; wait $child; echo $most";
    let output = Command::new("bash")
        .args(["-c", script, "bash", env!("CARGO_BIN_EXE_opsmith")])
        .args(arguments)
        .output()
        .unwrap();
    let kib = String::from_utf8_lossy(&output.stdout).trim().parse::<u64>();
    kib.unwrap_or_else(|_| panic!("{output:?}")) / 1024
}

#[test]
#[ignore = "measures a release build; `.ci/run` calls it"]
fn pytorch_s_spec_is_checked_and_generated_in_time() {
    let folder = scratch("torch");
    let spec = folder.join("torch.yaml").display().to_string();
    let (native, derivatives) = (format!("{DATA}/native_functions.yaml"), format!("{DATA}/derivatives.yaml"));
    time(&["import-torch", &native, &derivatives, "-o", &spec]);
    let out = folder.join("generated");
    let to = out.display().to_string();
    let generate = ["generate", "--stand-alone", &spec, "-o", &to];
    let check = fastest(7, || time(&["check", "--stand-alone", &spec]));
    let clean = fastest(5, || {
        _ = std::fs::remove_dir_all(&out);
        time(&generate)
    });
    let unchanged = fastest(7, || time(&generate));
    // The peak depends on which threads overlap; use the median of several runs.
    let mut peaks: Vec<u64> = (0..5)
        .map(|_| {
            _ = std::fs::remove_dir_all(&out);
            memory(&generate)
        })
        .collect();
    peaks.sort_unstable();
    let most = peaks[peaks.len() / 2];
    println!(
        "check {} ms, generate {} ms, unchanged {} ms, {most} MiB of {peaks:?}",
        check.as_millis(),
        clean.as_millis(),
        unchanged.as_millis()
    );
    at_most("the check", check, Duration::from_millis(300));
    at_most("generation", clean, Duration::from_millis(500));
    at_most("generation without a change", unchanged, Duration::from_millis(100));
    assert!((1..=150).contains(&most), "{most} MiB");
}

/// Operators of several kinds, with gradients that call others.
fn operators(count: usize) -> String {
    let mut text = String::from(
        "edition: 1\nops:\n\
         - {func: \"times(Tensor self, Tensor other) -> Tensor\", doc: The product., pointwise: self * other, \
         operator: \"*\"}\n",
    );
    for number in 0..count / 2 {
        writeln!(
            text,
            "- func: point{number}.Tensor(Tensor self, Tensor other, *, Scalar alpha={number}) -> Tensor\n  \
             doc: Number {number}.\n  variants: [functional, inplace, out]\n  \
             pointwise: self + alpha * other\n  derivatives:\n    self: grad\n    other: grad * other\n\
             - func: written{number}(Tensor self, int[] dims, bool keep=False) -> Tensor\n  \
             doc: Number {number}.\n  check: [dims.len() < self.dim()]\n  shape: reduce(self, dims, keep)\n  \
             dtype: follow(self)\n  dispatch: {{CPU: module::written{number}}}\n  derivatives:\n    \
             self: point{number}(grad, self) * self"
        )
        .unwrap();
    }
    text
}

#[test]
#[ignore = "measures a release build; `.ci/run` calls it"]
fn ten_times_the_operators_cost_at_most_eleven_times() {
    let folder = scratch("flat");
    let cost = |count: usize| {
        let spec = folder.join(format!("{count}.yaml"));
        std::fs::write(&spec, operators(count)).unwrap();
        let out = folder.join(format!("{count}"));
        let (spec, to) = (spec.display().to_string(), out.display().to_string());
        fastest(7, || {
            _ = std::fs::remove_dir_all(&out);
            time(&["check", "--stand-alone", &spec]) + time(&["generate", "--stand-alone", &spec, "-o", &to])
        })
    };
    let (few, many) = (cost(300), cost(3000));
    let factor = many.as_secs_f64() / few.as_secs_f64();
    println!(
        "300 operators {} ms, 3000 operators {} ms: {factor:.2} times",
        few.as_millis(),
        many.as_millis()
    );
    at_most("ten times the operators", many, few * 11);
}
