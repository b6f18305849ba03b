//! The call that a kernel receives: a kernel's only access to the memory of tensors.
//!
//! In: arguments and outputs that the dispatcher prepared and borrowed. Out: typed views, each output's at most once.
//! Only the dispatcher constructs calls, since the constructor's promise covers every property that views rely on; see
//! `docs/design/kernel-memory.md`.

mod values;

use std::cell::Cell;

use opsmith_core::DType;

use super::OpDef;
use crate::arg::Arg;
use crate::device::Device;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::scratch::{Scratch, or_out_of_memory};
use crate::tensor::Tensor;
use crate::view::{View, ViewMut};
pub(crate) use values::make_valid;

/// A kernel function, as stored in tables: writes every element of the call's outputs, which have their final shape.
pub type KernelFn = fn(&KernelCall<'_>) -> Result<()>;

/// A kernel returned by a table; unsafe to run.
///
/// ```compile_fail,E0133
/// # use opsmith_runtime::{Result, op::{Kernel, KernelCall}};
/// fn called(kernel: Kernel, call: &KernelCall<'_>) -> Result<()> {
///     kernel.run(call)
/// }
/// ```
///
/// The kernel of one operator cannot be installed for another, whose inference guarantees other properties:
///
/// ```compile_fail,E0308
/// # use opsmith_runtime::{Backend, DType, op::OpDef};
/// fn exchanged(a: &OpDef, b: &OpDef) {
///     let kernel = a.kernels.get(Backend::Cpu, DType::F32);
///     b.kernels.replace(Backend::Cpu, DType::F32, kernel);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Kernel(pub(super) KernelFn);

impl Kernel {
    /// A kernel that is in no table.
    pub(crate) fn of(kernel: KernelFn) -> Kernel {
        Kernel(kernel)
    }

    /// The address of its function, which tells kernels apart.
    pub fn address(self) -> *const () {
        self.0 as *const ()
    }

    /// Runs the kernel; a failed scratch allocation is an error of its call.
    ///
    /// # Errors
    /// Errors of the kernel, and if there is no memory for scratch.
    ///
    /// # Safety
    /// The call is one of the operator that the kernel was made for, since it relies on the guarantees of that
    /// operator's inference; and none of the call's outputs was handed out.
    #[inline(always)]
    pub unsafe fn run(self, call: &KernelCall<'_>) -> Result<()> {
        or_out_of_memory(|| (self.0)(call))
    }

    /// As [`run`](Self::run), of one kernel of several: a failed scratch allocation ends the function of `until_out_of_memory`
    /// that runs them.
    ///
    /// # Errors
    /// Errors of the kernel.
    ///
    /// # Safety
    /// As of [`run`](Self::run).
    #[inline(always)]
    pub(crate) unsafe fn run_in_turn(self, call: &KernelCall<'_>) -> Result<()> {
        (self.0)(call)
    }
}

/// A call as a kernel receives it: arguments in signature order, inputs converted according to
/// [`ElementType`](super::ElementType), outputs allocated, storages borrowed.
///
/// ```compile_fail,E0451
/// # use opsmith_runtime::{Arg, Tensor, op::{KernelCall, OpDef}};
/// fn forged<'a>(op: &'static OpDef, args: &'a [Arg<'a>], outs: &'a [Tensor]) -> KernelCall<'a> {
///     let (taken, filled) = Default::default();
///     KernelCall { op, args, outs, taken, filled, holds_elements: true, alike: true }
/// }
/// ```
///
/// ```compile_fail,E0133
/// # use opsmith_runtime::{Arg, Tensor, op::{KernelCall, OpDef}};
/// fn unchecked<'a>(op: &'static OpDef, args: &'a [Arg<'a>], outs: &'a [Tensor]) -> KernelCall<'a> {
///     KernelCall::new(op, args, outs)
/// }
/// ```
///
/// Views do not outlive the call, which holds the borrows of the storages:
///
/// ```compile_fail
/// # use opsmith_runtime::{View, op::KernelCall};
/// fn kept(call: &KernelCall<'_>) -> View<'static, f32> {
///     call.view(0)
/// }
/// ```
pub struct KernelCall<'a> {
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    outs: &'a [Tensor],
    /// The outputs that were handed out, a bit each; the last bit covers all from the 64th on.
    taken: Cell<u64>,
    /// Whether a loop has written the whole first output.
    filled: Cell<bool>,
    /// Whether the outputs' memory holds valid elements of their dtypes, rather than arbitrary bytes.
    holds_elements: bool,
    /// Whether the tensors of the call are known to have one shape.
    alike: bool,
}

