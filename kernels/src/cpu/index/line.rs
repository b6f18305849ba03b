//! Single elements at the indices of one line.
//!
//! In: indices one after the other. Out: whether all are in range, and copies of the elements there. Indices are checked many at
//! once, since a branch for each takes longer than its element.

use opsmith_runtime::Result;
use opsmith_runtime::simd::widest;

use super::{checked, wrapped};

/// Refuses indices out of a dimension of so many elements; the error names the first.
pub(super) fn check(index: &[i64], size: i64, dim: usize) -> Result<()> {
    let misses = widest(
        #[inline(always)]
        move || index.iter().fold(false, |any, &index| any | (index as u64 >= size as u64)),
    );
    if misses {
        index.iter().try_for_each(|&index| checked(index, size, dim).map(drop))?;
    }
    Ok(())
}

/// As [`check`], with indices that count from the end.
pub(super) fn check_wrapped(index: &[i64], size: i64, dim: usize) -> Result<()> {
    let misses = widest(
        #[inline(always)]
        move || {
            let misses = |index: i64| index.wrapping_add(size) as u64 >= 2 * size as u64;
            index.iter().fold(false, |any, &index| any | misses(index))
        },
    );
    if misses {
        index.iter().try_for_each(|&index| wrapped(index, size, dim).map(drop))?;
    }
    Ok(())
}

/// Copies the elements of a line at indices, of which negative ones count from its end.
///
/// # Safety
/// The line's `size` elements, `step` apart from `source` on, are valid for reads, and as many elements as there are indices,
/// `target_step` apart from `target` on, for writes; the two do not overlap. The indices are in range.
#[inline]
pub(super) unsafe fn copy_at<B: Copy>(
    source: *const B,
    step: i64,
    size: i64,
    index: &[i64],
    target: *mut B,
    target_step: i64,
) {
    let place = |index: i64| (index + (index >> 63 & size)) as isize;
    if step == 1 && target_step == 1 {
        for (number, &index) in index.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { *target.add(number) = *source.offset(place(index)) };
        }
        return;
    }
    for (number, &index) in (0..).zip(index) {
        // SAFETY: the caller's promise.
        unsafe {
            *target.offset(number * target_step as isize) = *source.offset(place(index) * step as isize)
        };
    }
}

/// Joins elements, one after the other, with those of a line at indices: `target = join(target, source)`.
///
/// # Safety
/// As many elements as there are indices, `source_step` apart from `source` on, are valid for reads, and the line's, `step` apart from
/// `target` on, for reads and writes; the two do not overlap. The indices are in range.
#[inline]
pub(super) unsafe fn join<T: Copy>(
    source: *const T,
    source_step: i64,
    index: &[i64],
    target: *mut T,
    step: i64,
    join: impl Fn(T, T) -> T,
) {
    for (number, &index) in (0..).zip(index) {
        // SAFETY: the caller's promise.
        unsafe {
            let target = target.offset((index * step) as isize);
            *target = join(*target, *source.offset(number * source_step as isize));
        }
    }
}
