//! Limits of devices: the rates of copies in their memory and of their arithmetic.
//!
//! In: a device, or the file of earlier measurements. Out: rates by the device's clock, or by the host's where it has none.
//! Measured once for a model of device, by the program that uses it: other programs need not find its driver.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use opsmith_core::DType;
use opsmith_runtime::backend::{
    self, DeviceMemory, DeviceSource, Elements, Grid, KernelParameter, Mark, Work,
};
use opsmith_runtime::{Device, Result, Scalar, internals};
use serde::{Deserialize, Serialize};

/// Measured limits of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// The device, such as `cuda:0`.
    pub device: String,
    /// Gigabytes a second that copies within its memory read and write.
    pub copy_gb_s: f64,
    /// 10⁹ operations a second of fused multiplications and additions of `float32`, each two operations, outside of units for
    /// matrices; 0 if it compiles no kernels.
    pub gflop_s: f64,
}

/// Time of a measurement, in nanoseconds: sizes grow until one takes as long.
const LONG: f64 = 1e6;
/// Repeats, of which the fastest counts.
const REPEATS: usize = 4;
/// Bytes of the first copy and of the largest one, which is more than caches hold.
const FIRST_BYTES: usize = 1 << 20;
const MOST_BYTES: usize = 512 << 20;
/// Threads of a block, operations of a thread and round, blocks and rounds of the first launch, and of the largest one.
const THREADS: u32 = 256;
const OPERATIONS: u32 = 16;
const FIRST: (u32, i32) = (8, 64);
const MOST: (u32, i32) = (8192, 1 << 16);

/// Eight numbers a thread, which hide each other's latency and stay in registers.
static ARITHMETIC: DeviceSource = DeviceSource {
    name: "limits.cuh",
    headers: &[],
    text: r#"
extern "C" __global__ void __launch_bounds__(256) opsmith_kernel(float *out, float factor, int rounds) {
  float a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  for (int round = 0; round < rounds; ++round) {
    a = fmaf(a, factor, factor);
    b = fmaf(b, factor, factor);
    c = fmaf(c, factor, factor);
    d = fmaf(d, factor, factor);
    e = fmaf(e, factor, factor);
    f = fmaf(f, factor, factor);
    g = fmaf(g, factor, factor);
    h = fmaf(h, factor, factor);
  }
  float sum = a + b + c + d + e + f + g + h;
  if (sum == 0.5f) *out = sum;
}"#,
};

/// The limits of a device: as measured before by this program or, for this model of device, by another one, or now.
///
/// # Errors
/// If there is no such device, or errors of it.
pub(super) fn limits_of(device: Device) -> Result<DeviceLimits> {
    static MEASURED: Mutex<Vec<DeviceLimits>> = Mutex::new(Vec::new());
    let name = device.to_string();
    let mut measured = MEASURED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(limits) = measured.iter().find(|limits| limits.device == name) {
        return Ok(limits.clone());
    }
    let model = backend::of(device)?.model(device.index);
    let limits = match file().and_then(|file| kept(&file, &model)) {
        Some(kept) => DeviceLimits { device: name, ..kept },
        None => {
            let limits =
                DeviceLimits { device: name, copy_gb_s: copies(device)?, gflop_s: arithmetic(device) };
            if let Some(file) = file().filter(|_| !model.is_empty()) {
                keep(&file, &model, &limits);
            }
            limits
        }
    };
    measured.push(limits.clone());
    Ok(limits)
}

/// The rate of copies within a device, in bytes a nanosecond. A size for which it has no memory ends the growth.
fn copies(device: Device) -> Result<f64> {
    let work = Work::on(device)?;
    let mut bytes = FIRST_BYTES;
    let mut rate = copy_of(&work, device, bytes)?;
    while rate.1 < LONG && bytes < MOST_BYTES {
        bytes *= 4;
        match copy_of(&work, device, bytes) {
            Ok(larger) => rate = larger,
            Err(_) => break,
        }
    }
    Ok(rate.0)
}

/// The rate of a copy, and its time in nanoseconds.
fn copy_of(work: &Work, device: Device, bytes: usize) -> Result<(f64, f64)> {
    let (to, from) = (DeviceMemory::new(device, bytes)?, DeviceMemory::new(device, bytes)?);
    let sizes = [(bytes / size_of::<f32>()) as i64];
    let elements = |start: *mut u8| Elements { start, dtype: DType::F32, sizes: &sizes, strides: &[1] };
    work.follow(to.last_use())?;
    work.follow(from.last_use())?;
    // SAFETY: the elements are the whole memory, which is kept until the uses that are noted below have passed.
    let filled = unsafe { work.runtime().fill(work.queue(), elements(from.start()), Scalar::Float(1.0)) };
    let time = filled.and_then(|()| {
        // SAFETY: as above; the two do not overlap.
        fastest(work, || unsafe {
            work.runtime().convert(work.queue(), elements(to.start()), elements(from.start()))
        })
    });
    to.note_use(work)?;
    from.note_use(work)?;
    let time = time?;
    Ok((2.0 * bytes as f64 / time, time))
}

