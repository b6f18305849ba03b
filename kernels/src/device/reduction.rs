//! Parameters of the kernels of `reduction.cuh`.
//!
//! In: sizes and strides, and which dimensions are reduced. Out: a geometry and the blocks of its launch. Both depend on the
//! tensor alone, not on the device, so that sums round alike on all of them. Must not know the fold.

use std::ffi::c_void;

use super::lines::{MOST_DIMS, THREADS};

/// A dimension of a reduction: its size and its strides in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dim {
    /// The number of positions.
    pub size: i64,
    /// The step in the input.
    pub input: i64,
    /// The step in the output; without meaning if the dimension is reduced.
    pub output: i64,
    /// Whether its elements are folded.
    pub reduced: bool,
}

/// The second parameter of a reduction's kernels, field by field as in `reduction.cuh`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Reduction {
    /// The number of outputs.
    pub outputs: u64,
    /// Elements behind each output.
    pub count: u64,
    /// The number of kept dimensions.
    pub kept: u32,
    /// The number of reduced dimensions.
    pub reduced: u32,
    /// 1 if the threads of a row of a block fold one output, 0 if those of a column do.
    pub along_x: u32,
    /// Blocks that share an output, which is grid y.
    pub splits: u32,
    /// Sizes of the kept dimensions.
    pub kept_sizes: [u64; MOST_DIMS],
    /// Strides of the kept dimensions, of the output and of the input.
    pub kept_strides: [[i64; MOST_DIMS]; 2],
    /// Sizes of the reduced dimensions.
    pub reduced_sizes: [u64; MOST_DIMS],
    /// Strides of the reduced dimensions in the input.
    pub reduced_strides: [i64; MOST_DIMS],
    /// The address of the output's first element.
    pub out: *mut c_void,
    /// The address of the input's first element.
    pub input: *const c_void,
    /// `splits * outputs` partial values if `splits` is not 1: in bytes at most 48 for each.
    pub partials: *mut c_void,
}

/// A geometry and its launch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// The geometry, without addresses.
    pub geometry: Reduction,
    /// Blocks of `OPSMITH_REDUCTION`'s kernel.
    pub blocks: [u32; 2],
    /// Threads of a block.
    pub threads: [u32; 2],
    /// Blocks, of 256 threads, of `OPSMITH_REDUCTION_END`'s kernel; 0 if it is not needed.
    pub end_blocks: u32,
}

/// Blocks that fill every device of today.
const ENOUGH_BLOCKS: u64 = 512;
/// The most blocks that share an output: one thread merges their values.
const MOST_SPLITS: u64 = 64;
/// Elements of a thread below which sharing an output costs more than it gains.
const SHORT: u64 = 16;

impl Plan {
    /// The plan for dimensions in their order; `ordered` if the fold looks at elements' numbers, which count in row-major
    /// order of the reduced dimensions. `None` if more than eight dimensions are left after merging, or outputs are too
    /// many for a launch.
    pub fn new(dims: &[Dim], ordered: bool) -> Option<Plan> {
        let (mut kept, mut reduced) = (merged(dims, false, true), merged(dims, true, !ordered));
        if kept.len() > MOST_DIMS || reduced.len() > MOST_DIMS {
            return None;
        }
        let product = |dims: &[Dim]| dims.iter().map(|dim| dim.size as u64).product::<u64>();
        let (outputs, count) = (product(&kept), product(&reduced));
        let nearest =
            |dims: &[Dim]| dims.iter().map(|dim| dim.input.unsigned_abs()).min().unwrap_or(u64::MAX);
        let along_x = kept.is_empty() || nearest(&reduced) < nearest(&kept);
        let x = if along_x {
            count.clamp(1, THREADS).next_power_of_two()
        } else {
            outputs.clamp(32, THREADS).next_power_of_two().min(if count >= 64 { 32 } else { THREADS })
        };
        let y = THREADS / x;
        let (lanes, teams) = if along_x { (x, y) } else { (y, x) };
        let blocks = outputs.div_ceil(teams);
        let useful = (count / (lanes * SHORT)).clamp(1, MOST_SPLITS);
        let splits = ENOUGH_BLOCKS.div_ceil(blocks.max(1)).clamp(1, useful);
        let geometry = Reduction::of(&mut kept, &mut reduced, [outputs, count], along_x, splits as u32);
        Some(Plan {
            geometry,
            blocks: [u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32)?, splits as u32],
            threads: [x as u32, y as u32],
            end_blocks: if splits == 1 { 0 } else { outputs.div_ceil(THREADS) as u32 },
        })
    }
}

