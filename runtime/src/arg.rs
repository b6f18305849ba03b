//! Arguments of a call: borrowed ([`Arg`]) on the way in, owned ([`Value`]) at the boxed boundary.

mod from_lists;
mod from_value;
mod operands;
mod tensor_or_scalar;

use std::fmt;

pub use opsmith_core::MemoryFormat;
use opsmith_core::{ArgKind, DType};

pub use self::{from_value::FromValue, operands::describe_operands, tensor_or_scalar::TensorOrScalar};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::lists::{AnyLists, ListItem, Lists, OwnedLists, Text};
use crate::random::Generator;
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// Storage format of a tensor's elements. Only strided tensors exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MemoryLayout {
    /// Sizes and strides over one storage.
    #[default]
    Strided,
}

/// One argument of an operator, borrowed from the caller.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// An optional argument that is absent.
    None,
    /// A tensor.
    Tensor(&'a Tensor),
    /// A list of tensors.
    Tensors(&'a [Tensor]),
    /// A list of tensors of which some may be absent.
    OptionalTensors(&'a [Option<Tensor>]),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A number of any kind.
    Scalar(Scalar),
    /// A text.
    Str(&'a str),
    /// A list of integers.
    Ints(&'a [i64]),
    /// A list of floating-point numbers.
    Floats(&'a [f64]),
    /// A list of truth values.
    Bools(&'a [bool]),
    /// A list of numbers of any kind.
    Scalars(&'a [Scalar]),
    /// A list of texts.
    Strs(&'a [Text]),
    /// A list of element types.
    DTypes(&'a [DType]),
    /// A list of lists.
    Lists(AnyLists<'a>),
    /// An element type.
    DType(DType),
    /// A device.
    Device(Device),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A storage layout.
    MemoryLayout(MemoryLayout),
    /// A random generator.
    Generator(&'a Generator),
}

/// One argument or result of a boxed call, owned.
#[derive(Clone, Debug)]
pub enum Value {
    /// An optional value that is absent.
    None,
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors.
    Tensors(Vec<Tensor>),
    /// A list of tensors of which some may be absent.
    OptionalTensors(Vec<Option<Tensor>>),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A number of any kind.
    Scalar(Scalar),
    /// A text.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floating-point numbers.
    Floats(Vec<f64>),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// A list of numbers of any kind.
    Scalars(Vec<Scalar>),
    /// A list of texts.
    Strs(Vec<Text>),
    /// A list of element types.
    DTypes(Vec<DType>),
    /// A list of lists.
    Lists(Box<OwnedLists>),
    /// An element type.
    DType(DType),
    /// A device.
    Device(Device),
    /// A memory format.
    MemoryFormat(MemoryFormat),
    /// A storage layout.
    MemoryLayout(MemoryLayout),
    /// A random generator.
    Generator(Generator),
}

impl Value {
    /// The same value, borrowed.
    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Value::None => Arg::None,
            Value::Tensor(value) => Arg::Tensor(value),
            Value::Tensors(value) => Arg::Tensors(value),
            Value::OptionalTensors(value) => Arg::OptionalTensors(value),
            Value::Bool(value) => Arg::Bool(*value),
            Value::Int(value) => Arg::Int(*value),
            Value::Float(value) => Arg::Float(*value),
            Value::Scalar(value) => Arg::Scalar(*value),
            Value::Str(value) => Arg::Str(value),
            Value::Ints(value) => Arg::Ints(value),
            Value::Floats(value) => Arg::Floats(value),
            Value::Bools(value) => Arg::Bools(value),
            Value::Scalars(value) => Arg::Scalars(value),
            Value::Strs(value) => Arg::Strs(value),
            Value::DTypes(value) => Arg::DTypes(value),
            Value::Lists(value) => Arg::Lists(value.borrow()),
            Value::DType(value) => Arg::DType(*value),
            Value::Device(value) => Arg::Device(*value),
            Value::MemoryFormat(value) => Arg::MemoryFormat(*value),
            Value::MemoryLayout(value) => Arg::MemoryLayout(*value),
            Value::Generator(value) => Arg::Generator(value),
        }
    }

    /// The argument, if it borrows nothing.
    pub(crate) fn to_plain_arg(&self) -> Option<Arg<'static>> {
        Some(match self {
            Value::None => Arg::None,
            Value::Bool(value) => Arg::Bool(*value),
            Value::Int(value) => Arg::Int(*value),
            Value::Float(value) => Arg::Float(*value),
            Value::Scalar(value) => Arg::Scalar(*value),
            Value::DType(value) => Arg::DType(*value),
            Value::Device(value) => Arg::Device(*value),
            Value::MemoryFormat(value) => Arg::MemoryFormat(*value),
            Value::MemoryLayout(value) => Arg::MemoryLayout(*value),
            _ => return None,
        })
    }

    /// The tensor inside, or an error that names the actual kind.
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Error::argument(format!("expected a tensor, got {}", other.as_arg().kind()))),
        }
    }

    /// Whether two values are the same, bit for bit: floats that are equal to none, too. Generators are if they are one, or
    /// start in one state. No tensor is the same as another.
    pub fn same_bits(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Scalar(a), Value::Scalar(b)) => a.same_bits(*b),
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Ints(a), Value::Ints(b)) => a == b,
            (Value::Floats(a), Value::Floats(b)) => {
                a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
            }
            (Value::Bools(a), Value::Bools(b)) => a == b,
            (Value::Scalars(a), Value::Scalars(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_bits(*b))
            }
            (Value::Strs(a), Value::Strs(b)) => a == b,
            (Value::DTypes(a), Value::DTypes(b)) => a == b,
            (Value::Lists(a), Value::Lists(b)) => a.same_bits(b),
            (Value::DType(a), Value::DType(b)) => a == b,
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::MemoryFormat(a), Value::MemoryFormat(b)) => a == b,
            (Value::MemoryLayout(a), Value::MemoryLayout(b)) => a == b,
            (Value::Generator(a), Value::Generator(b)) => {
                a.same(b) || (a.start().is_some() && a.start() == b.start())
            }
            _ => false,
        }
    }
}

impl<'a> Arg<'a> {
    /// The same argument, owned.
    pub fn to_value(self) -> Value {
        match self {
            Arg::None => Value::None,
            Arg::Tensor(value) => Value::Tensor(value.clone()),
            Arg::Tensors(value) => Value::Tensors(value.to_vec()),
            Arg::OptionalTensors(value) => Value::OptionalTensors(value.to_vec()),
            Arg::Bool(value) => Value::Bool(value),
            Arg::Int(value) => Value::Int(value),
            Arg::Float(value) => Value::Float(value),
            Arg::Scalar(value) => Value::Scalar(value),
            Arg::Str(value) => Value::Str(value.to_owned()),
            Arg::Ints(value) => Value::Ints(value.to_vec()),
            Arg::Floats(value) => Value::Floats(value.to_vec()),
            Arg::Bools(value) => Value::Bools(value.to_vec()),
            Arg::Scalars(value) => Value::Scalars(value.to_vec()),
            Arg::Strs(value) => Value::Strs(value.to_vec()),
            Arg::DTypes(value) => Value::DTypes(value.to_vec()),
            Arg::Lists(value) => Value::Lists(Box::new(value.to_owned())),
            Arg::DType(value) => Value::DType(value),
            Arg::Device(value) => Value::Device(value),
            Arg::MemoryFormat(value) => Value::MemoryFormat(value),
            Arg::MemoryLayout(value) => Value::MemoryLayout(value),
            Arg::Generator(value) => Value::Generator(value.clone()),
        }
    }

    /// Calls `visit` with each tensor of the argument, in order.
    #[inline(always)]
    pub fn for_each_tensor(self, mut visit: impl FnMut(&'a Tensor)) {
        match self {
            Arg::Tensor(tensor) => visit(tensor),
            Arg::Tensors(_) | Arg::OptionalTensors(_) => self.for_each_of_list(&mut visit),
            _ => {}
        }
    }

    /// As [`Arg::for_each_tensor`], of a list. Apart, since most arguments are none, and every step of a call visits them.
    #[inline(never)]
    fn for_each_of_list(self, visit: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Arg::Tensors(tensors) => tensors.iter().for_each(visit),
            Arg::OptionalTensors(tensors) => tensors.iter().flatten().for_each(visit),
            _ => {}
        }
    }
}

/// The functions generated from the table of types.
macro_rules! by_kind {
    ($({
        $variant:ident $(($parameter:ty: $name:ident))?, $spelling:literal, $access:ident, $noun:literal,
        $meaning:literal
    })*) => {
        impl Arg<'_> {
            /// The noun for its type, for error messages.
            pub fn kind(self) -> &'static str {
                if let Arg::Lists(lists) = self {
                    return lists.kind().lists();
                }
                match self {
                    Arg::None => "none",
                    $(Arg::$variant(_) => $noun,)*
                }
            }

            /// Whether it has the variant of a type; lengths and items of lists may differ.
            pub(crate) fn is_variant(self, kind: ArgKind) -> bool {
                match kind { $(ArgKind::$variant { .. } => matches!(self, Arg::$variant(_)),)* }
            }
        }

        impl Value {
            /// Whether it has the variant of a type; lengths and items of lists may differ.
            pub(crate) fn is_variant(&self, kind: ArgKind) -> bool {
                match kind { $(ArgKind::$variant { .. } => matches!(self, Value::$variant(_)),)* }
            }
        }
    };
}

