//! Compact descriptions of the arguments of a recorded call.
//!
//! In: a sample of the spec, or the JSON of a record. Out: values of a call in a dtype. `record.py` makes the same
//! tensors from the same descriptions.

use opsmith::{DType, Device, Tensor, Value};
use opsmith_runtime::op::{ArgKind, ElementType, OpDef};
use opsmith_runtime::sample::{Fill, SampleTensor, SampleValue};
use opsmith_runtime::{Complex64, Scalar};
use serde_json::{Value as Json, json};

use crate::checks::elements;

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(f64, f64),
    /// A text.
    Str(String),
    /// An element type.
    DType(DType),
    /// A list of any of these.
    List(Vec<Given>),
    /// A tensor.
    Tensor(GivenTensor),
}

/// A tensor by shape and fill.
#[derive(Clone, PartialEq, Debug)]
pub struct GivenTensor {
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements.
    pub values: Values,
    /// A number that distinguishes tensors of one call.
    pub seed: usize,
    /// The sizes it is expanded to, for all combinations of the elements of several tensors.
    pub grid: Option<Vec<i64>>,
}

/// The elements of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Numbers between two bounds, in the dtype of the call; small integers for an integer dtype.
    Between(f64, f64),
    /// Integers from the first up to but not including the second.
    Integers(i64, i64),
    /// Truth values.
    Mask,
    /// These numbers, repeated, in the dtype of the call.
    Cycle(Vec<Complex64>),
    /// These integers, repeated, `int64`.
    Places(Vec<i64>),
    /// These integers, repeated, in the call's integer dtype.
    Whole(Vec<i64>),
}

impl Given {
    /// The description of an argument of a call in `float64`; `None` if there is none.
    pub fn of_value(value: &Value, seed: usize) -> Option<Given> {
        let tensor = |tensor: &Tensor| {
            let elements = elements(tensor);
            let whole = || elements.iter().map(|x| x.re as i64).collect();
            let values = match tensor.dtype() {
                DType::Bool => Values::Mask,
                dtype if dtype.is_differentiable() => Values::Cycle(elements),
                _ => Values::Places(whole()),
            };
            Given::Tensor(GivenTensor { shape: tensor.shape().to_vec(), values, seed, grid: None })
        };
        Some(match value {
            Value::None => Given::None,
            Value::Bool(value) | Value::Scalar(Scalar::Bool(value)) => Given::Bool(*value),
            Value::Int(value) | Value::Scalar(Scalar::Int(value)) => Given::Int(*value),
            Value::Float(value) | Value::Scalar(Scalar::Float(value)) => Given::Float(*value),
            Value::Scalar(Scalar::Complex(value)) => Given::Complex(value.re, value.im),
            Value::Str(text) => Given::Str(text.clone()),
            Value::DType(dtype) => Given::DType(*dtype),
            Value::Ints(items) => Given::List(items.iter().copied().map(Given::Int).collect()),
            Value::Floats(items) => Given::List(items.iter().copied().map(Given::Float).collect()),
            Value::Bools(items) => Given::List(items.iter().copied().map(Given::Bool).collect()),
            Value::Tensor(one) => tensor(one),
            Value::Tensors(many) => Given::List(many.iter().map(tensor).collect()),
            _ => return None,
        })
    }

    /// The description of a sample's argument.
    pub fn of_sample(value: &SampleValue, seed: usize) -> Given {
        match *value {
            SampleValue::None => Given::None,
            SampleValue::Bool(value) => Given::Bool(value),
            SampleValue::Int(value) => Given::Int(value),
            SampleValue::Float(value) => Given::Float(value),
            SampleValue::Complex(re, im) => Given::Complex(re, im),
            SampleValue::Str(text) => Given::Str(text.to_owned()),
            SampleValue::DType(dtype) => Given::DType(dtype),
            SampleValue::List(items) => {
                Given::List(items.iter().map(|item| Given::of_sample(item, seed)).collect())
            }
            SampleValue::Tensor(tensor) => Given::Tensor(GivenTensor::of_sample(&tensor, seed)),
            SampleValue::Tensors(items) => {
                let item = |(position, item): (usize, &Option<SampleTensor>)| {
                    let seed = seed + 7 * (position + 1);
                    item.as_ref()
                        .map_or(Given::None, |item| Given::Tensor(GivenTensor::of_sample(item, seed)))
                };
                Given::List(items.iter().enumerate().map(item).collect())
            }
        }
    }

