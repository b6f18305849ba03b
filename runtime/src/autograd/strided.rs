//! Gradients through shared memory, from layouts alone.
//!
//! A view is a layout over the memory of its base, so three linear steps describe every effect of views and in-place
//! calls on gradients: taking a view out of a base, putting a view's elements into a base of zeros, and overwriting
//! part of a base. The derivative of each is made of the others, so these nodes can be differentiated any number of
//! times without an operator.

use opsmith_core::DType;
use smallvec::smallvec;

use super::context::TensorMeta;
use super::engine::Passed;
use super::forward_mode::with_tangents;
use super::node::{Edge, Edges, Kind, Node};
use super::{attach, edge_of, recording};
use crate::arg::Arg;
use crate::copy;
use crate::device::Device;
use crate::dispatch::Borrows;
use crate::error::{Error, Result, ShapeText};
use crate::layout::Layout;
use crate::shared::Shared;
use crate::tensor::{Tensor, observer};

/// A linear step between a base and a view of it, with the layouts of both in one memory.
#[derive(Clone)]
pub(crate) struct Strided {
    pub step: Step,
    pub base: Layout,
    pub view: Layout,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// From a base to its view. One edge, to the base.
    Take,
    /// From a view to a base that is zero elsewhere. One edge, to the view.
    Put,
    /// From a base and new elements for its view to the base with these elements. Two edges; without
    /// the second the new elements are constants.
    Overwrite,
}

impl Strided {
    /// The gradients of the step's inputs from that of its output; those not needed are left out.
    ///
    /// # Errors
    /// If the base is an expanded tensor, whose gradient the layouts do not determine.
    pub fn backward(&self, gradients: &[Option<Tensor>], wanted: impl Fn(usize) -> bool) -> Result<Passed> {
        let mut passed = Passed::new();
        if let Some(gradient) = &gradients[0] {
            self.pass(gradient, wanted, &mut passed).map_err(|error| {
                let shape = ShapeText(&self.view.sizes);
                error.with_note(format!("in backward: the gradient of a view of shape {shape}"))
            })?;
        }
        Ok(passed)
    }

    fn pass(&self, gradient: &Tensor, wanted: impl Fn(usize) -> bool, passed: &mut Passed) -> Result<()> {
        if wanted(0) {
            let first = match self.step {
                Step::Take => self.put(gradient)?,
                Step::Put => self.take(gradient)?,
                Step::Overwrite => self.clear(gradient)?,
            };
            passed.push((0, first));
        }
        if self.step == Step::Overwrite && wanted(1) {
            passed.push((1, self.take(gradient)?));
        }
        Ok(())
    }

    /// The view's elements out of a tensor with the base's shape.
    ///
    /// # Errors
    /// As [`Strided::backward`].
    pub fn take(&self, base: &Tensor) -> Result<Tensor> {
        with_tangents(base, &|base| self.take_elements(base))
    }

    /// A tensor with the base's shape that holds the view's elements at their offsets, zero elsewhere.
    ///
    /// # Errors
    /// As [`Strided::backward`].
    pub fn put(&self, view: &Tensor) -> Result<Tensor> {
        with_tangents(view, &|view| self.put_elements(view))
    }

    /// The base's elements with zeros in place of the view's.
    ///
    /// # Errors
    /// As [`Strided::backward`].
    pub fn clear(&self, base: &Tensor) -> Result<Tensor> {
        with_tangents(base, &|base| self.clear_elements(base))
    }

    fn take_elements(&self, base: &Tensor) -> Result<Tensor> {
        // A row-major base and gradient have no gaps, so the view covers elements only.
        let direct = self.base.is_contiguous() && base.is_contiguous() && self.view_is_inside();
        let taken = if direct {
            alias(base, self.view.offset - self.base.offset + base.layout().offset, &self.view)
        } else {
            let buffer = self.buffer(base.dtype(), base.device())?;
            copy::copy(&buffer.base, base)?;
            buffer.view
        };
        self.record(taken, Step::Take, base)
    }

