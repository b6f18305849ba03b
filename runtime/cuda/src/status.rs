//! Reports of kernels: a word of pinned memory in which a kernel sets bits.
//!
//! In: modules with the variable `opsmith_status`. Out: the error for the bits that kernels set. The word belongs to the
//! device: the first wait on it after a kernel reports takes the report, in any thread. Must not know kernels.

use std::sync::atomic::{AtomicU32, Ordering};

use opsmith_runtime::arith::zero_division;
use opsmith_runtime::{Error, Result};

use crate::driver::Context;
use crate::driver::api::{DeviceAddress, Handle};
use crate::driver::codes;
use crate::memory::pinned;
use crate::stream;

/// The bit of an integer division by zero.
const ZERO_DIVISION: u32 = 1;
/// The bit of an index out of range.
const INDEX: u32 = 2;

/// The word of one device.
pub struct Status {
    word: &'static AtomicU32,
    address: DeviceAddress,
}

impl Status {
    /// Pins the word.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(context: &Context) -> Result<Status> {
        let start = pinned(context, size_of::<AtomicU32>())?.cast::<AtomicU32>();
        // SAFETY: the memory is new, aligned to a page, never freed, and only accessed atomically.
        let word = unsafe {
            start.write(AtomicU32::new(0));
            start.as_ref()
        };
        let _entered = context.enter()?;
        let mut address = 0;
        // SAFETY: the memory is pinned and mapped; the result is a local variable.
        let code =
            unsafe { (context.api().cuMemHostGetDevicePointer_v2)(&mut address, start.as_ptr().cast(), 0) };
        context.check(code, "map pinned memory")?;
        Ok(Status { word, address })
    }

    /// The error of reports since the last check.
    ///
    /// # Errors
    /// If a kernel reported one.
    pub fn check(&self) -> Result<()> {
        if self.word.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        match self.word.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            bits if bits & ZERO_DIVISION != 0 => Err(zero_division()),
            bits if bits & INDEX != 0 => {
                Err(Error::index("an index of a kernel on the device is out of range")
                    .with_help("OPSMITH_CUDA_SYNC=1 reports it at the call that launches the kernel"))
            }
            bits => Err(Error::kernel(format!("a kernel on the device reported the unknown code {bits:#x}"))),
        }
    }

    /// Stores the word's address in the variable of a module, if it has one.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn connect(&self, context: &'static Context, module: Handle) -> Result<()> {
        let stream = stream::own(context)?;
        let _entered = context.enter()?;
        let (mut variable, mut bytes) = (0, 0);
        // SAFETY: the context is entered, the module is loaded, and results are local variables.
        let found = unsafe {
            (context.api().cuModuleGetGlobal_v2)(
                &mut variable,
                &mut bytes,
                module,
                c"opsmith_status".as_ptr(),
            )
        };
        if found != codes::SUCCESS || bytes != size_of::<DeviceAddress>() {
            return Ok(());
        }
        let address = &raw const self.address;
        // SAFETY: the variable has this size; the value is read before `synchronize` returns.
        let code =
            unsafe { (context.api().cuMemcpyHtoDAsync_v2)(variable, address.cast(), bytes, stream.raw()) };
        context.check(code, "set a variable of a module")?;
        stream.synchronize()
    }
}
