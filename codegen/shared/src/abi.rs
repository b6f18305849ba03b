//! The numbers of the C interface of operator libraries: codes of errors, kinds of values, of nodes and of devices, element types.
//!
//! In: nothing. Out: constants for the library, with their names in C and their meaning for the header. Structures are in the crate
//! `opsmith-abi`, whose tests compare them with the header.

use crate::backend::Backend;
use crate::dtype::DType;

/// The version of the interface. A change that is not an addition at the end of a structure is a new one.
pub const VERSION: u32 = 1;

/// An enum of the interface, its names in C and their meaning.
macro_rules! numbers {
    (
        $(#[$attribute:meta])* $name:ident, $prefix:literal, $list:ident:
        $($variant:ident = $number:literal, $c:literal, $meaning:literal;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(i32)]
        pub enum $name {
            $(#[doc = $meaning] $variant = $number,)*
        }

        impl $name {
            /// The variant of a number.
            pub const fn from_number(number: i32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        /// The names in C, each with its number and meaning.
        pub const $list: &[(&str, i32, &str)] = &[$((concat!($prefix, $c), $number, $meaning),)*];
    };
}

numbers! {
    /// The outcome of a call.
    Code, "OPSMITH_", CODES:
    Ok = 0, "OK", "no error";
    Interface = 1, "INTERFACE", "a null pointer, a wrong number or an unknown kind: a mistake of the calling program";
    Refused = 2, "REFUSED", "the caller's own function failed";
    Shape = 3, "SHAPE", "incompatible shapes";
    DType = 4, "DTYPE", "an element type that is not supported or does not match";
    Device = 5, "DEVICE", "a tensor on the wrong device";
    Index = 6, "INDEX", "an index or dimension out of range";
    Value = 7, "VALUE", "an attribute whose value is not allowed";
    Argument = 8, "ARGUMENT", "the wrong number or type of arguments";
    Memory = 9, "MEMORY", "more memory than the system has";
    Aliasing = 10, "ALIASING", "memory shared where it may not be";
    Autograd = 11, "AUTOGRAD", "a mistake in differentiation";
    NotImplemented = 12, "NOT_IMPLEMENTED", "a kernel or derivative that does not exist";
    Other = 13, "OTHER", "another error of an operator";
    Defect = 14, "DEFECT", "a mistake in the library itself";
}

numbers! {
    /// The kind of a value.
    ValueKind, "OPSMITH_", KINDS:
    Default = 0, "DEFAULT", "the argument's default";
    None = 1, "NONE", "an absent argument";
    Tensor = 2, "TENSOR", "tensor";
    Tensors = 3, "TENSORS", "tensors";
    Bool = 4, "BOOL", "integer";
    Int = 5, "INT", "integer";
    Float = 6, "FLOAT", "real";
    Complex = 7, "COMPLEX", "parts";
    Text = 8, "TEXT", "text";
    Ints = 9, "INTS", "integers";
    Floats = 10, "FLOATS", "reals";
    Bools = 11, "BOOLS", "truths";
    Texts = 12, "TEXTS", "texts";
}

numbers! {
    /// The kind of a node.
    NodeKind, "OPSMITH_NODE_", NODES:
    Number = 0, "NUMBER", "the number a";
    Symbol = 1, "SYMBOL", "the symbol a";
    Fresh = 2, "FRESH", "a size that is known after the run, from a to b; b is -1 without a bound";
    Add = 3, "ADD", "nodes";
    Multiply = 4, "MULTIPLY", "nodes";
    Quotient = 5, "QUOTIENT", "nodes; rounded toward zero";
    Remainder = 6, "REMAINDER", "nodes; with the sign of a";
    Maximum = 7, "MAXIMUM", "nodes";
    Minimum = 8, "MINIMUM", "nodes";
    Equal = 9, "EQUAL", "nodes; a condition, as those below";
    Less = 10, "LESS", "nodes";
    Not = 11, "NOT", "the condition a";
    And = 12, "AND", "two conditions";
    Or = 13, "OR", "two conditions";
}

numbers! {
    /// The kind of a device, as DLPack numbers it.
    DeviceKind, "OPSMITH_DEVICE_", DEVICES:
    Host = 1, "HOST", "the host";
    Cuda = 2, "CUDA", "a device of CUDA";
}

impl DeviceKind {
    /// The kind of a backend's devices.
    pub const fn of(backend: Backend) -> DeviceKind {
        match backend {
            Backend::Cpu => DeviceKind::Host,
            Backend::Cuda => DeviceKind::Cuda,
        }
    }

    /// The backend of devices of the kind.
    pub const fn backend(self) -> Backend {
        match self {
            DeviceKind::Host => Backend::Cpu,
            DeviceKind::Cuda => Backend::Cuda,
        }
    }
}

/// The number of a category and the bits of an element, as DLPack has them.
pub const fn element(dtype: DType) -> (u8, u8) {
    let code = match dtype {
        DType::Bool => 6,
        DType::BF16 => 4,
        DType::F8E4M3 => 10,
        DType::F8E5M2 => 12,
        DType::C64 | DType::C128 => 5,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::U4 => 1,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::I4 => 0,
    };
    (code, dtype.bits() as u8)
}

/// The element type of a category and bits.
pub fn dtype(code: u8, bits: u8) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| element(*dtype) == (code, bits))
}
