//! Arguments by kind: any value of it, a mutation of one, or a value of another kind.

use opsmith::{DType, Device, Generator, MemoryFormat, Scalar, Tensor, Value};

use opsmith_runtime::lists::Lists;
use opsmith_runtime::op::{ArgDef, ArgKind, ItemKind};
use opsmith_runtime::{Complex64, Text};

use super::{Random, tensors};

const SMALL: [i64; 12] = [0, 0, 1, 1, 1, 2, 2, 3, -1, -2, 5, 8];
/// Large numbers. None of them, nor a product of two, is a size that takes long and is permitted: the dispatcher refuses
/// 2^32 elements of an expanded tensor, and a few times 10^8 take seconds without optimisation.
const LARGE: [i64; 16] = [
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
    1 << 40,
    -(1 << 40),
    1 << 32,
    (1 << 32) + 1,
    1 << 62,
    -(1 << 62),
    1_000_000_000_000_000_000,
    100,
    1000,
    65_536,
    -100,
    i32::MIN as i64,
];
const FLOATS: [f64; 14] = [
    0.0,
    1.0,
    -1.0,
    0.5,
    0.1,
    2.0,
    -0.5,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e308,
    -1e308,
    1e-310,
    1e19,
];
/// Bytes of a long text.
const LONG: usize = 70_000;
const TEXTS: [&str; 16] = [
    "",
    "none",
    "mean",
    "sum",
    "max",
    "tanh",
    "floor",
    "trunc",
    "bilinear",
    "reflect",
    "constant",
    "ij",
    "xy",
    "left",
    "\u{202e}\0x",
    "ö",
];

/// Any integer, more often a small one.
fn int(random: &mut Random) -> i64 {
    if random.once_in(3) { random.one_of(&LARGE) } else { random.one_of(&SMALL) }
}

fn scalar(random: &mut Random) -> Scalar {
    match random.below(4) {
        0 => Scalar::Bool(random.once_in(2)),
        1 => Scalar::Int(int(random)),
        2 => Scalar::Float(random.one_of(&FLOATS)),
        _ => Scalar::Complex(Complex64::new(random.one_of(&FLOATS), random.one_of(&FLOATS))),
    }
}

fn text(random: &mut Random) -> String {
    if random.once_in(20) {
        let texts = long_texts();
        texts[random.below(texts.len())].clone()
    } else {
        random.one_of(&TEXTS).to_owned()
    }
}

/// Texts whose every part or pair of parts nothing may go through again and again.
pub fn long_texts() -> Vec<String> {
    ["x", "ij,", "...", "a->", "é"].iter().map(|unit| unit.repeat(LONG / unit.len())).collect()
}

/// A list of few items, occasionally of many.
fn list<T>(random: &mut Random, item: impl Fn(&mut Random) -> T) -> Vec<T> {
    let length = random.one_of(&[0usize, 1, 1, 2, 2, 3, 4, 5, 6, 9]);
    let length = if random.once_in(40) { 5000 } else { length };
    (0..length).map(|_| item(random)).collect()
}

/// Any value of an argument's kind, or occasionally of another.
pub fn any(random: &mut Random, def: &ArgDef, others: &[Tensor]) -> Value {
    if def.ty.optional && random.once_in(3) {
        return Value::None;
    }
    if random.once_in(60) {
        let kinds = [ArgKind::Tensor, ArgKind::Ints(None), ArgKind::Str, ArgKind::Scalar, ArgKind::Tensors];
        let kind = random.one_of(&kinds);
        return of_kind(random, kind, others);
    }
    of_kind(random, def.ty.kind, others)
}

fn tensor(random: &mut Random, others: &[Tensor]) -> Tensor {
    if !others.is_empty() && random.once_in(5) {
        return tensors::shared(random, others);
    }
    // Operands of one shape and dtype pass more checks.
    if !others.is_empty() && random.once_in(3) {
        let like = &others[random.below(others.len())];
        return tensors::laid_out(random, like.dtype(), like.shape());
    }
    tensors::tensor(random)
}

