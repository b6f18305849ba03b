//! Rules for `dtype:` and `compute:`.

use opsmith_core::{DType, DTypeCategory};

use super::{DEFAULT_FLOAT, Operand};
use crate::error::{Error, Result};
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
    let mut found: Option<DType> = None;
    let mut check = |tensor: &Tensor| match found {
        Some(dtype) if dtype != tensor.dtype() => {
            Err(Error::dtype(format!("the operands have different dtypes, {dtype} and {}", tensor.dtype()))
                .with_help("convert one of them; this operator does not promote"))
        }
        _ => {
            found = Some(tensor.dtype());
            Ok(())
        }
    };
    for operand in operands {
        match operand {
            Operand::Tensor(tensor) => check(tensor)?,
            Operand::Tensors(tensors) => tensors.iter().try_for_each(&mut check)?,
            Operand::Scalar(_) | Operand::Absent => {}
        }
    }
    Ok(found.unwrap_or(DEFAULT_FLOAT))
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
        _ => promote_mixed(operands),
    }
}

fn promote_mixed(operands: &[Operand<'_>]) -> Result<DType> {
    let (mut dimensioned, mut zero_dim, mut wrapped) = (None, None, None);
    let mut add = |tensor: &Tensor| {
        join(if tensor.dim() > 0 { &mut dimensioned } else { &mut zero_dim }, tensor.dtype())
    };
    for operand in operands {
        match operand {
            Operand::Tensor(tensor) => add(tensor)?,
            Operand::Tensors(tensors) => tensors.iter().try_for_each(&mut add)?,
            Operand::Scalar(scalar) => join(&mut wrapped, scalar.dtype())?,
            Operand::Absent => {}
        }
    }
    let result = combine(dimensioned, zero_dim)?;
    let result = combine(result, wrapped)?;
    Ok(result.unwrap_or(DEFAULT_FLOAT))
}

fn join(slot: &mut Option<DType>, dtype: DType) -> Result<()> {
    *slot = Some(match *slot {
        Some(known) => promote_pair(known, dtype)?,
        None => dtype,
    });
    Ok(())
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
        Error::dtype(format!("{a} and {b} have no common dtype")).with_help("convert one of them")
    })
}

/// The operands' promoted dtype; an integer or bool result becomes the default float.
///
/// # Errors
/// As [`promote`].
#[inline]
pub fn promote_float(operands: &[Operand<'_>]) -> Result<DType> {
    let dtype = promote(operands)?;
    Ok(if dtype.category() < DTypeCategory::Float { DEFAULT_FLOAT } else { dtype })
}

/// The dtype of the input's real part.
pub fn real(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype().to_real())
}

/// The complex dtype whose parts hold the input's elements.
pub fn complex(tensor: &Tensor) -> Result<DType> {
    Ok(tensor.dtype().to_complex())
}

/// The given dtype, else `int64` for integers and bool, else the input's.
pub fn accumulate(tensor: &Tensor, dtype: Option<DType>) -> Result<DType> {
    Ok(dtype.unwrap_or(if tensor.dtype().category() < DTypeCategory::Float {
        DType::I64
    } else {
        tensor.dtype()
    }))
}

/// The given dtype, else the default float.
pub fn or_default(dtype: Option<DType>) -> Result<DType> {
    Ok(dtype.unwrap_or(DEFAULT_FLOAT))
}
