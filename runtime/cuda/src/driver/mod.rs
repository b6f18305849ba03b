//! The driver of CUDA's devices: found when a device is first used.
//!
//! In: requests for the driver and the contexts of its devices. Out: both, or an error that names the missing part. It is
//! loaded at run time: nothing of CUDA is needed to build, and nothing to run a program that uses no device. Contexts are
//! the devices' primary ones, which other libraries of the process share. Must not know streams, memory or kernels.

pub mod api;
pub mod codes;
mod failure;
#[cfg(test)]
mod tests;

use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use opsmith_runtime::{Error, Result};

use api::{Api, Code, Handle, Missing};

/// The oldest driver that is accepted, as `cuDriverGetVersion` numbers it: 12.0.
const OLDEST: c_int = 12_000;

/// The driver, started.
pub struct Driver {
    /// Its functions.
    pub api: Api,
    /// Its version, 1000 × major + 10 × minor.
    pub version: c_int,
    /// Number of devices.
    pub count: u16,
    contexts: Vec<OnceLock<Context>>,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());
/// Whether this process is a copy (fork) of one that has started the driver.
static COPIED: AtomicBool = AtomicBool::new(false);

/// The driver, started at the first request.
///
/// # Errors
/// If there is no driver, it is too old, it finds no device, or this process is a copy of one that uses it.
pub fn driver() -> Result<&'static Driver> {
    if COPIED.load(Ordering::Relaxed) {
        return Err(failure::copied());
    }
    match DRIVER.get() {
        Some(driver) => Ok(driver),
        None => start(),
    }
}

/// The driver, if it is started and usable in this process.
pub fn started() -> Option<&'static Driver> {
    if COPIED.load(Ordering::Relaxed) { None } else { DRIVER.get() }
}

#[cold]
fn start() -> Result<&'static Driver> {
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = DRIVER.get() {
        return Ok(driver);
    }
    let api = Api::load().map_err(|missing| match missing {
        Missing::Library(reason) => failure::no_driver(&reason),
        Missing::Function(name) => failure::no_function(name),
    })?;
    let check = |code, action: &str| failure::check_start(&api, code, action);
    let mut version = 0;
    // SAFETY: the version may be read before the driver is started; the result is a local variable.
    check(unsafe { (api.cuDriverGetVersion)(&mut version) }, "read the driver's version")?;
    if version < OLDEST {
        return Err(failure::too_old(version, OLDEST));
    }
    // SAFETY: the only flag is 0.
    check(unsafe { (api.cuInit)(0) }, "start the CUDA driver")?;
    let mut count = 0;
    // SAFETY: the result is a local variable.
    check(unsafe { (api.cuDeviceGetCount)(&mut count) }, "count devices")?;
    if count <= 0 {
        return Err(failure::no_device());
    }
    // SAFETY: the handler only stores a flag.
    unsafe { libc::pthread_atfork(None, None, Some(note_copy)) };
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    let contexts = (0..count).map(|_| OnceLock::new()).collect();
    Ok(DRIVER.get_or_init(|| Driver { api, version, count, contexts }))
}

/// Runs in the copy of a process.
extern "C" fn note_copy() {
    COPIED.store(true, Ordering::Relaxed);
}

/// The primary context of a device.
pub struct Context {
    /// The driver.
    pub driver: &'static Driver,
    /// Index of the device.
    pub index: u16,
    /// The driver's handle of the device.
    pub device: c_int,
    raw: Handle,
    /// The failure that lost the context, if it is lost.
    lost: OnceLock<String>,
    /// Devices whose memory this one was asked to access.
    peers: Mutex<Vec<u16>>,
}

// SAFETY: a context may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: the driver takes a context from any thread, and `lost` is a `OnceLock`.
unsafe impl Sync for Context {}

/// The context of a device, retained at the first request.
///
/// # Errors
/// As [`driver`], or if there is no such device.
pub fn context(index: u16) -> Result<&'static Context> {
    let driver = driver()?;
    let Some(slot) = driver.contexts.get(usize::from(index)) else {
        return Err(failure::no_such_device(index, driver.count));
    };
    if let Some(context) = slot.get() {
        return Ok(context);
    }
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = slot.get() {
        return Ok(context);
    }
    let api = &driver.api;
    let (mut device, mut raw) = (0, std::ptr::null_mut());
    // SAFETY: the ordinal is below the number of devices; results are local variables.
    let codes = unsafe {
        let found = (api.cuDeviceGet)(&mut device, c_int::from(index));
        if found == codes::SUCCESS { (api.cuDevicePrimaryCtxRetain)(&mut raw, device) } else { found }
    };
    failure::check_start(api, codes, &format!("make the context of device {index}"))?;
    Ok(slot.get_or_init(|| Context {
        driver,
        index,
        device,
        raw,
        lost: OnceLock::new(),
        peers: Mutex::default(),
    }))
}

