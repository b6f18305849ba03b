//! Default values of arguments.

use std::fmt;
use std::ops::Range;

/// A default, as text and as a value.
#[derive(Clone, PartialEq, Debug)]
pub struct ArgumentDefault {
    /// The value.
    pub value: DefaultValue,
    /// The exact text, such as `1e-05` or `"L"`.
    pub text: String,
    /// The bytes of the text in the signature.
    pub range: Range<usize>,
}

/// The value of a default, checked against the argument's type.
#[derive(Clone, PartialEq, Debug)]
pub enum DefaultValue {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// `1`, `-100`
    Int(i64),
    /// `0.5`, `1e-05`
    Float(f64),
    /// `'linear'`, `"L"`, without quotes and escapes
    Str(String),
    /// `[]`, `[-2,-1]`, `[True, False]`
    List(Vec<DefaultValue>),
    /// A named constant: `Mean`, `long`, `contiguous_format`
    Ident(String),
}

/// Names of integers, numbered as the enumerations of the C++ library.
pub const INT_CONSTANTS: &[(&str, i64)] = &[("Mean", 1), ("Sum", 2)];

impl DefaultValue {
    /// The integers of a list of integers.
    pub fn as_int_list(&self) -> Option<Vec<i64>> {
        match self {
            DefaultValue::List(items) => items.iter().map(DefaultValue::as_int).collect(),
            _ => None,
        }
    }

    /// The integer, a named one included.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            DefaultValue::Int(value) => Some(*value),
            DefaultValue::Ident(name) => {
                INT_CONSTANTS.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
            }
            _ => None,
        }
    }

    /// The kind of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            DefaultValue::None => "`None`",
            DefaultValue::Bool(_) => "a truth value",
            DefaultValue::Int(_) => "an integer",
            DefaultValue::Float(_) => "a float",
            DefaultValue::Str(_) => "a string",
            DefaultValue::List(_) => "a list",
            DefaultValue::Ident(_) => "a name",
        }
    }
}

impl fmt::Display for ArgumentDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
