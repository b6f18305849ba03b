//! Recorded results, and comparisons with them.

#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

use opsmith::{DType, Tensor, TensorOps};
use opsmith_nn::StateDict;

/// The recorded layers: `CASE.state.PATH`, `CASE.input.N` and so on.
pub fn layers() -> StateDict {
    recorded("layers")
}

/// The recorded optimizers, schedules and clippings.
pub fn optim() -> StateDict {
    recorded("optim")
}

fn recorded(name: &str) -> StateDict {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.safetensors"));
    let dict = StateDict::load(file).unwrap();
    // Slashes divide the parts of the case from the paths of parameters.
    dict.into_iter().map(|(path, tensor)| (path.replace('/', "."), tensor)).collect()
}

/// The gradient of each result in the recorded program: the cosine of its position.
pub fn cotangent(shape: &[i64]) -> Tensor {
    let count = shape.iter().product::<i64>();
    let elements: Vec<f64> = (0..count).map(|position| (position as f64).cos()).collect();
    Tensor::from_slice(&elements, shape).unwrap()
}

/// Fails if shapes differ, or elements by more than a part of the largest.
#[track_caller]
pub fn assert_close(name: &str, found: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!(found.shape(), expected.shape(), "{name}: shape");
    assert_eq!(found.dtype(), expected.dtype(), "{name}: dtype");
    let numbers = |tensor: &Tensor| tensor.detach().to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
    let (found, expected) = (numbers(found), numbers(expected));
    let scale = expected.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    for (position, (a, b)) in found.iter().zip(&expected).enumerate() {
        let same = a == b || (a - b).abs() <= tolerance * scale;
        assert!(
            same,
            "{name}: element {position} is {a}, expected {b}\nfound {found:?}\nexpected {expected:?}"
        );
    }
}

/// A path in the folder of temporary files, removed at the end.
pub struct TemporaryFile(pub PathBuf);

impl TemporaryFile {
    pub fn new(name: &str) -> TemporaryFile {
        let name = format!("opsmith-nn-{}-{name}", std::process::id());
        TemporaryFile(std::env::temp_dir().join(name))
    }
}

impl AsRef<Path> for TemporaryFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that a failed test did not write is not there.
        _ = std::fs::remove_file(&self.0);
    }
}