    /// Calls `visit` with every tensor.
    pub fn for_each_tensor(&mut self, visit: &mut dyn FnMut(&mut GivenTensor)) {
        match self {
            Given::Tensor(tensor) => visit(tensor),
            Given::List(items) => items.iter_mut().for_each(|item| item.for_each_tensor(visit)),
            _ => {}
        }
    }

    /// Calls `visit` with every integer attribute.
    pub fn for_each_integer(&mut self, visit: &mut dyn FnMut(&mut i64)) {
        match self {
            Given::Int(value) => visit(value),
            Given::List(items) => items.iter_mut().for_each(|item| item.for_each_integer(visit)),
            _ => {}
        }
    }

    /// The JSON for a record.
    pub fn to_json(&self) -> Json {
        match self {
            Given::None => Json::Null,
            Given::Bool(value) => json!(value),
            Given::Int(value) => json!(value),
            Given::Float(value) => json!({"float": number_to_json(*value)}),
            Given::Complex(re, im) => json!({"complex": [re, im]}),
            Given::Str(text) => json!(text),
            Given::DType(dtype) => json!({"dtype": dtype.name()}),
            Given::List(items) => items.iter().map(Given::to_json).collect(),
            Given::Tensor(GivenTensor { shape, values, seed, grid }) => {
                let mut fields = json!({"shape": shape, "seed": seed});
                if let Some(grid) = grid {
                    fields["grid"] = json!(grid);
                }
                let (name, value) = values.to_json();
                fields[name] = value;
                fields
            }
        }
    }

    /// Reads [`Given::to_json`].
    pub fn read(json: &Json) -> Option<Given> {
        Some(match json {
            Json::Null => Given::None,
            Json::Bool(value) => Given::Bool(*value),
            Json::Number(number) => Given::Int(number.as_i64()?),
            Json::String(text) => Given::Str(text.clone()),
            Json::Array(items) => Given::List(items.iter().map(Given::read).collect::<Option<_>>()?),
            Json::Object(fields) => {
                if let Some(value) = fields.get("float") {
                    return number(value).map(Given::Float);
                }
                if let Some(value) = fields.get("complex") {
                    return Some(Given::Complex(value.get(0)?.as_f64()?, value.get(1)?.as_f64()?));
                }
                if let Some(name) = fields.get("dtype") {
                    return DType::from_name(name.as_str()?).map(Given::DType);
                }
                let shape = integers(fields.get("shape")?)?;
                let seed = fields.get("seed")?.as_u64()? as usize;
                let grid = fields.get("grid").and_then(integers);
                Given::Tensor(GivenTensor { shape, values: Values::read(json)?, seed, grid })
            }
        })
    }

