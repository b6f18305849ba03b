//! From the rings of threads to a profile.
//!
//! In: rings, and the scale of their time stamps. Out: events with numbers in place of pointers, nested in each thread.

use std::collections::HashMap;
use std::hash::Hash;

use opsmith_core::Backend;
use opsmith_runtime::Device;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::{KernelOrigin, OpDef};

use crate::model::{
    Change, DEEPEST, DeviceSpan, Event, Kind, Operands, Profile, ProfiledKernel, ProfiledOp, Thread,
};
use crate::recorder::Ring;
use crate::recorder::clock::Scale;
use crate::recorder::launches::clear_clocks;
use crate::recorder::record::{NO_OPERANDS, Name, OPEN, Record, Subject, What};

/// Interned values, by their recorded form.
struct Numbers<K> {
    known: HashMap<K, u32>,
}

impl<K: Hash + Eq> Numbers<K> {
    fn new() -> Numbers<K> {
        Numbers { known: HashMap::new() }
    }

    /// The number of a thing, which `make` makes at its first use.
    fn number<T>(&mut self, key: K, all: &mut Vec<T>, make: impl FnOnce() -> T) -> u32 {
        *self.known.entry(key).or_insert_with(|| {
            all.push(make());
            (all.len() - 1) as u32
        })
    }
}

/// Adds the events and changes of all rings to a profile; the devices that they name.
pub(crate) fn collect(profile: &mut Profile, rings: Vec<Ring>, scale: Scale) -> Vec<Device> {
    let mut numbers = All {
        operators: Numbers::new(),
        texts: Numbers::new(),
        kernels: HashMap::new(),
        sites: Numbers::new(),
        operands: Numbers::new(),
        devices: Numbers::new(),
        streams: HashMap::new(),
        untimed: 0,
        lost_changes: 0,
    };
    for ring in rings {
        collect_thread(profile, &mut numbers, ring, scale);
    }
    clear_clocks();
    profile.changes.sort_by_key(|change| change.at_ns);
    order_device_spans(profile);
    if numbers.untimed > 0 {
        profile
            .notes
            .push(format!("the times of {} kernels and copies of devices are missing", numbers.untimed));
    }
    if numbers.lost_changes > 0 {
        profile.notes.push(format!(
            "{} changes of memory were overwritten by later ones, so that its timeline begins later: record more with `ProfileOptions::records`",
            numbers.lost_changes
        ));
    }
    drop_deepest(profile);
    give_sites(profile);
    let mut devices: Vec<(u32, Device)> =
        numbers.devices.known.into_iter().map(|(device, number)| (number, device)).collect();
    devices.sort_by_key(|(number, _)| *number);
    devices.into_iter().map(|(_, device)| device).collect()
}

/// Orders the kernels and copies of devices by stream and time. A stream runs one after another; clocks that are not that exact may
/// tell otherwise.
fn order_device_spans(profile: &mut Profile) {
    profile.device_spans.sort_by_key(|span| (span.device, span.stream, span.start_ns, span.event));
    for index in 1..profile.device_spans.len() {
        let before = profile.device_spans[index - 1];
        let span = &mut profile.device_spans[index];
        if (before.device, before.stream) == (span.device, span.stream) && span.start_ns < before.end_ns() {
            let end = span.end_ns().max(before.end_ns());
            span.start_ns = before.end_ns();
            span.duration_ns = end - span.start_ns;
        }
    }
}

