//! The signature of an operator as a node of ONNX has it: inputs are its tensors in order, attributes its other arguments.
//!
//! In: a definition, and the attributes and inputs of a node. Out: the values of a call. Attributes are those that
//! `opsmith::graph`'s writer of ONNX models makes: a dtype is a text, a truth value an integer, and `tensor_lists` has the lengths of
//! lists of tensors. A float may be a text, too, since attributes of ONNX have 32 bits.

use std::ffi::{CStr, CString};

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::{DType, Scalar, Value};

use super::api::{Api, Source, dtype_of};

/// The attribute with the lengths of lists of tensors.
const LENGTHS: &CStr = c"tensor_lists";

/// An input of a node.
#[derive(Clone, Copy, PartialEq)]
pub enum Input {
    Required,
    Optional,
    /// The rest of the inputs: those of lists, and those behind a list.
    Rest,
}

/// The inputs of a node of an operator. Behind the first list all are one input of any length.
pub fn inputs(op: &OpDef) -> Vec<Input> {
    let mut found = Vec::new();
    for def in op.schema.args {
        match def.ty.kind {
            ArgKind::Tensor if def.ty.optional => found.push(Input::Optional),
            ArgKind::Tensor => found.push(Input::Required),
            ArgKind::Tensors | ArgKind::OptionalTensors => {
                found.push(Input::Rest);
                break;
            }
            _ => {}
        }
    }
    found
}

/// Whether the results are one list of tensors.
pub fn gives_list(op: &OpDef) -> bool {
    matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors)
}

/// The number of results that a call returns.
pub fn results(op: &OpDef) -> usize {
    op.schema.returns.len() - op.hidden.min(op.schema.returns.len())
}