    /// The argument value, of the given kind.
    ///
    /// # Errors
    /// If there is no memory or the dtype cannot hold the elements.
    pub fn build(&self, kind: ArgKind, element: ElementType, dtype: DType) -> opsmith::Result<Value> {
        let own = if element == ElementType::Real { dtype.to_real() } else { dtype };
        let scalar = |given: &Given| match *given {
            Given::Bool(value) => Some(Scalar::Bool(value)),
            Given::Int(value) => Some(Scalar::Int(value)),
            Given::Float(value) => Some(Scalar::Float(value)),
            Given::Complex(re, im) => Some(Scalar::Complex(Complex64::new(re, im))),
            _ => None,
        };
        Ok(match (self, kind) {
            (Given::None, _) => Value::None,
            (Given::Tensor(tensor), _) => Value::Tensor(tensor.build(own)?),
            (Given::List(items), ArgKind::Tensors | ArgKind::OptionalTensors) => {
                let tensors: Vec<Option<Tensor>> = items
                    .iter()
                    .map(|item| match item {
                        Given::Tensor(tensor) => tensor.build(own).map(Some),
                        _ => Ok(None),
                    })
                    .collect::<opsmith::Result<_>>()?;
                match kind {
                    ArgKind::Tensors => Value::Tensors(tensors.into_iter().flatten().collect()),
                    _ => Value::OptionalTensors(tensors),
                }
            }
            (Given::List(items), ArgKind::Bools(_)) => {
                Value::Bools(items.iter().filter_map(scalar).map(Scalar::to_bool).collect())
            }
            (Given::List(items), ArgKind::Floats) => {
                Value::Floats(items.iter().filter_map(scalar).map(Scalar::to_f64).collect())
            }
            (Given::List(items), _) => {
                Value::Ints(items.iter().filter_map(scalar).map(Scalar::to_i64).collect())
            }
            (Given::Str(text), ArgKind::Device) => Device::from_name(text).map_or(Value::None, Value::Device),
            (Given::Str(text), _) => Value::Str(text.clone()),
            (Given::DType(dtype), _) => Value::DType(*dtype),
            (given, ArgKind::Scalar) => scalar(given).map_or(Value::None, Value::Scalar),
            (given, ArgKind::Float) => {
                scalar(given).map_or(Value::None, |scalar| Value::Float(scalar.to_f64()))
            }
            (Given::Bool(value), _) => Value::Bool(*value),
            (given, _) => scalar(given).map_or(Value::None, |scalar| Value::Int(scalar.to_i64())),
        })
    }
}

impl GivenTensor {
    fn of_sample(tensor: &SampleTensor, seed: usize) -> GivenTensor {
        let values = match tensor.fill {
            Fill::Between(low, high) => Values::Between(low, high),
            Fill::Integers(low, high) => Values::Integers(low, high),
            Fill::Mask => Values::Mask,
            Fill::Numbers(numbers) => {
                Values::Cycle(numbers.iter().map(|number| Complex64::new(*number, 0.0)).collect())
            }
            Fill::Places(places) => Values::Places(places.to_vec()),
        };
        GivenTensor { shape: tensor.shape.to_vec(), values, seed, grid: None }
    }

    fn build(&self, dtype: DType) -> opsmith::Result<Tensor> {
        let small = self.small(dtype)?;
        match &self.grid {
            Some(grid) => opsmith::deep_clone(&opsmith::expand(&small, grid)?),
            None => Ok(small),
        }
    }

    fn small(&self, dtype: DType) -> opsmith::Result<Tensor> {
        let count = self.shape.iter().product::<i64>() as usize;
        let exact = !dtype.is_differentiable();
        let fill = match &self.values {
            Values::Between(..) if dtype == DType::Bool => Fill::Mask,
            Values::Between(low, _) if exact => Fill::Integers(if *low < 0.0 { -9 } else { 1 }, 10),
            Values::Between(low, high) => Fill::Between(*low, *high),
            Values::Integers(low, high) => Fill::Integers(*low, *high),
            Values::Mask => Fill::Mask,
            Values::Cycle(values) => {
                let all: Vec<Complex64> = (0..count).map(|at| values[at % values.len()]).collect();
                return opsmith::to_dtype(&Tensor::from_slice(&all, &self.shape)?, dtype);
            }
            Values::Places(places) | Values::Whole(places) => {
                let all: Vec<i64> = (0..count).map(|at| places[at % places.len()]).collect();
                let tensor = Tensor::from_slice(&all, &self.shape)?;
                return match self.values {
                    Values::Places(_) => Ok(tensor),
                    _ => opsmith::to_dtype(&tensor, dtype),
                };
            }
        };
        // Static, as those of a spec are; tests make few of them.
        let shape: &'static [i64] = Box::leak(self.shape.clone().into_boxed_slice());
        let tensor = SampleTensor { shape, fill }.build(dtype, self.seed)?;
        match self.values {
            Values::Between(..) => opsmith::to_dtype(&tensor, dtype),
            _ => Ok(tensor),
        }
    }
}

