//! Moving elements as bytes: rows at any steps, and transposed tiles.
//!
//! In: addresses, steps in bytes, and the size of an element. Out: the same elements elsewhere. One loop a size serves every
//! dtype. Must know no tensor.

pub(crate) mod stream;
mod transpose;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod whole_lines;

use std::ops::{Range, RangeInclusive};

use crate::axes::{Axes, Tiles, in_memory_order};
use crate::parallel::{self, CHUNK as ELEMENTS, Shared};
use crate::simd::widest;
pub(crate) use transpose::transpose_elements;

/// Copies elements of `size` bytes, a power of two of at most 16, along axes in bytes: the first operand is the target.
///
/// # Safety
/// Every position of the axes is one of an element in both operands, valid for writes at `target` and for reads at `source`.
/// If operands share memory, they are the same elements.
pub unsafe fn copy_elements(axes: Axes<2>, size: usize, target: *mut u8, source: *const u8) {
    let tiles = Tiles::new(in_memory_order(axes), [size; 2], area(size));
    // SAFETY: the caller's promise.
    unsafe { copy_tiles(&tiles, 0..tiles.count(), size, [target, source.cast_mut()], false) }
}

/// As [`copy_elements`], in several threads if it takes long, of elements that are a part of a result of so many bytes.
///
/// # Safety
/// As [`copy_elements`]; no two positions are one element of the target.
pub unsafe fn copy_part(axes: Axes<2>, size: usize, target: *mut u8, source: *const u8, whole: usize) {
    let elements: i64 = axes.iter().map(|axis| axis.size).product();
    let tiles = Tiles::new(in_memory_order(axes), [size; 2], area(size));
    let (count, streams) = (tiles.count(), stream::is_streamed(whole));
    let starts = [Shared(target), Shared(source.cast_mut())];
    let chunk = ELEMENTS.div_ceil((elements as usize / count.max(1)).max(1));
    parallel::for_each_range(count, chunk, |range| {
        let starts = [&starts[0], &starts[1]].map(|start| start.at(0));
        // SAFETY: the caller's promise, of tiles that no other thread has.
        unsafe { copy_tiles(&tiles, range, size, starts, streams) };
    });
}

/// Copies the elements of tiles of these numbers, past the caches if the result `streams`.
///
/// # Safety
/// As [`copy_elements`], of the tiles' positions from the starts of target and source.
unsafe fn copy_tiles(
    tiles: &Tiles<2>,
    numbers: Range<usize>,
    size: usize,
    starts: [*mut u8; 2],
    streams: bool,
) {
    tiles.for_each(numbers, |tile| {
        let [target, source] = [0, 1].map(|operand: usize| Side {
            start: starts[operand].wrapping_offset(tile.start[operand] as isize),
            step: tile.row.steps[operand] as isize,
            row: tile.rows.steps[operand] as isize,
        });
        // SAFETY: the tiles are those of the axes, whose elements the caller promises.
        unsafe { move_rows(size, target, source, [tile.rows.size as usize, tile.row.size as usize], streams) }
    });
    if streams {
        stream::finish();
    }
}

/// Most elements of a tile: a cache line of each of 128 rows.
pub(crate) fn area(size: usize) -> usize {
    8192 / size
}

/// Elements in rows.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    /// Address of the first.
    pub start: *mut u8,
    /// Bytes from one element of a row to the next.
    pub step: isize,
    /// Bytes from one row to the next.
    pub row: isize,
}

/// Copies `rows` rows of `length` elements of `size` bytes, past the caches if the result `streams`: then the caller calls
/// [`stream::finish`].
///
/// # Safety
/// As many elements are valid for reads at `source`, and for writes at `target`; if they share memory, they are the same.
pub(crate) unsafe fn move_rows(
    size: usize,
    target: Side,
    source: Side,
    [rows, length]: [usize; 2],
    streams: bool,
) {
    let unit = size as isize;
    let transpose = |from_line: isize, lines: usize, to_line: isize, length: usize| {
        let (from, to) = (source.start.cast_const(), target.start);
        // SAFETY: the elements are those that the caller promises; lines fit only on a processor with the instructions.
        unsafe {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            if streams && whole_lines::fit(size, to, to_line) {
                return whole_lines::transpose(size, from, from_line, lines, to, to_line, length);
            }
            transpose_elements(size, from, from_line, lines, to, to_line, length);
        }
    };
    // SAFETY: rows and elements are those that the caller promises.
    unsafe {
        if rows > 1 && target.step == unit && source.row == unit && source.step != 0 {
            return transpose(source.step, length, target.row, rows);
        }
        if rows > 1 && target.row == unit && source.step == unit {
            return transpose(source.row, rows, target.step, length);
        }
        if rows > 1 && target.step == unit && source.step == unit && SHORT.contains(&(length * size)) {
            return move_short_rows(length * size, target, source, rows);
        }
        let streams = streams && target.step == unit && target.start != source.start;
        for row in 0..rows as isize {
            let (from, to) = (source.start.offset(row * source.row), target.start.offset(row * target.row));
            match source.step {
                step if streams && step == unit => stream::store(from, to, length * size),
                step => move_row(size, from, step, to, target.step, length),
            }
        }
    }
}

