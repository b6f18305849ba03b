//! The columns of convolutions as operators of their own.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Element, Error, Result, Scratch, View, ViewMut};

use super::columns::Sliding;
use crate::cpu::copy::with_slice;
use crate::cpu::lanes::{computed, with_computed};
use crate::cpu::rounded::held;
use crate::window::{MOST, Window, spatial_sizes};

/// The elements of a window at each of its positions over the last two dimensions, as a column.
///
/// # Errors
/// If the shapes or parameters do not fit.
pub fn im2col<T: Element>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let sliding = sliding(window, spatial_sizes(self_.sizes(), 2)?, self_.numel(), out.numel())?;
    // SAFETY: elements are moved.
    gather(&sliding, self_.bits(), unsafe { out.bits() })
}

#[inline(never)]
fn gather<B: Element>(sliding: &Sliding, planes: View<'_, B>, mut out: ViewMut<'_, B>) -> Result<()> {
    let planes = planes.to_contiguous();
    let (each, rows) = (sliding.elements() * sliding.positions(), sliding.positions() / sliding.row().max(1));
    with_slice(&mut out, |columns| {
        let (of_plane, count) = (sliding.plane().max(1), columns.len() / each.max(1));
        let target = Shared(columns.as_mut_ptr());
        parallel::for_each_range_of(each, count, |range| {
            for number in range {
                // SAFETY: the columns of a plane are one thread's.
                let columns =
                    unsafe { std::slice::from_raw_parts_mut(target.at((number * each) as i64), each) };
                sliding.gather_into(&planes[number * of_plane..][..of_plane], 0..rows, columns);
            }
        });
    })
}

/// The sum, at each place, of the columns' elements that [`im2col`] would have taken from it.
///
/// # Errors
/// If the shapes or parameters do not fit.
pub fn col2im<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    kernel_size: &[i64],
    dilation: &[i64],
    padding: &[i64],
    stride: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let window = Window::new(2, kernel_size, stride, padding, dilation)?;
    let sliding = sliding(window, spatial_sizes(out.sizes(), 2)?, out.numel(), self_.numel())?;
    let columns = self_.to_contiguous();
    let (each, of_plane) = (sliding.elements() * sliding.positions(), sliding.plane().max(1));
    let rows = sliding.positions() / sliding.row().max(1);
    with_slice(&mut out, |planes| {
        let (count, target) = (planes.len() / of_plane, Shared(planes.as_mut_ptr()));
        parallel::for_each_range_of(each, count, |range| {
            let (mut wide, mut sums) = (Scratch::new(), Scratch::new());
            for number in range {
                let columns = computed(&columns[number * each..][..each], &mut wide);
                // SAFETY: a plane is one thread's.
                let plane = unsafe {
                    std::slice::from_raw_parts_mut(target.at((number * of_plane) as i64), of_plane)
                };
                with_computed(plane, &mut sums, |plane| {
                    plane.fill(T::Compute::ZERO);
                    sliding.scatter(columns, 0..rows, plane, &held::<T>);
                });
            }
        });
    })
}

/// Checks that the columns of all planes are as many elements as there are.
pub(crate) fn sliding(window: Window, places: [i64; MOST], planes: usize, columns: usize) -> Result<Sliding> {
    let sliding = Sliding { window, input: places, output: window.output_sizes(places, false)? };
    let count = planes / sliding.plane().max(1);
    if count * sliding.elements() * sliding.positions() == columns {
        return Ok(sliding);
    }
    Err(Error::shape(format!(
        "{count} planes have {} positions of {} elements, which are not the columns' {columns} elements",
        sliding.positions(),
        sliding.elements()
    )))
}

#[cfg(test)]
mod tests {
    use opsmith_runtime::bf16;

    use super::*;
    use crate::cpu::testing::{Array, scattered};

    #[test]
    fn columns_and_planes_in_threads() {
        for ([height, width], kernel, padding, stride) in
            [([1, 1], 1, 0, 1), ([5, 7], 3, 1, 1), ([9, 4], 2, 1, 2), ([40, 50], 3, 2, 1)]
        {
            let places = [height, width].map(|size| (size + 2 * padding - kernel) / stride + 1);
            let (elements, positions) = (kernel * kernel, places[0] * places[1]);
            let x = Array::new(
                &[2, 3, height, width],
                scattered((6 * height * width) as usize).map(bf16::from_f64),
            )
            .reversed(1);
            let column = |at: i64| {
                let (plane, element, place) =
                    (at / positions / elements, at / positions % elements, at % positions);
                let y = place / places[1] * stride + element / kernel - padding;
                let x_at = place % places[1] * stride + element % kernel - padding;
                let is_inside = (0..height).contains(&y) && (0..width).contains(&x_at);
                if is_inside { x.at(&[plane / 3, plane % 3, y, x_at]) } else { bf16::ZERO }
            };
            let expected: Vec<bf16> = (0..6 * elements * positions).map(column).collect();
            let ones = Array::new(&[2, 3 * elements, positions], expected.iter().map(|_| bf16::ONE));
            let mut first = None;
            for threads in [1, 2, 5] {
                parallel::set_num_threads(threads).unwrap();
                let mut out = Array::zeros(&[2, 3 * elements, positions]);
                let all = [[kernel; 2], [1; 2], [padding; 2], [stride; 2]];
                im2col(x.view(), &all[0], &all[1], &all[2], &all[3], out.view_mut()).unwrap();
                assert_eq!(out.to_vec(), expected, "{height} {width} {threads}");
                let mut back = Array::<bf16>::zeros(&[2, 3, height, width]);
                col2im(ones.view(), &all[0], &all[1], &all[2], &all[3], back.view_mut()).unwrap();
                let counts = back.to_vec();
                assert_eq!(first.get_or_insert_with(|| counts.clone()), &counts);
            }
            let seen: f32 = first.unwrap().iter().map(|count| count.to_f32()).sum();
            let inside = (0..elements * positions).filter(|&at| {
                let (element, place) = (at / positions, at % positions);
                let y = place / places[1] * stride + element / kernel - padding;
                let x = place % places[1] * stride + element % kernel - padding;
                (0..height).contains(&y) && (0..width).contains(&x)
            });
            assert_eq!(seen, (6 * inside.count()) as f32);
        }
    }
}
