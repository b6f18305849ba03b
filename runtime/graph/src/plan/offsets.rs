//! Offset assignment: packing buffers with live ranges into one arena.
//!
//! In: the size and live range of each buffer. Out: an offset for each, such that buffers that are live together do not
//! overlap, and a lower bound of the arena.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Alignment of the offsets of large buffers, sufficient for every dtype.
pub(crate) const ALIGNMENT: usize = 64;

/// The alignment of a buffer's offset: a smaller buffer than `ALIGNMENT` has that of its size, so that numbers on the way
/// share a line. A buffer is at least one element, and elements have powers of two as sizes.
pub(super) fn alignment(bytes: usize) -> usize {
    bytes.next_power_of_two().min(ALIGNMENT)
}

/// One buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lifetime {
    /// Its size.
    pub bytes: usize,
    /// The first level that uses it.
    pub first: usize,
    /// The last level that uses it.
    pub last: usize,
}

/// The offsets of all buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OffsetAssignment {
    /// The offset of each buffer in bytes.
    pub offsets: Vec<usize>,
    /// Size of the memory that contains all buffers.
    pub bytes: usize,
}

/// Places buffers by best fit.
///
/// First in order of time, which is as fast as sorting; if that leaves gaps, also by size, largest first, and again with the
/// buffer at the end of the arena before all others, for as many tries as pairs of live buffers can be compared.
pub(crate) fn assign(lifetimes: &[Lifetime]) -> OffsetAssignment {
    /// Number of pairs that can be compared in a few milliseconds.
    const FEW_PAIRS: usize = 400_000;
    /// More tries gain little.
    const MOST_TRIES: usize = 32;
    let mut best = place_in_order(lifetimes);
    let least = most_alive(lifetimes, round_up);
    if best.bytes <= least {
        return best;
    }
    let mut order = by_size(lifetimes);
    for _ in 0..MOST_TRIES.min(FEW_PAIRS / pairs(lifetimes).max(1)) {
        let placement = place(lifetimes, &order);
        let end = |&index: &usize| placement.offsets[index] + round_up(lifetimes[index].bytes);
        let last = order.iter().position(|index| end(index) == placement.bytes);
        if placement.bytes < best.bytes {
            best = placement;
        }
        // The first one of all cannot be the last one unless it is alone.
        match last {
            Some(position) if position > 0 && best.bytes > least => order[..=position].rotate_right(1),
            _ => break,
        }
    }
    best
}

/// The maximum over levels of the bytes of live buffers: no assignment needs less.
pub(crate) fn lower_bound(lifetimes: &[Lifetime]) -> usize {
    most_alive(lifetimes, |bytes| bytes)
}

pub(super) fn most_alive(lifetimes: &[Lifetime], size: impl Fn(usize) -> usize) -> usize {
    LiveBytes::new(lifetimes, size).most().1
}

/// The bytes of live buffers, by level.
pub(super) struct LiveBytes {
    /// The bytes of the buffers that begin at a level, and of those that ended before it.
    changes: Vec<(usize, usize)>,
}

impl LiveBytes {
    pub fn new(lifetimes: &[Lifetime], size: impl Fn(usize) -> usize) -> LiveBytes {
        let levels = lifetimes.iter().map(|lifetime| lifetime.last + 2).max().unwrap_or(0);
        let mut changes = vec![(0, 0); levels];
        for lifetime in lifetimes {
            let bytes = size(lifetime.bytes);
            changes[lifetime.first].0 += bytes;
            changes[lifetime.last + 1].1 += bytes;
        }
        LiveBytes { changes }
    }

    /// Takes a buffer away, of the size that it was counted with.
    pub fn remove(&mut self, lifetime: &Lifetime, bytes: usize) {
        self.changes[lifetime.first].0 -= bytes;
        self.changes[lifetime.last + 1].1 -= bytes;
    }

    /// The level with the most bytes, the first of several, and their number.
    pub fn most(&self) -> (usize, usize) {
        let (mut alive, mut most) = (0, (0, 0));
        for (level, (begins, ends)) in self.changes.iter().enumerate() {
            alive = alive + begins - ends;
            if alive > most.1 {
                most = (level, alive);
            }
        }
        most
    }
}

