//! Shared code of tests of custom operators: paths of kernels, declarations, tensors.

#![allow(dead_code, reason = "not every test file uses everything")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::{DType, Tensor};
use opsmith_aot::{AttrType, Declaration};

/// A kernel of the examples: `square.cc:Square`.
pub fn example(kernel: &str) -> String {
    format!("{}/../examples/aot/kernels/{kernel}", env!("CARGO_MANIFEST_DIR"))
}

/// A kernel that only tests have.
pub fn kernel(kernel: &str) -> String {
    format!("{}/aot/{kernel}", env!("CARGO_MANIFEST_DIR"))
}

/// The documented example: add, then sum over an axis.
pub fn add_reduce(name: &str) -> Declaration {
    Declaration::new(name, example("add_reduce.cc:CustomKernel"))
        .input("x")
        .input("y")
        .output("sums")
        .attribute_at_call("axis", AttrType::Int)
        .attribute_with_default("keep_dim", false)
        .dtypes([DType::F32; 3])
}

/// A declaration with outputs of the shape of the first input.
pub fn same_shape(declaration: Declaration, outputs: usize) -> Declaration {
    declaration.output_shape_fn(move |call| Ok(vec![call.shape(0)?.to_vec(); outputs]))
}

/// A matrix of elements by their position.
pub fn matrix(rows: usize, columns: usize, element: impl Fn(usize) -> f32) -> Tensor {
    let elements: Vec<f32> = (0..rows * columns).map(element).collect();
    Tensor::from_slice(&elements, &[rows as i64, columns as i64]).unwrap()
}

/// A library that is compiled by hand from a kernel that only tests have; its path. `AOT_HEADER` can name
/// the folder of another header of the interface, to see that libraries built against it run.
#[track_caller]
pub fn prebuilt(source: &str, library: &str, flags: &[&str]) -> String {
    let own = || concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/include").to_owned();
    compiled(source, library, &std::env::var("AOT_HEADER").unwrap_or_else(|_| own()), flags)
}

/// The same with headers of that folder.
#[track_caller]
pub fn compiled(source: &str, library: &str, headers: &str, flags: &[&str]) -> String {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(library);
    // Tests run at once: none finds a library that another is still writing.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let unfinished = library.with_extension(format!("{}.unfinished", COUNT.fetch_add(1, Ordering::Relaxed)));
    let output = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()))
        .args(["-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra", "-I", headers, "-o"])
        .arg(&unfinished)
        .args(flags)
        .arg(Path::new(&kernel("")).join(source))
        .output()
        .expect("there is a C++ compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(unfinished, &library).unwrap();
    library.display().to_string()
}
