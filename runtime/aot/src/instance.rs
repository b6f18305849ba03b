//! One kernel object: a kernel made ready for inputs and outputs of certain shapes and dtypes.
//!
//! In: shapes, dtypes, attributes. Out: calls, for any tensors of these shapes. `FInit` runs once for each
//! object, with concrete shapes, so that workspaces and the kernel's own data follow every change of
//! shape. An object serves one call at a time.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;

use opsmith_core::{Backend, DType};
use opsmith_runtime::Device;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::backend::{self, Ticket};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals::Workspace as Block;
use opsmith_runtime::layout::Dims;
use opsmith_runtime::op::ArgDef;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::attributes::AttrValue;
use super::device::{self, Place};
use super::dtypes;
use super::extra::{ArrayPointers, Extra, Failure};
use super::infer::UNKNOWN_RANK;
use super::library::Library;
use super::signature::Signature;

/// Bytes of a workspace beyond the requested size: kernels that were written where memory comes in blocks
/// of 512 bytes count on it without knowing.
pub(super) const PADDING: usize = 512;
/// Bytes after the padding, by which writes even there are noticed.
pub(super) const GUARD: [u8; 16] = *b"opsmith/guard/16";

/// Shape and dtype of an input or output; no dtype for an input that is absent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    pub dtype: Option<DType>,
    pub sizes: Dims,
}

impl Slot {
    /// Those of a tensor.
    pub fn of(tensor: &Tensor) -> Slot {
        Slot { dtype: Some(tensor.dtype()), sizes: Dims::from_slice(tensor.shape()) }
    }

    /// An input that is absent.
    pub fn absent() -> Slot {
        Slot { dtype: None, sizes: Dims::new() }
    }

    /// The size of its elements in memory.
    pub fn bytes(&self) -> usize {
        self.dtype.map_or(0, |dtype| opsmith_runtime::layout::numel(&self.sizes) as usize * dtype.size())
    }

    #[inline]
    fn is(&self, tensor: &Tensor) -> bool {
        self.dtype == Some(tensor.dtype()) && self.sizes[..] == *tensor.shape()
    }
}

/// The operands that a kernel was made ready for.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Inputs, then outputs.
    pub slots: Vec<Slot>,
    /// How many of them are inputs.
    pub inputs: usize,
    /// The attributes that calls give, in order.
    pub at_call: Vec<Option<AttrValue>>,
}

