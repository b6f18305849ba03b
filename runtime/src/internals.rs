//! The runtime's interface to its extensions in this project: graph mode (`opsmith-graph`) and custom kernels
//! (`opsmith-aot`).
//!
//! In: items that are otherwise private to the runtime. Out: the same items, only those that an extension uses. Hidden
//! from documentation, and changed without notice: programs use `opsmith::graph` and `opsmith::aot`. A function that
//! could break memory safety is `unsafe` and states its requirements. No module of the runtime may use this one.

mod memory;
mod methods;
mod tracing;

pub use memory::{
    Workspace, add, bytes_of, clear, convert, make_valid, read_one, reserve, run_in_turn, run_kernel,
    run_on_host, until_out_of_memory, with_one_shape,
};
pub use methods::{
    ArgumentInternals, GeneratorInternals, GradientInternals, KernelInternals, OperatorInternals,
    StorageInternals, TensorInternals,
};
pub use tracing::{Observers, SiteScope, enter, is_tracing, site, trace};

pub use crate::device_loop::{
    Chain, ChainElements, ChainLink, ChainWrite, ElementLoop, GrowingChain, MAX_CHAIN_DIMS, apart,
    element_loop,
};
pub use crate::dispatch::borrows::Borrows;
pub use crate::dispatch::check_written;
pub use crate::dispatch::observer::CallObserver;
pub use crate::dispatch::spans::{
    Span, SpanListener, SpanScope, StepSite, is_listening, listen, open as open_span, set_listening,
};
pub use crate::generated::call;
pub use crate::infer::symbolic::call::{Outcome, Owned, with_numbers};
pub use crate::infer::symbolic::formula::Term;
pub use crate::infer::symbolic::infer::{concrete, operands};
pub use crate::infer::symbolic::opaque::{Samples, infer as infer_at_samples};
pub use crate::library::declared::Taken;
pub use crate::random::observer::{GeneratorObserver, Start};
pub use crate::tensor::observer::TensorObserver;

use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use opsmith_core::DType;

use crate::arg::{Arg, Value};
use crate::device::Device;
use crate::error::Result;
use crate::library::{Named, declared};
use crate::op::OpDef;
use crate::tensor::Tensor;
use crate::{allocator, autograd, backend, boxed, dispatch, op};

/// The size of a dimension that inference does not know.
pub const UNKNOWN_DIM: i64 = op::UNKNOWN_DIM;
/// The only size of a shape of which inference does not know the rank.
pub const UNKNOWN_RANK: i64 = op::UNKNOWN_RANK;

/// Whether recording is on in this thread.
#[inline]
pub fn recording() -> bool {
    autograd::recording()
}

/// Records a call whose results exist, all of which are given, as if it had computed them. `false` if no formula is for the
/// tracked arguments.
///
/// # Errors
/// If a tracked argument is in a graph that was freed.
pub fn record_results(op: &'static OpDef, args: &[Arg<'_>], outs: &mut [Tensor]) -> Result<bool> {
    autograd::record_results(op, args, outs)
}

/// Whether the arguments have the dtypes and layouts that a kernel requires, and are on its device.
pub fn are_converted(op: &OpDef, args: &[Arg<'_>], compute: DType, device: Device) -> bool {
    dispatch::are_converted(op, args, compute, device)
}

/// Whether kernels check the elements of an argument of this dtype.
pub fn is_checked_by_kernel(op: &OpDef, argument: usize, dtype: DType) -> bool {
    dispatch::is_checked_by_kernel(op, argument, dtype)
}

/// Description of a tensor expanded so far beyond its memory that kernels reject it; `None` for others.
pub fn endless(tensor: &Tensor) -> Option<String> {
    dispatch::endless(tensor)
}

/// Rejects an output that shares memory with an input.
///
/// # Errors
/// If it does, unless the operator is element-wise and both have the same elements.
pub fn refuse_overlap_with_inputs(op: &OpDef, args: &[Arg<'_>], out: &Tensor) -> Result<()> {
    dispatch::refuse_overlap_with_inputs(op, args, out)
}

/// The operator and form for a call by name, among all linked libraries.
///
/// # Errors
/// If there is no such operator, or no overload takes the arguments.
pub fn choose_linked(name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Result<Named> {
    boxed::choose_linked(name, args, kwargs)
}

/// Reads arguments as a call of the functional form does, and passes them in the order of the signature.
///
/// # Errors
/// If the arguments do not fit, and errors of the function.
pub fn with_bound<R>(
    op: &'static OpDef,
    args: &[Value],
    kwargs: &[(&str, Value)],
    function: impl FnOnce(&[Arg<'_>]) -> Result<R>,
) -> Result<R> {
    boxed::with_bound(op, args, kwargs, function)
}

/// Registers the operator that a function defines under a free name.
///
/// # Errors
/// If the name is taken.
pub fn register(name: &str, define: impl FnOnce() -> &'static OpDef) -> Result<&'static OpDef, Taken> {
    declared::register(name, define)
}

/// Removes the name of an operator that was declared at run time.
pub fn withdraw(op: &'static OpDef) {
    declared::withdraw(op);
}

/// Reports the address and bytes of each block of host memory to a function of this process, in the thread that allocates it
/// or, with negative bytes, frees it; or to none. The first function given is the only one.
pub fn profile_blocks(profiler: Option<fn(usize, isize)>) {
    allocator::profile_blocks(profiler);
}

/// As [`profile_blocks`], of the memory of devices.
pub fn profile_device_blocks(profiler: Option<backend::DeviceBlockProfiler>) {
    backend::profile_blocks(profiler);
}

/// The user's folder of caches: `OPSMITH_CACHE_DIR`, or `opsmith` in `XDG_CACHE_HOME` or `~/.cache`; `None` if
/// neither that nor `HOME` is set.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name| variable(name).filter(|path: &PathBuf| path.is_absolute());
    let standard = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    variable("OPSMITH_CACHE_DIR").or_else(|| Some(standard()?.join("opsmith")))
}

/// The lines of a loop on a device for all ways through memory, from one of them; `None` for the line of another kernel.
pub fn lines_of_loop(line: &str) -> Option<[String; 3]> {
    crate::device_loop::lines_of_loop(line)
}

/// Replaces a file atomically.
///
/// # Errors
/// Errors of `write`, and those of the file system.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    crate::replace::replace(path, write)
}
