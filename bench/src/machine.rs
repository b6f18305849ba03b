//! Load of the machine: processor time of all processes and of this one, from `/proc`.
//!
//! Systems without `/proc` count as idle.

use std::fs;
use std::time::{Duration, Instant};

/// Processor time in seconds, since a fixed point in time.
#[derive(Clone, Copy)]
pub struct Usage {
    all: f64,
    own: f64,
    at: Instant,
}

/// Shares of one processor over a time.
pub struct Shares {
    /// Used by other processes.
    pub other: f64,
    /// Used by this process.
    pub own: f64,
}

impl Usage {
    pub fn now() -> Usage {
        Usage { all: all_processes().unwrap_or(0.0), own: this_process().unwrap_or(0.0), at: Instant::now() }
    }

    /// The shares used since.
    pub fn shares(self) -> Shares {
        let now = Usage::now();
        let seconds = now.at.duration_since(self.at).as_secs_f64();
        let own = now.own - self.own;
        Shares { other: (now.all - self.all - own) / seconds, own: own / seconds }
    }
}

/// Waits until other processes use less than a tenth of a processor, at most the given time.
pub fn wait_for_quiet(longest: Duration) {
    let start = Instant::now();
    loop {
        let before = Usage::now();
        std::thread::sleep(Duration::from_millis(150));
        if before.shares().other < 0.1 || start.elapsed() > longest {
            return;
        }
    }
}

/// Ticks of the kernel's clock a second, the same on every Linux.
const TICKS: f64 = 100.0;

fn all_processes() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> =
        text.lines().next()?.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
    // user, nice, system, irq, softirq, steal; idle and iowait do not use the processor.
    Some([0, 1, 2, 5, 6, 7].iter().filter_map(|&field| ticks.get(field)).sum::<f64>() / TICKS)
}

fn this_process() -> Option<f64> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    Some(nanoseconds.sum::<f64>() * 1e-9)
}
