//! The signature of an operator, as the generator writes it into static data: arguments and results with
//! their types, defaults, and what else is known of each.

use opsmith_core::DType;
use opsmith_core::constraint::Constraint;

use crate::arg::Arg;
use crate::facts::ValueUse;
use crate::lists::{AnyLists, ItemKind, Text};
use crate::scalar::Scalar;

/// A signature.
#[derive(Clone, Copy)]
pub struct Schema {
    /// The signature as declared.
    pub text: &'static str,
    /// Arguments in order.
    pub args: &'static [ArgDef],
    /// Results in order.
    pub returns: &'static [ReturnDef],
}

/// One argument of a signature.
pub struct ArgDef {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: ArgType,
    /// What a call by name uses when the argument is not given.
    pub default: Option<DefaultValue>,
    /// Whether it can only be given by name.
    pub keyword_only: bool,
    /// Other names that calls by name may use.
    pub aliases: &'static [&'static str],
    /// Values it may have.
    pub constraints: &'static [Constraint],
    /// Whether its elements decide a result's shape or dtype.
    pub value: ValueUse,
}

/// One result of a signature.
pub struct ReturnDef {
    /// Its name, if declared.
    pub name: Option<&'static str>,
    /// Its type.
    pub ty: ArgType,
}

/// The type of an argument or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgType {
    /// What it is.
    pub kind: ArgKind,
    /// Whether it may be absent.
    pub optional: bool,
}

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// A tensor.
    Tensor,
    /// A list of tensors.
    Tensors,
    /// A list of tensors of which some may be absent.
    OptionalTensors,
    /// A truth value.
    Bool,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A number of any kind.
    Scalar,
    /// A text.
    Str,
    /// A list of integers; if a length is given, one integer stands for that many.
    Ints(Option<u32>),
    /// A list of floating-point numbers.
    Floats,
    /// A list of truth values.
    Bools(Option<u32>),
    /// A list of numbers.
    Scalars,
    /// A list of texts.
    Strs,
    /// A list of element types.
    DTypes,
    /// A list of lists of this.
    Lists(ItemKind),
    /// An element type.
    DType,
    /// A device.
    Device,
    /// A memory format.
    MemoryFormat,
    /// A storage layout.
    MemoryLayout,
    /// A random generator.
    Generator,
}

/// A default in a signature.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DefaultValue {
    /// Absent.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Str(&'static str),
    /// A list of integers.
    Ints(&'static [i64]),
    /// A list of floats.
    Floats(&'static [f64]),
    /// A list of truth values.
    Bools(&'static [bool]),
    /// A list of numbers.
    Scalars(&'static [Scalar]),
    /// A list of texts.
    Strs(&'static [Text]),
    /// A list of element types.
    DTypes(&'static [DType]),
    /// A list of lists.
    Lists(AnyLists<'static>),
    /// An element type.
    DType(DType),
    /// A memory format.
    MemoryFormat(crate::arg::MemoryFormat),
}

impl ArgKind {
    /// The type of something that is always there.
    pub const fn required(self) -> ArgType {
        ArgType { kind: self, optional: false }
    }

    /// The type of something that may be absent.
    pub const fn optional(self) -> ArgType {
        ArgType { kind: self, optional: true }
    }
}

impl ReturnDef {
    /// A result without a name.
    pub const fn new(ty: ArgType) -> ReturnDef {
        ReturnDef { name: None, ty }
    }

    /// A result with a name.
    pub const fn named(name: &'static str, ty: ArgType) -> ReturnDef {
        ReturnDef { name: Some(name), ty }
    }
}

impl ArgDef {
    /// A required argument of which nothing more is said.
    pub const fn new(name: &'static str, ty: ArgType) -> ArgDef {
        ArgDef {
            name,
            ty,
            default: None,
            keyword_only: false,
            aliases: &[],
            constraints: &[],
            value: ValueUse::None,
        }
    }
}

impl ArgType {
    /// Whether it is one tensor, which may be optional.
    pub fn is_tensor(self) -> bool {
        self.kind == ArgKind::Tensor
    }

    /// Whether it is a tensor or a list of them.
    pub fn holds_tensors(self) -> bool {
        matches!(self.kind, ArgKind::Tensor | ArgKind::Tensors | ArgKind::OptionalTensors)
    }

    /// Whether an argument is of this type as it stands.
    pub fn accepts(self, arg: Arg<'_>) -> bool {
        match (self.kind, arg) {
            (_, Arg::None) => self.optional,
            (ArgKind::Tensor, Arg::Tensor(_))
            | (ArgKind::Tensors, Arg::Tensors(_))
            | (ArgKind::OptionalTensors, Arg::OptionalTensors(_))
            | (ArgKind::Bool, Arg::Bool(_))
            | (ArgKind::Int, Arg::Int(_))
            | (ArgKind::Float, Arg::Float(_))
            | (ArgKind::Scalar, Arg::Scalar(_))
            | (ArgKind::Str, Arg::Str(_))
            | (ArgKind::Floats, Arg::Floats(_))
            | (ArgKind::Scalars, Arg::Scalars(_))
            | (ArgKind::Strs, Arg::Strs(_))
            | (ArgKind::DTypes, Arg::DTypes(_))
            | (ArgKind::DType, Arg::DType(_))
            | (ArgKind::Device, Arg::Device(_))
            | (ArgKind::MemoryFormat, Arg::MemoryFormat(_))
            | (ArgKind::MemoryLayout, Arg::MemoryLayout(_))
            | (ArgKind::Generator, Arg::Generator(_)) => true,
            (ArgKind::Ints(length), Arg::Ints(list)) => {
                length.is_none_or(|length| length as usize == list.len())
            }
            (ArgKind::Bools(length), Arg::Bools(list)) => {
                length.is_none_or(|length| length as usize == list.len())
            }
            (ArgKind::Lists(kind), Arg::Lists(lists)) => lists.kind() == kind,
            _ => false,
        }
    }
}
