//! Elements where a mask is true.

use std::hint::select_unpredictable;

use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, View, ViewMut};

use crate::cpu::mask::Mask;
use crate::cpu::row_major::{for_each_stretch, rows};
use crate::cpu::strides::broadcast_strides;

/// `self` with the elements of `source`, in row-major order, wherever the mask is true, in row-major
/// order too. `self` and the mask broadcast to the output's shape.
///
/// # Errors
/// If they do not broadcast, or `source` has fewer elements than the mask true ones.
pub fn masked_scatter<T: Element>(
    self_: View<'_, T>,
    mask: View<'_, bool>,
    source: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    masked_scatter_bits(self_.bits(), mask, source.bits(), unsafe { out.bits() })
}

#[inline(never)]
fn masked_scatter_bits<B: Element>(
    self_: View<'_, B>,
    mask: View<'_, bool>,
    source: View<'_, B>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let strides: Dims = broadcast_strides(self_.sizes(), self_.strides(), out.sizes())?;
    let (outer, row) = rows(out.sizes(), [&strides, out.strides()]);
    let strides: Dims = broadcast_strides(mask.sizes(), mask.strides(), out.sizes())?;
    // SAFETY: broadcast strides are 0 where the mask is repeated, so every position is that of one of its elements.
    let mask = Mask::new(&unsafe { View::from_raw(mask.as_ptr(), out.sizes(), &strides) });
    if mask.total() > source.numel() {
        return Err(too_few(&source));
    }
    let mut copied = Scratch::new();
    let elements = source.as_slice().unwrap_or_else(|| {
        copied.extend(source.iter().take(mask.total()));
        &copied[..]
    });
    let (own, target) = (Shared(self_.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    mask.share(&|chunk| {
        let (mut left, mut number) = (chunk.flags, chunk.numbers.start);
        for_each_stretch(&outer, row, chunk.elements(), &mut |[from, to], length| {
            let (flags, others) = left.split_at(length);
            left = others;
            let (from, to) = (own.at(from).cast_const(), target.at(to));
            // SAFETY: the stretches lie in the views, and the source has as many elements as there are true flags.
            number = unsafe { choose_row(flags, [from, elements.as_ptr()], row.steps, number, to) };
        });
    });
    Ok(())
}

/// Writes for each flag an element of the first row, or, if it is true, the next one of the second, from this number on.
/// Returns the number of the next one.
///
/// # Safety
/// As many elements as there are flags, at these steps, are valid for reads in the first row and for writes from `to` on, and
/// as many as there are true ones in the second.
unsafe fn choose_row<B: Copy>(
    flags: &[u8],
    [own, elements]: [*const B; 2],
    [step, to_step]: [i64; 2],
    mut number: usize,
    to: *mut B,
) -> usize {
    for (at, flag) in flags.iter().enumerate() {
        let own = own.wrapping_offset(at as isize * step as isize);
        // Addresses, since a branch for each flag takes longer.
        let element = select_unpredictable(*flag != 0, elements.wrapping_add(number), own);
        // SAFETY: the caller's promise.
        unsafe { *to.offset(at as isize * to_step as isize) = *element };
        number += usize::from(*flag != 0);
    }
    number
}

#[cold]
fn too_few<T: Element>(source: &View<'_, T>) -> Error {
    Error::shape(format!("source has {} elements, the mask has more that are true", source.numel()))
        .with_help("give as many elements as the mask selects")
}

#[cfg(test)]
mod tests {
    use opsmith_runtime::parallel;

    use super::*;
    use crate::cpu::mask::tests::{masks, numbers};
    use crate::cpu::pick::masked_scatter_backward;
    use crate::cpu::testing::Array;

    #[test]
    fn elements_are_put_where_the_mask_is_true() {
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            for mask in masks() {
                let (numbers, count) = (numbers(&mask), mask.to_vec().len() as i64);
                let own = Array::new(&mask.sizes, -count..0);
                let source = Array::new(&[2 * count + 2], 0..2 * count + 2);
                let mut expected = own.to_vec();
                numbers.iter().enumerate().for_each(|(at, number)| expected[*number] = at as i64);
                let mut out = Array::zeros(&mask.sizes);
                masked_scatter(own.view(), mask.view(), source.view(), out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected);
                numbers.iter().enumerate().for_each(|(at, number)| expected[*number] = 2 * at as i64);
                let source = source.halved(0);
                masked_scatter(own.view(), mask.view(), source.view(), out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected);
                // A gradient of more elements than there are true flags, and of fewer.
                for count in [numbers.len() + 3, numbers.len() / 2] {
                    let mut out = Array::new(&[count as i64], vec![7; count]);
                    masked_scatter_backward(own.view(), mask.view(), out.view_mut()).unwrap();
                    let data = own.to_vec();
                    let picked = numbers.iter().map(|number| data[*number]).chain([0; 3]);
                    assert!(out.to_vec().into_iter().eq(picked.take(count)));
                }
                if let Some(few) = numbers.len().checked_sub(1) {
                    let few = Array::zeros(&[few as i64]);
                    assert!(masked_scatter(own.view(), mask.view(), few.view(), out.view_mut()).is_err());
                }
            }
        }
    }
}