/// Drops events inside of more than [`DEEPEST`] others, so that whatever goes through a profile needs a bounded stack.
fn drop_deepest(profile: &mut Profile) {
    let depths = profile.depths();
    let count = depths.iter().filter(|depth| **depth > DEEPEST).count();
    if count == 0 {
        return;
    }
    profile
        .notes
        .push(format!("{count} events were left out that were inside of more than {DEEPEST} others"));
    let mut kept = 0;
    let numbers: Vec<u32> = depths
        .iter()
        .map(|depth| {
            let number = kept;
            kept += u32::from(*depth <= DEEPEST);
            number
        })
        .collect();
    for change in &mut profile.changes {
        while let Some(event) = change.event.filter(|event| depths[*event as usize] > DEEPEST) {
            change.event = profile.events[event as usize].parent;
        }
        change.event = change.event.map(|event| numbers[event as usize]);
    }
    profile.device_spans.retain(|span| depths[span.event as usize] <= DEEPEST);
    for span in &mut profile.device_spans {
        span.event = numbers[span.event as usize];
    }
    let mut depths = depths.into_iter();
    profile.events.retain(|_| depths.next().is_some_and(|depth| depth <= DEEPEST));
    for event in &mut profile.events {
        event.parent = event.parent.map(|parent| numbers[parent as usize]);
    }
}

/// Gives the events inside of a call its site, since theirs is in generated code, and nodes of backward that of the call that
/// they derive: the line that a user wrote.
fn give_sites(profile: &mut Profile) {
    let forward: HashMap<usize, usize> =
        profile.forward_of_backward().into_iter().map(|(call, backward)| (backward, call)).collect();
    // A call comes before its backward, but maybe in a thread with a greater number.
    let mut late = Vec::new();
    for index in 0..profile.events.len() {
        let event = profile.events[index];
        let outer = event
            .parent
            .map(|parent| profile.events[parent as usize])
            .filter(|outer| outer.kind != Kind::Range);
        let site = match (event.kind, forward.get(&index)) {
            (Kind::Backward, Some(&call)) if call < index => profile.events[call].site,
            (Kind::Backward, Some(&call)) => {
                late.push((index, call));
                None
            }
            (Kind::Backward, None) => None,
            _ => outer.map_or(event.site, |outer| outer.site),
        };
        profile.events[index].site = site;
    }
    for (backward, call) in late {
        profile.events[backward].site = profile.events[call].site;
        for index in backward + 1..profile.events.len() {
            if profile.events[index].parent.is_none_or(|parent| (parent as usize) < backward) {
                break;
            }
            profile.events[index].site = profile.events[backward].site;
        }
    }
}

struct All {
    operators: Numbers<*const OpDef>,
    texts: Numbers<String>,
    /// By function; kernels of several dtypes have one number if they have one source.
    kernels: HashMap<(*const OpDef, Backend, *const ()), u32>,
    /// By file, line and column.
    sites: Numbers<(*const u8, u32, u32)>,
    operands: Numbers<Operands>,
    devices: Numbers<Device>,
    /// Numbers of the streams of each device.
    streams: HashMap<(u32, u64), u32>,
    /// Kernels on devices whose times are not known.
    untimed: u64,
    /// Changes of memory that were overwritten.
    lost_changes: u64,
}

impl All {
    fn device(&mut self, device: Device, profile: &mut Profile) -> u32 {
        self.devices.number(device, &mut profile.devices, || device.to_string())
    }

    fn stream(&mut self, device: u32, stream: u64) -> u32 {
        let next = self.streams.keys().filter(|(of, _)| *of == device).count() as u32;
        *self.streams.entry((device, stream)).or_insert(next)
    }
}

