//! The lines of a file of results.
//!
//! The first line of a run is its head, `{"opsmith_results":1,"library":…,"fingerprint":…,"time":…}`; a line of an outcome
//! has `op`, `backend`, `dtype`, `check` and `passed`, `failed` or `skipped`; that of an example `op` and `example`, that of a
//! sample's sizes `op` and `sizes`. A line
//! of the timing program has `case`, `op` and `median_ns`.

use serde::Deserialize;

use super::merge::Part;
use super::{Cell, Example, Outcome, RecordedSizes, Timing, VERSION, sizes};

/// The most bytes of a text that is kept.
const MOST_TEXT: usize = 64 << 10;
/// The most lines of a file.
const MOST_LINES: usize = 2_000_000;

#[derive(Deserialize)]
struct Line {
    opsmith_results: Option<u64>,
    library: Option<String>,
    fingerprint: Option<String>,
    time: Option<f64>,
    op: Option<String>,
    backend: Option<String>,
    dtype: Option<String>,
    check: Option<String>,
    passed: Option<u64>,
    failed: Option<Vec<String>>,
    skipped: Option<String>,
    example: Option<Sample>,
    sizes: Option<RecordedSizes>,
    lib: Option<String>,
    case: Option<String>,
    median_ns: Option<f64>,
    gbs: Option<f64>,
    threads: Option<u64>,
}

#[derive(Deserialize)]
struct Sample {
    code: String,
    output: String,
}

/// The runs that a file records.
///
/// # Errors
/// The mistake of the first line that has one.
pub(super) fn parts(bytes: &[u8]) -> Result<Vec<Part>, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut parts: Vec<Part> = Vec::new();
    let mut current = None;
    let mut timings = Part::default();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index >= MOST_LINES {
            return Err(format!("more than {MOST_LINES} lines; remove the file and run the tests again"));
        }
        let is_whole = line.ends_with('\n');
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let wrong =
            |why: String| format!("line {}: {why}; remove the file and run the tests again", index + 1);
        let read: Line = match serde_json::from_str(line) {
            Ok(read) => read,
            // The run was ended while it wrote.
            Err(_) if !is_whole => break,
            Err(why) => return Err(wrong(format!("no line of results: {why}"))),
        };
        if let Some(version) = read.opsmith_results {
            if version != VERSION {
                return Err(wrong(format!("version {version} of results, where this reads {VERSION}")));
            }
            let head = (read.library, read.fingerprint.filter(|text| is_fingerprint(text)));
            let (Some(library), Some(fingerprint)) = head else {
                return Err(wrong("a head without library and fingerprint".to_owned()));
            };
            let time = read.time.filter(|time| time.is_finite()).unwrap_or(0.0);
            // A run of several libraries has several heads of each.
            let fingerprint = Some(fingerprint);
            let is_same =
                |part: &Part| (&part.library, &part.fingerprint, part.time) == (&library, &fingerprint, time);
            current = parts.iter().position(is_same).or_else(|| {
                parts.push(Part {
                    library: library.clone(),
                    fingerprint: fingerprint.clone(),
                    time,
                    ..Part::default()
                });
                Some(parts.len() - 1)
            });
        } else if read.lib.is_some() {
            add_timing(&mut timings, read);
        } else {
            let part = current
                .and_then(|index| parts.get_mut(index))
                .ok_or_else(|| wrong("an outcome before the head of a run".to_owned()))?;
            add(part, read).map_err(|why| wrong(why.to_owned()))?;
        }
    }
    if !timings.operators.is_empty() {
        parts.push(timings);
    }
    Ok(parts)
}

fn is_fingerprint(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An outcome or an example.
fn add(part: &mut Part, line: Line) -> Result<(), &'static str> {
    let op = line.op.ok_or("a line without an operator")?;
    let results = part.operators.entry(short(op)).or_default();
    if let Some(Sample { code, output }) = line.example {
        results.examples.push(Example { code: short(code), output: short(output) });
        return Ok(());
    }
    if let Some(found) = line.sizes {
        sizes::add(&mut results.sizes, found);
        return Ok(());
    }
    let outcome = match (line.passed, line.failed, line.skipped) {
        (Some(count), None, None) => Outcome::Passed(count),
        (None, Some(findings), None) => Outcome::Failed(findings.into_iter().map(short).collect()),
        (None, None, Some(why)) => Outcome::Skipped(short(why)),
        _ => return Err("a line that has not one outcome"),
    };
    let (Some(backend), Some(dtype), Some(check)) = (line.backend, line.dtype, line.check) else {
        return Err("an outcome without backend, dtype and check");
    };
    results.cells.push(Cell { backend: short(backend), dtype: short(dtype), check: short(check), outcome });
    Ok(())
}

/// The time of a case that is one operator's; other lines of that program say nothing about operators.
fn add_timing(part: &mut Part, line: Line) {
    let (Some(op), Some(case), Some(nanoseconds)) = (line.op, line.case, line.median_ns) else { return };
    if !(nanoseconds.is_finite() && nanoseconds > 0.0) {
        return;
    }
    let threads = match line.threads {
        None | Some(1) => String::new(),
        Some(count) => format!(", {count} threads"),
    };
    part.library = line.lib.unwrap_or_default();
    part.operators.entry(short(op)).or_default().timings.push(Timing {
        case: short(format!("{case}{threads}")),
        nanoseconds,
        // GB/s are bytes in a nanosecond.
        bytes_per_second: line.gbs.filter(|rate| rate.is_finite() && *rate > 0.0).map(|rate| rate * 1e9),
    });
}

/// A text that is not longer than any should be.
fn short(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
