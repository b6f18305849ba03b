//! Entries in the order of their numbers, digit by digit.
//!
//! In: entries in any order, each with a number. Out: the same, in ascending order of the numbers; equal ones keep their order.
//! Each pass moves the entries to the places of one digit, from the lowest digit on, and only those digits count in which
//! numbers differ. Threads count and move parts of the entries: a part's entries of one digit follow those of the parts before, so
//! the order is the same with any number of them. Must not know elements.

use opsmith_runtime::Scratch;
use opsmith_runtime::parallel::{self, CHUNK, Shared};

/// Entries, at least, for which passes take less time than comparisons.
pub(in crate::cpu) const SHORTEST: usize = 1 << 12;
/// Entries of a part, at least: far more than there are digits.
const PART: usize = 1 << 14;
/// Values of a digit.
const VALUES: usize = 1 << 8;
/// Tables in which neighbours are counted in turn: a count that follows one of the same digit would wait for it.
const TABLES: usize = 4;

/// An entry with the number that decides its place.
pub(in crate::cpu) trait Numbered: Copy + Ord + Send + Sync {
    fn number(&self) -> u64;
}

impl Numbered for u32 {
    #[inline(always)]
    fn number(&self) -> u64 {
        u64::from(*self)
    }
}

impl Numbered for u64 {
    #[inline(always)]
    fn number(&self) -> u64 {
        *self
    }
}

impl Numbered for (u64, i64) {
    #[inline(always)]
    fn number(&self) -> u64 {
        self.0
    }
}

/// Entries made from their places, in several threads if there are many.
pub(in crate::cpu) fn made<N: Numbered>(
    entries: &mut Scratch<N>,
    count: usize,
    make: impl Fn(usize) -> N + Sync,
) {
    entries.clear();
    entries.reserve(count);
    let target = Shared(entries.as_mut_ptr());
    parallel::for_each_range(count, CHUNK, |range| {
        for place in range {
            // SAFETY: there is room for as many entries, and each range has one thread.
            unsafe { target.at(place as i64).write(make(place)) };
        }
    });
    // SAFETY: as many entries were written.
    unsafe { entries.set_len(count) };
}

/// Puts entries in ascending order. Bits below `lowest` do not count: entries that differ in these alone must be in order already.
pub(in crate::cpu) fn put_in_order<N: Numbered>(entries: &mut Scratch<N>, lowest: u32) {
    if entries.len() < SHORTEST {
        return entries.sort_unstable();
    }
    let count = entries.len();
    let parts = (count / PART).clamp(1, parallel::num_threads());
    let of_part = count.div_ceil(parts);
    let mut left = differing(entries, parts, of_part) & (u64::MAX << lowest);
    let mut counts = Scratch::filled(0usize, parts * VALUES);
    let mut others = Scratch::with_capacity(count);
    while left != 0 {
        let shift = left.trailing_zeros();
        left &= !((VALUES as u64 - 1) << shift);
        pass(entries, others.as_mut_ptr(), &mut counts, of_part, shift);
        // SAFETY: the pass has written as many entries.
        unsafe { others.set_len(count) };
        std::mem::swap(entries, &mut others);
    }
}

/// The bits in which numbers differ.
fn differing<N: Numbered>(entries: &[N], parts: usize, of_part: usize) -> u64 {
    let first = entries[0].number();
    let mut found = Scratch::filled(0u64, parts);
    let target = Shared(found.as_mut_ptr());
    parallel::for_each_range_of(of_part, parts, |range| {
        for part in range {
            let bits =
                part_of(entries, part, of_part).iter().fold(0, |bits, entry| bits | entry.number() ^ first);
            // SAFETY: each part has a place, and one thread.
            unsafe { *target.at(part as i64) = bits };
        }
    });
    found.iter().fold(0, |all, bits| all | bits)
}

fn part_of<N>(entries: &[N], part: usize, of_part: usize) -> &[N] {
    let start = entries.len().min(part * of_part);
    &entries[start..entries.len().min(start + of_part)]
}

/// Moves entries to the places of one digit in `target`, which has room for as many.
fn pass<N: Numbered>(entries: &[N], target: *mut N, counts: &mut [usize], of_part: usize, shift: u32) {
    let parts = counts.len() / VALUES;
    let digit = |entry: &N| (entry.number() >> shift) as usize % VALUES;
    let (target, places) = (Shared(target), Shared(counts.as_mut_ptr()));
    // SAFETY: each part has a table in `counts`, and one thread.
    let table = |part: usize| unsafe { &mut *places.at((part * VALUES) as i64).cast::<[usize; VALUES]>() };
    parallel::for_each_range_of(of_part, parts, |range| {
        for part in range {
            *table(part) = counted(part_of(entries, part, of_part), digit);
        }
    });
    let mut next = 0;
    for value in 0..VALUES {
        for part in 0..parts {
            next += std::mem::replace(&mut counts[part * VALUES + value], next);
        }
    }
    parallel::for_each_range_of(of_part, parts, |range| {
        for part in range {
            let mut places = *table(part);
            for entry in part_of(entries, part, of_part) {
                let place = &mut places[digit(entry)];
                // SAFETY: the places of each digit and part are as many as it has entries, and no other's.
                unsafe { target.at(*place as i64).write(*entry) };
                *place += 1;
            }
        }
    });
}

/// How many entries have each digit.
#[inline(always)]
fn counted<N>(entries: &[N], digit: impl Fn(&N) -> usize) -> [usize; VALUES] {
    let mut tables = [[0usize; VALUES]; TABLES];
    let (blocks, rest) = entries.as_chunks::<TABLES>();
    for block in blocks {
        for (table, entry) in tables.iter_mut().zip(block) {
            table[digit(entry)] += 1;
        }
    }
    rest.iter().for_each(|entry| tables[0][digit(entry)] += 1);
    std::array::from_fn(|value| tables.iter().map(|table| table[value]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::with_threads;

    /// Numbers in no order, of which the bits of a mask differ.
    fn numbers(count: usize, mask: u64) -> Vec<u64> {
        let mut state = 12345u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 29) & mask | 0x55 << 50 & !mask
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn entries_in_order() {
        for count in [0, 1, 2, SHORTEST - 1, SHORTEST, 2 * PART + 1, 5 * PART + 77] {
            for mask in [0, 1, 0x3ff, 0xff00_0000_0000_00ff, u64::MAX] {
                let numbers = numbers(count, mask);
                let mut expected = numbers.clone();
                expected.sort_unstable();
                let mut pairs: Vec<(u64, i64)> = numbers.iter().copied().zip(0..).collect();
                pairs.sort_unstable();
                with_threads(|| {
                    let mut sorted: Scratch<u64> = numbers.iter().copied().collect();
                    put_in_order(&mut sorted, 0);
                    assert_eq!(sorted[..], expected);
                    let mut entries = Scratch::new();
                    made(&mut entries, count, |place| (numbers[place], place as i64));
                    put_in_order(&mut entries, 0);
                    assert_eq!(entries[..], pairs);
                    // A number in the upper half, and the place below it.
                    let mut packed = Scratch::new();
                    made(&mut packed, count, |place| numbers[place] << 32 | place as u64);
                    let mut expected: Vec<u64> = packed.to_vec();
                    expected.sort_unstable();
                    put_in_order(&mut packed, 32);
                    assert_eq!(packed[..], expected);
                });
            }
        }
    }
}
