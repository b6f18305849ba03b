//! The driver of CUDA's devices: found when a kernel first needs it, and never asked otherwise.
//!
//! In: requests to allocate, copy, wait. Out: the driver's results, or an error with the driver's own name
//! for it. It is loaded while the program runs, so nothing of CUDA is needed to build, and nothing to run
//! unless a kernel for a device is called. The device is the first that the driver shows, which
//! `CUDA_VISIBLE_DEVICES` decides. Must not know kernels.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::{DriverError, result, sys};
use opsmith_runtime::error::{Error, Result};

/// Every function that is called below. The crate ends the process for one that is missing, so all are
/// looked for first.
const FUNCTIONS: [&str; 15] = [
    "cuInit",
    "cuDeviceGet",
    "cuDeviceGetCount",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// The device's primary context: the one that CUDA's runtime, which kernels are linked with, uses too, so
/// that both sides know each other's memory and streams. Kept for the life of the process.
struct Driver {
    context: sys::CUcontext,
}

// SAFETY: contexts may be used from any thread.
unsafe impl Send for Driver {}
// SAFETY: the driver takes a context from any thread; nothing here changes.
unsafe impl Sync for Driver {}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());
/// The process that started the driver; 0 if none did.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);
/// The error that lost the context, if it is lost.
static LOST: OnceLock<String> = OnceLock::new();

/// A thread whose calls of CUDA go to the device's context, until this is dropped.
#[derive(Debug)]
pub(in super::super) struct Entered {
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Entered {
    /// Starts the driver unless it runs, and enters the context.
    ///
    /// # Errors
    /// If there is no driver or device, the context is lost, or this process is a copy of one that used it.
    pub fn new() -> Result<Entered> {
        let driver = driver()?;
        // SAFETY: the context is there for the life of the process.
        let entered = unsafe { sys::cuCtxPushCurrent_v2(driver.context) }.result();
        entered.map_err(|error| failed("enter the device's context", error))?;
        Ok(Entered { _thread: PhantomData })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context = std::ptr::null_mut();
        // SAFETY: it takes away the context that `new` pushed; the one before is current again.
        _ = unsafe { sys::cuCtxPopCurrent_v2(&mut context) };
    }
}

/// Refuses to go on if this process has started the driver and is about to be copied for a kernel.
///
/// # Errors
/// If it has.
pub(super) fn check_copy() -> Result<()> {
    if is_started() {
        return Err(copied("the sandbox copies this process, which uses the device already"));
    }
    Ok(())
}

/// Whether this process, or the one it is a copy of, has started the driver.
pub(super) fn is_started() -> bool {
    STARTED_BY.load(Ordering::Acquire) != 0
}

fn driver() -> Result<&'static Driver> {
    let started_by = STARTED_BY.load(Ordering::Acquire);
    if started_by != 0 && started_by != std::process::id() {
        return Err(copied("this process is a copy of one that uses the device"));
    }
    if let Some(what) = LOST.get() {
        return Err(Error::device(format!("the device cannot be used any more: {what}")).with_help(LOST_HELP));
    }
    match DRIVER.get() {
        Some(driver) => Ok(driver),
        None => start(),
    }
}

#[cold]
fn start() -> Result<&'static Driver> {
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    // Before anything is loaded, so that a copy that is made meanwhile does not wait for this thread.
    STARTED_BY.store(std::process::id(), Ordering::Release);
    let context = find().and_then(|()| open()).inspect_err(|_| STARTED_BY.store(0, Ordering::Release))?;
    Ok(DRIVER.get_or_init(|| Driver { context }))
}

/// Loads the driver's library, and looks whether it has all that is needed.
fn find() -> Result<()> {
    // SAFETY: it loads and closes the driver's library, as every program that uses CUDA does.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::device("no CUDA driver was found: libcuda.so.1 cannot be loaded").with_help(
            "a kernel for CUDA runs on a device of NVIDIA only: install its driver (Debian: apt-get install libcuda1), \
             name its folder in LD_LIBRARY_PATH, or declare a kernel that runs on the host",
        ));
    }
    // SAFETY: it loads the driver's library, as every program that uses CUDA does; it was there a moment ago.
    let library = unsafe { sys::culib() };
    for name in FUNCTIONS {
        // SAFETY: only whether there is an address is looked at.
        if unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err() {
            return Err(Error::device(format!("the CUDA driver has no function `{name}`"))
                .with_help("it is older than CUDA 7, or no driver at all: install that of the device"));
        }
    }
    Ok(())
}

fn open() -> Result<sys::CUcontext> {
    result::init().map_err(|error| failed("start the CUDA driver", error))?;
    let count = result::device::get_count().map_err(|error| failed("count devices", error))?;
    if count == 0 {
        return Err(no_device());
    }
    let device = result::device::get(0).map_err(|error| failed("find the device", error))?;
    // SAFETY: the device was just given by the driver.
    unsafe { result::primary_ctx::retain(device) }.map_err(|error| failed("make the device's context", error))
}

/// A stream of the device.
///
/// It waits for the default stream and the default stream for it: a kernel that does not use the stream
/// it is given runs between the same copies.
#[derive(Debug)]
pub(super) struct Stream(sys::CUstream);

// SAFETY: streams may be used from any thread.
unsafe impl Send for Stream {}

