//! Nodes of other domains: operators of linked libraries.
//!
//! In: a domain, a name, and a call. Out: results. Inputs are the operator's tensors in the order of its signature, and
//! attributes are its other arguments by their names, as `save` writes them.

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{ArgKind, OpDef};

use crate::call::Call;
use crate::libraries;
use crate::model::Attribute;
use crate::values::Datum;

/// The attribute with the lengths of lists of tensors.
pub(crate) const LENGTHS: &str = "tensor_lists";

/// Calls an operator of a linked library.
///
/// # Errors
/// If the inputs and attributes do not fit, and errors of the operator.
pub(crate) fn call(domain: &str, name: &str, call: &Call<'_>) -> Result<Vec<Datum>> {
    let op = libraries::find_in(domain, name).ok_or_else(|| {
        Error::not_found(format!("no library in this program has the operator `{domain}::{name}`"))
    })?;
    let (mut values, mut position) = (Vec::new(), 0);
    let mut lengths = call.ints(LENGTHS)?.unwrap_or_default().into_iter();
    for argument in op.schema.args {
        let value = match argument.ty.kind {
            ArgKind::Tensor => {
                position += 1;
                call.maybe(position - 1)?.map(Value::Tensor)
            }
            ArgKind::Tensors | ArgKind::OptionalTensors => {
                let rest = call.inputs.len().saturating_sub(position);
                let length = lengths.next().map_or(rest, |length| (length.max(0) as usize).min(rest));
                let tensors =
                    (position..position + length).map(|at| call.maybe(at)).collect::<Result<Vec<_>>>()?;
                position += length;
                Some(Value::OptionalTensors(tensors))
            }
            kind => call.attribute(argument.name).map(|attribute| value(attribute, kind)).transpose()?,
        };
        let value =
            value.or_else(|| (argument.ty.optional && argument.default.is_none()).then_some(Value::None));
        if let Some(value) = value {
            values.push((argument.name, value));
        }
    }
    known(op, call)?;
    let mut results = Vec::new();
    for value in boxed::call_definition(op, &[], &values)? {
        match value {
            Value::Tensor(tensor) => results.push(Datum::Tensor(tensor)),
            Value::Tensors(tensors) => results.extend(tensors.into_iter().map(Datum::Tensor)),
            other => {
                return Err(Error::argument(format!("a result is {}, and no tensor", other.as_arg().kind())));
            }
        }
    }
    Ok(results)
}

/// # Errors
/// If an attribute is no argument of the operator.
fn known(op: &OpDef, call: &Call<'_>) -> Result<()> {
    let unknown =
        call.node.attributes.iter().find(|(name, _)| name != LENGTHS && op.argument(name).is_none());
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(Error::argument(format!("`{}` has no argument `{name}`", op.name))),
    }
}

/// The value of an attribute, for an argument of a kind.
fn value(attribute: &Attribute, kind: ArgKind) -> Result<Value> {
    Ok(match (attribute, kind) {
        (Attribute::Int(number), ArgKind::Bool) => Value::Bool(*number != 0),
        (Attribute::Int(number), _) => Value::Int(*number),
        (Attribute::Float(number), _) => Value::Float(*number),
        (Attribute::Text(text), ArgKind::DType) => match DType::from_name(text) {
            Some(dtype) => Value::DType(dtype),
            None => return Err(Error::argument(format!("there is no element type {text:?}"))),
        },
        (Attribute::Text(text), _) => Value::Str(text.clone()),
        (Attribute::Ints(numbers), ArgKind::Bools(_)) => {
            Value::Bools(numbers.iter().map(|number| *number != 0).collect())
        }
        (Attribute::Ints(numbers), _) => Value::Ints(numbers.clone()),
        (Attribute::Floats(numbers), _) => Value::Floats(numbers.clone()),
        (Attribute::Texts(texts), _) => Value::Strs(texts.iter().map(|text| text.clone().into()).collect()),
        (Attribute::Tensor(tensor), _) => Value::Tensor(tensor.clone()),
        (Attribute::Block(_), _) => return Err(Error::argument("an operator of a library takes no graph")),
    })
}
