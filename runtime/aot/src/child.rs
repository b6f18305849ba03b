//! Work in a process of its own, which may crash, hang or end without harm to this one.
//!
//! In: a closure. Out: the bytes or the error that it returned, or how its process ended instead. The child is
//! a copy of this process and sees its memory as it was. It reports through a pipe; processes that it started
//! are ended with it. Must not know the work itself.

use std::fs::File;
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use opsmith_runtime::error::{Error, ErrorKind, Result};

/// The largest report that is taken from a child, in bytes.
const LARGEST: usize = 1 << 26;
/// How long to wait for a report before asking whether the child is still there: the pipe stays open when it
/// dies, if it started a process that goes on.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// The work of a child, for messages, and its time limit.
pub(super) struct Work {
    /// The subject of messages: "the kernel `F` (k.so)".
    pub subject: String,
    pub timeout: Duration,
    /// Why it runs in a child.
    pub note: &'static str,
}

impl Work {
    /// Runs `body` in a child process, and returns its result.
    ///
    /// # Errors
    /// The result of `body`; or if its process crashed, ended or did not report in time.
    pub fn run(&self, body: &dyn Fn() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let mut ends = [0; 2];
        // SAFETY: the array has room for both ends.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(failed("make a pipe"));
        }
        // SAFETY: the ends are new, and nothing else's.
        let (read, write) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        // SAFETY: the child runs `serve` and ends; it never returns into this program's code.
        match unsafe { libc::fork() } {
            -1 => Err(failed("start a process")),
            0 => {
                drop(read);
                serve(File::from(write), body)
            }
            id => {
                drop(write);
                // Here and in the child, so that it is done whichever goes on first.
                // SAFETY: the child is this process's own.
                unsafe { libc::setpgid(id, id) };
                self.wait(&Child { id }, File::from(read))
            }
        }
    }

    /// The parent: reads the report until it is whole, the child ends, or time is up.
    fn wait(&self, child: &Child, mut read: File) -> Result<Vec<u8>> {
        let deadline = Instant::now() + self.timeout;
        let mut report = Report(Vec::new());
        loop {
            if let Some(report) = report.whole() {
                return decode(report);
            }
            // First whether it ended, then the rest of the pipe: not the other way round.
            let ended = child.end().is_some();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() && !ended {
                return Err(self.late());
            }
            let patience = if ended { Duration::ZERO } else { left.min(LOOK_AFTER) };
            let over = match is_readable(&read, patience) {
                true => !report.take(&mut read)?,
                false => ended,
            };
            if over && report.whole().is_none() {
                return Err(self.died(&child.ended()));
            }
        }
    }

    #[cold]
    fn late(&self) -> Error {
        let seconds = self.timeout.as_secs_f64();
        Error::kernel(format!("{} did not return within {seconds} s, and was ended", self.subject))
            .with_help("OPSMITH_AOT_TIMEOUT gives it more seconds")
            .with_note(self.note)
    }

    #[cold]
    fn died(&self, end: &End) -> Error {
        let what = match *end {
            End::Exit(status) => format!("ended its process with exit status {status}"),
            End::Signal(signal) => format!("crashed with signal {signal}{}", meaning(signal)),
            End::Unknown => "left its process without a report".to_owned(),
        };
        Error::kernel(format!("{} {what}", self.subject)).with_note(self.note)
    }
}

fn meaning(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV: it used memory that is not its own)",
        libc::SIGBUS => " (SIGBUS: it used memory that is not there)",
        libc::SIGFPE => " (SIGFPE: it divided an integer by zero)",
        libc::SIGILL => " (SIGILL: it used an instruction that this processor does not have)",
        libc::SIGABRT => " (SIGABRT: it gave up, as by abort or a failed assertion)",
        libc::SIGKILL => " (SIGKILL: someone ended it, as the system does when memory is short)",
        _ => "",
    }
}

/// A child process. Ended with all that it started when dropped; until then its number stays its own.
struct Child {
    id: libc::pid_t,
}

/// How a process ended.
enum End {
    Exit(i32),
    Signal(i32),
    /// Someone else has waited for it.
    Unknown,
}

