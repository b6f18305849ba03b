//! Gradients of custom operators: another custom operator, or a function.
//!
//! `cargo run -p opsmith-example-aot -- gradients`

use opsmith::aot::Declaration;
use opsmith::{DType, Result, Tensor, TensorOps};

pub fn main() -> Result<()> {
    // A kernel computes the gradient: from x, the output, and the output's gradient.
    let bprop = Declaration::new("custom_square_bprop", kernel("square.cc:SquareBprop"))
        .input("x")
        .input("out")
        .input("dout")
        .output("dx")
        .output_dtype(DType::F32)
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .declare()?;
    let square = square("custom_square").bprop_operator(&bprop).declare()?;
    let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
    square.call(&[&square.call(&[&x])?])?.sum()?.backward()?;
    println!("{:?}", x.grad().expect("x is tracked").to_vec::<f32>()?);

    // A function computes it, with operators of any kind.
    let square = self::square("custom_square_again")
        .bprop(|call| {
            let twice = call.input(0)?.add(call.input(0)?)?;
            Ok(vec![Some(twice.mul(&call.grad_or_zeros(0)?)?)])
        })
        .declare()?;
    let x = Tensor::of(&[3.0f32]).requires_grad_(true)?;
    square.call(&[&x])?.backward()?;
    println!("{:?}", x.grad().expect("x is tracked").to_vec::<f32>()?);
    Ok(())
}

fn square(name: &str) -> Declaration {
    Declaration::new(name, kernel("square.cc:Square"))
        .input("x")
        .output("y")
        .dtypes([DType::F32, DType::F32])
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
}

fn kernel(name: &str) -> String {
    format!("{}/kernels/{name}", env!("CARGO_MANIFEST_DIR"))
}
