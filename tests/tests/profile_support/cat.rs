//! The repetition of a call, as `Profile::repro` writes it.

#![allow(unused_imports, reason = "which of them a call needs depends on its operands")]

use std::time::Instant;

use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};

pub fn main() -> Result<()> {
    let tensor0 = operand(&[6, 4], &[4, 1], DType::BF16, Device::CPU)?;
    let tensor1 = operand(&[6, 4], &[4, 1], DType::BF16, Device::CPU)?;
    let args = [Value::Tensors(vec![tensor0, tensor1]), Value::Int(0)];
    let prepare = || -> Result<()> { Ok(()) };
    time(Device::CPU, prepare, || opsmith::call("cat", &args, &[]))
}

/// Calls it for about a second, and prints the median of the calls' times. A device is waited for: a time is then that of twenty
/// calls, divided by twenty.
fn time(
    device: Device,
    prepare: impl Fn() -> Result<()>,
    call: impl Fn() -> Result<Vec<Value>>,
) -> Result<()> {
    let together = if device == Device::CPU { 1 } else { 20 };
    prepare()?;
    call()?;
    let (begin, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || begin.elapsed().as_secs() < 1 && times.len() < 100_000 {
        prepare()?;
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..together {
            call()?;
        }
        device.synchronize()?;
        times.push(start.elapsed() / together);
    }
    times.sort_unstable();
    let calls = times.len() * together as usize;
    println!("{calls} calls, median {:?}, fastest {:?}", times[times.len() / 2], times[0]);
    Ok(())
}

/// A tensor of these sizes and strides: random numbers between -1 and 1, or zeros for other dtypes than floats.
fn operand(sizes: &[i64], strides: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
    let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    let count = if sizes.contains(&0) { 0 } else { reach + 1 };
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0
    };
    let zero = !dtype.is_float() && !dtype.is_complex();
    let elements: Vec<f64> = (0..count).map(|_| if zero { 0.0 } else { random() }).collect();
    Tensor::from_slice(&elements, &[count])?.to_dtype(dtype)?.to_device(device)?.as_strided(sizes, strides)
}
