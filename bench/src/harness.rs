//! Times one case and prints its line.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use opsmith::Tensor;
use opsmith_graph::Graph;
use opsmith_profile::{Event, Kind};
use serde_json::{Map, Value, json};

use crate::Arguments;
use crate::machine::{self, Usage};

/// Target duration of one repetition, in nanoseconds.
const REPETITION: f64 = 4e6;
/// Maximal duration of a case, in nanoseconds.
const BUDGET: f64 = 5e9;
/// Maximal share of a processor used by other processes while a case is timed.
const DISTURBED: f64 = 0.15;

/// The work of one call, for rates.
#[derive(Clone, Copy, Default)]
pub struct Work {
    /// Bytes read and written.
    pub bytes: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Elements computed.
    pub elements: f64,
}

/// No work to compute rates from: the cost of a call.
pub const CALL: Work = Work { bytes: 0.0, flops: 0.0, elements: 0.0 };

impl Work {
    /// Work of this number of bytes per element.
    pub fn memory(bytes_per_element: f64, elements: f64) -> Work {
        Work { bytes: bytes_per_element * elements, elements, flops: 0.0 }
    }

    /// Work of this number of floating-point operations.
    pub fn flops(flops: f64) -> Work {
        Work { flops, ..CALL }
    }
}

/// Times cases and prints their lines.
pub struct Harness {
    threads: usize,
    only: String,
    run: String,
    gate: Duration,
    /// Whether each case runs once and nothing is timed.
    is_once: bool,
    limits: Option<PathBuf>,
    /// The operator that the current case calls, if it calls one alone.
    operator: Option<String>,
    measured_limits: Option<(Instant, Map<String, Value>)>,
}

impl Harness {
    pub fn new(threads: usize, arguments: &Arguments) -> Harness {
        Harness {
            threads,
            only: arguments.only.clone(),
            run: arguments.run.clone(),
            gate: Duration::from_secs_f64(arguments.gate),
            is_once: arguments.once,
            limits: arguments.limits.clone(),
            operator: None,
            measured_limits: None,
        }
    }

    /// Prints a line about the program itself.
    pub fn print_info(&self) {
        let version = env!("CARGO_PKG_VERSION");
        println!(
            "{}",
            json!({"lib": "opsmith", "case": "info", "run": self.run, "threads": self.threads, "version": version})
        );
    }

