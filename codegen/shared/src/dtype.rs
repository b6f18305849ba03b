//! Element types and named sets of them.
//!
//! In: nothing. Out: the table of element types, from which the enum, its names and its codes in file formats and
//! interfaces follow, also in other crates. Nothing here knows tensors.

use std::ffi::CStr;
use std::fmt;

/// Calls a macro with the table of element types, a row in braces for each, in the order of dispatch tables.
///
/// `for_each_dtype!(rows)` calls `rows!`; `for_each_dtype!([a, b] rows)` calls it with `[a, b]` before the rows.
/// Columns: variant, Rust type, public name, kind of number (`Half` for a float that computes in `f32`, `Stored` for one
/// that only stores: no kernel computes with it, `Signed4` and `Unsigned4` for integers of four bits, which only store, a
/// byte each), bytes of an element, code in NumPy (`""` if it has none), name in
/// safetensors (of a part, if complex), number in the interface of custom kernels, meaning. A new row is the last: its
/// position is its number in the C interface.
#[macro_export]
macro_rules! for_each_dtype {
    (@table [$($given:tt)*] $($then:tt)+) => {
        $($then)+! {
            $($given)*
            { Bool: bool, "bool", Bool, 1, "b1", BOOL, 30, "Truth value, one byte, 0 or 1." }
            { U8: u8, "uint8", Unsigned, 1, "u1", U8, 37, "Unsigned 8-bit integer." }
            { U16: u16, "uint16", Unsigned, 2, "u2", U16, 38, "Unsigned 16-bit integer." }
            { U32: u32, "uint32", Unsigned, 4, "u4", U32, 39, "Unsigned 32-bit integer." }
            { U64: u64, "uint64", Unsigned, 8, "u8", U64, 40, "Unsigned 64-bit integer." }
            { I8: i8, "int8", Signed, 1, "i1", I8, 32, "Signed 8-bit integer." }
            { I16: i16, "int16", Signed, 2, "i2", I16, 33, "Signed 16-bit integer." }
            { I32: i32, "int32", Signed, 4, "i4", I32, 34, "Signed 32-bit integer." }
            { I64: i64, "int64", Signed, 8, "i8", I64, 35, "Signed 64-bit integer." }
            { F16: half::f16, "float16", Half, 2, "f2", F16, 42, "IEEE 754 binary16." }
            { BF16: half::bf16, "bfloat16", Half, 2, "", BF16, 45, "bfloat16: the upper half of a binary32." }
            { F32: f32, "float32", Float, 4, "f4", F32, 43, "IEEE 754 binary32." }
            { F64: f64, "float64", Float, 8, "f8", F64, 44, "IEEE 754 binary64." }
            { C64: num_complex::Complex32, "complex64", Complex, 8, "c8", F32, 51, "Two binary32: real and imaginary part." }
            { C128: num_complex::Complex64, "complex128", Complex, 16, "c16", F64, 52, "Two binary64: real and imaginary part." }
            { F8E4M3: opsmith_core::Float8E4M3, "float8_e4m3fn", Stored, 1, "", F8_E4M3, 46, "8-bit float, 4 bits of exponent; no infinity." }
            { F8E5M2: opsmith_core::Float8E5M2, "float8_e5m2", Stored, 1, "", F8_E5M2, 47, "8-bit float, 5 bits of exponent: the upper half of a binary16." }
            { I4: opsmith_core::Int4, "int4", Signed4, 1, "", I8, 53, "Signed 4-bit integer, in a byte of its own." }
            { U4: opsmith_core::UInt4, "uint4", Unsigned4, 1, "", U8, -4, "Unsigned 4-bit integer, in a byte of its own." }
        }
    };
    ([$($given:tt)*] $($then:tt)+) => {
        $crate::for_each_dtype! { @table [[$($given)*]] $($then)+ }
    };
    ($($then:tt)+) => {
        $crate::for_each_dtype! { @table [] $($then)+ }
    };
}

