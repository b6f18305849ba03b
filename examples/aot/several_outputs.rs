//! A custom operator with three outputs, declared by a registration record, and its gradient.
//!
//! `cargo run -p opsmith-example-aot -- several_outputs`

use opsmith::aot::Declaration;
use opsmith::{DType, Result, Tensor, TensorOps};

/// The record that the other framework writes for `CustomRegOp("add_mul_div")`.
const RECORD: &str = r#"{
  "op_name": "add_mul_div",
  "inputs": [{"index": 0, "name": "x", "paramType": "required"},
             {"index": 1, "name": "y", "paramType": "required"}],
  "outputs": [{"index": 0, "name": "sum", "paramType": "required"},
              {"index": 1, "name": "product", "paramType": "required"},
              {"index": 2, "name": "quotient", "paramType": "required"}],
  "attr": [],
  "dtype_format": [[["float32", "DefaultFormat"], ["float32", "DefaultFormat"], ["float32", "DefaultFormat"],
                    ["float32", "DefaultFormat"], ["float32", "DefaultFormat"]]],
  "target": "CPU"
}"#;

pub fn main() -> Result<()> {
    let bprop = Declaration::new("add_mul_div_bprop", kernel("add_mul_div.cc:AddMulDivBprop"))
        .input("x")
        .input("y")
        .input("dsum")
        .input("dproduct")
        .input("dquotient")
        .output("dx")
        .output("dy")
        .output_dtypes([DType::F32; 2])
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec(); 2]))
        .declare()?;
    let add_mul_div = Declaration::from_record(kernel("add_mul_div.cc:AddMulDiv"), RECORD)?
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec(); 3]))
        .bprop_operator(&bprop)
        .declare()?;

    let x = Tensor::of(&[1.0f32, 4.0, 9.0]).requires_grad_(true)?;
    let y = Tensor::of(&[1.0f32, 1.0, 1.0]).requires_grad_(true)?;
    let outs = add_mul_div.call_several(&[&x, &y])?;
    outs[0].add(&outs[1])?.mul(&outs[2])?.sum()?.backward()?;
    println!("dx {:?}", x.grad().expect("x is tracked").to_vec::<f32>()?);
    println!("dy {:?}", y.grad().expect("y is tracked").to_vec::<f32>()?);
    Ok(())
}

fn kernel(name: &str) -> String {
    format!("{}/kernels/{name}", env!("CARGO_MANIFEST_DIR"))
}
