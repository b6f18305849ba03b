//! The arguments of a hypothetical call: shapes, a dtype, and attributes as text.

use anyhow::{Context, Result, bail};
use opsmith_codegen::model::{Arg, Default, Element, ItemKind, Kind, Op};
use opsmith_runtime::infer::symbolic::{self, Meta, Shape, Size};
use opsmith_runtime::{
    DType, Device, MemoryFormat, MemoryLayout, Scalar, Text, Value, layout, lists::ListItem,
};

/// Facts about the argument.
pub enum Known {
    Tensor(Meta),
    Tensors(Vec<Meta>),
    OptionalTensors(Vec<Option<Meta>>),
    Plain(Value),
}

impl Known {
    /// The argument in the form of inference.
    pub fn argument(&self) -> symbolic::ArgumentMeta<'_> {
        match self {
            Known::Tensor(meta) => symbolic::ArgumentMeta::Tensor(meta),
            Known::Tensors(metas) => symbolic::ArgumentMeta::Tensors(metas),
            Known::OptionalTensors(metas) => symbolic::ArgumentMeta::OptionalTensors(metas),
            Known::Plain(value) => symbolic::ArgumentMeta::Plain(value.as_arg()),
        }
    }
}

/// A shape given by the user; `None` for an unknown rank.
pub type GivenShape = Option<Vec<GivenSize>>;

/// A size given by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GivenSize {
    Number(i64),
    /// Equal names are equal sizes.
    Name(String),
    Unknown,
}

/// The call given by the user.
pub struct Given {
    /// The shapes of the tensor arguments, in order; `None` for one that is absent.
    pub shapes: Vec<Option<GivenShape>>,
    /// The dtype of tensor arguments, unless the spec fixes it.
    pub dtype: DType,
    /// Attributes by name.
    pub set: Vec<(String, String)>,
}

/// A value for each argument, in signature order.
///
/// # Errors
/// If shapes or attributes are missing, too many, or not of their argument's type.
pub fn values(op: &Op, given: &Given, context: &mut symbolic::Context) -> Result<Vec<Known>> {
    refuse_unknown(op, given)?;
    let mut shapes = given.shapes.iter();
    let lists =
        op.args.iter().filter(|arg| matches!(arg.ty.kind, Kind::Tensors | Kind::OptionalTensors)).count();
    let tensors = op.args.iter().filter(|arg| arg.ty.kind == Kind::Tensor).count();
    // A list gets the shapes that the other arguments do not use.
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
                Some(Some(shape)) => Known::Tensor(tensor(shape, dtype_of(arg, given.dtype), context)?),
                Some(None) | None if arg.ty.optional => Known::Plain(Value::None),
                _ => bail!(
                    "the shape of `{}` is missing; give one for each tensor: --shapes 2x3,3x4",
                    arg.name
                ),
            },
            Kind::Tensors | Kind::OptionalTensors => {
                let own = shapes.by_ref().take(spare.div_ceil(lists.max(1)));
                let dtype = dtype_of(arg, given.dtype);
                let tensors: Vec<Option<Meta>> = own
                    .map(|shape| shape.as_ref().map(|shape| tensor(shape, dtype, context)).transpose())
                    .collect::<Result<_>>()?;
                match arg.ty.kind {
                    Kind::Tensors => Known::Tensors(tensors.into_iter().flatten().collect()),
                    _ => Known::OptionalTensors(tensors),
                }
            }
            _ => Known::Plain(match (set, &arg.default) {
                (Some((name, text)), _) => parse(text, arg)
                    .with_context(|| format!("--set {name}={text}: `{name}` is of type {}", arg.ty))?,
                (None, Some(default)) => default_value(default, &arg.ty.kind),
                (None, None) if arg.ty.optional => Value::None,
                (None, None) if arg.ty.kind == Kind::Generator => Value::None,
                (None, None) => bail!("`{}` has no default; give it with --set {}=…", arg.name, arg.name),
            }),
        });
    }
    Ok(values)
}

/// Rejects a value for an unknown argument.
fn refuse_unknown(op: &Op, given: &Given) -> Result<()> {
    let Some((name, _)) = given.set.iter().find(|(name, _)| op.arg_index(name).is_none()) else {
        return Ok(());
    };
    let known: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
    let near = opsmith_codegen::diagnostics::nearest(name, known.iter().copied());
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    bail!("--set {name}: `{}` has no argument of that name{hint}; it has {}", op.name, known.join(", "))
}

fn dtype_of(arg: &Arg, given: DType) -> DType {
    match arg.element {
        Element::Fixed { kernel: dtype, accepted: set } => {
            if set.contains(given) {
                given
            } else {
                dtype
            }
        }
        Element::Real => given.to_real(),
        Element::Opmath => given.to_compute(),
        Element::Dispatch | Element::Any | Element::NotTensor => given,
    }
}

fn tensor(shape: &GivenShape, dtype: DType, context: &mut symbolic::Context) -> Result<Meta> {
    let Some(sizes) = shape else { return Ok(Meta::new(dtype, Shape::UnknownRank)) };
    let mut known = Vec::with_capacity(sizes.len());
    for size in sizes {
        let symbols = &mut context.symbols;
        known.push(match size {
            GivenSize::Number(size) => Size::Const(*size),
            GivenSize::Unknown => Size::Unknown,
            GivenSize::Name(name) => {
                let earlier =
                    symbols.all().map(Size::from).find(|size| size.named(symbols).to_string() == *name);
                match earlier {
                    Some(size) => size,
                    None => Size::from(symbols.named(name, 0, None)?),
                }
            }
        });
    }
    let numbers: Vec<i64> = known.iter().filter_map(Size::known).collect();
    layout::checked_numel(&numbers)?;
    Ok(Meta::new(dtype, Shape::from_iter(known)))
}

