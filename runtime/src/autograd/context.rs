//! The input of a backward formula: gradients of the outputs and data saved from the call.

use opsmith_core::DType;
use smallvec::{Array, SmallVec};

use super::call::Call;
use super::capture::Wanted;
use super::node::{Edge, Node};
use super::saved::{Slot, tracked_at};
use crate::arg::Arg;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::layout::{Dims, copied};
use crate::op::Gradients;
use crate::op::OpDef;
use crate::shared::Shared;
use crate::tensor::Tensor;

/// The gradient of one argument.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// Undefined: no gradient flows.
    None,
    /// The gradient of a tensor.
    Tensor(Tensor),
    /// The gradients of a list of tensors.
    List(Vec<Option<Tensor>>),
}

impl Gradient {
    /// The results of a formula with several gradients.
    #[inline]
    pub fn each<const N: usize>(gradients: [Gradient; N]) -> Gradients {
        gradients.into_iter().collect()
    }

    /// The result of a formula with one gradient.
    #[inline]
    pub fn one(gradient: impl Into<Gradient>) -> Gradients {
        let mut gradients = Gradients::new();
        gradients.push(gradient.into());
        gradients
    }

    /// The result of a formula that passes no gradient on.
    pub fn none(count: usize) -> Gradients {
        std::iter::repeat_n(Gradient::None, count).collect()
    }
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
impl From<Vec<Option<Tensor>>> for Gradient {
    fn from(tensors: Vec<Option<Tensor>>) -> Gradient {
        Gradient::List(tensors)
    }
}
impl From<Vec<Tensor>> for Gradient {
    fn from(tensors: Vec<Tensor>) -> Gradient {
        Gradient::List(tensors.into_iter().map(Some).collect())
    }
}

/// Metadata of the tensor without its elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMeta {
    /// Number of elements along each dimension.
    pub sizes: Dims,
    /// The element type.
    pub dtype: DType,
    /// The device of the tensor.
    pub device: Device,
}

impl TensorMeta {
    /// Metadata of the tensor.
    #[inline]
    pub fn of(tensor: &Tensor) -> TensorMeta {
        TensorMeta { sizes: copied(&tensor.layout().sizes), dtype: tensor.dtype(), device: tensor.device() }
    }

    /// Appends the metadata of a tensor, field by field where it stays: bytes just written would be moved before they are there.
    #[inline]
    pub(super) fn push_of<A: Array<Item = TensorMeta>>(list: &mut SmallVec<A>, tensor: &Tensor) {
        list.reserve(1);
        // SAFETY: there is room for one more, of which every field is written.
        unsafe {
            let place = list.as_mut_ptr().add(list.len());
            (&raw mut (*place).sizes).write(copied(&tensor.layout().sizes));
            (&raw mut (*place).dtype).write(tensor.dtype());
            (&raw mut (*place).device).write(tensor.device());
            list.set_len(list.len() + 1);
        }
    }

    /// Placeholder metadata of an absent optional tensor.
    pub(super) fn absent() -> TensorMeta {
        TensorMeta { sizes: Dims::new(), dtype: DType::Bool, device: Device::CPU }
    }

    /// Number of dimensions.
    pub fn dim(&self) -> usize {
        self.sizes.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> i64 {
        crate::layout::numel(&self.sizes)
    }
}

/// The view of a recorded call that a backward formula works from.
pub struct GradContext<'a> {
    pub(super) node: &'a Shared<Node>,
    pub(super) call: &'a Call,
    pub(super) grads: &'a [Option<Tensor>],
    /// The nodes whose gradients are wanted; all if `None`.
    pub(super) wanted: Option<&'a Wanted>,
}

