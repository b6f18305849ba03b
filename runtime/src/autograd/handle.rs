//! The public interface: the autograd methods of tensors, `backward` and `grad`.

use std::panic::Location;

use smallvec::SmallVec;

use super::context::TensorMeta;
use super::edge_of;
use super::engine::{self, Roots};
use super::node::{Edge, Edges, Kind, Node};
use crate::copy;
use crate::element::Element;
use crate::error::{Error, Result, ShapeText};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::trace_hook;

/// Treatment of the graph by a backward pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Keep the saved tensors of the graph, so that backward can run through it again.
    pub retain_graph: bool,
    /// Record the pass itself, so that its gradients can be differentiated; keeps the graph too.
    pub create_graph: bool,
}

impl Tensor {
    /// Sets whether the tensor, a leaf, requires a gradient; returns the tensor.
    ///
    /// # Errors
    /// If its dtype is not floating-point or complex, or it was computed from tracked tensors.
    pub fn requires_grad_(&self, required: bool) -> Result<Tensor> {
        self.set_requires_grad(required)?;
        Ok(self.clone())
    }

    /// Sets whether the tensor, a leaf, requires a gradient.
    ///
    /// # Errors
    /// As [`Tensor::requires_grad_`].
    pub fn set_requires_grad(&self, required: bool) -> Result<()> {
        if required && !self.dtype().is_differentiable() {
            return Err(Error::autograd(format!(
                "a tensor of dtype {} cannot require a gradient",
                self.dtype()
            ))
            .with_help("only floating-point and complex tensors can"));
        }
        if required && self.requires_grad() {
            return Ok(());
        }
        if !required && !self.is_leaf() {
            return Err(Error::autograd(
                "a tensor that was computed from tracked ones always requires a gradient",
            )
            .with_help("use detach() for the same elements outside the graph"));
        }
        let followed = self.base().map(|base| base.autograd().generation);
        let mut meta = self.autograd();
        if required && meta.edge.is_none() {
            let outputs = SmallVec::from_iter([TensorMeta::of(self)]);
            let node = Node::new(Edges::new(), outputs, Kind::Leaf(self.downgrade()));
            meta.edge = Some(Edge { node, output: 0 });
            // Earlier in-place changes of a base do not count; views of this tensor follow it from now on.
            meta.generation = followed.unwrap_or_else(|| meta.generation + 1);
        }
        drop(meta);
        self.set_tracked(required);
        Ok(())
    }

    /// Whether the tensor was not computed by a recorded operator. Gradients are kept in leaves.
    pub fn is_leaf(&self) -> bool {
        // A view that cannot follow its base is a leaf, which is the reason it cannot.
        !self.requires_grad() || edge_of(self).is_err() || self.autograd().is_leaf()
    }

    /// The gradient that backward passes have accumulated in this tensor; `None` before the first.
    pub fn grad(&self) -> Option<Tensor> {
        self.autograd().grad.clone()
    }

    /// Replaces the gradient, or removes it.
    ///
    /// # Errors
    /// If its shape, dtype or device differ from the tensor's.
    pub fn set_grad(&self, gradient: Option<Tensor>) -> Result<()> {
        if let Some(gradient) = &gradient {
            check_like("the gradient", gradient, "the tensor", &TensorMeta::of(self))?;
        }
        let replaced = std::mem::replace(&mut self.autograd().grad, gradient);
        drop(replaced);
        Ok(())
    }

    /// Removes the gradient.
    pub fn zero_grad(&self) {
        let removed = self.autograd().grad.take();
        drop(removed);
    }

    /// Computes the gradients of all leaves that this tensor, which has one element, depends on, and adds them to the
    /// gradients of the leaves.
    ///
    /// # Errors
    /// If the tensor is not part of a graph or has more than one element; if the graph's saved tensors were freed by an
    /// earlier pass or changed since; or errors of a formula.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        backward(&[self], &[None], Options::default())
    }

    /// As [`Tensor::backward`], from a given gradient of this tensor, `None` standing for 1.
    ///
    /// # Errors
    /// As [`Tensor::backward`], and if the gradient does not have the tensor's shape and dtype.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, options: Options) -> Result<()> {
        backward(&[self], &[gradient], options)
    }
}

