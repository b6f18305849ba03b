//! What a backward formula sees: the gradients of the outputs and what was saved of the call.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::device::Device;
use crate::error::Result;
use crate::layout::Dims;
use crate::tensor::Tensor;

/// The gradient of one argument.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// Undefined: nothing flows.
    None,
    /// Of a tensor.
    Tensor(Tensor),
    /// Of a list of tensors.
    List(Vec<Option<Tensor>>),
}

impl From<Tensor> for Gradient {
    fn from(tensor: Tensor) -> Gradient {
        Gradient::Tensor(tensor)
    }
}
impl From<Option<Tensor>> for Gradient {
    fn from(tensor: Option<Tensor>) -> Gradient {
        tensor.map_or(Gradient::None, Gradient::Tensor)
    }
}
impl From<Vec<Tensor>> for Gradient {
    fn from(tensors: Vec<Tensor>) -> Gradient {
        Gradient::List(tensors.into_iter().map(Some).collect())
    }
}

/// What is known of a tensor without its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMeta {
    /// Number of elements along each dimension.
    pub sizes: Dims,
    /// The element type.
    pub dtype: DType,
    /// Where it is.
    pub device: Device,
}

/// The view of a recorded call that a backward formula works from.
pub struct GradContext<'a> {
    grads: &'a [Option<Tensor>],
}

impl<'a> GradContext<'a> {
    /// The gradient of an output; `None` if none flows.
    pub fn grad(&self, output: usize) -> Option<&'a Tensor> {
        self.grads.get(output).and_then(Option::as_ref)
    }

    /// A saved tensor argument.
    ///
    /// # Errors
    /// If it was changed since, or freed by an earlier backward pass.
    pub fn tensor(&self, argument: usize) -> Result<Tensor> {
        unimplemented!("{argument}")
    }

    /// A saved tensor argument that may be absent.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn optional_tensor(&self, argument: usize) -> Result<Option<Tensor>> {
        unimplemented!("{argument}")
    }

    /// A saved list of tensors.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn tensors(&self, argument: usize) -> Result<Vec<Tensor>> {
        unimplemented!("{argument}")
    }

    /// A saved output.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn result(&self, output: usize) -> Result<Tensor> {
        unimplemented!("{output}")
    }

    /// What is known of a tensor argument without its elements; always there.
    pub fn meta(&self, argument: usize) -> &TensorMeta {
        unimplemented!("{argument}")
    }

    /// What is known of each tensor of a list argument.
    pub fn metas(&self, argument: usize) -> &[TensorMeta] {
        unimplemented!("{argument}")
    }

    /// What is known of an output without its elements.
    pub fn result_meta(&self, output: usize) -> &TensorMeta {
        unimplemented!("{output}")
    }

    /// An argument that is not a tensor.
    pub fn attribute(&self, argument: usize) -> Arg<'_> {
        unimplemented!("{argument}")
    }

    /// Whether the gradient of this argument is wanted.
    pub fn needs(&self, argument: usize) -> bool {
        unimplemented!("{argument}")
    }
}
