//! Calls whose tensor operands have one shape, dtype and device, of operators whose results follow from those alone
//! ([`UniformCall`]): most calls of element-wise operators.
//!
//! In: a definition and arguments. Out: the operands, found in one walk over the arguments, which the later steps of the call
//! visit instead; and the call itself, in each form. No inference, no conversion, no memory but the result's.

use std::mem::MaybeUninit;

use opsmith_core::{DType, MAX_POINTWISE_TENSORS};

use super::borrows::{Borrows, OperandBorrows};
use super::run::{refuse_replaced, run_prepared};
use super::targets::same_elements;
use super::{numbers, observer};
use crate::arg::Arg;
use crate::error::Result;
use crate::op::{Kernel, KernelCall, OpDef, UniformCall};
use crate::tensor::{Tensor, replacements};

/// Room for the operands of a call, with the caller, so that they are written once: a copy of the array waits for its stores.
pub(crate) struct OperandRoom<'a>([MaybeUninit<&'a Tensor>; MAX_POINTWISE_TENSORS]);

impl OperandRoom<'_> {
    #[inline(always)]
    pub const fn new() -> Self {
        OperandRoom([const { MaybeUninit::uninit() }; MAX_POINTWISE_TENSORS])
    }
}

/// A call whose tensor operands have one shape, dtype and device, with the kernel for them.
pub(crate) struct Uniform<'a> {
    op: &'static OpDef,
    args: &'a [Arg<'a>],
    kernel: Kernel,
    /// The result's dtype.
    dtype: DType,
    /// The operands, at least one.
    operands: &'a [&'a Tensor],
    /// The count of replaced tensors before the shapes were read.
    since: u64,
}

