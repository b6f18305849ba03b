//! Rules for `dtype:` and `compute:`.
//!
//! In: dtypes of operands, and whether they are tensors with dimensions. Out: a dtype. The public functions take a
//! call's operands; those of `of` are the rules themselves, shared with `symbolic::rules`.

use opsmith_core::DType;

use super::{DEFAULT_FLOAT, Operand};
use crate::error::Result;
use crate::tensor::Tensor;

/// The dtype of the given input.
pub fn follow(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype())
}

/// The dtype all operands share.
///
/// # Errors
/// If two differ.
pub fn same(operands: &[Operand<'_>]) -> Result<DType> {
    of::same(operands.iter().flat_map(Operand::types))
}

/// The operands' promoted dtype, as PyTorch defines it: tensors with dimensions decide; tensors
/// without dimensions, then numbers, only count if their category is higher.
///
/// `int32` with the number 1 is `int32`, with 1.5 `float32`; `float16` with a `float64` tensor
/// without dimensions is `float16`. Where PyTorch's result has two 16-bit parts, it is
/// `complex64` here.
///
/// # Errors
/// If PyTorch defines no promotion for a pair.
pub fn promote(operands: &[Operand<'_>]) -> Result<DType> {
    let mut first = None;
    let uniform = operands.iter().all(|operand| match operand {
        Operand::Tensor(tensor) => *first.get_or_insert(tensor.dtype()) == tensor.dtype(),
        _ => false,
    });
    match first {
        Some(dtype) if uniform => Ok(dtype),
        _ => of::promote(operands.iter().flat_map(Operand::types)),
    }
}

/// The operands' promoted dtype; an integer or bool result becomes the default float.
///
/// # Errors
/// As [`promote`].
#[inline]
pub fn promote_float(operands: &[Operand<'_>]) -> Result<DType> {
    Ok(of::floating(promote(operands)?))
}

/// The dtype of the input's real part.
pub fn real(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype().to_real())
}

/// The dtype in which kernels compute with the input's elements.
pub fn opmath(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype().to_compute())
}

/// The complex dtype whose parts hold the input's elements.
pub fn complex(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype().to_complex())
}

/// The given dtype, else `int64` for integers and bool, else the input's.
pub fn accumulate(tensor: &Tensor, dtype: Option<DType>) -> Result<DType> {
    Ok(of::accumulate(tensor.dtype(), dtype))
}

/// The given dtype, else the default float.
pub fn or_default(dtype: Option<DType>) -> Result<DType> {
    Ok(dtype.unwrap_or(DEFAULT_FLOAT))
}

/// The rules over descriptions of operands.
pub(super) mod of {
    use opsmith_core::{DType, DTypeCategory};

    use crate::error::{Error, Result};
    use crate::infer::{DEFAULT_FLOAT, Priority, TypedOperand};

    pub fn same(operands: impl Iterator<Item = TypedOperand>) -> Result<DType> {
        let mut tensors = operands.filter(|operand| operand.priority != Priority::Number);
        let Some(TypedOperand { dtype, .. }) = tensors.next() else { return Ok(DEFAULT_FLOAT) };
        match tensors.find(|operand| operand.dtype != dtype) {
            None => Ok(dtype),
            Some(other) => {
                Err(Error::dtype(format!("the operands have different dtypes, {dtype} and {}", other.dtype))
                    .with_help("convert one of them; this operator does not promote"))
            }
        }
    }

    pub fn promote(operands: impl Iterator<Item = TypedOperand>) -> Result<DType> {
        // Indexed by priority, the highest first.
        let mut found = [None; 3];
        for TypedOperand { dtype, priority } in operands {
            let slot = &mut found[priority as usize];
            *slot = Some(match *slot {
                Some(known) => promote_pair(known, dtype)?,
                None => dtype,
            });
        }
        let [dimensioned, zero_dim, numbers] = found;
        let result = combine(combine(dimensioned, zero_dim)?, numbers)?;
        Ok(result.unwrap_or(DEFAULT_FLOAT))
    }

    /// The higher-priority dtype, unless the lower one's category is higher.
    fn combine(high: Option<DType>, low: Option<DType>) -> Result<Option<DType>> {
        Ok(match (high, low) {
            (Some(high), Some(low)) if low.category() > high.category() => Some(match high {
                DType::Bool => promote_pair(high, low)?,
                // A complex number keeps the precision of the floats it meets.
                _ if low.is_complex() && high.is_float() => high.to_complex(),
                _ => low,
            }),
            (Some(high), _) => Some(high),
            (None, low) => low,
        })
    }

    fn promote_pair(a: DType, b: DType) -> Result<DType> {
        opsmith_core::promote(a, b).ok_or_else(|| {
            let help = match [a, b].into_iter().find(|dtype| dtype.is_stored()) {
                Some(stored) => format!(
                    "a dtype that only stores is promoted with no other: convert it first, as with `to({})`",
                    stored.to_computing()
                ),
                None => "convert one of them".to_owned(),
            };
            Error::dtype(format!("{a} and {b} have no common dtype")).with_help(help)
        })
    }

    /// The default float for an integer or bool, else the dtype itself.
    pub fn floating(dtype: DType) -> DType {
        if dtype.category() < DTypeCategory::Float { DEFAULT_FLOAT } else { dtype }
    }

    pub fn accumulate(dtype: DType, wanted: Option<DType>) -> DType {
        wanted.unwrap_or(if dtype.category() < DTypeCategory::Float { DType::I64 } else { dtype })
    }
}
