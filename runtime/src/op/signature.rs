//! The signature of an operator, as static data written by the generator: arguments and results with their types,
//! defaults and constraints.

use opsmith_core::DType;
use opsmith_core::constraint::Constraint;
pub use opsmith_core::{ArgKind, ArgType, ItemKind};

use crate::arg::Arg;
use crate::facts::ValueUse;
use crate::lists::{AnyLists, Text};
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
    /// The value in a call by name that omits the argument.
    pub default: Option<DefaultValue>,
    /// Whether it can only be given by name.
    pub keyword_only: bool,
    /// Other names that calls by name may use.
    pub aliases: &'static [&'static str],
    /// Constraints on its value.
    pub constraints: &'static [Constraint],
    /// Whether its elements determine a result's shape or dtype.
    pub value: ValueUse,
}

/// One result of a signature.
pub struct ReturnDef {
    /// Its name, if declared.
    pub name: Option<&'static str>,
    /// Its type.
    pub ty: ArgType,
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
    /// A required argument without default or constraints.
    pub const fn required(name: &'static str, kind: ArgKind) -> ArgDef {
        ArgDef::new(name, kind.required())
    }

    /// An optional argument without default or constraints.
    pub const fn optional(name: &'static str, kind: ArgKind) -> ArgDef {
        ArgDef::new(name, kind.optional())
    }

    /// A required argument of any type, without default or constraints.
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

    /// The same with a default.
    #[must_use]
    pub const fn with_default(mut self, default: DefaultValue) -> ArgDef {
        self.default = Some(default);
        self
    }

    /// The same, given only by name.
    #[must_use]
    pub const fn keyword_only(mut self) -> ArgDef {
        self.keyword_only = true;
        self
    }

    /// The same with other names.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> ArgDef {
        self.aliases = aliases;
        self
    }

    /// The same with limits of its value.
    #[must_use]
    pub const fn constraints(mut self, constraints: &'static [Constraint]) -> ArgDef {
        self.constraints = constraints;
        self
    }

    /// The same whose elements decide a result's shape or dtype.
    #[must_use]
    pub const fn value(mut self, value: ValueUse) -> ArgDef {
        self.value = value;
        self
    }
}

impl Arg<'_> {
    /// Whether the argument is of a type as it stands.
    pub fn has_type(self, ty: ArgType) -> bool {
        match (ty.kind, self) {
            (_, Arg::None) => ty.optional,
            (ArgKind::Ints(Some(length)), Arg::Ints(list)) => length as usize == list.len(),
            (ArgKind::Bools(Some(length)), Arg::Bools(list)) => length as usize == list.len(),
            (ArgKind::Lists(kind), Arg::Lists(lists)) => lists.kind() == kind,
            (kind, arg) => arg.is_variant(kind),
        }
    }
}