/// Bytes of a row for which a call of the system's copy takes as long as the copy.
const SHORT: RangeInclusive<usize> = 2 * CHUNK..=1024;

/// Bytes that are copied at once.
const CHUNK: usize = 32;

/// As [`move_rows`], of rows of so many bytes, at least [`CHUNK`], one after the other.
///
/// # Safety
/// As [`move_rows`].
#[inline(never)]
unsafe fn move_short_rows(bytes: usize, target: Side, source: Side, rows: usize) {
    widest(
        #[inline(always)]
        move || {
            for row in 0..rows as isize {
                // SAFETY: the rows are those that the caller promises.
                unsafe {
                    let from = source.start.offset(row * source.row).cast_const();
                    move_chunks(from, target.start.offset(row * target.row), bytes);
                }
            }
        },
    );
}

/// Copies bytes, one after the other.
///
/// A processor compares addresses by their place in a page of memory first: where a target lies a little further in its page than
/// the source, reads seem to need the bytes just written. Copies of the system, by the processor's instruction for strings, took
/// five to ten times as long there (AMD Zen 4); a loop over short vectors does not.
///
/// # Safety
/// As many bytes are valid for reads at `from`, and for writes at `to`; they do not overlap, or are the same.
#[inline]
pub unsafe fn copy_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    let further = to.addr().wrapping_sub(from.addr()) & (PAGE - 1);
    // SAFETY: the caller's promise.
    unsafe {
        if bytes >= FOR_STRINGS && (1..NEAR).contains(&further) {
            copy_chunks(from, to, bytes);
        } else {
            to.copy_from(from, bytes);
        }
    }
}

/// Bytes of a page of memory.
const PAGE: usize = 4096;

/// Bytes between places in a page, from which on no reads wait.
const NEAR: usize = 512;

/// Bytes from which on the system's copy may use the instruction for strings.
const FOR_STRINGS: usize = 512;

/// As [`copy_bytes`], by a loop over short vectors.
///
/// # Safety
/// As [`move_chunks`].
#[inline(never)]
unsafe fn copy_chunks(from: *const u8, to: *mut u8, bytes: usize) {
    widest(
        #[inline(always)]
        // SAFETY: the caller's promise.
        move || unsafe { move_chunks(from, to, bytes) },
    );
}

/// Copies bytes in chunks; the last one may have some of the one before.
///
/// # Safety
/// At least [`CHUNK`] bytes, and as many as there are, are valid for reads at `from`, and for writes at `to`; they do not overlap.
#[inline(always)]
unsafe fn move_chunks(from: *const u8, to: *mut u8, bytes: usize) {
    let move_chunk = |at: usize| {
        // SAFETY: the chunk lies in the caller's bytes.
        unsafe {
            let chunk = from.add(at).cast::<[u64; CHUNK / 8]>().read_unaligned();
            to.add(at).cast::<[u64; CHUNK / 8]>().write_unaligned(chunk);
        }
    };
    (0..bytes / CHUNK).for_each(|chunk| move_chunk(chunk * CHUNK));
    move_chunk(bytes - CHUNK);
}

/// Copies `length` elements of `size` bytes from one row to another.
///
/// # Safety
/// As many elements, at these steps, are valid for reads and for writes; if they share memory, they are the same.
pub(crate) unsafe fn move_row(
    size: usize,
    from: *const u8,
    from_step: isize,
    to: *mut u8,
    to_step: isize,
    length: usize,
) {
    let unit = size as isize;
    // SAFETY: the caller's promises are those of each function; equal addresses are allowed.
    unsafe {
        if from_step == unit && to_step == unit {
            return copy_bytes(from, to, length * size);
        }
        match size {
            1 => move_typed::<u8>(from, from_step, to, to_step, length),
            2 => move_typed::<u16>(from, from_step, to, to_step, length),
            4 => move_typed::<u32>(from, from_step, to, to_step, length),
            8 => move_typed::<u64>(from, from_step, to, to_step, length),
            _ => move_typed::<[u64; 2]>(from, from_step, to, to_step, length),
        }
    }
}

