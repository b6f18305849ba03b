//! Checks of number arguments against the dtype that the kernel computes in.
//!
//! A kernel converts a number to its element type, which could silently wrap, saturate or drop an imaginary part. The
//! use of a number is declared in the spec (`numbers`) or follows from the dtype rule; this is the only file that
//! compares.

use opsmith_core::DType;

use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::facts::NumberUse;
use crate::op::OpDef;
use crate::scalar::{Scalar, int_range, largest};

/// Rejects numbers that a kernel for a dtype cannot represent.
///
/// # Errors
/// If there is one; names the argument, the number, and the range of the dtype.
#[inline(always)]
pub(super) fn check(op: &OpDef, args: &[Arg<'_>], compute: DType) -> Result<()> {
    for (index, how) in op.numbers {
        let Arg::Scalar(number) = args[usize::from(*index)] else { continue };
        // Every dtype holds small integers, for any use.
        if matches!(number, Scalar::Int(0..=127)) {
            continue;
        }
        if !is_fine(number, *how, compute) {
            return Err(refused(op.schema.args[usize::from(*index)].name, number, *how, compute));
        }
    }
    Ok(())
}

fn is_fine(number: Scalar, how: NumberUse, compute: DType) -> bool {
    match how {
        NumberUse::Free => true,
        NumberUse::Computed => number.is_held_by(compute.to_compute()),
        NumberUse::Real => number.to_complex().im == 0.0,
        NumberUse::Held => number.is_held_by(compute),
        NumberUse::Alike => number.is_held_by(compute) && number.dtype().category() <= compute.category(),
        // A float is a bound for float elements only, which may compare with any float.
        NumberUse::Lower => match int_range(compute) {
            Some((_, high)) => number.to_complex().im == 0.0 && number.to_f64() <= high as f64,
            None => number.is_held_by(compute),
        },
        NumberUse::Upper => match int_range(compute) {
            Some((low, _)) => number.to_complex().im == 0.0 && number.to_f64() >= low as f64,
            None => number.is_held_by(compute),
        },
    }
}

#[cold]
fn refused(name: &str, number: Scalar, how: NumberUse, compute: DType) -> Error {
    let dtype = if how == NumberUse::Computed { compute.to_compute() } else { compute };
    let error = match how {
        NumberUse::Lower if int_range(dtype).is_some() => {
            format!("`{name}` is {number}, above all that {dtype} holds")
        }
        NumberUse::Upper if int_range(dtype).is_some() => {
            format!("`{name}` is {number}, below all that {dtype} holds")
        }
        NumberUse::Alike if number.is_held_by(dtype) => {
            format!("`{name}` is {number}, and elements of {dtype} are not computed with such numbers")
        }
        NumberUse::Real => {
            format!(
                "`{name}` is {number}, and stands among real numbers, which cannot hold its imaginary part"
            )
        }
        _ => format!("`{name}` is {number}, which {dtype} cannot hold"),
    };
    let help = match (number, int_range(dtype)) {
        (Scalar::Complex(_), _) if how == NumberUse::Real => "give a real number".to_owned(),
        (Scalar::Complex(_), _) => "give a real number, or convert the tensor to a complex dtype".to_owned(),
        (_, Some((low, high))) => {
            format!("{dtype} holds integers from {low} to {high}; convert the tensor first")
        }
        (_, None) => {
            format!("the largest number of {dtype} is {:e}; convert the tensor first", largest(dtype))
        }
    };
    Error::value(error).with_help(help)
}
