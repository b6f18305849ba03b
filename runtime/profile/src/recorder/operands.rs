//! Operands of calls, each combination kept once a thread.
//!
//! In: arguments and results. Out: a number; the same for the same operator, shapes, strides, dtypes and attributes. A
//! combination that was seen before allocates nothing.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use opsmith_runtime::arg::Arg;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use opsmith_runtime::{Scalar, Text};

use crate::model::{Operands, RecordedArg, TensorShape};

/// The operands that a thread has seen.
#[derive(Default)]
pub(crate) struct Interner {
    numbers: HashMap<Box<[u64]>, u32, BuildHasherDefault<WordHasher>>,
    pub seen: Vec<Operands>,
    /// The words of the operands at hand; kept for its capacity.
    words: Vec<u64>,
}

impl Interner {
    /// The number of a call's operands.
    pub fn of_call(&mut self, args: &[Arg<'_>]) -> u32 {
        self.number(None, args, &[])
    }

    /// The number of a kernel's operands and results, with its operations.
    pub fn of_kernel(&mut self, op: &'static OpDef, args: &[Arg<'_>], outs: &[Tensor]) -> u32 {
        self.number(Some(op), args, outs)
    }

    fn number(&mut self, kernel_of: Option<&'static OpDef>, args: &[Arg<'_>], outs: &[Tensor]) -> u32 {
        let words = &mut self.words;
        words.clear();
        words.push(kernel_of.map_or(0, |op| std::ptr::from_ref(op).addr() as u64));
        args.iter().for_each(|arg| put_arg(words, arg));
        words.push(outs.len() as u64);
        outs.iter().for_each(|out| put_tensor(words, out));
        if let Some(number) = self.numbers.get(&words[..]) {
            return *number;
        }
        let number = self.seen.len() as u32;
        self.seen.push(Operands {
            args: args.iter().map(operand).collect(),
            outs: outs.iter().map(shape_of).collect(),
            flops: kernel_of.and_then(|op| op.flops.of_call(args, outs)),
        });
        self.numbers.insert(words.as_slice().into(), number);
        number
    }
}

fn shape_of(tensor: &Tensor) -> TensorShape {
    let layout = tensor.layout();
    TensorShape {
        dtype: tensor.dtype().name().to_owned(),
        item_bytes: tensor.dtype().size() as u32,
        sizes: layout.sizes.to_vec(),
        strides: layout.strides.to_vec(),
        device: tensor.device().to_string(),
    }
}

fn operand(arg: &Arg<'_>) -> RecordedArg {
    match arg {
        Arg::None => RecordedArg::None,
        Arg::Tensor(tensor) => RecordedArg::Tensor(shape_of(tensor)),
        Arg::Tensors(tensors) => RecordedArg::Tensors(tensors.iter().map(shape_of).collect()),
        Arg::OptionalTensors(tensors) => {
            RecordedArg::OptionalTensors(tensors.iter().map(|tensor| tensor.as_ref().map(shape_of)).collect())
        }
        other => RecordedArg::Attribute { text: text(other), rust: rust(other) },
    }
}

/// An attribute as people write it.
fn text(arg: &Arg<'_>) -> String {
    fn list<T>(items: &[T], item: impl Fn(&T) -> String) -> String {
        format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
    }
    match arg {
        Arg::Bool(value) => value.to_string(),
        Arg::Int(value) => value.to_string(),
        Arg::Float(value) => value.to_string(),
        Arg::Scalar(value) => value.to_string(),
        Arg::Str(value) => format!("{value:?}"),
        Arg::Ints(values) => list(values, i64::to_string),
        Arg::Floats(values) => list(values, f64::to_string),
        Arg::Bools(values) => list(values, bool::to_string),
        Arg::Scalars(values) => list(values, Scalar::to_string),
        Arg::Strs(values) => list(values, |value: &Text| format!("{:?}", &**value)),
        Arg::DType(value) => value.to_string(),
        Arg::Device(value) => value.to_string(),
        Arg::Generator(_) => "a generator".to_owned(),
        other => format!("{other:?}"),
    }
}

