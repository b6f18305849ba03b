//! Blocks of device memory: segments of the driver, split on demand and joined when freed, in the order of streams.
//!
//! In: requests for bytes by a stream, and blocks freed at a ticket. Out: addresses. A [`Source`] provides segments and
//! knows which tickets have passed, so that a test needs no device. Must not know drivers.
//!
//! ```text
//! segment (2 MiB, or a large request rounded to 2 MiB)
//! ├─ live 1.5 KiB ─┼─ free, stream 3, ticket 17 ─┼─ free, neutral ─────────┤
//! ```
//!
//! A free block belongs to the stream of its last use, whose later work follows that use; another stream takes it when
//! the ticket has passed, which makes it neutral. Neighbours that are free join if they have one stream or one is neutral.

use std::collections::{BTreeSet, HashMap};

use opsmith_runtime::Result;
use opsmith_runtime::backend::Ticket;

use crate::ticket::number_of;

/// Granularity and alignment of blocks, in bytes.
pub const GRANULE: usize = 512;
/// Blocks up to this size are small, and share segments.
const SMALL: usize = 1 << 20;
/// Bytes of a segment of small blocks; larger ones are multiples of it.
const SEGMENT: usize = 2 << 20;

/// The provider of segments.
pub trait Source {
    /// A new segment; `None` if the device has no memory for it.
    ///
    /// # Errors
    /// Other errors of the device.
    fn segment(&mut self, bytes: usize) -> Result<Option<usize>>;
    /// Returns a segment that no work uses.
    fn free(&mut self, start: usize);
    /// Whether a point has passed.
    fn has_passed(&mut self, ticket: Ticket) -> bool;
    /// Waits for a point; a failure of its work is left to the next wait for the stream.
    fn wait(&mut self, ticket: Ticket);
}

/// Numbers of bytes and requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Bytes of blocks in use.
    pub live_bytes: usize,
    /// The maximum of [`Statistics::live_bytes`] so far.
    pub peak_bytes: usize,
    /// Bytes of free blocks, kept for later requests.
    pub cached_bytes: usize,
    /// Segments held now.
    pub segments: usize,
    /// Requests served so far.
    pub allocations: u64,
    /// Requests that needed a new segment.
    pub segment_allocations: u64,
    /// Requests that succeeded only after cached memory was returned to the device.
    pub retries: u64,
    /// The limit of live and cached bytes together; `None` for the device's memory.
    pub cap_bytes: Option<usize>,
}

#[derive(Clone, Copy)]
struct Block {
    start: usize,
    bytes: usize,
    /// Neighbours in the segment.
    before: Option<usize>,
    after: Option<usize>,
    /// Whether its segment has small blocks.
    small: bool,
    /// The last use; `None` while the block is live.
    free_since: Option<Ticket>,
}

impl Block {
    /// The stream that owns the free block; 0 if none does.
    fn owner(&self) -> u16 {
        self.free_since.map_or(0, number_of)
    }
}

/// Free blocks of one kind of segment that one stream owns, by size: bytes, start, slot.
type FreeSet = BTreeSet<(usize, usize, usize)>;

/// The blocks of one device.
#[derive(Default)]
pub struct Pool {
    blocks: Vec<Block>,
    /// Unused slots of `blocks`.
    slots: Vec<usize>,
    /// Slots of live blocks by address.
    live: HashMap<usize, usize>,
    /// At twice the number of the owner, one more for small blocks.
    free: Vec<FreeSet>,
    statistics: Statistics,
}

impl Pool {
    /// Statistics of now.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Limits live and cached bytes together.
    pub fn set_cap(&mut self, bytes: Option<usize>) {
        self.statistics.cap_bytes = bytes;
    }

    /// A block of at least so many bytes that work of a stream may use; `None` if there is no memory.
    ///
    /// # Errors
    /// Errors of the source.
    pub fn allocate(&mut self, source: &mut impl Source, bytes: usize, stream: u16) -> Result<Option<usize>> {
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(GRANULE) else { return Ok(None) };
        let small = bytes <= SMALL;
        let mut slot = self.take(small, bytes, stream);
        if slot.is_none() && self.settle(source, stream) {
            slot = self.take(small, bytes, stream);
        }
        if slot.is_none() {
            slot = self.grow(source, small, bytes)?;
        }
        if slot.is_none() {
            self.trim(source);
            slot = self.take(small, bytes, stream);
            if slot.is_none() {
                slot = self.grow(source, small, bytes)?;
            }
            self.statistics.retries += u64::from(slot.is_some());
        }
        Ok(slot.map(|slot| self.hand_out(slot, bytes)))
    }

