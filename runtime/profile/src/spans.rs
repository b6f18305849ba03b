//! Calls, kernels and steps as spans of the crate `tracing`, for programs whose logs and traces are made with it.
//!
//! In: spans of the runtime. Out: spans of `tracing` with the target `opsmith`, at the level `TRACE`, entered and exited where those
//! begin and end. Feature `tracing`.

use std::cell::RefCell;

use opsmith_runtime::internals::{self, Span, SpanListener, StepSite};
use tracing::span::EnteredSpan;
use tracing::trace_span;

use crate::collect::form_name;
use crate::error::ProfileError;

thread_local! {
    static OPEN: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

/// Reports every call, kernel, node of backward and step of a graph to this process's `tracing` subscribers from now on, as spans
/// named `call`, `kernel`, `copy`, `backward`, `step` and `phase` with the target `opsmith`. Their field `op` is the operator's form,
/// `site` the place of the call.
///
/// Such a process cannot record profiles: its one listener is this.
///
/// # Errors
/// If a profiler recorded in this process.
pub fn report_to_tracing() -> Result<(), ProfileError> {
    static REPORTER: Reporter = Reporter;
    if !internals::listen(&REPORTER) {
        return Err(ProfileError::new(
            "a profiler recorded in this process",
            "report to `tracing` or record profiles: a process has one listener",
        ));
    }
    internals::set_listening(true);
    Ok(())
}

struct Reporter;

impl SpanListener for Reporter {
    fn begin(&self, span: &Span<'_>) {
        let span = match *span {
            Span::Call { op, form, site, .. } => {
                trace_span!(target: "opsmith", "call", op = form_name(op, form), site = %site)
            }
            Span::Kernel { op, .. } => trace_span!(target: "opsmith", "kernel", op = op.name),
            Span::Copy { source, target } => {
                trace_span!(target: "opsmith", "transfer", from = %source.device(), to = %target.device())
            }
            Span::Backward { name, .. } => trace_span!(target: "opsmith", "backward", op = name),
            Span::Step { op, site: StepSite::Unknown, .. } => {
                trace_span!(target: "opsmith", "step", op = op.name)
            }
            Span::Step { op, site: StepSite::Here(site), .. } => {
                trace_span!(target: "opsmith", "step", op = op.name, site = %site)
            }
            Span::Step { op, site: StepSite::Elsewhere(site), .. } => {
                trace_span!(target: "opsmith", "step", op = op.name, site)
            }
            Span::Phase { name } => trace_span!(target: "opsmith", "phase", op = name),
        };
        // Before the borrow: a subscriber may call operators.
        let entered = span.entered();
        // A thread that ends has no place for open spans any more, and calls nothing that matters.
        let _ = OPEN.try_with(|open| open.borrow_mut().push(entered));
    }

    fn recorded(&self, _node: u64) {}

    fn end(&self) {
        let _ = OPEN.try_with(|open| {
            let ended = open.borrow_mut().pop();
            drop(ended);
        });
    }
}
