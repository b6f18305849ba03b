//! The Rust types of attributes in inference functions.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::device::Device;
use crate::error::Error;
use crate::infer::symbolic::{Argument, Size};
use crate::lists::{AnyLists, Text};
use crate::op::ArgDef;
use crate::scalar::Scalar;

/// A type that an attribute can be requested as.
pub trait Attribute<'a>: Sized {
    /// Its name in messages.
    const NAME: &'static str;

    /// The attribute as this type; `None` if it has another type.
    fn read(arg: Argument<'a>) -> Option<Self>;
}

macro_rules! attributes {
    ($($ty:ty, $name:literal, $pattern:pat => $value:expr;)*) => {$(
        impl<'a> Attribute<'a> for $ty {
            const NAME: &'static str = $name;
            fn read(arg: Argument<'a>) -> Option<$ty> {
                match arg {
                    $pattern => $value,
                    _ => None,
                }
            }
        }
    )*};
}

attributes! {
    bool, "a bool", Argument::Plain(Arg::Bool(value)) => Some(value);
    f64, "a float", Argument::Plain(Arg::Float(value)) => Some(value);
    &'a str, "a str", Argument::Plain(Arg::Str(value)) => Some(value);
    DType, "a dtype", Argument::Plain(Arg::DType(value)) => Some(value);
    Device, "a device", Argument::Plain(Arg::Device(value)) => Some(value);
    Scalar, "a number", Argument::Plain(Arg::Scalar(value)) => Some(value);
    &'a [f64], "a list of floats", Argument::Plain(Arg::Floats(values)) => Some(values);
    &'a [bool], "a list of bools", Argument::Plain(Arg::Bools(values)) => Some(values);
    &'a [Scalar], "a list of numbers", Argument::Plain(Arg::Scalars(values)) => Some(values);
    &'a [Text], "a list of strs", Argument::Plain(Arg::Strs(values)) => Some(values);
    &'a [DType], "a list of dtypes", Argument::Plain(Arg::DTypes(values)) => Some(values);
    AnyLists<'a>, "a list of lists", Argument::Plain(Arg::Lists(lists)) => Some(lists);
}

impl Attribute<'_> for i64 {
    const NAME: &'static str = "an int";
    fn read(arg: Argument<'_>) -> Option<i64> {
        Size::read(arg)?.known()
    }
}

/// An integer that may be symbolic.
impl Attribute<'_> for Size {
    const NAME: &'static str = "an int";
    fn read(arg: Argument<'_>) -> Option<Size> {
        match arg {
            Argument::Int(size) => Some(size.clone()),
            Argument::Plain(Arg::Int(value)) => Some(Size::Const(value)),
            _ => None,
        }
    }
}

impl Attribute<'_> for Vec<i64> {
    const NAME: &'static str = "a list of ints";
    fn read(arg: Argument<'_>) -> Option<Vec<i64>> {
        Vec::<Size>::read(arg)?.iter().map(Size::known).collect()
    }
}

/// Integers that may be symbolic.
impl Attribute<'_> for Vec<Size> {
    const NAME: &'static str = "a list of ints";
    fn read(arg: Argument<'_>) -> Option<Vec<Size>> {
        match arg {
            Argument::Ints(sizes) => Some(sizes.to_vec()),
            Argument::Plain(Arg::Ints(values)) => {
                Some(values.iter().map(|value| Size::Const(*value)).collect())
            }
            _ => None,
        }
    }
}

/// An attribute that may be absent.
impl<'a, T: Attribute<'a>> Attribute<'a> for Option<T> {
    const NAME: &'static str = T::NAME;
    fn read(arg: Argument<'a>) -> Option<Option<T>> {
        match arg {
            Argument::Plain(Arg::None) => Some(None),
            present => T::read(present).map(Some),
        }
    }
}

/// The error of an attribute requested as a wrong type.
#[cold]
pub(super) fn refused<'a, T: Attribute<'a>>(def: &ArgDef, arg: Argument<'a>) -> Error {
    let open = match arg {
        Argument::Int(size) => size.known().is_none(),
        Argument::Ints(sizes) => sizes.iter().any(|size| size.known().is_none()),
        _ => false,
    };
    if open && (i64::NAME == T::NAME || Vec::<i64>::NAME == T::NAME) {
        return Error::value(format!("the attribute `{}` is a size that is not known yet", def.name))
            .with_help("ask for it as `Size`, or `Vec<Size>`, which may be a formula");
    }
    let kind = match arg {
        Argument::Int(_) => "an int",
        Argument::Ints(_) => "a list of ints",
        Argument::Plain(arg) => arg.kind(),
        Argument::Tensor(_) | Argument::Tensors(_) | Argument::OptionalTensors(_) => "an input",
    };
    let help = match kind {
        "none" => "it is optional: ask for an `Option`",
        _ => "ask for the type that the signature declares",
    };
    Error::argument(format!("the attribute `{}` is {kind}, and it is asked for as {}", def.name, T::NAME))
        .with_help(help)
}

/// Lets a function pass on an attribute unchanged.
impl<'a> Attribute<'a> for Argument<'a> {
    const NAME: &'static str = "anything";
    fn read(arg: Argument<'a>) -> Option<Argument<'a>> {
        Some(arg)
    }
}
