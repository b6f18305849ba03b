//! A node of a session: made with the session, run on its memory.
//!
//! In: attributes and types when the session is made, values of inputs when it runs. Out: values of outputs, or an error. Inputs
//! are read in place. A mistake of attributes, dtypes or sizes is an error of the session, before anything runs.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{Tensor, Value, boxed, copy};
use ort_sys::{OrtKernelContext, OrtKernelInfo, OrtValue};

use super::api::{Api, Source};
use super::infer::infer;
use super::signature::{Attributes, Given, attributes};

/// A node.
pub struct Node {
    api: Api,
    op: &'static OpDef,
    attributes: Attributes,
}

/// A tensor over a value's memory.
///
/// # Safety
/// `value` is a tensor, and no tensor over it is used after the call.
unsafe fn over(api: Api, value: *const OrtValue) -> Result<Tensor> {
    // SAFETY: the caller's value is a tensor.
    let (dtype, sizes, address) = unsafe { api.memory(value) }?;
    let strides = opsmith_runtime::layout::contiguous_strides(&sizes);
    let is_empty = sizes.contains(&0) || address.is_null();
    let address = if is_empty { std::ptr::without_provenance_mut(64) } else { address };
    // SAFETY: the memory is row-major, and valid during the call.
    unsafe { opsmith_abi::over(address, &sizes, &strides, dtype, ()) }
}

impl Node {
    /// A node of a new session.
    ///
    /// # Safety
    /// `info` is that of the node.
    pub unsafe fn new(api: Api, op: &'static OpDef, info: *const OrtKernelInfo) -> Result<Node> {
        let attributes = attributes(api, Source::Kernel(info), op)?;
        let (mut inputs, mut outputs) = (0usize, 0usize);
        // SAFETY: the caller's handle is valid.
        let (inputs, outputs) = unsafe {
            api.check((api.0.KernelInfo_GetInputCount)(info, &raw mut inputs))?;
            api.check((api.0.KernelInfo_GetOutputCount)(info, &raw mut outputs))?;
            let all = |count, output| (0..count).map(move |at| api.of_node(info, at, output));
            (all(inputs, false).collect::<Result<Vec<_>>>()?, all(outputs, true).collect::<Result<Vec<_>>>()?)
        };
        // A tensor without declared sizes looks like one without dimensions.
        let are_known = inputs.iter().flatten().all(|known| !known.sizes.is_empty());
        let found = match infer(op, &attributes, inputs) {
            Ok(found) => found,
            Err(error) if are_known => return Err(error),
            Err(_) => return Ok(Node { api, op, attributes }),
        };
        for (at, (found, declared)) in found.iter().zip(&outputs).enumerate() {
            if let Some(declared) = declared.as_ref().filter(|declared| declared.dtype != found.dtype) {
                let text =
                    format!("output {at} of the node is {}, its result {}", declared.dtype, found.dtype);
                return Err(Error::dtype(text).in_op(op.name, Vec::new()).with_help(
                    "declare the output's element type in the model's `value_info`, or cast the inputs",
                ));
            }
        }
        Ok(Node { api, op, attributes })
    }

    /// Runs a call.
    ///
    /// # Safety
    /// `context` is that of the call.
    pub unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<()> {
        let (api, op) = (self.api, self.op);
        let (mut inputs, mut outputs) = (0usize, 0usize);
        // SAFETY: the context is valid during the call, and so are its values; no tensor over one stays.
        let given = unsafe {
            api.check((api.0.KernelContext_GetInputCount)(context, &raw mut inputs))?;
            api.check((api.0.KernelContext_GetOutputCount)(context, &raw mut outputs))?;
            let tensor = |at| match api.input(context, at)? {
                value if value.is_null() => Ok(None),
                value => over(api, value).map(Some),
            };
            (0..inputs).map(tensor).collect::<Result<Vec<_>>>()?
        };
        let mut values = self.attributes.values.clone();
        for (name, given) in self.attributes.bound(op, given)? {
            let is_full =
                matches!(op.argument(name), Some(at) if op.schema.args[at].ty.kind == ArgKind::Tensors);
            values.push(match given {
                Given::One(tensor) => (name, Value::Tensor(tensor)),
                Given::List(list) if is_full && list.iter().all(Option::is_some) => {
                    (name, Value::Tensors(list.into_iter().flatten().collect()))
                }
                Given::List(list) => (name, Value::OptionalTensors(list)),
                Given::Absent => (name, Value::None),
            });
        }
        let mut found: Vec<Tensor> = Vec::new();
        for value in boxed::call_definition(op, &[], &values)? {
            value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone()));
        }
        if found.len() < outputs {
            let text = format!("the node has {outputs} outputs, the operator {} results", found.len());
            return Err(Error::argument(text).in_op(op.name, Vec::new()));
        }
        for (at, found) in found.iter().take(outputs).enumerate() {
            // SAFETY: as above.
            let target = unsafe {
                match api.output(context, at, found.shape())? {
                    value if value.is_null() => continue,
                    value => over(api, value)?,
                }
            };
            if target.dtype() != found.dtype() {
                let text =
                    format!("output {at} of the node is {}, its result {}", target.dtype(), found.dtype());
                return Err(Error::dtype(text).in_op(op.name, Vec::new()));
            }
            copy::copy(&target, &found.detach())?;
        }
        Ok(())
    }
}
