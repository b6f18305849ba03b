//! Operands of calls, each combination kept once a thread.
//!
//! In: arguments and results. Out: a number; the same for the same operator, shapes, strides, dtypes and attributes. A
//! combination that was seen before allocates nothing.

use opsmith_runtime::arg::Arg;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use opsmith_runtime::{Scalar, Text};

use crate::model::{Operands, RecordedArg, TensorShape};

/// The operands that a thread has seen: a hash table whose keys are words, probed without allocating.
#[derive(Default)]
pub(crate) struct Interner {
    /// The numbers of combinations where their hashes point, or the next free place after it; [`FREE`] for none. A power of two
    /// of them, of which at most half are taken.
    slots: Vec<u32>,
    /// The hash and the words of each combination.
    keys: Vec<(u64, Box<[u64]>)>,
    pub seen: Vec<Operands>,
    /// The words of the operands at hand; kept for its capacity.
    words: Vec<u64>,
}

/// A slot without a number.
const FREE: u32 = u32::MAX;

impl Interner {
    /// The number of a call's operands.
    pub fn of_call(&mut self, args: &[Arg<'_>]) -> u32 {
        self.words.clear();
        self.words.push(0);
        args.iter().for_each(|arg| put_arg(&mut self.words, arg));
        self.number(None, args, &[])
    }

    /// The number of a kernel's operands and results, with its operations; `call` is the number of a call with the same
    /// arguments, if there is one.
    pub fn of_kernel(
        &mut self,
        op: &'static OpDef,
        args: &[Arg<'_>],
        call: Option<u32>,
        outs: &[Tensor],
    ) -> u32 {
        self.words.clear();
        // An address is even, so that the first word tells the kind of the key.
        let address = std::ptr::from_ref(op).addr() as u64;
        match call {
            Some(number) => self.words.extend([address | 1, u64::from(number)]),
            None => {
                self.words.push(address);
                args.iter().for_each(|arg| put_arg(&mut self.words, arg));
            }
        }
        self.words.push(outs.len() as u64);
        outs.iter().for_each(|out| put_tensor(&mut self.words, out));
        self.number(Some(op), args, outs)
    }

    /// The number of the words at hand.
    #[inline]
    fn number(&mut self, kernel_of: Option<&'static OpDef>, args: &[Arg<'_>], outs: &[Tensor]) -> u32 {
        let hash = hash(&self.words);
        match self.find(hash) {
            Some(number) => number,
            None => self.add(hash, kernel_of, args, outs),
        }
    }

    #[cold]
    fn add(
        &mut self,
        hash: u64,
        kernel_of: Option<&'static OpDef>,
        args: &[Arg<'_>],
        outs: &[Tensor],
    ) -> u32 {
        let number = self.seen.len() as u32;
        self.seen.push(Operands {
            args: args.iter().map(operand).collect(),
            outs: outs.iter().map(shape_of).collect(),
            flops: kernel_of.and_then(|op| op.flops.of_call(args, outs)),
        });
        self.keys.push((hash, self.words.as_slice().into()));
        self.place(number);
        number
    }

    /// The number of the words at hand, if they were seen.
    #[inline]
    fn find(&self, hash: u64) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let number = self.slots[slot];
            if number == FREE {
                return None;
            }
            let (known, words) = &self.keys[number as usize];
            if *known == hash && **words == *self.words {
                return Some(number);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Puts a new number into the table, which grows if half of it is taken.
    fn place(&mut self, number: u32) {
        if 2 * self.keys.len() > self.slots.len() {
            self.slots.clear();
            self.slots.resize((4 * self.keys.len()).next_power_of_two().max(64), FREE);
            (0..number).for_each(|number| self.put(number));
        }
        self.put(number);
    }

    fn put(&mut self, number: u32) {
        let mask = self.slots.len() - 1;
        let mut slot = self.keys[number as usize].0 as usize & mask;
        while self.slots[slot] != FREE {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = number;
    }
}

/// A hash of words: products of pairs, which do not wait for each other, folded to 64 bits.
#[inline]
fn hash(words: &[u64]) -> u64 {
    const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let folded = |a: u64, b: u64| {
        let product = u128::from(a ^ ODD[0]) * u128::from(b ^ ODD[1]);
        product as u64 ^ (product >> 64) as u64
    };
    let (pairs, rest) = words.as_chunks::<2>();
    let hash = pairs.iter().fold(words.len() as u64, |hash, [a, b]| hash.rotate_left(23) ^ folded(*a, *b));
    let hash = rest.iter().fold(hash, |hash, last| hash.rotate_left(23) ^ folded(*last, 0));
    folded(hash, 0)
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
    words.extend(layout.sizes.iter().map(|&size| size as u64));
    words.extend(layout.strides.iter().map(|&stride| stride as u64));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_operands_have_one_number_and_others_another() {
        let mut interner = Interner::default();
        // More than the table has at first, so that it grows.
        let number = |interner: &mut Interner, size: i64| {
            interner.of_call(&[Arg::Int(size), Arg::Ints(&[1, size]), Arg::Bool(size % 2 == 0)])
        };
        let first: Vec<u32> = (0..1000).map(|size| number(&mut interner, size)).collect();
        assert_eq!(first, (0..1000).collect::<Vec<u32>>());
        let again: Vec<u32> = (0..1000).map(|size| number(&mut interner, size)).collect();
        assert_eq!(again, first);
        assert_eq!(interner.seen.len(), 1000);
        assert_eq!(interner.seen[7].text(), "7, [1, 7], false");
        // The order of words counts, and where a list ends.
        let lists = [[&[1, 2][..], &[3]], [&[1], &[2, 3]], [&[2, 1], &[3]]];
        let numbers = lists.map(|[a, b]| interner.of_call(&[Arg::Ints(a), Arg::Ints(b)]));
        assert_eq!(numbers, [1000, 1001, 1002]);
    }
}
