//! Boxes in images: which of several that overlap are kept, and the contents of each in equal cells.

mod regions;

use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scratch, View, ViewMut};

use super::copy::with_slice;
use super::float::Float;
use super::strides::expect_sizes;
pub(crate) use regions::Cells;
use regions::{Region, Taps};

/// Whether each box of a line, `(x1, y1, x2, y2)`, is kept: those that overlap an earlier one that is kept by more than a part of the area
/// that both cover are not.
///
/// # Errors
/// If a box has other than four numbers.
pub fn kept_boxes<T: Element<Compute: Float>>(
    boxes: View<'_, T>,
    iou_threshold: f64,
    mut out: ViewMut<'_, bool>,
) -> Result<()> {
    check_boxes(boxes.sizes(), out.sizes())?;
    let count = out.sizes().last().map_or(0, |&count| count as usize);
    if out.numel() == 0 {
        return Ok(());
    }
    let lines = out.numel() / count;
    let numbers = Scratch::mapped(&boxes.to_contiguous(), |number| number.to_compute());
    with_slice(&mut out, |kept| {
        kept.fill(true);
        let kept = Shared(kept.as_mut_ptr());
        parallel::for_each_range_of(count * count, lines, |range| {
            for line in range {
                // SAFETY: the output has so many lines, and each has one thread.
                let kept = unsafe { std::slice::from_raw_parts_mut(kept.at((line * count) as i64), count) };
                leave_out(&numbers[4 * line * count..][..4 * count], iou_threshold, kept);
            }
        });
    })
}

/// The places of the boxes that overlap no better one that is kept, by descending scores.
///
/// # Errors
/// If the shapes do not go together.
pub fn nms<T: Element<Compute: Float>>(
    dets: View<'_, T>,
    scores: View<'_, T>,
    iou_threshold: f64,
    mut out: ViewMut<'_, i64>,
) -> Result<()> {
    let (order, kept) = best_boxes(&dets, &scores, iou_threshold)?;
    let places = order.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(at, _)| *at as i64);
    expect_sizes(out.sizes(), &[kept.iter().filter(|kept| **kept).count() as i64])?;
    out.write(places)
}

/// The order of boxes by descending scores, and whether each, in this order, is kept.
///
/// # Errors
/// If the shapes do not go together.
pub(crate) fn best_boxes<T: Element<Compute: Float>>(
    dets: &View<'_, T>,
    scores: &View<'_, T>,
    threshold: f64,
) -> Result<(Scratch<usize>, Scratch<bool>)> {
    check_boxes(dets.sizes(), scores.sizes())?;
    let numbers = |view: &View<'_, T>| Scratch::mapped(&view.to_contiguous(), |number| number.to_compute());
    let (boxes, scores) = (numbers(dets), numbers(scores));
    let mut order = Scratch::with_capacity(scores.len());
    order.extend(0..scores.len());
    // Larger scores first, NaN before all; of equal ones the first.
    let rank = |a: f64, b: f64| b.partial_cmp(&a).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()));
    order.sort_unstable_by(|&a: &usize, &b: &usize| {
        rank(scores[a].double(), scores[b].double()).then(a.cmp(&b))
    });
    let mut sorted = Scratch::with_capacity(boxes.len());
    order.iter().for_each(|&at| sorted.extend(boxes[4 * at..][..4].iter().copied()));
    let mut kept = Scratch::filled(true, scores.len());
    leave_out(&sorted, threshold, &mut kept);
    Ok((order, kept))
}

/// Leaves out boxes of four numbers each that overlap an earlier one that is kept.
fn leave_out<C: Float>(numbers: &[C], threshold: f64, kept: &mut [bool]) {
    let corners = |at: usize| -> [C; 4] { std::array::from_fn(|number| numbers[4 * at + number]) };
    for first in 0..kept.len() {
        if !kept[first] {
            continue;
        }
        let earlier = corners(first);
        for (after, kept) in kept[first + 1..].iter_mut().enumerate() {
            // A part that is no number is not above the threshold.
            let overlaps = overlap(earlier, corners(first + 1 + after)).double() > threshold;
            *kept &= !overlaps;
        }
    }
}

/// The part of the area that two boxes cover which both cover.
fn overlap<C: Float>(a: [C; 4], b: [C; 4]) -> C {
    let zero = C::of(0.0);
    let larger = |x: C, y: C| if x > y { x } else { y };
    let smaller = |x: C, y: C| if x < y { x } else { y };
    let area = |[x1, y1, x2, y2]: [C; 4]| (x2 - x1) * (y2 - y1);
    let width = larger(smaller(a[2], b[2]) - larger(a[0], b[0]), zero);
    let height = larger(smaller(a[3], b[3]) - larger(a[1], b[1]), zero);
    let both = width * height;
    both / (area(a) + area(b) - both)
}