opsmith_core::for_each_kind!(by_kind);

/// Typed access for generated code; the signature guarantees the variant.
///
/// A mismatch can only come from a boxed call that skipped its argument check, which is a defect of
/// the runtime, so these panic.
macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $variant:ident => $ty:ty;)*) => {
        impl<'a> Arg<'a> {$(
            $(#[$doc])*
            #[inline]
            #[track_caller]
            pub fn $name(self) -> $ty {
                match self {
                    Arg::$variant(value) => value,
                    other => wrong_variant(stringify!($variant), other.kind()),
                }
            }
        )*}
    };
}

#[cold]
#[track_caller]
fn wrong_variant(expected: &str, got: &str) -> ! {
    panic!("generated code expected {expected}, the dispatcher passed {got}")
}

accessors! {
    /// The tensor.
    tensor: Tensor => &'a Tensor;
    /// The list of tensors.
    tensors: Tensors => &'a [Tensor];
    /// The list of optional tensors.
    optional_tensors: OptionalTensors => &'a [Option<Tensor>];
    /// The truth value.
    bool: Bool => bool;
    /// The integer.
    int: Int => i64;
    /// The float.
    float: Float => f64;
    /// The number.
    scalar: Scalar => Scalar;
    /// The text.
    str: Str => &'a str;
    /// The integers.
    ints: Ints => &'a [i64];
    /// The floats.
    floats: Floats => &'a [f64];
    /// The truth values.
    bools: Bools => &'a [bool];
    /// The numbers.
    scalars: Scalars => &'a [Scalar];
    /// The texts.
    strs: Strs => &'a [Text];
    /// The dtypes.
    dtypes: DTypes => &'a [DType];
    /// The dtype.
    dtype: DType => DType;
    /// The device.
    device: Device => Device;
    /// The memory format.
    memory_format: MemoryFormat => MemoryFormat;
    /// The storage layout.
    memory_layout: MemoryLayout => MemoryLayout;
    /// The generator.
    generator: Generator => &'a Generator;
}

