//! Calls of operators that write their arguments, in a decomposed program: `auto_functionalized_v2(operator, …)`.
//!
//! In: the operator's arguments by name, `_all_bases`, the tensors whose memory it writes, and for each argument `NAME` that it
//! writes the number of its base, `_NAME_base_index`, with the part of it that the argument is. Out: the operator's results, and
//! each base as the call leaves it. Bases are copied before the call.

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::library::Form;
use opsmith_runtime::op::ArgKind;
use opsmith_runtime::tensor::Tensor;

use super::frame::Frame;
use crate::errors::unsupported;
use crate::model::{Argument, Binding, Node};
use crate::operators;
use crate::structural::{CLONE, SLICE, STRIDED};

/// The results of a node; `None` if an argument is that of a failed one.
pub(super) fn call(node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
    let Some(Argument::Value(Value::Str(target))) = node.args.first() else {
        return Err(unsupported("a call on copies that names no operator"));
    };
    let (op, form) = operators::find(target)?;
    let (Form::Inplace, Some(name)) = (form, op.forms.inplace) else {
        return Err(unsupported(format!(
            "`{target}`, called on copies of arguments that it does not write,"
        )));
    };
    let Some((_, named)) = frame.arguments(node) else { return Ok(None) };
    let given = Given(&named);
    let Some(Value::Tensors(bases)) = given.find("_all_bases") else {
        return Err(unsupported("a call on copies without the tensors to copy"));
    };
    let bases: Vec<Tensor> =
        bases.iter().map(|base| operators::call(CLONE, &[base.into()])).collect::<Result<_>>()?;
    let mut kwargs = Vec::new();
    for arg in op.schema.args {
        let value = match arg.ty.kind {
            ArgKind::Tensors => given.written_list(arg.name, &bases)?,
            _ => given.written(arg.name, &bases)?,
        };
        if let Some(value) = value.or_else(|| given.find(arg.name).cloned()) {
            kwargs.push((arg.name, value));
        }
    }
    let results = boxed::call(op.library, name, &[], &kwargs)?;
    // An operator without results has one that is nothing.
    let others = node.outputs.len().saturating_sub(bases.len());
    let mut values = match node.outputs.first() {
        Some(Binding::None) if others == 1 => vec![Value::None],
        _ => results.into_iter().take(others).collect(),
    };
    values.extend(bases.into_iter().map(Value::Tensor));
    Ok(Some(values))
}

/// The arguments of the node by name.
struct Given<'a>(&'a [(&'a str, Value)]);

impl Given<'_> {
    fn find(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// An integer of an argument, `_NAME_PART`.
    fn int(&self, name: &str, part: &str) -> Result<i64> {
        match self.find(&format!("_{name}_{part}")) {
            Some(Value::Int(value)) => Ok(*value),
            _ => Err(Error::argument(format!("`_{name}_{part}` is no integer"))),
        }
    }

    /// The part of a base that an argument is; `None` if the operator does not write the argument.
    fn written(&self, name: &str, bases: &[Tensor]) -> Result<Option<Value>> {
        let base = match self.find(&format!("_{name}_base_index")) {
            None => return Ok(None),
            Some(Value::None) => return Ok(Some(Value::None)),
            Some(_) => self.int(name, "base_index")?,
        };
        let base = usize::try_from(base).ok().and_then(|base| bases.get(base));
        let base = base.ok_or_else(|| Error::argument(format!("`_{name}_base_index` is no base")))?;
        let layout = ["size", "stride", "storage_offset"].map(|part| self.find(&format!("_{name}_{part}")));
        let part = match layout {
            [Some(size), Some(stride), Some(offset)] => {
                operators::call(STRIDED, &[base.into(), size.clone(), stride.clone(), offset.clone()])?
            }
            _ if self.find(&format!("_{name}_slice_dim")).is_some() => {
                let [dim, start, end] =
                    ["slice_dim", "slice_start", "slice_end"].map(|part| self.int(name, part));
                operators::call(
                    SLICE,
                    &[base.into(), Value::Int(dim?), Value::Int(start?), Value::Int(end?)],
                )?
            }
            _ => base.clone(),
        };
        Ok(Some(Value::Tensor(part)))
    }

    /// As [`Given::written`], of a list, whose items are `NAME_0`, `NAME_1` and so on.
    fn written_list(&self, name: &str, bases: &[Tensor]) -> Result<Option<Value>> {
        if self.find(&format!("_{name}_length")).is_none() {
            return Ok(None);
        }
        let mut tensors = Vec::new();
        for position in 0..self.int(name, "length")? {
            match self.written(&format!("{name}_{position}"), bases)? {
                Some(Value::Tensor(tensor)) => tensors.push(tensor),
                _ => return Err(Error::argument(format!("`{name}[{position}]` is no part of a base"))),
            }
        }
        Ok(Some(Value::Tensors(tensors)))
    }
}
