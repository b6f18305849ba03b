//! Ends the process when a call takes too long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NONE: u64 = u64::MAX;

/// The number of the present call.
static CURRENT: AtomicU64 = AtomicU64::new(NONE);

/// A call begins.
pub fn begin(number: u64) {
    CURRENT.store(number, Ordering::Relaxed);
}

/// A call has ended.
pub fn end() {
    CURRENT.store(NONE, Ordering::Relaxed);
}

/// Starts the watch: a call that works for this number of seconds, or waits three times as long, ends the process.
pub fn start(seconds: u64) {
    std::thread::spawn(move || {
        let step = Duration::from_millis(500);
        let (mut known, mut worked, mut waited) = (NONE, 0.0, 0.0);
        loop {
            let before = work();
            std::thread::sleep(step);
            let current = CURRENT.load(Ordering::Relaxed);
            if current == NONE || current != known {
                (known, worked, waited) = (current, 0.0, 0.0);
                continue;
            }
            worked += work() - before;
            waited += step.as_secs_f64();
            if worked > seconds as f64 || waited > 3.0 * seconds as f64 {
                eprintln!("the call worked for {worked:.0} s and took {waited:.0} s");
                std::process::abort();
            }
        }
    });
}

/// Seconds of processor time of the process; 0 if the system does not provide it, so that only the clock counts.
fn work() -> f64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/stat") else { return 0.0 };
    // The name in parentheses may contain anything.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
