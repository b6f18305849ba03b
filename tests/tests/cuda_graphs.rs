//! Graphs on the stand-ins for CUDA: chains of element-wise calls as one kernel, bit for bit as separate launches, and runs that
//! are recorded and replayed.
//!
//! Each part is done in a process of its own, as in `cuda.rs`; the driver's stand-in prints the number of launches at its end.

mod cuda_graphs_work;

use std::path::Path;
use std::sync::LazyLock;

use cuda_graphs_work::composed::composed;
use cuda_graphs_work::fused::{conversions, launched, patterns, random_programs};
use cuda_graphs_work::recorded::{
    costs, failures, lost, reasons, replayed, threads, training, transfers, working_memory,
};
use cuda_graphs_work::regions::{branches, divided, loops, sizes};
use opsmith_stand_in::process::{self, Part, StandIns, counted};

const PARTS: &[Part] = &[
    ("patterns", patterns),
    ("random", random_programs),
    ("separate", || launched(false)),
    ("fused", || launched(true)),
    ("conversions", conversions),
    ("composed", composed),
    ("replayed", replayed),
    ("single", || training(false)),
    ("recorded", || training(true)),
    ("memory", working_memory),
    ("reasons", reasons),
    ("threads", threads),
    ("transfers", transfers),
    ("loops", loops),
    ("branches", branches),
    ("divided", divided),
    ("sizes", sizes),
    ("failures", failures),
    ("lost", lost),
    ("costs", costs),
];

#[test]
fn worker() {
    process::work(PARTS);
}

static STAND_INS: LazyLock<StandIns> =
    LazyLock::new(|| StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-graphs"), "off"));

/// The output of a part, which succeeds without a request that the driver refuses.
#[track_caller]
fn done_strictly(part: &str) -> String {
    STAND_INS.done_strictly(part, &[("STANDIN_DEVICES", "2")])
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
fn a_product_and_its_activation_are_one_request_to_the_library() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-graphs-library");
    StandIns::new(folder, "cublaslt").done_strictly("composed", &[]);
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
fn bodies_of_loops_and_branches_are_recorded() {
    done_strictly("loops");
    done_strictly("branches");
    done_strictly("divided");
}

#[test]
fn sizes_that_depend_on_data_are_read_between_records() {
    done_strictly("sizes");
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
    if !process::on_device() {
        STAND_INS.done("lost", &[]);
    }
}

#[test]
#[ignore = "prints times"]
fn costs_of_runs() {
    println!("{}", STAND_INS.done("costs", &[]));
}
