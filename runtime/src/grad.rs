//! The derivative of an operator, as static data written by the generator.

use opsmith_core::Backend;
use smallvec::SmallVec;

use crate::autograd::{ForwardContext, GradContext, Gradient};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::Tensor;

/// The derivative of an operator.
#[derive(Clone, Copy)]
pub struct GradDef {
    /// The backward formulas.
    pub formulas: &'static [GradientFormula],
    /// Results that can have a gradient (given a differentiable dtype), a bit each; one bit for all tensors of a list.
    pub differentiable_outputs: u64,
    /// Results without a gradient that formulas may read as constants, since no input with a gradient
    /// changes them, a bit each.
    pub constant_outputs: u64,
    /// Arguments declared to receive no gradient, a bit each.
    pub non_differentiable: u64,
    /// The rule of forward mode.
    pub forward: Forward,
}

/// A backward formula: the gradients of some inputs, from those of the outputs.
#[derive(Clone, Copy)]
pub struct GradientFormula {
    /// The arguments whose gradients it computes, in the order it returns them.
    pub arguments: &'static [u8],
    /// Tensor arguments whose elements it reads, a bit each.
    pub reads_arguments: u64,
    /// Results whose elements it reads, a bit each; one bit for all tensors of a list.
    pub reads_outputs: u64,
    /// Attributes that it reads, a bit each.
    pub reads_attributes: u64,
    /// The backends it is for, a bit each.
    pub backends: u8,
    /// Computes the gradients.
    pub backward: fn(&GradContext<'_>) -> Result<Gradients>,
}

impl GradDef {
    /// A derivative of formulas, and the results that can have a gradient; tangents follow from the formulas.
    pub const fn new(formulas: &'static [GradientFormula], differentiable_outputs: &[u32]) -> GradDef {
        GradDef {
            formulas,
            differentiable_outputs: bits(differentiable_outputs),
            constant_outputs: 0,
            non_differentiable: 0,
            forward: Forward::Transposed,
        }
    }

    /// The same of an operator that is linear in its tensors together.
    pub const fn of_linear(formulas: &'static [GradientFormula], differentiable_outputs: &[u32]) -> GradDef {
        GradDef { forward: Forward::Linear, ..GradDef::new(formulas, differentiable_outputs) }
    }

    /// The same of an operator each element of which depends on one of each argument, real ones only.
    pub const fn elementwise(
        formulas: &'static [GradientFormula],
        differentiable_outputs: &[u32],
    ) -> GradDef {
        let forward = Forward::ElementWise { complex: false };
        GradDef { forward, ..GradDef::new(formulas, differentiable_outputs) }
    }
}

impl GradientFormula {
    /// The gradients of some arguments on every backend, from those of the outputs alone.
    pub const fn new(
        arguments: &'static [u8],
        backward: fn(&GradContext<'_>) -> Result<Gradients>,
    ) -> GradientFormula {
        GradientFormula {
            arguments,
            reads_arguments: 0,
            reads_outputs: 0,
            reads_attributes: 0,
            backends: u8::MAX,
            backward,
        }
    }

    /// The same, which reads elements of these tensor arguments.
    #[must_use]
    pub const fn reads_arguments(mut self, arguments: &[u32]) -> GradientFormula {
        self.reads_arguments = bits(arguments);
        self
    }

    /// The same, which reads elements of these results.
    #[must_use]
    pub const fn reads_outputs(mut self, outputs: &[u32]) -> GradientFormula {
        self.reads_outputs = bits(outputs);
        self
    }

    /// The same, which reads these arguments that are not tensors.
    #[must_use]
    pub const fn reads_attributes(mut self, attributes: &[u32]) -> GradientFormula {
        self.reads_attributes = bits(attributes);
        self
    }

    /// The same for these backends alone.
    #[must_use]
    pub const fn on(mut self, members: &[Backend]) -> GradientFormula {
        self.backends = backends(members);
        self
    }
}

/// A set of positions, a bit each.
pub const fn bits(positions: &[u32]) -> u64 {
    let (mut set, mut index) = (0, 0);
    while index < positions.len() {
        set |= 1 << positions[index];
        index += 1;
    }
    set
}

/// A set of backends, a bit each.
pub const fn backends(members: &[Backend]) -> u8 {
    let (mut set, mut index) = (0, 0);
    while index < members.len() {
        set |= 1 << members[index].index();
        index += 1;
    }
    set
}

/// The rule of an operator in forward mode.
#[derive(Clone, Copy)]
pub enum Forward {
    /// The transpose of the backward formulas, which are linear in the gradient.
    Transposed,
    /// The operator is linear in all its tensors together: applied to the tangents it gives the tangent.
    Linear,
    /// Each element depends on one element of each argument, so the backward formulas, given tangents
    /// instead of gradients, compute tangents.
    ElementWise {
        /// Whether this holds for complex numbers too.
        complex: bool,
    },
    /// A formula of its own.
    Formula(fn(&ForwardContext<'_>) -> Result<Tangents>),
}

/// The gradients a formula computes, in the order of its arguments.
pub type Gradients = SmallVec<[Gradient; 2]>;
/// The tangents of outputs; `None` for zero.
pub type Tangents = SmallVec<[Option<Tensor>; 1]>;

impl GradientFormula {
    /// Whether the formula is for a device's backend.
    #[inline]
    pub(crate) fn is_for(&self, device: Device) -> bool {
        self.backends & (1 << device.backend.index()) != 0
    }
}