fn collect_thread(profile: &mut Profile, numbers: &mut All, ring: Ring, scale: Scale) {
    let thread = profile.threads.len() as u32;
    let base = profile.events.len() as u64;
    let overwritten = ring.begun - ring.records.len() as u64;
    profile.threads.push(Thread { name: ring.thread.clone(), overwritten });
    // The event of a record that is still there.
    let event_of =
        |id: u64| id.checked_sub(overwritten).and_then(|position| u32::try_from(base + position).ok());
    let operands: Vec<u32> = ring
        .operands
        .seen
        .iter()
        .map(|seen| numbers.operands.number(seen.clone(), &mut profile.operands, || seen.clone()))
        .collect();
    let capacity = ring.records.len().max(1) as u64;
    for id in overwritten..ring.begun {
        let record = &ring.records[(id % capacity) as usize];
        let event = event(profile, numbers, &ring.names, record, scale);
        let parent = (record.up != 0).then(|| id - u64::from(record.up)).and_then(event_of);
        let number = record.subject.operands;
        let operands = (number != NO_OPERANDS).then(|| operands.get(number as usize).copied()).flatten();
        // A step has the operands of its kernel.
        if let (Kind::Kernel, Some(parent)) = (event.kind, parent)
            && let step = &mut profile.events[parent as usize]
            && step.kind == Kind::Step
        {
            step.operands = operands;
        }
        profile.events.push(Event { thread, parent, operands, ..event });
    }
    end_open_events(&mut profile.events[base as usize..], &ring, base);
    numbers.lost_changes += ring.changed - ring.changes.len() as u64;
    let capacity = ring.changes.len().max(1) as u64;
    for number in ring.changed - ring.changes.len() as u64..ring.changed {
        let change = &ring.changes[(number % capacity) as usize];
        let event = (change.inside != u64::MAX).then(|| event_of(change.inside)).flatten();
        let at_ns = scale.nanoseconds(change.at);
        let device = (change.device != Device::CPU).then(|| numbers.device(change.device, profile));
        let (address, bytes) = (change.address, change.bytes);
        profile.changes.push(Change { at_ns, address, bytes, thread, event, device });
    }
    let (times, untimed) = ring.launches.times(scale);
    numbers.untimed += untimed;
    for time in times {
        let Some(event) = event_of(time.record) else { continue };
        let device = numbers.device(time.device, profile);
        let stream = numbers.stream(device, time.stream);
        let (start_ns, duration_ns) = (time.start_ns, time.duration_ns);
        profile.device_spans.push(DeviceSpan { event, device, stream, start_ns, duration_ns });
    }
}

/// Ends events whose end was not recorded, in a pause of the profiler, where the next one outside of them begins.
fn end_open_events(events: &mut [Event], ring: &Ring, base: u64) {
    let overwritten = ring.begun - ring.records.len() as u64;
    let capacity = ring.records.len().max(1) as u64;
    let mut inside: Vec<usize> = Vec::new();
    for index in 0..events.len() {
        let parent = events[index].parent.map(|parent| (u64::from(parent) - base) as usize);
        while let Some(&outer) = inside.last()
            && Some(outer) != parent
        {
            let record = &ring.records[((overwritten + outer as u64) % capacity) as usize];
            if record.end == OPEN {
                let most = events[index].start_ns.saturating_sub(events[outer].start_ns);
                events[outer].duration_ns = events[outer].duration_ns.min(most);
            }
            inside.pop();
        }
        inside.push(index);
    }
}

/// The event of a record, without its thread, parent and operands.
fn event(profile: &mut Profile, numbers: &mut All, names: &[String], record: &Record, scale: Scale) -> Event {
    let subject = &record.subject;
    let text = |name: Name| names.get(name.0 as usize).map_or("", String::as_str);
    let op_name = |name: &dyn Fn(&OpDef) -> String| subject.op.map_or_else(String::new, name);
    let (kind, name) = match subject.what {
        What::Call(form) => (Kind::Call, op_name(&|op| form_name(op, form).to_owned())),
        What::Kernel(_) => (Kind::Kernel, String::new()),
        What::Copy => (Kind::Copy, text(subject.name).to_owned()),
        What::Backward => (Kind::Backward, format!("backward of {}", text(subject.name))),
        What::Step => (Kind::Step, op_name(&|op| op.name.to_owned())),
        What::Range => (Kind::Range, text(subject.name).to_owned()),
    };
    let operator = subject.op.map(|op| {
        numbers.operators.number(std::ptr::from_ref(op), &mut profile.operators, || operator_of(op))
    });
    let kernel = match (subject.what, subject.op, operator) {
        (What::Kernel(backend), Some(op), Some(of)) => {
            Some(kernel(profile, numbers, op, backend, subject.kernel(), of))
        }
        _ => None,
    };
    let name = kernel.map_or(name, |number| profile.kernels[number as usize].name.clone());
    let name = numbers.texts.number(name.clone(), &mut profile.texts, || name);
    let site = site(profile, numbers, subject, text(subject.elsewhere));
    let start_ns = scale.nanoseconds(record.start);
    // An event that had not ended lasts as long as the profile.
    let (end_ns, allocated, freed) = match record.end {
        OPEN => (profile.duration_ns, 0, 0),
        end => (scale.nanoseconds(end), record.allocated, record.freed),
    };
    Event {
        kind,
        thread: 0,
        parent: None,
        operator,
        kernel,
        name,
        site,
        operands: None,
        start_ns,
        duration_ns: end_ns.min(profile.duration_ns).saturating_sub(start_ns),
        allocated,
        freed,
        node: match kind {
            Kind::Step => record.node.checked_sub(1),
            _ => (record.node != 0).then_some(record.node),
        },
    }
}

