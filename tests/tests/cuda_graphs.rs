//! Graphs on the stand-ins for CUDA: chains of element-wise calls as one kernel, bit for bit as separate launches, and runs that
//! are recorded and replayed.
//!
//! Each part is done in a process of its own, as in `cuda.rs`; the driver's stand-in prints the number of launches at its end.

mod cuda_graphs_work;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cuda_graphs_work::fused::{conversions, launched, patterns, random_programs};
use cuda_graphs_work::recorded::{
    costs, failures, lost, reasons, replayed, threads, training, transfers, working_memory,
};

/// The variable that names the part of a process.
const PART: &str = "OPSMITH_CUDA_GRAPHS";

/// A name and the work of a process.
type Part = (&'static str, fn());

const PARTS: &[Part] = &[
    ("patterns", patterns),
    ("random", random_programs),
    ("separate", || launched(false)),
    ("fused", || launched(true)),
    ("conversions", conversions),
    ("replayed", replayed),
    ("single", || training(false)),
    ("recorded", || training(true)),
    ("memory", working_memory),
    ("reasons", reasons),
    ("threads", threads),
    ("transfers", transfers),
    ("failures", failures),
    ("lost", lost),
    ("costs", costs),
];

#[test]
fn worker() {
    let Ok(name) = std::env::var(PART) else { return };
    let (_, part) = PARTS.iter().find(|(known, _)| *known == name).expect("a part of that name");
    part();
    println!("DONE {name}");
}

static STAND_IN: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-graphs");
    opsmith_stand_in::driver(&folder);
    opsmith_stand_in::nvrtc(&folder);
    folder
});

/// The output of a part, which succeeds.
#[track_caller]
fn done(part: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env(PART, part);
    command.envs(variables.iter().copied());
    if std::env::var_os("OPSMITH_ON_DEVICE").is_none() {
        command.env("LD_LIBRARY_PATH", &*STAND_IN).env("OPSMITH_CACHE_DIR", STAND_IN.join("cache"));
        command.env_remove("OPSMITH_NVRTC").env("OPSMITH_CUDA_LIBRARIES", "off");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(&format!("DONE {part}")), "{part}: {text}\n{said}");
    text
}

/// A count that the driver's stand-in prints; `None` on a real device.
fn counted(text: &str, name: &str) -> Option<i64> {
    let report = text.lines().find(|line| line.contains("STANDIN live="))?;
    let count = report.split(' ').find_map(|word| word.strip_prefix(&format!("{name}=")))?;
    Some(count.parse().unwrap())
}

/// As [`done`], where the driver refuses nothing.
#[track_caller]
fn done_strictly(part: &str) -> String {
    let text = done(part, &[("STANDIN_DEVICES", "2")]);
    assert!(counted(&text, "refused").is_none_or(|refused| refused == 0), "{text}");
    text
}

#[test]
fn chains_of_calls_are_one_kernel() {
    done_strictly("patterns");
}

#[test]
fn conversions_join_chains() {
    done_strictly("conversions");
}

#[test]
fn random_chains() {
    done_strictly("random");
}

#[test]
fn a_chain_is_one_launch() {
    let (separate, fused) = (done_strictly("separate"), done_strictly("fused"));
    let launches = |text: &str| counted(text, "launches");
    // Nine calls and one kernel, each ten times, beside those that make the inputs.
    assert_eq!(launches(&separate).zip(launches(&fused)).map(|(one, other)| one - other).unwrap_or(80), 80);
}

#[test]
fn a_replay_is_the_eager_run() {
    done_strictly("replayed");
}

#[test]
fn a_recorded_run_is_one_request() {
    let (single, recorded) = (done_strictly("single"), done_strictly("recorded"));
    let Some((one, other)) = counted(&single, "launches").zip(counted(&recorded, "launches")) else { return };
    assert_eq!(one - other, 39 * 6, "{one} and {other} launches");
    assert_eq!((counted(&recorded, "graphs"), counted(&recorded, "replays")), (Some(1), Some(39)));
    assert_eq!((counted(&single, "graphs"), counted(&single, "replays")), (Some(0), Some(0)));
}

#[test]
fn recorded_work_keeps_its_working_memory() {
    done_strictly("memory");
}

#[test]
fn a_run_that_is_not_recorded_has_a_reason() {
    done_strictly("reasons");
}

#[test]
fn transfers_lie_between_recorded_stretches() {
    done_strictly("transfers");
}

#[test]
fn threads_replay_work_of_their_own() {
    done_strictly("threads");
}

#[test]
fn errors_of_recorded_work_arrive() {
    done_strictly("failures");
}

#[test]
fn a_lost_context_is_an_error() {
    if std::env::var_os("OPSMITH_ON_DEVICE").is_none() {
        done("lost", &[]);
    }
}

#[test]
#[ignore = "prints times"]
fn costs_of_runs() {
    println!("{}", done("costs", &[]));
}