/// An attribute as a boxed value in Rust; `None` for one that no text gives.
fn rust(arg: &Arg<'_>) -> Option<String> {
    let float = |value: &f64| match *value {
        value if value.is_nan() => "f64::NAN".to_owned(),
        f64::INFINITY => "f64::INFINITY".to_owned(),
        f64::NEG_INFINITY => "f64::NEG_INFINITY".to_owned(),
        value => format!("{value:?}"),
    };
    let scalar = |value: &Scalar| match value {
        Scalar::Bool(value) => format!("Scalar::Bool({value})"),
        Scalar::Int(value) => format!("Scalar::Int({value})"),
        Scalar::Float(value) => format!("Scalar::Float({})", float(value)),
        Scalar::Complex(value) => {
            format!("Scalar::Complex(Complex64::new({}, {}))", float(&value.re), float(&value.im))
        }
    };
    fn list(items: impl Iterator<Item = String>) -> String {
        format!("vec![{}]", items.collect::<Vec<_>>().join(", "))
    }
    Some(match arg {
        Arg::Bool(value) => format!("Value::Bool({value})"),
        Arg::Int(value) => format!("Value::Int({value})"),
        Arg::Float(value) => format!("Value::Float({})", float(value)),
        Arg::Scalar(value) => format!("Value::Scalar({})", scalar(value)),
        Arg::Str(value) => format!("Value::Str({value:?}.to_owned())"),
        Arg::Ints(values) => format!("Value::Ints({})", list(values.iter().map(i64::to_string))),
        Arg::Floats(values) => format!("Value::Floats({})", list(values.iter().map(float))),
        Arg::Bools(values) => format!("Value::Bools({})", list(values.iter().map(bool::to_string))),
        Arg::Scalars(values) => format!("Value::Scalars({})", list(values.iter().map(scalar))),
        Arg::DType(value) => format!("Value::DType(DType::{value:?})"),
        Arg::Device(value) if *value == opsmith_runtime::Device::CPU => {
            "Value::Device(Device::CPU)".to_owned()
        }
        _ => return None,
    })
}

fn put_tensor(words: &mut Vec<u64>, tensor: &Tensor) {
    let layout = tensor.layout();
    let device = tensor.device();
    words.push(
        (layout.sizes.len() as u64) << 32 | (device.backend.index() as u64) << 16 | tensor.dtype() as u64,
    );
    words.push(device.index as u64);
    words.extend(layout.sizes.iter().chain(layout.strides.iter()).map(|&number| number as u64));
}

fn put_scalar(words: &mut Vec<u64>, scalar: &Scalar) {
    match scalar {
        Scalar::Bool(value) => words.extend([0, u64::from(*value)]),
        Scalar::Int(value) => words.extend([1, *value as u64]),
        Scalar::Float(value) => words.extend([2, value.to_bits()]),
        Scalar::Complex(value) => words.extend([3, value.re.to_bits(), value.im.to_bits()]),
    }
}

fn put_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    words.extend(text.as_bytes().chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    }));
}

/// Appends words that no other argument gives.
fn put_arg(words: &mut Vec<u64>, arg: &Arg<'_>) {
    match arg {
        Arg::None => words.push(0),
        Arg::Tensor(tensor) => {
            words.push(1);
            put_tensor(words, tensor);
        }
        Arg::Tensors(tensors) => {
            words.extend([2, tensors.len() as u64]);
            tensors.iter().for_each(|tensor| put_tensor(words, tensor));
        }
        Arg::OptionalTensors(tensors) => {
            words.extend([3, tensors.len() as u64]);
            for tensor in *tensors {
                words.push(u64::from(tensor.is_some()));
                tensor.iter().for_each(|tensor| put_tensor(words, tensor));
            }
        }
        Arg::Bool(value) => words.extend([4, u64::from(*value)]),
        Arg::Int(value) => words.extend([5, *value as u64]),
        Arg::Float(value) => words.extend([6, value.to_bits()]),
        Arg::Scalar(value) => {
            words.push(7);
            put_scalar(words, value);
        }
        Arg::Str(value) => {
            words.push(8);
            put_text(words, value);
        }
        Arg::Ints(values) => {
            words.extend([9, values.len() as u64]);
            words.extend(values.iter().map(|&value| value as u64));
        }
        Arg::Floats(values) => {
            words.extend([10, values.len() as u64]);
            words.extend(values.iter().map(|value| value.to_bits()));
        }
        Arg::Bools(values) => {
            words.extend([11, values.len() as u64]);
            words.extend(values.iter().map(|&value| u64::from(value)));
        }
        Arg::Scalars(values) => {
            words.extend([12, values.len() as u64]);
            values.iter().for_each(|value| put_scalar(words, value));
        }
        Arg::DType(value) => words.extend([13, *value as u64]),
        // Which generator it is, is no property of the call.
        Arg::Generator(_) => words.push(14),
        other => {
            words.push(15);
            put_text(words, &text(other));
        }
    }
}

/// A hash of words: a multiplication and a rotation each.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
