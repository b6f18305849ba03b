//! Type promotion between two element types, as PyTorch defines it.

use crate::dtype::{DType, DTypeCategory};

/// The smallest type both operands convert to, or `None` where PyTorch defines none: `uint16`,
/// `uint32` and `uint64` promote with themselves and with floats only, a dtype that only stores with itself only.
///
/// `promote(int64, float16)` is `float16`: a higher category wins whatever its width.
pub const fn promote(a: DType, b: DType) -> Option<DType> {
    if a as u8 == b as u8 {
        return Some(a);
    }
    if a.is_stored() || b.is_stored() {
        return None;
    }
    if (is_wide_unsigned(a) && !b.is_float()) || (is_wide_unsigned(b) && !a.is_float()) {
        return None;
    }
    let (low, high) = if (a.category() as u8) < (b.category() as u8) { (a, b) } else { (b, a) };
    match (low.category(), high.category()) {
        // bool gives way to everything; an integer to every float and complex type.
        (DTypeCategory::Bool, _) | (DTypeCategory::Int, DTypeCategory::Float | DTypeCategory::Complex) => {
            Some(high)
        }
        (DTypeCategory::Int, _) => Some(promote_integers(low, high)),
        (DTypeCategory::Float, DTypeCategory::Complex) => {
            Some(if matches!(low, DType::F64) { DType::C128 } else { high })
        }
        (DTypeCategory::Float, _) => Some(promote_floats(low, high)),
        (DTypeCategory::Complex, _) => Some(DType::C128),
    }
}

const fn is_wide_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U16 | DType::U32 | DType::U64)
}

const fn promote_integers(a: DType, b: DType) -> DType {
    match (a, b) {
        // A signed byte cannot hold an unsigned one.
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        _ if a.size() > b.size() => a,
        _ => b,
    }
}

const fn promote_floats(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F64, _) | (_, DType::F64) => DType::F64,
        // float16 with bfloat16: neither holds the other.
        _ => DType::F32,
    }
}

/// Whether a result of type `from` may be written into a tensor of type `to` (an `out` tensor, or
/// `self` of an in-place form): the category may not fall, except that any number may become a
/// number of the same category with less precision.
pub const fn can_cast(from: DType, to: DType) -> bool {
    match (from.category(), to.category()) {
        (DTypeCategory::Complex, category) => matches!(category, DTypeCategory::Complex),
        (DTypeCategory::Float, category) => matches!(category, DTypeCategory::Float | DTypeCategory::Complex),
        (DTypeCategory::Int, category) => !matches!(category, DTypeCategory::Bool),
        (DTypeCategory::Bool, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric_and_idempotent() {
        for a in DType::ALL {
            assert_eq!(promote(a, a), Some(a));
            for b in DType::ALL {
                assert_eq!(promote(a, b), promote(b, a), "{a} with {b}");
            }
        }
    }

    #[test]
    fn known_pairs() {
        assert_eq!(promote(DType::U8, DType::I8), Some(DType::I16));
        assert_eq!(promote(DType::U8, DType::I64), Some(DType::I64));
        assert_eq!(promote(DType::I16, DType::I32), Some(DType::I32));
        assert_eq!(promote(DType::F16, DType::BF16), Some(DType::F32));
        assert_eq!(promote(DType::F64, DType::C64), Some(DType::C128));
        assert_eq!(promote(DType::F16, DType::C64), Some(DType::C64));
        assert_eq!(promote(DType::I64, DType::F16), Some(DType::F16));
        assert_eq!(promote(DType::U16, DType::I32), None);
        assert_eq!(promote(DType::U32, DType::F32), Some(DType::F32));
        assert_eq!(promote(DType::Bool, DType::U64), None);
        assert_eq!(promote(DType::U64, DType::C64), None);
        assert_eq!(promote(DType::F8E4M3, DType::F32), None);
        assert_eq!(promote(DType::Bool, DType::F8E5M2), None);
    }
}
