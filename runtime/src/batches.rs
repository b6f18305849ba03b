//! Work on devices in batches: few launches for many element-wise calls.
//!
//! In: a function. Out: its result, after the launches that it asked for. Must not know devices.

use crate::device_loop;
use crate::dispatch::spans;
use crate::error::Result;

/// Calls a function whose element-wise calls on devices are held back, and submitted together: before this thread's next other
/// work on a device, and at the end. Consecutive calls of one shape are one kernel, of which intermediate results that the function
/// drops stay in registers; the same calls over tensors of several sizes, as the updates of an optimizer's parameters, are one
/// launch. Results have the bits of separate launches. Nothing changes on the host.
///
/// ```
/// use opsmith_runtime::in_batches;
/// // A function would call operators here.
/// assert_eq!(in_batches(|| Ok(3))?, 3);
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
///
/// Another thread that accesses a result, or writes an operand, before this returns may be earlier than a call that is held back. While
/// a profiler listens, nothing is held back, so that each kernel has its time.
///
/// # Errors
/// Errors of the function, and of launches that were held back.
pub fn in_batches<R>(function: impl FnOnce() -> Result<R>) -> Result<R> {
    if spans::is_listening() { function() } else { device_loop::in_batches(function) }
}
