//! The repetition of a call, as `Profile::repro` writes it.

#![allow(unused_imports, reason = "which of them a call needs depends on its operands")]

use std::time::Instant;

use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};

/// The elements of operands.
#[derive(Clone, Copy)]
enum Fill {
    /// Floats between -1 and 1, zeros for integers.
    Any,
    /// Floats between 0.1 and 0.9, ones for integers.
    Positive,
    /// Matrices that a large diagonal makes positive definite; integers count from 1 along the last dimension.
    Dominant,
}

pub fn main() -> Result<()> {
    let refused = match run(Fill::Any) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    [Fill::Positive, Fill::Dominant].into_iter().find_map(|fill| run(fill).ok()).ok_or(refused)
}

fn run(fill: Fill) -> Result<()> {
    let tensor0 = operand(&[5, 5], &[5, 1], DType::F32, Device::CPU, fill)?;
    let args = [Value::Tensor(tensor0)];
    let named: Vec<(&str, Value)> = [("upper", Value::Bool(false))].to_vec();
    let prepare = || -> Result<()> { Ok(()) };
    time(Device::CPU, prepare, || opsmith::call("linalg_cholesky", &args, &named))
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

/// A tensor of these sizes and strides.
fn operand(sizes: &[i64], strides: &[i64], dtype: DType, device: Device, fill: Fill) -> Result<Tensor> {
    let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    let count = if sizes.contains(&0) { 0 } else { reach + 1 };
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX)
    };
    let whole = !dtype.is_float() && !dtype.is_complex();
    let mut elements = vec![0.0; count as usize];
    for number in 0..sizes.iter().product::<i64>() {
        let (mut rest, mut place, mut row_and_column) = (number, 0, [0; 2]);
        for (dim, (size, stride)) in sizes.iter().zip(strides).enumerate().rev() {
            place += rest % size * stride;
            if dim + 2 >= sizes.len() {
                row_and_column[dim + 2 - sizes.len()] = rest % size;
            }
            rest /= size;
        }
        let [row, column] = row_and_column;
        elements[place as usize] = match fill {
            _ if dtype == DType::Bool => random().round(),
            Fill::Any if whole => 0.0,
            Fill::Positive if whole => 1.0,
            Fill::Dominant if whole => (column + 1) as f64,
            Fill::Any => random() * 2.0 - 1.0,
            Fill::Positive => 0.1 + 0.8 * random(),
            Fill::Dominant if row == column => *sizes.last().unwrap_or(&1) as f64,
            Fill::Dominant => 0.5,
        };
    }
    Tensor::from_slice(&elements, &[count])?.to_dtype(dtype)?.to_device(device)?.as_strided(sizes, strides)
}
