//! Kernels of the host in place of those that a device lacks, on copies: off unless a program asks for it.
//!
//! In: a call whose operands are on a device. Out: its outputs, copied from the host, which the call waits for. Must not
//! know any device.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, Ordering};

use opsmith_core::{Backend, DType};

use super::written;
use crate::arg::{Arg, Value};
use crate::copy;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::op::{Kernel, KernelCall, KernelFn, OpDef};
use crate::tensor::Tensor;

/// The variable that switches the fallback on from outside: `host`.
const VARIABLE: &str = "OPSMITH_DEVICE_FALLBACK";

/// 0 if the variable decides, 1 if the program said no, 2 if it said yes.
static CHOICE: AtomicU8 = AtomicU8::new(0);

static BY_VARIABLE: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os(VARIABLE).is_some_and(|value| value == "host"));

/// Lets operators without a kernel for a device run on the host, on copies of their operands; each such call waits for the
/// device. Off by default, unless the environment has `OPSMITH_DEVICE_FALLBACK=host`: a program does not become slow
/// without notice.
pub fn set_host_fallback(on: bool) {
    CHOICE.store(1 + u8::from(on), Ordering::Relaxed);
}

/// Whether operators without a kernel for a device run on the host.
pub fn has_host_fallback() -> bool {
    match CHOICE.load(Ordering::Relaxed) {
        0 => *BY_VARIABLE,
        choice => choice == 2,
    }
}

/// The kernel of a backend and dtype, or that of the host on copies.
///
/// # Errors
/// If there is neither, or the fallback is off.
#[inline]
pub(crate) fn kernel(op: &OpDef, backend: Backend, dtype: DType) -> Result<Kernel> {
    op.kernel(backend, dtype).or_else(|error| by_host(op, backend, dtype, error))
}

#[cold]
fn by_host(op: &OpDef, backend: Backend, dtype: DType, error: Error) -> Result<Kernel> {
    if backend == Backend::Cpu || op.kernels.get(Backend::Cpu, dtype).is_none() {
        return Err(error);
    }
    if has_host_fallback() {
        return Ok(Kernel::of(KERNELS[dtype.index()]));
    }
    Err(error.with_note(format!(
        "move the operands to the host, or let it run there on copies: `set_host_fallback(true)` or {VARIABLE}=host"
    )))
}

macro_rules! kernels {
    ($({ $variant:ident: $($columns:tt)* })*) => {
        /// The kernel for each dtype.
        const KERNELS: [KernelFn; DType::COUNT] = [$(|call| run(call, DType::$variant)),*];
    };
}

opsmith_core::for_each_dtype!(kernels);

fn run(call: &KernelCall<'_>, dtype: DType) -> Result<()> {
    let op = call.op();
    let kernel = op.kernel(Backend::Cpu, dtype)?;
    let args = call.args().iter().map(|arg| copied(*arg)).collect::<Result<Vec<Value>>>()?;
    let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
    let targets = call.device_outputs()?;
    let fresh = |out: &Tensor| match op.forms.updates {
        true => on_host(out),
        false => Tensor::with_memory(out.shape(), out.dtype(), Device::CPU),
    };
    let outs = targets.iter().map(fresh).collect::<Result<Vec<Tensor>>>()?;
    // SAFETY: the operands are copies of those of a valid call, of the same shapes and dtypes, and the outputs are new; the
    // kernel is the operator's for their dtype.
    unsafe { written::run(kernel, &KernelCall::new(op, &args, &outs))? };
    targets.iter().zip(&outs).try_for_each(|(target, out)| copy::convert(target, out))
}

/// The argument with its tensors on the host. Their borrows are held by the call.
fn copied(arg: Arg<'_>) -> Result<Value> {
    Ok(match arg {
        Arg::Tensor(tensor) => Value::Tensor(on_host(tensor)?),
        Arg::Tensors(tensors) => Value::Tensors(tensors.iter().map(on_host).collect::<Result<_>>()?),
        Arg::OptionalTensors(tensors) => {
            let copied = tensors.iter().map(|tensor| tensor.as_ref().map(on_host).transpose());
            Value::OptionalTensors(copied.collect::<Result<_>>()?)
        }
        other => other.to_value(),
    })
}

fn on_host(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_on_host() {
        return Ok(tensor.clone());
    }
    let copy = Tensor::with_memory(tensor.shape(), tensor.dtype(), Device::CPU)?;
    copy::convert(&copy, tensor)?;
    Ok(copy)
}