/// The attributes of a node: arguments that are no tensors, by name, and the lengths of lists of tensors.
pub struct Attributes {
    pub values: Vec<(&'static str, Value)>,
    lengths: Vec<i64>,
}

/// A number that is written as a text.
fn parsed(text: &str, name: &str) -> Result<f64> {
    text.trim().parse().map_err(|_| misfit(name, "a number", &format!("the text {text:?}")))
}

fn misfit(name: &str, expected: &str, found: &str) -> Error {
    Error::argument(format!(
        "the attribute `{name}` is {found}, and no {}",
        expected.trim_start_matches("a ")
    ))
    .with_help(format!("give {expected}"))
}

/// The attribute of an argument; `None` if the node has none.
fn attribute(api: Api, source: Source, kind: ArgKind, name: &str) -> Result<Option<Value>> {
    let Ok(key) = CString::new(name) else { return Ok(None) };
    let int = || api.int(source, &key);
    let float = || api.float(source, &key).map(f64::from);
    let text = || api.text(source, &key);
    // Readers of lists find an empty one in an attribute of another kind.
    let ints =
        || api.ints(source, &key).filter(|list| !list.is_empty() || (int().is_none() && float().is_none()));
    let floats = || api.floats(source, &key).map(|list| list.into_iter().map(f64::from).collect::<Vec<_>>());
    let found = match kind {
        ArgKind::Bool => int().map(|number| Value::Bool(number != 0)),
        ArgKind::Int => int().map(Value::Int),
        ArgKind::Float => match (float(), int()) {
            (Some(number), _) => Some(Value::Float(number)),
            (_, Some(number)) => Some(Value::Float(number as f64)),
            _ => text().map(|text| parsed(&text, name)).transpose()?.map(Value::Float),
        },
        ArgKind::Scalar => match (int(), float()) {
            (Some(number), _) => Some(Value::Scalar(Scalar::Int(number))),
            (_, Some(number)) => Some(Value::Scalar(Scalar::Float(number))),
            _ => match text().as_deref() {
                Some("true") => Some(Value::Scalar(Scalar::Bool(true))),
                Some("false") => Some(Value::Scalar(Scalar::Bool(false))),
                Some(text) => Some(Value::Scalar(Scalar::Float(parsed(text, name)?))),
                None => None,
            },
        },
        ArgKind::Str => text().map(Value::Str),
        ArgKind::Ints(_) => match ints() {
            Some(list) => Some(Value::Ints(list)),
            None => int().map(|number| Value::Ints(vec![number])),
        },
        ArgKind::Bools(_) => match ints() {
            Some(list) => Some(Value::Bools(list.into_iter().map(|number| number != 0).collect())),
            None => int().map(|number| Value::Bools(vec![number != 0])),
        },
        ArgKind::Floats => floats().map(Value::Floats),
        ArgKind::Scalars => match floats().filter(|list| !list.is_empty()) {
            Some(list) => Some(Value::Scalars(list.into_iter().map(Scalar::Float).collect())),
            None => ints().map(|list| Value::Scalars(list.into_iter().map(Scalar::Int).collect())),
        },
        ArgKind::DType => match (text(), int()) {
            (Some(text), _) => Some(Value::DType(DType::from_name(&text).ok_or_else(|| {
                misfit(name, "a dtype such as \"float32\"", &format!("the text {text:?}"))
            })?)),
            (_, Some(number)) => {
                Some(Value::DType(i32::try_from(number).ok().and_then(dtype_of).ok_or_else(|| {
                    misfit(name, "a number of an element type of ONNX", &format!("the number {number}"))
                })?))
            }
            _ => None,
        },
        _ => None,
    };
    if found.is_some() {
        return Ok(found);
    }
    let other = match (int(), float(), text()) {
        (Some(number), ..) => format!("the number {number}"),
        (_, Some(number), _) => format!("the number {number}"),
        (.., Some(text)) => format!("the text {text:?}"),
        _ => return Ok(None),
    };
    Err(misfit(name, kind.noun(), &other))
}

/// Reads the attributes of a node.
///
/// # Errors
/// If one is of another kind, or one is missing.
pub fn attributes(api: Api, source: Source, op: &'static OpDef) -> Result<Attributes> {
    let mut values = Vec::new();
    for def in op.schema.args.iter().filter(|def| !def.ty.holds_tensors()) {
        match attribute(api, source, def.ty.kind, def.name)? {
            Some(value) => values.push((def.name, value)),
            None if def.ty.optional && def.default.is_none() => values.push((def.name, Value::None)),
            None if def.default.is_some() => {}
            None => {
                return Err(Error::argument(format!("the node has no attribute `{}`", def.name))
                    .with_help(format!("give {}; the signature is {}", def.ty.kind.noun(), op.schema.text)));
            }
        }
    }
    Ok(Attributes { values, lengths: api.ints(source, LENGTHS).unwrap_or_default() })
}

/// The value in the place of an argument with tensors.
pub enum Given<T> {
    One(T),
    List(Vec<Option<T>>),
    /// An absent tensor, which the signature leaves to calls.
    Absent,
}

impl Attributes {
    /// The inputs of a node by argument; those that have a default are left out if they are absent.
    ///
    /// # Errors
    /// If there are too many or too few.
    pub fn bound<T>(
        &self,
        op: &'static OpDef,
        inputs: Vec<Option<T>>,
    ) -> Result<Vec<(&'static str, Given<T>)>> {
        let count = inputs.len();
        let mut rest = inputs.into_iter();
        let mut lengths = self.lengths.iter();
        let mut found = Vec::new();
        for def in op.schema.args {
            match def.ty.kind {
                ArgKind::Tensor => match rest.next().flatten() {
                    Some(tensor) => found.push((def.name, Given::One(tensor))),
                    None if def.default.is_some() => {}
                    None if def.ty.optional => found.push((def.name, Given::Absent)),
                    None => {
                        return Err(Error::argument(format!("the node has no input `{}`", def.name))
                            .with_help(format!("the signature is {}", op.schema.text)));
                    }
                },
                ArgKind::Tensors | ArgKind::OptionalTensors => {
                    let left = rest.len();
                    let length = lengths.next().map_or(left, |length| usize::try_from(*length).unwrap_or(0));
                    found.push((def.name, Given::List(rest.by_ref().take(length).collect())));
                }
                _ => {}
            }
        }
        if rest.len() > 0 {
            return Err(Error::argument(format!("the node has {} of {count} inputs too many", rest.len()))
                .with_help(format!("the signature is {}", op.schema.text)));
        }
        Ok(found)
    }
}
