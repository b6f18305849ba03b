//! Operands as words: equal ones, and no others, give equal words.
//!
//! In: arguments and tensors. Out: words, into a list or compared with a known list.

use opsmith_runtime::Scalar;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::tensor::Tensor;

use super::text;

/// Receives words in order.
pub(super) trait Words {
    fn word(&mut self, word: u64);
    fn numbers(&mut self, numbers: &[i64]);
}

impl Words for Vec<u64> {
    fn word(&mut self, word: u64) {
        self.push(word);
    }

    fn numbers(&mut self, numbers: &[i64]) {
        self.extend(numbers.iter().map(|&number| number as u64));
    }
}

/// The comparison of words with known ones.
pub(super) struct Compared<'a> {
    rest: &'a [u64],
    equal: bool,
}

impl<'a> Compared<'a> {
    #[inline(always)]
    pub fn with(known: &'a [u64]) -> Compared<'a> {
        Compared { rest: known, equal: true }
    }

    /// Whether all words were the known ones, and no more are known.
    #[inline(always)]
    pub fn are_equal(&self) -> bool {
        self.equal && self.rest.is_empty()
    }
}

impl Words for Compared<'_> {
    #[inline(always)]
    fn word(&mut self, word: u64) {
        match self.rest {
            [known, rest @ ..] => {
                self.equal &= *known == word;
                self.rest = rest;
            }
            [] => self.equal = false,
        }
    }

    #[inline(always)]
    fn numbers(&mut self, numbers: &[i64]) {
        match self.rest.split_at_checked(numbers.len()) {
            Some((known, rest)) => {
                self.equal &= std::iter::zip(known, numbers).all(|(known, number)| *known == *number as u64);
                self.rest = rest;
            }
            None => self.equal = false,
        }
    }
}

/// The last four bits of a tensor's first word; other arguments begin with another number below 16.
const TENSOR: u64 = 1;

#[inline]
pub(super) fn put_tensor(words: &mut impl Words, tensor: &Tensor) {
    let layout = tensor.layout();
    let device = tensor.device();
    let kind = TENSOR | (tensor.dtype() as u64) << 4 | (device.backend.index() as u64) << 12;
    // The number of dimensions says where the next argument begins.
    words.word(kind | u64::from(device.index) << 16 | (layout.sizes.len() as u64) << 32);
    words.numbers(&layout.sizes);
    words.numbers(&layout.strides);
}

#[inline]
fn put_scalar(words: &mut impl Words, scalar: &Scalar) {
    match scalar {
        Scalar::Bool(value) => put_pair(words, 0, u64::from(*value)),
        Scalar::Int(value) => put_pair(words, 1, *value as u64),
        Scalar::Float(value) => put_pair(words, 2, value.to_bits()),
        Scalar::Complex(value) => {
            put_pair(words, 3, value.re.to_bits());
            words.word(value.im.to_bits());
        }
    }
}

fn put_text(words: &mut impl Words, text: &str) {
    words.word(text.len() as u64);
    for chunk in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        words.word(u64::from_le_bytes(bytes));
    }
}

/// Puts words that no other argument gives.
#[inline]
pub(super) fn put_arg(words: &mut impl Words, arg: &Arg<'_>) {
    match arg {
        Arg::None => words.word(0),
        Arg::Tensor(tensor) => put_tensor(words, tensor),
        Arg::Bool(value) => put_pair(words, 4, u64::from(*value)),
        Arg::Int(value) => put_pair(words, 5, *value as u64),
        Arg::Float(value) => put_pair(words, 6, value.to_bits()),
        Arg::Scalar(value) => {
            words.word(7);
            put_scalar(words, value);
        }
        Arg::Ints(values) => {
            put_pair(words, 9, values.len() as u64);
            words.numbers(values);
        }
        Arg::DType(value) => put_pair(words, 13, *value as u64),
        other => put_rare(words, other),
    }
}

#[inline(always)]
fn put_pair(words: &mut impl Words, kind: u64, value: u64) {
    words.word(kind);
    words.word(value);
}

/// [`put_arg`] for kinds of arguments that few operators have.
#[cold]
fn put_rare(words: &mut impl Words, arg: &Arg<'_>) {
    match arg {
        Arg::Tensors(tensors) => {
            put_pair(words, 2, tensors.len() as u64);
            tensors.iter().for_each(|tensor| put_tensor(words, tensor));
        }
        Arg::OptionalTensors(tensors) => {
            put_pair(words, 3, tensors.len() as u64);
            for tensor in *tensors {
                words.word(u64::from(tensor.is_some()));
                tensor.iter().for_each(|tensor| put_tensor(words, tensor));
            }
        }
        Arg::Str(value) => {
            words.word(8);
            put_text(words, value);
        }
        Arg::Floats(values) => {
            put_pair(words, 10, values.len() as u64);
            values.iter().for_each(|value| words.word(value.to_bits()));
        }
        Arg::Bools(values) => {
            put_pair(words, 11, values.len() as u64);
            values.iter().for_each(|&value| words.word(u64::from(value)));
        }
        Arg::Scalars(values) => {
            put_pair(words, 12, values.len() as u64);
            values.iter().for_each(|value| put_scalar(words, value));
        }
        // Which generator it is, is no property of the call.
        Arg::Generator(_) => words.word(14),
        other => {
            words.word(15);
            put_text(words, &text(other));
        }
    }
}
