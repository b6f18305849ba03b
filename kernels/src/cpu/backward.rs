//! Kernels that only gradient formulas need: sums back over broadcast dimensions, and the gradients of
//! views, whose elements go back to where they came from.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::wrap_dim;
use opsmith_runtime::view::Positions;
use opsmith_runtime::{Dims, Element, Error, Layout, Result, Scalar, Scratch, View, ViewMut};

use super::copy::copy_into;
use super::fill::fill_with;
use super::join::layout;
use super::reduce;
use super::strides::{expect_operand, expect_sizes};
use crate::math::{Number, conj};
use crate::views;

/// Sums a view over the dimensions that broadcasting added or widened: `[[1, 2], [3, 4]]` to `[1, 2]` is
/// `[[4, 6]]`.
///
/// # Errors
/// If the output's shape does not broadcast to the view's.
pub fn sum_to_size<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    size: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let added = added_dims(self_.sizes(), size)?;
    expect_sizes(out.sizes(), size)?;
    // The output in the input's number of dimensions.
    let mut sizes = Dims::from_elem(1, added);
    sizes.extend_from_slice(size);
    let mut strides = Dims::from_elem(0, added);
    strides.extend_from_slice(out.strides());
    // SAFETY: dimensions of size 1 change nothing about which elements are reached; `out` is not used
    // meanwhile.
    let mut whole = unsafe { ViewMut::from_raw(out.as_mut_ptr(), &sizes, &strides) };
    let summed: Scratch<i64> =
        (0..sizes.len() as i64).filter(|&dim| sizes[dim as usize] != self_.sizes()[dim as usize]).collect();
    if summed.is_empty() {
        return copy_into(&self_, &mut whole);
    }
    reduce::sum(self_, Some(&summed), true, whole)
}

/// The dimensions that broadcasting from `size` adds.
///
/// # Errors
/// As [`sum_to_size`].
pub(crate) fn added_dims(sizes: &[i64], size: &[i64]) -> Result<usize> {
    let fits = |added: usize| {
        size.iter().zip(&sizes[added..]).all(|(&wanted, &given)| wanted == given || wanted == 1)
    };
    sizes.len().checked_sub(size.len()).filter(|&added| fits(added)).ok_or_else(|| {
        Error::shape(format!(
            "the shape {} cannot be summed to {}, because that does not broadcast to it",
            ShapeText(sizes),
            ShapeText(size)
        ))
    })
}

