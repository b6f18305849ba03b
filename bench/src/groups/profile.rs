//! `profile`: what recording costs a call, and what a profile of many events costs to write.
//!
//! A call of `add` is two events, the call and its kernel: `profile.overhead` has the cost of both, beyond that of a call that is
//! not recorded.

use opsmith::Result;
use opsmith::profile::{Limits, ProfileError, ProfileOptions, Profiler};
use serde_json::json;

use super::ones;
use crate::harness::{CALL, Harness};

pub fn run(harness: &mut Harness) -> anyhow::Result<()> {
    if !harness.wants("profile.") {
        return Ok(());
    }
    harness.line("profile.limits", serde_json::to_value(Limits::measure())?);
    calls(harness)?;
    files(harness)
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
    const CALLS: usize = 500_000;
    let (a, b, mut out) = (ones(&[1])?, ones(&[1])?, ones(&[1])?);
    let profiler = Profiler::start(ProfileOptions::new().records(2 * CALLS))?;
    (0..CALLS).try_for_each(|_| -> Result<()> { opsmith::add_out(&a, &b, &mut out) })?;
    let profile = profiler.stop();
    let path = std::env::temp_dir().join(format!("opsmith-bench-{}.json", std::process::id()));
    harness.case("profile.save_1e6", CALL, || profile.save(&path));
    harness.case("profile.trace_1e6", CALL, || profile.save_trace(&path));
    let perfetto = path.with_extension("perfetto-trace");
    harness.case("profile.perfetto_1e6", CALL, || profile.save_trace(&perfetto));
    std::fs::remove_file(&perfetto).ok();
    harness.case("profile.averages_1e6", CALL, || {
        Ok::<_, ProfileError>(profile.key_averages(opsmith::profile::Group::Operator))
    });
    std::fs::remove_file(&path).ok();
    Ok(())
}
