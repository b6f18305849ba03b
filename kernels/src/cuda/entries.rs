//! Entries of lines in the order of their keys.
//!
//! In: entries on a device, of lines of one length. Out: the smallest of each line, in order. Must not know the
//! operator.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{Device, Result};

use super::launch::line;
use super::radix::{self, KeyBits};
use super::scratch::Room;
use crate::device::ORDER;

static PROGRAM: DeviceProgram = DeviceProgram::new("order.cuh", ORDER, "");

/// Entries of a tile.
const TILE: u64 = 1024;

/// A key and where it comes from, field by field as in `order.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    key: u64,
    place: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Tiles {
    from: *const Entry,
    to: *mut Entry,
    lines: u64,
    size: u64,
    tiles: u64,
    kept: u64,
    width: u32,
    padding: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Merge {
    from: *const Entry,
    to: *mut Entry,
    count: u64,
    size: u64,
    run: u64,
}

/// Sorts the entries of each line; `kept` of each are needed. Also the number of entries that each line has now. Long lines are ordered
/// by digits, if the bits are known in which keys differ.
///
/// # Errors
/// Errors of the device.
pub(super) fn in_order(
    device: Device,
    entries: Room,
    lines: u64,
    mut size: u64,
    kept: u64,
    keys: Option<KeyBits>,
) -> Result<(Room, u64)> {
    if let Some(keys) = keys
        && kept == size
        && radix::takes(lines, size)
    {
        return Ok((radix::by_digits(device, entries, lines, size, keys)?, size));
    }
    let mut from = entries;
    loop {
        let width = size.clamp(2, TILE).next_power_of_two();
        let tiles = size.div_ceil(width);
        let is_choice = kept * 2 <= width && tiles > 1;
        let of_tile = if is_choice { kept } else { width };
        let left = (tiles - 1) * of_tile + (size - (tiles - 1) * width).min(of_tile);
        let to = Room::new::<Entry>(device, lines * left)?;
        let parameter = Tiles {
            from: from.address(),
            to: to.address(),
            lines,
            size,
            tiles,
            kept: of_tile,
            width: width as u32,
            padding: 0,
        };
        let blocks = (lines * tiles * width).div_ceil(TILE);
        // SAFETY: both rooms have the entries that the parameter says.
        unsafe { line(&PROGRAM, device, (0, "OPSMITH_SORT_TILES(opsmith_kernel)"), blocks, &parameter)? };
        if !is_choice {
            return merged(device, to, from, lines * size, size, width);
        }
        (from, size) = (to, left);
    }
}

/// Merges sorted runs of each line; `spare` has room for all entries.
fn merged(
    device: Device,
    mut sorted: Room,
    mut spare: Room,
    count: u64,
    size: u64,
    mut run: u64,
) -> Result<(Room, u64)> {
    while run < size {
        let parameter = Merge { from: sorted.address(), to: spare.address(), count, size, run };
        let blocks = count.div_ceil(256).min(1 << 20);
        // SAFETY: both rooms have `count` entries.
        unsafe { line(&PROGRAM, device, (1, "OPSMITH_MERGE_RUNS(opsmith_kernel)"), blocks, &parameter)? };
        std::mem::swap(&mut sorted, &mut spare);
        run *= 2;
    }
    Ok((sorted, size))
}
