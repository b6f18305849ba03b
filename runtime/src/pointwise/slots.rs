//! Elements of an operand in a block: copied from the tensor and back, shorter floats converted to `f32` and back, integers of
//! four bits to `i64`.
//!
//! In: addresses and steps in bytes. Out: the elements one after the other, in the type that the loop wants. Must know no
//! operator.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;

use opsmith_core::DType;

use super::Rows;
use crate::axes::TILE_BYTES;
use crate::element::Element;
use crate::halves::Half;
use crate::moves::{move_row, transpose_elements};
use crate::simd::widest;

/// An operand's dtype, and bytes from one element to the next, where the loop wants them.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub dtype: DType,
    pub step: isize,
}

impl Slot {
    /// The dtype, if the loop wants another, which is longer: a loop over short floats takes them as they are.
    fn converted(self) -> Option<DType> {
        (self.dtype.size() as isize != self.step).then_some(self.dtype)
    }

    /// A dtype of the size that the loop wants.
    pub fn wanted(self) -> DType {
        if self.converted().is_some() { self.dtype.to_compute() } else { self.dtype }
    }
}

/// Copied elements of one operand. A cell, so that an address stays valid when the next one is taken.
#[repr(align(64))]
pub(super) struct Block<const BYTES: usize>(UnsafeCell<MaybeUninit<[u8; BYTES]>>);

impl<const BYTES: usize> Block<BYTES> {
    pub const fn new() -> Block<BYTES> {
        Block(UnsafeCell::new(MaybeUninit::uninit()))
    }

    pub fn pointer(&self) -> *mut u8 {
        self.0.get().cast()
    }
}

/// Copies bytes into a block or out of one, in parts of a cache line, as the system's copy does not at this length.
///
/// # Safety
/// As many bytes are valid for reads and for writes; they do not overlap.
pub(super) unsafe fn copy_block(from: *const u8, to: *mut u8, bytes: usize) {
    const LINE: usize = 64;
    // SAFETY: the caller's promise.
    unsafe {
        // One element of most types, without a call.
        match bytes {
            4 => return to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            8 => return to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            _ => {}
        }
    }
    widest(
        #[inline(always)]
        move || {
            let whole = bytes / LINE * LINE;
            // SAFETY: the caller's promise.
            unsafe {
                for at in (0..whole).step_by(LINE) {
                    let line = from.add(at).cast::<[u64; LINE / 8]>().read_unaligned();
                    to.add(at).cast::<[u64; LINE / 8]>().write_unaligned(line);
                }
                to.add(whole).copy_from_nonoverlapping(from.add(whole), bytes - whole);
            }
        },
    );
}

/// Copies between tensors and blocks, with an arm for each dtype that is converted.
macro_rules! block_copies {
    (
        [[$({ $int:ident: $integer:ty, $byte:tt })*] [$({ $stored:ident: $short:ty, $bytes:tt })*]]
        $({ $half:ident: $rust:ty, $size:tt })*
    ) => {
        /// Copies elements into a block, shorter ones as the dtype that they compute in if the loop wants that.
        ///
        /// # Safety
        /// As many elements are valid for reads, at these steps; the block has room for them.
        pub(super) unsafe fn load(slot: Slot, from: *const u8, step: isize, block: *mut u8, length: usize) {
            // SAFETY: the caller's promises are those of each function.
            unsafe {
                match (slot.converted(), slot.dtype.size()) {
                    $((Some(DType::$half), _) => {
                        widen(from, step, block, length, <$rust as Element>::to_compute, <$rust as Half>::widen_into)
                    })*
                    $((Some(DType::$stored), _) => widen(from, step, block, length, <$short>::to_f32, |from, to| {
                        from.iter().zip(to).for_each(|(from, to)| _ = to.write(from.to_f32()));
                    }),)*
                    $((Some(DType::$int), _) => widen(from, step, block, length, <$integer>::to_i64, |from, to| {
                        from.iter().zip(to).for_each(|(from, to)| _ = to.write(from.to_i64()));
                    }),)*
                    (_, size) => move_row(size, from, step, block, size as isize, length),
                }
            }
        }

        /// Copies elements out of a block, as shorter ones where the tensor has them.
        ///
        /// # Safety
        /// The block has as many elements; as many are valid for writes, at these steps.
        pub(super) unsafe fn store(slot: Slot, block: *const u8, to: *mut u8, step: isize, length: usize) {
            // SAFETY: the caller's promises are those of each function.
            unsafe {
                match (slot.converted(), slot.dtype.size()) {
                    $((Some(DType::$half), _) => {
                        narrow(block, to, step, length, <$rust>::from_f32, |to, from| <$rust as Half>::narrow(from, to))
                    })*
                    $((Some(DType::$stored), _) => narrow(block, to, step, length, <$short>::from_f32, |to, from| {
                        from.iter().zip(to).for_each(|(from, to)| *to = <$short>::from_f32(*from));
                    }),)*
                    $((Some(DType::$int), _) => narrow(block, to, step, length, <$integer>::from_i64, |to, from| {
                        from.iter().zip(to).for_each(|(from, to)| *to = <$integer>::from_i64(*from));
                    }),)*
                    (_, size) => move_row(size, block, size as isize, to, step, length),
                }
            }
        }
    };
}

