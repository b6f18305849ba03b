//! The arithmetic operations of a kernel, which profilers compare with the limits of the machine.

use crate::arg::Arg;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// The arithmetic operations of a kernel, for profilers.
#[derive(Clone, Copy, Debug)]
pub enum Flops {
    /// The entry says nothing.
    Unknown,
    /// For each element of the first result.
    Element(u32),
    /// For a call, from the sizes of arguments and results.
    Call(FlopsFn),
}

/// The operations of a call, by its arguments and results.
pub type FlopsFn = fn(&[Arg<'_>], &[Tensor]) -> Result<i64>;

impl Flops {
    /// The operations of a call; `None` if the entry does not say it, or its formula fails.
    pub fn of_call(self, args: &[Arg<'_>], outs: &[Tensor]) -> Option<u64> {
        match self {
            Flops::Unknown => None,
            Flops::Element(operations) => {
                outs.first().map(|out| u64::from(operations).saturating_mul(out.numel() as u64))
            }
            Flops::Call(formula) => formula(args, outs).ok().and_then(|count| u64::try_from(count).ok()),
        }
    }
}

/// The error of a formula that reads a result which the call does not have.
#[doc(hidden)]
#[cold]
pub fn absent_result(index: usize) -> Error {
    Error::argument(format!("there is no result {index}"))
}
