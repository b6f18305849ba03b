//! Indices by the part of the dimension that they are in, so that each part's slices have one thread.
//!
//! In: indices of a dimension. Out: their numbers, part after part, in each part in the indices' order. Must not know the
//! elements.

use opsmith_runtime::Scratch;

/// Parts of a dimension, at most.
pub(in crate::cpu) const PARTS: usize = 64;

/// The numbers of indices, those of each part of the dimension together and in their order.
pub(super) struct Parts {
    numbers: Scratch<i64>,
    /// The first number of each part, and the end of the last one.
    starts: Scratch<usize>,
}

impl Parts {
    /// One part.
    pub fn whole(index: &[i64]) -> Parts {
        let starts = [0, index.len()].into_iter().collect();
        Parts { numbers: (0..index.len() as i64).collect(), starts }
    }

    /// Parts of a dimension of so many slices.
    pub fn new(index: &[i64], size: i64) -> Parts {
        let width = (size as usize).div_ceil(PARTS).next_power_of_two();
        let part = |place: i64| place as usize >> width.trailing_zeros();
        let mut starts = Scratch::filled(0, PARTS + 1);
        index.iter().for_each(|&place| starts[part(place) + 1] += 1);
        for part in 0..PARTS {
            starts[part + 1] += starts[part];
        }
        let mut ends = starts.clone();
        let mut numbers = Scratch::filled(0, index.len());
        for (number, &place) in (0..).zip(index) {
            let end = &mut ends[part(place)];
            numbers[*end] = number;
            *end += 1;
        }
        Parts { numbers, starts }
    }

    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn numbers(&self, part: usize) -> &[i64] {
        &self.numbers[self.starts[part]..self.starts[part + 1]]
    }
}
