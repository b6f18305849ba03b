//! A span as it is recorded: fixed size, no text.

use std::panic::Location;

use opsmith_core::Backend;
use opsmith_runtime::Device;
use opsmith_runtime::library::Form;
use opsmith_runtime::op::{Kernel, OpDef};

/// Kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A call of an operator.
    Call(Form),
    /// A kernel of an operator, on devices of a backend.
    Kernel(Backend),
    /// A copy between two devices.
    Copy,
    /// A node of backward, of an operator if it is one.
    Backward,
    /// A step of a graph.
    Step,
    /// A part of a program's work, or a range that user code named.
    Range,
}

/// The number of a text in the names of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name(pub u32);

impl Name {
    /// No text.
    pub const NONE: Name = Name(u32::MAX);
}

/// The subject of a record. Its fields are words rather than enums with data, which are copied through memory.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub what: What,
    /// The operator, of a call, a kernel, a step, and of most nodes of backward.
    pub op: Option<&'static OpDef>,
    /// The name of a copy, a node of backward or a range.
    pub name: Name,
    /// The site in this program, or of a kernel its function: one word for both, since a record is written with every call.
    pub(super) place: *const (),
    /// The text of a site that is not in this program.
    pub elsewhere: Name,
    /// The number of the operands.
    pub operands: u32,
}

impl Subject {
    /// A subject without operator, name, site and operands.
    pub fn new(what: What) -> Subject {
        Subject {
            what,
            op: None,
            name: Name::NONE,
            place: std::ptr::null(),
            elsewhere: Name::NONE,
            operands: NO_OPERANDS,
        }
    }
}

impl Subject {
    /// The subject at a site in this program.
    #[inline]
    pub fn at(self, site: Option<&'static Location<'static>>) -> Subject {
        debug_assert!(!matches!(self.what, What::Kernel(_)), "a kernel has its function there");
        Subject { place: site.map_or(std::ptr::null(), |site| std::ptr::from_ref(site).cast()), ..self }
    }

    /// A kernel of an operator, on devices of a backend.
    #[inline]
    pub fn of_kernel(backend: Backend, kernel: Kernel) -> Subject {
        Subject { place: kernel.address(), ..Subject::new(What::Kernel(backend)) }
    }

    /// The site in this program, if it has one.
    pub fn site(&self) -> Option<&'static Location<'static>> {
        match self.what {
            What::Kernel(_) => None,
            // SAFETY: other subjects have the address of a site there, or none (`at`, `new`).
            _ => unsafe { self.place.cast::<Location<'static>>().as_ref() },
        }
    }

    /// The address of a kernel's function.
    pub fn kernel(&self) -> *const () {
        self.place
    }
}

// SAFETY: the address is that of a static site or a function.
unsafe impl Send for Subject {}
// SAFETY: as above.
unsafe impl Sync for Subject {}

/// The number of a thread's operands; none were recorded if it is `NO_OPERANDS`.
pub(crate) const NO_OPERANDS: u32 = u32::MAX;

/// The end of a span that has not ended.
pub(crate) const OPEN: u64 = 0;

/// A span.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub subject: Subject,
    pub start: u64,
    pub end: u64,
    /// Distance to the record of the enclosing span of this thread; 0 for the outermost.
    pub up: u32,
    /// Bytes that the span's thread allocated and freed meanwhile; until it ends, those from the thread's first to the span.
    pub allocated: u64,
    pub freed: u64,
    /// The node of backward: of a call, the one it was recorded as; of a step, its node in the graph and 1; 0 for none.
    pub node: u64,
}

const _: () = assert!(size_of::<Record>() <= 100, "a record is at most 100 bytes");

/// A change of a thread's memory.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub at: u64,
    pub address: u64,
    pub bytes: i64,
    /// The record that was open; `u64::MAX` for none.
    pub inside: u64,
    /// The device of the memory.
    pub device: Device,
}