/// Refuses boxes of other than four numbers, and a result of another shape.
pub(crate) fn check_boxes(boxes: &[i64], out: &[i64]) -> Result<()> {
    match boxes.split_last() {
        Some((4, others)) => expect_sizes(out, others),
        _ => Err(Error::shape("a box has four numbers, x1, y1, x2 and y2, along the last dimension")),
    }
}

/// The means of images `(samples, channels, height, width)` over the cells of regions, as `out` has rows and columns, by samples between
/// elements; with `largest` the largest weighted element of the samples.
///
/// A region is `(sample, x1, y1, x2, y2)`.
///
/// # Errors
/// If the shapes do not go together, or a region is of a sample that is not there.
pub fn roi_cells<T: Element<Compute: Float>>(
    input: View<'_, T>,
    rois: View<'_, T>,
    spatial_scale: f64,
    sampling_ratio: i64,
    aligned: bool,
    largest: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let cells = Cells::new(input.sizes(), rois.sizes(), out.sizes(), spatial_scale, sampling_ratio, aligned)?;
    let (images, rois) = (input.to_contiguous(), rois.to_contiguous());
    let of_region = cells.channels * cells.of_plane();
    let mut failed = Ok(());
    with_slice(&mut out, |out| {
        let out = Shared(out.as_mut_ptr());
        failed = parallel::try_for_each_range_of(of_region, cells.regions, |range| {
            for number in range {
                let region = cells.region(&rois, number)?;
                let start = out.at((number * of_region) as i64);
                // SAFETY: the output has so many regions, and each has one thread.
                let out = unsafe { std::slice::from_raw_parts_mut(start, of_region) };
                read(&cells, &region, &images, largest, out);
            }
            Ok(())
        });
    })?;
    failed
}

/// The cells of one region.
fn read<T: Element<Compute: Float>>(
    cells: &Cells,
    region: &Region,
    images: &[T],
    largest: bool,
    out: &mut [T],
) {
    let (down, across) = (Taps::<T::Compute>::of(&region.down), Taps::of(&region.across));
    let count = region.samples::<T::Compute>();
    for (channel, out) in out.chunks_exact_mut(cells.of_plane()).enumerate() {
        let plane = cells.plane(images, region.image, channel);
        for (number, out) in out.iter_mut().enumerate() {
            let (rows, columns) =
                (down.of_cell(number / cells.columns), across.of_cell(number % cells.columns));
            let mut best: Option<T::Compute> = None;
            let mut sum = T::Compute::of(0.0);
            for row in rows {
                for column in columns {
                    let element = plane[row.at * cells.width + column.at].to_compute();
                    let part = row.weight * column.weight * element;
                    sum = sum + part;
                    best = Some(best.map_or(part, |best| if part > best { part } else { best }));
                }
            }
            *out = T::from_compute(if largest { best.unwrap_or(T::Compute::of(0.0)) } else { sum / count });
        }
    }
}

