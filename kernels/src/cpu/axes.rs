//! Walking several views of one shape together.
//!
//! In: sizes and, for each of N views, strides. Out: the positions of every element, or of every
//! line along one dimension, as N offsets at a time.

use opsmith_runtime::smallvec::SmallVec;

/// One dimension: its size and its step in each of N views.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Axis<const N: usize> {
    pub size: i64,
    pub steps: [i64; N],
}

/// Dimensions to walk, outermost first.
pub(crate) type Axes<const N: usize> = SmallVec<[Axis<N>; 6]>;

/// The dimensions of a shape for which `keep` holds, without those of size 1.
pub(crate) fn axes<const N: usize>(
    sizes: &[i64],
    strides: [&[i64]; N],
    keep: impl Fn(usize) -> bool,
) -> Axes<N> {
    kept(sizes, strides, &keep)
}

/// Behind a pointer, so that it is compiled once for each number of views instead of for each caller's types.
fn kept<const N: usize>(sizes: &[i64], strides: [&[i64]; N], keep: &dyn Fn(usize) -> bool) -> Axes<N> {
    (0..sizes.len())
        .filter(|&dim| sizes[dim] != 1 && keep(dim))
        .map(|dim| Axis { size: sizes[dim], steps: strides.map(|strides| strides[dim]) })
        .collect()
}

/// Joins neighbouring dimensions that every view steps through as one.
pub(crate) fn merge<const N: usize>(axes: Axes<N>) -> Axes<N> {
    let mut merged: Axes<N> = SmallVec::new();
    for inner in axes {
        match merged.last_mut() {
            Some(outer) if (0..N).all(|view| outer.steps[view] == inner.steps[view] * inner.size) => {
                *outer = Axis { size: outer.size * inner.size, steps: inner.steps };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

/// Number of positions.
pub(crate) fn count<const N: usize>(axes: &[Axis<N>]) -> usize {
    axes.iter().map(|axis| axis.size).product::<i64>() as usize
}

/// Iterator over the positions of a list of dimensions, the last one fastest.
#[derive(Clone)]
pub(crate) struct Walk<'a, const N: usize> {
    axes: &'a [Axis<N>],
    index: SmallVec<[i64; 6]>,
    offsets: [i64; N],
    left: usize,
}

impl<'a, const N: usize> Walk<'a, N> {
    /// All positions.
    pub fn new(axes: &'a [Axis<N>]) -> Walk<'a, N> {
        Walk { axes, index: SmallVec::from_elem(0, axes.len()), offsets: [0; N], left: count(axes) }
    }

    /// The positions from number `first` on.
    pub fn starting_at(axes: &'a [Axis<N>], first: usize) -> Walk<'a, N> {
        let mut walk = Walk::new(axes);
        walk.left -= first;
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

impl<const N: usize> Iterator for Walk<'_, N> {
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
            let wrapped = *index == axis.size;
            let steps = if wrapped { 1 - axis.size } else { 1 };
            for (offset, step) in self.offsets.iter_mut().zip(axis.steps) {
                *offset += step * steps;
            }
            if !wrapped {
                break;
            }
            *index = 0;
        }
        Some(current)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<const N: usize> ExactSizeIterator for Walk<'_, N> {}

/// The dimension a kernel works along, as size and step in each view, and the dimensions it is
/// repeated over, those with the smallest steps in the first view last. A scalar is one line of one
/// element.
pub(crate) fn lines<const N: usize>(sizes: &[i64], strides: [&[i64]; N], dim: usize) -> (Axis<N>, Axes<N>) {
    let line = match sizes.get(dim) {
        Some(&size) => Axis { size, steps: strides.map(|strides| strides[dim]) },
        None => Axis { size: 1, steps: [1; N] },
    };
    let mut repeated = axes(sizes, strides, |other| other != dim);
    repeated.sort_by_key(|axis| std::cmp::Reverse(axis.steps[0].abs()));
    (line, merge(repeated))
}

/// Neighbouring lines along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<const N: usize> {
    /// Position of the first line's first element in each view.
    pub start: [i64; N],
    /// Elements of a line.
    pub line: Axis<N>,
    /// Lines.
    pub lane: Axis<N>,
}

/// Lines shorter than this are worth working on side by side.
pub(crate) const SHORT: i64 = 16;

/// Calls `body` for tiles that together hold every line along `dim`.
///
/// Where the elements of a line are farther apart in the first view than neighbouring lines, a tile
/// has up to `near` of these, so that a cache line of memory is visited once. So it has where lines
/// are short, which leaves longer loops over lanes. Otherwise it has up to `far`.
pub(crate) fn for_each_tile<const N: usize>(
    sizes: &[i64],
    strides: [&[i64]; N],
    dim: usize,
    near: usize,
    far: usize,
    mut body: impl FnMut(Tile<N>),
) {
    tiles(sizes, strides, dim, [near, far], &mut body);
}

fn tiles<const N: usize>(
    sizes: &[i64],
    strides: [&[i64]; N],
    dim: usize,
    [near, far]: [usize; 2],
    body: &mut dyn FnMut(Tile<N>),
) {
    let (line, mut outer) = lines(sizes, strides, dim);
    let lane = outer.pop().unwrap_or(Axis { size: 1, steps: [0; N] });
    let is_near =
        lane.steps[0].abs() < line.steps[0].abs() || (line.size < SHORT && lane.size >= 2 * line.size);
    let width = if is_near { near } else { far };
    for start in Walk::new(&outer) {
        for first in (0..lane.size).step_by(width) {
            let start = std::array::from_fn(|view| start[view] + first * lane.steps[view]);
            let lane = Axis { size: (lane.size - first).min(width as i64), ..lane };
            body(Tile { start, line, lane });
        }
    }
}

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
        assert_eq!(Walk::<1>::new(&[]).collect::<Vec<_>>(), [[0]]);
    }

    #[test]
    fn neighbours_merge_only_if_every_view_agrees() {
        let merged = merge(axes(&[2, 3, 4], [&[12, 4, 1], &[12, 4, 1]], |_| true));
        assert_eq!(merged[..], [Axis { size: 24, steps: [1, 1] }]);
        let apart = merge(axes(&[2, 3, 4], [&[12, 4, 1], &[4, 8, 1]], |_| true));
        assert_eq!(apart.len(), 3);
    }
}