/// The gradient of `split_with_sizes`: the pieces one after the other, zeros for those without gradient.
///
/// # Errors
/// If the pieces do not fill the output.
pub fn split_with_sizes_backward<T: Element>(
    grads: &[Option<View<'_, T>>],
    split_sizes: &[i64],
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let whole = layout(out.sizes(), out.strides());
    put_parts(grads, &mut views::parts_of_sizes(&whole, split_sizes, dim)?, out)
}

/// The gradient of `unbind`: the slices one after the other, zeros for those without gradient.
///
/// # Errors
/// If there are not as many slices as the output has.
pub fn unbind_backward<T: Element>(
    grads: &[Option<View<'_, T>>],
    dim: i64,
    out: ViewMut<'_, T>,
) -> Result<()> {
    let whole = layout(out.sizes(), out.strides());
    put_parts(grads, &mut views::slices(&whole, dim)?, out)
}

#[inline(never)]
fn put_parts<T: Element>(
    grads: &[Option<View<'_, T>>],
    parts: &mut dyn ExactSizeIterator<Item = Result<Layout>>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    check_count(grads.len(), parts.len())?;
    for (grad, part) in grads.iter().zip(parts) {
        // SAFETY: elements are moved, or zero.
        put_bits(grad.map(View::bits).as_ref(), &part?, unsafe { out.bits() })?;
    }
    Ok(())
}

/// Copies a gradient to its part of the output; one that is not there is zero.
#[inline(never)]
fn put_bits<B: Element>(grad: Option<&View<'_, B>>, part: &Layout, mut out: ViewMut<'_, B>) -> Result<()> {
    if part.numel() == 0 {
        return Ok(());
    }
    let mut piece = part_of(&mut out, part);
    match grad {
        Some(grad) => copy_into(grad, &mut piece),
        None => piece.write(std::iter::repeat(B::default())),
    }
}

/// Refuses gradients for another number of pieces.
///
/// # Errors
/// As it says.
pub(crate) fn check_count(grads: usize, pieces: usize) -> Result<()> {
    match grads == pieces {
        true => Ok(()),
        false => Err(Error::shape(format!("{grads} gradients are given for {pieces} pieces"))),
    }
}

/// The gradient of `unfold`: each element of a window adds to the element it shows.
///
/// # Errors
/// If the windows' shape is not the gradient's.
pub fn unfold_backward<T: Element<Compute: Arithmetic>>(
    grad_in: View<'_, T>,
    dim: i64,
    size: i64,
    step: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    wrap_dim(dim, out.dim())?;
    let windows = views::unfold(&layout(out.sizes(), out.strides()), dim, size, step)?;
    expect_operand("grad_in", grad_in.sizes(), &windows.sizes)?;
    fill_with(&mut out, T::default());
    for (position, element) in Positions::new(&windows.sizes, &windows.strides).zip(grad_in.iter()) {
        // SAFETY: `unfold` shows elements of the output only, all of them written above.
        unsafe {
            let sum = Arithmetic::add(out.at(position).to_compute(), element.to_compute());
            out.set(position, T::from_compute(sum));
        }
    }
    Ok(())
}

/// The gradient of `as_strided`: each element of the gradient adds to the memory it showed, and every
/// element of the input takes the sum in its memory. Memory that the input shows several times is shared
/// out evenly.
///
/// `strides` and `offset` are the input's, whose sizes are the output's.
///
/// Source: PyTorch's `as_strided_backward`.
///
/// # Errors
/// If the gradient's shape is not `size`, or strides are missing.
pub fn as_strided_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    strides: &[i64],
    offset: i64,
    size: &[i64],
    stride: &[i64],
    storage_offset: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_operand("grad", grad_output.sizes(), size)?;
    let input = shown(out.sizes(), strides, offset)?;
    let view = shown(size, stride, storage_offset.unwrap_or(offset))?;
    through_memory(&grad_output, &view, &input, &input, &mut out)
}

/// The transpose of [`as_strided_backward`], and so its gradient: each element of the input adds its share
/// to the memory that it shows, and every element of the view takes the sum in its memory.
///
/// # Errors
/// If the input's shape is not `input_sizes`, or strides are missing.
pub fn as_strided_backward_backward<T: Element<Compute: Arithmetic>>(
    input: View<'_, T>,
    input_sizes: &[i64],
    strides: &[i64],
    offset: i64,
    stride: &[i64],
    storage_offset: Option<i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_operand("input", input.sizes(), input_sizes)?;
    let layout = shown(input_sizes, strides, offset)?;
    let view = shown(out.sizes(), stride, storage_offset.unwrap_or(offset))?;
    through_memory(&input, &layout, &view, &layout, &mut out)
}

/// A layout whose places are numbers.
///
/// # Errors
/// If strides are missing, or it reaches beyond any memory.
pub(crate) fn shown(sizes: &[i64], strides: &[i64], offset: i64) -> Result<Layout> {
    if strides.len() != sizes.len() {
        return Err(Error::shape("there is not a stride for each dimension"));
    }
    let layout = Layout { sizes: sizes.into(), strides: strides.into(), offset };
    // Differences of places inside are numbers, too.
    let inside = -(1 << 61)..1 << 61;
    match layout.extent() {
        Some((low, high)) if !inside.contains(&low) || !inside.contains(&high) => {
            Err(Error::shape("sizes, strides and offset reach beyond any memory"))
        }
        _ => Ok(layout),
    }
}

/// Adds elements up in the memory that `from` shows, and writes the part of it that `to` shows; memory that
/// `shared` shows several times is divided by that number.
fn through_memory<T: Element<Compute: Arithmetic>>(
    elements: &View<'_, T>,
    from: &Layout,
    to: &Layout,
    shared: &Layout,
    out: &mut ViewMut<'_, T>,
) -> Result<()> {
    let (Some((low, high)), Some((to_low, to_high))) = (from.extent(), to.extent()) else {
        out.write(std::iter::repeat_n(T::default(), out.numel()))?;
        return Ok(());
    };
    let (low, high) = (low.min(to_low), high.max(to_high));
    let cells = |layout| cells_of(layout, low);
    let (mut memory, reach) = (Scratch::new(), high.saturating_sub(low));
    memory.try_reserve_exact(reach as usize).map_err(|_| {
        Error::memory(format!("sizes and strides reach over {reach} elements, for which there is no memory"))
    })?;
    memory.resize(reach as usize, T::Compute::ZERO);
    for (cell, element) in cells(from).zip(elements.iter()) {
        memory[cell] = Arithmetic::add(memory[cell], element.to_compute());
    }
    if shared.has_internal_overlap() {
        let mut counts = Scratch::filled(0i64, memory.len());
        cells(shared).for_each(|cell| counts[cell] += 1);
        for (cell, &count) in memory.iter_mut().zip(&counts).filter(|(_, count)| **count > 1) {
            *cell = Arithmetic::div(*cell, T::Compute::from_scalar(Scalar::Int(count)));
        }
    }
    out.write(cells(to).map(|cell| T::from_compute(memory[cell])))
}

/// The elements of memory from `low` on that a layout shows, in its order.
fn cells_of(layout: &Layout, low: i64) -> impl Iterator<Item = usize> {
    let start = layout.offset - low;
    Positions::new(&layout.sizes, &layout.strides).map(move |at| (start + at) as usize)
}

/// The gradient of a running product along a dimension, exact where elements are zero too: the sum over
/// later places of their gradient times the product without the element.
///
/// # Errors
/// If there is no such dimension.
pub fn cumprod_backward<T: Element<Compute: Number>>(
    grad: View<'_, T>,
    input: View<'_, T>,
    dim: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_operand("grad", grad.sizes(), input.sizes())?;
    expect_sizes(out.sizes(), input.sizes())?;
    let dim = wrap_dim(dim, input.dim())?;
    let length = input.sizes().get(dim).map_or(1, |&size| size as usize);
    let inner: usize = input.sizes().iter().skip(dim + 1).map(|&size| size as usize).product();
    let (grads, elements) = (grad.to_contiguous(), input.to_contiguous());
    let mut result = Scratch::filled(T::default(), elements.len());
    let outer = elements.len().checked_div(length * inner).unwrap_or(0);
    for line in 0..outer * inner {
        let start = line / inner * length * inner + line % inner;
        let at = |place: usize| start + place * inner;
        let mut before = T::Compute::ONE;
        for place in 0..length {
            let (mut others, mut sum) = (before, T::Compute::ZERO);
            for later in place..length {
                if later > place {
                    others = Arithmetic::mul(others, elements[at(later)].to_compute());
                }
                let term = Arithmetic::mul(grads[at(later)].to_compute(), conj(others));
                sum = Arithmetic::add(sum, term);
                if others.equal(T::Compute::ZERO) {
                    break;
                }
            }
            result[at(place)] = T::from_compute(sum);
            before = Arithmetic::mul(before, elements[at(place)].to_compute());
        }
    }
    out.write(result)
}

/// Part of an output; the layout comes from a view function, which stays inside its input.
fn part_of<'a, T: Element>(out: &'a mut ViewMut<'_, T>, part: &'a Layout) -> ViewMut<'a, T> {
    let start = out.as_mut_ptr().wrapping_offset(part.offset as isize);
    // SAFETY: the part's elements are elements of `out`, which is borrowed uniquely meanwhile.
    unsafe { ViewMut::from_raw(start, &part.sizes, &part.strides) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;

    #[test]
    fn sums_go_back_over_broadcast_dimensions() {
        let grad = Array::new(&[2, 2, 3], 1..=12i32);
        let mut out = Array::zeros(&[2, 1]);
        sum_to_size(grad.view(), &[2, 1], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1 + 2 + 3 + 7 + 8 + 9, 4 + 5 + 6 + 10 + 11 + 12]);
        let mut out = Array::zeros(&[]);
        sum_to_size(grad.view(), &[], out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [78]);
        let mut out = Array::zeros(&[3]);
        assert!(sum_to_size(Array::new(&[2], [1, 2]).view(), &[3], out.view_mut()).is_err());
    }

    #[test]
    fn pieces_go_back_to_their_places() {
        let (a, c) = (Array::new(&[1, 2], [1, 2]), Array::new(&[1, 2], [5, 6]));
        let mut out = Array::new(&[3, 2], [9; 6]);
        split_with_sizes_backward(&[Some(a.view()), None, Some(c.view())], &[1, 1, 1], 0, out.view_mut())
            .unwrap();
        assert_eq!(out.to_vec(), [1, 2, 0, 0, 5, 6]);
        let row = Array::new(&[3], [1, 2, 3]);
        unbind_backward(&[None, Some(row.view())], 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0, 1, 0, 2, 0, 3]);
    }

    #[test]
    fn windows_add_up() {
        let grad = Array::new(&[3, 2], [1.0f32; 6]);
        let mut out = Array::zeros(&[4]);
        unfold_backward(grad.view(), 0, 2, 1, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 2.0, 2.0, 1.0]);
    }

    #[test]
    fn running_products_have_gradients_at_zeros() {
        let (grad, input) = (Array::new(&[3], [1.0f64; 3]), Array::new(&[3], [2.0, 0.0, 5.0]));
        let mut out = Array::zeros(&[3]);
        cumprod_backward(grad.view(), input.view(), 0, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 2.0 + 10.0, 0.0]);
    }

    #[test]
    fn memory_shown_several_times_adds_up_and_is_shared_out() {
        let grad = Array::new(&[2, 2], [1.0f64, 2.0, 4.0, 8.0]);
        let mut out = Array::zeros(&[3]);
        as_strided_backward(grad.view(), &[1], 0, &[2, 2], &[1, 1], None, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.0, 6.0, 8.0]);
        let mut out = Array::zeros(&[2, 2]);
        as_strided_backward(grad.view(), &[0, 1], 0, &[2, 2], &[1, 0], Some(0), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [1.5, 6.0, 1.5, 6.0]);
        let input = Array::new(&[2, 2], [1.0f64, 2.0, 4.0, 8.0]);
        let mut out = Array::zeros(&[2, 2]);
        as_strided_backward_backward(input.view(), &[2, 2], &[0, 1], 0, &[1, 0], Some(0), out.view_mut())
            .unwrap();
        assert_eq!(out.to_vec(), [2.5, 2.5, 5.0, 5.0]);
    }
}