/// The rate of arithmetic of a device, in operations a nanosecond; 0 if it compiles no kernels or they fail.
fn arithmetic(device: Device) -> f64 {
    let measure = || -> Result<f64> {
        let work = Work::on(device)?;
        let function = work.runtime().function(device.index, &ARITHMETIC, "")?;
        let out = DeviceMemory::new(device, size_of::<f32>())?;
        work.follow(out.last_use())?;
        let (start, factor) = (out.start(), 0.999f32);
        let (mut blocks, mut rounds) = FIRST;
        loop {
            let grid = Grid { blocks: [blocks, 1, 1], threads: [THREADS, 1, 1], shared: 0 };
            let parameters =
                [KernelParameter::of(&start), KernelParameter::of(&factor), KernelParameter::of(&rounds)];
            // SAFETY: the parameters are a pointer to a number of the device, a number and an integer, as the kernel has
            // them; the memory is kept until the use that is noted below has passed.
            let time = fastest(&work, || unsafe {
                work.runtime().launch(work.queue(), function, grid, &parameters)
            });
            out.note_use(&work)?;
            let time = time?;
            if time >= LONG || (blocks, rounds) == MOST {
                let operations = f64::from(blocks) * f64::from(THREADS * OPERATIONS) * f64::from(rounds);
                return Ok(operations / time);
            }
            if blocks < MOST.0 {
                blocks *= 4
            } else {
                rounds *= 4
            }
            (blocks, rounds) = (blocks.min(MOST.0), rounds.min(MOST.1));
        }
    };
    measure().unwrap_or(0.0)
}

/// The time of the fastest of some equal works in nanoseconds, at least 1.
fn fastest(work: &Work, submit: impl Fn() -> Result<()>) -> Result<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..REPEATS {
        fastest = fastest.min(time(work, &submit)?);
    }
    Ok(fastest.max(1.0))
}

/// Nanoseconds of some work by the device's clock, or by the host's.
fn time(work: &Work, submit: impl Fn() -> Result<()>) -> Result<f64> {
    let (runtime, queue) = (work.runtime(), work.queue());
    work.wait()?;
    let (start, first) = (Instant::now(), runtime.mark(queue)?);
    let last = submit().and_then(|()| runtime.mark(queue));
    let time = match last {
        Ok(last) if first != Mark::default() => {
            let time = runtime.nanoseconds_between(queue.device, first, last);
            runtime.forget(queue.device, last);
            time
        }
        Ok(_) => work.wait().map(|()| start.elapsed().as_nanos() as f64),
        Err(error) => Err(error),
    };
    if first != Mark::default() {
        runtime.forget(queue.device, first);
    }
    time
}

/// The limits of a model of device in the file.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    model: String,
    /// That of this crate, whose measurement it is.
    version: String,
    limits: DeviceLimits,
}

fn file() -> Option<PathBuf> {
    Some(internals::cache_folder()?.join("device-limits.json"))
}

fn all_kept(file: &Path) -> Vec<Kept> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn kept(file: &Path, model: &str) -> Option<DeviceLimits> {
    let sound = |rate: f64| rate.is_finite() && rate > 0.0;
    let same = |kept: &Kept| {
        kept.model == model
            && kept.version == env!("CARGO_PKG_VERSION")
            && sound(kept.limits.copy_gb_s)
            && sound(kept.limits.gflop_s)
    };
    all_kept(file).into_iter().find(|kept| !model.is_empty() && same(kept)).map(|kept| kept.limits)
}

/// Limits that cannot be written are measured again by the next program.
fn keep(file: &Path, model: &str, limits: &DeviceLimits) {
    let mut all = all_kept(file);
    all.retain(|kept| kept.model != model);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    all.push(Kept { model: model.to_owned(), version, limits: limits.clone() });
    if let Ok(text) = serde_json::to_string(&all)
        && file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    {
        let _ = internals::replace(file, |file| std::io::Write::write_all(file, text.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_for_each_model() {
        let folder = std::env::temp_dir().join(format!("opsmith-device-limits-{}", std::process::id()));
        let file = folder.join("device-limits.json");
        let limits = DeviceLimits { device: "cuda:0".to_owned(), copy_gb_s: 2500.0, gflop_s: 60_000.0 };
        assert_eq!(kept(&file, "A"), None);
        keep(&file, "A", &limits);
        keep(&file, "B", &DeviceLimits { gflop_s: 1.0, ..limits.clone() });
        assert_eq!(kept(&file, "A"), Some(limits.clone()));
        assert_eq!(kept(&file, "B").map(|kept| kept.gflop_s), Some(1.0));
        assert_eq!((kept(&file, "C"), kept(&file, "")), (None, None));
        keep(&file, "A", &DeviceLimits { gflop_s: 0.0, ..limits });
        assert_eq!(kept(&file, "A"), None);
        std::fs::write(&file, "[{").unwrap();
        assert_eq!(kept(&file, "B"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