impl Values {
    fn to_json(&self) -> (&'static str, Json) {
        match self {
            Values::Between(low, high) => ("between", json!([low, high])),
            Values::Integers(low, high) => ("integers", json!([low, high])),
            Values::Mask => ("mask", json!(true)),
            Values::Cycle(values) => {
                let value = |value: &Complex64| match value.im.to_bits() {
                    0 => number_to_json(value.re),
                    _ => json!([number_to_json(value.re), number_to_json(value.im)]),
                };
                ("cycle", values.iter().map(value).collect())
            }
            Values::Places(places) => ("places", json!(places)),
            Values::Whole(values) => ("whole", json!(values)),
        }
    }

    fn read(json: &Json) -> Option<Values> {
        let pair = |json: &Json| Some((json.get(0)?.clone(), json.get(1)?.clone()));
        if let Some((low, high)) = json.get("between").and_then(pair) {
            return Some(Values::Between(number(&low)?, number(&high)?));
        }
        if let Some((low, high)) = json.get("integers").and_then(pair) {
            return Some(Values::Integers(low.as_i64()?, high.as_i64()?));
        }
        if let Some(values) = json.get("cycle") {
            let value = |json: &Json| {
                Some(match pair(json) {
                    Some((re, im)) => Complex64::new(number(&re)?, number(&im)?),
                    None => Complex64::new(number(json)?, 0.0),
                })
            };
            return values.as_array()?.iter().map(value).collect::<Option<_>>().map(Values::Cycle);
        }
        if let Some(places) = json.get("places") {
            return integers(places).map(Values::Places);
        }
        if let Some(values) = json.get("whole") {
            return integers(values).map(Values::Whole);
        }
        json.get("mask").map(|_| Values::Mask)
    }
}

/// A number as JSON, which has neither NaN nor infinities, and whose readers round.
pub(super) fn number_to_json(value: f64) -> Json {
    // Text preserves every bit.
    if value == value.trunc() && value.abs() < 1e15 && !(value == 0.0 && value.is_sign_negative()) {
        return json!(value as i64);
    }
    json!(format!("{value:?}"))
}

/// Reads [`number_to_json`].
pub(super) fn number(json: &Json) -> Option<f64> {
    match json {
        Json::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

pub(super) fn integers(json: &Json) -> Option<Vec<i64>> {
    json.as_array()?.iter().map(Json::as_i64).collect()
}

/// The arguments of a call in order: those given by name, and defaults for the others.
///
/// # Errors
/// If an argument has neither a value nor a default.
pub fn values(op: &OpDef, given: &[(String, Given)], dtype: DType) -> opsmith::Result<Vec<Value>> {
    let argument = |(index, def): (usize, &opsmith_runtime::op::ArgDef)| {
        let element = op.element_types.get(index).copied().unwrap_or(ElementType::Dispatch);
        match (given.iter().find(|(name, _)| name == def.name), &def.default) {
            (Some((_, given)), _) => given.build(def.ty.kind, element, dtype),
            (None, Some(default)) => Ok(default.as_arg(def.ty).to_value()),
            (None, None) if def.ty.optional => Ok(Value::None),
            (None, None) => Err(opsmith::Error::argument(format!("there is no value for `{}`", def.name))),
        }
    };
    op.schema.args.iter().enumerate().map(argument).collect()
}