/// The number of a record's site: a place in this program, or else a text.
fn site(profile: &mut Profile, numbers: &mut All, subject: &Subject, elsewhere: &str) -> Option<u32> {
    match subject.site() {
        Some(location) => {
            let key = (location.file().as_ptr(), location.line(), location.column());
            Some(numbers.sites.number(key, &mut profile.texts, || location.to_string()))
        }
        None if subject.elsewhere == Name::NONE => None,
        None => {
            let text = elsewhere.to_owned();
            Some(numbers.texts.number(text.clone(), &mut profile.texts, || text))
        }
    }
}

fn operator_of(op: &OpDef) -> ProfiledOp {
    ProfiledOp {
        name: op.name.to_owned(),
        library: op.library.name.to_owned(),
        entry: op.location.to_owned(),
        arguments: op.schema.args.iter().map(|arg| arg.name.to_owned()).collect(),
        positional: op.schema.args.iter().filter(|arg| !arg.keyword_only).count() as u32,
        inplace: op.forms.inplace.map(str::to_owned),
        writes: written_arguments(op),
        out: op.forms.out.map(str::to_owned),
    }
}

/// The number of a kernel, which is noted at its first event.
fn kernel(
    profile: &mut Profile,
    numbers: &mut All,
    op: &OpDef,
    backend: Backend,
    address: *const (),
    operator: u32,
) -> u32 {
    *numbers.kernels.entry((std::ptr::from_ref(op), backend, address)).or_insert_with(|| {
        let (name, source) = match op.kernels.origin(backend, address) {
            KernelOrigin::Spec { name: "", place } => (format!("kernel of {}", op.name), place.to_owned()),
            KernelOrigin::Spec { name, place } => (name.to_owned(), place.to_owned()),
            KernelOrigin::Program(line) => (format!("installed kernel of {}", op.name), line.to_string()),
        };
        let new = ProfiledKernel { name, operator, backend: backend.to_string(), source };
        let known = profile.kernels.iter().position(|known| *known == new);
        let number = known.unwrap_or_else(|| {
            profile.kernels.push(new);
            profile.kernels.len() - 1
        });
        number as u32
    })
}

/// The arguments that the in-place form of an operator writes.
fn written_arguments(op: &OpDef) -> Vec<u32> {
    match op.inplace_pairs {
        [] => op.forms.inplace.map(|_| 0).into_iter().collect(),
        pairs => pairs.iter().map(|(argument, _)| u32::from(*argument)).collect(),
    }
}

/// The full name of the form that was called.
pub(crate) fn form_name(op: &OpDef, form: Form) -> &'static str {
    let name = match form {
        Form::Functional => None,
        Form::Inplace => op.forms.inplace,
        Form::Out => op.forms.out,
    };
    name.unwrap_or(op.name)
}
