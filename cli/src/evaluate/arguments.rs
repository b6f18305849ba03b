//! The arguments of a call that is only thought of: shapes, a dtype, and attributes as text.

use anyhow::{Context, Result, bail};
use opsmith_codegen::model::{Arg, Default, Element, Kind, Op};
use opsmith_runtime::{
    DType, Device, Element as _, MemoryFormat, MemoryLayout, Scalar, Tensor, Value, with_dtype,
};

/// Larger tensors are not made just to look at their shape.
const MAX_ELEMENTS: i64 = 1 << 26;

/// What the user said of a call.
pub struct Given {
    /// The shapes of the tensor arguments, in order; `None` for one that is absent.
    pub shapes: Vec<Option<Vec<i64>>>,
    /// The dtype of tensor arguments, unless the spec fixes it.
    pub dtype: DType,
    /// Attributes by name.
    pub set: Vec<(String, String)>,
}

/// A value for each argument, in signature order.
///
/// # Errors
/// If shapes or attributes are missing, too many, or not of their argument's type.
pub fn values(op: &Op, given: &Given) -> Result<Vec<Value>> {
    for (name, _) in &given.set {
        if op.arg_index(name).is_none() {
            let known: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
            let near = opsmith_codegen::diagnostics::nearest(name, known.iter().copied());
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            bail!(
                "--set {name}: `{}` has no argument of that name{hint}; it has {}",
                op.name,
                known.join(", ")
            );
        }
    }
    let mut shapes = given.shapes.iter();
    let lists =
        op.args.iter().filter(|arg| matches!(arg.ty.kind, Kind::Tensors | Kind::OptionalTensors)).count();
    let tensors = op.args.iter().filter(|arg| arg.ty.kind == Kind::Tensor).count();
    // A list takes the shapes that the other arguments leave over.
    let spare = given.shapes.len().saturating_sub(tensors);
    if lists == 0 && spare > 0 {
        bail!(
            "--shapes gives {} shapes, and `{}` has {tensors} tensor arguments",
            given.shapes.len(),
            op.name
        );
    }
    let mut values = Vec::with_capacity(op.args.len());
    for arg in &op.args {
        let set = given.set.iter().rev().find(|(name, _)| *name == arg.name);
        values.push(match arg.ty.kind {
            Kind::Tensor => match shapes.next() {
                Some(Some(shape)) => Value::Tensor(tensor(shape, dtype_of(arg, given.dtype))?),
                Some(None) | None if arg.ty.optional => Value::None,
                _ => bail!(
                    "the shape of `{}` is missing; give one for each tensor: --shapes 2x3,3x4",
                    arg.name
                ),
            },
            Kind::Tensors | Kind::OptionalTensors => {
                let own = shapes.by_ref().take(spare.div_ceil(lists.max(1)));
                let tensors: Vec<Option<Tensor>> = own
                    .map(|shape| {
                        shape.as_ref().map(|shape| tensor(shape, dtype_of(arg, given.dtype))).transpose()
                    })
                    .collect::<Result<_>>()?;
                match arg.ty.kind {
                    Kind::Tensors => Value::Tensors(tensors.into_iter().flatten().collect()),
                    _ => Value::OptionalTensors(tensors),
                }
            }
            _ => match (set, &arg.default) {
                (Some((name, text)), _) => parse(text, arg)
                    .with_context(|| format!("--set {name}={text}: `{name}` is of type {}", arg.ty))?,
                (None, Some(default)) => default_value(default, arg),
                (None, None) if arg.ty.optional => Value::None,
                (None, None) if arg.ty.kind == Kind::Generator => Value::None,
                (None, None) => bail!("`{}` has no default; give it with --set {}=…", arg.name, arg.name),
            },
        });
    }
    Ok(values)
}

fn dtype_of(arg: &Arg, given: DType) -> DType {
    match arg.element {
        Element::Fixed(dtype, set) => {
            if set.contains(given) {
                given
            } else {
                dtype
            }
        }
        Element::Real => given.to_real(),
        Element::Dispatch | Element::Any | Element::NotTensor => given,
    }
}