impl Shape {
    /// That of a call.
    pub fn of(defs: &[ArgDef], args: &[Arg<'_>], outs: &[Tensor]) -> Shape {
        let mut shape = Shape { slots: Vec::new(), inputs: 0, at_call: Vec::new() };
        for (arg, def) in args.iter().zip(defs) {
            match *arg {
                Arg::Tensor(tensor) => shape.slots.push(Slot::of(tensor)),
                Arg::Tensors(tensors) => shape.slots.extend(tensors.iter().map(Slot::of)),
                Arg::OptionalTensors(tensors) => {
                    let slot = |tensor: &Option<Tensor>| tensor.as_ref().map_or_else(Slot::absent, Slot::of);
                    shape.slots.extend(tensors.iter().map(slot));
                }
                Arg::None if def.ty.is_tensor() => shape.slots.push(Slot::absent()),
                arg => shape.at_call.push(AttrValue::of_argument(arg)),
            }
        }
        shape.inputs = shape.slots.len();
        shape.slots.extend(outs.iter().map(Slot::of));
        shape
    }

    /// Whether some sizes of inputs are not known.
    pub fn is_symbolic(&self) -> bool {
        self.slots[..self.inputs].iter().any(|slot| slot.sizes.iter().any(|size| *size < 0))
    }

    /// Whether a call has the same inputs and attributes.
    #[inline]
    pub fn fits_inputs(&self, defs: &[ArgDef], args: &[Arg<'_>]) -> bool {
        let (mut slots, mut values) = (self.slots[..self.inputs].iter(), self.at_call.iter());
        let is = |slot: Option<&Slot>, tensor: &Tensor| slot.is_some_and(|slot| slot.is(tensor));
        let is_absent = |slot: Option<&Slot>| slot.is_some_and(|slot| slot.dtype.is_none());
        for (arg, def) in args.iter().zip(defs) {
            let same = match *arg {
                Arg::Tensor(tensor) => is(slots.next(), tensor),
                Arg::Tensors(tensors) => tensors.iter().all(|tensor| is(slots.next(), tensor)),
                Arg::OptionalTensors(tensors) => tensors.iter().all(|tensor| match tensor {
                    Some(tensor) => is(slots.next(), tensor),
                    None => is_absent(slots.next()),
                }),
                Arg::None if def.ty.is_tensor() => is_absent(slots.next()),
                arg => values.next().is_some_and(|value| match value {
                    Some(value) => value.equals(arg),
                    None => AttrValue::of_argument(arg).is_none(),
                }),
            };
            if !same {
                return false;
            }
        }
        slots.next().is_none()
    }

    /// Whether a call's outputs are those, too.
    #[inline]
    pub fn fits_outputs(&self, outs: &[Tensor]) -> bool {
        let slots = &self.slots[self.inputs..];
        slots.len() == outs.len() && slots.iter().zip(outs).all(|(slot, out)| slot.is(out))
    }
}

/// The arrays that kernels get of shapes and dtypes. They point into themselves, so they stay where they are.
pub(super) struct Arrays {
    pub ndims: Vec<c_int>,
    /// The sizes of all, one after the other.
    pub sizes: Vec<i64>,
    pub shapes: Vec<*mut i64>,
    pub dtypes: Vec<*const c_char>,
}

// SAFETY: the pointers lead into the same object's memory, or to names that are always there.
unsafe impl Send for Arrays {}

impl Arrays {
    pub fn of(slots: &[Slot]) -> Arrays {
        let mut sizes: Vec<i64> = slots.iter().flat_map(|slot| slot.sizes.iter().copied()).collect();
        // Functions that take a number of dimensions for granted read on behind a shape of unknown rank.
        sizes.extend([UNKNOWN_RANK; 8]);
        let mut start = sizes.as_mut_ptr();
        let mut shapes = Vec::new();
        for slot in slots {
            if slot.sizes.is_empty() {
                shapes.push(std::ptr::null_mut());
                continue;
            }
            shapes.push(start);
            // SAFETY: the sizes of all slots stand one after the other.
            start = unsafe { start.add(slot.sizes.len()) };
        }
        let name = |slot: &Slot| slot.dtype.map_or(dtypes::ABSENT, dtypes::name).as_ptr();
        Arrays {
            ndims: slots.iter().map(|slot| slot.sizes.len() as c_int).collect(),
            sizes,
            shapes,
            dtypes: slots.iter().map(name).collect(),
        }
    }

    /// Their addresses, for a call.
    #[inline]
    pub fn pointers(&mut self) -> ArrayPointers {
        ArrayPointers {
            ndims: self.ndims.as_mut_ptr(),
            shapes: self.shapes.as_mut_ptr(),
            dtypes: self.dtypes.as_mut_ptr(),
        }
    }
}

/// A kernel object.
pub(super) struct Instance {
    pub shape: Shape,
    arrays: Arrays,
    params: Vec<*mut c_void>,
    /// Before the library, which has the destructor of the data that the kernel left in it.
    extra: Extra,
    pub library: Arc<Library>,
    pub place: Place,
    /// The point of a device's stream after its last call there: the data that the kernel left in `extra` is in use until
    /// then.
    pub last_use: Option<(Device, Ticket)>,
}

// SAFETY: the pointers in `params` are written before each call; nothing else refers to the object.
unsafe impl Send for Instance {}

impl Instance {
    /// Makes a kernel ready: runs `FInit`.
    ///
    /// # Errors
    /// If it fails: its code, or its exception.
    pub fn new(
        library: Arc<Library>,
        function: &str,
        signature: &Signature,
        shape: Shape,
        place: Place,
    ) -> Result<Instance> {
        let _entered = place.enter()?;
        let mut arrays = Arrays::of(&shape.slots);
        let mut extra = Extra::new(signature.attributes(&shape.at_call), library.names());
        // SAFETY: the arrays have an entry for each input and output, and live for the call.
        let result = unsafe { extra.init(&library, arrays.pointers()) };
        check(result, &format!("{function}Init"), &library.source)?;
        Ok(Instance { shape, arrays, params: Vec::new(), extra, library, place, last_use: None })
    }

    /// The sizes in bytes of the workspaces that the kernel asked for.
    pub fn workspaces(&self) -> &[usize] {
        self.extra.workspaces()
    }

    /// Calls the kernel with the addresses of inputs, outputs and workspaces, where its operands live, and
    /// with the stream that it is to use there.
    ///
    /// # Errors
    /// If it fails: its code, or its exception.
    ///
    /// # Safety
    /// Each address leads to memory of its slot's size, or is null for an input that is absent; inputs
    /// may be read and outputs and workspaces written meanwhile.
    // As `push_addresses`: one of several callers lasts nanoseconds.
    #[inline(always)]
    pub unsafe fn call(
        &mut self,
        function: &str,
        stream: *mut c_void,
        params: impl Iterator<Item = *mut c_void>,
    ) -> Result<()> {
        self.params.clear();
        self.params.extend(params);
        let arrays = self.arrays.pointers();
        // SAFETY: the arrays have an entry for each input and output, and the caller promises the rest.
        let result = unsafe { self.extra.main(&self.library, &mut self.params, arrays, stream) };
        match result {
            Ok(0) => Ok(()),
            result => check(result, function, &self.library.source),
        }
    }

    /// Runs the kernel on tensors.
    ///
    /// # Errors
    /// As [`Instance::call`]; or if there is no memory for workspaces, or one was overrun.
    #[inline]
    pub fn run(&mut self, function: &str, args: &[Arg<'_>], defs: &[ArgDef], outs: &[Tensor]) -> Result<()> {
        if self.place == Place::Device {
            return self.run_on_device(function, args, defs, outs);
        }
        let workspaces = Workspaces::new(self.workspaces())?;
        let mut params: SmallVec<[*mut c_void; 12]> = SmallVec::new();
        push_addresses(&mut params, args, defs);
        params.extend(outs.iter().map(|out| out.data_ptr().cast()));
        params.extend(workspaces.0.iter().map(|workspace| workspace.block.pointer().as_ptr().cast()));
        // SAFETY: the shape fits the call, the dispatcher holds the storages' borrows, and workspaces are
        // at least as large as asked for.
        unsafe { self.call(function, std::ptr::null_mut(), params.into_iter())? };
        workspaces.check(function, &self.library.source)
    }

    /// The same for a kernel of the device, on tensors of the device, or on those of the host by copies; out of the way
    /// of calls that last nanoseconds.
    #[cold]
    #[inline(never)]
    fn run_on_device(
        &mut self,
        function: &str,
        args: &[Arg<'_>],
        defs: &[ArgDef],
        outs: &[Tensor],
    ) -> Result<()> {
        let mut addresses: SmallVec<[*mut c_void; 12]> = SmallVec::new();
        push_addresses(&mut addresses, args, defs);
        addresses.extend(outs.iter().map(|out| out.data_ptr().cast()));
        let device = first_tensor(args, outs).map_or(Device::CPU, Tensor::device);
        // SAFETY: the shape fits the call, all tensors are where its first is, and the dispatcher holds the storages'
        // borrows; it lets this thread's stream follow the last uses of the operands.
        unsafe {
            match device.backend {
                Backend::Cpu => device::run_by_copies(self, function, &addresses),
                _ => {
                    refuse_other_device(function, device)?;
                    device::run_in_stream(self, function, &addresses, device)
                }
            }
        }
    }

    /// Whether the kernel left the arrays of shapes as they were.
    pub fn shapes_are_intact(&self) -> bool {
        let fresh = Arrays::of(&self.shape.slots);
        fresh.ndims == self.arrays.ndims
            && fresh.sizes == self.arrays.sizes
            && fresh.dtypes == self.arrays.dtypes
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some((device, ticket)) = self.last_use {
            // A failure of that work is reported by the waits of its stream.
            _ = backend::of(device).and_then(|runtime| runtime.wait(device.index, ticket));
        }
        // The destructor of the data that the kernel left in `extra` may use the device, if it still can be used.
        if let Ok(_entered @ Some(_)) = self.place.enter() {
            self.extra.destroy();
        }
    }
}

/// A tensor of a call; all are on one device.
fn first_tensor<'a>(args: &'a [Arg<'a>], outs: &'a [Tensor]) -> Option<&'a Tensor> {
    let mut first = outs.first();
    args.iter().for_each(|arg| arg.for_each_tensor(|tensor| first = first.or(Some(tensor))));
    first
}

/// Refuses operands of a device that kernels do not run on.
#[cold]
fn refuse_other_device(function: &str, device: Device) -> Result<()> {
    if device.index == 0 {
        return Ok(());
    }
    Err(Error::device(format!(
        "the kernel `{function}` runs on the first device that the driver shows, and its operands are on {device}"
    ))
    .with_help("move them there, or choose the first device with CUDA_VISIBLE_DEVICES"))
}

/// Adds the addresses of a call's inputs, null for those that are absent.
// Several callers, of which one lasts nanoseconds: left to itself, the compiler calls it for all.
#[inline(always)]
fn push_addresses(params: &mut SmallVec<[*mut c_void; 12]>, args: &[Arg<'_>], defs: &[ArgDef]) {
    for (arg, def) in args.iter().zip(defs) {
        match *arg {
            Arg::Tensor(tensor) => params.push(tensor.data_ptr().cast()),
            Arg::Tensors(tensors) => params.extend(tensors.iter().map(|tensor| tensor.data_ptr().cast())),
            Arg::OptionalTensors(tensors) => {
                let address = |tensor: &Option<Tensor>| {
                    tensor.as_ref().map_or(std::ptr::null_mut(), |tensor| tensor.data_ptr().cast())
                };
                params.extend(tensors.iter().map(address));
            }
            Arg::None if def.ty.is_tensor() => params.push(std::ptr::null_mut()),
            _ => {}
        }
    }
}

/// The result of a function of a kernel, by its code or exception.
pub(super) fn check(result: Result<c_int, Failure>, function: &str, library: &Path) -> Result<()> {
    match result {
        Ok(0) => Ok(()),
        Ok(code) => {
            Err(Error::kernel(format!("the kernel `{function}` ({}) returned {code}", library.display()))
                .with_help(format!("0 means success; what {code} means, the kernel's source says")))
        }
        Err(failure) => Err(failed(&failure, function, library)),
    }
}

/// The error of a function that threw, or broke the interface.
#[cold]
pub(super) fn failed(failure: &Failure, function: &str, library: &Path) -> Error {
    let of = |what: String| Error::kernel(format!("the kernel `{function}` ({}) {what}", library.display()));
    match failure {
        Failure::Exception(text) => of(format!("threw: {text}")),
        Failure::OtherException(name) => of(format!("threw an object of the type: {name}")),
        Failure::Deleted => of("deleted the AotExtra that it was given".to_owned()).with_help(
            "remove the delete: the AotExtra is the host's, and is destroyed with the kernel, as is an object that \
             SetKernelData left in it (which may be deleted earlier, with DestructKernelData)",
        ),
    }
}

/// The workspaces of one call.
struct Workspaces(SmallVec<[Workspace; 2]>);

struct Workspace {
    block: Block,
    size: usize,
}

impl Workspaces {
    #[inline]
    fn new(sizes: &[usize]) -> Result<Workspaces> {
        let mut workspaces = Workspaces(SmallVec::new());
        for &size in sizes {
            let block = size
                .checked_add(PADDING + GUARD.len())
                .and_then(Block::new)
                .ok_or_else(|| no_memory(size))?;
            // SAFETY: the block has room for size, padding and guard.
            unsafe { block.pointer().as_ptr().add(size + PADDING).cast::<[u8; GUARD.len()]>().write(GUARD) };
            workspaces.0.push(Workspace { block, size });
        }
        Ok(workspaces)
    }

    #[inline]
    fn check(&self, function: &str, library: &Path) -> Result<()> {
        for (index, Workspace { block, size }) in self.0.iter().enumerate() {
            // SAFETY: `new` wrote it there.
            let guard =
                unsafe { block.pointer().as_ptr().add(size + PADDING).cast::<[u8; GUARD.len()]>().read() };
            if guard != GUARD {
                return Err(overrun(function, library, index, *size));
            }
        }
        Ok(())
    }
}

#[cold]
fn no_memory(size: usize) -> Error {
    Error::memory(format!("there is no memory for a workspace of {size} bytes"))
        .with_help("FInit asks for it with SetWorkSpace; is a size computed from one that is not known?")
}

#[cold]
pub(super) fn overrun(function: &str, library: &Path, index: usize, size: usize) -> Error {
    Error::kernel(format!(
        "the kernel `{function}` ({}) wrote more than {PADDING} bytes past the end of workspace {index}, which has {size} bytes",
        library.display()
    ))
    .with_help("let FInit ask for more with SetWorkSpace; OPSMITH_CHECK=1 says where the first byte too many is")
}