fn of_kind(random: &mut Random, kind: ArgKind, others: &[Tensor]) -> Value {
    match kind {
        ArgKind::Tensor => Value::Tensor(tensor(random, others)),
        ArgKind::Tensors => {
            let length = random.below(4);
            Value::Tensors((0..length).map(|_| tensor(random, others)).collect())
        }
        ArgKind::OptionalTensors => {
            let length = random.below(4);
            let item = |_| (!random.once_in(3)).then(|| tensor(random, others));
            Value::OptionalTensors((0..length).map(item).collect())
        }
        ArgKind::Bool => Value::Bool(random.once_in(2)),
        ArgKind::Int => Value::Int(int(random)),
        ArgKind::Float => Value::Float(random.one_of(&FLOATS)),
        ArgKind::Scalar => Value::Scalar(scalar(random)),
        ArgKind::Str => Value::Str(text(random)),
        ArgKind::Ints(_) => Value::Ints(list(random, int)),
        ArgKind::Floats => Value::Floats(list(random, |random| random.one_of(&FLOATS))),
        ArgKind::Bools(_) => Value::Bools(list(random, |random| random.once_in(2))),
        ArgKind::Scalars => Value::Scalars(list(random, scalar)),
        ArgKind::Strs => Value::Strs(list(random, |random| Text::Owned(text(random)))),
        ArgKind::DTypes => Value::DTypes(list(random, |random| random.one_of(&DType::ALL))),
        ArgKind::Lists(kind) => lists(random, kind),
        ArgKind::DType => Value::DType(random.one_of(&DType::ALL)),
        ArgKind::Device => Value::Device(Device::CPU),
        ArgKind::MemoryFormat => Value::MemoryFormat(random.one_of(&[
            MemoryFormat::Contiguous,
            MemoryFormat::Preserve,
            MemoryFormat::ChannelsLast,
            MemoryFormat::ChannelsLast3d,
        ])),
        ArgKind::MemoryLayout => Value::MemoryLayout(opsmith_runtime::MemoryLayout::Strided),
        ArgKind::Generator => Value::Generator(Generator::new(random.draw())),
    }
}

fn lists(random: &mut Random, kind: ItemKind) -> Value {
    fn rows<T>(random: &mut Random, item: fn(&mut Random) -> T) -> Vec<Vec<T>> {
        let length = random.below(4);
        (0..length).map(|_| list(random, item)).collect()
    }
    match kind {
        ItemKind::Bool => Value::from(Lists::<bool>::from(rows(random, |random| random.once_in(2)))),
        ItemKind::Int => Value::from(Lists::<i64>::from(rows(random, int))),
        ItemKind::Float => Value::from(Lists::<f64>::from(rows(random, |random| random.one_of(&FLOATS)))),
        ItemKind::Scalar => Value::from(Lists::<Scalar>::from(rows(random, scalar))),
        ItemKind::Str => Value::from(Lists::<Text>::from_iter(
            rows(random, text).into_iter().map(|row| row.into_iter().map(Text::Owned)),
        )),
        ItemKind::DType => {
            Value::from(Lists::<DType>::from(rows(random, |random| random.one_of(&DType::ALL))))
        }
    }
}

/// A mutation of an accepted value.
pub fn mutated(random: &mut Random, def: &ArgDef, value: &Value, others: &[Tensor]) -> Value {
    if random.once_in(8) {
        return any(random, def, others);
    }
    match value {
        Value::Tensor(tensor) => Value::Tensor(tensors::mutated(random, tensor, others)),
        Value::Tensors(list) => Value::Tensors(changed(random, list, |random, item| match item {
            Some(item) => tensors::mutated(random, item, others),
            None => tensors::tensor(random),
        })),
        Value::OptionalTensors(list) => {
            Value::OptionalTensors(changed(random, list, |random, item| match item {
                Some(Some(item)) => (!random.once_in(4)).then(|| tensors::mutated(random, item, others)),
                _ => Some(tensors::tensor(random)),
            }))
        }
        Value::Ints(list) => Value::Ints(changed(random, list, |random, _| int(random))),
        Value::Floats(list) => Value::Floats(changed(random, list, |random, _| random.one_of(&FLOATS))),
        Value::Bools(list) => Value::Bools(changed(random, list, |random, _| random.once_in(2))),
        Value::Scalars(list) => Value::Scalars(changed(random, list, |random, _| scalar(random))),
        _ => any(random, def, others),
    }
}

/// A list with an item added, removed or replaced.
fn changed<T: Clone>(
    random: &mut Random,
    items: &[T],
    item: impl Fn(&mut Random, Option<&T>) -> T,
) -> Vec<T> {
    let mut items = items.to_vec();
    match random.below(6) {
        0 => items.insert(random.below(items.len() + 1), item(random, None)),
        1 if !items.is_empty() => {
            items.remove(random.below(items.len()));
        }
        2 => items.clear(),
        3 if !items.is_empty() && random.once_in(4) => {
            let last = items[items.len() - 1].clone();
            items.resize(4000, last);
        }
        _ if !items.is_empty() => {
            let at = random.below(items.len());
            items[at] = item(random, Some(&items[at]));
        }
        _ => items.push(item(random, None)),
    }
    items
}
