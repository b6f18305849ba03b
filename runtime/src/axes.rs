//! Walks over the elements of several operands of one shape: the odometer of every strided loop.
//!
//! In: sizes and, for each of N operands, steps, in elements or in bytes. Out: axes, in memory order and merged where every
//! operand steps through them as one; and an iterator over their positions, N offsets at a time. Must know no tensor.

mod tiles;

use std::ops::Deref;

use smallvec::SmallVec;

pub use tiles::{TILE_BYTES, Tile, Tiles};

/// One dimension: its size and its step in each of N operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Axis<const N: usize> {
    /// Positions along it.
    pub size: i64,
    /// Distance from one position to the next in each operand.
    pub steps: [i64; N],
}

/// Dimensions to walk, outermost first.
pub type Axes<const N: usize> = SmallVec<[Axis<N>; 6]>;

/// The dimensions of a shape for which `keep` holds, without those of size 1.
pub fn axes<const N: usize>(sizes: &[i64], strides: [&[i64]; N], keep: impl Fn(usize) -> bool) -> Axes<N> {
    kept(sizes, strides, &keep)
}

/// Behind a pointer, so that it is compiled once for each number of operands instead of for each caller's types.
fn kept<const N: usize>(sizes: &[i64], strides: [&[i64]; N], keep: &dyn Fn(usize) -> bool) -> Axes<N> {
    (0..sizes.len())
        .filter(|&dim| sizes[dim] != 1 && keep(dim))
        .map(|dim| Axis { size: sizes[dim], steps: strides.map(|strides| strides[dim]) })
        .collect()
}

/// Joins neighbouring axes that every operand steps through as one.
pub fn merge<const N: usize>(mut axes: Axes<N>) -> Axes<N> {
    axes.dedup_by(|inner, outer| {
        // Without elements, strides may be of any size, and products wrap.
        let joins = std::iter::zip(outer.steps, inner.steps)
            .all(|(outer, step)| outer == step.wrapping_mul(inner.size));
        if joins {
            *outer = Axis { size: outer.size * inner.size, steps: inner.steps };
        }
        joins
    });
    axes
}

/// The axes in the order in which the first operand lies in memory, its smallest steps innermost, merged. Axes of equal
/// steps keep their order.
pub fn in_memory_order<const N: usize>(mut axes: Axes<N>) -> Axes<N> {
    let step = |axis: &Axis<N>| axis.steps[0].unsigned_abs();
    // There are few axes, and the library's sort would be compiled for each number of operands.
    for end in 1..axes.len() {
        let mut at = end;
        while at > 0 && step(&axes[at - 1]) < step(&axes[at]) {
            axes.swap(at - 1, at);
            at -= 1;
        }
    }
    merge(axes)
}

/// Number of positions.
pub fn count<const N: usize>(axes: &[Axis<N>]) -> usize {
    axes.iter().map(|axis| axis.size).product::<i64>().max(0) as usize
}

/// Iterator over the positions of axes, borrowed or its own, the last one fastest.
#[derive(Clone)]
pub struct Walk<A, const N: usize> {
    axes: A,
    index: SmallVec<[i64; 6]>,
    offsets: [i64; N],
    left: usize,
}

impl<A: Deref<Target = [Axis<N>]>, const N: usize> Walk<A, N> {
    /// All positions.
    pub fn over(axes: A) -> Walk<A, N> {
        Walk { index: SmallVec::from_elem(0, axes.len()), offsets: [0; N], left: count(&axes), axes }
    }
}

impl<'a, const N: usize> Walk<&'a [Axis<N>], N> {
    /// All positions of borrowed axes.
    pub fn new(axes: &'a [Axis<N>]) -> Self {
        Walk::over(axes)
    }

    /// The positions from number `first` on; none if there are not so many.
    pub fn starting_at(axes: &'a [Axis<N>], first: usize) -> Self {
        let mut walk = Walk::over(axes);
        walk.left = walk.left.saturating_sub(first);
        if walk.left == 0 {
            return walk;
        }
        let mut rest = first as i64;
        for (axis, index) in axes.iter().zip(&mut walk.index).rev() {
            *index = rest % axis.size;
            rest /= axis.size;
            for (offset, step) in walk.offsets.iter_mut().zip(axis.steps) {
                *offset += step * *index;
            }
        }
        walk
    }
}

impl<A: Deref<Target = [Axis<N>]>, const N: usize> Iterator for Walk<A, N> {
    type Item = [i64; N];

    #[inline]
    fn next(&mut self) -> Option<[i64; N]> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let current = self.offsets;
        for (axis, index) in self.axes.iter().zip(&mut self.index).rev() {
            *index += 1;
            if *index != axis.size {
                for (offset, step) in self.offsets.iter_mut().zip(axis.steps) {
                    *offset += step;
                }
                break;
            }
            *index = 0;
            for (offset, step) in self.offsets.iter_mut().zip(axis.steps) {
                *offset -= step * (axis.size - 1);
            }
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<A: Deref<Target = [Axis<N>]>, const N: usize> ExactSizeIterator for Walk<A, N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_visits_every_position_in_order() {
        let axes = axes(&[2, 1, 3], [&[3, 9, 1], &[-1, 0, 4]], |_| true);
        let all: Vec<_> = Walk::new(&axes).collect();
        assert_eq!(all, [[0, 0], [1, 4], [2, 8], [3, -1], [4, 3], [5, 7]]);
        for first in 0..6 {
            assert_eq!(Walk::starting_at(&axes, first).collect::<Vec<_>>(), all[first..]);
        }
        assert_eq!(Walk::over(axes).collect::<Vec<_>>(), all);
        assert_eq!(Walk::<_, 1>::new(&[]).collect::<Vec<_>>(), [[0]]);
    }

    #[test]
    fn neighbours_merge_only_if_every_operand_agrees() {
        let merged = merge(axes(&[2, 3, 4], [&[12, 4, 1], &[12, 4, 1]], |_| true));
        assert_eq!(merged[..], [Axis { size: 24, steps: [1, 1] }]);
        let apart = merge(axes(&[2, 3, 4], [&[12, 4, 1], &[4, 8, 1]], |_| true));
        assert_eq!(apart.len(), 3);
        let turned = in_memory_order(axes(&[4, 3, 2], [&[1, 4, 12], &[-1, -4, -12]], |_| true));
        assert_eq!(turned[..], [Axis { size: 24, steps: [1, -1] }]);
    }

    #[test]
    fn strides_of_no_elements_may_be_of_any_size() {
        let none = merge(axes(&[2, 0, 3], [&[1, i64::MAX, i64::MAX]], |_| true));
        assert_eq!(Walk::new(&none).next(), None);
        assert_eq!(Walk::starting_at(&none, 0).next(), None);
        assert_eq!(Walk::starting_at(&axes(&[2], [&[1]], |_| true), 3).next(), None);
    }
}
