//! Anomaly detection: finds the call whose gradient became NaN.
//!
//! In: the recorded calls of a thread, each with a backtrace. Out: an error that names the call and its source
//! location.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::collections::HashSet;

use super::node::Node;
use crate::error::{Error, Result};
use crate::shared::Shared;
use crate::tensor::Tensor;

thread_local! {
    static DETECTING: Cell<bool> = const { Cell::new(false) };
}

/// How many callers of a recorded call an error shows.
const FRAMES: usize = 6;

/// Runs a function with anomaly detection: each recorded call stores its source location, and a backward pass inside
/// stops at the first NaN with an error that names the call and its location.
///
/// Slow: every recorded call takes a backtrace, and every gradient is searched.
pub fn detect_anomaly<R>(function: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            DETECTING.set(self.0);
        }
    }
    let _restore = Restore(DETECTING.replace(true));
    function()
}

/// Whether anomaly detection is on in this thread.
#[inline]
pub(super) fn detecting() -> bool {
    DETECTING.get()
}

/// Stores in a node the source location of its call and whether its results already contain NaN.
#[cold]
pub(super) fn remember(node: &Node, outs: &[Tensor]) {
    let trace = Backtrace::force_capture().to_string();
    node.extras().set_forward(Forward { call_site: callers(&trace), nan: outs.iter().any(has_nan) });
}

/// Source location and NaN state of a forward call, stored by anomaly detection.
#[derive(Clone)]
pub(super) struct Forward {
    call_site: String,
    nan: bool,
}

/// The frames of a backtrace outside the entry points of a call (`call`), innermost first.
fn callers(trace: &str) -> String {
    let lines: Vec<&str> = trace.lines().map(str::trim).collect();
    // An inlined function's frame has a name without a path, but a source location.
    let front_door = file!().replace("autograd", "call").replace("anomaly.rs", "mod.rs");
    // Paths below the current folder are shortened to relative ones.
    let folder = std::env::current_dir().unwrap_or_default();
    let is_front_door = |line: &&str| match line.strip_prefix("at ") {
        Some(place) => match place.strip_prefix("./") {
            Some(rest) => folder.join(rest).to_string_lossy().contains(&*front_door),
            None => place.contains(&*front_door),
        },
        None => line.contains("::call::invoke"),
    };
    let start = lines.iter().rposition(is_front_door).map_or(0, |last| last + 1);
    let mut shown = String::new();
    let mut frames = 0;
    for line in &lines[start..] {
        // A frame is "12: function", followed by "at file:line:column" if that is known.
        let Some(place) = line.strip_prefix("at ") else {
            frames += 1;
            let function = line.split_once(": ").map_or(*line, |(_, function)| function);
            if frames > FRAMES || function.starts_with("std::") || function.starts_with("core::ops") {
                break;
            }
            shown.push_str("\n    ");
            shown.push_str(function);
            continue;
        };
        if frames > 0 {
            shown.push_str(" at ");
            shown.push_str(place);
        }
    }
    shown
}

/// Returns an error for a NaN among the gradients that a node computed.
///
/// # Errors
/// If there is one. The error names the node's call, or the oldest call whose result was already NaN, and its source
/// location.
#[cold]
pub(super) fn check(
    node: &Shared<Node>,
    passed: &[(usize, Tensor)],
    received: &[Option<Tensor>],
) -> Result<()> {
    let Some((position, _)) = passed.iter().find(|(_, gradient)| has_nan(gradient)) else { return Ok(()) };
    let came_in = if received.iter().flatten().any(has_nan) { ", as is that of its result" } else { "" };
    let mut error =
        Error::autograd(format!("the gradient of {} is NaN{came_in}", node.input_name(*position)));
    match forward(node) {
        Some(forward) => {
            error = error.with_note(format!("`{}` was called in{}", node.name(), forward.call_site))
        }
        None => {
            error = error
                .with_help("run the forward pass inside detect_anomaly too, to see where the call was made")
        }
    }
    if let Some((first, forward)) = first_nan(node) {
        let text =
            format!("the first result that was NaN is that of `{first}`, called in{}", forward.call_site);
        error = error.with_note(text);
    }
    Err(error)
}

fn forward(node: &Node) -> Option<Forward> {
    node.existing_extras().and_then(|extras| extras.forward())
}

/// The oldest call with a NaN result among those that a node depends on.
fn first_nan(node: &Shared<Node>) -> Option<(String, Forward)> {
    let mut first: Option<(u64, String, Forward)> = None;
    let mut visited = HashSet::new();
    let mut stack = vec![node];
    while let Some(node) = stack.pop() {
        if !visited.insert(Shared::as_ptr(node)) {
            continue;
        }
        if let Some(forward) = forward(node).filter(|forward| forward.nan)
            && first.as_ref().is_none_or(|(sequence, ..)| node.sequence < *sequence)
        {
            first = Some((node.sequence, node.name().to_owned(), forward));
        }
        stack.extend(node.edges.iter().flatten().map(|edge| &edge.node));
    }
    first.map(|(_, name, forward)| (name, forward))
}

/// Whether an element is NaN. False if there is no memory for a wider copy: the pass itself will report the shortage.
fn has_nan(tensor: &Tensor) -> bool {
    // The widest type of each kind holds every narrower value.
    let wide = |dtype| tensor.cast_untracked(dtype);
    if tensor.dtype().is_complex() {
        wide(crate::DType::C128)
            .and_then(|wide| wide.to_vec::<crate::Complex64>())
            .is_ok_and(|elements| elements.iter().any(|z| z.re.is_nan() || z.im.is_nan()))
    } else {
        wide(crate::DType::F64)
            .and_then(|wide| wide.to_vec::<f64>())
            .is_ok_and(|elements| elements.iter().any(|x| x.is_nan()))
    }
}