impl<'a> KernelCall<'a> {
    /// A call whose outputs' memory holds arbitrary bytes, unless the operator `updates` them.
    ///
    /// # Safety
    /// While the call and its views are used:
    /// - the arguments match the operator's signature and `element_types`, and are on the outputs' device;
    /// - the outputs match inference for these arguments;
    /// - no code writes the arguments' storages, and no other code accesses those of the outputs;
    /// - no two outputs overlap, and an output overlaps an argument only if both are the same elements, and the operator's
    ///   forms are `elementwise`, or it is the first argument of one that `updates`.
    #[inline]
    pub unsafe fn new(op: &'static OpDef, args: &'a [Arg<'a>], outs: &'a [Tensor]) -> KernelCall<'a> {
        let (taken, filled) = (Cell::new(0), Cell::new(false));
        // The result of an operator that updates is a copy of the first argument.
        KernelCall { op, args, outs, taken, filled, holds_elements: op.forms.updates, alike: false }
    }

    /// The call with outputs whose memory holds valid elements, such as a caller's own tensors.
    ///
    /// # Safety
    /// The outputs' memory holds valid elements of their dtypes.
    #[inline]
    #[must_use]
    pub unsafe fn with_elements(mut self) -> KernelCall<'a> {
        self.holds_elements = true;
        self
    }

    /// The call with tensors of one shape, so that loops need not compare them.
    ///
    /// # Safety
    /// Every tensor of the arguments and every output has the same shape.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn with_one_shape(mut self) -> KernelCall<'a> {
        self.alike = true;
        self
    }

    /// Whether the tensors of the call are known to have one shape.
    #[inline]
    pub(crate) fn has_one_shape(&self) -> bool {
        self.alike
    }

    /// The operator.
    #[inline]
    pub fn op(&self) -> &'static OpDef {
        self.op
    }

    /// The arguments. A request for their elements through the tensors, instead of a view from this call, may deadlock:
    /// the call itself holds the borrows.
    #[inline]
    pub fn args(&self) -> &'a [Arg<'a>] {
        self.args
    }

    /// The device of the outputs.
    #[inline]
    pub fn device(&self) -> Device {
        self.outs.first().map_or(Device::CPU, Tensor::device)
    }

    /// Whether the operands are in host memory.
    #[inline]
    pub(crate) fn is_on_host(&self) -> bool {
        self.outs.first().is_none_or(Tensor::is_on_host)
    }

    /// The outputs, for a device kernel: their elements are in device memory, which the host cannot read.
    ///
    /// # Errors
    /// If they are in host memory: host kernels use views.
    pub fn device_outputs(&self) -> Result<&'a [Tensor]> {
        if self.is_on_host() {
            return Err(Error::device("the kernel computes on a device, and was given memory of the host")
                .with_help("install it for its own backend"));
        }
        Ok(self.outs)
    }

    /// The outputs, for the runtime itself: reading or writing them is unsafe while views of them live.
    #[inline]
    pub(crate) fn outs(&self) -> &'a [Tensor] {
        self.outs
    }

    #[inline]
    pub(crate) fn holds_elements(&self) -> bool {
        self.holds_elements
    }

    /// A tensor argument's elements.
    ///
    /// # Panics
    /// If the argument is not a tensor of `T`, or shares memory with an output: a mistake of generated code or the
    /// dispatcher.
    #[inline]
    pub fn view<T: Element>(&self, index: usize) -> View<'a, T> {
        let tensor = self.input(index, T::DTYPE);
        // SAFETY: `input` checked dtype, device and overlaps.
        unsafe { tensor.view_unchecked() }
    }

    /// An optional tensor argument's elements.
    ///
    /// # Panics
    /// As [`KernelCall::view`].
    #[inline]
    pub fn optional_view<T: Element>(&self, index: usize) -> Option<View<'a, T>> {
        self.args[index].optional(|arg| self.typed_view(arg.tensor()))
    }

    /// The elements of each tensor of a list argument.
    ///
    /// # Panics
    /// As [`KernelCall::view`].
    pub fn views<T: Element>(&self, index: usize) -> Scratch<View<'a, T>> {
        self.args[index].tensors().iter().map(|tensor| self.typed_view(tensor)).collect()
    }

    /// The elements of each tensor of a list argument of which some may be absent.
    ///
    /// # Panics
    /// As [`KernelCall::view`].
    pub fn optional_views<T: Element>(&self, index: usize) -> Scratch<Option<View<'a, T>>> {
        let tensors = self.args[index].optional_tensors().iter();
        tensors.map(|tensor| tensor.as_ref().map(|tensor| self.typed_view(tensor))).collect()
    }

    fn typed_view<T: Element>(&self, tensor: &'a Tensor) -> View<'a, T> {
        self.check_input(tensor, T::DTYPE);
        // SAFETY: `check_input` checked dtype, device and overlaps.
        unsafe { tensor.view_unchecked() }
    }

    /// A checked tensor argument. Takes the dtype as a value, so that it is compiled once.
    fn input(&self, index: usize, dtype: DType) -> &'a Tensor {
        let tensor = self.args[index].tensor();
        self.check_input(tensor, dtype);
        tensor
    }

    /// Checks that views of a tensor may be made: dtype and device are right and no output overlaps it. That no code
    /// writes it while the call lives is the promise of the call's constructor.
    ///
    /// # Panics
    /// If the check fails.
    fn check_input(&self, tensor: &Tensor, dtype: DType) {
        assert_eq!(tensor.dtype(), dtype, "the kernel's input type differs from the declared one");
        assert!(tensor.is_on_host(), "{NOT_ON_HOST}");
        if self.op.forms.elementwise || self.op.forms.updates {
            let shared = self.outs.iter().any(|out| tensor.overlaps(out));
            assert!(!shared, "an input that is also the output is read by `pointwise::map1` and its like");
        }
    }

    /// An output's elements, for writing.
    ///
    /// # Panics
    /// If the output's dtype is not `T`'s, if its elements were handed out before, or if it shares memory with an
    /// input.
    #[inline]
    pub fn view_mut<T: Element>(&self, index: usize) -> ViewMut<'a, T> {
        let tensor = self.output(index, T::DTYPE);
        // SAFETY: `output` checked it and marked it as handed out.
        unsafe { tensor.view_mut_unchecked() }
    }

    /// An output, checked and marked as handed out for its only view. Takes the dtype as a value, so that it is
    /// compiled once.
    fn output(&self, index: usize, dtype: DType) -> &'a Tensor {
        self.take(index);
        let tensor = &self.outs[index];
        self.check_output(tensor, dtype);
        tensor
    }

    /// Checks that the view of a taken output may be made: dtype and device are right, and elements are initialised:
    /// all memory is, and bytes that are not a valid `bool` are overwritten. That no other code accesses them is the
    /// promise of the call's constructor.
    ///
    /// # Panics
    /// If the check fails.
    fn check_output(&self, tensor: &Tensor, dtype: DType) {
        assert_eq!(tensor.dtype(), dtype, "the kernel's output type differs from the inferred one");
        assert!(tensor.is_on_host(), "{NOT_ON_HOST}");
        if dtype == DType::Bool && !self.holds_elements {
            make_valid(tensor);
        }
    }

    /// The elements of an output that may be absent, for writing.
    ///
    /// # Errors
    /// Errors of the condition.
    ///
    /// # Panics
    /// As [`KernelCall::view_mut`].
    pub fn optional_view_mut<T: Element>(&self, index: usize) -> Result<Option<ViewMut<'a, T>>> {
        let present = self.op.present_results(self.args)? & 1 << index != 0;
        Ok(present.then(|| self.view_mut(index)))
    }

    /// Every output's elements, for writing, of an operator that returns a list.
    ///
    /// # Panics
    /// As [`KernelCall::view_mut`].
    pub fn views_mut<T: Element>(&self) -> Scratch<ViewMut<'a, T>> {
        self.take_all();
        let views = self.outs.iter().map(|tensor| {
            self.check_output(tensor, T::DTYPE);
            // SAFETY: each output was checked and marked as handed out.
            unsafe { tensor.view_mut_unchecked() }
        });
        views.collect()
    }

    /// Marks an output as handed out.
    #[inline]
    fn take(&self, index: usize) {
        let bit = 1 << index.min(LAST);
        assert!(self.taken.get() & bit == 0, "the elements of output {index} were handed out before");
        self.refuse_shared(&self.outs[index]);
        self.taken.set(self.taken.get() | bit);
    }

    /// Marks every output as handed out.
    fn take_all(&self) {
        assert!(self.taken.get() == 0, "the elements of an output were handed out before");
        self.outs.iter().for_each(|out| self.refuse_shared(out));
        self.taken.set(u64::MAX);
    }

    /// Rejects memory shared with an input, as element-wise calls may have: it is read and written at once, which views
    /// do not allow.
    #[inline]
    fn refuse_shared(&self, out: &Tensor) {
        if !self.op.forms.elementwise {
            return;
        }
        let mut shared = false;
        self.args.iter().for_each(|arg| {
            arg.for_each_tensor(|tensor| shared |= tensor.overlaps(out));
        });
        assert!(!shared, "an output that is also an input is written by `pointwise::map1` and its like");
    }

    /// An output for kernels that receive its address; it counts as handed out.
    ///
    /// # Panics
    /// If its elements were handed out before, or it shares memory with an input.
    pub(crate) fn raw_output(&self, index: usize) -> &'a Tensor {
        self.take(index);
        let tensor = &self.outs[index];
        if !self.holds_elements {
            make_valid(tensor);
        }
        tensor
    }

    /// The outputs for kernels that receive addresses; all count as handed out.
    ///
    /// # Panics
    /// As [`KernelCall::raw_output`].
    pub(crate) fn raw_outputs(&self) -> &'a [Tensor] {
        self.take_all();
        if !self.holds_elements {
            self.outs.iter().for_each(make_valid);
        }
        self.outs
    }

    /// The first output, for such loops; `None` if it was handed out, or is not on the host.
    #[inline(always)]
    pub(crate) fn output_without_view(&self) -> Option<&'a Tensor> {
        self.outs.first().filter(|out| self.taken.get() & 1 == 0 && out.is_on_host())
    }

    /// The tensor at a position of the arguments.
    #[inline(always)]
    pub(crate) fn tensor_at(&self, index: usize) -> Option<&'a Tensor> {
        if let Some(Arg::Tensor(tensor)) = self.args.get(index) { Some(tensor) } else { None }
    }

    /// The first output and some of the arguments, for loops that read an element of each before they write one, and so
    /// may share memory. The loops check the dtypes.
    ///
    /// # Errors
    /// If the output or an argument does not exist or is not a tensor; or if the output was handed out.
    #[inline]
    pub(crate) fn operands_of_any_dtype<const N: usize>(&self, inputs: &[usize]) -> Result<[&'a Tensor; N]> {
        let Some(out) = self.outs.first() else { return Err(missing("output", 0)) };
        if self.taken.get() & 1 != 0 {
            return Err(handed_out());
        }
        out.check_on_host()?;
        let mut operands = [out; N];
        for (operand, &index) in operands[1..].iter_mut().zip(inputs) {
            match self.args.get(index) {
                Some(Arg::Tensor(tensor)) => *operand = tensor,
                _ => return Err(missing("tensor argument", index)),
            }
        }
        Ok(operands)
    }
}

const NOT_ON_HOST: &str = "a kernel of the host was given memory of a device: install it for its own backend";

/// The last bit of the set of outputs that were handed out.
const LAST: usize = 63;

#[cold]
fn handed_out() -> Error {
    Error::aliasing("the elements of the output were handed out before")
        .with_help("write them through the view, or without one")
}

#[cold]
fn missing(what: &str, index: usize) -> Error {
    Error::argument(format!("the kernel asks for {what} {index}, and the call has none"))
        .with_help("positions count from 0, in the order of the signature")
}
