//! The documented custom operator: add, then sum over an axis. Drop in a source file, call it.
//!
//! `cargo run -p opsmith-example-aot -- add_reduce`

use opsmith::aot::{AttrType, Declaration};
use opsmith::{DType, Result, Tensor, Value};

pub fn main() -> Result<()> {
    // The inputs and outputs of the kernel. The shape of its output comes from `CustomKernelInferShape`, and
    // `CustomKernelInit` requests a workspace for each new shape.
    let add_reduce = Declaration::new("custom_add_reduce", kernel("add_reduce.cc:CustomKernel"))
        .doc("Adds two matrices and sums over an axis.")
        .input("x")
        .input("y")
        .output("sums")
        .attribute_at_call("axis", AttrType::Int)
        .attribute_with_default("keep_dim", false)
        .dtypes([DType::F32, DType::F32, DType::F32])
        .declare()?;

    // Compiled at the first call, cached for all later ones, in this process and others.
    let ones = Tensor::from_slice(&[1.0f32; 20], &[4, 5])?;
    let sums = add_reduce.call_with(&[&ones, &ones], &[("axis", 1.into())])?;
    println!("{}", sums[0]);

    // By name, as every other operator.
    let args = [Value::from(&ones), Value::from(&ones)];
    let named = [("axis", Value::from(0i64)), ("keep_dim", Value::from(true))];
    println!("{:?}", opsmith::call("custom_add_reduce", &args, &named)?);

    // Inference before a run: -1 is an unknown size.
    let inputs = [(&[4, -1][..], DType::F32), (&[4, -1][..], DType::F32)];
    println!("{:?}", add_reduce.infer(&inputs, &[("axis", 1.into())])?);
    Ok(())
}

fn kernel(name: &str) -> String {
    format!("{}/kernels/{name}", env!("CARGO_MANIFEST_DIR"))
}
