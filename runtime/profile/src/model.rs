//! A profile: events with times, operands and memory.
//!
//! In: the records of a session, or a file. Out: plain data without references to the program that it came from, so that
//! another program reads it. Texts and operands stand once.

mod check;
mod operands;

use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use opsmith_runtime::internals;
use serde::{Deserialize, Serialize};

use crate::error::ProfileError;
use crate::limits::Limits;

pub use operands::{Operands, RecordedArg, TensorShape};

/// The version of the file format.
const FORMAT: u32 = 2;

/// Most events that an event is inside of.
pub(crate) const DEEPEST: u32 = 1000;

/// The events of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Version of the file format.
    format: u32,
    /// Name of the profile.
    pub name: String,
    /// When it began, in milliseconds of Unix time.
    pub started_ms: u64,
    /// From its beginning to its end, in nanoseconds.
    pub duration_ns: u64,
    /// Whether operands were recorded.
    pub has_shapes: bool,
    /// Whether changes of memory were recorded.
    pub has_memory: bool,
    /// Threads with events.
    pub threads: Vec<Thread>,
    /// Operators that events name.
    pub operators: Vec<ProfiledOp>,
    /// Kernels that events name.
    pub kernels: Vec<ProfiledKernel>,
    /// Texts that events name: names and sites.
    pub texts: Vec<String>,
    /// Operands that events name.
    pub operands: Vec<Operands>,
    /// Events, of each thread in the order of beginnings: an event after the one that it is inside of.
    pub events: Vec<Event>,
    /// Changes of memory, in the order of time.
    pub changes: Vec<Change>,
    /// Devices other than the host that events name.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Kernels on these devices and copies to and from them, of each stream in the order of time.
    #[serde(default)]
    pub device_spans: Vec<DeviceSpan>,
    /// Gaps of the profile, a sentence each.
    pub notes: Vec<String>,
    /// Measured limits of the machine.
    pub limits: Option<Limits>,
}

/// A thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Thread {
    /// Its name, or its number in the process.
    pub name: String,
    /// Events that were overwritten by later ones.
    pub overwritten: u64,
}

/// An operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledOp {
    /// Full name with overload.
    pub name: String,
    /// The crate that has it.
    pub library: String,
    /// File and line of its entry.
    pub entry: String,
    /// Names of its arguments, in the order of the signature.
    pub arguments: Vec<String>,
    /// The number of those that a call may give by position; the others are given by name.
    pub positional: u32,
    /// Full name of its in-place form, if it has one.
    pub inplace: Option<String>,
    /// Numbers of the arguments that the in-place form writes.
    pub writes: Vec<u32>,
    /// Full name of its out form, if it has one.
    pub out: Option<String>,
}

/// A kernel of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfiledKernel {
    /// Its name in the spec; of a loop made from an expression, `kernel of exp`.
    pub name: String,
    /// Number of its operator.
    pub operator: u32,
    /// The family of devices that it runs on.
    pub backend: String,
    /// File and line: of its function, from the folder of the spec, of the entry whose expression it computes, or of the call that
    /// installed it while the program ran. Empty if the function was not found.
    pub source: String,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A call of an operator.
    Call,
    /// A kernel.
    Kernel,
    /// A copy between two devices, the host among them.
    Copy,
    /// A node of backward.
    Backward,
    /// A step of a graph.
    Step,
    /// A part of the program's work, or a range that user code named.
    Range,
}

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Event {
    /// Its kind.
    pub kind: Kind,
    /// Number of its thread.
    pub thread: u32,
    /// The event that it is inside of.
    pub parent: Option<u32>,
    /// Number of its operator.
    pub operator: Option<u32>,
    /// Number of its kernel, of an event of one.
    pub kernel: Option<u32>,
    /// Number of its name: of the form that was called, the kernel, the copy, the node or the range.
    pub name: u32,
    /// Number of its site: file, line and column.
    pub site: Option<u32>,
    /// Number of its operands.
    pub operands: Option<u32>,
    /// Its beginning, in nanoseconds after the profile's.
    pub start_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
    /// Bytes that its thread allocated meanwhile.
    pub allocated: u64,
    /// Bytes that its thread freed meanwhile.
    pub freed: u64,
    /// The node that a call was recorded as, or that an event of backward is; equal numbers belong together. Of a step, its node in
    /// the graph: the number of its first result, `%5` in `Graph::describe`.
    pub node: Option<u64>,
}

/// An event in a file.
type Row = (
    (Kind, u32, Option<u32>, u32),
    (Option<u32>, Option<u32>, Option<u32>, Option<u32>),
    (u64, u64, u64, u64, Option<u64>),
);

impl From<Row> for Event {
    fn from(row: Row) -> Event {
        let ((kind, thread, parent, name), (operator, kernel, site, operands), numbers) = row;
        let (start_ns, duration_ns, allocated, freed, node) = numbers;
        Event {
            kind,
            thread,
            parent,
            operator,
            kernel,
            name,
            site,
            operands,
            start_ns,
            duration_ns,
            allocated,
            freed,
            node,
        }
    }
}

impl From<Event> for Row {
    fn from(event: Event) -> Row {
        let Event { kind, thread, parent, name, operator, kernel, site, operands, .. } = event;
        let Event { start_ns, duration_ns, allocated, freed, node, .. } = event;
        (
            (kind, thread, parent, name),
            (operator, kernel, site, operands),
            (start_ns, duration_ns, allocated, freed, node),
        )
    }
}

impl Event {
    /// Its end, in nanoseconds after the profile's beginning.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }
}

