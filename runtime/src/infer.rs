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
    /// # Errors
    /// If two sizes differ and neither is 1.
    #[inline]
    pub fn broadcast(operands: &[Operand<'_>]) -> Result<Dims> {
        let mut shapes = operands.iter().filter_map(|operand| operand.shape());
        let mut result: Dims = shapes.next().unwrap_or(&[]).into();
        for shape in shapes {
            if result[..] != *shape {
                broadcast_into(&mut result, shape)?;
            }
        }
        Ok(result)
    }

    fn broadcast_into(result: &mut Dims, shape: &[i64]) -> Result<()> {
        if shape.len() > result.len() {
            result.insert_many(0, std::iter::repeat_n(1, shape.len() - result.len()));
        }
        let missing = result.len() - shape.len();
        for (dim, &size) in shape.iter().enumerate() {
            let known = result[missing + dim];
            if known == size || size == 1 {
                continue;
            }
            if known != 1 {
                return Err(Error::shape(format!(
                    "the shapes {} and {} do not broadcast: sizes {known} and {size} differ in dimension {}",
                    ShapeText(result),
                    ShapeText(shape),
                    missing + dim,
                ))
                .with_help("sizes must be equal or 1, counted from the last dimension"));
            }
            result[missing + dim] = size;
        }
        Ok(())
    }

    /// The input's shape without the given dimensions, or with size 1 there if `keepdim`. No
    /// dimensions given means all.
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
    /// # Errors
    /// If an operand has no dimensions or the inner sizes differ.
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
        let mut result: Dims = a[..a.len().saturating_sub(2)].into();
        broadcast_into(&mut result, &b[..b.len().saturating_sub(2)])?;
        if a.len() > 1 {
            result.push(a[a.len() - 2]);
        }
        if b.len() > 1 {
            result.push(b[b.len() - 1]);
        }
        Ok(result)
    }

    /// The shapes joined along one dimension; empty vectors are passed over.
    ///
    /// # Errors
    /// If the list is empty, or other dimensions differ.
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
            result[dim] += tensor.shape()[dim];
        }
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
    let mut reduced: SmallVec<[bool; 6]> = SmallVec::from_elem(all, rank);
    for &dim in dims.unwrap_or(&[]) {
        let wrapped = wrap_dim(dim, rank)?;
        if let Some(flag) = reduced.get_mut(wrapped) {
            if *flag {
                return Err(Error::value(format!("dimension {dim} is given twice")));
            }
            *flag = true;
        }
    }
    Ok(reduced)
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

impl<'a> Operand<'a> {
    fn shape(&self) -> Option<&'a [i64]> {
        match self {
            Operand::Tensor(tensor) => Some(tensor.shape()),
            _ => None,
        }
    }
}

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
            (Some(high), Some(low)) if low.category() > high.category() => {
                // A complex number keeps the precision of the floats it meets.
                let float_with_complex = low.is_complex() && high.is_float();
                Some(if float_with_complex { high.to_complex() } else { low })
            }
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