impl<'a> Uniform<'a> {
    /// The call, if it is such a one: then the result has the operands' shape and device.
    #[inline(always)]
    pub fn of(op: &'static OpDef, args: &'a [Arg<'a>], room: &'a mut OperandRoom<'a>) -> Option<Uniform<'a>> {
        if op.uniform == UniformCall::No {
            return None;
        }
        let since = replacements();
        let (mut first, mut count): (Option<&'a Tensor>, usize) = (None, 0);
        for arg in args {
            match (*arg, first) {
                (Arg::Tensor(tensor), None) => {
                    first = Some(tensor);
                    room.0[0].write(tensor);
                    count = 1;
                }
                (Arg::Tensor(tensor), Some(first)) => {
                    let alike = tensor.same(first)
                        || tensor.dtype() == first.dtype()
                            && tensor.device() == first.device()
                            && tensor.has_shape_of(first);
                    if !alike || count == MAX_POINTWISE_TENSORS {
                        return None;
                    }
                    room.0[count].write(tensor);
                    count += 1;
                }
                (Arg::Scalar(_), None) => return None,
                (Arg::Scalar(number), Some(first))
                    if number.dtype().category() > first.dtype().category() =>
                {
                    return None;
                }
                (Arg::Tensors(_) | Arg::OptionalTensors(_), _) => return None,
                _ => {}
            }
        }
        let first = first?;
        let (given, device) = (first.dtype(), first.device());
        let dtype = match op.uniform {
            UniformCall::Fixed(dtype) => dtype,
            UniformCall::SameIfInexact if !given.is_differentiable() => return None,
            _ => given,
        };
        // SAFETY: as many places of the room, which is borrowed as long as the operands, were written.
        let operands = unsafe { std::slice::from_raw_parts(room.0.as_ptr().cast(), count) };
        let kernel = op.kernels.get(device.backend, given)?;
        Some(Uniform { op, args, kernel, dtype, operands, since })
    }

    /// The tensors among the arguments.
    #[inline(always)]
    pub fn operands(&self) -> &[&'a Tensor] {
        self.operands
    }

    /// The functional form.
    ///
    /// # Errors
    /// If a number does not fit the dtype, there is no memory, or the kernel fails.
    #[inline(always)]
    pub fn functional(&self) -> Result<Tensor> {
        let out = Tensor::uninitialized_like(self.operands[0], self.dtype)?;
        // SAFETY: the tensor is as inferred, and new.
        unsafe { self.run(&out, false)? };
        Ok(out)
    }

    /// The in-place form, which writes an operand; `None` if it may not hold the result as it is.
    #[inline(always)]
    pub fn inplace(&self, target: &Tensor) -> Option<Result<()>> {
        if !self.op.forms.elementwise || !self.can_write(target) {
            return None;
        }
        // SAFETY: the target is as inferred; operands that share its memory are the same elements.
        Some(unsafe { self.run(target, true) })
    }

    /// The out form, which writes a given tensor; `None` if it may not hold the result as it is.
    #[inline(always)]
    pub fn out(&self, out: &Tensor) -> Option<Result<()>> {
        let alone = || !self.operands().iter().any(|tensor| tensor.shares_storage(out));
        if !self.can_write(out) || !(self.op.forms.elementwise || alone()) {
            return None;
        }
        // SAFETY: as for the in-place form.
        Some(unsafe { self.run(out, true) })
    }

    /// Whether the kernel may write the result into a tensor: it is as inferred, row-major, and shares its memory
    /// with no other elements of an operand.
    #[inline(always)]
    fn can_write(&self, target: &Tensor) -> bool {
        let like = self.operands[0];
        let mut elsewhere = false;
        for tensor in self.operands {
            elsewhere |=
                !tensor.same(target) && tensor.shares_storage(target) && !same_elements(tensor, target);
        }
        let alike = target.same(like) || target.device() == like.device() && target.has_shape_of(like);
        alike && target.dtype() == self.dtype && target.is_contiguous() && !elsewhere
    }

    /// Runs the kernel, or reports it while this thread traces. An output that is `shared` is visible to other code, so that it
    /// holds elements and must be borrowed.
    ///
    /// # Safety
    /// The output is as inferred, and overlaps an operand only if both are the same elements and the operator's
    /// forms are `elementwise`. No other code has it, unless it is `shared`.
    unsafe fn run(&self, out: &Tensor, shared: bool) -> Result<()> {
        let (given, outs) = (self.operands[0].dtype(), std::slice::from_ref(out));
        numbers::check(self.op, self.args, given)?;
        if let Some(observer) = observer::observer() {
            return observer.called(self.op, given, self.args, outs, shared);
        }
        if out.numel() == 0 {
            return Ok(());
        }
        match OperandBorrows::try_acquire(self.operands(), shared.then_some(out)) {
            // SAFETY: the caller's promise; the storages are borrowed until this returns.
            Some(_held) => unsafe { self.run_borrowed(outs, shared) },
            // SAFETY: as above.
            None => unsafe { self.run_waiting(outs, shared) },
        }
    }

    /// Waits for storages that other threads use, then runs the kernel.
    ///
    /// # Safety
    /// As of [`Uniform::run`].
    #[cold]
    #[inline(never)]
    unsafe fn run_waiting(&self, outs: &[Tensor], shared: bool) -> Result<()> {
        let mut held = Borrows::default();
        held.add(self.operands(), if shared { outs } else { &[] })?;
        // SAFETY: the caller's promise; the storages are borrowed until this returns.
        unsafe { self.run_borrowed(outs, shared) }
    }

    /// Runs the kernel over tensors whose storages are borrowed.
    ///
    /// # Safety
    /// As of [`Uniform::run`], and the borrows are held until this returns.
    #[inline(always)]
    unsafe fn run_borrowed(&self, outs: &[Tensor], shared: bool) -> Result<()> {
        refuse_replaced(self.args, outs, self.since)?;
        // SAFETY: the caller promises a valid call, whose tensors have one shape; they stay as they were checked while their
        // storages are borrowed. Shared tensors hold elements.
        unsafe {
            let call = KernelCall::new(self.op, self.args, outs).with_one_shape();
            run_prepared(self.kernel, &if shared { call.with_elements() } else { call })
        }
    }
}
