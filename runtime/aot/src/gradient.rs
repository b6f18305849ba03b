//! Gradients of operators that are declared at run time: a function, or another such operator.
//!
//! In: a recorded call and the gradients of its outputs. Out: those of its inputs. Whatever a gradient
//! computes with recorded operators can be differentiated again.

use std::sync::Arc;

use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::autograd::{GradContext, Gradient, TensorMeta};
use opsmith_runtime::copy;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::call;
use opsmith_runtime::internals::{GradientInternals as _, TensorInternals as _};
use opsmith_runtime::op::Gradients;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::tensor::Tensor;

use super::attributes::{AttrValue, Attributes};
use super::registry::{Active, Declared};

/// Computes the gradient of each input; `None` for one through which nothing flows.
pub type BpropFn = dyn Fn(&BpropContext) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// How gradients flow.
pub(super) enum Bprop {
    Function(Arc<BpropFn>),
    /// Another operator, which takes inputs, outputs if it wants as many, and the gradients of outputs.
    Operator {
        op: &'static OpDef,
        takes_outputs: bool,
    },
}

/// The operands of a call's gradient.
pub struct BpropContext {
    inputs: Vec<Option<Tensor>>,
    outputs: Vec<Tensor>,
    gradients: Vec<Option<Tensor>>,
    metas: Vec<TensorMeta>,
    attributes: Attributes,
}

impl BpropContext {
    /// An input of the call; of a list, each tensor counts.
    ///
    /// # Errors
    /// If there is no such input, or it was absent.
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        self.inputs.get(index).and_then(Option::as_ref).ok_or_else(|| {
            Error::index(format!("the call has no input {index}; it has {}", self.inputs.len()))
        })
    }

    /// An output of the call.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn output(&self, index: usize) -> Result<&Tensor> {
        self.outputs.get(index).ok_or_else(|| {
            Error::index(format!("the call has no output {index}; it has {}", self.outputs.len()))
        })
    }

    /// The gradient of an output; `None` if none flows.
    pub fn grad(&self, output: usize) -> Option<&Tensor> {
        self.gradients.get(output).and_then(Option::as_ref)
    }

    /// The gradient of an output, zeros if none flows.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn grad_or_zeros(&self, output: usize) -> Result<Tensor> {
        match self.grad(output) {
            Some(gradient) => Ok(gradient.clone()),
            None => {
                let meta = self.metas.get(output);
                let meta = meta.ok_or_else(|| Error::index(format!("the call has no output {output}")))?;
                // SAFETY: the next line writes every element.
                let zeros = unsafe { Tensor::uninitialized(&meta.sizes, meta.dtype, meta.device)? };
                copy::copy(&zeros, &Tensor::scalar(0.0, meta.dtype))?;
                Ok(zeros)
            }
        }
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttrValue> {
        self.attributes.get(name)
    }
}

/// The backward formula of every operator declared at run time.
pub(super) fn backward(context: &GradContext<'_>) -> Result<Gradients> {
    let op = context.op();
    let active = match Declared::of(op) {
        Some(declared) => declared.active()?,
        None => return Err(Error::autograd(format!("`{}` was not declared at run time", op.name))),
    };
    let Some(bprop) = &active.bprop else {
        return Err(Error::autograd(format!("the gradient of `{}` is not defined", op.name)).with_help(
            "declare the operator with `bprop` (a function) or `bprop_operator` (another operator)",
        ));
    };
    let call = collect(context, op, &active)?;
    let gradients = match bprop {
        Bprop::Function(function) => function(&call)?,
        Bprop::Operator { op, takes_outputs } => run(op, *takes_outputs, &call)?,
    };
    if gradients.len() != call.inputs.len() {
        return Err(Error::autograd(format!(
            "the bprop of `{}` gave {} gradients for {} inputs",
            op.name,
            gradients.len(),
            call.inputs.len()
        )));
    }
    let mut gradients = gradients.into_iter();
    let mut results = Gradients::new();
    for (index, input) in active.kernel.signature.inputs.iter().enumerate() {
        results.push(match input.kind {
            super::InputKind::Dynamic => {
                Gradient::List(gradients.by_ref().take(context.metas(index).len()).collect())
            }
            _ => Gradient::from(gradients.next().flatten()),
        });
    }
    Ok(results)
}

fn collect(context: &GradContext<'_>, op: &OpDef, active: &Active) -> Result<BpropContext> {
    let (mut inputs, mut at_call) = (Vec::new(), Vec::new());
    for (index, def) in op.schema.args.iter().enumerate() {
        match def.ty.kind {
            ArgKind::Tensor => inputs.push(context.optional_tensor(index)?),
            ArgKind::Tensors => inputs.extend(context.tensors(index)?.into_iter().map(Some)),
            _ => at_call.push(AttrValue::of_argument(context.attribute(index))),
        }
    }
    let outputs = context.results()?;
    Ok(BpropContext {
        metas: outputs.iter().map(TensorMeta::of).collect(),
        gradients: (0..outputs.len()).map(|output| context.grad(output).cloned()).collect(),
        attributes: active.kernel.signature.attributes(&at_call),
        inputs,
        outputs,
    })
}

/// Calls the operator that computes the gradients.
fn run(op: &'static OpDef, takes_outputs: bool, call: &BpropContext) -> Result<Vec<Option<Tensor>>> {
    let mut values: Vec<Value> =
        call.inputs.iter().map(|input| input.clone().map_or(Value::None, Value::Tensor)).collect();
    if takes_outputs {
        values.extend(call.outputs.iter().cloned().map(Value::Tensor));
    }
    for output in 0..call.outputs.len() {
        values.push(Value::Tensor(call.grad_or_zeros(output)?));
    }
    for def in op.schema.args.iter().skip(values.len()) {
        let given = call.attributes.get(def.name).map(AttrValue::to_value);
        let value = match (given, def.default) {
            (Some(value), _) => value,
            (None, Some(default)) => default.as_arg(def.ty).to_value(),
            (None, None) => {
                return Err(Error::autograd(format!(
                    "`{}` needs the attribute `{}`, which the operator that it is the gradient of does not have",
                    op.name, def.name
                )));
            }
        };
        values.push(value);
    }
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    Ok(call::invoke(op, &args)?.into_iter().map(Some).collect())
}
