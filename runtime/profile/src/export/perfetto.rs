//! Traces in Perfetto's binary format, a tenth of the bytes of JSON: its page loads millions of events of them.
//!
//! A trace is a protocol buffer of packets (`perfetto.protos.Trace`). Names and texts stand once and have numbers, which
//! packets refer to. Each thread is a track, on which slices nest; arrows lead from calls to the nodes of backward; memory
//! is a counter.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

use super::protobuf::Message;
use crate::model::{DeviceSpan, Event, Profile};

/// Fields of the messages, by `perfetto/trace/*.proto`.
mod field {
    pub const TRACE_PACKET: u32 = 1;

    pub const PACKET_TIMESTAMP: u32 = 8;
    pub const PACKET_SEQUENCE: u32 = 10;
    pub const PACKET_EVENT: u32 = 11;
    pub const PACKET_INTERNED: u32 = 12;
    pub const PACKET_SEQUENCE_FLAGS: u32 = 13;
    pub const PACKET_TRACK: u32 = 60;

    pub const TRACK_UUID: u32 = 1;
    pub const TRACK_NAME: u32 = 2;
    pub const TRACK_PROCESS: u32 = 3;
    pub const TRACK_THREAD: u32 = 4;
    pub const TRACK_PARENT: u32 = 5;
    pub const TRACK_COUNTER: u32 = 8;

    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
    pub const COUNTER_UNIT: u32 = 3;

    pub const EVENT_CATEGORY: u32 = 3;
    pub const EVENT_ANNOTATION: u32 = 4;
    pub const EVENT_TYPE: u32 = 9;
    pub const EVENT_NAME: u32 = 10;
    pub const EVENT_TRACK: u32 = 11;
    pub const EVENT_COUNTER: u32 = 30;
    pub const EVENT_FLOW: u32 = 47;
    pub const EVENT_LAST_FLOW: u32 = 48;

    pub const ANNOTATION_NAME: u32 = 1;
    pub const ANNOTATION_UINT: u32 = 3;
    pub const ANNOTATION_TEXT: u32 = 17;

    pub const INTERNED_CATEGORY: u32 = 1;
    pub const INTERNED_NAME: u32 = 2;
    pub const INTERNED_ANNOTATION: u32 = 3;
    pub const INTERNED_TEXT: u32 = 29;

    pub const ENTRY_NUMBER: u32 = 1;
    pub const ENTRY_TEXT: u32 = 2;
}

/// `TrackEvent.Type`.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
/// `CounterDescriptor.Unit.UNIT_SIZE_BYTES`.
const BYTES: u64 = 3;
/// `TracePacket.SequenceFlags`: interned data begin here; a packet needs the data interned before.
const CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// Numbers of the one sequence, the process and its tracks.
const SEQUENCE: u64 = 1;
const PROCESS: u64 = 1;
const PROCESS_TRACK: u64 = 1;
const MEMORY_TRACK: u64 = 2;
const FIRST_THREAD_TRACK: u64 = 16;
/// Of a device its process, its memory and its streams, from this number on.
const FIRST_DEVICE_TRACK: u64 = 1 << 32;
const TRACKS_OF_DEVICE: u64 = 1 << 32;
const FIRST_STREAM_TRACK: u64 = 16;

/// Names of annotations; their numbers are positions, from 1.
const ANNOTATIONS: [&str; 9] =
    ["operator", "entry", "site", "operands", "flops", "allocated", "freed", "backend", "source"];

/// Bytes of the packets of most events.
const EVENT_BYTES: usize = 96;

/// Texts with numbers: names of events first, then those of operators, operands and kernels.
struct Texts {
    operators: u64,
    entries: u64,
    operands: u64,
    backends: u64,
    sources: u64,
}

impl Texts {
    fn of(profile: &Profile) -> Texts {
        let [texts, operators] = [profile.texts.len(), profile.operators.len()].map(|count| count as u64);
        let [operands, kernels] = [profile.operands.len(), profile.kernels.len()].map(|count| count as u64);
        let operands_from = 1 + texts + 2 * operators;
        let backends = operands_from + operands;
        Texts {
            operators: 1 + texts,
            entries: 1 + texts + operators,
            operands: operands_from,
            backends,
            sources: backends + kernels,
        }
    }
}

