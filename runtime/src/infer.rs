//! The named inference rules: shapes and dtypes of results from those of operands.
//!
//! Every rule of `opsmith_core::rules` is a function here under its own name.

use opsmith_core::{DType, DTypeCategory};
use smallvec::SmallVec;

use crate::arg::Arg;
use crate::device::Device;
use crate::error::{Error, Result, ShapeText};
use crate::layout::{Dims, checked_numel, wrap_dim};
use crate::scalar::Scalar;
use crate::tensor::Tensor;

/// The dtype of results of factories and of integer arguments to functions that give floats.
pub const DEFAULT_FLOAT: DType = DType::F32;

/// Rules for `shape:`.
pub mod shape {
    use super::*;

    /// The shape of the given input.
    pub fn follow(tensor: &Tensor) -> Result<Dims> {
        Ok(tensor.shape().into())
    }

    /// The shapes of the operands, broadcast together: aligned at the last dimension, sizes must be
    /// equal or 1.
    ///
    /// `broadcast` of (2, 1) and (3) is (2, 3). Numbers and absent operands count for nothing; without
    /// a tensor the result is ().
    ///
    /// # Errors
    /// If two sizes differ and neither is 1, or the result has too many elements.
    #[inline]
    pub fn broadcast(operands: &[Operand<'_>]) -> Result<Dims> {
        let mut result: Option<Dims> = None;
        let mut add = |tensor: &Tensor| match &mut result {
            None => {
                result = Some(tensor.shape().into());
                Ok(())
            }
            Some(known) if known[..] == *tensor.shape() => Ok(()),
            Some(known) => {
                *known = broadcast_pair(known, tensor.shape())?;
                checked_numel(known).map(drop)
            }
        };
        for operand in operands {
            match operand {
                Operand::Tensor(tensor) => add(tensor)?,
                Operand::Tensors(tensors) => tensors.iter().try_for_each(&mut add)?,
                Operand::Scalar(_) | Operand::Absent => {}
            }
        }
        Ok(result.unwrap_or_default())
    }

    fn broadcast_pair(a: &[i64], b: &[i64]) -> Result<Dims> {
        let dims = a.len().max(b.len());
        (0..dims)
            .map(|dim| {
                // Sizes are aligned at the end; a missing one counts as 1.
                let size_of = |shape: &[i64]| (dim + shape.len()).checked_sub(dims).map_or(1, |own| shape[own]);
                match (size_of(a), size_of(b)) {
                    (left, right) if left == right || right == 1 => Ok(left),
                    (1, right) => Ok(right),
                    (left, right) => Err(Error::shape(format!(
                        "the shapes {} and {} do not broadcast: dimension {} has the sizes {left} and {right}",
                        ShapeText(a),
                        ShapeText(b),
                        dim as i64 - dims as i64
                    ))
                    .with_help("sizes must be equal or 1, counted from the last dimension")),
                }
            })
            .collect()
    }

    /// The input's shape without the given dimensions, or with size 1 there if `keepdim`. No
    /// dimensions given means all.
    ///
    /// `reduce` of (2, 3, 4) over dimensions 0 and -1 is (3), or (1, 3, 1) with `keepdim`.
    ///
    /// # Errors
    /// If a dimension is out of range or named twice.
    pub fn reduce(tensor: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Dims> {
        let reduced = reduced_dims(tensor.dim(), dims)?;
        Ok(tensor
            .shape()
            .iter()
            .enumerate()
            .filter_map(|(dim, &size)| match (reduced[dim], keepdim) {
                (true, true) => Some(1),
                (true, false) => None,
                (false, _) => Some(size),
            })
            .collect())
    }

    /// The matrix product's shape: the last two dimensions multiply, those before broadcast; a
    /// vector counts as a row on the left and a column on the right.
    ///
    /// `matmul` of (5, 1, 4, 3) and (6, 3, 2) is (5, 6, 4, 2); of (3) and (3) it is ().
    ///
    /// # Errors
    /// If an operand has no dimensions, the inner sizes differ, the leading ones do not broadcast, or
    /// the result has too many elements.
    pub fn matmul(left: &Tensor, right: &Tensor) -> Result<Dims> {
        let (a, b) = (left.shape(), right.shape());
        if a.is_empty() || b.is_empty() {
            return Err(Error::shape("a matrix product needs operands with at least one dimension"));
        }
        let inner_left = a[a.len() - 1];
        let inner_right = b[b.len().saturating_sub(2)];
        if inner_left != inner_right {
            return Err(Error::shape(format!(
                "the inner sizes of the product differ: {inner_left} columns on the left, {inner_right} rows on the right"
            )));
        }
        let mut result = broadcast_pair(&a[..a.len().saturating_sub(2)], &b[..b.len().saturating_sub(2)])?;
        if a.len() > 1 {
            result.push(a[a.len() - 2]);
        }
        if b.len() > 1 {
            result.push(b[b.len() - 1]);
        }
        checked_numel(&result)?;
        Ok(result)
    }

    /// The shapes joined along one dimension; empty vectors are passed over.
    ///
    /// `cat` of (2, 3), (0) and (2, 1) along dimension 1 is (2, 4).
    ///
    /// # Errors
    /// If the list is empty, or other dimensions differ, or the result has too many elements.
    pub fn cat(tensors: &[Tensor], dim: i64) -> Result<Dims> {
        let is_legacy_empty = |tensor: &&Tensor| tensor.shape() == [0];
        let Some(first) = tensors.iter().find(|tensor| !is_legacy_empty(tensor)).or_else(|| tensors.first())
        else {
            return Err(Error::value("an empty list of tensors cannot be joined"));
        };
        let dim = wrap_dim(dim, first.dim())?;
        if first.dim() == 0 {
            return Err(Error::shape("tensors without dimensions cannot be joined")
                .with_help("give each a dimension first"));
        }
        let mut result: Dims = first.shape().into();
        result[dim] = 0;
        for (index, tensor) in tensors.iter().enumerate() {
            if is_legacy_empty(&tensor) && first.dim() != 1 {
                continue;
            }
            let fits = tensor.dim() == first.dim()
                && (0..first.dim())
                    .all(|other| other == dim || tensor.shape()[other] == first.shape()[other]);
            if !fits {
                return Err(Error::shape(format!(
                    "tensor {index} of shape {} does not fit the first of shape {}: all sizes but that of dimension {dim} must be equal",
                    ShapeText(tensor.shape()),
                    ShapeText(first.shape())
                )));
            }
            result[dim] = result[dim].saturating_add(tensor.shape()[dim]);
        }
        checked_numel(&result)?;
        Ok(result)
    }

    /// The given sizes.
    ///
    /// # Errors
    /// If one is negative, or the product overflows.
    pub fn full(sizes: &[i64]) -> Result<Dims> {
        checked_numel(sizes)?;
        Ok(sizes.into())
    }
}

/// Which dimensions a reduction removes, a flag each.
///
/// # Errors
/// If a dimension is out of range or named twice.
pub fn reduced_dims(rank: usize, dims: Option<&[i64]>) -> Result<SmallVec<[bool; 6]>> {
    let all = dims.is_none_or(<[i64]>::is_empty);
    // A tensor without dimensions counts as having one.
    let mut reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(all, rank.max(1));
    for &dim in dims.unwrap_or(&[]) {
        let flag = &mut reduced[wrap_dim(dim, rank)?];
        if *flag {
            return Err(Error::value(format!("dimension {dim} is given twice")));
        }
        *flag = true;
    }
    reduced.truncate(rank);
    Ok(reduced)
}

/// The size of each shape along one dimension of the others; 0 for an empty vector, which joins with
/// shapes of any number of dimensions.
///
/// # Errors
/// If a shape has no such dimension.
pub fn sizes_along<'a>(shapes: impl Iterator<Item = &'a [i64]>, dim: i64) -> Result<Dims> {
    shapes
        .map(|shape| {
            if shape == [0] {
                return Ok(0);
            }
            let wrapped = wrap_dim(dim, shape.len())?;
            shape
                .get(wrapped)
                .copied()
                .ok_or_else(|| Error::index("a tensor without dimensions has no sizes"))
        })
        .collect()
}

/// One operand of a rule: a tensor, or a number given as an attribute.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A list of tensors.
    Tensors(&'a [Tensor]),
    /// A number.
    Scalar(Scalar),
    /// An optional operand that is absent.
    Absent,
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    #[inline]
    fn from(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor)
    }
}

