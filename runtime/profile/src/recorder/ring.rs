//! The records of a thread: a ring in which later ones overwrite earlier ones.
//!
//! In: records, changes of memory, texts. Out: the same, by number. Must not know threads.

use std::collections::HashMap;

use opsmith_runtime::internals;

use super::launches::Launches;
use super::operands::Interner;
use super::record::{Change, Name, Record};

/// Most records of a thread that have memory before they are written, 80 MB: a ring that grows is copied while calls are
/// timed. The system gives the memory when it is touched.
const RESERVED: usize = 1 << 20;

/// The records of a thread in a session.
pub(crate) struct Ring {
    pub session: u64,
    pub thread: String,
    capacity: usize,
    pub records: Vec<Record>,
    /// The place of the next record: a division by the capacity takes as long as the rest of a record.
    next: usize,
    /// Records that were begun, of which the last `records.len()` are there.
    pub begun: u64,
    pub changes: Vec<Change>,
    /// Changes of memory that were noted, of which the last `changes.len()` are there.
    pub changed: u64,
    pub launches: Launches,
    pub operands: Interner,
    pub names: Vec<String>,
    numbers: HashMap<String, Name>,
}

impl Ring {
    pub fn new(thread: String) -> Ring {
        Ring {
            session: 0,
            thread,
            capacity: 1,
            records: Vec::new(),
            next: 0,
            begun: 0,
            changes: Vec::new(),
            changed: 0,
            launches: Launches::default(),
            operands: Interner::default(),
            names: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Empties the ring for another session.
    pub fn restart(&mut self, session: u64, capacity: usize) {
        *self = Ring::new(std::mem::take(&mut self.thread));
        self.session = session;
        self.capacity = capacity;
        internals::reserve(&mut self.records, capacity.min(RESERVED));
    }

    /// The record with a number, at its place, unless it was overwritten.
    #[inline]
    pub fn record(&mut self, id: u64, place: usize) -> Option<&mut Record> {
        if self.begun - id > self.records.len() as u64 {
            return None;
        }
        self.records.get_mut(place)
    }

    /// Adds a record; its number among all that were begun, and its place.
    #[inline]
    pub fn push(&mut self, record: Record) -> (u64, usize) {
        let (id, place) = (self.begun, self.next);
        self.begun += 1;
        match self.records.get_mut(place) {
            Some(overwritten) => *overwritten = record,
            None => self.records.push(record),
        }
        self.next = if place + 1 == self.capacity { 0 } else { place + 1 };
        (id, place)
    }

    pub fn note(&mut self, change: Change) {
        if self.changes.len() < self.capacity {
            self.changes.push(change);
        } else {
            self.changes[(self.changed % self.capacity as u64) as usize] = change;
        }
        self.changed += 1;
    }

    pub fn name(&mut self, text: &str) -> Name {
        if let Some(name) = self.numbers.get(text) {
            return *name;
        }
        let name = Name(self.names.len() as u32);
        self.names.push(text.to_owned());
        self.numbers.insert(text.to_owned(), name);
        name
    }
}