impl Context {
    /// The driver's functions.
    pub fn api(&self) -> &'static Api {
        &self.driver.api
    }

    /// The driver's handle of the context.
    pub fn raw(&self) -> Handle {
        self.raw
    }

    /// Makes the context current in this thread until the result is dropped.
    ///
    /// A thread without a context keeps this one; a thread with another gets that one back.
    ///
    /// # Errors
    /// If the context is lost, or this process is a copy of one that uses it.
    pub fn enter(&self) -> Result<Entered> {
        if COPIED.load(Ordering::Relaxed) {
            return Err(failure::copied());
        }
        if let Some(reason) = self.lost.get() {
            return Err(failure::lost(self.index, reason));
        }
        let (api, mut current) = (self.api(), std::ptr::null_mut());
        // SAFETY: the result is a local variable.
        unsafe { (api.cuCtxGetCurrent)(&mut current) };
        if current == self.raw {
            return Ok(Entered { api, pushed: false, thread: std::marker::PhantomData });
        }
        let pushed = !current.is_null();
        // SAFETY: the context is retained for the life of the process.
        let code = unsafe {
            if pushed { (api.cuCtxPushCurrent_v2)(self.raw) } else { (api.cuCtxSetCurrent)(self.raw) }
        };
        self.check(code, "enter the context")?;
        Ok(Entered { api, pushed, thread: std::marker::PhantomData })
    }

    /// The error for a code of the driver; a code that loses the context is remembered.
    ///
    /// # Errors
    /// Unless the code is success.
    #[inline]
    pub fn check(&self, code: Code, action: impl fmt::Display) -> Result<()> {
        if code == codes::SUCCESS { Ok(()) } else { Err(self.failed(code, &action)) }
    }

    #[cold]
    fn failed(&self, code: Code, action: &dyn fmt::Display) -> Error {
        if codes::LOSSES.contains(&code) {
            let reason = self.lost.get_or_init(|| failure::text(self.api(), code));
            return failure::loses(self.index, action, reason);
        }
        failure::failed(self.api(), code, &format!("{action} on device {}", self.index))
    }

    /// An attribute of the device.
    ///
    /// # Errors
    /// If the driver does not know it.
    pub fn attribute(&self, attribute: c_int) -> Result<usize> {
        let mut value = 0;
        // SAFETY: the result is a local variable.
        let code = unsafe { (self.api().cuDeviceGetAttribute)(&mut value, attribute, self.device) };
        self.check(code, format_args!("read attribute {attribute}"))?;
        Ok(usize::try_from(value).unwrap_or(0))
    }

    /// Lets copies of this device access the memory of another directly, where the machine can; elsewhere they go through
    /// the host. The context is entered.
    pub fn open_peer(&self, peer: &Context) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.contains(&peer.index) {
            return;
        }
        peers.push(peer.index);
        let api = self.api();
        if let (Some(can_access), Some(enable)) = (api.cuDeviceCanAccessPeer, api.cuCtxEnablePeerAccess) {
            let mut can = 0;
            // SAFETY: devices and contexts are the driver's, and exist for the life of the process. A refusal, also
            // because another library enabled it before, changes no result.
            unsafe {
                if can_access(&mut can, self.device, peer.device) == codes::SUCCESS && can != 0 {
                    _ = enable(peer.raw, 0);
                }
            }
        }
    }

    /// Waits until all work of all streams of the device is done.
    ///
    /// # Errors
    /// Errors of that work.
    pub fn synchronize(&self) -> Result<()> {
        let _entered = self.enter()?;
        // SAFETY: the context is entered.
        self.check(unsafe { (self.api().cuCtxSynchronize)() }, "finish the work")
    }

    /// Free and total bytes of the device's memory.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: results are local variables.
        let code = unsafe { (self.api().cuMemGetInfo_v2)(&mut free, &mut total) };
        self.check(code, "read the size of the memory")?;
        Ok((free, total))
    }
}

/// A thread whose calls of the driver go to one context.
pub struct Entered {
    api: &'static Api,
    pushed: bool,
    /// It belongs to its thread.
    thread: std::marker::PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut context = std::ptr::null_mut();
            // SAFETY: it takes away the context that `enter` pushed; the former one is current again.
            _ = unsafe { (self.api.cuCtxPopCurrent_v2)(&mut context) };
        }
        _ = self.thread;
    }
}