impl Child {
    /// How it ended, if it has.
    fn end(&self) -> Option<End> {
        // SAFETY: all zeros is a value of this type.
        let mut facts: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the child is this process's own, and is left as it is.
        let asked = unsafe { libc::waitid(libc::P_PID, self.id as libc::id_t, &mut facts, options) };
        if asked != 0 {
            let error = std::io::Error::last_os_error();
            return (error.raw_os_error() == Some(libc::ECHILD)).then_some(End::Unknown);
        }
        // SAFETY: the call has filled the fields of a child that ended; zeros if there is none.
        let (id, status) = unsafe { (facts.si_pid(), facts.si_status()) };
        match facts.si_code {
            _ if id != self.id => None,
            libc::CLD_EXITED => Some(End::Exit(status)),
            _ => Some(End::Signal(status)),
        }
    }

    /// How it ended. One that has closed the pipe and goes on is ended.
    fn ended(&self) -> End {
        // A process that ends closes its files a moment before it has ended.
        for _ in 0..50 {
            if let Some(end) = self.end() {
                return end;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        End::Unknown
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the child was not waited for, so its number is its own, and so is that of its group.
        unsafe {
            libc::kill(-self.id, libc::SIGKILL);
            libc::kill(self.id, libc::SIGKILL);
            libc::waitpid(self.id, std::ptr::null_mut(), 0);
        }
    }
}

/// The child: runs the body, reports, and ends without the exit handlers of the parent.
fn serve(mut write: File, body: &dyn Fn() -> Result<Vec<u8>>) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a crash of the child is expected; it leaves no file behind. Processes that it starts are in its group. If
    // the parent ends, no process waits for the result.
    let itself = unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getpid()
    };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Error::kernel("the child process panicked")));
    // A process that the body has started comes here, too, and has nothing to report.
    // SAFETY: it asks for a number.
    if unsafe { libc::getpid() } == itself {
        _ = write.write_all(&encode(&result));
    }
    // SAFETY: it ends the process.
    unsafe { libc::_exit(0) }
}

/// The received part of a report: its length in 8 bytes, and so many bytes.
struct Report(Vec<u8>);

impl Report {
    /// Adds all bytes that can be read now; `false` at the end.
    fn take(&mut self, read: &mut File) -> Result<bool> {
        let mut piece = [0; 1 << 16];
        match read.read(&mut piece) {
            Ok(0) => return Ok(false),
            Ok(count) => self.0.extend(&piece[..count]),
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Err(_) => return Ok(false),
        }
        if self.0.len() > LARGEST || self.length().is_some_and(|length| length > LARGEST) {
            return Err(Error::kernel("the child process reported more than any kernel has to say"));
        }
        Ok(true)
    }

    fn length(&self) -> Option<usize> {
        let length = u64::from_le_bytes(*self.0.first_chunk::<8>()?);
        Some(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// The report, if all of it has come.
    fn whole(&self) -> Option<&[u8]> {
        self.0.get(8..)?.get(..self.length()?)
    }
}

fn is_readable(file: &File, patience: Duration) -> bool {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // Rounded up, so that the last millisecond is not spent asking.
    let milliseconds = i32::try_from(patience.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: one entry that lives for the call.
    unsafe { libc::poll(&mut poll, 1, milliseconds) > 0 }
}

/// The error of a call to the system for a child process.
#[cold]
pub(super) fn failed(what: &str) -> Error {
    Error::io(format!("cannot {what} for the sandbox: {}", std::io::Error::last_os_error()))
}

/// A result as bytes with their length before them: a returned value, or the texts of an error.
fn encode(result: &Result<Vec<u8>>) -> Vec<u8> {
    let report = match result {
        Ok(bytes) => [&[0], bytes.as_slice()].concat(),
        Err(error) => {
            let texts = (error.message(), error.help(), error.notes());
            [vec![1], serde_json::to_vec(&texts).unwrap_or_default()].concat()
        }
    };
    [&(report.len() as u64).to_le_bytes(), report.as_slice()].concat()
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
