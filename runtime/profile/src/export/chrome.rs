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
use crate::model::{
    DeviceSpan, Event, Kind, Operands, Profile, ProfiledKernel, ProfiledOp, RecordedArg, TensorShape,
};

/// The process of all threads; devices have the numbers after it.
pub(super) const PROCESS: u32 = 1;

impl Profile {
    /// Writes a trace as a file, whole or not at all: JSON if its name ends with `.json`, else Perfetto's binary format, which is
    /// a tenth of its size.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save_trace(&self, path: impl AsRef<Path>) -> Result<(), ProfileError> {
        let path = path.as_ref();
        internals::replace(path, |file| -> Result<(), ProfileError> {
            let mut writer = io::BufWriter::with_capacity(1 << 20, file);
            match path.extension().is_some_and(|extension| extension == "json") {
                true => self.write_trace(&mut writer)?,
                false => self.write_perfetto(&mut writer)?,
            }
            Ok(writer.flush()?)
        })
        .map_err(|error| error.in_file(path))
    }

    /// Writes a trace as JSON.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_trace(&self, mut out: impl Write) -> io::Result<()> {
        write!(
            out,
            "{{\"schemaVersion\": 1, \"displayTimeUnit\": \"ns\", \"traceName\": {}, \"baseTimeNanoseconds\": {}, \"record_shapes\": {}, \"profile_memory\": {},\n{}\"traceEvents\": [\n",
            quoted(&self.name),
            self.started_ms * 1_000_000,
            u8::from(self.has_shapes),
            u8::from(self.has_memory),
            self.entries_text(),
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
        let fragments = self.fragments();
        super::parts::write(&mut out, self.events.len(), |numbers| {
            let mut line = Line { bytes: Vec::with_capacity(EVENT_BYTES * numbers.len()) };
            numbers.for_each(|number| self.put_event(&mut line, &fragments, number, &self.events[number]));
            line.bytes
        })?;
        self.write_flows(&mut out)?;
        self.write_devices(&mut out)?;
        self.write_memory(&mut out)?;
        write!(out, "\n]}}\n")
    }

    /// The entries of operators, which are no part of events: a trace of millions is as large as it takes to write.
    fn entries_text(&self) -> String {
        let entry = |op: &ProfiledOp| format!("{}:{}", quoted(&op.name), quoted(&op.entry));
        let entries: Vec<String> = self.operators.iter().map(entry).collect();
        format!("\"operatorEntries\": {{{}}},\n", entries.join(","))
    }

    /// The texts of events, each written as JSON once.
    fn fragments(&self) -> Fragments {
        let operator = |op: &ProfiledOp| format!(",\"Operator\":{}", quoted(&op.name));
        let flops = |operands: &Operands| {
            operands.flops.map_or_else(String::new, |flops| format!(",\"flops\":{flops}"))
        };
        Fragments {
            texts: self.texts.iter().map(|text| quoted(text)).collect(),
            operators: self.operators.iter().map(operator).collect(),
            kernels: self.kernels.iter().map(kernel_text).collect(),
            operands: self.operands.iter().map(operands_text).collect(),
            flops: self.operands.iter().map(flops).collect(),
            of_call: self.operands_of_calls(),
        }
    }

    /// For the operands of each kernel, the operands of a call with the same arguments: that kernel's event inside of the call's
    /// does not repeat them.
    fn operands_of_calls(&self) -> Vec<Option<u32>> {
        let mut calls: HashMap<&[RecordedArg], u32> = HashMap::new();
        for (number, operands) in self.operands.iter().enumerate().filter(|(_, own)| own.outs.is_empty()) {
            calls.entry(&operands.args).or_insert(number as u32);
        }
        self.operands.iter().map(|operands| calls.get(&operands.args[..]).copied()).collect()
    }

    fn put_event(&self, line: &mut Line, fragments: &Fragments, number: usize, event: &Event) {
        line.text(",\n{\"ph\":\"X\",\"cat\":\"").text(CATEGORIES[category_number(event.kind)]);
        line.text("\",\"name\":").text(&fragments.texts[event.name as usize]);
        line.text(",\"pid\":").uint(PROCESS.into()).text(",\"tid\":").uint(event.thread.into());
        line.text(",\"ts\":").microseconds(event.start_ns).text(",\"dur\":").microseconds(event.duration_ns);
        line.text(",\"args\":{\"Ev Idx\":").uint(number as u64);
        let outer = event.parent.map(|parent| &self.events[parent as usize]);
        let is_part =
            event.kind == Kind::Kernel && outer.is_some_and(|outer| outer.operator == event.operator);
        if let Some(operator) = event.operator.filter(|_| !is_part) {
            line.text(&fragments.operators[operator as usize]);
        }
        if let Some(site) = event.site.filter(|_| !is_part) {
            line.text(",\"Call stack\":").text(&fragments.texts[site as usize]);
        }
        if let Some(kernel) = event.kernel {
            line.text(&fragments.kernels[kernel as usize]);
        }
        if let Some(operands) = event.operands.map(|operands| operands as usize) {
            let of_call = fragments.of_call[operands].filter(|_| is_part);
            let known = of_call.is_some() && outer.is_some_and(|outer| outer.operands == of_call);
            let texts = if known { &fragments.flops } else { &fragments.operands };
            line.text(&texts[operands]);
        }
        if event.allocated + event.freed > 0 {
            line.text(",\"Allocated\":").uint(event.allocated).text(",\"Freed\":").uint(event.freed);
        }
        if let Some(node) = event.node {
            // As text: numbers of 64 bits are not those of JavaScript.
            let node = if event.kind == Kind::Step { format!("%{node}") } else { format!("{node:x}") };
            line.text(&format!(",\"Node\":\"{node}\""));
        }
        line.text("}}");
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
        let is_of_backward = |event: &Event| event.node.is_some() && event.kind != Kind::Step;
        let mut calls: HashMap<u64, usize> = HashMap::new();
        let mut order: Vec<usize> =
            (0..self.events.len()).filter(|&event| is_of_backward(&self.events[event])).collect();
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

    /// Kernels and copies of devices: a process each, a track each of its streams, and an arrow from the event that submitted it.
    fn write_devices(&self, out: &mut impl Write) -> io::Result<()> {
        for (process, device) in (PROCESS + 1..).zip(&self.devices) {
            let name = quoted(device);
            write!(
                out,
                ",\n{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {process}, \"tid\": 0, \"args\": {{\"name\": {name}}}}}"
            )?;
        }
        let first = self.forward_of_backward().len();
        for (id, span) in (first..).zip(&self.device_spans) {
            let (process, kernel) = (PROCESS + 1 + span.device, &self.events[span.event as usize]);
            let (start, stream) = (Microseconds(span.start_ns), span.stream);
            write!(
                out,
                ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": {}, \"pid\": {process}, \"tid\": {stream}, \"ts\": {start}, \"dur\": {}, \"args\": {{\"device\": {}, \"stream\": {stream}, \"External id\": {}{}}}}}",
                CATEGORIES[device_category_number(kernel.kind)],
                quoted(self.name_of(kernel)),
                Microseconds(span.duration_ns),
                span.device,
                span.event,
                self.copied_text(kernel, span),
            )?;
            let from = format!(
                "\"pid\": {PROCESS}, \"tid\": {}, \"ts\": {}",
                kernel.thread,
                Microseconds(kernel.start_ns)
            );
            let to = format!("\"pid\": {process}, \"tid\": {stream}, \"ts\": {start}, \"bp\": \"e\"");
            for (phase, place) in [("s", from), ("f", to)] {
                write!(
                    out,
                    ",\n{{\"ph\": \"{phase}\", \"id\": {id}, \"cat\": \"ac2g\", \"name\": \"ac2g\", {place}}}"
                )?;
            }
        }
        Ok(())
    }

    /// Bytes of a copy, and its rate.
    fn copied_text(&self, event: &Event, span: &DeviceSpan) -> String {
        let Some(operands) = self.operands_of(event).filter(|_| event.kind == Kind::Copy) else {
            return String::new();
        };
        let bytes = operands.copied();
        let rate = bytes as f64 / span.duration_ns.max(1) as f64;
        format!(", \"bytes\": {bytes}, \"memory bandwidth (GB/s)\": {rate:.3}")
    }

    fn write_memory(&self, out: &mut impl Write) -> io::Result<()> {
        let mut totals = vec![0i64; 1 + self.devices.len()];
        for change in &self.changes {
            let place = change.device.map_or(0, |device| device as usize + 1);
            totals[place] += change.bytes;
            let (total, process) = (totals[place], PROCESS + place as u32);
            let (number, kind) = change.device.map_or((-1, 0), |device| (i64::from(device), 1));
            write!(
                out,
                ",\n{{\"ph\": \"C\", \"name\": \"memory\", \"pid\": {process}, \"tid\": 0, \"ts\": {}, \"args\": {{\"bytes\": {total}}}}}",
                Microseconds(change.at_ns),
            )?;
            write!(
                out,
                ",\n{{\"ph\": \"i\", \"s\": \"t\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": {PROCESS}, \"tid\": {}, \"ts\": {}, \"args\": {{\"Addr\": \"{:x}\", \"Bytes\": {}, \"Total Allocated\": {total}, \"Device Id\": {number}, \"Device Type\": {kind}}}}}",
                change.thread,
                Microseconds(change.at_ns),
                change.address,
                change.bytes,
            )?;
        }
        Ok(())
    }
}