impl<'a> GradContext<'a> {
    /// The operator that was called.
    pub(crate) fn op(&self) -> &'static OpDef {
        self.call.op
    }

    /// The gradient of an output; `None` if none flows.
    pub fn grad(&self, output: usize) -> Option<&'a Tensor> {
        self.grads.get(output).and_then(Option::as_ref)
    }

    /// The gradients of all outputs, for an operator that returns a list.
    pub fn grads(&self) -> &'a [Option<Tensor>] {
        self.grads
    }

    /// A saved tensor argument.
    ///
    /// # Errors
    /// If it was changed since, or freed by an earlier backward pass.
    pub fn tensor(&self, argument: usize) -> Result<Tensor> {
        self.input(self.call.positions(argument).start)
    }

    /// A saved tensor argument that may be absent.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn optional_tensor(&self, argument: usize) -> Result<Option<Tensor>> {
        let position = self.call.positions(argument).start;
        self.call.is_present(position).then(|| self.input(position)).transpose()
    }

    /// A saved list of tensors.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn tensors(&self, argument: usize) -> Result<Vec<Tensor>> {
        self.call.positions(argument).map(|position| self.input(position)).collect()
    }

    /// A saved list of tensors of which some may be absent.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn optional_tensors(&self, argument: usize) -> Result<Vec<Option<Tensor>>> {
        self.call
            .positions(argument)
            .map(|position| self.call.is_present(position).then(|| self.input(position)).transpose())
            .collect()
    }

    /// A saved output.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn result(&self, output: usize) -> Result<Tensor> {
        let slot = Slot::Output(output as u32);
        let meta = self.result_meta(output);
        if self.call.op.is_unfollowed(output, meta.dtype) && self.call.saved.has_tangents() {
            return Err(self.call.op.unfollowed(output));
        }
        let tensor = self.call.restore(slot, meta, || describe_output(self.call.op, output))?;
        // Outputs without a gradient keep their edge as well: a gradient that arrives there is reported as an error.
        let follows = meta.dtype.is_differentiable() && !self.call.op.is_constant(output);
        let edge =
            (super::recording() && follows).then(|| Edge { node: self.node.clone(), output: output as u32 });
        Ok(tracked_at(tensor, edge.as_ref()))
    }

    /// Every saved output, for an operator that returns a list.
    ///
    /// # Errors
    /// As [`GradContext::tensor`].
    pub fn results(&self) -> Result<Vec<Tensor>> {
        (0..self.node.outputs.len()).map(|output| self.result(output)).collect()
    }

    /// Metadata of the tensor argument without its elements. Of an absent optional argument it is a placeholder
    /// ([`GradContext::optional_meta`]).
    pub fn meta(&self, argument: usize) -> &TensorMeta {
        &self.call.inputs[self.call.positions(argument).start]
    }

    /// Metadata of the optional tensor argument; `None` if it is absent.
    pub fn optional_meta(&self, argument: usize) -> Option<&TensorMeta> {
        let position = self.call.positions(argument).start;
        self.call.is_present(position).then(|| &self.call.inputs[position])
    }

    /// Metadata of each tensor of a list argument.
    pub fn metas(&self, argument: usize) -> &[TensorMeta] {
        &self.call.inputs[self.call.positions(argument)]
    }

    /// Metadata of the output without its elements.
    pub fn result_meta(&self, output: usize) -> &TensorMeta {
        &self.node.outputs[output]
    }

    /// An argument that is not a tensor.
    ///
    /// # Panics
    /// If the formula's definition does not declare that it reads the argument.
    pub fn attribute(&self, argument: usize) -> Arg<'_> {
        match self.call.attributes.iter().find(|(index, _)| *index as usize == argument) {
            Some((_, value)) => value.as_arg(),
            None => panic!(
                "a formula of {} reads argument {argument}, which its definition does not mention",
                self.call.op.name
            ),
        }
    }

    /// Whether the gradient of this argument is wanted; of a list, that of any of its tensors.
    pub fn needs(&self, argument: usize) -> bool {
        self.call.positions(argument).any(|position| self.needs_position(position))
    }

    /// Whether the gradient of one tensor of a list argument is wanted.
    pub fn needs_item(&self, argument: usize, item: usize) -> bool {
        self.needs_position(self.call.positions(argument).start + item)
    }

    fn needs_position(&self, position: usize) -> bool {
        match &self.node.edges[position] {
            Some(edge) => self.wanted.is_none_or(|wanted| wanted.contains(&edge.node)),
            None => false,
        }
    }

    fn input(&self, position: usize) -> Result<Tensor> {
        let slot = Slot::Input(position as u32);
        let what = || format!("argument `{}`", self.call.input_name(position));
        let tensor = self.call.restore(slot, &self.call.inputs[position], what)?;
        let edge = self.node.edges[position].as_ref().filter(|_| super::recording());
        Ok(tracked_at(tensor, edge))
    }
}

fn describe_output(op: &OpDef, output: usize) -> String {
    match op.schema.returns.get(output).and_then(|result| result.name) {
        Some(name) => format!("result `{name}`"),
        None if op.schema.returns.len() > 1 => format!("result {output}"),
        None => "result".to_owned(),
    }
}

/// The value of a formula that its spec declares not computable.
///
/// # Errors
/// Always, with the spec's reason.
#[cold]
pub fn not_implemented<T>(reason: &str) -> Result<T> {
    Err(Error::not_implemented(format!("the derivative is not implemented: {reason}")))
}