impl Profile {
    /// Writes a trace in Perfetto's binary format.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_perfetto(&self, mut out: impl Write) -> io::Result<()> {
        let texts = Texts::of(self);
        self.write_head(&mut out)?;
        let (flows, flows_of_backward) = self.flows();
        super::parts::write(&mut out, self.events.len(), |numbers| {
            let mut packets = Vec::with_capacity(EVENT_BYTES * numbers.len());
            self.put_slices(&mut packets, &texts, &flows, numbers);
            packets
        })?;
        self.write_device_spans(&mut out, flows_of_backward)?;
        self.write_memory_counter(&mut out)
    }

    /// The beginnings of events, and the ends of those before them that end first; after the last event, all ends.
    fn put_slices(
        &self,
        packets: &mut Vec<u8>,
        texts: &Texts,
        flows: &HashMap<usize, Vec<(u64, bool)>>,
        numbers: Range<usize>,
    ) {
        let outer = |number: &usize| self.events[*number].parent.map(|parent| parent as usize);
        let before = numbers.start.checked_sub(1);
        let mut open: Vec<usize> = std::iter::successors(before, outer).collect();
        open.reverse();
        let is_last = numbers.end == self.events.len();
        for number in numbers {
            let event = &self.events[number];
            while open.last().copied() != outer(&number)
                && let Some(ended) = open.pop()
            {
                self.put_end(packets, &self.events[ended]);
            }
            self.put_begin(packets, texts, event, flows.get(&number));
            open.push(number);
        }
        while is_last && let Some(ended) = open.pop() {
            self.put_end(packets, &self.events[ended]);
        }
    }

    /// Tracks and texts.
    fn write_head(&self, out: &mut impl Write) -> io::Result<()> {
        let process = Message::new().uint(field::TRACK_UUID, PROCESS_TRACK).message(
            field::TRACK_PROCESS,
            &Message::new().uint(field::PROCESS_PID, PROCESS).text(field::PROCESS_NAME, &self.name),
        );
        write_packet(
            out,
            Message::new().uint(field::PACKET_SEQUENCE_FLAGS, CLEARED).message(field::PACKET_TRACK, &process),
        )?;
        for (number, thread) in self.threads.iter().enumerate() {
            let descriptor = Message::new()
                .uint(field::THREAD_PID, PROCESS)
                .uint(field::THREAD_TID, number as u64 + 1)
                .text(field::THREAD_NAME, &thread.name);
            let track = Message::new()
                .uint(field::TRACK_UUID, FIRST_THREAD_TRACK + number as u64)
                .uint(field::TRACK_PARENT, PROCESS_TRACK)
                .message(field::TRACK_THREAD, &descriptor);
            write_packet(out, Message::new().message(field::PACKET_TRACK, &track))?;
        }
        write_memory_track(out, MEMORY_TRACK, PROCESS_TRACK)?;
        self.write_device_tracks(out)?;
        self.write_texts(out)
    }

    /// Tracks of devices: a process each, its memory, and its streams.
    fn write_device_tracks(&self, out: &mut impl Write) -> io::Result<()> {
        for (number, device) in (0..).zip(&self.devices) {
            let own = device_track(number);
            let process = Message::new().uint(field::TRACK_UUID, own).message(
                field::TRACK_PROCESS,
                &Message::new()
                    .uint(field::PROCESS_PID, PROCESS + 1 + u64::from(number))
                    .text(field::PROCESS_NAME, device),
            );
            write_packet(out, Message::new().message(field::PACKET_TRACK, &process))?;
            write_memory_track(out, own + MEMORY_TRACK, own)?;
        }
        let same = |a: &DeviceSpan, b: &DeviceSpan| (a.device, a.stream) == (b.device, b.stream);
        for span in self.device_spans.chunk_by(same).filter_map(|spans| spans.first()) {
            let track = Message::new()
                .uint(field::TRACK_UUID, stream_track(span))
                .uint(field::TRACK_PARENT, device_track(span.device))
                .text(field::TRACK_NAME, &format!("stream {}", span.stream));
            write_packet(out, Message::new().message(field::PACKET_TRACK, &track))?;
        }
        Ok(())
    }

    /// Kernels and copies of devices, each at the end of an arrow from the event that submitted it.
    fn write_device_spans(&self, out: &mut impl Write, first_flow: u64) -> io::Result<()> {
        for (flow, span) in (first_flow..).zip(&self.device_spans) {
            let kernel = &self.events[span.event as usize];
            let slice = Message::new()
                .uint(field::EVENT_TYPE, SLICE_BEGIN)
                .uint(field::EVENT_TRACK, stream_track(span))
                .uint(field::EVENT_NAME, 1 + u64::from(kernel.name))
                .uint(field::EVENT_CATEGORY, 1 + super::chrome::device_category_number(kernel.kind) as u64)
                .fixed(field::EVENT_LAST_FLOW, flow);
            write_event(out, span.start_ns, &slice)?;
            let end = Message::new()
                .uint(field::EVENT_TYPE, SLICE_END)
                .uint(field::EVENT_TRACK, stream_track(span));
            write_event(out, span.end_ns(), &end)?;
        }
        Ok(())
    }

    fn write_texts(&self, out: &mut impl Write) -> io::Result<()> {
        let entry = |number: u64, text: &str| {
            Message::new().uint(field::ENTRY_NUMBER, number).text(field::ENTRY_TEXT, text)
        };
        let mut interned = Message::new();
        for (number, category) in super::chrome::CATEGORIES.iter().enumerate() {
            interned = interned.message(field::INTERNED_CATEGORY, &entry(number as u64 + 1, category));
        }
        for (number, name) in ANNOTATIONS.iter().enumerate() {
            interned = interned.message(field::INTERNED_ANNOTATION, &entry(number as u64 + 1, name));
        }
        for (number, text) in (1..).zip(&self.texts) {
            interned = interned.message(field::INTERNED_NAME, &entry(number, text));
        }
        let texts = self.texts.iter().map(String::clone);
        let operators = self.operators.iter().map(|op| op.name.clone());
        let entries = self.operators.iter().map(|op| op.entry.clone());
        let operands = self.operands.iter().map(|operands| operands.text());
        let backends = self.kernels.iter().map(|kernel| kernel.backend.clone());
        let sources = self.kernels.iter().map(|kernel| kernel.source.clone());
        let all = texts.chain(operators).chain(entries).chain(operands).chain(backends).chain(sources);
        for (number, text) in (1..).zip(all) {
            interned = interned.message(field::INTERNED_TEXT, &entry(number, &text));
        }
        write_packet(out, needing_state().message(field::PACKET_INTERNED, &interned))
    }

    /// Arrows by the event at their ends: their numbers, and whether it is the last; and the number of the first arrow to a
    /// kernel on a device.
    fn flows(&self) -> (HashMap<usize, Vec<(u64, bool)>>, u64) {
        let mut flows: HashMap<usize, Vec<(u64, bool)>> = HashMap::new();
        let pairs = self.forward_of_backward();
        let next = 1 + pairs.len() as u64;
        for (number, (call, backward)) in (1..).zip(pairs) {
            flows.entry(call).or_default().push((number, false));
            flows.entry(backward).or_default().push((number, true));
        }
        for (number, span) in (next..).zip(&self.device_spans) {
            flows.entry(span.event as usize).or_default().push((number, false));
        }
        (flows, next)
    }

    fn put_begin(
        &self,
        packets: &mut Vec<u8>,
        texts: &Texts,
        event: &Event,
        flows: Option<&Vec<(u64, bool)>>,
    ) {
        let mut slice = Message::new()
            .uint(field::EVENT_TYPE, SLICE_BEGIN)
            .uint(field::EVENT_TRACK, FIRST_THREAD_TRACK + u64::from(event.thread))
            .uint(field::EVENT_NAME, 1 + u64::from(event.name))
            .uint(field::EVENT_CATEGORY, 1 + super::chrome::category_number(event.kind) as u64);
        let text = |number: u32, first: u64| Some((field::ANNOTATION_TEXT, first + u64::from(number)));
        let some = |value: u64| (value > 0).then_some((field::ANNOTATION_UINT, value));
        let values = [
            event.operator.and_then(|number| text(number, texts.operators)),
            event.operator.and_then(|number| text(number, texts.entries)),
            event.site.and_then(|number| text(number, 1)),
            event.operands.and_then(|number| text(number, texts.operands)),
            self.operands_of(event).and_then(|operands| operands.flops).and_then(some),
            some(event.allocated),
            some(event.freed),
            event.kernel.and_then(|number| text(number, texts.backends)),
            self.source_of(event).and(event.kernel).and_then(|number| text(number, texts.sources)),
        ];
        for (name, (kind, value)) in (1..).zip(values).filter_map(|(name, value)| Some((name, value?))) {
            let annotation = Message::new().uint(field::ANNOTATION_NAME, name).uint(kind, value);
            slice = slice.message(field::EVENT_ANNOTATION, &annotation);
        }
        for (number, is_last) in flows.into_iter().flatten() {
            slice = slice.fixed(if *is_last { field::EVENT_LAST_FLOW } else { field::EVENT_FLOW }, *number);
        }
        put_event(packets, event.start_ns, &slice);
    }

    fn put_end(&self, packets: &mut Vec<u8>, event: &Event) {
        let track = FIRST_THREAD_TRACK + u64::from(event.thread);
        let slice = Message::new().uint(field::EVENT_TYPE, SLICE_END).uint(field::EVENT_TRACK, track);
        put_event(packets, event.end_ns(), &slice);
    }

    fn write_memory_counter(&self, out: &mut impl Write) -> io::Result<()> {
        let mut totals = vec![0i64; 1 + self.devices.len()];
        for change in &self.changes {
            let place = change.device.map_or(0, |device| device as usize + 1);
            totals[place] += change.bytes;
            let track = change.device.map_or(0, device_track) + MEMORY_TRACK;
            let value = Message::new()
                .uint(field::EVENT_TYPE, COUNTER)
                .uint(field::EVENT_TRACK, track)
                .uint(field::EVENT_COUNTER, totals[place] as u64);
            write_event(out, change.at_ns, &value)?;
        }
        Ok(())
    }
}

