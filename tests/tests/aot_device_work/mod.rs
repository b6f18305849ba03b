//! Work with kernels for a device, each part in a separate process: with the stand-in for the driver, or with a device.
//! Must not know which.
//!
//! `AOT_DEVICE_LIBRARY` is the library of `tests/cuda/kernels.cu`. A part that fails panics, and with it
//! its process.

mod declared;
mod numbers;
mod resident;
mod trouble;

use opsmith::{DType, Result, Tensor};
use opsmith_aot::Declaration;
use opsmith_runtime::Backend;

/// One part of the work.
type Part = fn() -> Result<()>;

/// Every part; all succeed with the stand-in, all but [`OF_STAND_IN`] with a device.
pub const PARTS: [(&str, Part); 17] = [
    ("calls", numbers::calls),
    ("gradients", numbers::gradients),
    ("reductions", numbers::reductions),
    ("graphs", numbers::graphs),
    ("inputs", numbers::inputs),
    ("threads", numbers::threads),
    ("resident", resident::resident),
    ("warm", numbers::warm),
    ("waits", numbers::waits),
    ("failures", trouble::failures),
    ("checks", trouble::checks),
    ("illegal", trouble::illegal),
    ("sandbox", trouble::sandbox),
    ("sandbox_after", trouble::sandbox_after),
    ("reports", trouble::reports),
    ("records", declared::records),
    ("sources", declared::sources),
];

/// The parts that look at the stand-in itself.
pub const OF_STAND_IN: [&str; 2] = ["reports", "sources"];

/// Does the part that the environment names.
pub fn work(name: &str) {
    let (_, part) = PARTS.iter().find(|(known, _)| *known == name).expect("there is a part of that name");
    part().unwrap_or_else(|error| panic!("{error}"));
    opsmith_aot::release_device_memory();
    println!("DONE {name}");
}

/// A kernel of the library.
fn kernel(function: &str) -> String {
    format!("{}:{function}", std::env::var("AOT_DEVICE_LIBRARY").expect("the library is named"))
}

/// A kernel for the device with inputs of these names and outputs of the first one's shape.
fn on_device(function: &str, inputs: &[&str], outputs: &[&str]) -> Declaration {
    let declaration = Declaration::new(format!("device_{function}"), kernel(function));
    let declaration = inputs.iter().fold(declaration, |declaration, input| declaration.input(*input));
    let declaration = outputs.iter().fold(declaration, |declaration, output| declaration.output(*output));
    let count = outputs.len();
    declaration
        .target(Backend::Cuda)
        .dtypes(vec![DType::F32; inputs.len() + count])
        .output_shape_fn(move |call| Ok(vec![call.shape(0)?.to_vec(); count]))
        .check(false)
        .sandbox(false)
        .unlisted()
}

/// A kernel of one input and one output.
fn simple(function: &str) -> Declaration {
    on_device(function, &["x"], &["y"])
}

/// The elements of the tensor that a call gave.
fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec::<f32>().expect("it has floats")
}
