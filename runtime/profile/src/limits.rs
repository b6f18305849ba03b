//! Limits of the machine and its devices: the rates of copies and of arithmetic, which bound kernels (the roofline).
//!
//! In: nothing, or the file of an earlier measurement. Out: rates.

mod devices;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use opsmith_runtime::{Device, Result, internals, parallel, simd};
use serde::{Deserialize, Serialize};

pub use devices::DeviceLimits;

/// Measured limits of a machine, with the process's number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Gigabytes a second that copies of large memory read and write.
    pub copy_gb_s: f64,
    /// 10⁹ operations a second of fused multiplications and additions of `float32`, each two operations; 0 if unknown, as a build
    /// without optimisation cannot measure it.
    #[serde(default)]
    pub gflop_s: f64,
    /// The number of threads.
    pub threads: usize,
    /// Limits of devices other than the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceLimits>,
}

/// Bytes of a copy: more than caches hold.
const BYTES: usize = 64 << 20;
/// Repeats, of which the fastest counts.
const REPEATS: usize = 6;
/// Rounds of arithmetic: some milliseconds.
const ROUNDS: usize = 1 << 20;

impl Limits {
    /// Measures this machine, which takes about a third of a second and 128 MiB.
    pub fn measure() -> Limits {
        // The loop of a build without optimisation says nothing of the machine.
        let gflop_s = if cfg!(debug_assertions) { 0.0 } else { arithmetic() };
        Limits { copy_gb_s: copies(), gflop_s, threads: parallel::num_threads(), devices: Vec::new() }
    }

    /// The limits of this machine: as measured before for this processor and number of threads, by any optimised program, or now. They are kept in
    /// `limits.json` in `OPSMITH_CACHE_DIR`, or `opsmith` in `XDG_CACHE_HOME` or `~/.cache`, if there is such a folder.
    pub fn of_this_machine() -> Limits {
        static MEASURED: OnceLock<Limits> = OnceLock::new();
        MEASURED
            .get_or_init(|| file().and_then(|file| kept(&file)).unwrap_or_else(Limits::measure_again))
            .clone()
    }

    /// Measures this machine again, and keeps the larger of each rate and the kept one: other programs that run meanwhile make a
    /// machine look slower than it is, and nothing makes it look faster.
    pub fn measure_again() -> Limits {
        let now = Limits::measure();
        let limits = match file().and_then(|file| kept(&file)) {
            Some(kept) => Limits {
                copy_gb_s: now.copy_gb_s.max(kept.copy_gb_s),
                gflop_s: now.gflop_s.max(kept.gflop_s),
                ..now
            },
            None => now,
        };
        if let Some(file) = file().filter(|_| limits.gflop_s > 0.0) {
            keep(&file, &limits);
        }
        limits
    }

    /// These limits with those of a device, whose copies and arithmetic are measured if no program of this machine did so for
    /// this model of device. That takes some milliseconds and up to 1 GiB of its memory; they are kept in `device-limits.json`,
    /// beside those of the machine.
    ///
    /// # Errors
    /// If no linked crate has such a device, or errors of the device.
    pub fn with_device(mut self, device: Device) -> Result<Limits> {
        if device != Device::CPU && self.of_device(&device.to_string()).is_none() {
            self.devices.push(devices::limits_of(device)?);
        }
        Ok(self)
    }

    /// Limits of a device, by its name.
    pub fn of_device(&self, name: &str) -> Option<&DeviceLimits> {
        self.devices.iter().find(|limits| limits.device == name)
    }
}

fn copies() -> f64 {
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
    2.0 * BYTES as f64 / fastest / 1e9
}

/// Independent vectors of the loop, and numbers of each: they stay in registers, and hide each other's latency.
const VECTORS: usize = 10;

#[allow(
    clippy::redundant_closure,
    reason = "a function given by its name is not inlined into the wider loop: without fused instructions"
)]
fn arithmetic() -> f64 {
    let threads = parallel::num_threads();
    let mut fastest = f64::INFINITY;
    let lanes = simd::vector_bytes() / size_of::<f32>();
    for _ in 0..REPEATS {
        let start = Instant::now();
        parallel::run(threads, threads, &|_| match lanes {
            16 => simd::widest(
                #[inline(always)]
                || rounds::<16, true>(),
            ),
            8 => simd::widest(
                #[inline(always)]
                || rounds::<8, true>(),
            ),
            _ => rounds::<4, { cfg!(not(target_arch = "x86_64")) }>(),
        });
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (2 * ROUNDS * VECTORS * lanes * threads) as f64 / fastest / 1e9
}

#[inline(always)]
fn rounds<const LANES: usize, const FUSED: bool>() {
    let mut sums = [[1.0f32; LANES]; VECTORS];
    let factor = std::hint::black_box([0.999f32; LANES]);
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            for lane in 0..LANES {
                let (number, factor) = (sum[lane], factor[lane]);
                sum[lane] = if FUSED { number.mul_add(factor, factor) } else { number * factor + factor };
            }
        }
    }
    std::hint::black_box(&sums);
}

/// The file's content: the machine that was measured, and its limits.
#[derive(Serialize, Deserialize, PartialEq)]
struct Kept {
    machine: String,
    limits: Limits,
}

fn file() -> Option<PathBuf> {
    Some(internals::cache_folder()?.join("limits.json"))
}

/// The processor's name, number of threads, choice of vectors, and the version of the measurement.
fn machine() -> String {
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let name = name.trim_start_matches([' ', '\t', ':']);
    let vectors = std::env::var("OPSMITH_SIMD").unwrap_or_default();
    format!("{name}, {} threads, {vectors}, {}", parallel::num_threads(), env!("CARGO_PKG_VERSION"))
}

fn kept(file: &Path) -> Option<Limits> {
    let text = std::fs::read_to_string(file).ok()?;
    let kept: Kept = serde_json::from_str(&text).ok()?;
    let sound = |rate: f64| rate.is_finite() && rate > 0.0;
    let limits = kept.limits;
    (kept.machine == machine() && sound(limits.copy_gb_s) && sound(limits.gflop_s)).then_some(limits)
}

/// Limits that cannot be written are measured again by the next program.
fn keep(file: &Path, limits: &Limits) {
    let kept = Kept { machine: machine(), limits: limits.clone() };
    if let Ok(text) = serde_json::to_string(&kept)
        && file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    {
        let _ = internals::replace(file, |file| std::io::Write::write_all(file, text.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_for_the_machine_that_was_measured() {
        let folder = std::env::temp_dir().join(format!("opsmith-limits-{}", std::process::id()));
        let file = folder.join("inside").join("limits.json");
        assert_eq!(kept(&file), None);
        let limits = Limits { copy_gb_s: 12.5, gflop_s: 80.0, threads: 2, devices: Vec::new() };
        keep(&file, &limits);
        assert_eq!(kept(&file), Some(limits.clone()));
        let other = std::fs::read_to_string(&file).unwrap().replace("threads, ", "threads of another, ");
        std::fs::write(&file, other).unwrap();
        assert_eq!(kept(&file), None);
        keep(&file, &Limits { gflop_s: 0.0, ..limits });
        assert_eq!(kept(&file), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_measurement_is_of_this_machine() {
        let limits = Limits::measure();
        assert!(limits.copy_gb_s > 0.1 && limits.copy_gb_s < 10_000.0, "{limits:?}");
        assert_eq!(limits.threads, parallel::num_threads());
    }
}
