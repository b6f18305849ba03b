//! Types of arguments and of expressions.

use std::fmt;

/// A type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    /// What it is.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
}

/// What a value is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
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
    /// A float.
    Float,
    /// A number of any kind.
    Scalar,
    /// A text.
    Str,
    /// Integers, with a length if one integer may stand for all.
    Ints(Option<u32>),
    /// Floats.
    Floats,
    /// Truth values.
    Bools(Option<u32>),
    /// Numbers of any kind.
    Scalars,
    /// Texts.
    Strs,
    /// Element types.
    DTypes,
    /// A list of lists of this.
    Lists(Item),
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
    /// A type of another project, by its name there; only signatures of what it supplies have it.
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

/// Type of the items of a list of lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// A truth value.
    Bool,
    /// An integer.
    Int,
    /// A float.
    Float,
    /// A number of any kind.
    Scalar,
    /// A text.
    Str,
    /// An element type.
    DType,
}

impl Item {
    /// Every one.
    pub const ALL: [Item; 6] = [Item::Bool, Item::Int, Item::Float, Item::Scalar, Item::Str, Item::DType];

    /// One such value.
    pub fn kind(self) -> Kind {
        match self {
            Item::Bool => Kind::Bool,
            Item::Int => Kind::Int,
            Item::Float => Kind::Float,
            Item::Scalar => Kind::Scalar,
            Item::Str => Kind::Str,
            Item::DType => Kind::DType,
        }
    }

    /// A list of such values.
    pub fn list(self) -> Kind {
        match self {
            Item::Bool => Kind::Bools(None),
            Item::Int => Kind::Ints(None),
            Item::Float => Kind::Floats,
            Item::Scalar => Kind::Scalars,
            Item::Str => Kind::Strs,
            Item::DType => Kind::DTypes,
        }
    }
}

impl Kind {
    /// The type of a list's items; a row, of a list of lists. `None` for what is no list.
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
            Kind::Lists(item) => item.list(),
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
            Kind::Tensor => f.write_str("Tensor")?,
            Kind::Tensors => f.write_str("Tensor[]")?,
            Kind::OptionalTensors => f.write_str("Tensor?[]")?,
            Kind::Bool => f.write_str("bool")?,
            Kind::Int => f.write_str("int")?,
            Kind::Float => f.write_str("float")?,
            Kind::Scalar => f.write_str("Scalar")?,
            Kind::Str => f.write_str("str")?,
            Kind::Ints(_) => f.write_str("int[]")?,
            Kind::Floats => f.write_str("float[]")?,
            Kind::Bools(_) => f.write_str("bool[]")?,
            Kind::Scalars => f.write_str("Scalar[]")?,
            Kind::Strs => f.write_str("str[]")?,
            Kind::DTypes => f.write_str("dtype[]")?,
            Kind::Lists(item) => write!(f, "{}[][]", Ty::new(item.kind()))?,
            Kind::DType => f.write_str("dtype")?,
            Kind::Device => f.write_str("Device")?,
            Kind::MemoryFormat => f.write_str("MemoryFormat")?,
            Kind::MemoryLayout => f.write_str("Layout")?,
            Kind::Generator => f.write_str("Generator")?,
            Kind::Foreign(name) => f.write_str(name)?,
            Kind::None => f.write_str("None")?,
            Kind::Unit => f.write_str("()")?,
            Kind::Tuple(items) => {
                let items: Vec<String> = items.iter().map(Ty::to_string).collect();
                write!(f, "({})", items.join(", "))?;
            }
            Kind::Element => f.write_str("element")?,
            Kind::RealElement => f.write_str("real element")?,
        }
        if self.optional { f.write_str("?") } else { Ok(()) }
    }
}
