//! `profile`: the cost of recording per call, and of writing a profile of many events.
//!
//! Without a profiler a call reads the flag twice, at its site and before its kernel, each with a branch: `profile.off` is the cost of
//! both, from a loop that reads it and one that does not.
//!
//! A call of `add` is two events, the call and its kernel: `profile.overhead` has the cost of both, beyond that of a call that is
//! not recorded.

use std::hint::black_box;
use std::time::Instant;

use opsmith::Result;
use opsmith::runtime::internals::is_listening;
use opsmith_profile::{Limits, Profile, ProfileError, ProfileOptions, Profiler};
use serde_json::json;

use super::ones;
use crate::harness::{CALL, Harness};

pub fn run(harness: &mut Harness) -> anyhow::Result<()> {
    if !harness.wants("profile.") {
        return Ok(());
    }
    harness.line("profile.limits", serde_json::to_value(Limits::measure())?);
    off(harness);
    calls(harness)?;
    files(harness)?;
    many(harness)
}

/// Reads of the flag in a loop.
const READS: u64 = 1000;

fn off(harness: &mut Harness) {
    let reads = harness.case("profile.off_1000_reads", CALL, || {
        for count in 0..READS {
            if is_listening() {
                black_box(READS);
            }
            black_box(count);
        }
    });
    let nothing = harness.case("profile.off_1000_nothing", CALL, || {
        for count in 0..READS {
            black_box(count);
        }
    });
    if let (Some(reads), Some(nothing)) = (reads, nothing) {
        harness.line("profile.off", json!({"overhead_ns": 2.0 * (reads - nothing) / READS as f64}));
    }
}

fn calls(harness: &mut Harness) -> anyhow::Result<()> {
    let (a, b, mut out) = (ones(&[1])?, ones(&[1])?, ones(&[1])?);
    let mut add = |harness: &mut Harness, name: &str| {
        harness.case(&format!("profile.add1_out_{name}"), CALL, || opsmith::add_out(&a, &b, &mut out))
    };
    let off = add(harness, "off");
    let plain = ProfileOptions::new().shapes(false).memory(false);
    for (name, options) in
        [("on", plain.clone()), ("shapes", plain.shapes(true)), ("all", ProfileOptions::new())]
    {
        let profiler = Profiler::start(options)?;
        let on = add(harness, name);
        drop(profiler);
        if let (Some(off), Some(on)) = (off, on) {
            harness.line("profile.overhead", json!({"options": name, "overhead_ns": on - off}));
        }
    }
    Ok(())
}

/// A profile of a million events: 500,000 calls and their kernels.
fn files(harness: &mut Harness) -> anyhow::Result<()> {
    let profile = of_calls(500_000)?;
    let path = std::env::temp_dir().join(format!("opsmith-bench-{}.json", std::process::id()));
    harness.case("profile.save_1e6", CALL, || profile.save(&path));
    harness.case("profile.trace_1e6", CALL, || profile.save_trace(&path));
    let perfetto = path.with_extension("perfetto-trace");
    harness.case("profile.perfetto_1e6", CALL, || profile.save_trace(&perfetto));
    std::fs::remove_file(&perfetto).ok();
    harness.case("profile.averages_1e6", CALL, || {
        Ok::<_, ProfileError>(profile.key_averages(opsmith_profile::Group::Operator))
    });
    std::fs::remove_file(&path).ok();
    Ok(())
}

/// A profile of that many calls, and as many kernels.
fn of_calls(calls: usize) -> anyhow::Result<Profile> {
    let (a, b, mut out) = (ones(&[1])?, ones(&[1])?, ones(&[1])?);
    let profiler = Profiler::start(ProfileOptions::new().records(2 * calls))?;
    (0..calls).try_for_each(|_| -> Result<()> { opsmith::add_out(&a, &b, &mut out) })?;
    Ok(profiler.stop())
}

/// Ten million events, each format written once: 2 GB of memory and of the disk.
fn many(harness: &mut Harness) -> anyhow::Result<()> {
    if !harness.wants("profile.export_1e7") {
        return Ok(());
    }
    let profile = of_calls(if harness.is_once() { 5_000 } else { 5_000_000 })?;
    let path = std::env::temp_dir().join(format!("opsmith-bench-{}", std::process::id()));
    let timed = |work: &dyn Fn() -> std::result::Result<(), ProfileError>| -> anyhow::Result<f64> {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let formatted = timed(&|| Ok(profile.write_trace(std::io::sink())?))?;
    let mut fields = json!({"events": profile.events.len(), "trace_formatted_s": formatted});
    for (name, ending) in [("trace", "json"), ("perfetto", "pftrace")] {
        let file = path.with_extension(ending);
        let seconds = timed(&|| profile.save_trace(&file))?;
        let bytes = std::fs::metadata(&file)?.len();
        std::fs::remove_file(&file)?;
        fields[format!("{name}_s")] = seconds.into();
        fields[format!("{name}_bytes")] = bytes.into();
    }
    fields["ran"] = true.into();
    harness.line("profile.export_1e7", fields);
    Ok(())
}
