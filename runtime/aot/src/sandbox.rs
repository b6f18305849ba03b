//! `OPSMITH_AOT_SANDBOX=1`: a kernel in a process of its own.
//!
//! In: a kernel and the memory of a call. Out: the outputs, or an error if the process died or did not
//! end in time. The child (`child.rs`) sees the inputs, loads the library, which this process never does, and
//! writes outputs to memory that both share.

use std::ffi::c_void;
use std::sync::Arc;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::layout::Dims;

use super::check;
use super::child::{Work, failed};
use super::device::{self, Place};
use super::dtypes;
use super::file::KernelFile;
use super::infer::check_shape;
use super::instance::{Instance, Shape, Slot};
use super::kernel::Kernel;

/// Bytes of a workspace beyond the requested size, as outside the sandbox.
const PADDING: usize = 512;

/// Runs a kernel; `addresses` are those of inputs (null if absent) and outputs.
///
/// # Errors
/// If it fails, crashes, or does not return in time.
pub(super) fn run(kernel: &Kernel, object: &KernelFile, shape: &Shape, addresses: &[*mut u8]) -> Result<()> {
    kernel.place.check_copy()?;
    let (inputs, outputs) = shape.slots.split_at(shape.inputs);
    let sizes: Vec<usize> = outputs.iter().map(|slot| slot.bytes().next_multiple_of(64)).collect();
    let shared = Shared::new(sizes.iter().sum::<usize>().max(1))?;
    let mut inside: Vec<*mut u8> = addresses[..inputs.len()].to_vec();
    let mut offset = 0;
    for size in &sizes {
        // SAFETY: the shared memory holds all outputs one after the other.
        inside.push(unsafe { shared.address.add(offset) });
        offset += size;
    }
    work(kernel).run(&|| {
        let library = Arc::new(kernel.open(object)?);
        if kernel.options.check {
            check::run(kernel, &library, shape, &inside)?;
        } else {
            run_plainly(kernel, &library, shape, &inside)?;
        }
        Ok(Vec::new())
    })?;
    for ((slot, from), to) in outputs.iter().zip(&inside[inputs.len()..]).zip(&addresses[inputs.len()..]) {
        // SAFETY: both have the slot's size, and the child has ended.
        unsafe { std::ptr::copy_nonoverlapping(*from, *to, slot.bytes()) };
    }
    Ok(())
}

/// Runs an inference function of a kernel.
///
/// # Errors
/// As [`run`].
pub(super) fn infer(
    kernel: &Kernel,
    symbolic: bool,
    body: &dyn Fn() -> Result<Vec<Slot>>,
) -> Result<Vec<Slot>> {
    let report = work(kernel).run(&|| {
        let mut words = Vec::new();
        for slot in body()? {
            words.extend([slot.dtype.map_or(0, dtypes::type_id).into(), slot.sizes.len() as i64]);
            words.extend(slot.sizes.iter().copied());
        }
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    })?;
    slots(&report)
        .filter(|slots| slots.iter().all(|slot| check_shape(&kernel.function, &slot.sizes, symbolic).is_ok()))
        .ok_or_else(|| {
            Error::kernel(format!("the child process of `{}` reported no shapes", kernel.function))
        })
}

/// The slots that a child reported; `None` if it did not report any, which only code of the library that
/// writes into the pipe can bring about.
fn slots(report: &[u8]) -> Option<Vec<Slot>> {
    let (words, []) = report.as_chunks::<8>() else { return None };
    let mut words = words.iter().map(|word| i64::from_le_bytes(*word));
    let mut slots = Vec::new();
    while let Some(id) = words.next() {
        let count = usize::try_from(words.next()?).ok().filter(|count| *count <= words.len())?;
        let sizes: Dims = words.by_ref().take(count).collect();
        slots.push(Slot { dtype: Some(dtypes::of_type_id(i32::try_from(id).ok()?)?), sizes });
    }
    Some(slots)
}

/// The work of a child for a kernel.
fn work(kernel: &Kernel) -> Work {
    Work {
        subject: format!("the kernel `{}` ({})", kernel.function, kernel.source.display()),
        timeout: kernel.options.timeout,
        note: "it ran in a process of its own (OPSMITH_AOT_SANDBOX)",
    }
}

/// The allocator of tensors may be in use by a thread that the child does not have; plain vectors are not.
fn run_plainly(
    kernel: &Kernel,
    library: &Arc<super::library::Library>,
    shape: &Shape,
    addresses: &[*mut u8],
) -> Result<()> {
    let place = kernel.place;
    let mut instance =
        Instance::new(library.clone(), &kernel.function, &kernel.signature, shape.clone(), place)?;
    let addresses = addresses.iter().map(|address| address.cast());
    if place == Place::Device {
        let addresses: Vec<*mut c_void> = addresses.collect();
        // SAFETY: the addresses are those of the call's slots, in memory of the host that both processes share.
        return unsafe { device::run_by_copies(&mut instance, &kernel.function, &addresses) };
    }
    let words = |size: &usize| vec![0u128; (size + PADDING).div_ceil(size_of::<u128>())];
    let mut workspaces: Vec<Vec<u128>> = instance.workspaces().iter().map(words).collect();
    let workspaces = workspaces.iter_mut().map(|workspace| workspace.as_mut_ptr().cast());
    let params: Vec<*mut c_void> = addresses.chain(workspaces).collect();
    // SAFETY: addresses of inputs and outputs have their slots' sizes, workspaces the requested ones.
    unsafe { instance.call(&kernel.function, std::ptr::null_mut(), params.into_iter()) }
}

/// Memory that a child process shares.
struct Shared {
    address: *mut u8,
    size: usize,
}

impl Shared {
    fn new(size: usize) -> Result<Shared> {
        // SAFETY: a new mapping that belongs to nothing.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(failed("share memory"));
        }
        Ok(Shared { address: address.cast(), size })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.address.cast(), self.size) };
    }
}
