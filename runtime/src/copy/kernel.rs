//! The kernel of operators whose first output is a converted copy of an argument.
//!
//! In: a call. Out: its first output, written. Must know no operator.

use super::convert;
use crate::error::Result;
use crate::op::KernelCall;

/// The kernel of an operator whose first output is a converted copy of an argument.
///
/// # Errors
/// If there is no such output or argument, the two do not have shapes that go together, or the output was handed
/// out as a view.
pub fn kernel(call: &KernelCall<'_>, argument: usize) -> Result<()> {
    let [target, source] = call.operands_of_any_dtype(&[argument])?;
    convert(target, source)?;
    call.note_filled();
    Ok(())
}