/// The buffers in order of their first level; those of one level by size.
fn by_beginning(lifetimes: &[Lifetime]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lifetimes.len()).filter(|&index| lifetimes[index].bytes > 0).collect();
    order.sort_by_key(|&index| (lifetimes[index].first, Reverse(lifetimes[index].bytes)));
    order
}

/// Number of pairs of buffers with overlapping live ranges.
fn pairs(lifetimes: &[Lifetime]) -> usize {
    let mut alive: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut count = 0;
    for index in by_beginning(lifetimes) {
        while alive.peek().is_some_and(|Reverse(last)| *last < lifetimes[index].first) {
            alive.pop();
        }
        count += alive.len();
        alive.push(Reverse(lifetimes[index].last));
    }
    count
}

/// Places buffers in order of their first level, each in the smallest free gap.
fn place_in_order(lifetimes: &[Lifetime]) -> OffsetAssignment {
    let mut offsets = vec![0; lifetimes.len()];
    let mut free = Free::default();
    let mut alive: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for index in by_beginning(lifetimes) {
        while let Some(&Reverse((last, ended))) = alive.peek()
            && last < lifetimes[index].first
        {
            alive.pop();
            free.give(offsets[ended], round_up(lifetimes[ended].bytes));
        }
        let bytes = lifetimes[index].bytes;
        offsets[index] = free.take(round_up(bytes), alignment(bytes));
        alive.push(Reverse((lifetimes[index].last, index)));
    }
    OffsetAssignment { offsets, bytes: free.top }
}

/// Gaps, by offset and by size.
#[derive(Default)]
struct Free {
    gaps: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
    /// The highest offset ever used.
    top: usize,
}

impl Free {
    fn take(&mut self, size: usize, alignment: usize) -> usize {
        let aligned = |offset: usize| offset.next_multiple_of(alignment);
        let fits = |&&(gap, offset): &&(usize, usize)| aligned(offset) + size <= offset + gap;
        let found = self.by_size.range((size, 0)..).find(fits);
        let (gap, before) = match (found, self.gaps.last_key_value()) {
            (Some(&gap), _) => gap,
            // No gap is large enough: the last one grows.
            (None, Some((&offset, &gap))) if offset + gap == self.top => (gap, offset),
            (None, _) => (0, self.top),
        };
        self.remove(before, gap);
        let offset = aligned(before);
        if offset > before {
            self.insert(before, offset - before);
        }
        if before + gap > offset + size {
            self.insert(offset + size, before + gap - offset - size);
        }
        self.top = self.top.max(offset + size);
        offset
    }

    fn give(&mut self, mut offset: usize, mut size: usize) {
        if let Some((&before, &gap)) = self.gaps.range(..offset).next_back()
            && before + gap == offset
        {
            self.remove(before, gap);
            (offset, size) = (before, gap + size);
        }
        if let Some(&gap) = self.gaps.get(&(offset + size)) {
            self.remove(offset + size, gap);
            size += gap;
        }
        self.insert(offset, size);
    }

    fn insert(&mut self, offset: usize, size: usize) {
        self.gaps.insert(offset, size);
        self.by_size.insert((size, offset));
    }

    fn remove(&mut self, offset: usize, size: usize) {
        self.gaps.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
}

/// The buffers by size, largest first.
fn by_size(lifetimes: &[Lifetime]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lifetimes.len()).filter(|&index| lifetimes[index].bytes > 0).collect();
    order.sort_by_key(|&index| (Reverse(lifetimes[index].bytes), lifetimes[index].first));
    order
}

/// Places buffers in an order, each in the smallest gap between those with overlapping live ranges.
fn place(lifetimes: &[Lifetime], order: &[usize]) -> OffsetAssignment {
    let mut offsets = vec![0; lifetimes.len()];
    let mut placed = Placed::new(lifetimes);
    let mut total = 0;
    let mut neighbours: Vec<(usize, usize)> = Vec::new();
    for &index in order {
        let (size, alignment) = (round_up(lifetimes[index].bytes), alignment(lifetimes[index].bytes));
        neighbours.clear();
        placed.for_each_beside(lifetimes[index], |other| {
            neighbours.push((offsets[other], offsets[other] + round_up(lifetimes[other].bytes)));
        });
        neighbours.sort_unstable();
        let (mut best, mut end) = (None::<(usize, usize)>, 0usize);
        for &(from, to) in &neighbours {
            let start = end.next_multiple_of(alignment);
            if from >= start + size && best.is_none_or(|(gap, _)| from - end < gap) {
                best = Some((from - end, start));
            }
            end = end.max(to);
        }
        offsets[index] = best.map_or(end.next_multiple_of(alignment), |(_, offset)| offset);
        total = total.max(offsets[index] + size);
        placed.add(index, lifetimes[index]);
    }
    OffsetAssignment { offsets, bytes: total }
}

