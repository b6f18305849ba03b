//! The means of all windows over planes: of neighbouring windows side by side in vectors, of a window over whole rows by
//! partial sums.
//!
//! In: contiguous planes and the ranges of their windows. Out: the means. Must know no gradients.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Scalar, Scratch};

use super::{Planes, Range, Ranges};
use crate::cpu::lanes::sum_terms;
use crate::cpu::simd;
use crate::window::MOST;

/// Most windows of a stretch.
pub(in crate::cpu) const WIDTH: usize = 64;

/// Neighbouring windows along the last dimension, all as wide and equally far apart.
#[derive(Clone, Copy)]
struct Stretch {
    first: usize,
    count: usize,
    /// Elements from a window to the next.
    stride: usize,
}

impl Stretch {
    /// Stretches that together are all windows.
    fn all(columns: &[Range]) -> Scratch<Stretch> {
        let mut found: Scratch<Stretch> = Scratch::new();
        for (number, range) in columns.iter().enumerate() {
            if let Some(last) = found.last_mut().filter(|last| last.count < WIDTH) {
                let before = columns[number - 1];
                let (distance, stride) = (range.first - before.first, last.stride as i64);
                let is_alike = range.end - range.first == before.end - before.first
                    && range.counted == before.counted
                    && distance > 0;
                if is_alike && (last.count == 1 || distance == stride) {
                    (last.count, last.stride) = (last.count + 1, distance as usize);
                    continue;
                }
            }
            found.push(Stretch { first: number, count: 1, stride: 1 });
        }
        found
    }
}

/// Writes the mean of each window over each plane. `divisor` divides instead of the number of elements.
pub(super) fn write_means<T: Element<Compute: Arithmetic>>(
    planes: &Planes,
    elements: &[T],
    divisor: Option<i64>,
    out: &mut [T],
) {
    let (from, to) = (planes.ranges.inputs(), planes.ranges.outputs());
    let stretches = Stretch::all(&planes.ranges.dims[2]);
    let target = Shared(out.as_mut_ptr());
    parallel::for_each_range_of(from.max(to), planes.count, |numbers| {
        for number in numbers {
            // SAFETY: the outputs of a plane lie in `out`, and each plane has one thread.
            let means = unsafe { std::slice::from_raw_parts_mut(target.at((number * to) as i64), to) };
            means_of_plane(&planes.ranges, &stretches, &elements[number * from..][..from], divisor, means);
        }
    });
}

fn means_of_plane<T: Element<Compute: Arithmetic>>(
    ranges: &Ranges,
    stretches: &[Stretch],
    plane: &[T],
    divisor: Option<i64>,
    mut means: &mut [T],
) {
    let [depths, rows, columns] = &ranges.dims;
    for &depth in depths.iter() {
        for &row in rows.iter() {
            for stretch in stretches {
                let seen = [depth, row, columns[stretch.first]];
                let mut sums = [T::Compute::ZERO; WIDTH];
                simd::widest_over::<T, _>(
                    #[inline(always)]
                    || match stretch.count == 1 && sees_whole_rows(ranges, seen[2]) {
                        true => sums[0] = sum_of_rows(ranges, plane, seen),
                        false => sum_stretch(ranges, plane, seen, *stretch, &mut sums),
                    },
                );
                let counted: i64 = seen.iter().map(|range| range.counted).product();
                let count = T::Compute::from_scalar(Scalar::Int(divisor.unwrap_or(counted)));
                let (of_stretch, rest) = means.split_at_mut(stretch.count);
                for (mean, sum) in of_stretch.iter_mut().zip(sums) {
                    *mean = T::from_compute(Arithmetic::div(sum, count));
                }
                means = rest;
            }
        }
    }
}

/// Whether elements of one row after the other lie side by side.
fn sees_whole_rows(ranges: &Ranges, column: Range) -> bool {
    ranges.step == [1; MOST] && column.first == 0 && column.end == ranges.input[2]
}

/// The sum of a window over whole rows.
#[inline(always)]
fn sum_of_rows<T: Element<Compute: Arithmetic>>(
    ranges: &Ranges,
    plane: &[T],
    [depth, row, _]: [Range; MOST],
) -> T::Compute {
    let [_, rows, columns] = ranges.input;
    let mut sum = T::Compute::ZERO;
    for number in depth.first..depth.end {
        let place = |row: i64| ((number * rows + row) * columns) as usize;
        let seen = &plane[place(row.first)..place(row.end.max(row.first))];
        let [part] = sum_terms([seen], |[element]: [T; 1]| [element.to_compute()]);
        sum = Arithmetic::add(sum, part);
    }
    sum
}

/// The sum of each window of a stretch, of which the first sees these ranges.
#[inline(always)]
fn sum_stretch<T: Element<Compute: Arithmetic>>(
    ranges: &Ranges,
    plane: &[T],
    seen: [Range; MOST],
    Stretch { count, stride, .. }: Stretch,
    sums: &mut [T::Compute; WIDTH],
) {
    // The elements of the first window.
    ranges.for_each_element(
        seen,
        #[inline(always)]
        |place| {
            let line = &plane[place..=place + (count - 1) * stride];
            match stride {
                1 => add_line(sums, line, 1, count),
                2 => add_line(sums, line, 2, count),
                _ => add_line(sums, line, stride, count),
            }
        },
    );
}

/// Adds every `stride`-th element of a line to the sums.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
fn add_line<T: Element<Compute: Arithmetic>>(
    sums: &mut [T::Compute; WIDTH],
    line: &[T],
    stride: usize,
    count: usize,
) {
    assert!(count <= WIDTH && (count - 1) * stride < line.len());
    for number in 0..count {
        // SAFETY: the last element was checked.
        let element = unsafe { line.get_unchecked(number * stride) };
        sums[number] = Arithmetic::add(sums[number], element.to_compute());
    }
}
