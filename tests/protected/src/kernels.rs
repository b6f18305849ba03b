//! Kernels of the device: those of the host, run on the device's memory, in its stream.
//!
//! In: definitions with kernels for the host. Out: the same kernels registered for the device.

use opsmith_runtime::op::{KernelCall, KernelFn, OpDef};
use opsmith_runtime::storage::Storage;
use opsmith_runtime::{Arg, Backend, DType, Device, Result, Tensor, Value};

use crate::memory::Open;
use crate::stream;

/// Installs device kernels for every operator, for the dtypes with host kernels; others are compositions.
pub fn install(ops: &[&'static OpDef]) {
    for op in ops {
        let of_host = op.kernels.dtypes(Backend::Cpu);
        let others = op.kernels.dtypes(crate::BACKEND).iter().filter(|dtype| !of_host.contains(*dtype));
        others.for_each(|dtype| _ = op.kernels.replace(crate::BACKEND, dtype, None));
        for dtype in of_host.iter() {
            op.kernels.replace(crate::BACKEND, dtype, Some(KERNELS[dtype.index()]));
        }
    }
}

/// Submits work that uses the memory at some addresses to this thread's stream.
pub fn launch(addresses: Vec<usize>, work: impl FnOnce() -> Result<()> + Send + 'static) {
    stream::ask(stream::own(), move || {
        let addresses = addresses.iter().map(|address| std::ptr::with_exposed_provenance_mut(*address));
        let _open = Open::new(addresses);
        work()
    });
}

macro_rules! kernels {
    ($({ $variant:ident: $($columns:tt)* })*) => {
        /// The device's kernel for each dtype.
        const KERNELS: [KernelFn; DType::COUNT] = [$(kernel::<{ DType::$variant.index() }>),*];
    };
}

opsmith_runtime::for_each_dtype!(kernels);

fn kernel<const DTYPE: usize>(call: &KernelCall<'_>) -> Result<()> {
    let op = call.op();
    let Some(kernel) = op.kernels.get(Backend::Cpu, DType::ALL[DTYPE]) else {
        unreachable!("its row was copied")
    };
    let mut shown = Shown::default();
    let args: Vec<Value> = call.args().iter().map(|arg| shown.value(*arg)).collect();
    let outs: Vec<Tensor> = call.device_outputs()?.iter().map(|out| shown.tensor(out)).collect();
    let addresses: Vec<usize> =
        shown.0.iter().map(|(storage, _)| storage.data().expose_provenance()).collect();
    launch(addresses, move || {
        let args: Vec<Arg<'_>> = args.iter().map(Value::as_arg).collect();
        // SAFETY: as in the call that submitted it, which has the same operands: the runtime keeps their memory until
        // the work is done, in the order of the streams that use it. The kernel is the operator's for their dtype.
        unsafe { kernel.run(&KernelCall::new(op, &args, &outs)) }
    });
    if op.facts.deterministic {
        return Ok(());
    }
    // Random numbers are drawn at submission, as kernels of a device get their part of the sequence.
    stream::reach(stream::ticket(stream::own()))
}

/// Storages of the device, each paired with one of the host over the same memory.
#[derive(Default)]
struct Shown(Vec<(Storage, Storage)>);

impl Shown {
    fn value(&mut self, arg: Arg<'_>) -> Value {
        match arg {
            Arg::Tensor(tensor) => Value::Tensor(self.tensor(tensor)),
            Arg::Tensors(tensors) => {
                Value::Tensors(tensors.iter().map(|tensor| self.tensor(tensor)).collect())
            }
            Arg::OptionalTensors(tensors) => Value::OptionalTensors(
                tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| self.tensor(tensor))).collect(),
            ),
            other => other.to_value(),
        }
    }

    fn tensor(&mut self, tensor: &Tensor) -> Tensor {
        let storage = tensor.storage();
        let known = self.0.iter().find(|(device, _)| device.same(storage)).map(|(_, host)| host.clone());
        let host = known.unwrap_or_else(|| {
            // SAFETY: the memory is used while it is open, and only by this work.
            let host = unsafe { Storage::external(storage.data(), storage.bytes(), ()) };
            self.0.push((storage.clone(), host.clone()));
            host
        });
        // SAFETY: the layout is inside the storage, which has the same size.
        unsafe { Tensor::from_parts(host, tensor.layout().clone(), tensor.dtype(), Device::CPU) }
    }
}
