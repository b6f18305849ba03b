//! Recorded calls on CUDA devices, values and gradients, on the stand-ins for the driver, the compiler and the libraries of the
//! vendor (`tests/cuda`). `OPSMITH_CUDA_EVERY=3` runs each third overload alone, `OPSMITH_OPERATORS=mm,bmm` some, and
//! `OPSMITH_ON_DEVICE=1` a real device.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use opsmith::Device;
use opsmith_stand_in::process::{self, StandIns};
use opsmith_tests::parity::{Selection, overloads, run_overload};

/// The variable that names the folder whose calls a process runs.
const FOLDER: &str = "OPSMITH_CUDA_PARITY";

/// Calls of an overload that have other results on devices.
struct Apart {
    overload: &'static str,
    /// The largest number of them.
    most: usize,
    /// Texts that each failure has.
    says: &'static [&'static str],
    reason: &'static str,
}

const APART: [Apart; 2] = [
    Apart {
        overload: "as_strided.default",
        most: 1,
        says: &[],
        reason: "reads memory outside of the tensor that was recorded, which nobody can repeat",
    },
    Apart {
        overload: "convolution.default",
        most: 7,
        says: &["elements differ", ": float16["],
        reason: "rounds sums of float16 once, the recorded ones, which the host repeats, at each step",
    },
];

impl Apart {
    fn excuses(&self, overload: &str, failures: &[String]) -> bool {
        let is_known = |failure: &String| self.says.iter().all(|text| failure.contains(text));
        self.overload == overload && failures.len() <= self.most && failures.iter().all(is_known)
    }
}

/// The process that a test below starts.
#[test]
fn worker() {
    process::work(&[("calls", calls)]);
}

fn calls() {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from).expect("a folder of calls");
    let selection = Selection { device: Some(Device::cuda(0)), declared: true, ..Selection::default() };
    let (names, _) = overloads(&folder, &selection).unwrap();
    let every = std::env::var("OPSMITH_CUDA_EVERY").map_or(1, |text| text.parse().expect("a number"));
    let chosen = std::env::var("OPSMITH_OPERATORS").ok();
    let is_chosen = |name: &String| {
        let short = name.split('.').next().unwrap_or_default();
        chosen.as_ref().is_none_or(|chosen| chosen.split(',').any(|one| one == name || one == short))
    };
    let names: Vec<String> = names.into_iter().step_by(every).filter(is_chosen).collect();
    let (mut passed, mut failures) = (0, Vec::new());
    // One after the other: a call that is refused because of elements is so at the next wait, of whichever thread.
    for name in &names {
        let report = run_overload(&folder, name, Device::cuda(0)).unwrap();
        passed += report.passed();
        if report.failures.is_empty() {
            continue;
        }
        let Some(apart) = APART.iter().find(|apart| apart.excuses(name, &report.failures)) else {
            failures.push(report.to_string());
            continue;
        };
        println!(
            "{} of {} calls differ, since it {}: {report}",
            report.failures.len(),
            report.total,
            apart.reason
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The line before is that of the test's name.
    println!("\nPASSED {} overloads, {passed} calls", names.len());
}

/// The stand-ins.
static STAND_INS: LazyLock<StandIns> = LazyLock::new(|| {
    StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-parity"), "cublaslt,cufft,cudnn")
});

/// Runs the calls of a folder.
#[track_caller]
fn done(folder: &Path) {
    let text = STAND_INS.done("calls", &[(FOLDER, folder.to_str().unwrap())]);
    println!("{}", text.lines().find(|line| line.starts_with("PASSED ")).expect("the number of calls"));
}

fn of_project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

#[test]
fn recorded_calls_give_the_recorded_results() {
    done(&of_project("parity"));
}

#[test]
fn calls_at_which_operators_are_easily_wrong_give_what_was_recorded() {
    done(&of_project("recorded"));
}

/// All recorded calls, of the folders that `OPSMITH_PARITY` names, or of those beside the project.
#[test]
#[ignore = "needs the recorded calls beside the project, and minutes; a step of .ci/run"]
fn all_recorded_calls_give_the_recorded_results() {
    let shared = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    let folders: Vec<PathBuf> = match std::env::var_os("OPSMITH_PARITY") {
        Some(list) => std::env::split_paths(&list).collect(),
        None => ["aten_cases", "aten_cases_more"].map(shared).into(),
    };
    for folder in folders {
        if folder.is_dir() {
            done(&folder);
        } else {
            println!("not run: {} is not here", folder.display());
        }
    }
}