    fn put_elements(&self, view: &Tensor) -> Result<Tensor> {
        let buffer = self.buffer(view.dtype(), view.device())?;
        if self.view.has_internal_overlap() {
            add(&buffer.view, view)?;
        } else {
            copy::copy(&buffer.view, view)?;
        }
        self.record(buffer.base, Step::Put, view)
    }

    fn clear_elements(&self, base: &Tensor) -> Result<Tensor> {
        let buffer = self.buffer(base.dtype(), base.device())?;
        copy::copy(&buffer.base, base)?;
        copy::copy(&buffer.view, &Tensor::scalar(0.0, base.dtype()))?;
        self.record(buffer.base, Step::Overwrite, base)
    }

    fn view_is_inside(&self) -> bool {
        match (self.base.extent(), self.view.extent()) {
            (Some((low, high)), Some((view_low, view_high))) => low <= view_low && view_high <= high,
            (_, view) => view.is_none(),
        }
    }

    /// The base and its view in new memory of zeros.
    fn buffer(&self, dtype: DType, device: Device) -> Result<Buffer> {
        if self.base.has_internal_overlap() {
            return Err(Error::not_implemented(
                "a view was taken of a tensor that shows one element at several indices, and its layout does not say which of them it shows",
            )
            .with_help("copy the expanded tensor before taking the view"));
        }
        let extents = [self.base.extent(), self.view.extent()];
        let low = extents.iter().flatten().map(|(low, _)| *low).min().unwrap_or(0);
        let high = extents.iter().flatten().map(|(_, high)| *high).max().unwrap_or(0);
        let memory = Tensor::uninitialized(&[high - low], dtype, device)?;
        copy::copy(&memory, &Tensor::scalar(0.0, dtype))?;
        Ok(Buffer {
            base: alias(&memory, self.base.offset - low, &self.base),
            view: alias(&memory, self.view.offset - low, &self.view),
        })
    }

    /// Records the step that was just computed, if it has to be.
    fn record(&self, mut out: Tensor, step: Step, input: &Tensor) -> Result<Tensor> {
        if recording()
            && let Some(edge) = edge_of(input)?
        {
            let node = Strided { step, ..self.clone() }.into_node(smallvec![Some(edge)], &out);
            attach(&mut out, Edge { node, output: 0 });
        }
        Ok(out)
    }

    /// The node of the step behind `out`.
    pub fn into_node(self, edges: Edges, out: &Tensor) -> Shared<Node> {
        Node::new(edges, smallvec![TensorMeta::of(out)], Kind::Strided(Box::new(self)))
    }
}

struct Buffer {
    base: Tensor,
    view: Tensor,
}

/// A layout over a tensor's memory, begun at another element.
fn alias(tensor: &Tensor, offset: i64, layout: &Layout) -> Tensor {
    // Without elements any offset is valid; that of the view may lie outside.
    let offset = if layout.numel() == 0 { 0 } else { offset };
    let layout = Layout { offset, ..layout.clone() };
    let bytes = tensor.storage().bytes() as i64;
    assert!(
        layout.extent().is_none_or(|(low, high)| low >= 0 && high * tensor.dtype().size() as i64 <= bytes),
        "a view reaches outside the memory that was made for it"
    );
    // SAFETY: `layout` was just checked to lie inside the memory, all of which was written.
    unsafe { Tensor::from_parts(tensor.storage().clone(), layout, tensor.dtype(), tensor.device()) }
}

/// Adds elements to a tensor whose indices may overlap in memory.
fn add(target: &Tensor, source: &Tensor) -> Result<()> {
    if let Some(observer) = observer::observer() {
        return observer.added(target, source);
    }
    let reads = [Arg::Tensor(source)];
    let _held = Borrows::acquire(&reads, std::slice::from_ref(target))?;
    copy::accumulate(target, source)
}
