//! The Rust types of attributes in inference functions.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::device::Device;
use crate::error::Error;
use crate::infer::symbolic::{ArgumentMeta, Size};
use crate::lists::{AnyLists, Text};
use crate::op::ArgDef;
use crate::scalar::Scalar;

/// A type that an attribute can be requested as.
pub trait Attribute<'a>: Sized {
    /// Its name in messages.
    const NAME: &'static str;

    /// The attribute as this type; `None` if it has another type.
    fn read(arg: ArgumentMeta<'a>) -> Option<Self>;
}

macro_rules! attributes {
    ($($ty:ty, $name:literal, $pattern:pat => $value:expr;)*) => {$(
        impl<'a> Attribute<'a> for $ty {
            const NAME: &'static str = $name;
            fn read(arg: ArgumentMeta<'a>) -> Option<$ty> {
                match arg {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )*};
}

attributes! {
    bool, "a bool", ArgumentMeta::Plain(Arg::Bool(value)) => Some(value);
    f64, "a float", ArgumentMeta::Plain(Arg::Float(value)) => Some(value);
    &'a str, "a str", ArgumentMeta::Plain(Arg::Str(value)) => Some(value);
    DType, "a dtype", ArgumentMeta::Plain(Arg::DType(value)) => Some(value);
    Device, "a device", ArgumentMeta::Plain(Arg::Device(value)) => Some(value);
    Scalar, "a number", ArgumentMeta::Plain(Arg::Scalar(value)) => Some(value);
    &'a [f64], "a list of floats", ArgumentMeta::Plain(Arg::Floats(values)) => Some(values);
    &'a [bool], "a list of bools", ArgumentMeta::Plain(Arg::Bools(values)) => Some(values);
    &'a [Scalar], "a list of numbers", ArgumentMeta::Plain(Arg::Scalars(values)) => Some(values);
    &'a [Text], "a list of strs", ArgumentMeta::Plain(Arg::Strs(values)) => Some(values);
    &'a [DType], "a list of dtypes", ArgumentMeta::Plain(Arg::DTypes(values)) => Some(values);
    AnyLists<'a>, "a list of lists", ArgumentMeta::Plain(Arg::Lists(lists)) => Some(lists);
}

impl Attribute<'_> for i64 {
    const NAME: &'static str = "an int";
    fn read(arg: ArgumentMeta<'_>) -> Option<i64> {
        Size::read(arg)?.known()
    }
}

/// An integer that may be symbolic.
impl Attribute<'_> for Size {
    const NAME: &'static str = "an int";
    fn read(arg: ArgumentMeta<'_>) -> Option<Size> {
        match arg {
            ArgumentMeta::Int(size) => Some(size.clone()),
            ArgumentMeta::Plain(Arg::Int(value)) => Some(Size::Const(value)),
            _ => None,
        }
    }
}

impl Attribute<'_> for Vec<i64> {
    const NAME: &'static str = "a list of ints";
    fn read(arg: ArgumentMeta<'_>) -> Option<Vec<i64>> {
        Vec::<Size>::read(arg)?.iter().map(Size::known).collect()
    }
}

/// Integers that may be symbolic.
impl Attribute<'_> for Vec<Size> {
    const NAME: &'static str = "a list of ints";
    fn read(arg: ArgumentMeta<'_>) -> Option<Vec<Size>> {
        match arg {
            ArgumentMeta::Ints(sizes) => Some(sizes.to_vec()),
            ArgumentMeta::Plain(Arg::Ints(values)) => {
                Some(values.iter().map(|value| Size::Const(*value)).collect())
            }
            _ => None,
        }
    }
}

/// An attribute that may be absent.
impl<'a, T: Attribute<'a>> Attribute<'a> for Option<T> {
    const NAME: &'static str = T::NAME;
    fn read(arg: ArgumentMeta<'a>) -> Option<Option<T>> {
        match arg {
            ArgumentMeta::Plain(Arg::None) => Some(None),
            present => T::read(present).map(Some),
        }
    }
}

/// The error of an attribute requested as a wrong type.
#[cold]
pub(super) fn refused<'a, T: Attribute<'a>>(def: &ArgDef, arg: ArgumentMeta<'a>) -> Error {
    let open = match arg {
        ArgumentMeta::Int(size) => size.known().is_none(),
        ArgumentMeta::Ints(sizes) => sizes.iter().any(|size| size.known().is_none()),
        _ => false,
    };
    if open && (i64::NAME == T::NAME || Vec::<i64>::NAME == T::NAME) {
        return Error::value(format!("the attribute `{}` is a size that is not known yet", def.name))
            .with_help("ask for it as `Size`, or `Vec<Size>`, which may be a formula");
    }
    let kind = match arg {
        ArgumentMeta::Int(_) => "an int",
        ArgumentMeta::Ints(_) => "a list of ints",
        ArgumentMeta::Plain(arg) => arg.kind(),
        ArgumentMeta::Tensor(_) | ArgumentMeta::Tensors(_) | ArgumentMeta::OptionalTensors(_) => "an input",
    };
    let help = match kind {
        "none" => "it is optional: ask for an `Option`",
        _ => "ask for the type that the signature declares",
    };
    Error::argument(format!("the attribute `{}` is {kind}, and it is asked for as {}", def.name, T::NAME))
        .with_help(help)
}

/// Lets a function pass on an attribute unchanged.
impl<'a> Attribute<'a> for ArgumentMeta<'a> {
    const NAME: &'static str = "anything";
    fn read(arg: ArgumentMeta<'a>) -> Option<ArgumentMeta<'a>> {
        Some(arg)
    }
}