/// An attribute from text: `2`, `0.5`, `true`, `[1, 2]` or `1,2`, `float32`, `None`.
fn parse(text: &str, arg: &Arg) -> Result<Value> {
    if arg.ty.optional && text == "None" {
        return Ok(Value::None);
    }
    Ok(match arg.ty.kind {
        Kind::Bool => Value::Bool(bool(text)?),
        Kind::Int => Value::Int(text.parse()?),
        Kind::Float => Value::Float(text.parse()?),
        Kind::Scalar => Value::Scalar(scalar(text)?),
        Kind::Str => Value::Str(string(text)?.into_owned()),
        Kind::Ints(length) => {
            let mut list: Vec<i64> = each(text, |item| Ok(item.parse()?))?;
            if let (Some(length), [one]) = (length, list.as_slice()) {
                list = vec![*one; length as usize];
            }
            Value::Ints(list)
        }
        Kind::Floats => Value::Floats(each(text, |item| Ok(item.parse()?))?),
        Kind::Bools(_) => Value::Bools(each(text, bool)?),
        Kind::Scalars => Value::Scalars(each(text, scalar)?),
        Kind::Strs => Value::Strs(each(text, string)?),
        Kind::DTypes => Value::DTypes(each(text, dtype)?),
        Kind::Lists(item) => match item {
            ItemKind::Bool => rows(text, bool)?,
            ItemKind::Int => rows(text, |item| Ok(item.parse::<i64>()?))?,
            ItemKind::Float => rows(text, |item| Ok(item.parse::<f64>()?))?,
            ItemKind::Scalar => rows(text, scalar)?,
            ItemKind::Str => rows(text, string)?,
            ItemKind::DType => rows(text, dtype)?,
        },
        Kind::DType => Value::DType(dtype(text)?),
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

/// The items of a list, with or without its brackets; an item may be a list in brackets.
fn items(text: &str) -> Vec<&str> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    // `[1], [2]` begins and ends with brackets that are not a pair.
    let balanced = |text: &str| {
        let mut depth = 0;
        text.chars().all(|letter| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            depth >= 0
        })
    };
    let text = inner.filter(|inner| balanced(inner)).unwrap_or(text);
    let mut depth = 0;
    let parts = text.split(|letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn each<T>(text: &str, item: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    items(text).into_iter().map(item).collect()
}

/// `[[1, 2], [3]]`
fn rows<T: ListItem>(text: &str, item: impl Fn(&str) -> Result<T>) -> Result<Value> {
    Ok(Value::from(each(text, |row| each(row, &item))?))
}

fn string(text: &str) -> Result<Text> {
    Ok(Text::Owned(text.trim_matches(['"', '\'']).to_owned()))
}

fn dtype(text: &str) -> Result<DType> {
    DType::from_name(text).with_context(|| format!("no dtype is called `{text}`"))
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

fn default_value(default: &Default, kind: &Kind) -> Value {
    let number = |value: Scalar, plain: Value| match kind {
        Kind::Scalar => Value::Scalar(value),
        _ => plain,
    };
    match default {
        Default::None => Value::None,
        Default::Bool(value) => number(Scalar::Bool(*value), Value::Bool(*value)),
        Default::Int(value) => number(Scalar::Int(*value), Value::Int(*value)),
        Default::Float(value) => number(Scalar::Float(*value), Value::Float(*value)),
        Default::Str(text) => Value::Str(text.clone()),
        Default::List(items) => default_list(items, kind),
        Default::DType(dtype) => Value::DType(*dtype),
        Default::MemoryFormat(format) => Value::MemoryFormat(*format),
    }
}

/// A list; the spec was checked, so its items have the right kind.
fn default_list(items: &[Default], kind: &Kind) -> Value {
    fn each<T>(items: &[Default], item: impl Fn(&Default) -> Option<T>) -> Vec<T> {
        items.iter().filter_map(item).collect()
    }
    fn rows<T: ListItem>(items: &[Default], item: impl Fn(&Default) -> Option<T>) -> Value {
        let row =
            |row: &Default| if let Default::List(items) = row { Some(each(items, &item)) } else { None };
        Value::from(each(items, row))
    }
    let truth = |item: &Default| if let Default::Bool(value) = item { Some(*value) } else { None };
    let int = |item: &Default| if let Default::Int(value) = item { Some(*value) } else { None };
    let float = |item: &Default| if let Default::Float(value) = item { Some(*value) } else { None };
    let dtype = |item: &Default| if let Default::DType(value) = item { Some(*value) } else { None };
    let text = |item: &Default| match item {
        Default::Str(value) => Some(Text::Owned(value.clone())),
        _ => None,
    };
    let scalar = |item: &Default| match default_value(item, &Kind::Scalar) {
        Value::Scalar(value) => Some(value),
        _ => None,
    };
    match kind {
        Kind::Bools(_) => Value::Bools(each(items, truth)),
        Kind::Floats => Value::Floats(each(items, float)),
        Kind::Scalars => Value::Scalars(each(items, scalar)),
        Kind::Strs => Value::Strs(each(items, text)),
        Kind::DTypes => Value::DTypes(each(items, dtype)),
        Kind::Lists(ItemKind::Bool) => rows(items, truth),
        Kind::Lists(ItemKind::Int) => rows(items, int),
        Kind::Lists(ItemKind::Float) => rows(items, float),
        Kind::Lists(ItemKind::Scalar) => rows(items, scalar),
        Kind::Lists(ItemKind::Str) => rows(items, text),
        Kind::Lists(ItemKind::DType) => rows(items, dtype),
        _ => Value::Ints(each(items, int)),
    }
}