impl<'a> From<Option<&'a Tensor>> for Operand<'a> {
    #[inline]
    fn from(tensor: Option<&'a Tensor>) -> Operand<'a> {
        tensor.map_or(Operand::Absent, Operand::Tensor)
    }
}

impl<'a> From<&'a [Tensor]> for Operand<'a> {
    #[inline]
    fn from(tensors: &'a [Tensor]) -> Operand<'a> {
        Operand::Tensors(tensors)
    }
}

macro_rules! from_number {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Operand<'_> {
            #[inline]
            fn from(number: $ty) -> Self {
                Operand::Scalar(number.into())
            }
        }
        impl From<Option<$ty>> for Operand<'_> {
            #[inline]
            fn from(number: Option<$ty>) -> Self {
                number.map_or(Operand::Absent, |number| Operand::Scalar(number.into()))
            }
        }
    )*};
}
from_number!(bool, i64, f64, Scalar);

impl<'a> From<Arg<'a>> for Operand<'a> {
    #[inline]
    fn from(arg: Arg<'a>) -> Operand<'a> {
        match arg {
            Arg::Tensor(tensor) => Operand::Tensor(tensor),
            Arg::Tensors(tensors) => Operand::Tensors(tensors),
            Arg::Scalar(scalar) => Operand::Scalar(scalar),
            Arg::Int(value) => Operand::Scalar(Scalar::Int(value)),
            Arg::Float(value) => Operand::Scalar(Scalar::Float(value)),
            Arg::Bool(value) => Operand::Scalar(Scalar::Bool(value)),
            _ => Operand::Absent,
        }
    }
}

