//! Element types as the interface names and numbers them.
//!
//! In: [`DType`]s. Out: the names that kernels compare with (`"float32"`), the numbers that they infer
//! (`43`), and back. Must not know tensors.

use std::ffi::CStr;

use opsmith_core::DType;

/// Every dtype with its name and its number among the interface's types. Other numbers and names exist
/// there (float8, int4, text); no tensor here has them.
const TABLE: [(DType, &CStr, i32); DType::COUNT] = [
    (DType::Bool, c"bool", 30),
    (DType::I8, c"int8", 32),
    (DType::I16, c"int16", 33),
    (DType::I32, c"int32", 34),
    (DType::I64, c"int64", 35),
    (DType::U8, c"uint8", 37),
    (DType::U16, c"uint16", 38),
    (DType::U32, c"uint32", 39),
    (DType::U64, c"uint64", 40),
    (DType::F16, c"float16", 42),
    (DType::F32, c"float32", 43),
    (DType::F64, c"float64", 44),
    (DType::BF16, c"bfloat16", 45),
    (DType::C64, c"complex64", 51),
    (DType::C128, c"complex128", 52),
];

/// What kernels see in place of a dtype for an input that is absent.
pub(super) const ABSENT: &CStr = c"none";

/// The name that kernels see.
pub(super) fn name(dtype: DType) -> &'static CStr {
    row(dtype).1
}

/// The number that `FInferType` gives and takes.
pub(super) fn type_id(dtype: DType) -> i32 {
    row(dtype).2
}

/// The dtype of a number that `FInferType` gave.
pub(super) fn of_type_id(id: i32) -> Option<DType> {
    TABLE.iter().find(|row| row.2 == id).map(|row| row.0)
}

/// The dtype of a name in a registration record, such as `float32`.
pub(super) fn of_name(name: &str) -> Option<DType> {
    TABLE.iter().find(|row| row.1.to_bytes() == name.as_bytes()).map(|row| row.0)
}

fn row(dtype: DType) -> &'static (DType, &'static CStr, i32) {
    // The table has every dtype (a test asks), in the order of the numbers.
    TABLE.iter().find(|row| row.0 == dtype).unwrap_or(&TABLE[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_name_and_a_number() {
        for dtype in DType::ALL {
            assert_eq!(row(dtype).0, dtype);
            assert_eq!(of_type_id(type_id(dtype)), Some(dtype));
            assert_eq!(of_name(name(dtype).to_str().unwrap()), Some(dtype));
        }
    }
}
