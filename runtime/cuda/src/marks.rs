//! Moments of streams by the clocks of their devices, for profilers.
//!
//! In: streams, pairs of moments. Out: events of the driver with times, which are used again. Must not know kernels.

use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use opsmith_runtime::backend::Mark;
use opsmith_runtime::{Error, Result};

use crate::driver::api::Handle;
use crate::driver::{self, Context};
use crate::stream::Stream;

/// Flags of the driver: the event has a time.
const WITH_TIME: c_uint = 0;

/// Events that no moment uses, with the indices of their devices.
static SPARE: Mutex<Vec<(u16, Mark)>> = Mutex::new(Vec::new());

fn handle(mark: Mark) -> Handle {
    std::ptr::with_exposed_provenance_mut(mark.0 as usize)
}

/// The moment when a stream passes this point; none if the driver measures no times.
///
/// # Errors
/// Errors of the device.
pub fn mark(stream: &Stream) -> Result<Mark> {
    let context = stream.context;
    if context.api().cuEventElapsedTime.is_none() {
        return Ok(Mark::default());
    }
    let _entered = context.enter()?;
    let mark = match spare(context.index) {
        Some(mark) => mark,
        None => {
            let mut event = std::ptr::null_mut();
            // SAFETY: the context is entered, and the result is a local variable.
            let code = unsafe { (context.api().cuEventCreate)(&mut event, WITH_TIME) };
            context.check(code, "create an event")?;
            Mark(event.expose_provenance() as u64)
        }
    };
    // SAFETY: both are of this context, and exist for the life of the process.
    let code = unsafe { (context.api().cuEventRecord)(handle(mark), stream.raw()) };
    context.check(code, "record an event").inspect_err(|_| forget(context.index, mark))?;
    Ok(mark)
}

fn spare(index: u16) -> Option<Mark> {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = spare.iter().rposition(|(device, _)| *device == index)?;
    Some(spare.swap_remove(found).1)
}

/// Nanoseconds between two moments of a device, after both have passed.
///
/// # Errors
/// If one of them was never taken, or errors of the work before them.
pub fn nanoseconds_between(context: &Context, first: Mark, second: Mark) -> Result<f64> {
    let (Some(elapsed), true) = (context.api().cuEventElapsedTime, first.0 != 0 && second.0 != 0) else {
        return Err(Error::device(format!("device {} was not asked for its time", context.index)).with_help(
            "use moments that `DeviceRuntime::mark` returned, with a driver that measures times",
        ));
    };
    let _entered = context.enter()?;
    for mark in [first, second] {
        // SAFETY: the event was recorded, and exists for the life of the process.
        let code = unsafe { (context.api().cuEventSynchronize)(handle(mark)) };
        context.check(code, "finish the work of a stream")?;
    }
    let mut milliseconds = 0.0f32;
    // SAFETY: both were recorded and have passed; the result is a local variable.
    let code = unsafe { elapsed(&mut milliseconds, handle(first), handle(second)) };
    context.check(code, "read the time between two events")?;
    Ok(f64::from(milliseconds) * 1e6)
}

/// Ends the use of a moment.
pub fn forget(index: u16, mark: Mark) {
    if mark.0 != 0 && driver::started().is_some() {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push((index, mark));
    }
}
