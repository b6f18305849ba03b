//! Strides of one view in the shape of another.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Dims, Error, Result};

/// The strides that repeat a view to a larger shape: 0 where its size is 1 or a dimension missing.
///
/// # Errors
/// If the view does not broadcast to the shape.
pub(crate) fn broadcast_strides(sizes: &[i64], strides: &[i64], target: &[i64]) -> Result<Dims> {
    let refuse = || {
        Error::shape(format!("the shape {} does not broadcast to {}", ShapeText(sizes), ShapeText(target)))
            .with_help("sizes must be equal or 1, counted from the last dimension")
    };
    let missing = target.len().checked_sub(sizes.len()).ok_or_else(refuse)?;
    let mut result = Dims::from_elem(0, target.len());
    for (dim, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
        if size == target[missing + dim] {
            result[missing + dim] = stride;
        } else if size != 1 {
            return Err(refuse());
        }
    }
    Ok(result)
}

/// Refuses an output whose shape is not the one the operator's inference should have given it.
///
/// Kernels write without further checks; this check makes them safe to call by hand.
///
/// # Errors
/// If the shapes differ.
pub(crate) fn expect_sizes(got: &[i64], expected: &[i64]) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::shape(format!(
        "the kernel was given an output of the shape {}, its result has {}",
        ShapeText(got),
        ShapeText(expected)
    ))
    .with_help("the operator's shape inference and its kernel disagree"))
}

/// The strides of a reduced output in the shape of the input: 0 along reduced dimensions.
///
/// # Errors
/// If the output's shape is not the input's with reduced dimensions gone, or 1 if `keepdim`.
pub(crate) fn reduced_strides(
    sizes: &[i64],
    reduced: &[bool],
    keepdim: bool,
    out_sizes: &[i64],
    out_strides: &[i64],
) -> Result<Dims> {
    let (mut expected, mut strides) = (Dims::new(), Dims::new());
    for (&size, &reduced) in sizes.iter().zip(reduced) {
        if reduced && !keepdim {
            strides.push(0);
            continue;
        }
        let stride = out_strides.get(expected.len()).copied();
        strides.push(if reduced { 0 } else { stride.unwrap_or(0) });
        expected.push(if reduced { 1 } else { size });
    }
    expect_sizes(out_sizes, &expected)?;
    Ok(strides)
}
