//! Mutated specs: for any input the front end answers, quickly and in bounded memory.
//!
//! `cargo test --release -p opsmith-tools --test fuzz -- --ignored --nocapture` runs for `OPSMITH_FUZZ_SECONDS` seconds
//! (60), from the seed `OPSMITH_FUZZ_SEED` (the time, printed). A finding is printed with its input; put that into
//! `codegen/tools/tests/fuzz/`, whose files every test run reads.
//!
//! A finding is: a panic, an overflow of a stack of 2 MB, more than two seconds, more memory than ten times the file
//! plus 16 MB, a span outside of the file or inside a character, or a spec that passes the checks but cannot be
//! generated.

mod fuzz {
    pub mod memory;
    pub mod mutate;
}
#[allow(dead_code, reason = "the stock spec alone")]
mod support;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuzz::memory;
use fuzz::mutate::{Mutator, Random};
use opsmith_codegen::diagnostics::{Diagnostic, SourceMap, render};
use opsmith_codegen::{Config, check_text, pipeline};
use opsmith_tools::fmt;

/// Longer than any input of this size should take, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(2);
/// Memory of the front end that is independent of the file: tables, and diagnostics up to their limit.
const BASE_MEMORY: usize = 16 << 20;
/// Additional memory, as a multiple of the file's size.
const MEMORY_FACTOR: usize = 10;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Initial specs: all bad ones, those with generated code, and slices of the stock one.
fn corpus() -> Vec<String> {
    let mut found = Vec::new();
    let mut read = |path: PathBuf| found.extend(fs::read_to_string(path));
    for entry in fs::read_dir(folder("../../tests/bad")).expect("a folder of the crate").flatten() {
        read(entry.path().join("spec.yaml"));
    }
    read(folder("../../tests/golden/small/spec.yaml"));
    read(folder("../../golden/spec.yaml"));
    found.extend(findings().into_iter().map(|(_, text)| text));
    let stock = support::stock_text();
    let entries: Vec<&str> = stock.split_inclusive("\n\n").collect();
    found.extend(entries.chunks(3).map(|slice| format!("edition: 1\nops:\n{}", slice.concat())));
    found
}

/// Inputs of former findings.
fn findings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder("fuzz")).expect("a folder of the crate").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            found.push((name, fs::read_to_string(entry.path()).expect("a finding is text")));
        }
    }
    found.sort();
    found
}

/// The finding for a text, if any.
fn problem(text: &str) -> Option<String> {
    let start = Instant::now();
    let before = memory::start();
    let result = panic::catch_unwind(AssertUnwindSafe(|| look(text)));
    let (took, peak) = (start.elapsed(), memory::peak().saturating_sub(before));
    let limit = BASE_MEMORY + MEMORY_FACTOR * text.len();
    match result {
        Err(_) => Some("a panic".to_owned()),
        Ok(Some(problem)) => Some(problem),
        Ok(None) if took > LIMIT => Some(format!("it took {took:?}")),
        Ok(None) if peak > limit => Some(format!("it took {peak} bytes, more than {limit}")),
        Ok(None) => None,
    }
}

fn look(text: &str) -> Option<String> {
    let checked = pipeline::check_text("spec.yaml", text);
    let mut shown = 0;
    for diagnostic in checked.diagnostics.sorted() {
        if let Some(problem) = misplaced(&checked.sources, diagnostic, text) {
            return Some(problem);
        }
        // Drawing is slower than checking; a few of each input are enough.
        if shown < 4 {
            shown += 1;
            drop(render(&checked.sources, diagnostic, true));
        }
    }
    if !checked.diagnostics.has_errors() {
        if let Err(failure) = pipeline::generate(&checked, &Config::stock("spec.yaml")) {
            return Some(failure.to_string());
        }
        let (_, diagnostics) = check_text("spec.yaml", text);
        if diagnostics.has_errors() {
            return Some("a second look finds other mistakes".to_owned());
        }
    }
    drop(fmt::format("spec.yaml", text));
    None
}

/// A span outside of the text.
fn misplaced(sources: &SourceMap, diagnostic: &Diagnostic, text: &str) -> Option<String> {
    let labels = std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary);
    for label in labels {
        let range = label.span.range();
        let own = sources.text(label.span.source);
        let fits = range.start <= range.end && range.end <= own.len();
        if !fits || !own.is_char_boundary(range.start) || !own.is_char_boundary(range.end) {
            return Some(format!(
                "{} is at {range:?} of {} bytes: {}",
                diagnostic.code,
                text.len(),
                diagnostic.message
            ));
        }
    }
    None
}

/// Runs where a stack overflow shows: threads of build scripts have no larger stacks.
fn on_a_small_stack<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let thread =
        std::thread::Builder::new().stack_size(2 << 20).spawn(work).expect("a thread can be started");
    thread.join().expect("the thread catches panics of what it runs")
}

#[test]
fn findings_stay_fixed() {
    let problems = on_a_small_stack(|| {
        findings()
            .iter()
            .filter_map(|(name, text)| Some(format!("{name}: {}", problem(text)?)))
            .collect::<Vec<_>>()
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_few_mutations_of_everything() {
    let problem = on_a_small_stack(|| {
        let corpus = corpus();
        let mut random = Random::new(1);
        corpus.iter().find_map(|text| {
            let text = Mutator { corpus: &corpus }.mutate(text, &mut random);
            Some((problem(&text)?, text))
        })
    });
    if let Some((problem, text)) = problem {
        panic!("{problem}, from\n{text}");
    }
}

#[test]
#[ignore = "takes a minute; `.ci/run` calls it"]
fn fuzz_the_front_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("OPSMITH_FUZZ_SECONDS").unwrap_or(60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed = number("OPSMITH_FUZZ_SEED").unwrap_or(now);
    println!("seed {seed}, {seconds} s");
    let last = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-last.yaml");
    println!("the input that is looked at is in {}", last.display());
    let (runs, found) = on_a_small_stack(move || {
        let corpus = corpus();
        let mut random = Random::new(seed);
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut runs = 0u64;
        while Instant::now() < end {
            let start = &corpus[random.below(corpus.len())];
            let text = Mutator { corpus: &corpus }.mutate(start, &mut random);
            // A stack overflow ends the process; the file then has its input.
            fs::write(&last, &text).expect("the folder for temporary files can be written");
            runs += 1;
            if let Some(problem) = problem(&text) {
                return (runs, Some((problem, text)));
            }
        }
        (runs, None)
    });
    println!("{runs} inputs");
    if let Some((problem, text)) = found {
        panic!("seed {seed}, input {runs}: {problem}, from\n{text}");
    }
}
