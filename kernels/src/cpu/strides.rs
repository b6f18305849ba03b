//! Strides of one view in the shape of another.

use opsmith_runtime::error::ShapeText;
pub(crate) use opsmith_runtime::layout::broadcast_strides;
use opsmith_runtime::{Dims, Error, Result};

/// Refuses an output whose shape is not the one the operator's inference should have given it.
///
/// Kernels write without further checks; this check makes them safe to call by hand.
///
/// # Errors
/// If the shapes differ.
pub(crate) fn expect_sizes(got: &[i64], expected: &[i64]) -> Result<()> {
    if got == expected { Ok(()) } else { Err(Error::of_inference(got, expected)) }
}

/// Refuses an operand whose shape does not go with those of the others.
///
/// # Errors
/// If the shapes differ.
pub(crate) fn expect_operand(name: &str, got: &[i64], expected: &[i64]) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::shape(format!(
        "the shape of {name} is {}, and the other arguments ask for {}",
        ShapeText(got),
        ShapeText(expected)
    )))
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