fn tensor(shape: &[i64], dtype: DType) -> Result<Tensor> {
    let numel = shape.iter().try_fold(1i64, |numel, size| numel.checked_mul(*size));
    if numel.is_none_or(|numel| numel > MAX_ELEMENTS) {
        bail!("shapes with more than {MAX_ELEMENTS} elements are not looked at");
    }
    let numel = numel.unwrap_or_default() as usize;
    Ok(with_dtype!(dtype, T => Tensor::from_slice(&vec![T::from_scalar(Scalar::Int(0)); numel], shape))?)
}

/// An attribute from text: `2`, `0.5`, `true`, `[1, 2]` or `1,2`, `float32`, `None`.
fn parse(text: &str, arg: &Arg) -> Result<Value> {
    if arg.ty.optional && text == "None" {
        return Ok(Value::None);
    }
    let items = || {
        text.trim_start_matches('[')
            .trim_end_matches(']')
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    };
    Ok(match arg.ty.kind {
        Kind::Bool => Value::Bool(bool(text)?),
        Kind::Int => Value::Int(text.parse()?),
        Kind::Float => Value::Float(text.parse()?),
        Kind::Scalar => Value::Scalar(scalar(text)?),
        Kind::Str => Value::Str(text.trim_matches(['"', '\'']).to_owned()),
        Kind::Ints(length) => {
            let mut list: Vec<i64> = items().map(str::parse).collect::<std::result::Result<_, _>>()?;
            if let (Some(length), [one]) = (length, list.as_slice()) {
                list = vec![*one; length as usize];
            }
            Value::Ints(list)
        }
        Kind::Floats => Value::Floats(items().map(str::parse).collect::<std::result::Result<_, _>>()?),
        Kind::Bools(_) => Value::Bools(items().map(bool).collect::<Result<_>>()?),
        Kind::Scalars => Value::Scalars(items().map(scalar).collect::<Result<_>>()?),
        Kind::DType => {
            Value::DType(DType::from_name(text).with_context(|| format!("no dtype is called `{text}`"))?)
        }
        Kind::Device => {
            Value::Device(Device::from_name(text).with_context(|| format!("no device is called `{text}`"))?)
        }
        Kind::MemoryFormat => Value::MemoryFormat(
            MemoryFormat::from_name(text).with_context(|| format!("no memory format is called `{text}`"))?,
        ),
        Kind::MemoryLayout => Value::MemoryLayout(MemoryLayout::Strided),
        _ => bail!("it cannot be written as text"),
    })
}

fn bool(text: &str) -> Result<bool> {
    match text {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => bail!("`{text}` is neither `true` nor `false`"),
    }
}

fn scalar(text: &str) -> Result<Scalar> {
    if let Ok(value) = text.parse() {
        return Ok(Scalar::Int(value));
    }
    match bool(text) {
        Ok(value) => Ok(Scalar::Bool(value)),
        Err(_) => Ok(Scalar::Float(text.parse()?)),
    }
}

fn default_value(default: &Default, arg: &Arg) -> Value {
    let number =
        |value: Scalar, plain: Value| if arg.ty.kind == Kind::Scalar { Value::Scalar(value) } else { plain };
    match default {
        Default::None => Value::None,
        Default::Bool(value) => number(Scalar::Bool(*value), Value::Bool(*value)),
        Default::Int(value) => number(Scalar::Int(*value), Value::Int(*value)),
        Default::Float(value) => number(Scalar::Float(*value), Value::Float(*value)),
        Default::Str(text) => Value::Str(text.clone()),
        Default::Ints(list) => Value::Ints(list.clone()),
        Default::Floats(list) => Value::Floats(list.clone()),
        Default::Bools(list) => Value::Bools(list.clone()),
        Default::DType(dtype) => Value::DType(*dtype),
        // The model keeps the variant's name.
        Default::MemoryFormat("Preserve") => Value::MemoryFormat(MemoryFormat::Preserve),
        Default::MemoryFormat("ChannelsLast") => Value::MemoryFormat(MemoryFormat::ChannelsLast),
        Default::MemoryFormat("ChannelsLast3d") => Value::MemoryFormat(MemoryFormat::ChannelsLast3d),
        Default::MemoryFormat(_) => Value::MemoryFormat(MemoryFormat::Contiguous),
    }
}
