//! Element types and named sets of them.

use std::fmt;

/// The element type of a tensor.
///
/// Names follow PyTorch and NumPy (`float32`, `complex64`, …).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// Truth value, one byte, 0 or 1.
    Bool = 0,
    /// Unsigned 8-bit integer.
    U8 = 1,
    /// Unsigned 16-bit integer.
    U16 = 2,
    /// Unsigned 32-bit integer.
    U32 = 3,
    /// Unsigned 64-bit integer.
    U64 = 4,
    /// Signed 8-bit integer.
    I8 = 5,
    /// Signed 16-bit integer.
    I16 = 6,
    /// Signed 32-bit integer.
    I32 = 7,
    /// Signed 64-bit integer.
    I64 = 8,
    /// IEEE 754 binary16.
    F16 = 9,
    /// bfloat16: the upper half of a binary32.
    BF16 = 10,
    /// IEEE 754 binary32.
    F32 = 11,
    /// IEEE 754 binary64.
    F64 = 12,
    /// Two binary32: real and imaginary part.
    C64 = 13,
    /// Two binary64: real and imaginary part.
    C128 = 14,
}

/// The four categories that type promotion orders: `Bool < Int < Float < Complex`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DTypeCategory {
    /// `bool`.
    Bool,
    /// Signed and unsigned integers.
    Int,
    /// Floating point.
    Float,
    /// Complex floating point.
    Complex,
}

impl DType {
    /// Every element type, in the order of dispatch tables.
    pub const ALL: [DType; 15] = [
        DType::Bool,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ];
    /// How many element types there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The public name, e.g. `float32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
        }
    }

    /// The dtype of a public name; also accepts PyTorch's short spellings (`float`, `double`,
    /// `half`, `long`, `int`, `short`, `cfloat`, `cdouble`).
    pub fn from_name(name: &str) -> Option<DType> {
        let short = match name {
            "float" => Some(DType::F32),
            "double" => Some(DType::F64),
            "half" => Some(DType::F16),
            "long" => Some(DType::I64),
            "int" => Some(DType::I32),
            "short" => Some(DType::I16),
            "cfloat" => Some(DType::C64),
            "cdouble" => Some(DType::C128),
            _ => None,
        };
        short.or_else(|| Self::ALL.into_iter().find(|dtype| dtype.name() == name))
    }

    /// The variant's identifier, e.g. `F32`.
    pub const fn ident(self) -> &'static str {
        match self {
            DType::Bool => "Bool",
            DType::U8 => "U8",
            DType::U16 => "U16",
            DType::U32 => "U32",
            DType::U64 => "U64",
            DType::I8 => "I8",
            DType::I16 => "I16",
            DType::I32 => "I32",
            DType::I64 => "I64",
            DType::F16 => "F16",
            DType::BF16 => "BF16",
            DType::F32 => "F32",
            DType::F64 => "F64",
            DType::C64 => "C64",
            DType::C128 => "C128",
        }
    }

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::U16 | DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// Position in dispatch tables.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The promotion category.
    pub const fn category(self) -> DTypeCategory {
        match self {
            DType::Bool => DTypeCategory::Bool,
            DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64 => DTypeCategory::Int,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => DTypeCategory::Float,
            DType::C64 | DType::C128 => DTypeCategory::Complex,
        }
    }

    /// True for the four real floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self.category(), DTypeCategory::Float)
    }

    /// True for the two complex types.
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), DTypeCategory::Complex)
    }

    /// True for integers; false for `bool`.
    pub const fn is_int(self) -> bool {
        matches!(self.category(), DTypeCategory::Int)
    }

    /// True for the types a gradient can have: floating point and complex.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The type of the real part: `complex64` gives `float32`; other types give themselves.
    pub const fn to_real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The type that its elements compute in: `float32` for the 16-bit floats; other types give themselves.
    pub const fn to_compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            other => other,
        }
    }

    /// The complex type with this precision: `float64` gives `complex128`; every other real type
    /// gives `complex64`.
    pub const fn to_complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of element types, as a bit per [`DType::index`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DTypeSet(pub u16);

impl DTypeSet {
    /// The set without members.
    pub const EMPTY: DTypeSet = DTypeSet(0);

    /// The sets a spec can name in `dtypes:`, with their members.
    pub const NAMED: [(&'static str, DTypeSet); 9] = [
        ("all", Self::where_category(true, true, true, true)),
        ("numeric", Self::where_category(false, true, true, true)),
        ("real", Self::where_category(true, true, true, false)),
        ("real_numeric", Self::where_category(false, true, true, false)),
        ("integral", Self::where_category(true, true, false, false)),
        ("integer", Self::where_category(false, true, false, false)),
        ("floating", Self::where_category(false, false, true, false)),
        ("complex", Self::where_category(false, false, false, true)),
        ("inexact", Self::where_category(false, false, true, true)),
    ];

    const fn where_category(boolean: bool, int: bool, float: bool, complex: bool) -> DTypeSet {
        let mut bits = 0;
        let mut index = 0;
        while index < DType::COUNT {
            let dtype = DType::ALL[index];
            let keep = match dtype.category() {
                DTypeCategory::Bool => boolean,
                DTypeCategory::Int => int,
                DTypeCategory::Float => float,
                DTypeCategory::Complex => complex,
            };
            if keep {
                bits |= 1 << dtype.index();
            }
            index += 1;
        }
        DTypeSet(bits)
    }

    /// The set a spec calls `name`, or the single dtype of that name.
    pub fn from_name(name: &str) -> Option<DTypeSet> {
        Self::NAMED
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, set)| *set)
            .or_else(|| DType::from_name(name).map(Self::of))
    }

    /// The set with one member.
    pub const fn of(dtype: DType) -> DTypeSet {
        DTypeSet(1 << dtype.index())
    }

    /// Members of either set.
    #[must_use]
    pub const fn union(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 | other.0)
    }

    /// Members of both sets.
    #[must_use]
    pub const fn intersection(self, other: DTypeSet) -> DTypeSet {
        DTypeSet(self.0 & other.0)
    }

    /// Whether `dtype` is a member.
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & (1 << dtype.index()) != 0
    }

    /// The members in the order of [`DType::ALL`].
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |dtype| self.contains(*dtype))
    }
}
