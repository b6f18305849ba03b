//! `ew`: element-wise operators, from sizes within the first cache to sizes beyond all; `bc`, `tr`: broadcast or
//! transposed operands.

use opsmith::{Result, Tensor, TensorOps};

use super::normal;
use crate::harness::{Harness, Work};

const SIZES: [(&str, i64); 4] = [("1e3", 1_000), ("1e5", 100_000), ("1e6", 1_000_000), ("1e7", 10_000_000)];

type Unary = fn(&Tensor) -> Result<Tensor>;
type UnaryOut = fn(&Tensor, &mut Tensor) -> Result<()>;

pub fn run(harness: &mut Harness) -> Result<()> {
    if harness.wants("ew.") {
        for (label, count) in SIZES {
            elementwise(harness, label, count)?;
        }
    }
    if harness.wants("bc.") {
        broadcast(harness)?;
    }
    Ok(())
}

fn elementwise(harness: &mut Harness, label: &str, count: i64) -> Result<()> {
    let (a, b) = (normal(&[count])?, normal(&[count])?);
    let (mut out, zero) = (normal(&[count])?, Tensor::from_slice(&vec![0.0f32; count as usize], &[count])?);
    let binary = Work::memory(12.0, count as f64);
    let unary = Work::memory(8.0, count as f64);
    harness.case(&format!("ew.add.{label}"), binary, || a.add(&b));
    harness.case(&format!("ew.add.{label}.out"), binary, || a.add_out(&b, &mut out));
    harness.case(&format!("ew.mul.{label}"), binary, || a.mul(&b));
    harness.case(&format!("ew.mul.{label}.out"), binary, || a.mul_out(&b, &mut out));
    harness.case(&format!("ew.add.{label}.inplace"), binary, || a.add_(&zero));
    let functions: [(&str, Unary, UnaryOut); 6] = [
        ("exp", TensorOps::exp, TensorOps::exp_out),
        ("tanh", TensorOps::tanh, TensorOps::tanh_out),
        ("sigmoid", TensorOps::sigmoid, TensorOps::sigmoid_out),
        ("gelu", TensorOps::gelu, TensorOps::gelu_out),
        ("relu", TensorOps::relu, TensorOps::relu_out),
        ("sqrt", TensorOps::sqrt, TensorOps::sqrt_out),
    ];
    for (name, function, function_out) in functions {
        harness.case(&format!("ew.{name}.{label}"), unary, || function(&a));
        harness.case(&format!("ew.{name}.{label}.out"), unary, || function_out(&a, &mut out));
    }
    Ok(())
}

fn broadcast(harness: &mut Harness) -> Result<()> {
    let (a, b) = (normal(&[1024, 1024])?, normal(&[1024, 1024])?);
    let (row, column, mut out) = (normal(&[1024])?, normal(&[1024, 1])?, normal(&[1024, 1024])?);
    let elements = f64::from(1 << 20);
    for (name, other, bytes) in [("same", &b, 12.0), ("row", &row, 8.0), ("col", &column, 8.0)] {
        let work = Work::memory(bytes, elements);
        harness.case(&format!("bc.{name}"), work, || a.add(other));
        harness.case(&format!("bc.{name}.out"), work, || a.add_out(other, &mut out));
    }
    Ok(())
}
