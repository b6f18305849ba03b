//! Samples as arguments of a call.
//!
//! In: samples of a definition, and a dtype. Out: values in signature order. The numbers are fixed, so that a failure
//! is reproducible; they are distinct and not round, since functions have kinks at round numbers.

use opsmith_core::DType;

use crate::Complex64;
use crate::arg::Value;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::lists::{ListItem, Lists, Text};
use crate::op::{ArgDef, ArgKind, ElementType, ItemKind, OpDef};
use crate::sample::{Fill, Sample, SampleTensor, SampleValue};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

impl Sample {
    /// Every argument of the call, in order. Tensors of numbers get the given dtype.
    ///
    /// # Errors
    /// If an argument has neither a value nor a default, or the dtype cannot hold the numbers: a sample with a complex
    /// attribute requires a complex dtype.
    pub fn values(&self, op: &OpDef, dtype: DType) -> Result<Vec<Value>> {
        if !dtype.is_complex() && self.args.iter().any(|(_, value)| value.is_complex()) {
            return Err(Error::dtype(format!(
                "the sample has a complex number, which `{dtype}` cannot hold"
            )));
        }
        let argument = |(index, def): (usize, &ArgDef)| match (
            self.args.iter().find(|(given, _)| *given == def.name),
            &def.default,
        ) {
            (Some((_, value)), _) => {
                let dtype = match op.element_types.get(index) {
                    Some(ElementType::Real) => dtype.to_real(),
                    Some(ElementType::Opmath) => dtype.to_compute(),
                    Some(ElementType::Fixed { kernel, accepted }) if !accepted.contains(dtype) => *kernel,
                    _ => dtype,
                };
                value.build(def.ty.kind, dtype, index)
            }
            (None, Some(default)) => Ok(default.as_arg(def.ty).to_value()),
            (None, None) if def.ty.optional => Ok(Value::None),
            (None, None) => Err(Error::argument(format!("the sample has no value for `{}`", def.name))),
        };
        op.schema.args.iter().enumerate().map(argument).collect()
    }
}

impl SampleValue {
    fn is_complex(&self) -> bool {
        match self {
            SampleValue::Complex(..) => true,
            SampleValue::List(items) => items.iter().any(SampleValue::is_complex),
            _ => false,
        }
    }

    fn truth(&self) -> Option<bool> {
        if let SampleValue::Bool(value) = self { Some(*value) } else { None }
    }

    fn int(&self) -> Option<i64> {
        if let SampleValue::Int(value) = self { Some(*value) } else { None }
    }

    fn scalar(&self) -> Option<Scalar> {
        Some(match *self {
            SampleValue::Bool(value) => value.into(),
            SampleValue::Int(value) => value.into(),
            SampleValue::Float(value) => value.into(),
            SampleValue::Complex(re, im) => Complex64::new(re, im).into(),
            _ => return None,
        })
    }

    fn text(&self) -> Option<Text> {
        if let SampleValue::Str(text) = self { Some(Text::Borrowed(text)) } else { None }
    }

    fn dtype(&self) -> Option<DType> {
        if let SampleValue::DType(dtype) = self { Some(*dtype) } else { None }
    }

    fn build(&self, kind: ArgKind, dtype: DType, seed: usize) -> Result<Value> {
        Ok(match *self {
            SampleValue::None => Value::None,
            SampleValue::Bool(value) => match kind {
                ArgKind::Scalar => Value::Scalar(value.into()),
                _ => Value::Bool(value),
            },
            SampleValue::Int(value) => match kind {
                ArgKind::Scalar => Value::Scalar(value.into()),
                ArgKind::Float => Value::Float(value as f64),
                _ => Value::Int(value),
            },
            SampleValue::Float(value) => match kind {
                ArgKind::Scalar => Value::Scalar(value.into()),
                _ => Value::Float(value),
            },
            SampleValue::Complex(re, im) => Value::Scalar(Complex64::new(re, im).into()),
            SampleValue::Str(value) => match (kind, Device::from_name(value)) {
                (ArgKind::Device, Some(device)) => Value::Device(device),
                _ => Value::Str(value.to_owned()),
            },
            SampleValue::DType(value) => Value::DType(value),
            SampleValue::List(items) => list(kind, items),
            SampleValue::Tensor(tensor) => Value::Tensor(tensor.build(dtype, seed)?),
            SampleValue::Tensors(items) => {
                let tensors = items
                    .iter()
                    .enumerate()
                    .map(|(item, tensor)| {
                        tensor.map(|tensor| tensor.build(dtype, seed + 7 * (item + 1))).transpose()
                    })
                    .collect::<Result<Vec<_>>>()?;
                match kind {
                    ArgKind::Tensors => Value::Tensors(tensors.into_iter().flatten().collect()),
                    _ => Value::OptionalTensors(tensors),
                }
            }
        })
    }
}

