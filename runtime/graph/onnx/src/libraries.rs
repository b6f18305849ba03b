//! Operators of linked libraries, by name.
//!
//! In: a name and arguments. Out: results.

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::library::{self, Form, Named};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

/// The operator of a name in the first linked library that has it.
///
/// # Errors
/// If none has it.
pub(crate) fn find(name: &str) -> Result<&'static OpDef> {
    let found = library::linked().find_map(|library| library.find(name));
    match found {
        Some((op, Form::Functional)) => Ok(op),
        _ => Err(Error::not_found(format!("no library in this program has the operator `{name}`"))
            .with_help("link a library of operators, such as `opsmith`")),
    }
}

/// The operator of a name in the library of a domain.
pub(crate) fn find_in(domain: &str, name: &str) -> Option<&'static OpDef> {
    let same =
        |library: &&'static library::Library| library.name.replace('-', "_") == domain.replace('-', "_");
    let found: Option<Named> = library::linked().filter(same).find_map(|library| library.find(name));
    found.and_then(|(op, form)| (form == Form::Functional).then_some(op))
}

/// Calls an operator with one result, a tensor.
///
/// # Errors
/// If there is no such operator, and its errors.
pub(crate) fn one(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Tensor> {
    match many(name, args, named)?.into_iter().next() {
        Some(Value::Tensor(tensor)) => Ok(tensor),
        _ => Err(Error::argument(format!("the result of `{name}` is no tensor"))),
    }
}

/// Calls an operator.
///
/// # Errors
/// If there is no such operator, and its errors.
pub(crate) fn many(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Vec<Value>> {
    boxed::call_definition(find(name)?, args, named)
}

/// Calls an operator of several results, all tensors.
///
/// # Errors
/// If there is no such operator, and its errors.
pub(crate) fn tensors(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::new();
    for value in many(name, args, named)? {
        match value {
            Value::Tensor(tensor) => tensors.push(tensor),
            Value::Tensors(list) => tensors.extend(list),
            _ => return Err(Error::argument(format!("a result of `{name}` is no tensor"))),
        }
    }
    Ok(tensors)
}

/// Calls an operator with one result: `run!("name", a, b; "key" => c)`.
macro_rules! run {
    ($name:expr $(, $arg:expr)* $(; $($key:literal => $value:expr),+)?) => {
        $crate::libraries::one(
            $name,
            &[$(opsmith_runtime::arg::Value::from($arg)),*],
            &[$($(($key, opsmith_runtime::arg::Value::from($value))),+)?],
        )
    };
}
pub(crate) use run;
