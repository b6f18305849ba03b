//! A kernel: the file of its code, its declaration, and the objects that are ready to run.
//!
//! In: calls with prepared arguments. Out: outputs filled, or errors. The code is compiled and loaded when
//! it is first needed. Objects that are made ready for one set of shapes wait here for the next call with
//! the same; a call takes one for itself, so calls from several threads never share one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use opsmith_core::{Backend, DType};
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::{KernelInternals as _, TensorInternals as _, convert, make_valid};
use opsmith_runtime::op::{ArgDef, Inferred, KernelCall, OutSpec};
use opsmith_runtime::tensor::Tensor;

use super::device::Place;
use super::infer::{Inference, OutputDTypes, OutputShapes};
use super::instance::{Instance, Shape, Slot};
use super::library::Library;
use super::object::SharedObject;
use super::signature::{Combination, Signature};
use super::{check, sandbox};

/// How many objects wait for calls. Beyond that, the one that has waited for longest is destroyed.
const WAITING: usize = 16;

/// How a kernel is built and run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Options {
    /// Flags for the compiler, after the default ones.
    pub flags: Vec<String>,
    /// Whether buffers are guarded and compared.
    pub check: bool,
    /// Whether the kernel runs in a process of its own.
    pub sandbox: bool,
    /// How long it may run there.
    pub timeout: Duration,
    /// Whether a source that changes is built again.
    pub reload: bool,
}

impl Options {
    /// As the environment says.
    ///
    /// # Errors
    /// If it says nonsense.
    pub fn from_environment() -> Result<Options> {
        let on = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let timeout = match std::env::var("OPSMITH_AOT_TIMEOUT") {
            Err(_) => Duration::from_secs(60),
            Ok(text) => text
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| {
                    Error::value(format!("OPSMITH_AOT_TIMEOUT is `{text}`, which is no time"))
                        .with_help("write seconds: 10 or 0.5")
                })?,
        };
        Ok(Options {
            flags: Vec::new(),
            check: on("OPSMITH_CHECK"),
            sandbox: on("OPSMITH_AOT_SANDBOX"),
            timeout,
            reload: on("OPSMITH_AOT_RELOAD"),
        })
    }
}

/// A kernel.
pub(super) struct Kernel {
    pub signature: Signature,
    pub source: PathBuf,
    pub function: String,
    /// Where its operands live.
    pub place: Place,
    pub options: Options,
    pub shapes: OutputShapes,
    pub dtypes: OutputDTypes,
    pub state: Mutex<State>,
}

/// The parts of a kernel that change while it lives.
#[derive(Default)]
pub(super) struct State {
    /// The shared object, once it is known.
    pub(super) object: Option<SharedObject>,
    library: Option<Arc<Library>>,
    /// The files it was made from, with when they were changed last, if that matters.
    pub(super) watched: Vec<(PathBuf, Option<SystemTime>)>,
    /// How long the compiler ran for it; otherwise it was in the cache, or given.
    pub compiled: Option<Duration>,
    #[allow(
        clippy::vec_box,
        reason = "each is taken out and put back by every call, which would move it twice"
    )]
    waiting: Vec<Box<Instance>>,
}