    /// Frees a live block at the ticket of its last use.
    ///
    /// Addresses that are no live block's are ignored; the result says whether it was one.
    pub fn release(&mut self, start: usize, last_use: Ticket) -> bool {
        let Some(slot) = self.live.remove(&start) else { return false };
        self.statistics.live_bytes -= self.blocks[slot].bytes;
        self.statistics.cached_bytes += self.blocks[slot].bytes;
        self.blocks[slot].free_since = Some(last_use);
        self.join_and_keep(slot);
        true
    }

    /// Waits for all free blocks, and returns all segments without live blocks. Returns the number of bytes returned.
    pub fn trim(&mut self, source: &mut impl Source) -> usize {
        for ticket in self.latest_of_each_owner() {
            source.wait(ticket);
        }
        self.neutralise(|_| true);
        let mut freed = 0;
        let free: Vec<usize> = self.free.iter().flatten().map(|(_, _, slot)| *slot).collect();
        for slot in free {
            let block = self.blocks[slot];
            if block.before.is_some() || block.after.is_some() {
                continue;
            }
            self.forget(slot);
            source.free(block.start);
            self.slots.push(slot);
            self.statistics.cached_bytes -= block.bytes;
            self.statistics.segments -= 1;
            freed += block.bytes;
        }
        freed
    }

    /// The best fit among free blocks that the stream may use.
    fn take(&mut self, small: bool, bytes: usize, stream: u16) -> Option<usize> {
        let best =
            |owner: u16| self.free.get(set_index(small, owner))?.range((bytes, 0, 0)..).next().copied();
        let (_, _, slot) = best(stream).into_iter().chain(best(0)).min()?;
        self.forget(slot);
        Some(slot)
    }

    /// A new segment, as one free block that no set has.
    fn grow(&mut self, source: &mut impl Source, small: bool, bytes: usize) -> Result<Option<usize>> {
        let Some(bytes) = (if small { Some(SEGMENT) } else { bytes.checked_next_multiple_of(SEGMENT) })
        else {
            return Ok(None);
        };
        let held = self.statistics.live_bytes + self.statistics.cached_bytes;
        if self.statistics.cap_bytes.is_some_and(|cap| held.saturating_add(bytes) > cap) {
            return Ok(None);
        }
        let Some(start) = source.segment(bytes)? else { return Ok(None) };
        self.statistics.segments += 1;
        self.statistics.segment_allocations += 1;
        self.statistics.cached_bytes += bytes;
        let free_since = Some(Ticket::default());
        Ok(Some(self.insert(Block { start, bytes, before: None, after: None, small, free_since })))
    }

    /// Makes a free block live, and keeps the rest of it if that is worth a block.
    fn hand_out(&mut self, slot: usize, bytes: usize) -> usize {
        let block = self.blocks[slot];
        // Live first: the rest must not join it.
        self.blocks[slot].free_since = None;
        let rest = block.bytes - bytes;
        // A rest of a large block serves no large request below this size.
        let least = if block.small { GRANULE } else { SMALL + 1 };
        if rest >= least {
            let remainder =
                self.insert(Block { start: block.start + bytes, bytes: rest, before: Some(slot), ..block });
            if let Some(after) = block.after {
                self.blocks[after].before = Some(remainder);
            }
            self.blocks[slot].after = Some(remainder);
            self.blocks[slot].bytes = bytes;
            self.join_and_keep(remainder);
        }
        self.live.insert(block.start, slot);
        let statistics = &mut self.statistics;
        statistics.allocations += 1;
        statistics.live_bytes += self.blocks[slot].bytes;
        statistics.cached_bytes -= self.blocks[slot].bytes;
        statistics.peak_bytes = statistics.peak_bytes.max(statistics.live_bytes);
        block.start
    }

    /// Puts a free block that no set has into one, joined with neighbours.
    fn join_and_keep(&mut self, mut slot: usize) {
        if let Some(after) = self.blocks[slot].after
            && self.can_join(slot, after)
        {
            self.forget(after);
            self.join(slot, after);
        }
        if let Some(before) = self.blocks[slot].before
            && self.can_join(before, slot)
        {
            self.forget(before);
            self.join(before, slot);
            slot = before;
        }
        self.keep(slot);
    }