/// Computes the gradients of all leaves that the outputs depend on, and adds them to the gradients of the leaves.
///
/// # Errors
/// As [`Tensor::backward_with`].
#[track_caller]
pub fn backward(outputs: &[&Tensor], gradients: &[Option<&Tensor>], options: Options) -> Result<()> {
    let _site = trace_hook::enter(Location::caller());
    engine::backward(roots(outputs, gradients, options)?, options)
}

/// The gradients of the outputs with respect to the inputs, which may be any tensors of the graph;
/// `None` where an output does not depend on an input. No leaf's gradient changes.
///
/// `gradients` are those of the outputs, `None` standing for 1.
///
/// # Errors
/// As [`Tensor::backward_with`], and if an input is not part of a graph.
#[track_caller]
pub fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    gradients: &[Option<&Tensor>],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let _site = trace_hook::enter(Location::caller());
    let target = |(index, input): (usize, &&Tensor)| {
        edge_of(input)?.ok_or_else(|| {
            Error::autograd(format!("input {index} is not part of a graph, so it has no gradient"))
                .with_help("call requires_grad_(true) on it before it is used")
        })
    };
    let targets = inputs.iter().enumerate().map(target).collect::<Result<Vec<_>>>()?;
    engine::gradients(roots(outputs, gradients, options)?, &targets, options)
}

/// The root edges of a pass with their gradients.
fn roots(outputs: &[&Tensor], gradients: &[Option<&Tensor>], options: Options) -> Result<Roots> {
    if outputs.len() != gradients.len() {
        return Err(Error::argument(format!(
            "{} gradients were given for {} outputs",
            gradients.len(),
            outputs.len()
        ))
        .with_help("give one for each output, or None"));
    }
    let mut roots = Roots::default();
    for (output, gradient) in outputs.iter().zip(gradients) {
        let Some(edge) = edge_of(output)? else {
            return Err(Error::autograd("backward needs a tensor that is part of a graph, this one is not")
                .with_help(
                    "compute it from tensors on which requires_grad_(true) was called, outside no_grad",
                ));
        };
        roots.edges.push(edge);
        roots.gradients.push(match gradient {
            Some(gradient) => {
                check_like("the gradient", gradient, "the output", &TensorMeta::of(output))?;
                if options.create_graph {
                    (*gradient).clone()
                } else {
                    super::forward_mode::untracked(gradient)?
                }
            }
            None => one_like(output)?,
        });
    }
    Ok(roots)
}

/// The gradient of a tensor with respect to itself.
fn one_like(output: &Tensor) -> Result<Tensor> {
    if output.numel() != 1 {
        return Err(Error::autograd(format!(
            "backward of a tensor of shape {} needs the gradient to begin with; only for one element it is 1",
            ShapeText(output.shape())
        ))
        .with_help("reduce the tensor to one element, for instance to its sum, or use backward_with"));
    }
    if output.dtype().is_complex() {
        return Err(Error::autograd(format!(
            "backward of a {} tensor needs the gradient to begin with; only for a real one it is 1",
            output.dtype()
        ))
        .with_help("reduce the tensor to a real number, for instance its magnitude, or use backward_with"));
    }
    let one = Tensor::with_memory(output.shape(), output.dtype(), output.device())?;
    if one.is_on_host() {
        // SAFETY: new memory for one element of the dtype, without another reference to it.
        crate::with_dtype!(output.dtype(), T => unsafe {
            one.data_ptr().cast::<T>().write(T::from_scalar(Scalar::Float(1.0)));
        });
    } else {
        copy::convert(&one, &Tensor::scalar(1.0, output.dtype()))?;
    }
    Ok(one)
}

pub(super) fn check_like(what: &str, tensor: &Tensor, like: &str, meta: &TensorMeta) -> Result<()> {
    if tensor.shape() != &meta.sizes[..] {
        return Err(Error::shape(format!(
            "{what} has the shape {}, {like} {}",
            ShapeText(tensor.shape()),
            ShapeText(&meta.sizes)
        )));
    }
    if tensor.dtype() != meta.dtype {
        return Err(Error::dtype(format!("{what} is {}, {like} {}", tensor.dtype(), meta.dtype)));
    }
    if tensor.device() != meta.device {
        return Err(Error::device(format!("{what} is on {}, {like} on {}", tensor.device(), meta.device)));
    }
    Ok(())
}
