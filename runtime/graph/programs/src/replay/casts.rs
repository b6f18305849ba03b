//! Calls in a region of automatic casts, `torch.autocast`.
//!
//! In: a call, and the dtype that the program records for its result. Out: the result in that dtype. Which operators cast
//! their operands to which dtype is a table of PyTorch's, which differs between its versions and devices; its effect on a
//! program is recorded in it.

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::Result;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

use crate::operators;
use crate::structural::CAST;

/// Calls an operator with its operands as they are, and, if that is an error or gives another float than the recorded one,
/// with those that are floats cast to that.
pub(super) fn call(
    op: &'static OpDef,
    mut args: Vec<Value>,
    mut named: Vec<(&str, Value)>,
    recorded: Option<DType>,
) -> Result<Vec<Value>> {
    let found = boxed::call_definition(op, &args, &named);
    let Some(recorded) = recorded.filter(|dtype| is_cast(*dtype)) else { return found };
    let is_right = match &found {
        Ok(results) => match results.first() {
            Some(Value::Tensor(tensor)) => tensor.dtype() == recorded || !is_cast(tensor.dtype()),
            _ => true,
        },
        Err(error) => error.lacks_elements(),
    };
    if is_right {
        return found;
    }
    let mut changed = false;
    for value in args.iter_mut().chain(named.iter_mut().map(|(_, value)| value)) {
        changed |= cast(value, recorded)?;
    }
    if changed { boxed::call_definition(op, &args, &named) } else { found }
}

/// Casts the tensors of an argument; false if none has another dtype.
fn cast(value: &mut Value, to: DType) -> Result<bool> {
    let mut changed = false;
    let mut each = |tensor: &mut Tensor| -> Result<()> {
        if is_cast(tensor.dtype()) && tensor.dtype() != to {
            *tensor = operators::call(CAST, &[(&*tensor).into(), Value::DType(to)])?;
            changed = true;
        }
        Ok(())
    };
    match value {
        Value::Tensor(tensor) => each(tensor)?,
        Value::Tensors(list) => list.iter_mut().try_for_each(each)?,
        Value::OptionalTensors(list) => list.iter_mut().flatten().try_for_each(each)?,
        _ => {}
    }
    Ok(changed)
}

/// Whether regions cast tensors of a dtype: floats, but those of 64 bits, which have a purpose.
fn is_cast(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}
