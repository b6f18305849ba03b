//! Entries of long lines in the order of their keys, by digits.
//!
//! In: entries on a device, and the bits in which keys differ. Out: the entries of each line, in order. A pass reads and writes an
//! entry once, whatever the length of lines, where a merge doubles runs; so long lines take fewer bytes.

use opsmith_runtime::DeviceProgram;
use opsmith_runtime::{DType, Device, Result};

use super::compact::running_sums_of;
use super::entries::Entry;
use super::launch::line;
use super::scratch::Room;
use crate::device::ORDER;

static PROGRAM: DeviceProgram = DeviceProgram::new("radix.cuh", ORDER, include_str!("../../cuda/radix.cuh"));

/// Bits of a digit, and the numbers that it has.
const DIGIT: u32 = 8;
const DIGITS: u64 = 1 << DIGIT;

/// Bytes of the entries of a block, as they are moved.
const BLOCK_BYTES: u64 = 32 << 10;

/// The shortest line, and the least number of entries, that are ordered so: a pass is five launches, a merge is one.
const LEAST_LINE: u64 = 8 << 10;
const LEAST: u64 = 256 << 10;

/// The bits in which keys differ.
#[derive(Clone, Copy)]
pub(super) struct KeyBits {
    first: u32,
    end: u32,
    /// The bits above the lowest 32, where keys differ in none of them.
    upper: u64,
}

impl KeyBits {
    /// Those of a dtype's keys, as `sort.cuh` makes them: of floats those of `float32` or `float64`, of which shorter ones leave the last
    /// bits alike.
    pub fn of(dtype: DType, descending: bool) -> KeyBits {
        let (first, end) = match dtype {
            DType::F64 | DType::I64 | DType::U64 => (0, 64),
            DType::BF16 => (16, 32),
            DType::F16 => (8, 32),
            DType::I16 | DType::U16 => (0, 16),
            DType::I8 | DType::U8 | DType::Bool => (0, 8),
            _ => (0, 32),
        };
        KeyBits { first, end, upper: if descending { u64::MAX << 32 } else { 0 } }
    }
}

/// Whether lines are ordered by digits.
pub(super) fn takes(lines: u64, size: u64) -> bool {
    size > LEAST_LINE && lines * size >= LEAST
}

/// Field by field as in `radix.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Digits {
    from: *const u8,
    to: *mut u8,
    counts: *mut u64,
    lines: u64,
    size: u64,
    blocks: u64,
    upper: u64,
    shift: u32,
    padding: u32,
}

/// A key of 32 bits, and a place.
type Word = u64;

/// The entries of each line in order.
///
/// # Errors
/// Errors of the device.
pub(super) fn by_digits(device: Device, entries: Room, lines: u64, size: u64, keys: KeyBits) -> Result<Room> {
    let is_short = keys.end <= 32 && size <= u64::from(u32::MAX);
    let bytes = if is_short { size_of::<Word>() } else { size_of::<Entry>() } as u64;
    let blocks = size.div_ceil(BLOCK_BYTES / bytes);
    let counts = Room::new::<u64>(device, lines * DIGITS * blocks)?;
    let passes = (keys.end - keys.first).div_ceil(DIGIT);
    let mut from = entries;
    for pass in 0..passes {
        let (is_first, is_last) = (pass == 0, pass + 1 == passes);
        let to = match is_short && !is_last {
            true => Room::new::<Word>(device, lines * size)?,
            false => Room::new::<Entry>(device, lines * size)?,
        };
        let shift = keys.first + pass * DIGIT;
        let parameter = Digits {
            from: from.address(),
            to: to.address(),
            counts: counts.address(),
            lines,
            size,
            blocks,
            upper: keys.upper,
            shift,
            padding: 0,
        };
        let name = |is_word: bool| if is_word { "Word" } else { "Entry" };
        let (read, moved, written) =
            (name(is_short && !is_first), name(is_short), name(is_short && !is_last));
        let number = u8::from(is_short) * (1 + u8::from(is_first) + 2 * u8::from(is_last));
        let count = format!("OPSMITH_COUNT_DIGITS(opsmith_kernel, {read}, {moved})");
        let moves = format!("OPSMITH_MOVE_DIGITS(opsmith_kernel, {read}, {moved}, {written})");
        // SAFETY: both sides have the entries or words that the names say, and there is a count for each digit of each block; its
        // running sum is the end of a part of all entries.
        unsafe {
            line(&PROGRAM, device, (2 * number, &count), lines * blocks, &parameter)?;
            running_sums_of(device, &counts, lines * DIGITS * blocks)?;
            line(&PROGRAM, device, (2 * number + 1, &moves), lines * blocks, &parameter)?;
        }
        from = to;
    }
    Ok(from)
}