/// The gradient of [`roi_cells`] for the images, of means.
///
/// # Errors
/// As [`roi_cells`].
pub fn roi_cells_backward<T: Element<Compute: Float>>(
    grad_output: View<'_, T>,
    rois: View<'_, T>,
    spatial_scale: f64,
    sampling_ratio: i64,
    aligned: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let cells =
        Cells::new(out.sizes(), rois.sizes(), grad_output.sizes(), spatial_scale, sampling_ratio, aligned)?;
    let (grads, rois) = (grad_output.to_contiguous(), rois.to_contiguous());
    let mut sums = Scratch::filled(T::Compute::of(0.0), out.numel());
    let shared = Shared(sums.as_mut_ptr());
    let size = cells.height * cells.width;
    for number in 0..cells.regions {
        let region = cells.region(&rois, number)?;
        let (down, across) = (Taps::<T::Compute>::of(&region.down), Taps::of(&region.across));
        let count = region.samples::<T::Compute>();
        parallel::for_each_range_of(cells.of_plane(), cells.channels, |channels| {
            for channel in channels {
                let plane = (region.image * cells.channels + channel) * size;
                // SAFETY: the gradient has so many planes, and each has one thread.
                let plane = unsafe { std::slice::from_raw_parts_mut(shared.at(plane as i64), size) };
                let grads = &grads[(number * cells.channels + channel) * cells.of_plane()..];
                for (cell, grad) in grads[..cells.of_plane()].iter().enumerate() {
                    let grad = grad.to_compute() / count;
                    for row in down.of_cell(cell / cells.columns) {
                        for column in across.of_cell(cell % cells.columns) {
                            let element = &mut plane[row.at * cells.width + column.at];
                            *element = *element + row.weight * column.weight * grad;
                        }
                    }
                }
            }
        });
    }
    out.write(sums.into_iter().map(T::from_compute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, scattered};

    #[test]
    fn boxes_that_overlap_an_earlier_one_are_left_out() {
        let boxes = [
            [0.0, 0.0, 4.0, 4.0],
            [1.0, 0.0, 5.0, 4.0],
            [2.0, 0.0, 6.0, 4.0],
            [10.0, 0.0, 12.0, 2.0],
            [10.0, 0.0, 10.0, 2.0],
            [f64::NAN, 0.0, 12.0, 2.0],
        ];
        let boxes = Array::new(&[6, 4], boxes.into_iter().flatten());
        let kept = |threshold: f64| {
            let mut out = Array::<bool>::zeros(&[6]);
            kept_boxes(boxes.view(), threshold, out.view_mut()).unwrap();
            out.to_vec()
        };
        // The third overlaps the second by 3/5, which is left out, and the first by 1/3.
        assert_eq!(kept(0.5), [true, false, true, true, true, true]);
        assert_eq!(kept(0.3), [true, false, false, true, true, true]);
        assert_eq!(kept(0.6), [true; 6]);
    }

    #[test]
    fn cells_are_means_of_samples_between_elements() {
        let image = Array::new(&[1, 1, 4, 4], (0..16).map(f64::from));
        let cells = |roi: [f64; 5], ratio: i64, aligned: bool, largest: bool| -> Result<Vec<f64>> {
            let mut out = Array::zeros(&[1, 1, 2, 2]);
            let rois = Array::new(&[1, 5], roi);
            roi_cells(image.view(), rois.view(), 1.0, ratio, aligned, largest, out.view_mut())?;
            Ok(out.to_vec())
        };
        // Element (y, x) is 4 y + x, so that a mean is the value at the middle of a cell, in which 0 is the first element's centre.
        let roi = [0.0, 0.0, 0.0, 3.0, 3.0];
        assert_close(&cells(roi, 2, false, false).unwrap(), &[3.75, 5.25, 9.75, 11.25], 1e-12);
        assert_close(
            &cells([0.0, 0.5, 0.5, 3.5, 3.5], 0, true, false).unwrap(),
            &[3.75, 5.25, 9.75, 11.25],
            1e-12,
        );
        // One sample: the largest of four weighted elements.
        assert_close(&cells(roi, 1, false, true).unwrap()[..1], &[5.0 * 0.75 * 0.75], 1e-12);
        // Samples outside count as zeros, and regions of no extent or no numbers have none.
        assert_close(&cells([0.0, 9.0, 9.0, 12.0, 12.0], 0, true, false).unwrap(), &[0.0; 4], 0.0);
        assert_close(&cells([0.0, 2.0, 2.0, 1.0, 1.0], 0, true, true).unwrap(), &[0.0; 4], 0.0);
        assert_close(&cells([0.0, f64::NAN, 0.0, 3.0, 1e300], 0, true, false).unwrap(), &[0.0; 4], 0.0);
        assert!(
            cells([1.0, 0.0, 0.0, 3.0, 3.0], 2, false, false).unwrap_err().to_string().contains("sample 1")
        );
        assert!(cells([f64::NAN, 0.0, 0.0, 3.0, 3.0], 2, false, false).is_err());
    }

    #[test]
    fn the_gradient_is_the_transpose() {
        let image = Array::new(&[2, 3, 5, 4], scattered(120));
        let rois = Array::new(
            &[3, 5],
            [0.0, 0.5, 0.2, 3.0, 4.0, 1.0, -1.0, -2.0, 6.0, 3.0, 1.0, 1.0, 1.0, 2.0, 2.5],
        );
        let cotangent = Array::new(&[3, 3, 2, 3], scattered(54));
        for (ratio, aligned) in [(0, true), (2, false), (1, true)] {
            let (mut out, mut back) = (Array::zeros(&cotangent.sizes), Array::zeros(&image.sizes));
            roi_cells(image.view(), rois.view(), 0.9, ratio, aligned, false, out.view_mut()).unwrap();
            roi_cells_backward(cotangent.view(), rois.view(), 0.9, ratio, aligned, back.view_mut()).unwrap();
            let dot =
                |a: &Array<f64>, b: &Array<f64>| a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum();
            assert_close(&[dot(&out, &cotangent)], &[dot(&image, &back)], 1e-12);
        }
    }
}