/// Calls [`block_copies!`] with the integers that only store in brackets, the floats that do, then those that compute in `f32`.
macro_rules! with_floats {
    ($($int:tt)*) => {
        opsmith_core::for_each_stored_float! { [$($int)*] with_halves }
    };
}

macro_rules! with_halves {
    ([$($int:tt)*] $($stored:tt)*) => {
        opsmith_core::for_each_half! { [[$($int)*] [$($stored)*]] block_copies }
    };
}

opsmith_core::for_each_stored_int!(with_floats);

/// Copies the rows of a tile into a block, one after the other, as [`load`] does.
///
/// # Safety
/// Elements that are `step` apart along a row and neighbours from row to row are valid for reads; the block has room for them.
pub(super) unsafe fn load_transposed(
    slot: Slot,
    from: *const u8,
    step: isize,
    block: *mut u8,
    rows: &Rows<'_>,
) {
    let (count, length, size) = (rows.count, rows.first.length, slot.dtype.size());
    let line = (length * size) as isize;
    // SAFETY: the places are those that the caller promises, and the converted ones those of two blocks.
    unsafe {
        if slot.converted().is_none() {
            return transpose_elements(size, from, step, length, block, line, count);
        }
        let halves = Block::<TILE_BYTES>::new();
        transpose_elements(size, from, step, length, halves.pointer(), line, count);
        for row in 0..count as isize {
            let from = halves.pointer().offset(row * line);
            load(slot, from, size as isize, block.offset(row * slot.step * length as isize), length);
        }
    }
}

/// Copies the rows of a tile out of a block, as [`store`] does.
///
/// # Safety
/// The block has the rows, one after the other; elements that are `step` apart along a row and neighbours from row to row are
/// valid for writes.
pub(super) unsafe fn store_transposed(
    slot: Slot,
    block: *const u8,
    to: *mut u8,
    step: isize,
    rows: &Rows<'_>,
) {
    let (count, length, size) = (rows.count, rows.first.length, slot.dtype.size());
    let line = (length * size) as isize;
    // SAFETY: the places are those that the caller promises, and the converted ones those of two blocks.
    unsafe {
        if slot.converted().is_none() {
            return transpose_elements(size, block, line, count, to, step, length);
        }
        let halves = Block::<TILE_BYTES>::new();
        halves.pointer().write_bytes(0, TILE_BYTES);
        for row in 0..count as isize {
            let from = block.offset(row * slot.step * length as isize);
            store(slot, from, halves.pointer().offset(row * line), size as isize, length);
        }
        transpose_elements(size, halves.pointer(), line, count, to, step, length);
    }
}

/// # Safety
/// As [`load`], of elements of type `H` that compute in `C`.
unsafe fn widen<H: Copy, C: Copy>(
    from: *const u8,
    step: isize,
    block: *mut u8,
    length: usize,
    convert: impl Fn(H) -> C,
    convert_slice: impl Fn(&[H], &mut [MaybeUninit<C>]),
) {
    let block = block.cast::<C>();
    // SAFETY: the places are those that the caller promises; elements lie at multiples of their size.
    unsafe {
        if step == size_of::<H>() as isize {
            let halves = std::slice::from_raw_parts(from.cast::<H>(), length);
            return convert_slice(halves, std::slice::from_raw_parts_mut(block.cast(), length));
        }
        if step == 0 {
            let element = convert(from.cast::<H>().read());
            return (0..length).for_each(|index| block.add(index).write(element));
        }
        (0..length).for_each(|index| {
            block.add(index).write(convert(from.offset(step * index as isize).cast::<H>().read()));
        });
    }
}

/// # Safety
/// As [`store`], of elements of type `H` that compute in `C`.
unsafe fn narrow<H: Copy, C: Copy>(
    block: *const u8,
    to: *mut u8,
    step: isize,
    length: usize,
    convert: impl Fn(C) -> H,
    convert_slice: impl Fn(&mut [H], &[C]),
) {
    // SAFETY: the places are those that the caller promises; elements lie at multiples of their size, and the memory of
    // tensors is initialised.
    unsafe {
        let singles = std::slice::from_raw_parts(block.cast::<C>(), length);
        if step == size_of::<H>() as isize {
            return convert_slice(std::slice::from_raw_parts_mut(to.cast::<H>(), length), singles);
        }
        for (index, single) in singles.iter().enumerate() {
            to.offset(step * index as isize).cast::<H>().write(convert(*single));
        }
    }
}