/// A list of an argument's kind. The generator has checked the kinds of its items.
fn list(kind: ArgKind, items: &[SampleValue]) -> Value {
    fn rows<T: ListItem>(items: &[SampleValue], item: fn(&SampleValue) -> Option<T>) -> Value {
        let rows = items.iter().map(|row| match row {
            SampleValue::List(items) => items.iter().filter_map(item).collect(),
            _ => Vec::new(),
        });
        Value::from(Lists::<T>::from_iter(rows))
    }
    let float = |item: &SampleValue| item.scalar().map(Scalar::to_f64);
    match kind {
        ArgKind::Bools(_) => Value::Bools(items.iter().filter_map(SampleValue::truth).collect()),
        ArgKind::Ints(_) => Value::Ints(items.iter().filter_map(SampleValue::int).collect()),
        ArgKind::Floats => Value::Floats(items.iter().filter_map(float).collect()),
        ArgKind::Strs => Value::Strs(items.iter().filter_map(SampleValue::text).collect()),
        ArgKind::DTypes => Value::DTypes(items.iter().filter_map(SampleValue::dtype).collect()),
        ArgKind::Scalars => Value::Scalars(items.iter().filter_map(SampleValue::scalar).collect()),
        ArgKind::Lists(ItemKind::Bool) => rows(items, SampleValue::truth),
        ArgKind::Lists(ItemKind::Int) => rows(items, SampleValue::int),
        ArgKind::Lists(ItemKind::Float) => rows(items, float),
        ArgKind::Lists(ItemKind::Scalar) => rows(items, SampleValue::scalar),
        ArgKind::Lists(ItemKind::Str) => rows(items, SampleValue::text),
        ArgKind::Lists(ItemKind::DType) => rows(items, SampleValue::dtype),
        _ => Value::None,
    }
}

impl SampleTensor {
    /// The tensor; different seeds give different numbers.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn build(&self, dtype: DType, seed: usize) -> Result<Tensor> {
        let count = self.shape.iter().product::<i64>() as usize;
        match self.fill {
            Fill::Between(low, high) => {
                numbers(&between(low, high, count, seed), low, high, self.shape, dtype)
            }
            Fill::Numbers(values) => Tensor::from_slice(values, self.shape)?.cast_untracked(dtype),
            Fill::Places(values) => Tensor::from_slice(values, self.shape),
            Fill::Integers(low, high) => {
                let span = (high - low) as usize;
                let place = |index: usize| low + ((index * 7 + seed * 3 + index / span) % span) as i64;
                Tensor::from_slice(&(0..count).map(place).collect::<Vec<i64>>(), self.shape)
            }
            Fill::Mask => {
                let value = |index: usize| !(index * 5 + seed).is_multiple_of(3);
                Tensor::from_slice(&(0..count).map(value).collect::<Vec<bool>>(), self.shape)
            }
        }
    }
}

/// Numbers in a dtype; complex ones get an imaginary part from the same range.
fn numbers(real: &[f64], low: f64, high: f64, shape: &[i64], dtype: DType) -> Result<Tensor> {
    if !dtype.is_complex() {
        return Tensor::from_slice(real, shape)?.cast_untracked(dtype);
    }
    let imaginary = between(low.min(-high / 2.0), high, real.len(), real.len() + 17);
    let values: Vec<Complex64> = real.iter().zip(imaginary).map(|(re, im)| Complex64::new(*re, im)).collect();
    Tensor::from_slice(&values, shape)?.cast_untracked(dtype)
}

/// Evenly spaced numbers in a shuffled order: no two are close, so that a small step changes neither their order nor
/// the side of a kink.
fn between(low: f64, high: f64, count: usize, seed: usize) -> Vec<f64> {
    // A step without a common factor with the count visits every position once.
    let mut step = (count as f64 * 0.618) as usize + 1;
    while gcd(step, count.max(1)) != 1 {
        step += 1;
    }
    // Different tensors of one call must not have equal numbers, nor round ones.
    let shift = 0.137 + 0.611 * ((seed as f64 * 0.754_877_666) % 1.0);
    let place = |index: usize| ((index * step + seed * 5) % count.max(1)) as f64 + shift;
    (0..count).map(|index| low + (high - low) * place(index) / count as f64).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
