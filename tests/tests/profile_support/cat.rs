//! The repetition of a call, as `Profile::repro` writes it.

#![allow(unused_imports, reason = "which of them a call needs depends on its operands")]

use std::time::Instant;

use opsmith::{Complex64, DType, Device, Result, Scalar, Tensor, TensorOps, Value};

pub fn main() -> Result<()> {
    let tensor0 = operand(&[6, 4], &[4, 1], DType::BF16)?;
    let tensor1 = operand(&[6, 4], &[4, 1], DType::BF16)?;
    let args = [Value::Tensors(vec![tensor0, tensor1]), Value::Int(0)];
    time(|| opsmith::call("cat", &args, &[]))
}

/// Calls it for about a second, and prints the median of the calls' times.
fn time(call: impl Fn() -> Result<Vec<Value>>) -> Result<()> {
    call()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || start.elapsed().as_secs() < 1 && times.len() < 100_000 {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!("{} calls, median {:?}, fastest {:?}", times.len(), times[times.len() / 2], times[0]);
    Ok(())
}

/// A tensor of these sizes and strides: random numbers between -1 and 1, or zeros for other dtypes than floats.
fn operand(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<Tensor> {
    let reach = sizes.iter().zip(strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>();
    let count = if sizes.contains(&0) { 0 } else { reach + 1 };
    let mut state = 1u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0
    };
    let zero = !dtype.is_float() && !dtype.is_complex();
    let elements: Vec<f64> = (0..count).map(|_| if zero { 0.0 } else { random() }).collect();
    Tensor::from_slice(&elements, &[count])?.to_dtype(dtype)?.as_strided(sizes, strides)
}