/// The category of a kind of number.
macro_rules! category {
    (Bool) => {
        DTypeCategory::Bool
    };
    (Unsigned) => {
        DTypeCategory::Int
    };
    (Signed) => {
        DTypeCategory::Int
    };
    (Half) => {
        DTypeCategory::Float
    };
    (Float) => {
        DTypeCategory::Float
    };
    (Complex) => {
        DTypeCategory::Complex
    };
    (Stored) => {
        DTypeCategory::Float
    };
    (Signed4) => {
        DTypeCategory::Int
    };
    (Unsigned4) => {
        DTypeCategory::Int
    };
}

/// Whether a kind of number is that of floats that compute in `f32`.
macro_rules! is_half {
    (Half) => {
        true
    };
    ($other:ident) => {
        false
    };
}

/// The enum and the columns of the table as its functions.
macro_rules! dtypes {
    ($({
        $variant:ident: $rust:ty, $name:literal, $kind:ident, $size:literal, $numpy:literal, $safetensors:ident,
        $number:literal, $meaning:literal
    })*) => {
        /// The element type of a tensor.
        ///
        /// Names follow PyTorch and NumPy (`float32`, `complex64`, …).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum DType {
            $(#[doc = $meaning] $variant,)*
        }

        impl DType {
            /// Every element type, in the order of dispatch tables.
            pub const ALL: [DType; [$($size),*].len()] = [$(DType::$variant),*];

            /// The public name, e.g. `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The public name as C has it.
            pub const fn c_name(self) -> &'static CStr {
                let bytes = match self { $(DType::$variant => concat!($name, "\0").as_bytes(),)* };
                match CStr::from_bytes_with_nul(bytes) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zero inside"),
                }
            }

            /// The variant's identifier, e.g. `F32`.
            pub const fn ident(self) -> &'static str {
                match self { $(DType::$variant => stringify!($variant),)* }
            }

            /// The path of the Rust type of an element, e.g. `f32` or `half :: f16`; blanks mean nothing.
            pub const fn rust_type(self) -> &'static str {
                match self { $(DType::$variant => stringify!($rust),)* }
            }

            /// Size of one element in bytes.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => $size,)* }
            }

            /// Whether elements are floats that compute in `f32`.
            pub const fn is_half(self) -> bool {
                match self { $(DType::$variant => is_half!($kind),)* }
            }

            /// Whether elements are only stored and converted: kernels compute with another dtype.
            pub const fn is_stored(self) -> bool {
                match self { $(DType::$variant => matches!(stringify!($kind).as_bytes(), b"Stored" | b"Signed4" | b"Unsigned4"),)* }
            }

            /// The promotion category.
            pub const fn category(self) -> DTypeCategory {
                match self { $(DType::$variant => category!($kind),)* }
            }

            /// True for integers without a sign.
            pub const fn is_unsigned(self) -> bool {
                match self { $(DType::$variant => matches!(stringify!($kind).as_bytes(), b"Unsigned" | b"Unsigned4"),)* }
            }

            /// The bits of an element that carry its value: those of its bytes, or four.
            pub const fn bits(self) -> u32 {
                match self {
                    $(DType::$variant => match stringify!($kind).as_bytes() {
                        b"Signed4" | b"Unsigned4" => 4,
                        _ => 8 * $size,
                    },)*
                }
            }

            /// The code of NumPy without byte order, e.g. `f4`; `None` for `bfloat16`.
            pub const fn numpy_code(self) -> Option<&'static str> {
                match self { $(DType::$variant => if $numpy.is_empty() { None } else { Some($numpy) },)* }
            }

            /// The number in the interface of custom kernels.
            pub const fn custom_number(self) -> i32 {
                match self { $(DType::$variant => $number,)* }
            }
        }
    };
}

