//! Operator signatures in PyTorch's schema language.
//!
//! ```text
//! add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
//! add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
//! ```
//!
//! The grammar is that of `native_functions.yaml`, unchanged; blanks are free, and strings and lists may contain
//! commas. A signature in canonical form prints back byte for byte. Ranges are bytes of the signature's own text; the
//! caller knows its offset in the file.

mod check;
mod default;
mod default_parser;
mod lexer;
mod name;
mod parser;
mod type_parser;
mod types;

use std::fmt;
use std::ops::Range;

use crate::diagnostics::{Diagnostics, Span};

pub use default::{ArgumentDefault, DefaultValue, INT_CONSTANTS};
pub use name::{BEGIN_WITH_I, OpName};
pub use types::{Alias, AliasAfter, BaseType, Type};

/// A parsed signature.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    /// Name and overload.
    pub name: OpName,
    /// The arguments in order; keyword-only ones come last.
    pub args: Vec<Argument>,
    /// The returned values in order.
    pub returns: Vec<Return>,
    /// The bytes of the name, overload included.
    pub name_range: Range<usize>,
    /// The bytes of the returned values, after the arrow.
    pub returns_range: Range<usize>,
}

/// One argument of a signature.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The name.
    pub name: String,
    /// The type, without the alias annotation.
    pub ty: Type,
    /// The alias annotation of a written or returned tensor, such as `(a!)`.
    pub alias: Option<Alias>,
    /// The value if the caller omits the argument.
    pub default: Option<ArgumentDefault>,
    /// Whether the argument is declared after `*`.
    pub kwarg_only: bool,
    /// The bytes of the whole argument.
    pub range: Range<usize>,
    /// The bytes of the type, annotation included.
    pub type_range: Range<usize>,
    /// The bytes of the name.
    pub name_range: Range<usize>,
}

/// One returned value of a signature.
#[derive(Clone, PartialEq, Debug)]
pub struct Return {
    /// The name, if it has one.
    pub name: Option<String>,
    /// The type, without the alias annotation.
    pub ty: Type,
    /// The alias annotation: the argument that the value shares memory with, such as `(a!)`.
    pub alias: Option<Alias>,
    /// The bytes of the whole returned value.
    pub range: Range<usize>,
}

/// The kind of a form, by the arguments that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SchemaKind {
    /// Writes no argument.
    Functional,
    /// Writes and returns `self`; the name ends in `_`.
    Inplace,
    /// Writes its keyword-only out arguments and returns them.
    Out,
    /// Writes other arguments.
    Mutable,
}

impl Schema {
    /// Parses a signature. Mistakes are pushed to `diagnostics`, at the spans that `locate` gives for their bytes;
    /// `None` if there are any.
    pub fn parse(
        text: &str,
        locate: &dyn Fn(Range<usize>) -> Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<Schema> {
        parser::parse(text, locate, diagnostics)
    }

    /// The out arguments: the written ones after `*`.
    pub fn out_args(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|arg| arg.is_out())
    }

    /// The arguments before `*`.
    pub fn positional_args(&self) -> impl Iterator<Item = &Argument> {
        self.args.iter().filter(|arg| !arg.kwarg_only)
    }

    /// The argument of that name.
    pub fn arg(&self, name: &str) -> Option<&Argument> {
        self.args.iter().find(|arg| arg.name == name)
    }

    /// The positional argument `self`, which makes the operator a method.
    pub fn self_arg(&self) -> Option<&Argument> {
        self.positional_args().find(|arg| arg.name == "self")
    }

    /// The kind of form, by the arguments that it writes.
    pub fn kind(&self) -> SchemaKind {
        if self.name.inplace {
            SchemaKind::Inplace
        } else if self.out_args().next().is_some() {
            SchemaKind::Out
        } else if self.args.iter().any(Argument::is_mutable) {
            SchemaKind::Mutable
        } else {
            SchemaKind::Functional
        }
    }
}

impl Argument {
    /// Whether the operator writes this argument.
    pub fn is_mutable(&self) -> bool {
        self.alias.as_ref().is_some_and(|alias| alias.mutable)
    }

    /// Whether this is an out argument: written and keyword-only.
    pub fn is_out(&self) -> bool {
        self.kwarg_only && self.is_mutable()
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let mut starred = false;
        for (index, arg) in self.args.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if arg.kwarg_only && !starred {
                starred = true;
                f.write_str("*, ")?;
            }
            write!(f, "{arg}")?;
        }
        f.write_str(") -> ")?;
        if let [only] = self.returns.as_slice() {
            return write!(f, "{only}");
        }
        f.write_str("(")?;
        for (index, ret) in self.returns.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{ret}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ty.write(f, self.alias.as_ref())?;
        write!(f, " {}", self.name)?;
        match &self.default {
            Some(default) => write!(f, "={default}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Return {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ty.write(f, self.alias.as_ref())?;
        match &self.name {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}
