//! Values of attributes, which a kernel reads with `extra->Attr<T>("name")`.
//!
//! In: values from a declaration, a call or a registration record. Out: the same, typed as the interface
//! knows them. Must not know how C++ reads them (`lookup.rs`).

use std::ffi::c_int;
use std::fmt;

use opsmith_core::{DType, ItemKind};
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::lists::{AnyLists, Lists};
use opsmith_runtime::op::{ArgKind, DefaultValue};

/// The type of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttrType {
    /// `bool`
    Bool,
    /// `int64_t`
    Int,
    /// `float`
    Float,
    /// `std::string`
    Str,
    /// `std::vector<int64_t>`
    Ints,
    /// `std::vector<float>`
    Floats,
    /// `std::vector<std::vector<int64_t>>`
    IntLists,
    /// `std::vector<std::vector<float>>`
    FloatLists,
}

impl AttrType {
    /// Every type, in the order of `cpp/host.h`, with its name in messages and in fingerprints.
    const NAMES: [(AttrType, &'static str); 8] = [
        (AttrType::Bool, "bool"),
        (AttrType::Int, "int"),
        (AttrType::Float, "float"),
        (AttrType::Str, "str"),
        (AttrType::Ints, "list of int"),
        (AttrType::Floats, "list of float"),
        (AttrType::IntLists, "list of lists of int"),
        (AttrType::FloatLists, "list of lists of float"),
    ];

    /// The type with that number in `cpp/host.h`.
    pub(super) fn numbered(number: c_int) -> AttrType {
        Self::NAMES[number as usize].0
    }

    /// Its name, such as `list of int`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(ty, _)| *ty == self).map_or("", |(_, name)| name)
    }

    /// Its spelling and type in a signature.
    pub(super) fn schema(self) -> (&'static str, ArgKind) {
        match self {
            AttrType::Bool => ("bool", ArgKind::Bool),
            AttrType::Int => ("int", ArgKind::Int),
            AttrType::Float => ("float", ArgKind::Float),
            AttrType::Str => ("str", ArgKind::Str),
            AttrType::Ints => ("int[]", ArgKind::Ints(None)),
            AttrType::Floats => ("float[]", ArgKind::Floats),
            AttrType::IntLists => ("int[][]", ArgKind::Lists(ItemKind::Int)),
            AttrType::FloatLists => ("float[][]", ArgKind::Lists(ItemKind::Float)),
        }
    }

