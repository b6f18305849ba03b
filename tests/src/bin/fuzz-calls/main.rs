//! Fuzzes operators with odd arguments, and reports calls that neither succeed nor return an error.
//!
//! ```text
//! fuzz-calls [--seconds S | --each N] [--seed SEED] [--only OPERATOR]
//! fuzz-calls --case NUMBER [--only OPERATOR]
//! ```
//!
//! Runs for S seconds (60), or N calls of every operator. A call must end with a result or an error: not with a panic,
//! an abort or a signal, within [`MOST_SECONDS`] and [`MOST_BYTES`] of memory. The calls run in a separate process, so
//! that one that kills it is reported like the others; `--case` runs one again. The exit code is 1 if there were
//! findings.

mod memory;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use opsmith::LIBRARY;
use opsmith_runtime::op::OpDef;
use opsmith_testing::fuzz::{Case, MOST_SECONDS, Outcome, Plan, on_a_small_stack, watch};

const USAGE: &str =
    "usage: fuzz-calls [--seconds S | --each N] [--seed SEED] [--only OPERATOR] [--case NUMBER]";

/// Memory of one call besides its arguments. A call that needs more must return an error.
const MOST_BYTES: usize = 512 << 20;

#[derive(Default)]
struct Options {
    seconds: Option<u64>,
    each: Option<u64>,
    seed: Option<u64>,
    only: Option<&'static OpDef>,
    case: Option<u64>,
    /// For the process that runs the calls: the first call, and the folder for results.
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
    if let Some(seed) = options.case {
        return one(&options, seed);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let plan = Plan {
        library: &LIBRARY,
        seed: options.seed.unwrap_or(now),
        each: options.each,
        seconds: options.seconds.unwrap_or(60),
        only: options.only,
    };
    match &options.place {
        Some(place) => {
            plan.run(options.first, place, bounded);
            ExitCode::SUCCESS
        }
        None => supervise(&plan),
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

fn bounded(case: &Case) -> Outcome {
    memory::bounded(MOST_BYTES, || case.run())
}

/// Runs one call, and prints its details.
fn one(options: &Options, seed: u64) -> ExitCode {
    let case = on_a_small_stack(|| Case::new(seed, &LIBRARY, options.only));
    println!("{}", case.describe());
    memory::trace();
    watch::start(MOST_SECONDS);
    watch::begin(seed);
    let outcome = on_a_small_stack(|| bounded(&case));
    println!("{outcome:?}");
    ExitCode::SUCCESS
}

/// Runs the calls in other processes, and prints the findings.
fn supervise(plan: &Plan) -> ExitCode {
    println!("seed {}", plan.seed);
    let findings = plan.supervise(&mut |first, seconds, place| {
        let mut command = Command::new(std::env::current_exe().expect("a program knows where it is"));
        command.args(["--seed", &plan.seed.to_string(), "--first", &first.to_string(), "--place"]).arg(place);
        match plan.each {
            Some(each) => command.args(["--each", &each.to_string()]),
            None => command.args(["--seconds", &seconds.to_string()]),
        };
        if let Some(op) = plan.only {
            command.args(["--only", op.name]);
        }
        command
    });
    let findings = match findings {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("the calls cannot be run in a process of their own: {error}");
            return ExitCode::from(2);
        }
    };
    let again = |index: u64| {
        let only = plan.operator(index).map_or(String::new(), |op| format!(" --only {}", op.name));
        format!("fuzz-calls --case {}{only}", plan.number(index))
    };
    println!("{}", findings.describe(plan, &again));
    ExitCode::from(u8::from(!findings.found.is_empty()))
}
