//! Traces in Chrome's JSON format, which Perfetto and `chrome://tracing` load.
//!
//! Events of a thread nest, as both require. Names of fields are those that PyTorch's profiler writes, so that programs for its
//! traces read these.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use opsmith_runtime::internals;

use super::text::quoted;
use crate::error::ProfileError;
use crate::model::{Event, Kind, Profile, TensorShape};

/// The process of all events.
const PROCESS: u32 = 1;

impl Profile {
    /// Writes a trace as a file, whole or not at all.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save_trace(&self, path: impl AsRef<Path>) -> Result<(), ProfileError> {
        let path = path.as_ref();
        internals::replace(path, |file| -> Result<(), ProfileError> {
            let mut writer = io::BufWriter::with_capacity(1 << 20, file);
            self.write_trace(&mut writer)?;
            Ok(writer.flush()?)
        })
        .map_err(|error| error.in_file(path))
    }

    /// Writes a trace.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_trace(&self, mut out: impl Write) -> io::Result<()> {
        write!(
            out,
            "{{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\", \"traceName\": {}, \"baseTimeNanoseconds\": {}, \"record_shapes\": {}, \"profile_memory\": {},\n\"traceEvents\": [\n",
            quoted(&self.name),
            self.started_ms * 1_000_000,
            u8::from(self.has_shapes),
            u8::from(self.has_memory),
        )?;
        write!(
            out,
            "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {PROCESS}, \"tid\": 0, \"args\": {{\"name\": {}}}}}",
            quoted(&self.name)
        )?;
        for (number, thread) in self.threads.iter().enumerate() {
            write!(
                out,
                ",\n{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {PROCESS}, \"tid\": {number}, \"args\": {{\"name\": {}}}}}",
                quoted(&thread.name)
            )?;
        }
        for (number, event) in self.events.iter().enumerate() {
            self.write_event(&mut out, number, event)?;
        }
        self.write_flows(&mut out)?;
        self.write_memory(&mut out)?;
        write!(out, "\n]}}\n")
    }

    fn write_event(&self, out: &mut impl Write, number: usize, event: &Event) -> io::Result<()> {
        write!(
            out,
            ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {PROCESS}, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"args\": {{\"Ev Idx\": {number}",
            category(event.kind),
            quoted(self.name_of(event)),
            event.thread,
            Microseconds(event.start_ns),
            Microseconds(event.duration_ns),
        )?;
        if let Some(operator) = self.operator_of(event) {
            write!(
                out,
                ", \"Operator\": {}, \"Entry\": {}",
                quoted(&operator.name),
                quoted(&operator.entry)
            )?;
        }
        if let Some(site) = self.site_of(event) {
            write!(out, ", \"Call stack\": {}", quoted(site))?;
        }
        if let Some(operands) = self.operands_of(event) {
            let tensors: Vec<&TensorShape> = operands.inputs().collect();
            let list = |text: &dyn Fn(&TensorShape) -> String| {
                tensors.iter().map(|tensor| text(tensor)).collect::<Vec<_>>().join(", ")
            };
            write!(
                out,
                ", \"Input Dims\": [{}], \"Input Strides\": [{}], \"Input type\": [{}], \"Concrete Inputs\": {}",
                list(&|tensor| format!("{:?}", tensor.sizes)),
                list(&|tensor| format!("{:?}", tensor.strides)),
                list(&|tensor| quoted(&tensor.dtype)),
                quoted(&operands.text()),
            )?;
        }
        if event.allocated + event.freed > 0 {
            write!(out, ", \"Allocated\": {}, \"Freed\": {}", event.allocated, event.freed)?;
        }
        if let Some(node) = event.node {
            // As text: numbers of 64 bits are not those of JavaScript.
            write!(out, ", \"Node\": \"{node:x}\"")?;
        }
        write!(out, "}}}}")
    }

    /// Arrows from calls to the nodes of backward that they were recorded as.
    fn write_flows(&self, out: &mut impl Write) -> io::Result<()> {
        for (id, (call, backward)) in self.forward_of_backward().into_iter().enumerate() {
            let (call, backward) = (&self.events[call], &self.events[backward]);
            for (phase, event) in [("s", call), ("f", backward)] {
                let bound = if phase == "f" { ", \"bp\": \"e\"" } else { "" };
                write!(
                    out,
                    ",\n{{\"ph\": \"{phase}\", \"id\": {id}, \"cat\": \"fwdbwd\", \"name\": \"fwdbwd\", \"pid\": {PROCESS}, \"tid\": {}, \"ts\": {}{bound}}}",
                    event.thread,
                    Microseconds(event.start_ns),
                )?;
            }
        }
        Ok(())
    }

    /// Pairs of a call and the event of backward for its node.
    pub fn forward_of_backward(&self) -> Vec<(usize, usize)> {
        let mut calls: HashMap<u64, usize> = HashMap::new();
        let mut order: Vec<usize> =
            (0..self.events.len()).filter(|&event| self.events[event].node.is_some()).collect();
        // Numbers may be used again after a node is gone: the last call before counts.
        order.sort_by_key(|&event| self.events[event].start_ns);
        let mut pairs = Vec::new();
        for event in order {
            let Some(node) = self.events[event].node else { continue };
            if self.events[event].kind == Kind::Backward {
                pairs.extend(calls.get(&node).map(|&call| (call, event)));
            } else {
                calls.insert(node, event);
            }
        }
        pairs
    }

    fn write_memory(&self, out: &mut impl Write) -> io::Result<()> {
        let mut total = 0i64;
        for change in &self.changes {
            total += change.bytes;
            write!(
                out,
                ",\n{{\"ph\": \"C\", \"name\": \"memory\", \"pid\": {PROCESS}, \"tid\": 0, \"ts\": {}, \"args\": {{\"bytes\": {total}}}}}",
                Microseconds(change.at_ns),
            )?;
            write!(
                out,
                ",\n{{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": {PROCESS}, \"tid\": {}, \"ts\": {}, \"args\": {{\"Addr\": \"{:x}\", \"Bytes\": {}, \"Total Allocated\": {total}, \"Device Id\": -1, \"Device Type\": 0}}}}",
                change.thread,
                Microseconds(change.at_ns),
                change.address,
                change.bytes,
            )?;
        }
        Ok(())
    }
}

fn category(kind: Kind) -> &'static str {
    match kind {
        Kind::Call | Kind::Step | Kind::Backward => "cpu_op",
        Kind::Kernel => "cpu_kernel",
        Kind::Range => "user_annotation",
    }
}

/// Nanoseconds as microseconds with three decimals, exact.
struct Microseconds(u64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
