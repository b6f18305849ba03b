//! Spans: calls, kernels, copies between devices and steps of a thread, from beginning to end, for a profiler.
//!
//! In: the process's listener, set by a profiler. Out: calls, kernels, copies, nodes of backward and steps of graphs, properly nested
//! in each thread. While nothing listens, a span costs the read of a flag. Must not know profilers.

use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arg::Arg;
use crate::device::Device;
use crate::library::Form;
use crate::op::{Kernel, OpDef};
use crate::tensor::Tensor;

/// The subject of a span.
pub enum Span<'a> {
    /// A call of an operator.
    Call {
        /// The operator.
        op: &'static OpDef,
        /// The form that was called.
        form: Form,
        /// The arguments.
        args: &'a [Arg<'a>],
        /// The line of the program.
        site: &'static Location<'static>,
    },
    /// A kernel.
    Kernel {
        /// Its operator.
        op: &'static OpDef,
        /// The kernel.
        kernel: Kernel,
        /// The arguments, converted.
        args: &'a [Arg<'a>],
        /// The outputs.
        outs: &'a [Tensor],
    },
    /// A copy of elements from one device to another, the host among them.
    Copy {
        /// The tensor that is read.
        source: &'a Tensor,
        /// The tensor that is written.
        target: &'a Tensor,
    },
    /// The formulas of a recorded call, or another node of backward.
    Backward {
        /// The node's name.
        name: &'a str,
        /// The operator of a recorded call.
        op: Option<&'static OpDef>,
        /// The node's number.
        node: u64,
    },
    /// A step of a graph.
    Step {
        /// The operator.
        op: &'static OpDef,
        /// The number of its first result among the graph's tensors.
        node: u32,
        /// The site of its call in the traced function.
        site: StepSite<'a>,
    },
    /// A part of a program's work that is no operator: a backward pass, a run of a graph.
    Phase {
        /// Its name.
        name: &'static str,
    },
}

/// Where a step of a graph was called.
#[derive(Clone, Copy, Debug)]
pub enum StepSite<'a> {
    /// A pass added the step, or the graph was loaded without sites.
    Unknown,
    /// In this program.
    Here(&'static Location<'static>),
    /// In another program, or in the source that the graph was exported from.
    Elsewhere(&'a str),
}

/// Receives the spans of all threads.
pub trait SpanListener: Sync {
    /// A span begins in this thread.
    fn begin(&self, span: &Span<'_>);
    /// The innermost open span of this thread is a call that was recorded as this node.
    fn recorded(&self, node: u64);
    /// The innermost open span of this thread ends.
    fn end(&self);
    /// This thread submits the kernel or copy of its innermost open span to a stream of a device from now on.
    fn submits(&self, device: Device, stream: u64) {
        _ = (device, stream);
    }
    /// The kernel or copy of the innermost open span was submitted to that stream.
    fn submitted(&self, device: Device, stream: u64) {
        _ = (device, stream);
    }
}

static LISTENER: OnceLock<&'static dyn SpanListener> = OnceLock::new();
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Sets the listener of this process, once; whether it is this one.
pub fn listen(listener: &'static dyn SpanListener) -> bool {
    std::ptr::addr_eq(*LISTENER.get_or_init(|| listener), listener)
}

/// Whether spans are reported from now on. Open spans keep the answer of their beginning.
pub fn set_listening(listening: bool) {
    LISTENING.store(listening, Ordering::SeqCst);
}

/// Whether spans are reported, in one order with [`set_listening`] for all threads.
#[inline(always)]
pub fn is_listening() -> bool {
    LISTENING.load(Ordering::SeqCst)
}

/// Whether spans may be reported, for code that has a faster way where they are not.
#[inline(always)]
pub(crate) fn may_listen() -> bool {
    LISTENING.load(Ordering::Relaxed)
}

/// A span that is open as long as the value lives.
#[must_use = "a span ends where its value is dropped"]
pub struct SpanScope(bool);

/// Opens a span, which is described only if something listens.
#[inline(always)]
pub fn open<'a>(span: impl FnOnce() -> Span<'a>) -> SpanScope {
    let listening = LISTENING.load(Ordering::Relaxed);
    if listening {
        begin(&span());
    }
    SpanScope(listening)
}

/// Reports the node that a call was recorded as.
#[inline(always)]
pub(crate) fn recorded(node: impl FnOnce() -> u64) {
    if LISTENING.load(Ordering::Relaxed) {
        note_recorded(node());
    }
}

/// The submission of a kernel or copy, as long as the value lives.
pub(crate) struct Submission(Option<(&'static dyn SpanListener, Device, u64)>);

/// Reports the submission of the kernel or copy of this thread's innermost open span.
pub(crate) fn submission(device: Device, stream: u64) -> Submission {
    let listener = LISTENER.get().filter(|_| may_listen());
    if let Some(listener) = listener {
        listener.submits(device, stream);
    }
    Submission(listener.map(|listener| (*listener, device, stream)))
}

impl Drop for Submission {
    fn drop(&mut self) {
        if let Some((listener, device, stream)) = self.0 {
            listener.submitted(device, stream);
        }
    }
}

#[cold]
fn begin(span: &Span<'_>) {
    if let Some(listener) = LISTENER.get() {
        listener.begin(span);
    }
}

#[cold]
fn note_recorded(node: u64) {
    if let Some(listener) = LISTENER.get() {
        listener.recorded(node);
    }
}

#[cold]
fn end() {
    if let Some(listener) = LISTENER.get() {
        listener.end();
    }
}

impl Drop for SpanScope {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0 {
            end();
        }
    }
}