    /// The type of an argument of a signature that a kernel can read as an attribute.
    pub(super) fn of_argument(kind: ArgKind) -> Option<AttrType> {
        Some(match kind {
            ArgKind::Bool => AttrType::Bool,
            ArgKind::Int | ArgKind::DType => AttrType::Int,
            ArgKind::Float | ArgKind::Scalar => AttrType::Float,
            ArgKind::Str => AttrType::Str,
            ArgKind::Ints(_) | ArgKind::Bools(_) | ArgKind::DTypes => AttrType::Ints,
            ArgKind::Floats | ArgKind::Scalars => AttrType::Floats,
            ArgKind::Lists(ItemKind::Bool | ItemKind::Int | ItemKind::DType) => AttrType::IntLists,
            ArgKind::Lists(ItemKind::Float | ItemKind::Scalar) => AttrType::FloatLists,
            _ => return None,
        })
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum AttrValue {
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number; kernels see its `float`.
    Float(f64),
    /// A text.
    Str(String),
    /// Integers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Lists of integers.
    IntLists(Lists<i64>),
    /// Lists of numbers.
    FloatLists(Lists<f64>),
}

impl AttrValue {
    /// The value's type.
    pub fn ty(&self) -> AttrType {
        match self {
            AttrValue::Bool(_) => AttrType::Bool,
            AttrValue::Int(_) => AttrType::Int,
            AttrValue::Float(_) => AttrType::Float,
            AttrValue::Str(_) => AttrType::Str,
            AttrValue::Ints(_) => AttrType::Ints,
            AttrValue::Floats(_) => AttrType::Floats,
            AttrValue::IntLists(_) => AttrType::IntLists,
            AttrValue::FloatLists(_) => AttrType::FloatLists,
        }
    }

    /// The value as another type, where nothing is lost by it: an integer as a number, an empty list as
    /// any list.
    pub(super) fn into_type(self, ty: AttrType) -> Result<AttrValue, AttrValue> {
        Ok(match (self, ty) {
            (value, ty) if value.ty() == ty => value,
            (AttrValue::Int(value), AttrType::Float) => AttrValue::Float(value as f64),
            (AttrValue::Ints(list), AttrType::Floats) => {
                AttrValue::Floats(list.into_iter().map(|value| value as f64).collect())
            }
            (AttrValue::Ints(list), AttrType::IntLists) if list.is_empty() => {
                AttrValue::IntLists(Lists::default())
            }
            (AttrValue::Ints(list), AttrType::FloatLists) if list.is_empty() => {
                AttrValue::FloatLists(Lists::default())
            }
            (AttrValue::Floats(list), AttrType::Ints) if list.is_empty() => AttrValue::Ints(Vec::new()),
            (AttrValue::IntLists(lists), AttrType::FloatLists) => {
                AttrValue::FloatLists(lists.map(|value| *value as f64))
            }
            (AttrValue::FloatLists(lists), AttrType::IntLists) if lists.items().is_empty() => {
                AttrValue::IntLists(lists.map(|value| *value as i64))
            }
            (value, _) => return Err(value),
        })
    }

    /// The value of an argument of a call; `None` if no attribute can have it.
    pub(super) fn of_argument(arg: Arg<'_>) -> Option<AttrValue> {
        Some(match arg {
            Arg::Bool(value) => AttrValue::Bool(value),
            Arg::Int(value) => AttrValue::Int(value),
            Arg::Float(value) => AttrValue::Float(value),
            Arg::Scalar(value) => AttrValue::Float(value.to_f64()),
            Arg::Str(value) => AttrValue::Str(value.to_owned()),
            Arg::Ints(list) => AttrValue::Ints(list.to_vec()),
            Arg::Floats(list) => AttrValue::Floats(list.to_vec()),
            Arg::Bools(list) => AttrValue::Ints(list.iter().map(|value| i64::from(*value)).collect()),
            Arg::Scalars(list) => AttrValue::Floats(list.iter().map(|value| value.to_f64()).collect()),
            Arg::DType(dtype) => AttrValue::Int(type_id(dtype)),
            Arg::DTypes(list) => AttrValue::Ints(list.iter().copied().map(type_id).collect()),
            Arg::Lists(lists) => match lists {
                AnyLists::Int(lists) => AttrValue::IntLists(lists.clone()),
                AnyLists::Float(lists) => AttrValue::FloatLists(lists.clone()),
                AnyLists::Bool(lists) => AttrValue::IntLists(lists.map(|value| i64::from(*value))),
                AnyLists::Scalar(lists) => AttrValue::FloatLists(lists.map(|value| value.to_f64())),
                AnyLists::DType(lists) => AttrValue::IntLists(lists.map(|dtype| type_id(*dtype))),
                AnyLists::Str(_) => return None,
            },
            _ => return None,
        })
    }

    /// Whether an argument of a call says the same, found without making a value of it.
    #[inline]
    pub(super) fn equals(&self, arg: Arg<'_>) -> bool {
        match (self, arg) {
            (AttrValue::Bool(a), Arg::Bool(b)) => *a == b,
            (AttrValue::Int(a), Arg::Int(b)) => *a == b,
            (AttrValue::Float(a), Arg::Float(b)) => a.to_bits() == b.to_bits(),
            (AttrValue::Str(a), Arg::Str(b)) => a == b,
            (AttrValue::Ints(a), Arg::Ints(b)) => a == b,
            (AttrValue::Floats(a), Arg::Floats(b)) => a == b,
            (AttrValue::IntLists(a), Arg::Lists(AnyLists::Int(b))) => a == b,
            (AttrValue::FloatLists(a), Arg::Lists(AnyLists::Float(b))) => a == b,
            (value, arg) => AttrValue::of_argument(arg).as_ref() == Some(value),
        }
    }

    /// The value as an argument of a call by name.
    pub(super) fn to_value(&self) -> Value {
        match self {
            AttrValue::Bool(value) => Value::Bool(*value),
            AttrValue::Int(value) => Value::Int(*value),
            AttrValue::Float(value) => Value::Float(*value),
            AttrValue::Str(value) => Value::Str(value.clone()),
            AttrValue::Ints(list) => Value::Ints(list.clone()),
            AttrValue::Floats(list) => Value::Floats(list.clone()),
            AttrValue::IntLists(lists) => Value::from(lists.clone()),
            AttrValue::FloatLists(lists) => Value::from(lists.clone()),
        }
    }

    /// The value as the default of an argument. Its texts and lists live as long as the program; callers
    /// keep those that they made (`registry.rs`).
    pub(super) fn to_default(&self) -> DefaultValue {
        match self {
            AttrValue::Bool(value) => DefaultValue::Bool(*value),
            AttrValue::Int(value) => DefaultValue::Int(*value),
            AttrValue::Float(value) => DefaultValue::Float(*value),
            AttrValue::Str(value) => DefaultValue::Str(value.clone().leak()),
            AttrValue::Ints(list) => DefaultValue::Ints(list.clone().leak()),
            AttrValue::Floats(list) => DefaultValue::Floats(list.clone().leak()),
            AttrValue::IntLists(lists) => {
                DefaultValue::Lists(AnyLists::Int(Box::leak(Box::new(lists.clone()))))
            }
            AttrValue::FloatLists(lists) => {
                DefaultValue::Lists(AnyLists::Float(Box::leak(Box::new(lists.clone()))))
            }
        }
    }
}

/// How the interface numbers a dtype.
fn type_id(dtype: DType) -> i64 {
    i64::from(super::dtypes::type_id(dtype))
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Bool(value) => value.fmt(f),
            AttrValue::Int(value) => value.fmt(f),
            AttrValue::Float(value) => write!(f, "{value:?}"),
            AttrValue::Str(value) => write!(f, "{value:?}"),
            AttrValue::Ints(list) => write!(f, "{list:?}"),
            AttrValue::Floats(list) => write!(f, "{list:?}"),
            AttrValue::IntLists(lists) => write!(f, "{lists:?}"),
            AttrValue::FloatLists(lists) => write!(f, "{lists:?}"),
        }
    }
}