impl<'a> Arg<'a> {
    /// The list of lists.
    #[track_caller]
    pub fn lists<T: ListItem>(self) -> &'a Lists<T> {
        match self {
            Arg::Lists(lists) => T::of(lists).unwrap_or_else(|| wrong_variant(T::KIND.lists(), self.kind())),
            other => wrong_variant(T::KIND.lists(), other.kind()),
        }
    }

    /// `None` if the argument is absent, else the result of `get`.
    #[inline]
    pub fn optional<T>(self, get: impl FnOnce(Arg<'a>) -> T) -> Option<T> {
        match self {
            Arg::None => None,
            present => Some(get(present)),
        }
    }
}

impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

macro_rules! from_borrowed {
    ($($ty:ty => $variant:ident;)*) => {$(
        impl<'a> From<$ty> for Arg<'a> {
            #[inline]
            fn from(value: $ty) -> Arg<'a> { Arg::$variant(value) }
        }
        impl<'a> From<Option<$ty>> for Arg<'a> {
            #[inline]
            fn from(value: Option<$ty>) -> Arg<'a> { value.map_or(Arg::None, Arg::$variant) }
        }
    )*};
}

from_borrowed! {
    &'a Tensor => Tensor; &'a [Tensor] => Tensors; &'a [Option<Tensor>] => OptionalTensors;
    bool => Bool; i64 => Int; f64 => Float; Scalar => Scalar; &'a str => Str; &'a [i64] => Ints;
    &'a [f64] => Floats; &'a [bool] => Bools; &'a [Scalar] => Scalars; &'a [Text] => Strs;
    &'a [DType] => DTypes; DType => DType;
    Device => Device; MemoryFormat => MemoryFormat; MemoryLayout => MemoryLayout;
    &'a Generator => Generator;
}

macro_rules! from_owned {
    ($($ty:ty => $variant:ident;)*) => {$(
        impl From<$ty> for Value {
            fn from(value: $ty) -> Value { Value::$variant(value.into()) }
        }
    )*};
}

/// Calls a macro with the types that convert to a [`Value`], each with its variant. Lists of lists convert, too.
#[doc(hidden)]
#[macro_export]
macro_rules! with_value_types {
    ($action:ident) => {
        $action! {
            $crate::Tensor => Tensor; Vec<$crate::Tensor> => Tensors;
            Vec<Option<$crate::Tensor>> => OptionalTensors; bool => Bool; i64 => Int; i32 => Int; f64 => Float;
            f32 => Float; $crate::Scalar => Scalar; String => Str; &str => Str; Vec<i64> => Ints;
            Vec<f64> => Floats; Vec<bool> => Bools; Vec<$crate::Scalar> => Scalars; Vec<$crate::Text> => Strs;
            Vec<$crate::DType> => DTypes; $crate::DType => DType; $crate::Device => Device;
            $crate::Generator => Generator;
        }
    };
}

with_value_types!(from_owned);

impl From<&Tensor> for Value {
    fn from(value: &Tensor) -> Value {
        Value::Tensor(value.clone())
    }
}