impl Kernel {
    /// Shape and dtype of each output of a call, and the dtype that chooses the kernel.
    ///
    /// # Errors
    /// If the inputs do not fit the kernel's signature, or inference fails.
    pub fn infer(&self, defs: &[ArgDef], args: &[Arg<'_>]) -> Result<Inferred> {
        let device = opsmith_runtime::infer::device_of(args)?;
        // An operand on the host is copied to where the kernel's operands live.
        if device.backend != Backend::Cpu && device.backend != self.place.backend() {
            return Err(self.wrong_target(device.backend));
        }
        let mut inferred = Inferred { outs: Default::default(), compute: DType::F32, device };
        let spec =
            |slot: &Slot| OutSpec { sizes: slot.sizes.clone(), dtype: slot.dtype.unwrap_or(DType::F32) };
        if !self.options.sandbox {
            let mut state = self.state();
            self.refresh(&mut state)?;
            if let Some(ready) = state.waiting.iter().rev().find(|ready| ready.shape.fits_inputs(defs, args))
            {
                inferred.outs.extend(ready.shape.slots[ready.shape.inputs..].iter().map(spec));
                return Ok(inferred);
            }
        }
        let mut shape = Shape::of(defs, args, &[]);
        self.choose(&mut shape.slots)?;
        inferred.outs.extend(self.infer_slots(&shape)?.iter().map(spec));
        Ok(inferred)
    }

    /// The outputs for inputs of which only shapes and dtypes are known.
    ///
    /// # Errors
    /// As [`Kernel::infer`].
    pub fn infer_slots(&self, shape: &Shape) -> Result<Vec<Slot>> {
        let inference = Inference {
            signature: &self.signature,
            function: &self.function,
            shapes: &self.shapes,
            dtypes: &self.dtypes,
        };
        let attributes = self.signature.attributes(&shape.at_call);
        if self.options.sandbox {
            let object = self.object(&mut self.state())?;
            let infer = || {
                let library = &mut || self.open(&object).map(Arc::new);
                inference.outputs(&shape.slots, &attributes, library)
            };
            return sandbox::infer(self, shape.is_symbolic(), &infer);
        }
        inference.outputs(&shape.slots, &attributes, &mut || self.library(&mut self.state()))
    }

    /// Replaces the dtypes of inputs by those that the kernel sees.
    pub fn choose(&self, slots: &mut [Slot]) -> Result<()> {
        let given: Vec<Option<DType>> = slots.iter().map(|slot| slot.dtype).collect();
        if let Some(row) = self.signature.select(&given)? {
            for (position, slot) in slots.iter_mut().enumerate() {
                let wanted = self.signature.wanted(row, position, given.len());
                slot.dtype = slot.dtype.map(|dtype| wanted.unwrap_or(dtype));
            }
        }
        Ok(())
    }

    /// Runs a call whose outputs have the inferred shapes.
    ///
    /// # Errors
    /// If the kernel fails.
    pub fn run(&self, call: &KernelCall<'_>) -> Result<()> {
        let (defs, args, outs) = (call.op().schema.args, call.args(), call.raw_outputs());
        if let Some(ready) = self.take_ready(defs, args, outs) {
            // It was made for these dtypes, so they are right.
            return self.run_instance(ready, defs, args, outs);
        }
        if self.signature.combinations.is_empty() {
            return self.run_as_given(defs, args, outs);
        }
        let mut given: smallvec::SmallVec<[Option<DType>; 8]> = smallvec::SmallVec::new();
        for (arg, def) in args.iter().zip(defs) {
            match *arg {
                Arg::Tensor(tensor) => given.push(Some(tensor.dtype())),
                Arg::Tensors(tensors) => given.extend(tensors.iter().map(|tensor| Some(tensor.dtype()))),
                Arg::OptionalTensors(tensors) => {
                    given.extend(tensors.iter().map(|tensor| tensor.as_ref().map(Tensor::dtype)));
                }
                Arg::None if def.ty.is_tensor() => given.push(None),
                _ => {}
            }
        }
        let row = self.signature.select(&given)?.filter(|row| {
            let differs = |(position, dtype): (usize, &Option<DType>)| {
                let wanted = self.signature.wanted(row, position, given.len());
                matches!((wanted, dtype), (Some(wanted), Some(dtype)) if wanted != *dtype)
            };
            given.iter().enumerate().any(differs)
        });
        let converted = row.map(|row| self.convert(row, defs, args, given.len())).transpose()?;
        match converted.flatten() {
            None => self.run_as_given(defs, args, outs),
            Some(values) => {
                let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
                self.run_as_given(defs, &args, outs)
            }
        }
    }

    /// The arguments with inputs of the dtypes that a row wants; `None` if they are already.
    fn convert(
        &self,
        row: &Combination,
        defs: &[ArgDef],
        args: &[Arg<'_>],
        count: usize,
    ) -> Result<Option<Vec<Value>>> {
        let (mut position, mut changed) = (0, false);
        let mut cast = |tensor: &Tensor| {
            let wanted = self.signature.wanted(row, position, count).unwrap_or(tensor.dtype());
            position += 1;
            changed |= wanted != tensor.dtype();
            tensor.cast_untracked(wanted)
        };
        if row.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(args.len());
        for (arg, def) in args.iter().zip(defs) {
            values.push(match *arg {
                Arg::Tensor(tensor) => Value::Tensor(cast(tensor)?),
                Arg::Tensors(tensors) => {
                    Value::Tensors(tensors.iter().map(&mut cast).collect::<Result<_>>()?)
                }
                Arg::None if def.ty.is_tensor() => {
                    // SAFETY: it has no elements.
                    let absent =
                        unsafe { Tensor::uninitialized(&[0], DType::Bool, opsmith_runtime::Device::CPU) };
                    cast(&absent?)?;
                    Value::None
                }
                arg => arg.to_value(),
            });
        }
        Ok(changed.then_some(values))
    }

    fn run_as_given(&self, defs: &[ArgDef], args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
        if outs.iter().any(|out| !out.is_contiguous()) {
            // A caller's own tensor; kernels see no strides.
            let fresh = outs.iter().map(|out| {
                // SAFETY: the handle is new, and the kernel writes every element.
                unsafe {
                    let fresh = Tensor::uninitialized(out.shape(), out.dtype(), out.device())?;
                    make_valid(&fresh);
                    Ok(fresh)
                }
            });
            let fresh = fresh.collect::<Result<Vec<Tensor>>>()?;
            self.run_as_given(defs, args, &fresh)?;
            return outs
                .iter()
                .zip(&fresh)
                // SAFETY: the call borrows its outputs for writing; the others were made here.
                .try_for_each(|(out, fresh)| unsafe { convert(out, fresh) });
        }
        if self.options.check || self.options.sandbox {
            return self.run_watched(&Shape::of(defs, args, outs), args, outs);
        }
        let instance = match self.take_ready(defs, args, outs) {
            Some(ready) => ready,
            None => {
                let library = self.library(&mut self.state())?;
                let shape = Shape::of(defs, args, outs);
                Box::new(Instance::new(library, &self.function, &self.signature, shape, self.place)?)
            }
        };
        self.run_instance(instance, defs, args, outs)
    }

    /// An object that is ready for a call, if one waits.
    #[inline]
    fn take_ready(&self, defs: &[ArgDef], args: &[Arg<'_>], outs: &[Tensor]) -> Option<Box<Instance>> {
        let plain = !self.options.check && !self.options.sandbox;
        if !plain || !outs.iter().all(Tensor::is_contiguous) {
            return None;
        }
        let mut state = self.state();
        let fits = |ready: &Instance| ready.shape.fits_inputs(defs, args) && ready.shape.fits_outputs(outs);
        let position = state.waiting.iter().rposition(|ready| fits(ready))?;
        Some(state.waiting.remove(position))
    }

    #[inline]
    fn run_instance(
        &self,
        mut instance: Box<Instance>,
        defs: &[ArgDef],
        args: &[Arg<'_>],
        outs: &[Tensor],
    ) -> Result<()> {
        // One that failed may have left its data in any state, and is not used again.
        instance.run(&self.function, args, defs, outs)?;
        let mut state = self.state();
        let current = state.library.as_ref().is_some_and(|library| Arc::ptr_eq(library, &instance.library));
        let mut old = None;
        if current {
            if state.waiting.len() == WAITING {
                old = Some(state.waiting.remove(0));
            }
            state.waiting.push(instance);
        }
        // Destructors of kernels run without the lock.
        drop(state);
        drop(old);
        Ok(())
    }

    /// Runs with the switches that are on, which work on memory of the host.
    fn run_watched(&self, shape: &Shape, args: &[Arg<'_>], outs: &[Tensor]) -> Result<()> {
        if outs.iter().any(|out| !out.is_on_host()) {
            let given: Vec<Value> = args.iter().map(|arg| downloaded(*arg)).collect::<Result<_>>()?;
            let given: Vec<Arg<'_>> = given.iter().map(Value::as_arg).collect();
            let fresh: Vec<Tensor> = outs.iter().map(fresh_on_host).collect::<Result<_>>()?;
            self.run_watched(shape, &given, &fresh)?;
            let mut pairs = outs.iter().zip(&fresh);
            // SAFETY: the call borrows its outputs for writing; the others were made here.
            return pairs.try_for_each(|(out, fresh)| unsafe { convert(out, fresh) });
        }
        let mut addresses = Vec::new();
        for (arg, slot) in args.iter().flat_map(|arg| each_tensor(*arg)).zip(&shape.slots) {
            addresses.push(match slot.dtype {
                Some(_) => arg.map_or(std::ptr::null_mut(), Tensor::data_ptr),
                None => std::ptr::null_mut(),
            });
        }
        addresses.extend(outs.iter().map(Tensor::data_ptr));
        if self.options.sandbox {
            let object = self.object(&mut self.state())?;
            return sandbox::run(self, &object, shape, &addresses);
        }
        let library = self.library(&mut self.state())?;
        check::run(self, &library, shape, &addresses)
    }

    /// Compiles the source if it has to be, and loads the library.
    ///
    /// # Errors
    /// Whatever the compiler or the loader say.
    pub fn library(&self, state: &mut State) -> Result<Arc<Library>> {
        if let Some(library) = &state.library {
            return Ok(library.clone());
        }
        let object = self.object(state)?;
        let library = Arc::new(self.open(&object)?);
        state.library = Some(library.clone());
        Ok(library)
    }

    /// The parts that change while the kernel lives, for this thread.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn wrong_target(&self, backend: Backend) -> Error {
        Error::device(format!("the kernel `{}` does not run on {}", self.function, backend.key()))
            .with_help(format!("it is declared for {}", self.place.backend().key()))
    }
}

/// A tensor of the host of another's shape and dtype, with elements of any value.
fn fresh_on_host(tensor: &Tensor) -> Result<Tensor> {
    // SAFETY: the handle is new, and the caller writes every element before it is read.
    unsafe {
        let fresh = Tensor::uninitialized(tensor.shape(), tensor.dtype(), opsmith_runtime::Device::CPU)?;
        make_valid(&fresh);
        Ok(fresh)
    }
}

/// An argument of a call with copies of its tensors on the host.
fn downloaded(arg: Arg<'_>) -> Result<Value> {
    let copy = |tensor: &Tensor| {
        let copy = fresh_on_host(tensor)?;
        // SAFETY: the call borrows its inputs for reading; the copy was made here.
        unsafe { convert(&copy, tensor)? };
        Ok(copy)
    };
    Ok(match arg {
        Arg::Tensor(tensor) => Value::Tensor(copy(tensor)?),
        Arg::Tensors(tensors) => Value::Tensors(tensors.iter().map(copy).collect::<Result<_>>()?),
        Arg::OptionalTensors(tensors) => {
            let copies = tensors.iter().map(|tensor| tensor.as_ref().map(copy).transpose());
            Value::OptionalTensors(copies.collect::<Result<_>>()?)
        }
        other => other.to_value(),
    })
}

/// The tensors of an argument in order, with those that are absent.
fn each_tensor(arg: Arg<'_>) -> Vec<Option<&Tensor>> {
    match arg {
        Arg::Tensor(tensor) => vec![Some(tensor)],
        Arg::Tensors(tensors) => tensors.iter().map(Some).collect(),
        Arg::OptionalTensors(tensors) => tensors.iter().map(Option::as_ref).collect(),
        Arg::None => vec![None],
        _ => Vec::new(),
    }
}
