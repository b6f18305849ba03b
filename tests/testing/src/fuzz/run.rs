//! Runs of many calls, in a separate process: a call that kills it is reported like the others.
//!
//! In: a library, a number of calls or seconds, and the command of the process that runs them. Out: [`Findings`]. The
//! two processes communicate through a folder: the number of the present call, and a line for each finding.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;

use super::{Case, Outcome, Random, watch};

/// Limit of the memory of tensors and scratch, which takes time to fill. A call that needs more must return an error.
const MOST_TENSOR_BYTES: usize = 64 << 20;
/// Limit of one call's duration in seconds, on the slowest machine.
pub const MOST_SECONDS: u64 = if cfg!(debug_assertions) { 60 } else { 20 };
/// Cached memory is released after this number of calls, so that it does not grow.
const CACHED_FOR: u64 = 64;

/// The calls of a run.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The library whose operators are called.
    pub library: &'static Library,
    /// The seed of the calls.
    pub seed: u64,
    /// Number of calls of every operator; if absent, any operators until the time is over.
    pub each: Option<u64>,
    /// Duration in seconds, if the number of calls is not given.
    pub seconds: u64,
    /// The only operator to call.
    pub only: Option<&'static OpDef>,
}

/// Runs one call within memory limits; a program with an allocator of its own has stricter ones.
pub type Bounded = fn(&Case) -> Outcome;

impl Plan {
    /// The seed of the call at an index.
    pub fn number(&self, index: u64) -> u64 {
        Random::new(self.seed.wrapping_add(index.wrapping_mul(0x5851_f42d_4c95_7f2d))).draw()
    }

    /// The operator at an index, if all are called in turn.
    pub fn operator(&self, index: u64) -> Option<&'static OpDef> {
        let ops = self.library.ops;
        self.only.or_else(|| self.each.map(|_| ops[(index % ops.len() as u64) as usize]))
    }

    /// The call at an index.
    pub fn case(&self, index: u64) -> Case {
        Case::new(self.number(index), self.library, self.operator(index))
    }

    fn last(&self) -> u64 {
        let of_one = |each: u64| each * if self.only.is_some() { 1 } else { self.library.ops.len() as u64 };
        self.each.map_or(u64::MAX, of_one)
    }

    /// Runs the calls from an index on, and writes the outcomes into a folder. For a separate process.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn run(&self, first: u64, folder: &Path, bounded: Bounded) {
        static FOUND: Mutex<String> = Mutex::new(String::new());
        panic::set_hook(Box::new(|info| {
            let place = info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
            let message = info.payload_as_str().unwrap_or("").lines().next().unwrap_or("").to_owned();
            *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = format!("panic at {place}: {message}");
        }));
        opsmith_runtime::allocator::set_limit(Some(MOST_TENSOR_BYTES));
        watch::start(MOST_SECONDS);
        let say = |line: String| {
            let file = OpenOptions::new().create(true).append(true).open(folder.join(SAID));
            writeln!(file.expect("the folder can be written"), "{line}").expect("the folder can be written");
        };
        let end = Instant::now() + Duration::from_secs(self.seconds);
        let mut done = [0u64; 2];
        on_a_small_stack(|| {
            for index in first..self.last() {
                if self.each.is_none() && Instant::now() > end {
                    break;
                }
                fs::write(folder.join(PRESENT), index.to_string()).expect("the folder can be written");
                if index % CACHED_FOR == 0 {
                    opsmith_runtime::allocator::empty_cache();
                }
                let result = panic::catch_unwind(AssertUnwindSafe(|| {
                    let case = self.case(index);
                    watch::begin(index);
                    bounded(&case)
                }));
                watch::end();
                match result {
                    Ok(outcome) => done[usize::from(outcome == Outcome::Refused)] += 1,
                    Err(_) => {
                        say(format!(
                            "found {index} {}",
                            FOUND.lock().unwrap_or_else(PoisonError::into_inner)
                        ));
                    }
                }
            }
        });
        say(format!("done {} {}", done[0], done[1]));
    }

    /// Runs the calls in processes that `start` creates from the first index, the remaining seconds and the folder, one
    /// after the other if they die.
    ///
    /// # Errors
    /// If the folder for temporary files cannot be written, or a process cannot be started.
    pub fn supervise(&self, start: &mut dyn FnMut(u64, u64, &Path) -> Command) -> std::io::Result<Findings> {
        let folder = std::env::temp_dir().join(format!(
            "opsmith-odd-calls-{}-{}",
            std::process::id(),
            self.library.name
        ));
        fs::create_dir_all(&folder)?;
        let begin = Instant::now();
        let (mut findings, mut first) = (Findings::default(), 0);
        loop {
            let left = self.seconds.saturating_sub(begin.elapsed().as_secs());
            if self.each.is_none() && left == 0 {
                break;
            }
            let mut child =
                start(first, left, &folder).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let mut errors = String::new();
            if let Some(mut pipe) = child.stderr.take() {
                let mut bytes = Vec::new();
                // A broken pipe ends the text.
                let _ = pipe.read_to_end(&mut bytes);
                errors = String::from_utf8_lossy(&bytes).into_owned();
            }
            let status = child.wait()?;
            let said = fs::read_to_string(folder.join(SAID)).unwrap_or_default();
            // It does not exist if there was no output.
            let _ = fs::remove_file(folder.join(SAID));
            if findings.take_in(&said) {
                break;
            }
            let index = fs::read_to_string(folder.join(PRESENT)).ok().and_then(|text| text.parse().ok());
            let index = index.unwrap_or(first);
            let why = errors.lines().next().unwrap_or("nothing was printed");
            let what = format!("{}: {status}: {why}", self.case(index).name());
            findings.found.entry(what).or_default().push(index);
            first = index + 1;
        }
        fs::remove_dir_all(&folder)?;
        Ok(findings)
    }
}

/// The file with the number of the present call.
const PRESENT: &str = "present";
/// The file with a line for each finding, and one at the end.
const SAID: &str = "said";

/// Runs where a stack overflow shows: threads have no larger stacks by default.
pub fn on_a_small_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, work);
        match thread.expect("a thread can be started").join() {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    })
}

/// The outcomes of a run.
#[derive(Default, Debug)]
pub struct Findings {
    /// The indices of the calls with each finding.
    pub found: BTreeMap<String, Vec<u64>>,
    /// Calls with results.
    pub succeeded: u64,
    /// Calls with errors.
    pub refused: u64,
}

impl Findings {
    /// Parses a process's output; returns whether it finished.
    fn take_in(&mut self, said: &str) -> bool {
        let mut finished = false;
        for line in said.lines() {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            match words[..] {
                ["found", index, what] => {
                    self.found.entry(what.to_owned()).or_default().push(index.parse().unwrap_or(0));
                }
                ["done", fine, refused] => {
                    finished = true;
                    self.succeeded += fine.parse::<u64>().unwrap_or(0);
                    self.refused += refused.parse::<u64>().unwrap_or(0);
                }
                _ => {}
            }
        }
        finished
    }

    /// A text with all findings; `again` gives the command that repeats a call.
    pub fn describe(&self, plan: &Plan, again: &dyn Fn(u64) -> String) -> String {
        let Findings { found, succeeded, refused } = self;
        let mut text =
            format!("{succeeded} calls succeeded, {refused} were refused, {} findings", found.len());
        for (what, indices) in found {
            let _ = write!(text, "\n\n{what}\n  {} times", indices.len());
            for &index in indices.iter().take(3) {
                let _ = write!(text, "\n  {}: {}", plan.case(index).name(), again(index));
            }
        }
        text
    }
}