    fn can_join(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.blocks[one], &self.blocks[other]);
        let free = one.free_since.is_some() && other.free_since.is_some();
        free && (one.owner() == other.owner() || one.owner() == 0 || other.owner() == 0)
    }

    /// Joins two free neighbours that no set has into the first.
    fn join(&mut self, first: usize, second: usize) {
        let removed = self.blocks[second];
        let block = &mut self.blocks[first];
        block.bytes += removed.bytes;
        block.after = removed.after;
        // One stream at most: the greater ticket is the later, and 0 has passed.
        block.free_since = Some(later(block.free_since, removed.free_since));
        if let Some(after) = removed.after {
            self.blocks[after].before = Some(first);
        }
        self.slots.push(second);
    }

    /// Makes the blocks of other streams neutral whose tickets have passed; whether there were any.
    fn settle(&mut self, source: &mut impl Source, stream: u16) -> bool {
        let mut latest: HashMap<u64, bool> = HashMap::new();
        let of_others: Vec<Ticket> = self.owned().filter(|ticket| number_of(*ticket) != stream).collect();
        for ticket in of_others {
            latest.entry(ticket.0).or_insert_with(|| source.has_passed(ticket));
        }
        self.neutralise(|ticket| latest.get(&ticket.0).copied().unwrap_or(false))
    }

    /// Makes the free blocks neutral for whose tickets a function holds; whether there were any.
    fn neutralise(&mut self, passed: impl Fn(Ticket) -> bool) -> bool {
        let of_streams = self.free.iter().skip(2).flatten().map(|(_, _, slot)| *slot);
        let slots: Vec<usize> =
            of_streams.filter(|slot| self.blocks[*slot].free_since.is_some_and(&passed)).collect();
        for slot in &slots {
            self.forget(*slot);
            self.blocks[*slot].free_since = Some(Ticket::default());
            // Out of all sets it must not be joined before it is kept itself.
            self.keep(*slot);
        }
        for slot in &slots {
            if self.is_kept(*slot) {
                self.forget(*slot);
                self.join_and_keep(*slot);
            }
        }
        !slots.is_empty()
    }

    /// Tickets of the free blocks that a stream owns.
    fn owned(&self) -> impl Iterator<Item = Ticket> {
        let slots = self.free.iter().skip(2).flatten().map(|(_, _, slot)| *slot);
        slots.filter_map(|slot| self.blocks[slot].free_since)
    }

    fn latest_of_each_owner(&self) -> Vec<Ticket> {
        let mut latest: HashMap<u16, Ticket> = HashMap::new();
        for ticket in self.owned() {
            let entry = latest.entry(number_of(ticket)).or_default();
            entry.0 = entry.0.max(ticket.0);
        }
        latest.into_values().collect()
    }

    fn insert(&mut self, block: Block) -> usize {
        match self.slots.pop() {
            Some(slot) => {
                self.blocks[slot] = block;
                slot
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() - 1
            }
        }
    }

    fn keep(&mut self, slot: usize) {
        let block = self.blocks[slot];
        let index = set_index(block.small, block.owner());
        if self.free.len() <= index {
            self.free.resize_with(index + 1, FreeSet::new);
        }
        self.free[index].insert((block.bytes, block.start, slot));
    }

    fn is_kept(&self, slot: usize) -> bool {
        let block = self.blocks[slot];
        let set = self.free.get(set_index(block.small, block.owner()));
        set.is_some_and(|set| set.contains(&(block.bytes, block.start, slot)))
    }

    /// Takes a free block out of its set.
    fn forget(&mut self, slot: usize) {
        let block = self.blocks[slot];
        if let Some(set) = self.free.get_mut(set_index(block.small, block.owner())) {
            set.remove(&(block.bytes, block.start, slot));
        }
    }
}

/// The place of a set of free blocks.
fn set_index(small: bool, owner: u16) -> usize {
    usize::from(owner) * 2 + usize::from(small)
}

/// The later of two tickets of one stream, or of none.
fn later(one: Option<Ticket>, other: Option<Ticket>) -> Ticket {
    let count = |ticket: Option<Ticket>| ticket.unwrap_or_default().0;
    Ticket(count(one).max(count(other)))
}

#[cfg(test)]
mod tests;
