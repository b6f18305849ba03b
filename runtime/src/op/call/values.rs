//! Outputs without a view: written by a loop of the runtime, or never requested by the kernel.
//!
//! In: a call, and the runtime's loops that write its first output. Out: a valid value in each `bool`. Must not know
//! kernels.

use opsmith_core::DType;

use super::{KernelCall, LAST};
use crate::tensor::Tensor;
use crate::view::Positions;

impl KernelCall<'_> {
    /// Records that a loop has written the whole first output.
    #[inline]
    pub(crate) fn note_filled(&self) {
        self.filled.set(true);
    }

    /// Writes valid elements into outputs that the kernel did not request, for dtypes where some bytes are invalid.
    #[inline]
    pub(crate) fn make_untouched_valid(&self) {
        if self.holds_elements {
            return;
        }
        for (index, out) in self.outs.iter().enumerate().filter(|(_, out)| out.dtype() == DType::Bool) {
            let touched = self.taken.get() & (1 << index.min(LAST)) != 0 || index == 0 && self.filled.get();
            if !touched {
                make_valid(out);
            }
        }
    }
}

/// Writes valid elements into uninitialised memory where some bytes are invalid: `false` for `bool`. Device memory is
/// initialised by its kernel.
pub(crate) fn make_valid(tensor: &Tensor) {
    if tensor.dtype() != DType::Bool || !tensor.is_on_host() {
        return;
    }
    let start = tensor.data_ptr();
    if tensor.is_contiguous() {
        // SAFETY: a bool is a byte, so these are the tensor's own elements, which no code reads: they are an output's
        // before its kernel runs.
        unsafe { start.write_bytes(0, tensor.numel() as usize) };
        return;
    }
    for position in Positions::new(tensor.shape(), tensor.strides()) {
        // SAFETY: positions are those of the tensor's own elements, which no code reads yet.
        unsafe { start.offset(position as isize).write(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::library::Library;
    use crate::op::{OpDef, Schema};

    static OP: OpDef =
        OpDef::new("op", Schema { text: "", args: &[], returns: &[] }, "tests.yaml:1", &Library::EMPTY);

    #[test]
    fn truth_values_that_a_kernel_leaves_alone_are_false() {
        let out = Tensor::with_memory(&[3], DType::Bool, Device::CPU).unwrap();
        // SAFETY: the bytes of the tensor, all initialised.
        let bytes = || unsafe { std::slice::from_raw_parts(out.data_ptr(), 3) }.to_vec();
        // SAFETY: only this test has the tensor, and it reads nothing but bytes.
        unsafe { out.data_ptr().write_bytes(7, 3) };
        // SAFETY: no other code has the only output, and there is no argument.
        let call = unsafe { KernelCall::new(&OP, &[], std::slice::from_ref(&out)) };
        call.note_filled();
        call.make_untouched_valid();
        assert_eq!(bytes(), [7; 3]);
        call.filled.set(false);
        call.make_untouched_valid();
        assert_eq!(bytes(), [0; 3]);
    }
}
