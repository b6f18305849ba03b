//! Elements at other places: stacked, repeated, mirrored, moved, padded, and picked by a mask.

mod moved;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::{Dims, Element, Error, Result, Scalar, View, ViewMut};

use super::copy::{copy_into, with_slice};
use super::fill::fill_with;
use super::mask::Mask;
use super::strides::{broadcast_strides, expect_sizes};
use crate::infer;
pub use moved::{flip, roll};

/// Tensors joined along a new dimension: `[1, 2]` and `[3, 4]` along 1 are `[[1, 3], [2, 4]]`.
///
/// # Errors
/// If the shapes do not fit together.
pub fn stack<T: Element>(tensors: &[View<'_, T>], dim: i64, mut out: ViewMut<'_, T>) -> Result<()> {
    let (sizes, strides, step) = slice_of(out.sizes(), out.strides(), dim, tensors.len())?;
    for (number, tensor) in tensors.iter().enumerate() {
        expect_sizes(tensor.sizes(), &sizes)?;
        let start = out.as_mut_ptr().wrapping_offset(step as isize * number as isize);
        // SAFETY: slice `number` of the output, which is borrowed uniquely meanwhile.
        copy_into(tensor, &mut unsafe { ViewMut::from_raw(start, &sizes, &strides) })?;
    }
    Ok(())
}

/// Sizes and strides of each slice along a dimension, and the elements from one slice to the next.
fn slice_of(sizes: &[i64], strides: &[i64], dim: i64, count: usize) -> Result<(Dims, Dims, i64)> {
    let dim = wrap_dim(dim, sizes.len())?;
    let (mut sizes, mut strides): (Dims, Dims) = (sizes.into(), strides.into());
    if dim >= sizes.len() || sizes[dim] != count as i64 {
        return Err(Error::shape(format!("{count} tensors do not fill the output")));
    }
    sizes.remove(dim);
    let step = strides.remove(dim);
    Ok((sizes, strides, step))
}

/// A tensor repeated along each dimension: `[1, 2]` twice is `[1, 2, 1, 2]`.
///
/// # Errors
/// If the output's shape is not that of the repetitions.
pub fn repeat<T: Element>(self_: View<'_, T>, repeats: &[i64], mut out: ViewMut<'_, T>) -> Result<()> {
    let all = Repetitions::new(self_.sizes(), self_.strides(), repeats, out.sizes(), out.strides())?;
    // SAFETY: the same elements under more dimensions, those of size 1 aside.
    let source = unsafe { View::from_raw(self_.as_ptr(), &all.source_sizes, &all.source_strides) };
    // SAFETY: `Repetitions` splits the output's dimensions into two each, of the same elements; `out` is borrowed uniquely
    // and not used meanwhile.
    let mut target = unsafe { ViewMut::from_raw(out.as_mut_ptr(), &all.sizes, &all.strides) };
    copy_into(&source, &mut target)
}

/// Each dimension of an output as two: which repetition, and where in it; and the source's elements beside them.
struct Repetitions {
    sizes: Dims,
    strides: Dims,
    source_sizes: Dims,
    source_strides: Dims,
}

impl Repetitions {
    fn new(
        own_sizes: &[i64],
        own_strides: &[i64],
        repeats: &[i64],
        out_sizes: &[i64],
        out_strides: &[i64],
    ) -> Result<Repetitions> {
        let sizes = infer::repeat_groups(own_sizes, repeats)?;
        let groups = || sizes.chunks_exact(2);
        let expected: Dims = groups().map(|group| group[0] * group[1]).collect();
        expect_sizes(out_sizes, &expected)?;
        let strides =
            groups().zip(out_strides).flat_map(|(group, &stride)| [stride * group[1], stride]).collect();
        let source_sizes = groups().flat_map(|group| [1, group[1]]).collect();
        let new = repeats.len() - own_sizes.len();
        let source_strides = (0..repeats.len())
            .flat_map(|dim| [0, if dim < new { 0 } else { own_strides[dim - new] }])
            .collect();
        Ok(Repetitions { sizes, strides, source_sizes, source_strides })
    }
}

/// A tensor with a value around it; `pad` holds how much before and after each dimension, from the last
/// one on, and cuts off where it is negative.
///
/// # Errors
/// If the output's shape is not the padded one.
pub fn constant_pad_nd<T: Element>(
    self_: View<'_, T>,
    pad: &[i64],
    value: Scalar,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    if pad.iter().any(|&pad| pad > 0) {
        fill_with(&mut out, T::from_scalar(value));
    }
    // SAFETY: elements are moved.
    pad_bits(self_.bits(), pad, unsafe { out.bits() })
}

/// Copies the rest of the input after cutting to its place in the output.
#[inline(never)]
fn pad_bits<B: Element>(self_: View<'_, B>, pad: &[i64], mut out: ViewMut<'_, B>) -> Result<()> {
    let rank = self_.dim();
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > rank || out.dim() != rank {
        return Err(Error::shape("there are not two numbers for each padded dimension"));
    }
    let mut sizes: Dims = self_.sizes().into();
    let (mut from, mut to) = (0, 0);
    for (place, pad) in pad.chunks_exact(2).enumerate() {
        let dim = rank - 1 - place;
        let (before, after) = (pad[0], pad[1]);
        if out.sizes()[dim] != self_.sizes()[dim] + before + after {
            return Err(Error::shape("the output's shape is not the padded one"));
        }
        sizes[dim] += before.min(0) + after.min(0);
        if sizes[dim] <= 0 {
            return Ok(());
        }
        from += self_.strides()[dim] * (-before).max(0);
        to += out.strides()[dim] * before.max(0);
    }
    let (from, to) =
        (self_.as_ptr().wrapping_offset(from as isize), out.as_mut_ptr().wrapping_offset(to as isize));
    // SAFETY: the rest of the input after cutting, and its place in the output.
    let (source, mut target) = unsafe {
        (View::from_raw(from, &sizes, self_.strides()), ViewMut::from_raw(to, &sizes, out.strides()))
    };
    copy_into(&source, &mut target)
}

/// The indices of the elements that are not zero, a row each, in row-major order.
///
/// # Errors
/// If the output does not have a row for each of them.
pub fn nonzero<T: Element<Compute: Arithmetic>>(self_: View<'_, T>, out: ViewMut<'_, i64>) -> Result<()> {
    write_indices(&Mask::new(&self_), self_.sizes(), out)
}

fn write_indices(mask: &Mask<'_>, sizes: &[i64], mut out: ViewMut<'_, i64>) -> Result<()> {
    expect_sizes(out.sizes(), &[mask.total() as i64, sizes.len() as i64])?;
    with_slice(&mut out, |out| mask.write_indices(sizes, out))
}

/// The elements where the mask holds, both broadcast, in row-major order.
///
/// # Errors
/// If the two do not broadcast, or the output has not as many elements.
pub fn masked_select<T: Element>(
    self_: View<'_, T>,
    mask: View<'_, bool>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    masked_select_bits(self_.bits(), mask, unsafe { out.bits() })
}

#[inline(never)]
fn masked_select_bits<B: Element>(
    self_: View<'_, B>,
    mask: View<'_, bool>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let sizes = together(self_.sizes(), mask.sizes());
    let own = broadcast_strides(self_.sizes(), self_.strides(), &sizes)?;
    let others = broadcast_strides(mask.sizes(), mask.strides(), &sizes)?;
    // SAFETY: broadcast strides are 0 where a view is repeated, so every position is that of one of its elements.
    let (elements, mask) = unsafe {
        (View::from_raw(self_.as_ptr(), &sizes, &own), View::from_raw(mask.as_ptr(), &sizes, &others))
    };
    let mask = Mask::new(&mask);
    expect_sizes(out.sizes(), &[mask.total() as i64])?;
    with_slice(&mut out, |out| mask.pick(&elements, out))
}

/// The shape that two shapes broadcast to, if they do.
pub(crate) fn together(own: &[i64], other: &[i64]) -> Dims {
    let rank = own.len().max(other.len());
    let size = |sizes: &[i64], dim: usize| (dim + sizes.len()).checked_sub(rank).map_or(1, |at| sizes[at]);
    (0..rank)
        .map(|dim| match (size(own, dim), size(other, dim)) {
            (own, 1) => own,
            (_, other) => other,
        })
        .collect()
}

/// The elements where the mask holds, in row-major order, then zeros.
///
/// # Errors
/// If the mask does not broadcast to the tensor's shape.
pub fn masked_scatter_backward<T: Element>(
    grad_output: View<'_, T>,
    mask: View<'_, bool>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // SAFETY: elements are moved.
    masked_scatter_backward_bits(grad_output.bits(), mask, unsafe { out.bits() })
}

#[inline(never)]
fn masked_scatter_backward_bits<B: Element>(
    grad_output: View<'_, B>,
    mask: View<'_, bool>,
    mut out: ViewMut<'_, B>,
) -> Result<()> {
    let strides = broadcast_strides(mask.sizes(), mask.strides(), grad_output.sizes())?;
    // SAFETY: broadcast strides are 0 where the mask is repeated, so every position is that of one of its elements.
    let mask = unsafe { View::from_raw(mask.as_ptr(), grad_output.sizes(), &strides) };
    let mask = Mask::new(&mask);
    with_slice(&mut out, |out| {
        mask.pick(&grad_output, out);
        let picked = mask.total().min(out.len());
        out[picked..].fill(B::default());
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    #[test]
    fn stacks_and_repetitions() {
        let (a, b) = (Array::new(&[2], [1, 2]), Array::new(&[2], [3, 4]));
        let mut out = Array::zeros(&[2, 2]);
        stack(&[a.view(), b.view()], 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 3, 2, 4]);
        let mut out = Array::zeros(&[2, 6]);
        repeat(a.view(), &[2, 3], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]);
    }

    #[test]
    fn padding_adds_and_cuts() {
        let a = Array::new(&[2, 3], [1, 2, 3, 4, 5, 6]);
        let mut out = Array::zeros(&[3, 3]);
        constant_pad_nd(a.view(), &[-1, 1, 0, 1], Scalar::Int(9), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [2, 3, 9, 5, 6, 9, 9, 9, 9]);
    }

    #[test]
    fn picked_by_a_mask() {
        let a = Array::new(&[2, 2], [0.0f32, f32::NAN, 0.0, 2.0]);
        let mut out = Array::zeros(&[2, 2]);
        nonzero(a.view(), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 1, 1, 1]);
        let (b, mask) = (Array::new(&[2, 1], [1, 2]), Array::new(&[2], [true, true]));
        let mut out = Array::zeros(&[4]);
        masked_select(b.view(), mask.view(), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1, 1, 2, 2]);
    }
}