macro_rules! from {
    ($($ty:ty => $variant:ident;)*) => {$(
        impl From<$ty> for AttrValue {
            fn from(value: $ty) -> AttrValue { AttrValue::$variant(value.into()) }
        }
    )*};
}

from! {
    bool => Bool; i32 => Int; i64 => Int; f32 => Float; f64 => Float; &str => Str; String => Str;
    Vec<i64> => Ints; Vec<f64> => Floats; Vec<Vec<i64>> => IntLists; Vec<Vec<f64>> => FloatLists;
}

/// The attributes of one kernel object, by name.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Attributes(pub Vec<(String, AttrValue)>);

impl Attributes {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of an attribute as the type that a kernel asked for.
    ///
    /// # Errors
    /// If there is no such attribute, or it is of another type.
    pub fn typed(&self, name: &str, ty: AttrType) -> Result<AttrValue> {
        let Some(value) = self.get(name) else {
            let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            let known = if names.is_empty() { "none is declared".to_owned() } else { names.join(", ") };
            return Err(Error::value(format!(
                "the kernel asks for the attribute `{name}`, which is not declared (declared: {known})"
            )));
        };
        value.clone().into_type(ty).map_err(|value| {
            Error::value(format!(
                "the kernel reads the attribute `{name}` as {}, but it is {} ({value})",
                ty.name(),
                value.ty().name()
            ))
        })
    }
}
