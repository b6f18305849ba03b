//! `ew`: element-wise operators, from sizes within the first cache to sizes beyond all.

use opsmith::{GeluOptions, Result, Tensor, TensorOps};

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
    let functions: [(&str, Unary, UnaryOut); 7] = [
        ("exp", TensorOps::exp, TensorOps::exp_out),
        ("tanh", TensorOps::tanh, TensorOps::tanh_out),
        ("sigmoid", TensorOps::sigmoid, TensorOps::sigmoid_out),
        ("gelu", TensorOps::gelu, TensorOps::gelu_out),
        ("gelu_tanh", gelu_tanh, |x, out| x.gelu_with_out(out, approximate())),
        ("relu", TensorOps::relu, TensorOps::relu_out),
        ("sqrt", TensorOps::sqrt, TensorOps::sqrt_out),
    ];
    for (name, function, function_out) in functions {
        harness.case(&format!("ew.{name}.{label}"), unary, || function(&a));
        harness.case(&format!("ew.{name}.{label}.out"), unary, || function_out(&a, &mut out));
    }
    Ok(())
}

fn approximate() -> GeluOptions {
    GeluOptions::new().approximate("tanh")
}

fn gelu_tanh(x: &Tensor) -> Result<Tensor> {
    x.gelu_with(approximate())
}