    /// Whether any case of a group is selected, so that others need not allocate.
    pub fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || group.contains(&self.only) || self.only.starts_with(group)
    }

    /// Whether cases run once, for correctness alone.
    pub fn is_once(&self) -> bool {
        self.is_once
    }

    /// Times a call; returns the median in nanoseconds, unless the case is not selected.
    ///
    /// # Panics
    /// If a call fails: its time says nothing.
    pub fn case<R: Outcome>(&mut self, name: &str, work: Work, mut call: impl FnMut() -> R) -> Option<f64> {
        if name.contains(&self.only) {
            if let Some(error) = call().error() {
                panic!("{name} failed: {error}");
            }
            self.operator = called(&mut call);
        }
        let median = self.timed(name, work, |count| {
            let start = Instant::now();
            for _ in 0..count {
                black_box(call());
            }
            start.elapsed()
        });
        self.operator = None;
        median
    }

    /// Times the number of calls that `timer` receives. Returns the median of one call, as [`Harness::case`].
    pub fn timed(&mut self, name: &str, work: Work, mut timer: impl FnMut(u64) -> Duration) -> Option<f64> {
        if !name.contains(&self.only) {
            return None;
        }
        let mut timer = |count: u64| timer(count).as_nanos() as f64;
        if self.is_once {
            timer(1);
            self.line(name, json!({"ran": true}));
            return None;
        }
        self.measure_limits();
        let inner = calibrate(&mut timer);
        let repetitions = (BUDGET / (timer(inner).max(1.0))).clamp(20.0, 31.0) as usize;
        let mut best: Option<Sample> = None;
        for _ in 0..3 {
            machine::wait_for_quiet(self.gate);
            let before = Usage::now();
            // Caches and clock rates may have cooled down during the wait.
            timer((inner / 4).max(1));
            let times: Vec<f64> = (0..repetitions).map(|_| timer(inner) / inner as f64).collect();
            let shares = before.shares();
            if best.as_ref().is_none_or(|best| shares.other < best.other) {
                best = Some(Sample { times, other: shares.other, own: shares.own });
            }
            if shares.other < DISTURBED {
                break;
            }
        }
        best.map(|sample| self.print(name, work, inner, sample))
    }

    /// Prints a line with other fields than times.
    pub fn line(&self, name: &str, fields: Value) {
        let mut line = json!({"lib": "opsmith", "run": self.run, "case": name, "threads": self.threads});
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        println!("{line}");
    }

    /// Prints the line of a case and returns its median.
    fn print(&self, name: &str, work: Work, inner: u64, mut sample: Sample) -> f64 {
        sample.times.sort_by(f64::total_cmp);
        let times = &sample.times;
        let (count, median) = (times.len(), median(times));
        let mut line = json!({
            "lib": "opsmith", "run": self.run, "case": name, "threads": self.threads,
            "median_ns": rounded(median, 2), "min_ns": rounded(times[0], 2),
            "p90_ns": rounded(times[count * 9 / 10], 2), "reps": count, "inner": inner,
            "other": rounded(sample.other, 3), "cpu": rounded(sample.own, 2),
        });
        if let Some((_, limits)) = &self.measured_limits {
            for limit in ["copy", "triad_nt", "add", "read", "fma512", "fma512d", "bf16"] {
                let value = limits.get(&format!("{limit}_{}", self.threads));
                line[format!("lim_{limit}")] = value.cloned().unwrap_or_default();
            }
        }
        if let Some(operator) = &self.operator {
            line["op"] = operator.as_str().into();
        }
        if work.bytes > 0.0 {
            line["gbs"] = rounded(work.bytes / median, 3);
        }
        if work.flops > 0.0 {
            line["gflops"] = rounded(work.flops / median, 2);
        }
        if work.elements > 0.0 {
            line["ns_per_elem"] = rounded(median / work.elements, 5);
        }
        println!("{line}");
        median
    }

    /// The machine's own limits, measured at most 20 seconds before a case.
    fn measure_limits(&mut self) {
        let fresh = self.measured_limits.as_ref().is_some_and(|(at, _)| at.elapsed().as_secs() < 20);
        let Some(program) = self.limits.as_ref().filter(|_| !fresh) else { return };
        machine::wait_for_quiet(self.gate);
        let output = Command::new(program).arg("--quick").output();
        let limits = output.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
        self.measured_limits = Some((Instant::now(), limits.unwrap_or_default()));
    }
}

/// The operator of a call that is of one operator alone, by its full name: a profile has it. Calls that profile
/// themselves have none.
fn called<R>(call: &mut impl FnMut() -> R) -> Option<String> {
    let (result, profile) = opsmith_profile::profile(call).ok()?;
    black_box(result);
    let is_call = |event: &&Event| event.kind == Kind::Call;
    let inside_call = |event: &Event| {
        let parent = event.parent.and_then(|index| profile.events.get(index as usize));
        parent.is_some_and(|parent| parent.kind != Kind::Range)
    };
    let mut calls = profile.events.iter().filter(is_call).filter(|event| !inside_call(event));
    match (calls.next(), calls.next()) {
        (Some(only), None) => profile.operator_of(only).map(|operator| operator.name.clone()),
        _ => None,
    }
}

struct Sample {
    times: Vec<f64>,
    other: f64,
    own: f64,
}

/// Number of calls per repetition.
fn calibrate(timer: &mut impl FnMut(u64) -> f64) -> u64 {
    (0..3).for_each(|_| _ = timer(1));
    let mut count = 1u64;
    let nanoseconds = loop {
        let nanoseconds = timer(count);
        if nanoseconds > 0.6 * REPETITION {
            break nanoseconds;
        }
        let wanted = (count as f64 * REPETITION / nanoseconds.max(1.0)) as u64;
        count = (count * 8).min(wanted.max(count + 1));
    };
    ((REPETITION * count as f64 / nanoseconds) as u64).max(1)
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10f64.powi(digits);
    ((value * scale).round() / scale).into()
}

/// The result of a case's call.
pub trait Outcome {
    /// The message of a failed call.
    fn error(&self) -> Option<String>;
}

impl<T, E: std::fmt::Display> Outcome for Result<T, E> {
    fn error(&self) -> Option<String> {
        self.as_ref().err().map(E::to_string)
    }
}

/// Results of calls that cannot fail.
macro_rules! always {
    ($($ty:ty),*) => {$(
        impl Outcome for $ty {
            fn error(&self) -> Option<String> {
                None
            }
        }
    )*};
}

always!((), Tensor, Graph, &[i64]);
