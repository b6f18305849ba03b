//! The largest element of each window.

use opsmith_runtime::arith::{Arithmetic, Ordered};
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::{Planes, Range, Ranges};
use crate::cpu::copy::with_slice;
use crate::cpu::simd;
use crate::cpu::strides::{expect_operand, expect_sizes};
use crate::window::{MOST, Window, spatial_sizes};

/// The largest elements of windows over the last two dimensions, and their positions in their planes,
/// counted row by row. NaN is larger than everything.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn max_pool2d_with_indices<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    max_pool(&self_, &Window::new(2, kernel_size, stride, padding, dilation)?, ceil_mode, out, indices)
}

/// As [`max_pool2d_with_indices`], over the last three dimensions.
///
/// # Errors
/// If the shapes or parameters do not fit.
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn max_pool3d_with_indices<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    max_pool(&self_, &Window::new(3, kernel_size, stride, padding, dilation)?, ceil_mode, out, indices)
}

fn max_pool<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    window: &Window,
    ceil: bool,
    mut out: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
) -> Result<()> {
    let planes = Planes::of_window(window, ceil, false, input.sizes(), out.sizes())?;
    expect_sizes(indices.sizes(), out.sizes())?;
    for_each_plane(&planes, input, &mut out, &mut indices, |plane, values, places| {
        largest_of_plane(&planes.ranges, window, plane, values, places);
    })
}

/// Calls `body` with each plane of the input, and with the values and places of its outputs.
fn for_each_plane<T: Element>(
    planes: &Planes,
    input: &View<'_, T>,
    out: &mut ViewMut<'_, T>,
    indices: &mut ViewMut<'_, i64>,
    body: impl Fn(&[T], &mut [T], &mut [i64]) + Sync,
) -> Result<()> {
    let elements = input.to_contiguous();
    let (from, to) = (planes.ranges.inputs().max(1), planes.ranges.outputs());
    let mut result = Ok(());
    with_slice(out, |values| {
        result = with_slice(indices, |places| {
            let (values, places) = (Shared(values.as_mut_ptr()), Shared(places.as_mut_ptr()));
            parallel::for_each_range_of(from.max(to), planes.count, |numbers| {
                for number in numbers {
                    let Some(plane) = elements.get(number * from..(number + 1) * from) else { break };
                    let place = (number * to) as i64;
                    // SAFETY: the outputs of a plane that has elements lie in both, and each plane has one thread.
                    let (values, places) = unsafe {
                        (
                            std::slice::from_raw_parts_mut(values.at(place), to),
                            std::slice::from_raw_parts_mut(places.at(place), to),
                        )
                    };
                    body(plane, values, places);
                }
            });
        });
    })?;
    result
}

/// The largest elements of parts that together make up the last two dimensions, and their positions in their planes,
/// counted row by row. NaN is larger than everything.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_max_pool2d<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    largest_of_parts(&self_, 2, out, indices)
}

/// As [`adaptive_max_pool2d`], over the last three dimensions.
///
/// # Errors
/// If the shapes do not fit.
pub fn adaptive_max_pool3d<T: Element<Compute: Ordered>>(
    self_: View<'_, T>,
    out: ViewMut<'_, T>,
    indices: ViewMut<'_, i64>,
) -> Result<()> {
    largest_of_parts(&self_, 3, out, indices)
}

fn largest_of_parts<T: Element<Compute: Ordered>>(
    input: &View<'_, T>,
    spatial: usize,
    mut out: ViewMut<'_, T>,
    mut indices: ViewMut<'_, i64>,
) -> Result<()> {
    let planes = Planes::adaptive(spatial, input.sizes(), out.sizes())?;
    expect_sizes(indices.sizes(), out.sizes())?;
    for_each_plane(&planes, input, &mut out, &mut indices, |plane, values, places| {
        planes.ranges.for_each(|number, seen| {
            let (value, place) = largest(&planes.ranges, plane, seen);
            (values[number], places[number]) = (T::from_compute(value), place as i64);
        });
    })
}

/// The largest elements of the windows over one plane, and their places there.
fn largest_of_plane<T: Element<Compute: Ordered>>(
    ranges: &Ranges,
    window: &Window,
    plane: &[T],
    values: &mut [T],
    places: &mut [i64],
) {
    let [depths, rows, columns] = &ranges.dims;
    let step = ranges.step[2];
    let is_whole = |range: &Range| (range.end - range.first + step - 1) / step == window.kernel[2];
    // Windows that reach into the border on either side are visited one by one.
    let first = columns.iter().position(is_whole).unwrap_or(columns.len());
    let whole = columns[first..].iter().take_while(|range| is_whole(range)).count();
    // Places in a block are `i32`, which vectors compare beside `f32`.
    let whole = if i32::try_from(plane.len()).is_ok() { whole } else { 0 };
    let mut start = 0;
    for &depth in depths.iter() {
        for &row in rows.iter() {
            for column in (0..first).chain(first + whole..columns.len()) {
                let (value, place) = largest(ranges, plane, [depth, row, columns[column]]);
                (values[start + column], places[start + column]) = (T::from_compute(value), place as i64);
            }
            for block in (first..first + whole).step_by(WIDTH) {
                let end = (block + WIDTH).min(first + whole);
                let (values, places) =
                    (&mut values[start + block..start + end], &mut places[start + block..start + end]);
                simd::widest_over::<T, _>(
                    #[inline(always)]
                    || largest_of_block(ranges, window, plane, [depth, row, columns[block]], values, places),
                );
            }
            start += columns.len();
        }
    }
}

