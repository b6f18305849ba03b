//! What the machine can do: the rate of copies, to compare kernels with.

use std::time::Instant;

use opsmith_runtime::parallel;
use serde::{Deserialize, Serialize};

/// Measured limits of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Gigabytes a second that copies of large memory read and write, with the process's number of threads.
    pub copy_gb_s: f64,
    /// That number.
    pub threads: usize,
}

/// Bytes of a copy: more than caches hold.
const BYTES: usize = 64 << 20;
/// Repeats, of which the fastest counts.
const REPEATS: usize = 6;

impl Limits {
    /// Measures this machine, which takes about a quarter of a second and 128 MiB.
    pub fn measure() -> Limits {
        let source = vec![1u8; BYTES];
        let mut target = vec![0u8; BYTES];
        let mut fastest = f64::INFINITY;
        for _ in 0..REPEATS {
            let start = Instant::now();
            let parts: Vec<std::sync::Mutex<&mut [u8]>> =
                target.chunks_mut(BYTES / 64).map(std::sync::Mutex::new).collect();
            parallel::for_each_range(parts.len(), 1, |range| {
                for part in range {
                    if let Ok(mut target) = parts[part].lock() {
                        let first = part * (BYTES / 64);
                        let count = target.len();
                        target.copy_from_slice(&source[first..first + count]);
                    }
                }
            });
            drop(parts);
            fastest = fastest.min(start.elapsed().as_secs_f64());
        }
        std::hint::black_box(&target);
        Limits { copy_gb_s: 2.0 * BYTES as f64 / fastest / 1e9, threads: parallel::num_threads() }
    }

    /// The limits of this machine, measured once in this process.
    pub fn of_this_machine() -> Limits {
        static MEASURED: std::sync::OnceLock<Limits> = std::sync::OnceLock::new();
        MEASURED.get_or_init(Limits::measure).clone()
    }
}
