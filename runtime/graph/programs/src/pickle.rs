//! Tensors that `torch.save` pickled, as programs of PyTorch before 2.8 have their weights.
//!
//! In: the archive of such a file. Out: the tensors by name, with the members that hold their elements. A pickle is a program
//! for a stack machine, which may name any function of Python. This reader builds numbers, texts, tuples, dictionaries and
//! descriptions of tensors; nothing is called, and any other name is an error.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use opsmith_core::DType;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::layout::{Dims, Layout, checked_numel};

use crate::archive::Archive;
use crate::errors::{damaged, unsupported};
use crate::lower::TensorLayout;

/// The member with the pickle.
const PICKLE: &str = "data.pkl";
/// Most values on the stack or in the memo: a weight has some twenty.
const VALUES: usize = 1 << 22;

/// The classes of storages with the dtypes of their elements.
const STORAGES: [(&str, DType); 12] = [
    ("ByteStorage", DType::U8),
    ("CharStorage", DType::I8),
    ("ShortStorage", DType::I16),
    ("IntStorage", DType::I32),
    ("LongStorage", DType::I64),
    ("HalfStorage", DType::F16),
    ("BFloat16Storage", DType::BF16),
    ("FloatStorage", DType::F32),
    ("DoubleStorage", DType::F64),
    ("ComplexFloatStorage", DType::C64),
    ("ComplexDoubleStorage", DType::C128),
    ("BoolStorage", DType::Bool),
];

/// A tensor in a pickle.
#[derive(Clone)]
pub(crate) struct Pickled {
    /// The member of the archive with the elements of its storage.
    pub member: String,
    pub layout: TensorLayout,
}

/// The tensors of a dictionary by name, or one tensor under the empty name.
///
/// # Errors
/// If the pickle is damaged, or has other things than such tensors.
pub(crate) fn tensors(archive: &mut Archive) -> Result<BTreeMap<String, Pickled>> {
    if archive.has("byteorder") && archive.text("byteorder")?.trim() != "little" {
        return Err(Error::io("the pickled weights are not little-endian")
            .with_help("save the program on a little-endian machine"));
    }
    let bytes = archive.read(PICKLE)?;
    let mut machine = Machine { rest: &bytes, ..Machine::default() };
    match machine.run()? {
        Value::Tensor(tensor) => Ok(BTreeMap::from([(String::new(), tensor)])),
        Value::Dict(number) => {
            let entries = machine.dicts[number].iter().filter_map(|(name, value)| match value {
                Value::Tensor(tensor) => Some(Ok((name.to_string(), tensor.clone()))),
                // Extra states of modules are no weights.
                Value::None => None,
                other => Some(Err(unsupported(format!("`{name}` of a pickle, which is {}", other.kind())))),
            });
            entries.collect()
        }
        other => Err(unsupported(format!("a pickle of {}", other.kind()))),
    }
}

/// A value of the machine.
#[derive(Clone)]
enum Value {
    None,
    Bool,
    Int(i64),
    Float,
    Text(Rc<str>),
    Tuple(Rc<Tuple>),
    /// By its number in the machine.
    Dict(usize),
    /// A name of a module of Python: `torch._utils._rebuild_tensor_v2`.
    Name(Rc<str>),
    Storage(Rc<Storage>),
    Tensor(Pickled),
}

struct Tuple {
    items: Vec<Value>,
    /// Number of tuples in each other, this one included.
    depth: usize,
}

struct Storage {
    /// `None` for bytes, whose dtype the tensor tells.
    dtype: Option<DType>,
    member: String,
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool => "a truth value",
            Value::Int(_) => "an integer",
            Value::Float => "a float",
            Value::Text(_) => "a text",
            Value::Tuple(_) => "a tuple",
            Value::Dict(_) => "a dictionary",
            Value::Name(_) => "a name",
            Value::Storage(_) => "a storage",
            Value::Tensor(_) => "a tensor",
        }
    }
}

/// Most tuples in each other: a tensor has two.
const DEPTH: usize = 32;

/// A tuple.
///
/// # Errors
/// If it is nested too deeply.
fn tuple(items: Vec<Value>) -> Result<Value> {
    let depth = |item: &Value| if let Value::Tuple(tuple) = item { tuple.depth } else { 0 };
    let depth = 1 + items.iter().map(depth).max().unwrap_or(0);
    if depth > DEPTH {
        return Err(broken("its tuples are nested too deeply"));
    }
    Ok(Value::Tuple(Rc::new(Tuple { items, depth })))
}

/// The stack machine of a pickle.
#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    stack: Vec<Value>,
    /// Lengths of the stack at its marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Value>,
    dicts: Vec<Vec<(Rc<str>, Value)>>,
}

fn broken(problem: &str) -> Error {
    damaged(PICKLE, problem)
}

