//! Methods of public types for extensions of the runtime, as traits.
//!
//! In: the runtime's types. Out: otherwise private methods, under the same names.

use opsmith_core::{Backend, DType};

use crate::arg::{Arg, Value};
use crate::autograd::{ForwardContext, GradContext};
use crate::device::Device;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Inferred, Kernel, KernelCall, OpDef};
use crate::random::observer::Start;
use crate::random::{Generator, GeneratorState};
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Meta tensors, tensors over other memory, and conversions outside any graph of automatic differentiation.
pub trait TensorInternals: Sized {
    /// A row-major tensor with uninitialised elements; a meta tensor while the thread traces.
    ///
    /// # Errors
    /// If there is no memory.
    ///
    /// # Safety
    /// Every element is written before any is read: a byte of a `bool` may be neither 0 nor 1.
    unsafe fn uninitialized(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor>;

    /// As [`TensorInternals::uninitialized`], with memory also while the thread traces.
    ///
    /// # Errors
    /// If there is no memory.
    ///
    /// # Safety
    /// As of [`TensorInternals::uninitialized`].
    unsafe fn with_memory(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor>;

    /// A row-major meta tensor.
    ///
    /// # Errors
    /// If there is no memory for the handle.
    fn meta(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor>;

    /// A meta tensor of a layout.
    fn described(layout: Layout, dtype: DType, device: Device) -> Tensor;

    /// The same elements on a device, outside any graph: the tensor itself if it is already there.
    ///
    /// # Errors
    /// If there is no memory on the device, or it fails.
    fn on(self, device: Device) -> Result<Tensor>;

    /// A view with another layout.
    ///
    /// # Errors
    /// If the layout reaches outside the storage.
    fn with_layout(&self, layout: Layout) -> Result<Tensor>;

    /// Whether the address ranges of both tensors in one storage overlap.
    fn overlaps(&self, other: &Tensor) -> bool;

    /// Replaces the storage, and moves the offset by a number of elements.
    ///
    /// # Safety
    /// The moved layout lies inside the storage, whose elements there are of the tensor's dtype.
    unsafe fn point_at(&mut self, storage: &Storage, elements: i64);

    /// Moves the offset by a number of elements.
    ///
    /// # Safety
    /// The moved layout lies inside the storage, whose elements there are of the tensor's dtype.
    unsafe fn shift(&mut self, elements: i64);

    /// Takes over memory and layout of another tensor, outside any graph, if this is the only handle; returns whether
    /// it was.
    fn show(&mut self, other: &Tensor) -> bool;

    /// Whether this is the only handle.
    fn is_unique(&mut self) -> bool;

    /// A copy with another dtype, outside any graph.
    ///
    /// # Errors
    /// If there is no memory.
    fn cast_untracked(&self, dtype: DType) -> Result<Tensor>;

    /// The tensor itself if it is row-major, else a row-major copy outside any graph.
    ///
    /// # Errors
    /// If there is no memory.
    fn contiguous_untracked(&self) -> Result<Tensor>;
}

impl TensorInternals for Tensor {
    #[inline]
    unsafe fn uninitialized(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::uninitialized(sizes, dtype, device)
    }

    #[inline]
    unsafe fn with_memory(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::with_memory(sizes, dtype, device)
    }

    fn meta(sizes: &[i64], dtype: DType, device: Device) -> Result<Tensor> {
        Tensor::meta(sizes, dtype, device)
    }

    fn described(layout: Layout, dtype: DType, device: Device) -> Tensor {
        Tensor::described(layout, dtype, device)
    }

    fn on(self, device: Device) -> Result<Tensor> {
        self.on(device)
    }

    fn with_layout(&self, layout: Layout) -> Result<Tensor> {
        self.with_layout(&layout)
    }

    fn overlaps(&self, other: &Tensor) -> bool {
        self.overlaps(other)
    }

    #[inline]
    unsafe fn point_at(&mut self, storage: &Storage, elements: i64) {
        self.point_at(storage, elements);
    }

    #[inline]
    unsafe fn shift(&mut self, elements: i64) {
        self.shift(elements);
    }

    #[inline]
    fn show(&mut self, other: &Tensor) -> bool {
        self.show(other)
    }

    #[inline]
    fn is_unique(&mut self) -> bool {
        self.is_unique()
    }

    fn cast_untracked(&self, dtype: DType) -> Result<Tensor> {
        self.cast_untracked(dtype)
    }

    #[inline]
    fn contiguous_untracked(&self) -> Result<Tensor> {
        self.contiguous_untracked()
    }
}

/// Identity and borrow state of storages.
pub trait StorageInternals: Sized {
    /// Meta storage, which cannot be borrowed.
    ///
    /// # Errors
    /// If there is no memory for the handle.
    fn meta(bytes: usize) -> Result<Self>;

    /// A number that no other storage has while a handle lives.
    fn address(&self) -> usize;

    /// Borrows for writing; waits until all other borrows have ended.
    fn lock(&self);

    /// Ends [`StorageInternals::lock`].
    ///
    /// # Safety
    /// The caller has locked the storage, and not unlocked it since.
    unsafe fn unlock(&self);

    /// Counts a future write of a traced function.
    fn count_write(&self);
}

impl StorageInternals for Storage {
    fn meta(bytes: usize) -> Result<Storage> {
        Storage::meta(bytes)
    }

    fn address(&self) -> usize {
        self.address()
    }

    fn lock(&self) {
        self.lock();
    }

    unsafe fn unlock(&self) {
        self.unlock();
    }

    fn count_write(&self) {
        self.count_write();
    }
}

/// Random generators of graphs.
pub trait GeneratorInternals: Sized {
    /// A generator in a state, made without an event for a tracer.
    fn at(state: GeneratorState) -> Self;

    /// The generator in a graph for one that the traced function makes.
    fn starting(start: Start) -> Self;

    /// Its start in each run of a graph, if it belongs to a traced function.
    fn start(&self) -> Option<Start>;

    /// Its state, read without an event for a tracer.
    fn place(&self) -> GeneratorState;

    /// Sets its state without an event for a tracer.
    fn go_to(&self, state: GeneratorState);
}

impl GeneratorInternals for Generator {
    fn at(state: GeneratorState) -> Generator {
        Generator::at(state)
    }

    fn starting(start: Start) -> Generator {
        Generator::starting(start)
    }

    fn start(&self) -> Option<Start> {
        self.start()
    }

    fn place(&self) -> GeneratorState {
        self.place()
    }

    fn go_to(&self, state: GeneratorState) {
        self.go_to(state);
    }
}

/// Owned arguments.
pub trait ArgumentInternals {
    /// The argument, if it borrows nothing.
    fn to_plain_arg(&self) -> Option<Arg<'static>>;
}

impl ArgumentInternals for Value {
    fn to_plain_arg(&self) -> Option<Arg<'static>> {
        self.to_plain_arg()
    }
}

/// Backward formulas.
pub trait GradientInternals {
    /// The operator that was called.
    fn op(&self) -> &'static OpDef;
}

impl GradientInternals for GradContext<'_> {
    fn op(&self) -> &'static OpDef {
        self.op()
    }
}
impl GradientInternals for ForwardContext<'_> {
    fn op(&self) -> &'static OpDef {
        self.op()
    }
}

/// Calls of kernels.
pub trait KernelInternals<'a> {
    /// The outputs, for a kernel that works with their addresses.
    ///
    /// # Panics
    /// If elements of an output were handed out before, or it shares memory with an input.
    fn raw_outputs(&self) -> &'a [Tensor];
}

impl<'a> KernelInternals<'a> for KernelCall<'a> {
    fn raw_outputs(&self) -> &'a [Tensor] {
        self.raw_outputs()
    }
}

/// Definitions of operators.
pub trait OperatorInternals {
    /// The kernel for a backend and a dtype.
    ///
    /// # Errors
    /// If there is none.
    fn kernel(&self, backend: Backend, dtype: DType) -> Result<Kernel>;

    /// The result of hand-written inference; `None` if the operator has none.
    fn inferred(&self, args: &[Arg<'_>]) -> Option<Result<Inferred>>;
}

impl OperatorInternals for OpDef {
    fn kernel(&self, backend: Backend, dtype: DType) -> Result<Kernel> {
        crate::dispatch::kernel(self, backend, dtype)
    }

    fn inferred(&self, args: &[Arg<'_>]) -> Option<Result<Inferred>> {
        self.inferred(args)
    }
}