/// The largest element that ranges see, and its place.
fn largest<T: Element<Compute: Ordered>>(
    ranges: &Ranges,
    plane: &[T],
    seen: [Range; MOST],
) -> (T::Compute, usize) {
    let mut best: Option<(T::Compute, usize)> = None;
    ranges.for_each_element(seen, |at| {
        let value = plane[at].to_compute();
        if best.is_none_or(|(old, _)| value.gt(old) || !value.equal(value)) {
            best = Some((value, at));
        }
    });
    best.unwrap_or((T::Compute::LOWEST, 0))
}

/// Most windows of a block.
pub(in crate::cpu) const WIDTH: usize = 64;

/// The same of neighbouring windows, of which the first sees these ranges; no window reaches into the border at the side.
#[inline(always)]
fn largest_of_block<T: Element<Compute: Ordered>>(
    ranges: &Ranges,
    window: &Window,
    plane: &[T],
    [depth, row, column]: [Range; MOST],
    values: &mut [T],
    places: &mut [i64],
) {
    let mut best = ([T::Compute::LOWEST; WIDTH], [0i32; WIDTH]);
    let (count, stride) = (values.len(), window.stride[2] as usize);
    let mut is_first = true;
    // The places of the first window.
    ranges.for_each_element(
        [depth, row, column],
        #[inline(always)]
        |place| {
            let line = &plane[place..=place + (count - 1) * stride];
            match stride {
                1 => join_line(&mut best, line, place, 1, count, is_first),
                2 => join_line(&mut best, line, place, 2, count, is_first),
                _ => join_line(&mut best, line, place, stride, count, is_first),
            }
            is_first = false;
        },
    );
    for (value, &best) in values.iter_mut().zip(&best.0) {
        *value = T::from_compute(best);
    }
    for (place, &best) in places.iter_mut().zip(&best.1) {
        *place = i64::from(best);
    }
}

/// Keeps in `best` the larger of each value there and every `stride`-th element of a line, which begins at a place.
#[inline(always)]
fn join_line<T: Element<Compute: Ordered>>(
    best: &mut ([T::Compute; WIDTH], [i32; WIDTH]),
    line: &[T],
    place: usize,
    stride: usize,
    count: usize,
    is_first: bool,
) {
    assert!(count <= WIDTH && (count - 1) * stride < line.len());
    for number in 0..count {
        // SAFETY: the last element was checked.
        let value = unsafe { line.get_unchecked(number * stride) }.to_compute();
        let (old, at) = (&mut best.0[number], &mut best.1[number]);
        let is_larger = is_first | value.gt(*old) | !value.equal(value);
        *old = if is_larger { value } else { *old };
        *at = if is_larger { (place + number * stride) as i32 } else { *at };
    }
}

/// The gradient of [`max_pool2d_with_indices`]: each output's goes to the element it came from.
///
/// # Errors
/// If the shapes or parameters do not fit, or an index is outside its plane.
pub fn max_pool2d_with_indices_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    indices: View<'_, i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    max_pool_backward(&grad_output, self_.sizes(), 2, &indices, out)
}

/// The gradient of [`max_pool3d_with_indices`].
///
/// # Errors
/// If the shapes or parameters do not fit, or an index is outside its plane.
pub fn max_pool3d_with_indices_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    indices: View<'_, i64>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    max_pool_backward(&grad_output, self_.sizes(), 3, &indices, out)
}

fn max_pool_backward<T: Element<Compute: Arithmetic>>(
    grad: &View<'_, T>,
    input_sizes: &[i64],
    spatial: usize,
    indices: &View<'_, i64>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), input_sizes)?;
    expect_operand("indices", indices.sizes(), grad.sizes())?;
    let plane = spatial_sizes(input_sizes, spatial)?.iter().product::<i64>();
    let positions = spatial_sizes(grad.sizes(), spatial)?.iter().product::<i64>().max(1);
    let mut sums = Scratch::filled(T::Compute::ZERO, out.numel());
    for (number, (grad, index)) in (0..).zip(grad.iter().zip(indices.iter())) {
        let place = (number / positions).checked_mul(plane).and_then(|start| start.checked_add(index));
        let inside = index >= 0 && index < plane;
        match place.and_then(|place| sums.get_mut(place as usize)).filter(|_| inside) {
            Some(sum) => *sum = Arithmetic::add(*sum, grad.to_compute()),
            None => {
                return Err(Error::index(format!(
                    "the index {index} lies outside a plane of {plane} elements"
                ))
                .with_help("pass the indices that the pooling returned"));
            }
        }
    }
    out.write(sums.into_iter().map(T::from_compute))
}
