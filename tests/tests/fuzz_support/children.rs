//! Inputs by number, each looked at in a child process with little memory, so that a crash or a loop without end is a
//! finding like any other: a seed and the step.

use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longer than any input should take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(30);
/// The address space of a child, in KiB: little enough that no other program notices.
const MEMORY: &str = "3000000";

/// The next action of a child, from its standard output: the seed of an input, and a step.
#[derive(Clone, PartialEq)]
struct Doing {
    seed: u64,
    step: String,
}

/// A fuzzer whose test program has an ignored test `child`.
pub struct Children {
    /// The name of its folders.
    pub name: &'static str,
    /// Whether a step on the input in a folder may take for ever.
    pub may_hang: fn(&str, &Path) -> bool,
}

/// Looks at the input of a seed, and notes each step.
pub type Look = Box<dyn FnMut(u64, &dyn Fn(&str))>;

fn say(seed: u64, step: &str) {
    let mut out = std::io::stdout().lock();
    let said = writeln!(out, "{seed} {step}").and_then(|()| out.flush());
    said.expect("whoever started the child listens");
}

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

impl Children {
    /// A folder for temporary files.
    pub fn folder(&self, name: &str) -> PathBuf {
        let own = format!("{}-{}-{name}", self.name, std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
        std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
        folder
    }

    /// The work of the test `child`: inputs one after the other, until its time or their number is over. Input files
    /// are in the folder `input` of the one that `make` gets.
    pub fn child(&self, make: impl FnOnce(&Path) -> Look) {
        let (Some(seed), Some(folder)) =
            (number("OPSMITH_FUZZ_CHILD_FROM"), std::env::var_os("OPSMITH_FUZZ_CHILD_FOLDER"))
        else {
            return;
        };
        let (folder, count) = (PathBuf::from(folder), number("OPSMITH_FUZZ_CHILD_COUNT").unwrap_or(u64::MAX));
        let end = Instant::now() + Duration::from_secs(number("OPSMITH_FUZZ_CHILD_SECONDS").unwrap_or(600));
        std::fs::create_dir_all(folder.join("input")).expect("the folder for temporary files can be written");
        let mut look = make(&folder);
        let mut now = seed;
        while now - seed < count && Instant::now() < end {
            say(now, "mutate");
            if panic::catch_unwind(AssertUnwindSafe(|| look(now, &|step| say(now, step)))).is_err() {
                std::process::exit(101);
            }
            now += 1;
        }
        say(now, "end");
    }

    /// Starts children until the time or the number of inputs is over. Out: how many inputs there were, and the findings.
    pub fn fuzz(
        &self,
        name: &str,
        first: u64,
        seconds: u64,
        count: u64,
        findings: usize,
    ) -> (u64, Vec<String>) {
        let folder = self.folder(name);
        let end = Instant::now() + Duration::from_secs(seconds);
        let (mut seed, mut found) = (first, Vec::new());
        while seed - first < count && Instant::now() < end && found.len() < findings {
            let left = end.saturating_duration_since(Instant::now()).as_secs().max(1);
            let numbers = [("FROM", seed), ("COUNT", count - (seed - first)), ("SECONDS", left)];
            let (status, last) = run_child(&folder, seed, numbers);
            seed = last.seed + 1;
            match status {
                Some(status) if status.success() => seed = last.seed,
                None if (self.may_hang)(&last.step, &folder.join("input")) => {}
                status => {
                    let how = status.map_or(format!("took more than {LIMIT:?}"), |status| status.to_string());
                    let errors = std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
                    found.push(format!("seed {}, {}: {how}\n{}", last.seed, last.step, errors.trim()));
                }
            }
        }
        let _ = std::fs::remove_dir_all(&folder);
        (seed - first, found)
    }

    /// As [`Children::fuzz`], for `OPSMITH_FUZZ_SECONDS` seconds (60), from the seed `OPSMITH_FUZZ_SEED` (the time);
    /// prints both.
    ///
    /// # Panics
    /// With the findings.
    pub fn fuzz_long(&self) {
        let seconds = number("OPSMITH_FUZZ_SECONDS").unwrap_or(60);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        // A number that a person can type again.
        let seed = number("OPSMITH_FUZZ_SEED").unwrap_or(now % 1_000_000_000);
        println!("seed {seed}, {seconds} s");
        let findings = number("OPSMITH_FUZZ_FINDINGS").unwrap_or(1) as usize;
        let (inputs, found) = self.fuzz("long", seed, seconds, u64::MAX, findings);
        println!("{inputs} inputs");
        assert!(found.is_empty(), "{}", found.join("\n\n"));
    }
}

/// Runs a child. Out: its exit status, `None` if one step took too long; and its last action.
fn run_child(folder: &Path, seed: u64, numbers: [(&str, u64); 3]) -> (Option<ExitStatus>, Doing) {
    let mut command = Command::new("sh");
    // Without `exec`, killing the child would leave the program alone.
    command.args(["-c", &format!("ulimit -v {MEMORY}; ulimit -c 0; exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe().expect("the test runs"));
    command.args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("OPSMITH_FUZZ_CHILD_FOLDER", folder);
    for (name, number) in numbers {
        command.env(format!("OPSMITH_FUZZ_CHILD_{name}"), number.to_string());
    }
    let errors = std::fs::File::create(folder.join("errors")).expect("a file can be made");
    let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().expect("a shell can be started");
    let said = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let last = Arc::new(Mutex::new((Doing { seed, step: "start".to_owned() }, Instant::now())));
    let heard = Arc::clone(&last);
    let listener = std::thread::spawn(move || {
        for line in said.lines().map_while(Result::ok) {
            if let Some((seed, step)) = line.split_once(' ')
                && let Ok(seed) = seed.parse()
            {
                *heard.lock().expect("nobody panics with it") =
                    (Doing { seed, step: step.to_owned() }, Instant::now());
            }
        }
    });
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child was started here") {
            break Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
        if last.lock().expect("nobody panics with it").1.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
    };
    listener.join().expect("the listener ends with the child");
    let last = last.lock().expect("nobody panics with it").0.clone();
    (status, last)
}
