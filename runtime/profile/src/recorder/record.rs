//! A span as it is recorded: fixed size, no text.

use std::panic::Location;

use opsmith_runtime::library::Form;
use opsmith_runtime::op::OpDef;

/// The subject of a record.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// A call of an operator.
    Call(&'static OpDef, Form),
    /// A kernel of an operator.
    Kernel(&'static OpDef),
    /// A node of backward, of an operator if it is one.
    Backward(Option<&'static OpDef>, Name),
    /// A step of a graph.
    Step(&'static OpDef),
    /// A part of a program's work, or a range that user code named.
    Range(Name),
}

/// The number of a text in the names of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name(pub u32);

/// Where a span was called.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Unknown,
    Here(&'static Location<'static>),
    Elsewhere(Name),
}

/// The number of a thread's operands; none were recorded if it is `NO_OPERANDS`.
pub(crate) const NO_OPERANDS: u32 = u32::MAX;

/// The end of a span that has not ended.
pub(crate) const OPEN: u64 = 0;

/// A span.
#[derive(Clone, Copy)]
pub(crate) struct Record {
    pub what: What,
    pub place: Place,
    pub start: u64,
    pub end: u64,
    /// Distance to the record of the enclosing span of this thread; 0 for the outermost.
    pub up: u32,
    /// The number of the operands.
    pub operands: u32,
    /// Bytes that the span's thread allocated and freed meanwhile.
    pub allocated: u64,
    pub freed: u64,
    /// The node of backward: of a call, the one it was recorded as; 0 for none.
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
}
