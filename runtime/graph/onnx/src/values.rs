//! Values while a model is replayed: tensors, and numbers that are known.
//!
//! In: tensors of the file, sizes of tensors. Out: values. A shape that a model computes is a tensor in ONNX, and has to be
//! known when an operator gets it: values that follow from constants and sizes alone are computed aside from the trace.

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::libraries::one;

/// More elements are no numbers of shapes: they are computed when the model runs.
pub(crate) const KNOWN_ELEMENTS: i64 = 4096;
/// More elements that vary with sizes are not written one by one into a graph.
pub(crate) const VARYING_ELEMENTS: i64 = 64;

/// A value.
#[derive(Clone)]
pub(crate) enum Datum {
    /// A tensor, whose elements are known when the model runs.
    Tensor(Tensor),
    /// A tensor on the host whose elements are known.
    Known(Known),
    /// A sequence.
    List(Vec<Datum>),
    /// The absent value of an optional.
    Absent,
}

/// Elements that are known.
#[derive(Clone)]
pub(crate) struct Known {
    pub tensor: Tensor,
    /// Whether they may differ from replay to replay, because they follow from sizes.
    pub varies: bool,
}

impl Datum {
    /// A value that is the same in every replay, if it is small enough to be known.
    pub fn constant(tensor: Tensor) -> Datum {
        Datum::of(tensor, false)
    }

    pub fn of(tensor: Tensor, varies: bool) -> Datum {
        let limit = if varies { VARYING_ELEMENTS } else { KNOWN_ELEMENTS };
        if tensor.numel() <= limit { Datum::Known(Known { tensor, varies }) } else { Datum::Tensor(tensor) }
    }

    /// Numbers of sizes.
    pub fn sizes(sizes: &[i64], shape: &[i64], varies: bool) -> Result<Datum> {
        Ok(Datum::Known(Known { tensor: Tensor::from_slice(sizes, shape)?, varies }))
    }

    pub fn known(&self) -> Option<&Known> {
        match self {
            Datum::Known(known) => Some(known),
            _ => None,
        }
    }

    /// The value as an operand of a call.
    ///
    /// # Errors
    /// If it is no tensor.
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Datum::Tensor(tensor) => Ok(tensor.clone()),
            Datum::Known(known) if known.varies => written(&known.tensor),
            Datum::Known(known) => Ok(known.tensor.clone()),
            Datum::List(_) => Err(Error::argument("a sequence is given where a tensor is expected")),
            Datum::Absent => Err(Error::argument("an absent value is given where a tensor is expected")),
        }
    }

    /// The elements as integers.
    ///
    /// # Errors
    /// If they are not known.
    pub fn ints(&self, what: &str) -> Result<Vec<i64>> {
        integers(&self.elements(what)?)
    }

    /// The elements as floats.
    ///
    /// # Errors
    /// If they are not known.
    pub fn floats(&self, what: &str) -> Result<Vec<f64>> {
        Ok(scalars(&self.elements(what)?)?.into_iter().map(|scalar| scalar.to_f64()).collect())
    }

    fn elements(&self, what: &str) -> Result<Tensor> {
        match self {
            Datum::Known(known) => Ok(known.tensor.clone()),
            _ => Err(unsupported(format!("`{what}` that is computed from elements"))
                .with_help("it must follow from constants and sizes: export the model with a fixed value")),
        }
    }
}

fn scalars(tensor: &Tensor) -> Result<Vec<opsmith_runtime::scalar::Scalar>> {
    opsmith_graph::untraced(|| {
        let flat = one("reshape", &[tensor.into(), vec![-1i64].into()], &[])?;
        (0..flat.numel())
            .map(|at| one("select.int", &[(&flat).into(), 0i64.into(), at.into()], &[])?.item())
            .collect()
    })
}

fn integers(tensor: &Tensor) -> Result<Vec<i64>> {
    if tensor.dtype() == DType::I64 && tensor.is_contiguous() {
        return tensor.to_vec::<i64>();
    }
    Ok(scalars(tensor)?.into_iter().map(|scalar| scalar.to_i64()).collect())
}

/// Elements that vary with sizes, as a part of the graph.
fn written(tensor: &Tensor) -> Result<Tensor> {
    let number = |scalar: opsmith_runtime::scalar::Scalar, sizes: Vec<i64>| {
        one("full", &[sizes.into(), scalar.into()], &[("dtype", Value::from(tensor.dtype()))])
    };
    let numbers = scalars(tensor)?;
    match numbers.as_slice() {
        [] => number(opsmith_runtime::scalar::Scalar::Int(0), tensor.shape().to_vec()),
        [only] => number(*only, tensor.shape().to_vec()),
        numbers => {
            let each = numbers.iter().map(|only| number(*only, vec![1])).collect::<Result<Vec<_>>>()?;
            let all = one("cat", &[each.into(), 0i64.into()], &[])?;
            one("reshape", &[(&all).into(), tensor.shape().to_vec().into()], &[])
        }
    }
}