impl Stream {
    /// A new one, in the context that is entered.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn new(_: &Entered) -> Result<Stream> {
        let stream = result::stream::create(result::stream::StreamKind::Default);
        Ok(Stream(stream.map_err(|error| failed("make a stream", error))?))
    }

    /// The argument `stream` of kernels.
    pub fn as_raw(&self) -> *mut c_void {
        self.0.cast()
    }

    /// Waits until all is done that was asked of it.
    ///
    /// # Errors
    /// If any of it failed; the error has the driver's name of it.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream is there until it is dropped.
        unsafe { result::stream::synchronize(self.0) }.map_err(|error| failed("run on the device", error))
    }

    /// Copies bytes to the device, after all that was asked before.
    ///
    /// # Errors
    /// If the driver refuses.
    ///
    /// # Safety
    /// There are as many bytes of the device's memory at `to`; those at `from` stay until [`Stream::wait`].
    pub unsafe fn send(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the caller promises it.
        let sent = unsafe { result::memcpy_htod_async(to, from, self.0) };
        sent.map_err(|error| failed(&format!("copy {} bytes to the device", from.len()), error))
    }

    /// Copies bytes from the device, after all that was asked before.
    ///
    /// # Errors
    /// If the driver refuses.
    ///
    /// # Safety
    /// There are as many bytes of the device's memory at `from`; `to` is not read before
    /// [`Stream::wait`] has returned.
    pub unsafe fn fetch(&self, to: &mut [u8], from: u64) -> Result<()> {
        // SAFETY: the caller promises it.
        let fetched = unsafe { result::memcpy_dtoh_async(to, from, self.0) };
        fetched.map_err(|error| failed(&format!("copy {} bytes from the device", to.len()), error))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it was made by `new` and is nothing else's; where the context is lost, it is gone already.
        _ = unsafe { result::stream::destroy(self.0) };
    }
}

/// Allocates memory of the device; `None` if there is not enough.
///
/// # Errors
/// If the driver fails for another reason.
pub(super) fn allocate(bytes: usize, _: &Entered) -> Result<Option<u64>> {
    // SAFETY: a context is entered; the memory is not read before it is written.
    match unsafe { result::malloc_sync(bytes) } {
        Ok(address) => Ok(Some(address)),
        Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
        Err(error) => Err(failed(&format!("allocate {bytes} bytes on the device"), error)),
    }
}

/// Frees memory of the device.
///
/// # Safety
/// It was allocated by [`allocate`], and nothing on the device uses it.
pub(super) unsafe fn free(address: u64, _: &Entered) {
    // SAFETY: the caller promises it. Where the context is lost, its memory is gone already.
    _ = unsafe { result::free_sync(address) };
}

const LOST_HELP: &str = "start the program again; OPSMITH_CHECK=1 finds kernels that write outside their operands, and \
                         OPSMITH_AOT_SANDBOX=1 runs them in processes of their own";

/// The error for a status of the driver.
#[cold]
fn failed(what: &str, error: DriverError) -> Error {
    use sys::CUresult as Code;
    let text = |text: std::result::Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| "without a name".to_owned(), |text| text.to_string_lossy().into_owned())
    };
    let said = format!("{} ({})", text(error.error_name()), text(error.error_string()));
    let told = Error::device(format!("cannot {what}: {said}"));
    match error.0 {
        Code::CUDA_ERROR_NO_DEVICE => no_device(),
        Code::CUDA_ERROR_STUB_LIBRARY => {
            told.with_help("the library that was found is the toolkit's stand-in for linking: take its folder `stubs` out of LD_LIBRARY_PATH")
        }
        Code::CUDA_ERROR_NOT_INITIALIZED => {
            told.with_help("if this process is a copy (fork) of one that has used CUDA, it cannot use it: start a new one")
        }
        Code::CUDA_ERROR_ILLEGAL_ADDRESS
        | Code::CUDA_ERROR_LAUNCH_TIMEOUT
        | Code::CUDA_ERROR_ASSERT
        | Code::CUDA_ERROR_HARDWARE_STACK_ERROR
        | Code::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | Code::CUDA_ERROR_MISALIGNED_ADDRESS
        | Code::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | Code::CUDA_ERROR_INVALID_PC
        | Code::CUDA_ERROR_LAUNCH_FAILED
        | Code::CUDA_ERROR_ECC_UNCORRECTABLE
        | Code::CUDA_ERROR_CONTEXT_IS_DESTROYED => {
            // The first reason counts; later failures follow from it.
            _ = LOST.set(format!("an earlier kernel ended with {said}"));
            told.with_note("the process's context on the device is lost: every later call on it fails")
                .with_help(LOST_HELP)
        }
        _ => told,
    }
}

#[cold]
fn no_device() -> Error {
    Error::device("the CUDA driver finds no device").with_help(
        "is one there (nvidia-smi lists them), and does CUDA_VISIBLE_DEVICES show it? A kernel for the host needs none",
    )
}

#[cold]
fn copied(why: &str) -> Error {
    Error::device(format!("{why}, and copies of such a process cannot use CUDA")).with_help(
        "run all kernels for CUDA of a process in the sandbox (OPSMITH_AOT_SANDBOX=1), or start the program anew for this one",
    )
}