for_each_dtype!(dtypes);

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
    /// How many element types there are.
    pub const COUNT: usize = Self::ALL.len();

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

    /// Position in dispatch tables.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// True for the real floating-point types, also for those that only store.
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

    /// True for the types a gradient can have: floating point, unless it only stores, and complex.
    pub const fn is_differentiable(self) -> bool {
        (self.is_float() || self.is_complex()) && !self.is_stored()
    }

    /// The type of the real part: `complex64` gives `float32`; other types give themselves.
    pub const fn to_real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The type that its elements compute in: `float32` for the 16-bit floats and for floats that only store, `int64` for
    /// integers that only store; other types give themselves.
    pub const fn to_compute(self) -> DType {
        match self.category() {
            DTypeCategory::Int if self.is_stored() => DType::I64,
            DTypeCategory::Float if self.is_half() || self.is_stored() => DType::F32,
            _ => self,
        }
    }

    /// The type to convert to for arithmetic: `float32` for floats that only store, `int8` and `uint8` for integers that do;
    /// other types give themselves.
    pub const fn to_computing(self) -> DType {
        match self.category() {
            DTypeCategory::Int if self.is_stored() && self.is_unsigned() => DType::U8,
            DTypeCategory::Int if self.is_stored() => DType::I8,
            _ if self.is_stored() => DType::F32,
            _ => self,
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
pub struct DTypeSet(u32);

impl DTypeSet {
    /// The set without members.
    pub const EMPTY: DTypeSet = DTypeSet(0);

    /// Every dtype that kernels compute with: all but those that only store.
    pub const ALL: DTypeSet = Self::where_category(true, true, true, true);
    /// Every dtype, also those that only store.
    pub const STORABLE: DTypeSet = Self::ALL.union(Self::stored());
    /// All but complex ones, which have an order.
    pub const REAL: DTypeSet = Self::where_category(true, true, true, false);
    /// Bool and integers.
    pub const INTEGRAL: DTypeSet = Self::where_category(true, true, false, false);
    /// Floats and complex dtypes, which gradients can have.
    pub const INEXACT: DTypeSet = Self::where_category(false, false, true, true);

    /// The sets a spec can name in `dtypes:`, with their members.
    pub const NAMED: [(&'static str, DTypeSet); 10] = [
        ("all", Self::ALL),
        ("storable", Self::STORABLE),
        ("numeric", Self::where_category(false, true, true, true)),
        ("real", Self::REAL),
        ("real_numeric", Self::where_category(false, true, true, false)),
        ("integral", Self::INTEGRAL),
        ("integer", Self::where_category(false, true, false, false)),
        ("floating", Self::where_category(false, false, true, false)),
        ("complex", Self::where_category(false, false, false, true)),
        ("inexact", Self::INEXACT),
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
            if keep && !dtype.is_stored() {
                bits |= 1 << dtype.index();
            }
            index += 1;
        }
        DTypeSet(bits)
    }

    const fn stored() -> DTypeSet {
        let (mut set, mut index) = (DTypeSet::EMPTY, 0);
        while index < DType::COUNT {
            if DType::ALL[index].is_stored() {
                set = set.union(DTypeSet::of(DType::ALL[index]));
            }
            index += 1;
        }
        set
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

    /// Whether a set leaves out no dtype that kernels compute with.
    pub const fn has_all(self) -> bool {
        self.0 & Self::ALL.0 == Self::ALL.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_agree() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert_eq!(dtype.c_name().to_str(), Ok(dtype.name()));
            if let Some(code) = dtype.numpy_code() {
                let size: usize = code[1..].parse().expect("the bytes of an element");
                assert_eq!(size, dtype.size(), "{dtype}");
                assert_eq!(code.starts_with('u'), dtype.is_unsigned(), "{dtype}");
            }
            let alike = |other: &DType| other.custom_number() == dtype.custom_number();
            assert_eq!(DType::ALL.iter().filter(|other| alike(other)).count(), 1, "{dtype}");
        }
    }
}