impl Reduction {
    fn of(
        kept: &mut [Dim],
        reduced: &mut [Dim],
        [outputs, count]: [u64; 2],
        along_x: bool,
        splits: u32,
    ) -> Reduction {
        let list = |dims: &[Dim], field: fn(&Dim) -> i64| {
            let mut values = [0; MOST_DIMS];
            values.iter_mut().zip(dims).for_each(|(value, dim)| *value = field(dim));
            values
        };
        let sizes = |dims: &[Dim]| list(dims, |dim| dim.size).map(|size| size as u64);
        Reduction {
            outputs,
            count,
            kept: kept.len() as u32,
            reduced: reduced.len() as u32,
            along_x: u32::from(along_x),
            splits,
            kept_sizes: sizes(kept),
            kept_strides: [list(kept, |dim| dim.output), list(kept, |dim| dim.input)],
            reduced_sizes: sizes(reduced),
            reduced_strides: list(reduced, |dim| dim.input),
            out: std::ptr::null_mut(),
            input: std::ptr::null(),
            partials: std::ptr::null_mut(),
        }
    }
}

/// The reduced or the kept dimensions, merged where two are as one; sorted by falling steps in the input if their order
/// is free.
fn merged(dims: &[Dim], reduced: bool, free: bool) -> Vec<Dim> {
    let mut chosen: Vec<Dim> =
        dims.iter().copied().filter(|dim| dim.reduced == reduced && dim.size != 1).collect();
    if free {
        chosen.sort_by_key(|dim| std::cmp::Reverse(dim.input.unsigned_abs()));
    }
    let mut merged: Vec<Dim> = Vec::new();
    for dim in chosen {
        match merged.last_mut() {
            Some(outer)
                if outer.input == dim.input * dim.size
                    && (reduced || outer.output == dim.output * dim.size) =>
            {
                *outer = Dim { size: outer.size * dim.size, ..dim };
            }
            _ => merged.push(dim),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(sizes: &[i64], reduced: &[bool]) -> Vec<Dim> {
        let mut dims = Vec::new();
        let (mut input, mut output) = (1, 1);
        for (&size, &reduced) in sizes.iter().zip(reduced).rev() {
            dims.insert(0, Dim { size, input, output, reduced });
            input *= size;
            output *= if reduced { 1 } else { size };
        }
        dims
    }

    #[test]
    fn neighbouring_dimensions_are_one() {
        let plan = Plan::new(&dims(&[5, 6, 7, 8], &[false, false, true, true]), false).unwrap();
        let geometry = plan.geometry;
        assert_eq!((geometry.kept, geometry.reduced, geometry.outputs, geometry.count), (1, 1, 30, 56));
        assert_eq!((geometry.kept_strides[1][0], geometry.reduced_strides[0]), (56, 1));
        assert_eq!((geometry.along_x, plan.threads, plan.blocks), (1, [64, 4], [8, 1]));
    }

    #[test]
    fn columns_have_neighbouring_threads_and_long_ones_are_shared() {
        let plan = Plan::new(&dims(&[100_000, 40], &[true, false]), false).unwrap();
        assert_eq!((plan.geometry.along_x, plan.threads, plan.blocks), (0, [32, 8], [2, 64]));
        assert_eq!(plan.end_blocks, 1);
        let short = Plan::new(&dims(&[3, 4000], &[true, false]), false).unwrap();
        assert_eq!((short.threads, short.blocks, short.end_blocks), ([256, 1], [16, 1], 0));
    }

    #[test]
    fn no_dimension_is_one_output() {
        let plan = Plan::new(&[], false).unwrap();
        assert_eq!((plan.geometry.outputs, plan.geometry.count, plan.blocks), (1, 1, [1, 1]));
    }
}
