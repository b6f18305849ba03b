//! Calls operators with arguments that nobody means, and says which calls neither succeed nor fail.
//!
//! ```text
//! fuzz-calls [--seconds S | --each N] [--seed SEED] [--only OPERATOR]
//! fuzz-calls --case NUMBER [--only OPERATOR]
//! ```
//!
//! Runs for S seconds (60), or N calls of every operator. A call must end with a result or an error: not with a
//! panic, an abort or a signal, not after [`MOST_SECONDS`], and not with more memory than
//! [`MOST_BYTES`]. The calls run in a
//! process of their own, so that one that kills it is named like the others; `--case` runs one again. The exit code
//! is 1 if there were findings.

mod memory;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opsmith::LIBRARY;
use opsmith_runtime::op::OpDef;
use opsmith_tests::fuzz::{Case, Outcome, Random};

const USAGE: &str =
    "usage: fuzz-calls [--seconds S | --each N] [--seed SEED] [--only OPERATOR] [--case NUMBER]";

/// Memory of one call besides its arguments. A call that wants more has to be refused.
const MOST_BYTES: usize = 512 << 20;
/// Memory of tensors and of what kernels work in, which takes time to fill.
const MOST_TENSOR_BYTES: usize = 64 << 20;
/// Seconds of work of one call, of the slowest machine.
const MOST_SECONDS: u64 = 20;
/// Cached memory is given back after so many calls, lest it grow.
const CACHED_FOR: u64 = 64;

#[derive(Default)]
struct Options {
    seconds: Option<u64>,
    each: Option<u64>,
    seed: Option<u64>,
    only: Option<&'static OpDef>,
    case: Option<u64>,
    /// For the process that runs the calls: which comes first, and where to leave the number of the present one.
    first: u64,
    place: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    opsmith_runtime::allocator::set_limit(Some(MOST_TENSOR_BYTES));
    if let Some(seed) = options.case {
        return one(&options, seed);
    }
    match &options.place {
        Some(place) => {
            run(&options, place);
            ExitCode::SUCCESS
        }
        None => supervise(&options),
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        let text = args.next().ok_or_else(|| format!("`{arg}` needs a value"))?;
        let number = || text.parse::<u64>().map_err(|_| format!("`{arg}` needs a number, not `{text}`"));
        match &arg[..] {
            "--seconds" => options.seconds = Some(number()?),
            "--each" => options.each = Some(number()?),
            "--seed" => options.seed = Some(number()?),
            "--case" => options.case = Some(number()?),
            "--first" => options.first = number()?,
            "--place" => options.place = Some(text.into()),
            "--only" => options.only = Some(LIBRARY.get(&text).map_err(|error| error.to_string())?.0),
            _ => return Err(format!("unknown option `{arg}`")),
        }
    }
    Ok(options)
}

/// Runs one call, with all that can be said of it.
fn one(options: &Options, seed: u64) -> ExitCode {
    let case = on_a_small_stack(|| Case::new(seed, options.only));
    println!("{}", case.describe());
    memory::trace();
    watch::start(MOST_SECONDS);
    watch::begin(seed);
    let outcome = on_a_small_stack(|| memory::bounded(MOST_BYTES, || case.run()));
    println!("{outcome:?}");
    ExitCode::SUCCESS
}

/// Runs where an overflow of the stack shows: threads have no more by default.
fn on_a_small_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, work);
        match thread.expect("a thread can be started").join() {
            Ok(result) => result,
            Err(payload) => panic::resume_unwind(payload),
        }
    })
}

/// The number that the call of an index of a run goes by.
fn number_of(seed: u64, index: u64) -> u64 {
    Random::new(seed.wrapping_add(index.wrapping_mul(0x5851_f42d_4c95_7f2d))).draw()
}

/// The operator of an index of a run that goes through all of them.
fn operator_of(options: &Options, index: u64) -> Option<&'static OpDef> {
    options.only.or_else(|| {
        let ops = LIBRARY.ops;
        options.each.map(|_| ops[(index % ops.len() as u64) as usize])
    })
}

