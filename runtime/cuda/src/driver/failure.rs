//! Errors of the driver, with remedies.
//!
//! In: codes. Out: errors with the driver's name of the code. Must not know contexts.

use std::ffi::{CStr, c_int};
use std::fmt;

use opsmith_runtime::{Error, Result};

use super::api::{Api, Code, LIBRARIES};
use super::codes;

const LOST_HELP: &str = "start the program again; with OPSMITH_CUDA_SYNC=1 the call that launches the failing kernel \
                         reports it";

/// The name and text of a code.
pub fn text(api: &Api, code: Code) -> String {
    let read = |function: unsafe extern "C" fn(Code, *mut *const std::ffi::c_char) -> Code| {
        let mut text = std::ptr::null();
        // SAFETY: the result is a local variable.
        let found = unsafe { function(code, &mut text) };
        if found != codes::SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: the driver's texts are constants that end with a zero.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (read(api.cuGetErrorName), read(api.cuGetErrorString)) {
        (Some(name), Some(text)) => format!("{name} ({text})"),
        _ => format!("code {code} of the driver"),
    }
}

/// The error for a code that leaves the context usable.
#[cold]
pub fn failed(api: &Api, code: Code, action: &str) -> Error {
    let error = Error::device(format!("cannot {action}: {}", text(api, code)));
    match code {
        codes::NO_DEVICE => no_device(),
        codes::STUB_LIBRARY => error.with_help(
            "the library found is the toolkit's stub for linking: remove its folder `stubs` from LD_LIBRARY_PATH",
        ),
        codes::SYSTEM_DRIVER_MISMATCH => {
            error.with_help("the driver's library and its kernel module have different versions: restart the machine")
        }
        codes::NOT_INITIALIZED => error.with_help(
            "a process that is a copy (fork) of one that has used CUDA cannot use it: start a new process",
        ),
        codes::INVALID_IMAGE | codes::NO_BINARY_FOR_GPU | codes::UNSUPPORTED_PTX_VERSION => error.with_help(
            "the compiler is newer than the driver: install NVRTC of the driver's version (nvidia-smi shows it), or a \
             newer driver",
        ),
        _ => error,
    }
}

/// Checks a code of a function that starts the driver.
///
/// # Errors
/// Unless it is success.
pub fn check_start(api: &Api, code: Code, action: &str) -> Result<()> {
    if code == codes::SUCCESS { Ok(()) } else { Err(failed(api, code, action)) }
}

/// The error of the call that finds the context lost.
#[cold]
pub fn loses(index: u16, action: &dyn fmt::Display, reason: &str) -> Error {
    Error::device(format!("cannot {action} on device {index}: {reason}"))
        .with_note("the context of the device is lost: every later call on it fails")
        .with_help(LOST_HELP)
}

/// The error of every later call.
#[cold]
pub fn lost(index: u16, reason: &str) -> Error {
    Error::device(format!(
        "device {index} cannot be used any more: an earlier kernel or copy ended with {reason}"
    ))
    .with_help(LOST_HELP)
}

#[cold]
pub fn copied() -> Error {
    Error::device("this process is a copy (fork) of one that uses CUDA, and such a copy cannot use it").with_help(
        "start a new process (in Python: the start method `spawn`), or fork before the first use of a device",
    )
}

#[cold]
pub fn no_driver(reason: &str) -> Error {
    Error::device(format!("no CUDA driver was found: {} cannot be loaded", LIBRARIES[0]))
        .with_note(reason)
        .with_help(
            "install NVIDIA's driver (Debian: apt-get install libcuda1), name its folder in LD_LIBRARY_PATH, or use the \
             CPU",
        )
}

#[cold]
pub fn no_function(name: &str) -> Error {
    Error::device(format!("the CUDA driver has no function `{name}`"))
        .with_help("it is too old: install a driver of CUDA 12.0 or newer, or use the CPU")
}

#[cold]
pub fn too_old(found: c_int, oldest: c_int) -> Error {
    let number = |version: c_int| format!("{}.{}", version / 1000, version % 1000 / 10);
    Error::device(format!(
        "the CUDA driver is too old: it is of CUDA {}, and {} is the oldest supported",
        number(found),
        number(oldest)
    ))
    .with_help("install a newer driver, or use the CPU")
}

#[cold]
pub fn no_device() -> Error {
    Error::device(format!("the CUDA driver finds no device{}", visible())).with_help(
        "nvidia-smi lists the devices of the machine, CUDA_VISIBLE_DEVICES selects them; or use the CPU",
    )
}

#[cold]
pub fn no_such_device(index: u16, count: u16) -> Error {
    let others = match count {
        1 => "the only one is cuda:0".to_owned(),
        count => format!("there are {count}, from cuda:0"),
    };
    Error::device(format!("there is no device cuda:{index}: {others}{}", visible()))
        .with_help("CUDA_VISIBLE_DEVICES selects the devices that a program sees")
}

/// The setting that hides devices.
fn visible() -> String {
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(value) => format!(" (CUDA_VISIBLE_DEVICES is `{value}`)"),
        Err(_) => String::new(),
    }
}
