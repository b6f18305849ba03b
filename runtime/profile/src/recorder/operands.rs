//! Operands of calls, each combination kept once a thread.
//!
//! In: arguments and results. Out: a number; the same for the same operator, shapes, strides, dtypes and attributes. A
//! combination that was seen before allocates nothing, and one that is that of the same place's last call is compared alone.

mod words;

use std::panic::Location;

use opsmith_runtime::arg::Arg;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use opsmith_runtime::{Scalar, Text};

use crate::model::{Operands, RecordedArg, TensorShape};
use words::{Compared, Words, put_arg, put_tensor};

/// The operands that a thread has seen: a hash table whose keys are words, probed without allocating.
pub(crate) struct Interner {
    /// The numbers of combinations where their hashes point, or the next free place after it; [`FREE`] for none. A power of two
    /// of them, of which at most half are taken.
    slots: Vec<u32>,
    /// The hash and the words of each combination.
    keys: Vec<(u64, Box<[u64]>)>,
    /// For each combination of a call, that of the last kernel with its arguments.
    kernels: Vec<u32>,
    /// The numbers of the last combinations of some call sites and kernels, each at the place that [`recent`] gives.
    recent: Box<[u32; RECENT]>,
    pub seen: Vec<Operands>,
    /// The words of the operands at hand; kept for its capacity.
    words: Vec<u64>,
}

/// A slot without a number.
const FREE: u32 = u32::MAX;
/// Places for the last combinations of call sites and kernels; a power of two.
const RECENT: usize = 256;
/// First words of keys that no address of an operator is: of calls, and of copies.
const CALL: u64 = 0;
const COPY: u64 = 2;

/// The place of the last combination of something with this address.
#[inline]
fn recent(address: usize) -> usize {
    ((address as u64).wrapping_mul(ODD[0]) >> (64 - RECENT.trailing_zeros())) as usize
}

impl Default for Interner {
    fn default() -> Interner {
        Interner {
            slots: Vec::new(),
            keys: Vec::new(),
            kernels: Vec::new(),
            recent: Box::new([FREE; RECENT]),
            seen: Vec::new(),
            words: Vec::new(),
        }
    }
}

impl Interner {
    /// The number of a call's operands, by its site.
    pub fn of_call(&mut self, site: &'static Location<'static>, args: &[Arg<'_>]) -> u32 {
        let place = recent(std::ptr::from_ref(site).addr());
        let last = self.recent[place];
        if self.is(last, |words| {
            words.word(CALL);
            args.iter().for_each(|arg| put_arg(words, arg));
        }) {
            return last;
        }
        self.words.clear();
        self.words.push(CALL);
        args.iter().for_each(|arg| put_arg(&mut self.words, arg));
        let number = self.number(None, args, &[]);
        self.recent[place] = number;
        number
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
        // An address is even, so that the first word tells the kind of the key.
        let address = std::ptr::from_ref(op).addr();
        let place = recent(address);
        let last = match call {
            Some(number) => self.kernels[number as usize],
            None => self.recent[place],
        };
        if self.is(last, |words| put_kernel(words, address as u64, args, call, outs)) {
            return last;
        }
        self.words.clear();
        put_kernel(&mut self.words, address as u64, args, call, outs);
        let number = self.number(Some(op), args, outs);
        match call {
            Some(call) => self.kernels[call as usize] = number,
            None => self.recent[place] = number,
        }
        number
    }

    /// The number of a copy's source and target.
    pub fn of_copy(&mut self, source: &Tensor, target: &Tensor) -> u32 {
        self.words.clear();
        self.words.push(COPY);
        [source, target].iter().for_each(|tensor| put_tensor(&mut self.words, tensor));
        self.number(None, &[Arg::Tensor(source)], std::slice::from_ref(target))
    }

    /// Whether a number is that of the words that are put.
    #[inline]
    fn is(&self, number: u32, put: impl FnOnce(&mut Compared<'_>)) -> bool {
        let Some((_, words)) = self.keys.get(number as usize) else { return false };
        let mut compared = Compared::with(words);
        put(&mut compared);
        compared.are_equal()
    }

    /// The number of the words at hand.
    #[cold]
    fn number(&mut self, kernel_of: Option<&'static OpDef>, args: &[Arg<'_>], outs: &[Tensor]) -> u32 {
        let hash = hash(&self.words);
        match self.find(hash) {
            Some(number) => number,
            None => self.add(hash, kernel_of, args, outs),
        }
    }

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
        self.kernels.push(FREE);
        self.place(number);
        number
    }

    /// The number of the words at hand, if they were seen.
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

/// The words of a kernel: of its operator, its arguments or the call that has them, and its results.
#[inline]
fn put_kernel(words: &mut impl Words, address: u64, args: &[Arg<'_>], call: Option<u32>, outs: &[Tensor]) {
    match call {
        Some(number) => {
            words.word(address | 1);
            words.word(u64::from(number));
        }
        None => {
            words.word(address);
            args.iter().for_each(|arg| put_arg(words, arg));
        }
    }
    words.word(outs.len() as u64);
    outs.iter().for_each(|out| put_tensor(words, out));
}

/// Odd numbers without a pattern, by which hashes multiply.
const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// A hash of words: products of pairs, which do not wait for each other, folded to 64 bits.
fn hash(words: &[u64]) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_operands_have_one_number_and_others_another() {
        let mut interner = Interner::default();
        // More than the table has at first, so that it grows.
        let site = Location::caller();
        let number = |interner: &mut Interner, size: i64| {
            interner.of_call(site, &[Arg::Int(size), Arg::Ints(&[1, size]), Arg::Bool(size % 2 == 0)])
        };
        let first: Vec<u32> = (0..1000).map(|size| number(&mut interner, size)).collect();
        assert_eq!(first, (0..1000).collect::<Vec<u32>>());
        let again: Vec<u32> = (0..1000).map(|size| number(&mut interner, size)).collect();
        assert_eq!(again, first);
        assert_eq!(interner.seen.len(), 1000);
        assert_eq!(interner.seen[7].text(), "7, [1, 7], false");
        // The order of words counts, and where a list ends.
        let lists = [[&[1, 2][..], &[3]], [&[1], &[2, 3]], [&[2, 1], &[3]]];
        let numbers = lists.map(|[a, b]| interner.of_call(site, &[Arg::Ints(a), Arg::Ints(b)]));
        assert_eq!(numbers, [1000, 1001, 1002]);
        // As the last of the site: a part of it, and more than it, are others.
        let list = |interner: &mut Interner, list: &[i64]| interner.of_call(site, &[Arg::Ints(list)]);
        let numbers = [&[4, 5][..], &[4], &[4, 5, 6], &[4, 5]].map(|each| list(&mut interner, each));
        assert_eq!(numbers, [1003, 1004, 1005, 1003]);
        assert_eq!(interner.of_call(site, &[Arg::Ints(&[4, 5]), Arg::None]), 1006);
    }
}