/// Bytes of most events.
const EVENT_BYTES: usize = 256;

/// Events as they are written. Millions of events spend their time in formatting, so numbers are written by a library for
/// that alone.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
}

impl Line {
    fn text(&mut self, text: &str) -> &mut Line {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn uint(&mut self, number: u64) -> &mut Line {
        self.text(itoa::Buffer::new().format(number))
    }

    /// Nanoseconds as microseconds with three decimals, exact.
    fn microseconds(&mut self, nanoseconds: u64) -> &mut Line {
        let decimals = nanoseconds % 1000;
        self.uint(nanoseconds / 1000).text(match decimals {
            0..10 => ".00",
            10..100 => ".0",
            _ => ".",
        });
        self.uint(decimals)
    }
}

/// JSON of the parts that many events share.
struct Fragments {
    texts: Vec<String>,
    operators: Vec<String>,
    kernels: Vec<String>,
    operands: Vec<String>,
    /// Operations of the same operands.
    flops: Vec<String>,
    of_call: Vec<Option<u32>>,
}

fn kernel_text(kernel: &ProfiledKernel) -> String {
    let backend = format!(",\"Backend\":{}", quoted(&kernel.backend));
    match &*kernel.source {
        "" => backend,
        source => format!("{backend},\"Source\":{}", quoted(source)),
    }
}

fn operands_text(operands: &Operands) -> String {
    let tensors: Vec<&TensorShape> = operands.inputs().collect();
    let list = |text: &dyn Fn(&TensorShape) -> String| {
        tensors.iter().map(|tensor| text(tensor)).collect::<Vec<_>>().join(",")
    };
    let numbers =
        |numbers: &[i64]| format!("[{}]", numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let attribute = |arg: &RecordedArg| match arg {
        RecordedArg::Attribute { text, .. } => quoted(text),
        _ => "\"\"".to_owned(),
    };
    let attributes: Vec<String> = operands.args.iter().map(attribute).collect();
    let flops = operands.flops.map_or_else(String::new, |flops| format!(",\"flops\":{flops}"));
    format!(
        ",\"Input Dims\":[{}],\"Input Strides\":[{}],\"Input type\":[{}],\"Concrete Inputs\":[{}]{flops}",
        list(&|tensor| numbers(&tensor.sizes)),
        list(&|tensor| numbers(&tensor.strides)),
        list(&|tensor| quoted(&tensor.dtype)),
        attributes.join(","),
    )
}

/// Categories of events; the last two are those of kernels and copies of devices.
pub(super) const CATEGORIES: [&str; 5] = ["cpu_op", "cpu_kernel", "user_annotation", "kernel", "gpu_memcpy"];

/// The position of the category of an event's part of a device's time.
pub(super) fn device_category_number(kind: Kind) -> usize {
    if kind == Kind::Copy { 4 } else { 3 }
}

/// The position of an event's category.
pub(super) fn category_number(kind: Kind) -> usize {
    match kind {
        Kind::Call | Kind::Step | Kind::Backward | Kind::Copy => 0,
        Kind::Kernel => 1,
        Kind::Range => 2,
    }
}

/// Nanoseconds as microseconds with three decimals, exact.
struct Microseconds(u64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
