//! Layouts as kernels of movement take them: few dimensions, in the order that suits the target.
//!
//! In: elements of a target and a source. Out: dimensions without those of size 1, neighbours joined, and the struct that
//! the kernels have as a parameter. Must not know drivers.

use std::ffi::c_void;

use opsmith_runtime::backend::Elements;
use opsmith_runtime::smallvec::SmallVec;

/// Dimensions that a kernel takes.
pub const MAX_DIMS: usize = 8;

/// Rows and columns of a tile of a transposing move.
pub const TILE: u32 = 32;

/// A dimension of a target and a source; strides in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// Number of elements.
    pub size: u64,
    /// Stride of the target.
    pub to: i64,
    /// Stride of the source.
    pub from: i64,
}

/// Dimensions, the innermost last.
pub type Dims = SmallVec<[Dim; MAX_DIMS]>;

/// A layout as `movement.cuh` has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    count: u64,
    dims: u32,
    padding: u32,
    sizes: [u64; MAX_DIMS],
    to_strides: [i64; MAX_DIMS],
    from_strides: [i64; MAX_DIMS],
    to: *mut c_void,
    from: *const c_void,
}

impl Geometry {
    /// The struct for at most [`MAX_DIMS`] dimensions.
    pub fn new(dims: &[Dim], to: *mut u8, from: *const u8) -> Geometry {
        let mut geometry = Geometry {
            count: count(dims),
            dims: dims.len() as u32,
            padding: 0,
            sizes: [1; MAX_DIMS],
            to_strides: [0; MAX_DIMS],
            from_strides: [0; MAX_DIMS],
            to: to.cast(),
            from: from.cast(),
        };
        for (position, dim) in dims.iter().enumerate() {
            geometry.sizes[position] = dim.size;
            geometry.to_strides[position] = dim.to;
            geometry.from_strides[position] = dim.from;
        }
        geometry
    }
}

/// Number of elements of some dimensions.
pub fn count(dims: &[Dim]) -> u64 {
    dims.iter().map(|dim| dim.size).product()
}

/// The dimensions of a target and a source of the same sizes; of a target alone, with the strides 0 for the source.
pub fn dims_of(to: Elements<'_>, from: Option<Elements<'_>>) -> Dims {
    let dim = |position: usize| Dim {
        size: u64::try_from(to.sizes[position]).unwrap_or(0),
        to: to.strides[position],
        from: from.map_or(0, |from| from.strides[position]),
    };
    (0..to.sizes.len()).map(dim).collect()
}

/// Puts dimensions with greater strides of the target first; those of equal strides keep their order.
pub fn order_by_target(dims: &mut Dims) {
    dims.sort_by_key(|dim| std::cmp::Reverse((dim.to.unsigned_abs(), dim.from.unsigned_abs())));
}

/// Drops dimensions of size 1, and joins neighbours that both sides have as one.
pub fn collapse(dims: &Dims) -> Dims {
    let mut joined = Dims::new();
    for dim in dims.iter().copied().filter(|dim| dim.size != 1) {
        let extent = |stride: i64| stride.checked_mul(dim.size as i64);
        match joined.last_mut() {
            Some(outer) if Some(outer.to) == extent(dim.to) && Some(outer.from) == extent(dim.from) => {
                *outer = Dim { size: outer.size * dim.size, ..dim };
            }
            _ => joined.push(dim),
        }
    }
    joined
}

/// Whether the target's elements may be one at several indices.
pub fn may_overlap(dims: &[Dim]) -> bool {
    let mut strides: SmallVec<[(u64, u64); MAX_DIMS]> =
        dims.iter().filter(|dim| dim.size > 1).map(|dim| (dim.to.unsigned_abs(), dim.size - 1)).collect();
    strides.sort_unstable();
    let mut reach = 0u64;
    for (stride, steps) in strides {
        if stride <= reach {
            return true;
        }
        reach = reach.saturating_add(stride.saturating_mul(steps));
    }
    false
}

/// Whether both sides have their elements one after the other.
pub fn is_row(dims: &[Dim]) -> bool {
    matches!(dims, [] | [Dim { to: 1, from: 1, .. }])
}

/// The dimensions of a move in tiles, with their number: the source's innermost dimension before the target's. `None` if
/// both have the same, or one is too short for tiles.
pub fn transposed(dims: &Dims) -> Option<(Dims, u64)> {
    let least = u64::from(TILE / 2);
    let last = dims.last().filter(|dim| dim.to == 1 && dim.from != 1 && dim.size >= least)?;
    let position = dims.iter().position(|dim| dim.from == 1 && dim.size >= least)?;
    let mut dims = dims.clone();
    let row = dims.remove(position);
    let tiles = |dim: &Dim| dim.size.div_ceil(u64::from(TILE));
    let count = count(&dims[..dims.len() - 1]) * tiles(&row) * tiles(last);
    dims.insert(dims.len() - 1, row);
    Some((dims, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(list: &[(u64, i64, i64)]) -> Dims {
        list.iter().map(|&(size, to, from)| Dim { size, to, from }).collect()
    }

    #[test]
    fn neighbours_join_where_both_sides_allow() {
        let row = dims(&[(2, 12, 12), (3, 4, 4), (1, 9, 9), (4, 1, 1)]);
        assert_eq!(collapse(&row), dims(&[(24, 1, 1)]));
        let transposed = dims(&[(2, 12, 1), (3, 4, 8), (4, 1, 2)]);
        assert_eq!(collapse(&transposed), dims(&[(2, 12, 1), (12, 1, 2)]));
        let repeated = dims(&[(5, 0, 6), (2, 0, 3), (3, 1, 1)]);
        assert_eq!(collapse(&repeated), dims(&[(10, 0, 3), (3, 1, 1)]));
        assert!(collapse(&dims(&[(1, 7, 7)])).is_empty());
    }

    #[test]
    fn overlap_is_found() {
        assert!(!may_overlap(&dims(&[(3, 4, 0), (4, 1, 0)])));
        assert!(!may_overlap(&dims(&[(3, -4, 0), (4, 1, 0)])));
        assert!(may_overlap(&dims(&[(3, 3, 0), (4, 1, 0)])));
        assert!(may_overlap(&dims(&[(3, 0, 0)])));
        assert!(!may_overlap(&dims(&[(1, 0, 0)])));
    }

    #[test]
    fn a_transposed_source_moves_in_tiles() {
        let turned = dims(&[(40, 70, 1), (2, 35, 1000), (35, 1, 40)]);
        let ordered = dims(&[(2, 35, 1000), (40, 70, 1), (35, 1, 40)]);
        assert_eq!(transposed(&turned), Some((ordered, 2 * 2 * 2)));
        assert_eq!(transposed(&dims(&[(40, 35, 35), (35, 1, 1)])), None);
        assert_eq!(transposed(&dims(&[(4, 35, 1), (35, 1, 4)])), None, "too short");
        assert_eq!(transposed(&dims(&[(40, 35, 0), (35, 1, 2)])), None);
    }

    #[test]
    fn the_target_decides_the_order() {
        let mut order = dims(&[(2, 1, 3), (3, 2, 1)]);
        order_by_target(&mut order);
        assert_eq!(order, dims(&[(3, 2, 1), (2, 1, 3)]));
    }
}