/// # Safety
/// As [`move_row`], of elements of `T`.
unsafe fn move_typed<T: Copy>(from: *const u8, from_step: isize, to: *mut u8, to_step: isize, length: usize) {
    let unit = size_of::<T>() as isize;
    // SAFETY: the places are those that the caller promises; addresses need no alignment.
    unsafe {
        let read =
            |index: usize, step: isize| from.offset(step * index as isize).cast::<T>().read_unaligned();
        let write = |index: usize, step: isize, element: T| {
            to.offset(step * index as isize).cast::<T>().write_unaligned(element);
        };
        // Loops of steps that the compiler knows use vectors.
        if to_step == unit && from_step == 0 && length > 0 {
            let element = from.cast::<T>().read_unaligned();
            let to = to.cast::<T>();
            // A write could change a capture that is a reference.
            widest(
                #[inline(always)]
                move || {
                    for index in 0..length {
                        to.add(index).write_unaligned(element);
                    }
                },
            );
        } else if to_step == unit && from_step == 2 * unit {
            (0..length).for_each(|index| write(index, unit, read(index, 2 * unit)));
        } else {
            (0..length).for_each(|index| write(index, to_step, read(index, from_step)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::axes;

    /// Copies a matrix of elements of `N` bytes into its transpose, and from there to every second element.
    fn check<const N: usize>(rows: i64, columns: i64) {
        let bytes = rows as usize * columns as usize * N;
        let source: Vec<u8> = (0..bytes).map(|byte| (byte * 7 % 251) as u8).collect();
        let (mut turned, mut apart) = (vec![0u8; bytes], vec![0u8; 2 * bytes]);
        let size = N as i64;
        let (across, along): ([i64; 2], [i64; 2]) = ([size, rows * size], [columns * size, size]);
        // SAFETY: the steps stay inside the vectors.
        unsafe {
            let whole = axes(&[rows, columns], [&across, &along], |_| true);
            copy_elements(whole, N, turned.as_mut_ptr(), source.as_ptr());
            let whole = axes(&[rows, columns], [&along.map(|step| 2 * step), &across], |_| true);
            copy_elements(whole, N, apart.as_mut_ptr(), turned.as_ptr());
        }
        let element = |bytes: &[u8], at: usize| bytes[at * N..][..N].to_vec();
        for row in 0..rows as usize {
            for column in 0..columns as usize {
                let expected = element(&source, row * columns as usize + column);
                assert_eq!(element(&turned, column * rows as usize + row), expected);
                assert_eq!(element(&apart, 2 * (row * columns as usize + column)), expected);
            }
        }
    }

    #[test]
    fn elements_of_every_size_are_transposed() {
        for (rows, columns) in
            [(1, 1), (3, 5), (8, 8), (17, 33), (130, 70), (33, 512), (150, 1024), (4200, 3)]
        {
            if cfg!(miri) && rows * columns > 600 {
                continue;
            }
            check::<1>(rows, columns);
            check::<2>(rows, columns);
            check::<4>(rows, columns);
            check::<8>(rows, columns);
            check::<16>(rows, columns);
        }
    }

    /// Places of the target around those of the source in its page of memory, where other loops are used.
    #[test]
    fn bytes_are_copied_to_any_place_in_a_page() {
        const MOST: usize = 1500;
        let memory: Vec<u8> = (0..2 * PAGE + MOST).map(|byte| (byte * 7 % 251) as u8).collect();
        for further in [0, 1, 12, 31, 64, NEAR - 1, NEAR, PAGE - 8] {
            for bytes in [0, 1, FOR_STRINGS - 1, FOR_STRINGS, FOR_STRINGS + 1, 1024, MOST] {
                let mut copy = vec![0u8; 2 * PAGE + MOST];
                let place = (memory.as_ptr().addr() + further).wrapping_sub(copy.as_ptr().addr()) % PAGE;
                // SAFETY: both hold the bytes and a page before.
                unsafe { copy_bytes(memory.as_ptr(), copy.as_mut_ptr().add(place), bytes) };
                assert_eq!(copy[place..place + bytes], memory[..bytes], "{further} {bytes}");
                assert!(copy[..place].iter().chain(&copy[place + bytes..]).all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn rows_of_every_length_are_copied() {
        for length in (1..80).chain([127, 128, 129, 255, 256, 257, 300]) {
            let (rows, size) = (5, 4);
            let count = (rows * (length + 3)) as usize * 4;
            let source: Vec<u8> = (0..count).map(|byte| (byte * 7 % 251) as u8).collect();
            let mut target = vec![255u8; count];
            let (from, to) = ([(length + 3) * size, size], [(length + 1) * size, size]);
            // SAFETY: the steps stay inside the vectors.
            unsafe {
                let whole = axes(&[rows, length], [&to, &from], |_| true);
                let tiles = Tiles::new(whole, [size as usize; 2], area(size as usize));
                let starts = [target.as_mut_ptr(), source.as_ptr().cast_mut()];
                copy_tiles(&tiles, 0..tiles.count(), size as usize, starts, length % 3 == 0);
            }
            for row in 0..rows {
                let start = |steps: [i64; 2]| (row * steps[0]) as usize;
                let bytes = (length * size) as usize;
                assert_eq!(target[start(to)..][..bytes], source[start(from)..][..bytes], "{length}");
                assert_eq!(target[start(to) + bytes..][..4], [255; 4], "{length}");
            }
        }
    }
}
