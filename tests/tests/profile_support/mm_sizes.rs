//! Times one operator over several sizes; `opsmith profile compare` wrote it and removes it.

#![allow(unused_imports, reason = "which of them a call needs depends on its arguments")]

use std::time::Instant;

use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};

pub fn main() -> Result<()> {
    let calls: &[&[&[i64]]] = &[
        // 4x4,4x4
        &[&[4, 4], &[4, 4]],
        // 8x8,8x8
        &[&[8, 8], &[8, 8]],
    ];
    let named: &[(&str, Value)] = &[];
    for device in [Device::CPU] {
        for (number, shapes) in calls.iter().enumerate() {
            let operands = shapes
                .iter()
                .map(|sizes| operand(sizes, DType::F32, device))
                .collect::<Result<Vec<Value>>>()?;
            time(number, device, shapes, || opsmith::call("mm", &operands, named))?;
        }
    }
    Ok(())
}

/// A tensor of these sizes: random numbers between 0.1 and 1, or small integers.
fn operand(sizes: &[i64], dtype: DType, device: Device) -> Result<Value> {
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        0.1 + 0.9 * f64::from(state) / f64::from(u32::MAX)
    };
    let whole = !dtype.is_float() && !dtype.is_complex();
    let count = sizes.iter().product::<i64>();
    let elements: Vec<f64> =
        (0..count).map(|_| if whole { (random() * 4.0).floor() } else { random() }).collect();
    Ok(Value::Tensor(Tensor::from_slice(&elements, sizes)?.to_dtype(dtype)?.to_device(device)?))
}

/// Calls it for about a third of a second, and prints the median of the calls' times. A device is waited for: a time is then that
/// of twenty calls, divided by twenty.
fn time(
    number: usize,
    device: Device,
    shapes: &[&[i64]],
    call: impl Fn() -> Result<Vec<Value>>,
) -> Result<()> {
    let together = if device == Device::CPU { 1 } else { 20 };
    call()?;
    device.synchronize()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed().as_millis() < 300 && times.len() < 100_000 {
        let start = Instant::now();
        for _ in 0..together {
            call()?;
        }
        device.synchronize()?;
        times.push(start.elapsed().as_nanos() / together);
    }
    times.sort_unstable();
    let elements: i64 = shapes.iter().map(|sizes| sizes.iter().product::<i64>()).sum();
    let (median, calls) = (times[times.len() / 2], times.len() * together as usize);
    println!(
        "{{\"call\": {number}, \"device\": \"{device}\", \"elements\": {elements}, \"median_ns\": {median}, \"calls\": {calls}}}"
    );
    Ok(())
}
