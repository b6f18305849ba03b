//! Types of arguments and of expressions.
//!
//! In: the table of types that arguments have, of `opsmith_core`. Out: [`Kind`], which has these and the types of
//! expressions. Must not know how code spells them.

use std::fmt;

use opsmith_core::ArgKind;
pub use opsmith_core::ItemKind;

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    /// Its kind.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
}

/// The types of arguments, and those that only expressions have.
macro_rules! kinds {
    ($({
        $variant:ident $(($parameter:ty: $name:ident))?, $spelling:literal, $access:ident, $noun:literal,
        $meaning:literal
    })*) => {
        /// The type of a value, if it is there.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        pub enum Kind {
            $(#[doc = $meaning] $variant $(($parameter))?,)*
            /// A type of another project, by its name there; only signatures of supplied operators have it.
            Foreign(String),
            /// The literal `None` (expressions only).
            None,
            /// No value (expressions only).
            Unit,
            /// Several values (expressions only).
            Tuple(Vec<Ty>),
            /// One element of a tensor (pointwise expressions only).
            Element,
            /// The real part of one element (pointwise expressions only).
            RealElement,
        }

        impl Kind {
            /// The type of an argument; `None` if no argument has it.
            pub fn argument(&self) -> Option<ArgKind> {
                Some(match self {
                    $(Kind::$variant $(($name))? => ArgKind::$variant $((*$name))?,)*
                    Kind::Foreign(_)
                    | Kind::None
                    | Kind::Unit
                    | Kind::Tuple(_)
                    | Kind::Element
                    | Kind::RealElement => return None,
                })
            }
        }

        impl From<ArgKind> for Kind {
            fn from(kind: ArgKind) -> Kind {
                match kind { $(ArgKind::$variant $(($name))? => Kind::$variant $(($name))?,)* }
            }
        }
    };
}

opsmith_core::for_each_kind!(kinds);

impl Kind {
    /// The type of a list's items; a row, of a list of lists. `None` for other types.
    pub fn item(&self) -> Option<Ty> {
        Some(Ty::new(match self {
            Kind::Tensors => Kind::Tensor,
            Kind::OptionalTensors => return Some(Ty::new(Kind::Tensor).or_none()),
            Kind::Ints(_) => Kind::Int,
            Kind::Floats => Kind::Float,
            Kind::Bools(_) => Kind::Bool,
            Kind::Scalars => Kind::Scalar,
            Kind::Strs => Kind::Str,
            Kind::DTypes => Kind::DType,
            Kind::Lists(item) => item.list().into(),
            _ => return None,
        }))
    }
}

impl Ty {
    /// A type that is always there.
    pub fn new(kind: Kind) -> Ty {
        Ty { kind, optional: false }
    }

    /// The same type, possibly absent.
    pub fn or_none(self) -> Ty {
        Ty { optional: true, ..self }
    }

    /// The same type, always there.
    pub fn required(&self) -> Ty {
        Ty { kind: self.kind.clone(), optional: false }
    }

    /// Whether it is a tensor, always there.
    pub fn is_tensor(&self) -> bool {
        self.kind == Kind::Tensor && !self.optional
    }

    /// Whether it is a tensor, an optional one or a list of them.
    pub fn holds_tensors(&self) -> bool {
        matches!(self.kind, Kind::Tensor | Kind::Tensors | Kind::OptionalTensors)
    }

    /// Whether it holds several values.
    pub fn is_list(&self) -> bool {
        self.kind.item().is_some()
    }

    /// Whether it is a plain number or truth value.
    pub fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Int | Kind::Float | Kind::Scalar | Kind::Bool) && !self.optional
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Lists(item) => write!(f, "{}[][]", item.kind().spelling())?,
            Kind::Foreign(name) => f.write_str(name)?,
            Kind::None => f.write_str("None")?,
            Kind::Unit => f.write_str("()")?,
            Kind::Tuple(items) => {
                let items: Vec<String> = items.iter().map(Ty::to_string).collect();
                write!(f, "({})", items.join(", "))?;
            }
            Kind::Element => f.write_str("element")?,
            Kind::RealElement => f.write_str("real element")?,
            kind => f.write_str(kind.argument().map_or("", ArgKind::spelling))?,
        }
        if self.optional { f.write_str("?") } else { Ok(()) }
    }
}
