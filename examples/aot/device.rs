//! A kernel for a CUDA device, and its gradient: called with host tensors, as every other.
//!
//! `cargo run -p opsmith-example-aot -- device`; it needs `nvcc` and a device, and reports a missing one.

use opsmith::aot::{Declaration, release_device_memory};
use opsmith::{DType, Result, Tensor, TensorOps};

pub fn main() {
    match gradient() {
        Ok(gradient) => println!("{gradient:?}"),
        Err(error) => println!("not here: {error}"),
    }
}

fn gradient() -> Result<Vec<f32>> {
    // The file ends in .cu, so its kernels run on the device; a library needs `.target(Backend::Cuda)`.
    let bprop = declare("device_square_bprop", "SquareBprop", &["x", "out", "dout"]).declare()?;
    let square = declare("device_square", "Square", &["x"]).bprop_operator(&bprop).declare()?;
    let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
    // Each call copies the inputs to the device, and the outputs back.
    square.call(&[&square.call(&[&x])?])?.sum()?.backward()?;
    let gradient = x.grad().expect("x is tracked").to_vec::<f32>()?;
    // Memory of the device is cached for later calls until it is released.
    release_device_memory();
    Ok(gradient)
}

fn declare(name: &str, function: &str, inputs: &[&str]) -> Declaration {
    let kernel = format!("{}/kernels/square.cu:{function}", env!("CARGO_MANIFEST_DIR"));
    let declaration = inputs.iter().fold(Declaration::new(name, kernel), |all, input| all.input(*input));
    declaration.output("y").output_dtype(DType::F32).output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
}
