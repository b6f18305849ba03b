//! `dev`: operators on a device, with `--device`. A repetition ends when the device has done its work.

use std::time::{Duration, Instant};

use opsmith::autograd::no_grad;
use opsmith::{ArgmaxOptions, Device, LayerNormOptions, Result, TensorOps};

use super::{normal, ones};
use crate::harness::{Harness, Work};

/// Elements of a large tensor: far more than any cache holds.
const LARGE: i64 = 1 << 26;
const ROWS: [i64; 2] = [16384, 4096];

pub fn run(harness: &mut Harness, device: Device) -> Result<()> {
    no_grad(|| {
        calls(harness, device)?;
        pointwise(harness, device)?;
        rows(harness, device)?;
        products(harness, device)
    })
}

/// A case: calls, and the wait for their work.
fn case<R>(
    harness: &mut Harness,
    device: Device,
    name: &str,
    work: Work,
    mut call: impl FnMut() -> Result<R>,
) -> Result<()> {
    // The first call compiles its kernels.
    call()?;
    opsmith_cuda::synchronize(device.index)?;
    let mut failed = Ok(());
    harness.timed(&format!("dev.{name}"), work, |count| {
        let start = Instant::now();
        for _ in 0..count {
            if let Err(error) = call() {
                failed = Err(error);
                return Duration::ZERO;
            }
        }
        if let Err(error) = opsmith_cuda::synchronize(device.index) {
            failed = Err(error);
        }
        start.elapsed()
    });
    failed
}

/// The cost of a call: one element, and work that is submitted but not waited for each time.
fn calls(harness: &mut Harness, device: Device) -> Result<()> {
    let (a, b) = (ones(&[1])?.to_device(device)?, ones(&[1])?.to_device(device)?);
    let mut out = a.deep_clone()?;
    let none = Work::default();
    case(harness, device, "add1", none, || a.add(&b))?;
    case(harness, device, "add1.out", none, || opsmith::add_out(&a, &b, &mut out))
}

fn pointwise(harness: &mut Harness, device: Device) -> Result<()> {
    let host = normal(&[LARGE])?;
    let (a, b) = (host.to_device(device)?, host.to_device(device)?);
    let (one, two) = (Work::memory(8.0, LARGE as f64), Work::memory(12.0, LARGE as f64));
    case(harness, device, "copy", one, || a.deep_clone())?;
    case(harness, device, "add", two, || a.add(&b))?;
    case(harness, device, "mul_scalar", one, || a.mul(2.0))?;
    case(harness, device, "exp", one, || a.exp())?;
    case(harness, device, "tanh", one, || a.tanh())?;
    case(harness, device, "gelu", one, || a.gelu())?;
    let square = a.reshape([8192, 8192])?;
    case(harness, device, "transposed_copy", one, || square.t()?.contiguous())?;
    let row = square.select(0, 0)?;
    case(harness, device, "add_row", one, || square.add(&row))
}

fn rows(harness: &mut Harness, device: Device) -> Result<()> {
    let a = normal(&ROWS)?.to_device(device)?;
    let (read, both) = (Work::memory(4.0, a.numel() as f64), Work::memory(8.0, a.numel() as f64));
    let weight = ones(&[ROWS[1]])?.to_device(device)?;
    case(harness, device, "sum_all", read, || a.sum())?;
    case(harness, device, "sum_last", read, || a.sum_dim(Some(&[-1])))?;
    case(harness, device, "sum_first", read, || a.sum_dim(Some(&[0])))?;
    case(harness, device, "argmax_last", read, || a.argmax_with(ArgmaxOptions::new().dim(-1)))?;
    case(harness, device, "softmax", both, || a.softmax(-1))?;
    case(harness, device, "layer_norm", both, || {
        a.layer_norm_with([ROWS[1]], LayerNormOptions::new().weight(&weight).bias(&weight))
    })
}

fn products(harness: &mut Harness, device: Device) -> Result<()> {
    for size in [1024, 4096] {
        let a = normal(&[size, size])?.to_device(device)?;
        let work = Work::flops(2.0 * (size as f64).powi(3));
        case(harness, device, &format!("mm_{size}"), work, || a.mm(&a))?;
    }
    Ok(())
}
