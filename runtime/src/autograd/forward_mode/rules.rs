//! The forward-mode rules of one operator.

use smallvec::SmallVec;

use super::super::adjust::roles_of;
use super::super::context::GradContext;
use super::super::node::Kind;
use super::super::record::Recording;
use super::super::strided::{Step, Strided};
use super::context::ForwardContext;
use super::level::{Hidden, LevelId};
use super::{tangent, transpose};
use crate::arg::{Arg, Value};
use crate::autograd::{self, Gradient};
use crate::copy;
use crate::error::Result;
use crate::op::{Forward, GradDef, OpDef, Outputs, Tangents};
use crate::tensor::Tensor;

/// The tensors of a call with their tangents, in the numbering of recorded calls.
pub(super) struct Inputs {
    /// Index of the first tensor of each argument; one entry more than arguments.
    pub starts: SmallVec<[usize; 8]>,
    pub tensors: SmallVec<[Option<Tensor>; 4]>,
    pub tangents: SmallVec<[Option<Tensor>; 4]>,
}

impl Inputs {
    /// The tensors of arguments with their tangents at a level.
    pub fn of(args: &[Arg<'_>], level: LevelId) -> Result<Inputs> {
        let mut inputs =
            Inputs { starts: SmallVec::new(), tensors: SmallVec::new(), tangents: SmallVec::new() };
        for arg in args {
            inputs.starts.push(inputs.tensors.len());
            let mut push = |tensor: Option<&Tensor>| -> Result<()> {
                let differentiable = tensor.filter(|tensor| tensor.dtype().is_differentiable());
                let tangent = differentiable.map(|tensor| tangent::tangent(tensor, level)).transpose()?;
                inputs.tangents.push(tangent.flatten());
                inputs.tensors.push(tensor.cloned());
                Ok(())
            };
            match *arg {
                Arg::Tensor(tensor) => push(Some(tensor))?,
                Arg::Tensors(tensors) => tensors.iter().try_for_each(|tensor| push(Some(tensor)))?,
                Arg::OptionalTensors(tensors) => {
                    tensors.iter().try_for_each(|tensor| push(tensor.as_ref()))?
                }
                Arg::None => push(None)?,
                _ => {}
            }
        }
        inputs.starts.push(inputs.tensors.len());
        Ok(inputs)
    }

    /// Positions of the tensors of an argument.
    pub fn positions(&self, argument: usize) -> std::ops::Range<usize> {
        self.starts[argument]..self.starts[argument + 1]
    }

    /// Whether a tensor of the argument has a tangent.
    pub fn any(&self, argument: usize) -> bool {
        self.positions(argument).any(|position| self.tangents[position].is_some())
    }

    /// The tangent at a position; zeros if there is none.
    pub fn tangent_or_zeros(&self, position: usize) -> Result<Tensor> {
        match (&self.tangents[position], &self.tensors[position]) {
            (Some(tangent), _) => Ok(tangent.clone()),
            (None, Some(tensor)) => zeros_like(tensor),
            (None, None) => Err(crate::Error::argument("the formula needs the tangent of an absent tensor")),
        }
    }
}

/// The arguments with the tensors at each position replaced.
pub(super) fn replaced(args: &[Arg<'_>], tensors: &[Option<Tensor>]) -> SmallVec<[Value; 8]> {
    let mut left = tensors.iter();
    let mut next = || left.next().cloned().flatten();
    args.iter()
        .map(|arg| match arg {
            Arg::Tensor(tensor) => Value::Tensor(next().unwrap_or_else(|| (*tensor).clone())),
            Arg::Tensors(list) => {
                Value::Tensors(list.iter().map(|tensor| next().unwrap_or_else(|| tensor.clone())).collect())
            }
            Arg::OptionalTensors(list) => Value::OptionalTensors(list.iter().map(|_| next()).collect()),
            Arg::None => {
                next();
                Value::None
            }
            other => other.to_value(),
        })
        .collect()
}

/// Runs an operator with a derivative and returns the tangents of its outputs. Their level is hidden.
pub(super) fn apply(
    op: &'static OpDef,
    grad: &'static GradDef,
    args: &[Arg<'_>],
    inputs: &Inputs,
) -> Result<(Outputs, Tangents)> {
    let flows = grad.formulas.iter().flat_map(|formula| formula.arguments).any(|&arg| inputs.any(arg.into()));
    if !flows {
        let outs = autograd::invoke(op, args)?;
        let tangents = Tangents::from_elem(None, outs.len());
        return Ok((outs, tangents));
    }
    let any_complex = || inputs.tensors.iter().flatten().any(|tensor| tensor.dtype().is_complex());
    match grad.forward {
        Forward::Linear => {
            let outs = autograd::invoke(op, args)?;
            let tangents = linear(op, args, inputs)?;
            fit_all(op, outs, tangents)
        }
        Forward::Formula(formula) => {
            let outs = autograd::invoke(op, args)?;
            let tangents = formula(&ForwardContext::new(op, args, &outs, inputs))?;
            fit_all(op, outs, tangents)
        }
        Forward::ElementWise { complex } if complex || !any_complex() => {
            let outs = autograd::invoke(op, args)?;
            if !complex && outs.iter().any(|out| out.dtype().is_complex()) {
                return transposed(op, args, inputs);
            }
            let tangent = element_wise(op, grad, args, &outs, inputs)?;
            fit_all(op, outs, Tangents::from_elem(tangent, 1))
        }
        Forward::ElementWise { .. } | Forward::Transposed => transposed(op, args, inputs),
    }
}

/// The transpose of the backward formulas.
fn transposed(op: &'static OpDef, args: &[Arg<'_>], inputs: &Inputs) -> Result<(Outputs, Tangents)> {
    let run = |tensors: &[Option<Tensor>]| {
        let values = replaced(args, tensors);
        let args: SmallVec<[Arg<'_>; 8]> = values.iter().map(Value::as_arg).collect();
        autograd::invoke(op, &args)
    };
    transpose::transposed(&inputs.tensors, &inputs.tangents, run)
}

/// The operator itself applied to the tangents, as it is linear.
fn linear(op: &'static OpDef, args: &[Arg<'_>], inputs: &Inputs) -> Result<Tangents> {
    let tangents: Vec<Option<Tensor>> = inputs
        .tensors
        .iter()
        .enumerate()
        .map(|(position, tensor)| match tensor {
            Some(tensor) if tensor.dtype().is_differentiable() => inputs.tangent_or_zeros(position).map(Some),
            other => Ok(other.clone()),
        })
        .collect::<Result<_>>()?;
    let values = replaced(args, &tangents);
    let args: SmallVec<[Arg<'_>; 8]> = values.iter().map(Value::as_arg).collect();
    Ok(autograd::invoke(op, &args)?.into_iter().map(Some).collect())
}

/// The sum of the backward formulas of the arguments, each given that argument's tangent.
fn element_wise(
    op: &'static OpDef,
    grad: &'static GradDef,
    args: &[Arg<'_>],
    outs: &[Tensor],
    inputs: &Inputs,
) -> Result<Option<Tensor>> {
    let wanted =
        (0..args.len()).filter(|&argument| inputs.any(argument)).fold(0u64, |bits, arg| bits | 1 << arg);
    let Some(recording) = Recording::of_arguments(op, grad, args, None, wanted)? else { return Ok(None) };
    let node = recording.into_node(outs);
    let Kind::Call(call) = &node.kind else { return Ok(None) };
    keep_outer(call, inputs, outs)?;
    let roles = roles_of(op)?;
    let conjugate = |tensor: Tensor| match roles.conjugate {
        Some(conjugate) if tensor.dtype().is_complex() => conjugate(&tensor),
        _ => Ok(tensor),
    };
    let device = inputs.tensors.iter().flatten().next().map(Tensor::device).unwrap_or_default();
    let mut total: Option<Tensor> = None;
    for formula in grad.formulas.iter().filter(|formula| formula.is_for(device)) {
        let argument = formula.arguments[0] as usize;
        let Some(tangent) = inputs.tangents[inputs.positions(argument)].first().cloned().flatten() else {
            continue;
        };
        let grads = [Some(conjugate(tangent)?)];
        let context = GradContext { node: &node, call, grads: &grads, wanted: None };
        let Some(Gradient::Tensor(term)) = (formula.backward)(&context)?.into_iter().next() else { continue };
        let term = conjugate(term)?;
        total = Some(match total {
            Some(total) => (roles.accumulate)(&total, &term)?,
            None => term,
        });
    }
    Ok(total)
}

/// Stores tangents of outer levels in a node that exists only for its formulas.
fn keep_outer(call: &super::super::call::Call, inputs: &Inputs, outs: &[Tensor]) -> Result<()> {
    use super::super::saved::Slot;
    let mut problem = None;
    call.saved.add_tangents(|slot, list| {
        let tensor = match slot {
            Slot::Input(position) => inputs.tensors.get(position as usize).and_then(Option::as_ref),
            Slot::Output(position) => outs.get(position as usize),
            Slot::Other(_) => None,
        };
        let Some(tensor) = tensor else { return };
        for level in tangent::levels(tensor) {
            match tangent::tangent(tensor, level) {
                Ok(tangent) => super::level::put(list.get_or_insert_default(), level, tangent),
                Err(error) => problem = Some(error),
            }
        }
    });
    problem.map_or(Ok(()), Err)
}

/// Converts tangents to the shapes and dtypes of the outputs.
fn fit_all(op: &OpDef, outs: Outputs, tangents: Tangents) -> Result<(Outputs, Tangents)> {
    let fitted = outs
        .iter()
        .enumerate()
        .map(|(index, out)| {
            let tangent = tangents.get(index).cloned().flatten();
            let differentiable = op.is_differentiable(index, out.dtype());
            tangent.filter(|_| differentiable).map(|tangent| fit(op, tangent, out)).transpose()
        })
        .collect::<Result<Tangents>>()?;
    Ok((outs, fitted))
}

/// A tangent in the shape and dtype of its tensor: formulas may omit broadcasting.
pub(super) fn fit(op: &OpDef, mut tangent: Tensor, out: &Tensor) -> Result<Tensor> {
    if tangent.shape() != out.shape() {
        tangent = (roles_of(op)?.accumulate)(&tangent, &zeros_like(out)?)?;
    }
    if tangent.dtype() != out.dtype() {
        tangent = (roles_of(op)?.cast)(&tangent, out.dtype())?;
    }
    if tangent.shape() != out.shape() {
        return Err(crate::Error::shape(format!(
            "the forward formula gave a tangent of shape {}, but the result has the shape {}",
            crate::error::ShapeText(tangent.shape()),
            crate::error::ShapeText(out.shape())
        )));
    }
    Ok(tangent)
}

/// The tangents of a view: its base holds them. A view that its base does not track gets the view of the tangent.
pub(super) fn view(op: &'static OpDef, args: &[Arg<'_>], level: LevelId) -> Result<Outputs> {
    let input = args[0].tensor();
    let tangent = tangent::tangent(input, level)?;
    let _hidden = Hidden::new(level);
    let outs = autograd::invoke(op, args)?;
    let Some(tangent) = tangent else { return Ok(outs) };
    let mut of_tangent = None;
    for (index, out) in outs.iter().enumerate().filter(|(_, out)| out.forward_base().is_none()) {
        let (base, view) = (input.layout().clone(), out.layout().clone());
        let taken = if base.has_internal_overlap() {
            // The layouts do not determine the view's elements, but running the operator on the tangent does.
            let values = replaced(args, &[Some(tangent.clone())]);
            let args: SmallVec<[Arg<'_>; 8]> = values.iter().map(Value::as_arg).collect();
            if of_tangent.is_none() {
                of_tangent = Some(autograd::invoke(op, &args)?);
            }
            of_tangent.as_ref().map(|outs| outs[index].clone())
        } else {
            Some(Strided { step: Step::Take, base, view }.take(&tangent)?)
        };
        tangent::own_tangent(out, level, taken);
    }
    Ok(outs)
}

pub(super) fn zeros_like(tensor: &Tensor) -> Result<Tensor> {
    let zeros = Tensor::uninitialized(tensor.shape(), tensor.dtype(), tensor.device())?;
    copy::copy(&zeros, &Tensor::scalar(0.0, tensor.dtype()))?;
    Ok(zeros)
}
