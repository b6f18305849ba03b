//! Comparison of a result with the recorded one, within the recording library's own tolerances.

use opsmith::{DType, Scalar, Tensor};
use opsmith_runtime::{Complex64, with_dtype};

/// The allowed deviation from the expected number: `absolute + relative * |expected|`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// In units of the expected number.
    pub relative: f64,
    /// In units of 1.
    pub absolute: f64,
}

impl Tolerance {
    /// The tolerance for results of a dtype; `sums`: the operator adds up many elements, so that the order of additions
    /// has an effect.
    pub fn new(dtype: DType, sums: bool) -> Tolerance {
        let (relative, absolute) = match dtype {
            DType::F64 | DType::C128 => (1e-7, 1e-7),
            DType::F32 | DType::C64 if sums => (1e-4, 1e-4),
            DType::F32 | DType::C64 => (1.3e-6, 1e-5),
            DType::F16 => (1e-3, 1e-3),
            DType::BF16 => (1.6e-2, 1e-2),
            _ => (0.0, 0.0),
        };
        Tolerance { relative, absolute }
    }

    fn accepts(self, got: f64, expected: f64) -> bool {
        got == expected
            || (got.is_nan() && expected.is_nan())
            || (got - expected).abs() <= self.absolute + self.relative * expected.abs()
    }

    fn accepts_complex(self, got: Complex64, expected: Complex64) -> bool {
        let is_nan = |value: Complex64| value.re.is_nan() || value.im.is_nan();
        (self.accepts(got.re, expected.re) && self.accepts(got.im, expected.im))
            || (is_nan(got) && is_nan(expected))
            || (got - expected).norm() <= self.absolute + self.relative * expected.norm()
    }

    fn accepts_scalar(self, got: Scalar, expected: Scalar) -> bool {
        match (got, expected) {
            (Scalar::Complex(got), Scalar::Complex(expected)) => self.accepts_complex(got, expected),
            (Scalar::Float(got), Scalar::Float(expected)) => self.accepts(got, expected),
            (got, expected) => got == expected,
        }
    }
}

/// The first difference between two tensors: their dtype, their shape, or an element; `None` if there
/// is none.
pub fn difference(got: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Option<String> {
    if got.dtype() != expected.dtype() {
        return Some(format!("dtype: expected {}, got {}", expected.dtype(), got.dtype()));
    }
    if got.shape() != expected.shape() {
        return Some(format!("shape: expected {:?}, got {:?}", expected.shape(), got.shape()));
    }
    let (found, wanted) = (scalars(got), scalars(expected));
    let differs = |(got, wanted): (&Scalar, &Scalar)| !tolerance.accepts_scalar(*got, *wanted);
    let first = found.iter().zip(&wanted).position(differs)?;
    let count = found.iter().zip(&wanted).filter(|(got, wanted)| differs((got, wanted))).count();
    Some(format!(
        "at {:?}: expected {}, got {} ({count} of {} elements differ)",
        index_of(first, expected.shape()),
        wanted[first],
        found[first],
        wanted.len()
    ))
}

/// The difference between two plain values.
pub fn scalar_difference(got: Scalar, expected: Scalar) -> Option<String> {
    let same = Tolerance::new(DType::F64, false).accepts_scalar(got, expected);
    (!same).then(|| format!("expected {expected}, got {got}"))
}

fn scalars(tensor: &Tensor) -> Vec<Scalar> {
    with_dtype!(tensor.dtype(), T => {
        let elements = tensor.to_vec::<T>().expect("the dtype is the tensor's own");
        elements.into_iter().map(opsmith::Element::to_scalar).collect()
    })
}

/// The index of an element from its position in row-major order.
fn index_of(mut position: usize, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (place, &size) in index.iter_mut().zip(shape).rev() {
        *place = (position as i64) % size.max(1);
        position /= size.max(1) as usize;
    }
    index
}
