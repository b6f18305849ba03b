//! Copying elements between views of any strides.

use opsmith_runtime::axes::{Axis, Walk, axes, merge};
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
        return unsafe { std::ptr::copy_nonoverlapping(source, target, length) };
    }
    for index in 0..length as isize {
        // SAFETY: the caller's promise.
        unsafe {
            *target.offset(index * target_step as isize) = *source.offset(index * source_step as isize);
        }
    }
}

/// Copies a view, broadcast to the output's shape, into the output.
///
/// # Errors
/// If the view does not broadcast to that shape.
#[inline]
pub(crate) fn copy_into<T: Element>(source: &View<'_, T>, out: &mut ViewMut<'_, T>) -> Result<()> {
    // SAFETY: elements are moved.
    copy_bits(&source.bits(), &mut unsafe { out.bits() })
}

#[inline(never)]
fn copy_bits<B: Element>(source: &View<'_, B>, out: &mut ViewMut<'_, B>) -> Result<()> {
    let strides = broadcast_strides(source.sizes(), source.strides(), out.sizes())?;
    let mut outer = merge(axes(out.sizes(), [&strides, out.strides()], |_| true));
    let row = outer.pop().unwrap_or(Axis { size: 1, steps: [1, 1] });
    let target = out.as_mut_ptr();
    for [from, to] in Walk::new(&outer) {
        // SAFETY: the walk's rows are rows of the two views, which the borrow checker keeps apart.
        unsafe {
            copy_row(
                source.as_ptr().offset(from as isize),
                row.steps[0],
                target.offset(to as isize),
                row.steps[1],
                row.size as usize,
            );
        }
    }
    Ok(())
}

/// Calls `body` with the output's elements as a row-major slice: the output itself if it is
/// contiguous, else a buffer that is copied into it afterwards.
///
/// # Errors
/// None: the buffer has as many elements.
pub(crate) fn with_slice<T: Element>(out: &mut ViewMut<'_, T>, body: impl FnOnce(&mut [T])) -> Result<()> {
    if out.is_contiguous() {
        // A view that is contiguous has a slice; the empty one stands for no elements.
        body(out.as_mut_slice().unwrap_or(&mut []));
        return Ok(());
    }
    let mut elements = Scratch::filled(T::default(), out.numel());
    body(&mut elements);
    out.write(elements)
}
