//! Recorded results of checks, for documents: a file of lines of JSON, which `opsmith_tools::results` reads.
//!
//! In: outcomes of checks, while the environment variable `OPSMITH_RESULTS` names a folder, or a file that ends in `.jsonl`.
//! Out: in a folder, a file for each process. Lines are appended whole, so that a run that ends early leaves a file that
//! can be read. Without the variable, nothing is written and nothing costs time.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use opsmith::DType;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;
use serde_json::{Value, json};

use crate::report::Report;

/// The environment variable that names the folder or file.
pub const VARIABLE: &str = "OPSMITH_RESULTS";

/// The version of the lines.
const VERSION: u32 = 1;

/// The outcome of a check of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CheckOutcome {
    /// It passed, with the number of comparisons.
    Passed(usize),
    /// It failed, with its findings.
    Failed(Vec<String>),
    /// It was left out, with the reason.
    Skipped(String),
}

impl From<&Report> for CheckOutcome {
    fn from(report: &Report) -> CheckOutcome {
        match (report.wrong.is_empty(), report.compared) {
            (false, _) => CheckOutcome::Failed(report.wrong.clone()),
            (true, 0) => CheckOutcome::Skipped("there is nothing to compare".to_owned()),
            (true, compared) => CheckOutcome::Passed(compared),
        }
    }
}

/// Whether results are recorded.
pub fn wanted() -> bool {
    file().is_some()
}

/// Records the outcome of a check; without a dtype, of all dtypes that the check uses.
///
/// # Panics
/// If the file cannot be written.
pub fn record(op: &OpDef, dtype: Option<DType>, check: &str, outcome: &CheckOutcome) {
    record_on(HOST, op, dtype, check, outcome);
}

/// The name of the host's backend in recorded results, which is its key in a spec.
const HOST: &str = "CPU";

/// The name of devices in recorded results.
static DEVICES: OnceLock<&'static str> = OnceLock::new();

/// Names the devices that this process computes on, for the results of checks on them; such as `CUDA`, or `CUDA (stand-in)`.
/// Without a name they are not recorded. The first name stays.
pub fn name_devices(name: &'static str) {
    DEVICES.get_or_init(|| name);
}

/// Records the outcome of a check on a device, if devices have a name.
///
/// # Panics
/// If the file cannot be written.
pub fn record_on_device(op: &OpDef, dtype: DType, check: &str, outcome: &CheckOutcome) {
    if let Some(name) = DEVICES.get() {
        record_on(name, op, Some(dtype), check, outcome);
    }
}

fn record_on(backend: &str, op: &OpDef, dtype: Option<DType>, check: &str, outcome: &CheckOutcome) {
    let mut line = json!({
        "op": op.name, "backend": backend, "dtype": dtype.map_or("any", DType::name), "check": check,
    });
    match outcome {
        CheckOutcome::Passed(compared) => line["passed"] = json!(compared),
        CheckOutcome::Failed(findings) => line["failed"] = json!(findings),
        CheckOutcome::Skipped(why) => line["skipped"] = json!(why),
    }
    append(op.library, &line);
}

/// Records a call in Rust with its printed result.
///
/// # Panics
/// If the file cannot be written.
pub fn record_example(op: &OpDef, code: &str, output: &str) {
    append(op.library, &json!({ "op": op.name, "example": { "code": code, "output": output } }));
}

/// Records the sizes of a sample's results as formulas of the sizes of its arguments.
///
/// # Panics
/// If the file cannot be written.
pub(crate) fn record_sizes(op: &OpDef, sizes: &Value) {
    append(op.library, &json!({ "op": op.name, "sizes": sizes }));
}

/// The open file, and the library of its last head.
struct Recorder {
    file: File,
    path: PathBuf,
    library: Option<&'static str>,
    started: f64,
}

fn file() -> Option<&'static Mutex<Recorder>> {
    static FILE: OnceLock<Option<Mutex<Recorder>>> = OnceLock::new();
    let open = || {
        let place = PathBuf::from(std::env::var_os(VARIABLE).filter(|place| !place.is_empty())?);
        let path = file_in(&place);
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.unwrap_or_else(|error| panic!("{}", advice(&path, &error)));
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        Some(Mutex::new(Recorder { file, path, library: None, started }))
    };
    FILE.get_or_init(open).as_ref()
}

/// The file of this process: the named one, or one of its own in the named folder.
fn file_in(place: &Path) -> PathBuf {
    if place.extension().is_some_and(|ending| ending == "jsonl") {
        return place.to_owned();
    }
    std::fs::create_dir_all(place).unwrap_or_else(|error| panic!("{}", advice(place, &error)));
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::file_stem).unwrap_or("tests".as_ref());
    place.join(format!("{}-{}.jsonl", program.to_string_lossy(), std::process::id()))
}

fn advice(path: &Path, error: &std::io::Error) -> String {
    let path = path.display();
    format!("results cannot be written to {path} ({error}); set {VARIABLE} to a folder that can, or unset it")
}

/// Appends a line, after the head of its library if another's was the last.
fn append(library: &'static Library, line: &Value) {
    let Some(recorder) = file() else { return };
    let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    if recorder.library != Some(library.name) {
        recorder.library = Some(library.name);
        let head = json!({
            "opsmith_results": VERSION, "library": library.name, "fingerprint": library.fingerprint,
            "time": recorder.started,
        });
        text = format!("{head}\n");
    }
    text.push_str(&format!("{line}\n"));
    if let Err(error) = recorder.file.write_all(text.as_bytes()) {
        panic!("{}", advice(&recorder.path, &error));
    }
}
