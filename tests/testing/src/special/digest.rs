//! Digests of results: small tensors whole, large ones as a few sums over every element.
//!
//! In: a tensor. Out: a [`Digest`], and the comparison of two. NaN and infinities are summed separately from numbers,
//! so that a digest includes their positions, too.

use opsmith::Tensor;
use opsmith_runtime::with_dtype;
use serde_json::Value as Json;

use super::given::{integers, number};
use crate::checks::elements;

/// The allowed relative difference between elementary functions of the recording library and ours.
const RELATIVE: f64 = 1e-9;

/// As [`RELATIVE`], in single precision.
const SINGLE: f64 = 1e-5;

/// Beyond this, and below its inverse, intermediate arithmetic overflows and loses digits in different ways.
const HUGE: f64 = 1e100;

/// The digest of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct Digest {
    /// Its dtype.
    pub dtype: String,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements.
    pub elements: Elements,
}

/// The elements of a digest, real and imaginary parts one after the other.
#[derive(Clone, PartialEq, Debug)]
pub enum Elements {
    /// All of them.
    All(Vec<f64>),
    /// Weighted sums: of the numbers, of the positions of NaN, of infinity, of minus infinity; and the magnitude of the
    /// first sum's terms.
    Sums([f64; 4], f64),
}

/// The factor of an element in a sum. `record.py` has the same.
pub fn weight(index: usize) -> f64 {
    ((index + 1) as f64 * 0.618_033_988_749_894_9) % 1.0 - 0.5
}

impl Digest {
    /// The digest of all elements of a tensor.
    pub fn of(tensor: &Tensor) -> Digest {
        Digest {
            dtype: tensor.dtype().name().to_owned(),
            shape: tensor.shape().to_vec(),
            elements: Elements::All(parts(tensor)),
        }
    }

    /// The digest of a tensor in the form of another, for comparison.
    pub fn like(tensor: &Tensor, other: &Digest) -> Digest {
        let whole = Digest::of(tensor);
        match (&other.elements, &whole.elements) {
            (Elements::Sums(..), Elements::All(parts)) => Digest { elements: sums(parts), ..whole },
            _ => whole,
        }
    }

    /// A tensor for comparison as a gradient: without the elements at which an input of its shape is NaN, infinite,
    /// huge or tiny, where slopes are unspecified.
    pub(super) fn calm(tensor: &Tensor, inputs: &[Tensor]) -> Tensor {
        let wild = |part: f64| part.is_nan() || part.abs() > HUGE || part != 0.0 && part.abs() < 1.0 / HUGE;
        let mut values = elements(tensor);
        for input in
            inputs.iter().filter(|input| input.shape() == tensor.shape() && input.dtype().is_differentiable())
        {
            for (value, at) in values.iter_mut().zip(elements(input)) {
                if wild(at.re) || wild(at.im) {
                    *value = Default::default();
                }
            }
        }
        let values = Tensor::from_slice(&values, tensor.shape()).expect("its own shape");
        opsmith::to_dtype(&values, tensor.dtype()).expect("a conversion")
    }

    /// Reads `[dtype, shape, elements]`.
    pub(super) fn read(json: &Json) -> Option<Digest> {
        let (dtype, shape, elements) = (json.get(0)?, json.get(1)?, json.get(2)?);
        let elements = match elements {
            Json::Array(values) => Elements::All(values.iter().map(number).collect::<Option<_>>()?),
            sums => {
                let sum = |index: usize| sums.get("sums")?.get(index).map_or(Some(0.0), number);
                Elements::Sums([sum(0)?, sum(1)?, sum(2)?, sum(3)?], 0.0)
            }
        };
        Some(Digest { dtype: dtype.as_str()?.to_owned(), shape: integers(shape)?, elements })
    }

    /// The difference of a result from this one, if any. Signs of zeros are ignored: they depend on the order of sums.
    pub fn difference(&self, found: &Digest) -> Option<String> {
        if self.dtype != found.dtype || self.shape != found.shape {
            return Some(format!(
                "{}{:?} instead of {}{:?}",
                found.dtype, found.shape, self.dtype, self.shape
            ));
        }
        // Integers become `float32` in functions of floats. Such sums lose digits where terms cancel.
        let is_single = ["float32", "complex64"].contains(&self.dtype.as_str());
        let relative = if is_single { SINGLE } else { RELATIVE };
        let absolute = if is_single { SINGLE } else { 1e-4 * RELATIVE };
        match (&self.elements, &found.elements) {
            (Elements::All(wanted), Elements::All(found)) => {
                let differ = |(_, (wanted, found)): &(usize, (&f64, &f64))| {
                    !agree(**wanted, **found, relative, absolute)
                };
                let all = wanted.iter().zip(found).enumerate().filter(differ).collect::<Vec<_>>();
                let (place, (wanted, found)) = all.first()?;
                Some(format!(
                    "{} elements differ, the first at {place}: {found:e}, not {wanted:e}",
                    all.len()
                ))
            }
            (Elements::Sums(wanted, _), Elements::Sums(found, scale)) => {
                // Sums are recorded with ten digits.
                let off = (wanted[0] - found[0]).abs() > relative * (scale + wanted[0].abs() + 1e-4);
                let places = (1..4).any(|kind| (wanted[kind] - found[kind]).abs() > 1e-6);
                let name = if places { "places of NaN and infinities" } else { "numbers" };
                (off || places).then(|| format!("the {name} differ: sums {found:?}, not {wanted:?}"))
            }
            _ => Some("recorded in another form".to_owned()),
        }
    }
}

fn agree(wanted: f64, found: f64, relative: f64, absolute: f64) -> bool {
    wanted == found
        || wanted.is_nan() && found.is_nan()
        || (wanted - found).abs() <= relative * wanted.abs() + absolute
}

fn parts(tensor: &Tensor) -> Vec<f64> {
    if tensor.dtype().is_complex() {
        return elements(tensor).iter().flat_map(|x| [x.re, x.im]).collect();
    }
    with_dtype!(tensor.dtype(), T => {
        let values = tensor.detach().to_vec::<T>().expect("its own dtype");
        values.iter().map(|value| opsmith_runtime::Element::to_scalar(*value).to_f64()).collect()
    })
}

fn sums(parts: &[f64]) -> Elements {
    let (mut sums, mut scale) = ([0.0; 4], 0.0);
    for (index, &part) in parts.iter().enumerate() {
        let weight = weight(index);
        let (kind, term) = match part {
            part if part.is_nan() => (1, weight),
            f64::INFINITY => (2, weight),
            f64::NEG_INFINITY => (3, weight),
            // A huge element must not hide the others.
            part => (0, weight * part.clamp(-1e15, 1e15)),
        };
        sums[kind] += term;
        scale += if kind == 0 { term.abs() } else { 0.0 };
    }
    Elements::Sums(sums, scale)
}