impl<'a> Machine<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| broken("it ends early"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// An unsigned number of so many bytes.
    fn number(&mut self, bytes: usize) -> Result<u64> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn text(&mut self, bytes: u64) -> Result<Rc<str>> {
        let count = usize::try_from(bytes).map_err(|_| broken("it ends early"))?;
        std::str::from_utf8(self.take(count)?).map(Rc::from).map_err(|_| broken("a text is no UTF-8"))
    }

    /// A text up to the end of its line.
    fn line(&mut self) -> Result<&'a str> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| broken("it ends early"))?;
        let line = self.take(end + 1)?;
        std::str::from_utf8(&line[..end]).map_err(|_| broken("a text is no UTF-8"))
    }

    fn push(&mut self, value: Value) -> Result<()> {
        if self.stack.len() >= VALUES {
            return Err(broken("it has too many values"));
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value> {
        self.stack.pop().ok_or_else(|| broken("its stack is empty"))
    }

    /// The values above the last mark.
    fn marked(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().ok_or_else(|| broken("a mark is missing"))?;
        if mark > self.stack.len() {
            return Err(broken("a mark is missing"));
        }
        Ok(self.stack.split_off(mark))
    }

    /// A tuple of the values on top.
    fn tuple(&mut self, count: usize) -> Result<Value> {
        let first = self.stack.len().checked_sub(count).ok_or_else(|| broken("its stack is empty"))?;
        tuple(self.stack.split_off(first))
    }

    /// A new dictionary.
    fn dict(&mut self) -> Value {
        self.dicts.push(Vec::new());
        Value::Dict(self.dicts.len() - 1)
    }

    fn remember(&mut self, place: u64) -> Result<()> {
        let value = self.stack.last().cloned().ok_or_else(|| broken("its stack is empty"))?;
        let place = u32::try_from(place).map_err(|_| broken("it has too many values"))?;
        if self.memo.len() >= VALUES {
            return Err(broken("it has too many values"));
        }
        self.memo.insert(place, value);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Result<()> {
        let known = u32::try_from(place).ok().and_then(|place| self.memo.get(&place)).cloned();
        self.push(known.ok_or_else(|| broken("it recalls a value that it has not"))?)
    }

    /// Runs to the end, and returns the value on the stack.
    fn run(&mut self) -> Result<Value> {
        loop {
            match self.take(1)?[0] {
                b'.' => return self.pop(),
                // PROTO and FRAME say nothing about values.
                0x80 => drop(self.take(1)?),
                0x95 => drop(self.take(8)?),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                code @ (b's' | b'u') => self.set_items(code)?,
                code @ (b'q' | b'r' | 0x94) => {
                    let next = self.memo.len() as u64;
                    let place =
                        if code == 0x94 { next } else { self.number(if code == b'q' { 1 } else { 4 })? };
                    self.remember(place)?;
                }
                code @ (b'h' | b'j') => {
                    let place = self.number(if code == b'h' { 1 } else { 4 })?;
                    self.recall(place)?;
                }
                // The state that an object is given: dictionaries of hooks and metadata.
                b'b' => drop(self.pop()?),
                code => {
                    let value = self.made(code)?;
                    self.push(value)?;
                }
            }
        }
    }

    /// The value that an instruction makes.
    fn made(&mut self, code: u8) -> Result<Value> {
        match code {
            b'N' => Ok(Value::None),
            0x88 | 0x89 => Ok(Value::Bool),
            b'K' | b'M' | b'J' | 0x8a | b'G' => self.literal(code),
            b'X' | 0x8c | 0x8d => {
                let length = self.number(match code {
                    b'X' => 4,
                    0x8c => 1,
                    _ => 8,
                })?;
                self.text(length).map(Value::Text)
            }
            b')' => tuple(Vec::new()),
            b't' => tuple(self.marked()?),
            0x85..=0x87 => self.tuple(usize::from(code - 0x84)),
            b'}' => Ok(self.dict()),
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                Ok(Value::Name(format!("{module}.{name}").into()))
            }
            0x93 => match (self.pop()?, self.pop()?) {
                (Value::Text(name), Value::Text(module)) => {
                    Ok(Value::Name(format!("{module}.{name}").into()))
                }
                _ => Err(broken("a name is no text")),
            },
            b'Q' => storage(&self.pop()?),
            b'R' => {
                let (args, name) = (self.pop()?, self.pop()?);
                self.reduced(&name, &args)
            }
            code => Err(unsupported(format!("the instruction {code:#04x} of a pickle"))
                .with_help("save the program again with PyTorch 2.8 or newer, which pickles nothing")),
        }
    }

    /// The value that a function of Python would make of some arguments.
    fn reduced(&mut self, function: &Value, args: &Value) -> Result<Value> {
        let (Value::Name(name), Value::Tuple(args)) = (function, args) else {
            return Err(broken("a call has no function and arguments"));
        };
        match (&**name, &args.items[..]) {
            ("collections.OrderedDict", []) => Ok(self.dict()),
            ("torch._utils._rebuild_parameter", [tensor @ Value::Tensor(_), ..]) => Ok(tensor.clone()),
            ("torch._utils._rebuild_tensor_v2", [Value::Storage(storage), offset, sizes, strides, ..]) => {
                let dtype = storage.dtype.ok_or_else(|| broken("a storage has no dtype"))?;
                tensor(storage, dtype, offset, sizes, strides)
            }
            (
                "torch._utils._rebuild_tensor_v3",
                [Value::Storage(storage), offset, sizes, strides, _, _, Value::Name(dtype), ..],
            ) => {
                let found = dtype.strip_prefix("torch.").and_then(DType::from_name);
                let dtype = found.ok_or_else(|| unsupported(format!("the dtype {dtype}")))?;
                tensor(storage, dtype, offset, sizes, strides)
            }
            _ => Err(unsupported(format!("`{name}` in a pickle, which is not called"))
                .with_help("save the program again with PyTorch 2.8 or newer, which pickles nothing")),
        }
    }

    /// A number in the pickle.
    fn literal(&mut self, code: u8) -> Result<Value> {
        Ok(match code {
            b'K' => Value::Int(self.number(1)? as i64),
            b'M' => Value::Int(self.number(2)? as i64),
            b'J' => Value::Int(i64::from(self.number(4)? as u32 as i32)),
            b'G' => {
                self.take(8)?;
                Value::Float
            }
            _ => {
                let width = self.number(1)? as usize;
                if width > 8 {
                    return Err(broken("an integer has more than 64 bits"));
                }
                let unused = 64 - 8 * width as u32;
                let number = self.number(width)? as i64;
                Value::Int(if width == 0 { 0 } else { number << unused >> unused })
            }
        })
    }

    /// Adds an entry, or those above the mark, to the dictionary below.
    fn set_items(&mut self, code: u8) -> Result<()> {
        let items = match code {
            b'u' => self.marked()?,
            _ => {
                let (value, name) = (self.pop()?, self.pop()?);
                vec![name, value]
            }
        };
        let Some(Value::Dict(number)) = self.stack.last() else {
            return Err(broken("entries belong to no dictionary"));
        };
        let entries = &mut self.dicts[*number];
        for pair in items.chunks(2) {
            match pair {
                [Value::Text(name), value] => entries.push((name.clone(), value.clone())),
                _ => return Err(broken("the name of an entry is no text")),
            }
        }
        Ok(())
    }
}

/// A storage, of its description: `("storage", class, key, device, number of elements)`.
fn storage(description: &Value) -> Result<Value> {
    let Value::Tuple(parts) = description else { return Err(broken("a storage has no description")) };
    let [Value::Text(kind), Value::Name(class), Value::Text(key), ..] = &parts.items[..] else {
        return Err(broken("a storage has no description"));
    };
    let name = class.strip_prefix("torch.").or_else(|| class.strip_prefix("torch.storage."));
    let known = STORAGES.iter().find(|(known, _)| Some(*known) == name);
    let dtype = match known {
        Some((_, dtype)) => Some(*dtype),
        None if class.ends_with(".UntypedStorage") => None,
        None => return Err(unsupported(format!("a storage of the class `{class}`"))),
    };
    if &**kind != "storage" {
        return Err(broken("a storage has no description"));
    }
    Ok(Value::Storage(Rc::new(Storage { dtype, member: format!("data/{key}") })))
}

fn tensor(storage: &Storage, dtype: DType, offset: &Value, sizes: &Value, strides: &Value) -> Result<Value> {
    let number = |value: &Value| match value {
        Value::Int(number) if *number >= 0 => Ok(*number),
        _ => Err(broken("a size or stride is no number")),
    };
    let numbers = |value: &Value| match value {
        Value::Tuple(tuple) if tuple.items.len() <= 64 => {
            tuple.items.iter().map(number).collect::<Result<Dims>>()
        }
        _ => Err(broken("sizes are no tuple of at most 64 numbers")),
    };
    let (sizes, strides, offset) = (numbers(sizes)?, numbers(strides)?, number(offset)?);
    checked_numel(&sizes).map_err(|error| broken(error.message()))?;
    if sizes.len() != strides.len() {
        return Err(broken("a tensor has other numbers of sizes and strides"));
    }
    let layout = TensorLayout { dtype, layout: Layout { sizes, strides, offset } };
    Ok(Value::Tensor(Pickled { member: storage.member.clone(), layout }))
}

#[cfg(test)]
mod tests;