/// Runs calls one after the other, and prints a line for each finding.
fn run(options: &Options, place: &Path) {
    static FOUND: Mutex<String> = Mutex::new(String::new());
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
        let message = info.payload_as_str().unwrap_or("").lines().next().unwrap_or("").to_owned();
        *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = format!("panic at {place}: {message}");
    }));
    let seed = options.seed.unwrap_or(0);
    let end = Instant::now() + Duration::from_secs(options.seconds.unwrap_or(u32::MAX.into()));
    let last = options
        .each
        .map_or(u64::MAX, |each| each * if options.only.is_some() { 1 } else { LIBRARY.ops.len() as u64 });
    watch::start(MOST_SECONDS);
    let mut done = [0u64; 2];
    on_a_small_stack(|| {
        for index in options.first..last {
            if Instant::now() > end {
                break;
            }
            fs::write(place, index.to_string()).expect("the folder for temporary files can be written");
            if index % CACHED_FOR == 0 {
                opsmith_runtime::allocator::empty_cache();
            }
            let number = number_of(seed, index);
            let result = panic::catch_unwind(AssertUnwindSafe(|| {
                let case = Case::new(number, operator_of(options, index));
                watch::begin(index);
                let outcome = memory::bounded(MOST_BYTES, || case.run());
                watch::end();
                outcome
            }));
            watch::end();
            match result {
                Ok(outcome) => done[usize::from(outcome == Outcome::Refused)] += 1,
                Err(_) => {
                    println!("found {index} {}", FOUND.lock().unwrap_or_else(PoisonError::into_inner))
                }
            }
        }
    });
    println!("done {} {}", done[0], done[1]);
}

/// What the calls of a run came to.
#[derive(Default)]
struct Findings {
    /// The indices of the calls that a finding is of.
    found: BTreeMap<String, Vec<u64>>,
    /// Calls with results, and with errors.
    done: [u64; 2],
}

/// Runs the calls in other processes, one after the other if they die, and gathers what they found.
fn supervise(options: &Options) -> ExitCode {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed = options.seed.unwrap_or(now);
    let seconds = options.seconds.unwrap_or(60);
    println!("seed {seed}");
    let place = std::env::temp_dir().join(format!("opsmith-fuzz-calls-{}", std::process::id()));
    let start = Instant::now();
    let (mut findings, mut first) = (Findings::default(), 0);
    loop {
        let left = seconds.saturating_sub(start.elapsed().as_secs());
        if options.each.is_none() && left == 0 {
            break;
        }
        let mut command = Command::new(std::env::current_exe().expect("a program knows where it is"));
        command.args(["--seed", &seed.to_string(), "--first", &first.to_string(), "--place"]).arg(&place);
        match options.each {
            Some(each) => command.args(["--each", &each.to_string()]),
            None => command.args(["--seconds", &left.to_string()]),
        };
        if let Some(op) = options.only {
            command.args(["--only", op.name]);
        }
        let Some(death) = findings.gather(command) else { break };
        let index = fs::read_to_string(&place).ok().and_then(|text| text.parse().ok()).unwrap_or(first);
        let name = Case::new(number_of(seed, index), operator_of(options, index)).name();
        findings.found.entry(format!("{name}: {death}")).or_default().push(index);
        first = index + 1;
    }
    // It is not there if no call was made.
    let _ = fs::remove_file(&place);
    findings.report(options, seed)
}

impl Findings {
    /// Takes in what a process that runs calls prints; says how it died, if it did.
    fn gather(&mut self, mut command: Command) -> Option<String> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can start");
        let mut errors = child.stderr.take().expect("it is piped");
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            // A pipe that breaks ends the text.
            let _ = std::io::copy(&mut errors, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut finished = false;
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok) {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            match words[..] {
                ["found", index, what] => {
                    self.found.entry(what.to_owned()).or_default().push(index.parse().unwrap_or(0));
                }
                ["done", fine, refused] => {
                    finished = true;
                    self.done[0] += fine.parse::<u64>().unwrap_or(0);
                    self.done[1] += refused.parse::<u64>().unwrap_or(0);
                }
                _ => {}
            }
        }
        let status = child.wait().expect("it was started");
        let errors = errors.join().unwrap_or_default();
        (!finished).then(|| format!("{status}: {}", errors.lines().next().unwrap_or("nothing was printed")))
    }

    fn report(&self, options: &Options, seed: u64) -> ExitCode {
        let Findings { found, done } = self;
        println!("{} calls succeeded, {} were refused, {} findings", done[0], done[1], found.len());
        for (what, indices) in found {
            println!("\n{what}\n  {} times", indices.len());
            for &index in indices.iter().take(3) {
                let op = operator_of(options, index);
                let case = Case::new(number_of(seed, index), op);
                let only = op.map_or(String::new(), |op| format!(" --only {}", op.name));
                println!("  {}: fuzz-calls --case {}{only}", case.name(), number_of(seed, index));
            }
        }
        ExitCode::from(u8::from(!found.is_empty()))
    }
}
