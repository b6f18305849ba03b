//! Launches of functions.
//!
//! In: functions, grids, parameters. Out: work of a stream, or an error that names the kernel and the exceeded limit.
//! `OPSMITH_CUDA_SYNC=1` waits after each launch, so that the call reports the failure of its own kernel. Must not know
//! sources.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use opsmith_runtime::backend::{Grid, KernelParameter};
use opsmith_runtime::smallvec::SmallVec;
use opsmith_runtime::{Error, Result};

use crate::compile::Function;
use crate::driver::codes;
use crate::status::Status;
use crate::stream::Stream;

/// The maximal number of blocks along x, y and z, on every architecture.
const MAX_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// The maximal number of threads of a block along z; those along x and y have the limit of the block.
const MAX_THREADS_Z: u32 = 64;
/// Bytes of shared memory that every function may use without a request.
const DEFAULT_SHARED: u32 = 48 << 10;

/// Launches a function in a stream. A grid without blocks is no work.
///
/// # Errors
/// If the grid exceeds a limit, or the number or a size of parameters is wrong, and errors of the device.
///
/// # Safety
/// As [`launch`](opsmith_runtime::backend::DeviceRuntime::launch).
pub unsafe fn launch(
    stream: &Stream,
    status: &Status,
    function: &Function,
    grid: Grid,
    parameters: &[KernelParameter<'_>],
) -> Result<()> {
    if grid.blocks.contains(&0) {
        return Ok(());
    }
    let context = stream.context;
    check(stream, function, grid, parameters)?;
    let _entered = context.enter()?;
    request_shared(stream, function, grid.shared)?;
    let Grid { blocks, threads, shared } = grid;
    let addresses: SmallVec<[*const c_void; 4]> =
        parameters.iter().map(|parameter| parameter.start()).collect();
    // SAFETY: the caller's promise; the context of the function and the stream is entered.
    let code = unsafe {
        (context.api().cuLaunchKernel)(
            function.raw,
            blocks[0],
            blocks[1],
            blocks[2],
            threads[0],
            threads[1],
            threads[2],
            shared,
            stream.raw(),
            addresses.as_ptr(),
            std::ptr::null_mut(),
        )
    };
    context.check(code, format_args!("launch {}", function.name))?;
    if is_synchronous() { finish(stream, status, function) } else { Ok(()) }
}

/// Whether every launch is waited for.
pub fn is_synchronous() -> bool {
    static SYNCHRONOUS: OnceLock<bool> = OnceLock::new();
    *SYNCHRONOUS.get_or_init(|| std::env::var("OPSMITH_CUDA_SYNC").is_ok_and(|value| value == "1"))
}

#[cold]
fn finish(stream: &Stream, status: &Status, function: &Function) -> Result<()> {
    let done = stream.synchronize().and_then(|()| status.check());
    done.map_err(|error| error.with_note(format!("in the kernel {}", function.name)))
}

fn check(stream: &Stream, function: &Function, grid: Grid, parameters: &[KernelParameter<'_>]) -> Result<()> {
    let Grid { blocks, threads, .. } = grid;
    let count = threads.iter().try_fold(1u32, |count, threads| count.checked_mul(*threads));
    let fits = |count: u32| count > 0 && count <= function.max_threads;
    let problem = if function.device != stream.context.index {
        format!("it is of device {}, the stream of device {}", function.device, stream.context.index)
    } else if !count.is_some_and(fits) || threads[2] > MAX_THREADS_Z {
        format!("blocks have {threads:?} threads, and 1 to {} are possible", function.max_threads)
    } else if std::iter::zip(blocks, MAX_BLOCKS).any(|(blocks, most)| blocks > most) {
        format!("the grid has {blocks:?} blocks, and {MAX_BLOCKS:?} are possible")
    } else if let Some(problem) = function.parameters.as_deref().and_then(|known| differ(parameters, known)) {
        problem
    } else {
        return Ok(());
    };
    Err(Error::kernel(format!("cannot launch {}: {problem}", function.name)))
}

/// The difference of parameters from those of these sizes, if there is one.
fn differ(parameters: &[KernelParameter<'_>], known: &[usize]) -> Option<String> {
    if parameters.len() != known.len() {
        return Some(format!("{} parameters are given, and it has {}", parameters.len(), known.len()));
    }
    let mut pairs = std::iter::zip(parameters, known).enumerate();
    let (number, (given, bytes)) = pairs.find(|(_, (given, bytes))| !given.fits(**bytes))?;
    Some(format!("parameter {number} has {} bytes, and its own has {bytes}", given.bytes()))
}

/// Raises the function's limit of dynamic shared memory, if it is below the request.
fn request_shared(stream: &Stream, function: &Function, bytes: u32) -> Result<()> {
    let total = bytes.saturating_add(function.shared_bytes);
    if total <= DEFAULT_SHARED || function.dynamic_limit.load(Ordering::Acquire) >= bytes {
        return Ok(());
    }
    let context = stream.context;
    let most = context.attribute(codes::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    if total as usize > most {
        return Err(Error::kernel(format!(
            "cannot launch {}: a block needs {total} bytes of shared memory, and {most} are possible",
            function.name
        )));
    }
    let value = i32::try_from(bytes).unwrap_or(i32::MAX);
    // SAFETY: the context is entered, and the function loaded.
    let code = unsafe {
        (context.api().cuFuncSetAttribute)(function.raw, codes::FUNCTION_MAX_DYNAMIC_SHARED_BYTES, value)
    };
    context.check(code, format_args!("request shared memory for {}", function.name))?;
    function.dynamic_limit.fetch_max(bytes, Ordering::AcqRel);
    Ok(())
}
