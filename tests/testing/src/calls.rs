//! Calls of operators as functions of their tensors, for tracing graphs.
//!
//! In: an operator and the arguments of a sample. Out: its tensors separate from the rest, calls with other tensors
//! instead, and tensors of other sizes.

use opsmith::{Result, Tensor, Value};
use opsmith_runtime::Arg;
use opsmith_runtime::generated::call;
use opsmith_runtime::op::OpDef;

/// The tensors among some arguments.
pub fn tensors(args: &[Value]) -> Vec<Tensor> {
    let mut found = Vec::new();
    args.iter().for_each(|value| value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone())));
    found
}

/// The arguments with other tensors substituted.
pub fn with_tensors(args: &[Value], tensors: &[Tensor]) -> Vec<Value> {
    let mut left = tensors.iter().cloned();
    let mut next = |_: &Tensor| left.next().expect("as many as there are");
    args.iter().map(|value| mapped(value, &mut next)).collect()
}

/// An argument with each tensor mapped by a function.
pub fn mapped(value: &Value, map: &mut dyn FnMut(&Tensor) -> Tensor) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Tensor(map(tensor)),
        Value::Tensors(list) => Value::Tensors(list.iter().map(map).collect()),
        Value::OptionalTensors(list) => {
            Value::OptionalTensors(list.iter().map(|tensor| tensor.as_ref().map(&mut *map)).collect())
        }
        other => other.clone(),
    }
}

/// Calls an operator.
///
/// # Errors
/// Errors of the operator.
pub fn call(op: &'static OpDef, args: &[Value]) -> Result<Vec<Tensor>> {
    let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
    Ok(call::invoke(op, &args)?.into_vec())
}

/// A tensor of other sizes with elements like those of a sample; dimensions of one element stay.
///
/// # Errors
/// If there is no memory.
pub fn resized(tensor: &Tensor, sizes: fn(i64) -> i64) -> Result<Tensor> {
    let shape: Vec<i64> =
        tensor.shape().iter().map(|&size| if size > 1 { sizes(size) } else { size }).collect();
    reshaped(tensor, &shape)
}

/// A tensor of a shape that repeats the elements of another; zeros if that has none.
///
/// # Errors
/// If there is no memory, or the tensor is a meta tensor of a traced function.
pub fn reshaped(tensor: &Tensor, shape: &[i64]) -> Result<Tensor> {
    let count = shape.iter().product::<i64>() as usize;
    opsmith_runtime::with_dtype!(tensor.dtype(), T => {
        let known = tensor.to_vec::<T>()?;
        let many = (0..count).map(|at| known.get(at % known.len().max(1)).copied().unwrap_or_default());
        Tensor::from_slice(&many.collect::<Vec<T>>(), shape)
    })
}

/// The bytes of every element in row-major order.
///
/// # Panics
/// If the tensor is a meta tensor of a traced function.
pub fn bits(tensor: &Tensor) -> Vec<u8> {
    opsmith_runtime::with_dtype!(tensor.dtype(), T => {
        let values = tensor.to_vec::<T>().unwrap();
        // SAFETY: plain numbers, all of whose bytes are initialised.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values.as_slice())) }.to_vec()
    })
}