/// Rules for `dtype:` and `compute:`.
pub mod dtype {
    use super::*;

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
            Some(dtype) if dtype != tensor.dtype() => Err(Error::dtype(format!(
                "the operands have different dtypes, {dtype} and {}",
                tensor.dtype()
            ))
            .with_help("convert one of them; this operator does not promote")),
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
    #[inline]
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
}

/// The error of a condition that does not hold; `values` are both sides of a comparison.
#[cold]
pub fn check_failed(text: &str, values: &[i64]) -> Error {
    let message = match values {
        [left, right] => format!("`{text}` does not hold: the left side is {left}, the right side {right}"),
        _ => format!("`{text}` does not hold"),
    };
    Error::shape(message).with_help("the operator's documentation says what it accepts")
}

/// The device of the tensor operands. A tensor without dimensions on the CPU goes with any device.
///
/// # Errors
/// If two operands are on different devices.
#[inline]
pub fn device_of(args: &[Arg<'_>]) -> Result<Device> {
    let mut found: Option<&Tensor> = None;
    let mut clash = None;
    for arg in args {
        arg.for_each_tensor(|tensor| match found {
            Some(first) if first.device() != tensor.device() => {
                if first.dim() == 0 && first.device() == Device::CPU {
                    found = Some(tensor);
                } else if !(tensor.dim() == 0 && tensor.device() == Device::CPU) {
                    clash = Some((first.device(), tensor.device()));
                }
            }
            Some(_) => {}
            None => found = Some(tensor),
        });
    }
    match clash {
        Some((a, b)) => Err(Error::device(format!("the operands are on different devices, {a} and {b}"))
            .with_help("move them to one device first")),
        None => Ok(found.map_or(Device::CPU, Tensor::device)),
    }
}
