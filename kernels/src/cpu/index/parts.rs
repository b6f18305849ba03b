//! Indices in lists, each for one thread.
//!
//! In: indices of a dimension. Out: lists of their numbers, of which none has an index of another list's, and each has those that
//! are equal in the indices' order. Must not know the elements.

use std::ops::Range;

use opsmith_runtime::Scratch;

/// Lists of indices that no other one equals, and lists of the others, at most.
pub(in crate::cpu) const PARTS: usize = 64;
/// Places of a table for each index, in which indices of one place count as equal.
pub(in crate::cpu) const PLACES: usize = 16;

/// The numbers of indices, list after list.
pub(super) struct Parts {
    numbers: Scratch<i64>,
    /// The first number of each list, and the end of the last one.
    starts: Scratch<usize>,
}

impl Parts {
    /// One list.
    pub fn whole(index: &[i64]) -> Parts {
        let starts = [0, index.len()].into_iter().collect();
        Parts { numbers: (0..index.len() as i64).collect(), starts }
    }

    /// Indices of a dimension of so many slices. Those that no other one equals stay in their order, in which the slices to join
    /// lie in memory; the others are in lists for parts of the dimension.
    pub fn new(index: &[i64], size: i64) -> Parts {
        let places = (PLACES * index.len()).min(size as usize).next_power_of_two();
        let place = |index: i64| index as usize & (places - 1);
        let mut counts = Scratch::filled(0u8, places);
        let mut are_equal = false;
        for &index in index {
            let count = &mut counts[place(index)];
            are_equal |= *count > 0;
            *count = (*count + 1).min(2);
        }
        let of_list = index.len().div_ceil(PARTS).max(1);
        if !are_equal {
            let starts = (0..=PARTS).map(|list| index.len().min(list * of_list)).collect();
            return Parts { numbers: (0..index.len() as i64).collect(), starts };
        }
        let of_part = (size as usize).div_ceil(PARTS).next_power_of_two().trailing_zeros();
        let list = |number: usize| match counts[place(index[number])] {
            1 => number / of_list,
            _ => PARTS + (index[number] as usize >> of_part),
        };
        let mut starts = Scratch::filled(0, 2 * PARTS + 1);
        (0..index.len()).for_each(|number| starts[list(number) + 1] += 1);
        for list in 0..2 * PARTS {
            starts[list + 1] += starts[list];
        }
        let mut ends = starts.clone();
        let mut numbers = Scratch::filled(0, index.len());
        for number in 0..index.len() {
            let end = &mut ends[list(number)];
            numbers[*end] = number as i64;
            *end += 1;
        }
        Parts { numbers, starts }
    }

    /// The number of lists.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The numbers of some of the lists.
    pub fn numbers(&self, lists: Range<usize>) -> &[i64] {
        &self.numbers[self.starts[lists.start]..self.starts[lists.end]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_indices_are_in_one_list_and_in_their_order() {
        let cases: [(Vec<i64>, i64); 5] = [
            (vec![], 5),
            (vec![3; 200], 4),
            ((0..500).map(|number| number * 7 % 300).collect(), 300),
            ((0..500).map(|number| number * 30_011 % 50_000).collect(), 50_000),
            ((0..500).map(|number| number % 9 * 8000 + number).collect(), 100_000),
        ];
        for (index, size) in cases {
            let parts = Parts::new(&index, size);
            let mut lists = std::collections::HashMap::new();
            let mut seen = Vec::new();
            for list in 0..parts.count() {
                for &number in parts.numbers(list..list + 1) {
                    let (known, last) = lists.entry(index[number as usize]).or_insert((list, -1));
                    assert!(*known == list && *last < number, "{index:?}");
                    *last = number;
                    seen.push(number);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..index.len() as i64).collect::<Vec<_>>());
            assert_eq!(parts.numbers(0..parts.count()).len(), index.len());
        }
    }

    #[test]
    fn different_indices_keep_their_order() {
        let index: Vec<i64> = (0..500).map(|number| number * 30_011 % 50_000).collect();
        let parts = Parts::new(&index, 50_000);
        assert!(parts.numbers(0..PARTS).iter().copied().eq(0..500));
        let index: Vec<i64> = index.into_iter().chain([7, 7]).collect();
        let parts = Parts::new(&index, 50_000);
        assert!(parts.numbers(0..PARTS).is_sorted() && parts.numbers(0..PARTS).len() >= 400);
    }
}