/// Buffers by live range: a segment tree over levels, in which each is stored at the few nodes that cover its range.
struct Placed {
    levels: usize,
    covering: Vec<Vec<usize>>,
    beginning: Vec<Vec<usize>>,
}

impl Placed {
    fn new(lifetimes: &[Lifetime]) -> Placed {
        let levels = lifetimes.iter().map(|lifetime| lifetime.last + 1).max().unwrap_or(0);
        Placed { levels, covering: vec![Vec::new(); 2 * levels], beginning: vec![Vec::new(); levels] }
    }

    fn add(&mut self, index: usize, lifetime: Lifetime) {
        let (mut low, mut high) = (lifetime.first + self.levels, lifetime.last + self.levels + 1);
        while low < high {
            if low & 1 == 1 {
                self.covering[low].push(index);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                self.covering[high].push(index);
            }
            (low, high) = (low / 2, high / 2);
        }
        self.beginning[lifetime.first].push(index);
    }

    /// Visits the buffers that are live when a buffer begins, and those that begin in its live range.
    fn for_each_beside(&self, lifetime: Lifetime, mut visit: impl FnMut(usize)) {
        let mut node = lifetime.first + self.levels;
        while node > 0 {
            self.covering[node].iter().copied().for_each(&mut visit);
            node /= 2;
        }
        let later = &self.beginning[lifetime.first + 1..=lifetime.last];
        later.iter().flatten().copied().for_each(visit);
    }
}

pub(super) fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(alignment(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refuse_overlap(lifetimes: &[Lifetime], placement: &OffsetAssignment) {
        for (a, first) in lifetimes.iter().enumerate() {
            assert!(placement.offsets[a].is_multiple_of(alignment(first.bytes)));
            assert!(placement.offsets[a] + first.bytes <= placement.bytes);
            for (b, second) in lifetimes.iter().enumerate().take(a) {
                let together = first.first <= second.last && second.first <= first.last;
                let (from, to) = (placement.offsets[a], placement.offsets[a] + first.bytes);
                let (other, end) = (placement.offsets[b], placement.offsets[b] + second.bytes);
                assert!(
                    !together || to <= other || end <= from,
                    "{first:?} at {from}, {second:?} at {other}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_plan_overlaps(buffers in prop::collection::vec((prop_oneof![0usize..5000, 0usize..70], 0usize..40, 0usize..20), 1..60)) {
            let lifetimes: Vec<Lifetime> = buffers
                .into_iter()
                .map(|(bytes, first, length)| Lifetime { bytes, first, last: first + length })
                .collect();
            let by_size = place(&lifetimes, &by_size(&lifetimes));
            for placement in [place_in_order(&lifetimes), by_size, assign(&lifetimes)] {
                refuse_overlap(&lifetimes, &placement);
                prop_assert!(placement.bytes >= lower_bound(&lifetimes));
            }
        }
    }

    #[test]
    fn a_chain_takes_two_buffers() {
        let lifetimes: Vec<Lifetime> =
            (0..1000).map(|step| Lifetime { bytes: 64, first: step, last: step + 1 }).collect();
        assert_eq!(assign(&lifetimes).bytes, 128);
        assert_eq!(lower_bound(&lifetimes), 128);
    }

    #[test]
    fn a_gap_of_the_wrong_size_is_avoided() {
        // In order of time, only a gap of 64 bytes at the start is left for the last one.
        let of = |bytes, first, last| Lifetime { bytes, first, last };
        let lifetimes = [of(64, 0, 1), of(128, 0, 4), of(192, 2, 3), of(64, 3, 4)];
        assert_eq!(assign(&lifetimes).bytes, lower_bound(&lifetimes));
    }
}
