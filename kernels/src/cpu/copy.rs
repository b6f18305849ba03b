//! Copying elements between views of any strides.

use opsmith_runtime::axes::axes;
use opsmith_runtime::copy::{copy_bytes, copy_part};
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::strides::broadcast_strides;

/// Copies `length` elements from one row to another.
///
/// # Safety
/// `length` elements, `source_step` apart from `source` on, are valid for reads, and those from
/// `target` on for writes; the rows do not overlap.
#[inline]
pub(crate) unsafe fn copy_row<T: Copy>(
    source: *const T,
    source_step: i64,
    target: *mut T,
    target_step: i64,
    length: usize,
) {
    if source_step == 1 && target_step == 1 {
        // SAFETY: the caller's promise.
        return unsafe { copy_bytes(source.cast(), target.cast(), length * size_of::<T>()) };
    }
    for index in 0..length as isize {
        // SAFETY: the caller's promise.
        unsafe {
            *target.offset(index * target_step as isize) = *source.offset(index * source_step as isize);
        }
    }
}

/// Elements along two axes: the address of the first, and the elements from one to the next along both.
#[derive(Clone, Copy)]
pub(crate) struct Plane<P> {
    pub data: P,
    pub steps: [i64; 2],
}

/// Copies elements along two axes, converted, one after the other along the second.
///
/// # Safety
/// All elements of `source` are valid for reads, those of `target` for writes, and they do not overlap.
#[inline]
pub(crate) unsafe fn copy_plane<S: Copy, T>(
    [rows, columns]: [usize; 2],
    target: Plane<*mut T>,
    source: Plane<*const S>,
    convert: impl Fn(S) -> T,
) {
    let ([down, along], [from_down, from_along]) = (target.steps, source.steps);
    for row in 0..rows as isize {
        let to = target.data.wrapping_offset(row * down as isize);
        let from = source.data.wrapping_offset(row * from_down as isize);
        // SAFETY: the caller's promise.
        unsafe {
            if along == 1 && from_along == 1 {
                for column in 0..columns {
                    to.add(column).write(convert(*from.add(column)));
                }
            } else {
                for column in 0..columns as isize {
                    let element = *from.offset(column * from_along as isize);
                    to.offset(column * along as isize).write(convert(element));
                }
            }
        }
    }
}

/// Bytes of a row, at most, that [`prefetch`] asks for: half of the lines that a first cache waits for at once.
const AHEAD: usize = 2048;

/// Asks for the first elements of a row, which will be read and written soon, where processors have an instruction for it.
#[inline(always)]
pub(crate) fn prefetch<T>(start: *const T, length: usize) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..AHEAD.min(length * size_of::<T>())).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this architecture has the instruction, which reads no memory for the program.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(byte)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, length);
}

/// Joins each of `length` elements of a row with one of another: `target = join(target, source)`, in this order.
///
/// # Safety
/// As [`copy_row`]; the elements of `target` may be one.
#[inline(always)]
pub(crate) unsafe fn join_row<T: Copy>(
    source: *const T,
    source_step: i64,
    target: *mut T,
    target_step: i64,
    length: usize,
    join: impl Fn(T, T) -> T,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if source_step == 1 && target_step == 1 {
            for index in 0..length {
                *target.add(index) = join(*target.add(index), *source.add(index));
            }
            return;
        }
        for index in 0..length as isize {
            let target = target.offset(index * target_step as isize);
            *target = join(*target, *source.offset(index * source_step as isize));
        }
    }
}

/// Copies a view, broadcast to the output's shape, into the output.
///
/// # Errors
/// If the view does not broadcast to that shape.
#[inline]
pub(crate) fn copy_into<T: Element>(source: &View<'_, T>, out: &mut ViewMut<'_, T>) -> Result<()> {
    copy_into_part(source, out, out.numel())
}

/// As [`copy_into`], into a part of a result of so many elements.
///
/// # Errors
/// As [`copy_into`].
#[inline]
pub(crate) fn copy_into_part<T: Element>(
    source: &View<'_, T>,
    out: &mut ViewMut<'_, T>,
    whole: usize,
) -> Result<()> {
    // SAFETY: elements are moved.
    copy_bits(&source.bits(), &mut unsafe { out.bits() }, whole)
}

#[inline(never)]
fn copy_bits<B: Element>(source: &View<'_, B>, out: &mut ViewMut<'_, B>, whole: usize) -> Result<()> {
    let strides = broadcast_strides(source.sizes(), source.strides(), out.sizes())?;
    let size = size_of::<B>();
    let mut places = axes(out.sizes(), [out.strides(), &strides], |_| true);
    for axis in &mut places {
        axis.steps = axis.steps.map(|step| step.wrapping_mul(size as i64));
    }
    let (target, whole) = (out.as_mut_ptr().cast(), whole.saturating_mul(size));
    // SAFETY: the positions are those of the two views, which the borrow checker keeps apart.
    unsafe { copy_part(places, size, target, source.as_ptr().cast(), whole) };
    Ok(())
}

/// Calls `body` with the output's elements as a row-major slice: the output itself if it is
/// contiguous, else a buffer that is copied into it afterwards.
///
/// # Errors
/// None: the buffer has as many elements.
pub(crate) fn with_slice<T: Element>(out: &mut ViewMut<'_, T>, body: impl FnOnce(&mut [T])) -> Result<()> {
    let (is_contiguous, mut buffer) = (out.is_contiguous(), Scratch::new());
    // One call, since each place of a call is compiled.
    body(if is_contiguous {
        // A view that is contiguous has a slice; the empty one stands for no elements.
        out.as_mut_slice().unwrap_or(&mut [])
    } else {
        buffer.resize(out.numel(), T::default());
        &mut buffer[..]
    });
    if is_contiguous { Ok(()) } else { out.write(buffer) }
}

/// As [`with_slice`], for several outputs.
///
/// # Errors
/// None: each buffer has as many elements.
pub(crate) fn with_slices<T: Element, const N: usize>(
    outs: &mut [ViewMut<'_, T>; N],
    body: impl FnOnce([&mut [T]; N]),
) -> Result<()> {
    let mut buffers = [const { Scratch::new() }; N];
    let mut unused = buffers.iter_mut();
    body(outs.each_mut().map(|out| match unused.next() {
        Some(buffer) if !out.is_contiguous() => {
            buffer.resize(out.numel(), T::default());
            &mut buffer[..]
        }
        _ => out.as_mut_slice().unwrap_or(&mut []),
    }));
    for (out, buffer) in outs.iter_mut().zip(buffers) {
        if !out.is_contiguous() {
            out.write(buffer)?;
        }
    }
    Ok(())
}
