//! Dtypes and layouts of tensors.
//!
//! In: numbers and formulas of the schema. Out: dtypes, devices, and layouts of known sizes.

use opsmith_core::{DType, MemoryFormat};
use opsmith_runtime::layout::{Dims, Layout, checked_numel};

use crate::expression::Formula;
use crate::model::TensorSpec;
use crate::schema::{SymInt, TensorMeta};

/// The numbers of dtypes in the schema.
const DTYPES: [(i64, DType); 15] = [
    (1, DType::U8),
    (2, DType::I8),
    (3, DType::I16),
    (4, DType::I32),
    (5, DType::I64),
    (6, DType::F16),
    (7, DType::F32),
    (8, DType::F64),
    (10, DType::C64),
    (11, DType::C128),
    (12, DType::Bool),
    (13, DType::BF16),
    (28, DType::U16),
    (29, DType::F8E4M3),
    (30, DType::F8E5M2),
];

/// Dtypes of the schema that tensors here cannot have.
const ABSENT: [(i64, &str); 3] = [(9, "complex32"), (31, "float8_e4m3fnuz"), (32, "float8_e5m2fnuz")];

/// The dtype of a number.
pub(super) fn dtype(number: i64) -> Result<DType, String> {
    if let Some((_, dtype)) = DTYPES.iter().find(|(known, _)| *known == number) {
        return Ok(*dtype);
    }
    Err(match ABSENT.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("the dtype {name} is not supported"),
        None => format!("there is no dtype of number {number}"),
    })
}

/// The memory format of a number; `None` for the absent one.
pub(super) fn memory_format(number: i64) -> Result<Option<MemoryFormat>, String> {
    Ok(Some(match number {
        0 => return Ok(None),
        1 => MemoryFormat::Contiguous,
        2 => MemoryFormat::ChannelsLast,
        3 => MemoryFormat::ChannelsLast3d,
        4 => MemoryFormat::Preserve,
        number => return Err(format!("there is no memory format of number {number}")),
    }))
}

/// The number of the layout that all tensors have.
const STRIDED: i64 = 7;

/// Refuses layouts of sparse tensors.
pub(super) fn strided(number: i64) -> Result<(), String> {
    if number == STRIDED {
        Ok(())
    } else {
        Err(format!("tensors of layout {number}, sparse ones, are not supported"))
    }
}

/// A size as a formula.
pub(super) fn size(size: &SymInt) -> Result<Formula, String> {
    match size {
        SymInt::AsInt(number) => Ok(Formula::Integer(*number)),
        SymInt::AsExpr(formula) => Formula::parse(&formula.expr_str),
    }
}

/// Maximal number of dimensions, which is PyTorch's.
const DIMENSIONS: usize = 64;

/// Dtype and sizes of a tensor.
pub(super) fn spec(meta: &TensorMeta) -> Result<TensorSpec, String> {
    check_rank(meta)?;
    let sizes = meta.sizes.iter().map(size).collect::<Result<_, _>>()?;
    Ok(TensorSpec { dtype: dtype(meta.dtype)?, sizes })
}

fn check_rank(meta: &TensorMeta) -> Result<(), String> {
    match meta.sizes.len() {
        0..=DIMENSIONS => Ok(()),
        count => Err(format!("a tensor has {count} dimensions, and at most {DIMENSIONS} are read")),
    }
}

/// Dtype, sizes, strides and offset of a weight over its bytes.
#[derive(Clone)]
pub(crate) struct TensorLayout {
    pub dtype: DType,
    pub layout: Layout,
}

/// The layout of a weight, whose sizes are numbers.
///
/// # Errors
/// If a size is a formula or negative, there are too many elements or dimensions, or the numbers of sizes and strides
/// differ.
pub(crate) fn layout(meta: &TensorMeta) -> Result<TensorLayout, String> {
    let number = |size: &SymInt| match size {
        SymInt::AsInt(number) if *number >= 0 => Ok(*number),
        SymInt::AsInt(number) => Err(format!("a size or stride is {number}")),
        SymInt::AsExpr(_) => Err("a size or stride is no number".to_owned()),
    };
    check_rank(meta)?;
    let sizes = meta.sizes.iter().map(number).collect::<Result<Dims, _>>()?;
    checked_numel(&sizes).map_err(|error| error.message().to_owned())?;
    let strides = meta.strides.iter().map(number).collect::<Result<Dims, _>>()?;
    let offset = number(&meta.storage_offset)?;
    let layout = match strides.is_empty() {
        true => Layout { offset, ..Layout::contiguous(&sizes) },
        false if strides.len() == sizes.len() => Layout { sizes, strides, offset },
        false => return Err(format!("it has {} sizes and {} strides", sizes.len(), strides.len())),
    };
    Ok(TensorLayout { dtype: dtype(meta.dtype)?, layout })
}