/// A change of a thread's memory.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Change {
    /// When, in nanoseconds after the profile's beginning.
    pub at_ns: u64,
    /// The block's address, which later blocks may have again.
    pub address: u64,
    /// Bytes that were allocated, or freed if negative.
    pub bytes: i64,
    /// Number of the thread.
    pub thread: u32,
    /// The innermost event that it was in.
    pub event: Option<u32>,
    /// Number of the memory's device; `None` for the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
}

/// A kernel on a device, or a copy to or from one: a part of the time of one of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpan {
    /// The event of the kernel or copy, which submitted it.
    pub event: u32,
    /// Number of the device.
    pub device: u32,
    /// Number of the stream among those of its device, from 0.
    pub stream: u32,
    /// Its beginning, in nanoseconds after the profile's; that of the device's clock, which is set by the host's.
    pub start_ns: u64,
    /// Its duration.
    pub duration_ns: u64,
}

impl DeviceSpan {
    /// Its end, in nanoseconds after the profile's beginning.
    pub fn end_ns(&self) -> u64 {
        self.start_ns + self.duration_ns
    }
}

/// The beginning of a file of any format.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Profile {
    /// An empty profile.
    pub(crate) fn empty(name: &str) -> Profile {
        Profile {
            format: FORMAT,
            name: name.to_owned(),
            started_ms: 0,
            duration_ns: 0,
            has_shapes: false,
            has_memory: false,
            threads: Vec::new(),
            operators: Vec::new(),
            kernels: Vec::new(),
            texts: Vec::new(),
            operands: Vec::new(),
            events: Vec::new(),
            changes: Vec::new(),
            devices: Vec::new(),
            device_spans: Vec::new(),
            notes: Vec::new(),
            limits: None,
        }
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ProfileError> {
        let path = path.as_ref();
        internals::replace(path, |file| -> Result<(), ProfileError> {
            let mut writer = BufWriter::with_capacity(1 << 20, file);
            serde_json::to_writer(&mut writer, self)
                .map_err(|error| ProfileError::from(std::io::Error::from(error)))?;
            Ok(writer.flush()?)
        })
        .map_err(|error| error.in_file(path))
    }

    /// Reads a file that [`save`](Profile::save) wrote.
    ///
    /// # Errors
    /// If it cannot be read, is no profile, or contradicts itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Profile, ProfileError> {
        let path = path.as_ref();
        let load = || {
            let reader =
                || std::io::Result::Ok(BufReader::with_capacity(1 << 20, std::fs::File::open(path)?));
            let profile: Profile = serde_json::from_reader(reader()?).map_err(|error| {
                let head: Option<Head> = reader().ok().and_then(|file| serde_json::from_reader(file).ok());
                match head.filter(|head| head.format != FORMAT) {
                    Some(head) => ProfileError::of_another_format(head.format, FORMAT),
                    None => ProfileError::no_profile(error),
                }
            })?;
            if profile.format != FORMAT {
                return Err(ProfileError::of_another_format(profile.format, FORMAT));
            }
            profile.check().map_err(ProfileError::damaged)?;
            Ok(profile)
        };
        load().map_err(|error: ProfileError| error.in_file(path))
    }

    /// The profile with limits, of which tables then give the kernels' share.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Profile {
        self.limits = Some(limits);
        self
    }

    /// The name of an event.
    pub fn name_of(&self, event: &Event) -> &str {
        &self.texts[event.name as usize]
    }

    /// The name of an event; that of a step with its node.
    pub(crate) fn title_of(&self, event: &Event) -> String {
        match event.node.filter(|_| event.kind == Kind::Step) {
            Some(node) => format!("{} (%{node})", self.name_of(event)),
            None => self.name_of(event).to_owned(),
        }
    }

    /// The site of an event, if it has one.
    pub fn site_of(&self, event: &Event) -> Option<&str> {
        event.site.map(|site| self.texts[site as usize].as_str())
    }

    /// The kernel of an event, if it is one of a kernel.
    pub fn kernel_of(&self, event: &Event) -> Option<&ProfiledKernel> {
        event.kernel.map(|number| &self.kernels[number as usize])
    }

    /// File and line of an event's kernel, as [`ProfiledKernel::source`] has them; none for other events, and if they are unknown.
    pub fn source_of(&self, event: &Event) -> Option<&str> {
        self.kernel_of(event).map(|kernel| &*kernel.source).filter(|source| !source.is_empty())
    }

    /// The operands of an event, if they were recorded.
    pub fn operands_of(&self, event: &Event) -> Option<&Operands> {
        event.operands.map(|number| &self.operands[number as usize])
    }

    /// The operator of an event, if it has one.
    pub fn operator_of(&self, event: &Event) -> Option<&ProfiledOp> {
        event.operator.map(|number| &self.operators[number as usize])
    }

    /// For each event the number of those that it is inside of.
    pub(crate) fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            depths.push(event.parent.map_or(0, |parent| depths[parent as usize] + 1));
        }
        depths
    }

    /// For each event its duration without that of the events directly inside it, in nanoseconds.
    pub fn self_times(&self) -> Vec<u64> {
        let mut times: Vec<u64> = self.events.iter().map(|event| event.duration_ns).collect();
        for event in &self.events {
            if let Some(parent) = event.parent {
                times[parent as usize] = times[parent as usize].saturating_sub(event.duration_ns);
            }
        }
        times
    }

    /// For each event the bytes that it allocated and did not free, without those of the events directly inside it.
    pub fn self_memory(&self) -> Vec<i64> {
        let kept = |event: &Event| event.allocated as i64 - event.freed as i64;
        let mut bytes: Vec<i64> = self.events.iter().map(kept).collect();
        for event in &self.events {
            if let Some(parent) = event.parent {
                bytes[parent as usize] -= kept(event);
            }
        }
        bytes
    }
}
