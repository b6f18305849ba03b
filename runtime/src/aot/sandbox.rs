//! `OPSMITH_AOT_SANDBOX=1`: a kernel in a process of its own.
//!
//! In: a kernel and the memory of a call. Out: the outputs, or an error if the process died or did not
//! end in time. The child is a copy of this process: it sees the inputs, loads the library, which this
//! process never does, and writes outputs to memory that both share. What it reports comes through a pipe.

use std::ffi::c_void;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::check;
use super::device::{self, Place};
use super::dtypes;
use super::instance::{Instance, Shape, Slot};
use super::kernel::Kernel;
use crate::error::{Error, ErrorKind, Result};
use crate::layout::Dims;

/// What workspaces get beyond what was asked for, as outside the sandbox.
const PADDING: usize = 512;

/// Runs a kernel; `addresses` are those of inputs (null if absent) and outputs.
///
/// # Errors
/// If it fails, crashes, or does not return in time.
pub(super) fn run(kernel: &Kernel, object: &Path, shape: &Shape, addresses: &[*mut u8]) -> Result<()> {
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
    in_child(kernel, &|| {
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
pub(super) fn infer(kernel: &Kernel, body: &dyn Fn() -> Result<Vec<Slot>>) -> Result<Vec<Slot>> {
    let words = in_child(kernel, &|| {
        let mut words = Vec::new();
        for slot in body()? {
            words.extend([slot.dtype.map_or(0, dtypes::type_id).into(), slot.sizes.len() as i64]);
            words.extend(slot.sizes.iter().copied());
        }
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    })?;
    let mut words = words.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word));
    let mut slots = Vec::new();
    while let (Some(id), Some(count)) = (words.next(), words.next()) {
        let sizes: Dims = words.by_ref().take(count as usize).collect();
        slots.push(Slot { dtype: dtypes::of_type_id(id as i32), sizes });
    }
    Ok(slots)
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
        // SAFETY: as below.
        return unsafe { device::run(&mut instance, &kernel.function, &addresses) };
    }
    let words = |size: &usize| vec![0u128; (size + PADDING).div_ceil(size_of::<u128>())];
    let mut workspaces: Vec<Vec<u128>> = instance.workspaces().iter().map(words).collect();
    let workspaces = workspaces.iter_mut().map(|workspace| workspace.as_mut_ptr().cast());
    let params: Vec<*mut c_void> = addresses.chain(workspaces).collect();
    // SAFETY: addresses of inputs and outputs have their slots' sizes, workspaces what was asked for.
    unsafe { instance.call(&kernel.function, std::ptr::null_mut(), params.into_iter()) }
}

/// Runs `body` in a child process, and returns what it returned.
fn in_child(kernel: &Kernel, body: &dyn Fn() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(failed("make a pipe"));
    }
    // SAFETY: the ends are new, and nobody else's.
    let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the child runs `serve` and ends; it never returns into this program's code.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(failed("start a process")),
        0 => serve(write, body),
        _ => {
            drop(write);
            wait(kernel, child, read)
        }
    }
}

/// The child: runs the body, reports, and ends without running what the parent has registered for its end.
fn serve(write: OwnedFd, body: &dyn Fn() -> Result<Vec<u8>>) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a crash of the child is expected; it leaves no file behind.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Error::kernel("the child process panicked")));
    let report = encode(&result);
    let mut file = std::fs::File::from(write);
    let _ = file.write_all(&(report.len() as u64).to_le_bytes()).and_then(|()| file.write_all(&report));
    // SAFETY: it ends the process.
    unsafe { libc::_exit(0) }
}

/// The parent: reads the report until it is whole, the child ends, or time is up.
fn wait(kernel: &Kernel, child: libc::pid_t, read: OwnedFd) -> Result<Vec<u8>> {
    let deadline = Instant::now() + kernel.options.timeout;
    let mut report = Vec::new();
    let mut read = std::fs::File::from(read);
    let whole = |report: &Vec<u8>| {
        let length = report.first_chunk::<8>().map(|length| u64::from_le_bytes(*length) as usize);
        length.is_some_and(|length| report.len() - 8 >= length)
    };
    while !whole(&report) {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: read.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // Rounded up, so that the last millisecond is not spent asking.
        let milliseconds = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: one entry that lives for the call.
        let ready = unsafe { libc::poll(&mut poll, 1, milliseconds) };
        if left.is_zero() {
            end(child);
            return Err(late(kernel, kernel.options.timeout));
        }
        if ready <= 0 {
            continue;
        }
        let mut piece = [0; 4096];
        match read.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => report.extend(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if whole(&report) {
        end(child);
        return decode(&report[8..]);
    }
    let mut status = 0;
    // SAFETY: the child is this process's own and was not waited for.
    unsafe { libc::waitpid(child, &mut status, 0) };
    Err(died(kernel, status))
}

/// Makes sure that the child is gone.
fn end(child: libc::pid_t) {
    // SAFETY: the child is this process's own and was not waited for, so its number is still its own.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
}

#[cold]
fn late(kernel: &Kernel, timeout: Duration) -> Error {
    Error::kernel(format!(
        "the kernel `{}` ({}) did not return within {} s, and was ended",
        kernel.function,
        kernel.source.display(),
        timeout.as_secs_f64()
    ))
    .with_help("OPSMITH_AOT_TIMEOUT gives it more seconds")
    .with_note("it ran in a process of its own (OPSMITH_AOT_SANDBOX)")
}

#[cold]
fn died(kernel: &Kernel, status: i32) -> Error {
    let what = if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        let meaning = match signal {
            libc::SIGSEGV => " (SIGSEGV: it used memory that is not its own)",
            libc::SIGBUS => " (SIGBUS: it used memory that is not there)",
            libc::SIGFPE => " (SIGFPE: it divided an integer by zero)",
            libc::SIGILL => " (SIGILL: it used an instruction that this processor does not have)",
            libc::SIGABRT => " (SIGABRT: it gave up, as by abort or a failed assertion)",
            libc::SIGKILL => " (SIGKILL: someone ended it, as the system does when memory is short)",
            _ => "",
        };
        format!("crashed with signal {signal}{meaning}")
    } else {
        format!("ended its process with exit status {}", libc::WEXITSTATUS(status))
    };
    Error::kernel(format!("the kernel `{}` ({}) {what}", kernel.function, kernel.source.display()))
        .with_note("it ran in a process of its own (OPSMITH_AOT_SANDBOX)")
}

#[cold]
fn failed(what: &str) -> Error {
    Error::io(format!("cannot {what} for the sandbox: {}", std::io::Error::last_os_error()))
}

/// A result as bytes: what was returned, or the texts of an error.
fn encode(result: &Result<Vec<u8>>) -> Vec<u8> {
    match result {
        Ok(bytes) => [&[0], bytes.as_slice()].concat(),
        Err(error) => {
            let texts = (error.message(), error.help(), error.notes());
            [vec![1], serde_json::to_vec(&texts).unwrap_or_default()].concat()
        }
    }
}

fn decode(report: &[u8]) -> Result<Vec<u8>> {
    match report.split_first() {
        Some((0, bytes)) => Ok(bytes.to_vec()),
        Some((_, texts)) => {
            let (message, help, notes): (String, Option<String>, Vec<String>) =
                serde_json::from_slice(texts).unwrap_or_default();
            let error = notes.into_iter().fold(Error::new(ErrorKind::Kernel, message), Error::with_note);
            Err(help.into_iter().fold(error, Error::with_help))
        }
        None => Err(Error::kernel("the child process reported nothing")),
    }
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