/// The track of a device, by its number.
fn device_track(device: u32) -> u64 {
    FIRST_DEVICE_TRACK + TRACKS_OF_DEVICE * u64::from(device)
}

fn stream_track(span: &DeviceSpan) -> u64 {
    device_track(span.device) + FIRST_STREAM_TRACK + u64::from(span.stream)
}

fn write_memory_track(out: &mut impl Write, track: u64, parent: u64) -> io::Result<()> {
    let memory = Message::new()
        .uint(field::TRACK_UUID, track)
        .uint(field::TRACK_PARENT, parent)
        .text(field::TRACK_NAME, "memory")
        .message(field::TRACK_COUNTER, &Message::new().uint(field::COUNTER_UNIT, BYTES));
    write_packet(out, Message::new().message(field::PACKET_TRACK, &memory))
}

fn needing_state() -> Message {
    Message::new().uint(field::PACKET_SEQUENCE_FLAGS, NEEDS_STATE)
}

fn write_event(out: &mut impl Write, at_ns: u64, event: &Message) -> io::Result<()> {
    let mut packet = Vec::new();
    put_event(&mut packet, at_ns, event);
    out.write_all(&packet)
}

fn write_packet(out: &mut impl Write, packet: Message) -> io::Result<()> {
    out.write_all(of_trace(packet).bytes())
}

fn put_event(packets: &mut Vec<u8>, at_ns: u64, event: &Message) {
    let packet = needing_state().uint(field::PACKET_TIMESTAMP, at_ns).message(field::PACKET_EVENT, event);
    packets.extend_from_slice(of_trace(packet).bytes());
}

fn of_trace(packet: Message) -> Message {
    Message::new().message(field::TRACE_PACKET, &packet.uint(field::PACKET_SEQUENCE, SEQUENCE))
}
