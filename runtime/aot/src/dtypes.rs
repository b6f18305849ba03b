//! Element types as the interface names and numbers them.
//!
//! In: [`DType`]s. Out: the names that kernels compare with (`"float32"`), the numbers that they infer
//! (`43`), and back. Must not know tensors.

use std::ffi::CStr;

use opsmith_core::DType;

/// The name that kernels see in place of a dtype for an input that is absent.
pub(super) const ABSENT: &CStr = c"none";

/// The name that kernels see, which has no underscore.
pub(super) fn name(dtype: DType) -> &'static CStr {
    match dtype {
        DType::F8E4M3 => c"float8e4m3fn",
        DType::F8E5M2 => c"float8e5m2",
        dtype => dtype.c_name(),
    }
}

/// The number that `FInferType` gives and takes.
pub(super) fn type_id(dtype: DType) -> i32 {
    dtype.custom_number()
}

/// The dtype of a number that `FInferType` gave. Other numbers and names exist in the interface (hifloat8, text); no tensor here has
/// them. That of `uint4`, which the interface has not, is negative.
pub(super) fn of_type_id(id: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.custom_number() == id)
}

/// The dtype of a name in a registration record, such as `float32`: that of the interface, or the public one.
pub(super) fn of_name(known: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.name() == known || name(*dtype).to_bytes() == known.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_a_name_and_a_number() {
        for dtype in DType::ALL {
            assert_eq!(of_type_id(type_id(dtype)), Some(dtype));
            assert_eq!(of_name(name(dtype).to_str().unwrap()), Some(dtype));
        }
    }
}
