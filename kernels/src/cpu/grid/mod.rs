//! Reading images at places that are data.
//!
//! A place is a pair of numbers from -1 to 1, across and down. With `align_corners` these are the
//! centres of the outermost elements, otherwise their outer edges.

mod sampler;
pub(super) mod side_by_side;

use opsmith_runtime::parallel::Shared;
use opsmith_runtime::{Element, Result, Scratch, View, ViewMut};

use super::copy::with_slice;
use super::float::Float;
use super::rounded::Rounded;
use sampler::{Sampler, Taps};

/// Elements of images `(samples, channels, height, width)` at the places of a grid
/// `(samples, rows, columns, 2)`, between elements by interpolation: bilinear (0), the nearest (1) or
/// bicubic (2). Outside are zeros (0), the border (1) or the mirrored image (2).
///
/// # Errors
/// If the shapes do not go together, or a mode is another number.
pub fn grid_sampler_2d<T: Element<Compute: Float>>(
    input: View<'_, T>,
    grid: View<'_, T>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    out: ViewMut<'_, T>,
) -> Result<()> {
    grid_sampler_2d_slope(input, grid, interpolation_mode, padding_mode, align_corners, 0, 0, out)
}

/// The derivative of [`grid_sampler_2d`] of these orders by the grid's numbers.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_slope<T: Element<Compute: Float>>(
    input: View<'_, T>,
    grid: View<'_, T>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    across: i64,
    down: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let (modes, sizes) = ((interpolation_mode, padding_mode, align_corners), out.sizes());
    let sampler = Sampler::new(input.sizes(), grid.sizes(), sizes, modes)?;
    // Of 16-bit floats, each step of the computation is rounded.
    if let Some(along) = sampler.side_by_side().filter(|_| !T::DTYPE.is_half() && (across, down) == (0, 0)) {
        let (images, places) = (input.to_contiguous(), grid.to_contiguous());
        return with_slice(&mut out, |out| side_by_side::sample(&sampler, along, &images, &places, out));
    }
    let (images, places) = (elements(&input), elements(&grid));
    with_slice(&mut out, |out| by_place(&sampler, [across as usize, down as usize], &images, &places, out))
}

/// Writes the elements of all channels at all places, with derivatives of these orders, one place after the other.
fn by_place<T: Element<Compute: Float>>(
    sampler: &Sampler,
    orders: [usize; 2],
    images: &[Rounded<T>],
    places: &[Rounded<T>],
    out: &mut [T],
) {
    let target = Shared(out.as_mut_ptr());
    sampler.for_each_place_in_threads(places, |sample, number, taps: &Taps<T>| {
        let reader = sampler.reader(taps, orders);
        for channel in 0..sampler.channels {
            let value = reader.read(&images[sampler.image(sample, channel)..]).to_element();
            // SAFETY: the place of each plane lies in `out`, and each place has one thread.
            unsafe { *target.at((sampler.plane(sample, channel) + number) as i64) = value };
        }
    });
}

/// The gradient of [`grid_sampler_2d_slope`] for the image.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_slope_backward<T: Element<Compute: Float>>(
    grad_output: View<'_, T>,
    grid: View<'_, T>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    across: i64,
    down: i64,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let (modes, sizes) = ((interpolation_mode, padding_mode, align_corners), grad_output.sizes());
    let sampler = Sampler::new(out.sizes(), grid.sizes(), sizes, modes)?;
    let (places, grads) = (elements(&grid), elements(&grad_output));
    let mut of_images = Scratch::filled(Rounded::<T>::of(0.0), out.numel());
    sampler.for_each_place(&places, |sample, number, taps: &Taps<T>| {
        for channel in 0..sampler.channels {
            let grad = grads[sampler.plane(sample, channel) + number];
            for tap in taps {
                let element = sampler.image(sample, channel) + tap.at;
                of_images[element] = of_images[element] + grad * tap.slope(across as usize, down as usize);
            }
        }
    });
    out.write(of_images.into_iter().map(Rounded::to_element))
}

/// The gradients of [`grid_sampler_2d`] for image and grid.
///
/// # Errors
/// As [`grid_sampler_2d`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn grid_sampler_2d_backward<T: Element<Compute: Float>>(
    grad_output: View<'_, T>,
    input: View<'_, T>,
    grid: View<'_, T>,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
    mut grad_input: ViewMut<'_, T>,
    mut grad_grid: ViewMut<'_, T>,
) -> Result<()> {
    let (modes, sizes) = ((interpolation_mode, padding_mode, align_corners), grad_output.sizes());
    let sampler = Sampler::new(input.sizes(), grid.sizes(), sizes, modes)?;
    let (images, places, grads) = (elements(&input), elements(&grid), elements(&grad_output));
    let zero = Rounded::<T>::of(0.0);
    let mut of_images = Scratch::filled(zero, images.len());
    let mut of_places = Scratch::filled(zero, places.len());
    sampler.for_each_place(&places, |sample, number, taps: &Taps<T>| {
        let (mut across, mut down) = (zero, zero);
        for channel in 0..sampler.channels {
            let grad = grads[sampler.plane(sample, channel) + number];
            let image = sampler.image(sample, channel);
            for tap in taps {
                let element = image + tap.at;
                of_images[element] = of_images[element] + grad * tap.weight();
                across = across + grad * images[element] * tap.slope(1, 0);
                down = down + grad * images[element] * tap.slope(0, 1);
            }
        }
        let place = 2 * (sample * sampler.places() + number);
        (of_places[place], of_places[place + 1]) = (across, down);
    });
    grad_input.write(of_images.into_iter().map(Rounded::to_element))?;
    grad_grid.write(of_places.into_iter().map(Rounded::to_element))
}

/// Refuses images, a grid and a result whose sizes do not go together, and unknown modes.
///
/// # Errors
/// If there are such.
pub(crate) fn check_sampler(input: &[i64], grid: &[i64], out: &[i64], modes: (i64, i64, bool)) -> Result<()> {
    Sampler::new(input, grid, out, modes).map(drop)
}

fn elements<T: Element<Compute: Float>>(view: &View<'_, T>) -> Scratch<Rounded<T>> {
    Scratch::mapped(&view.to_contiguous(), |element| Rounded::from_element(*element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::{Array, assert_close, scattered};

    fn sample(image: &Array<f64>, grid: &Array<f64>, modes: (i64, i64, bool)) -> Vec<f64> {
        let mut out = Array::zeros(&[1, image.sizes[1], grid.sizes[1], grid.sizes[2]]);
        grid_sampler_2d(image.view(), grid.view(), modes.0, modes.1, modes.2, out.view_mut()).unwrap();
        out.to_vec()
    }

    #[test]
    fn the_centres_of_elements_give_the_elements() {
        let image = Array::new(&[1, 1, 2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let places = [-1.0, 0.0, 1.0].iter().flat_map(|&x| [x, -1.0, x, 1.0]);
        let grid = Array::new(&[1, 3, 2, 2], places);
        for interpolation in 0..3 {
            for outside in 0..3 {
                let got = sample(&image, &grid, (interpolation, outside, true));
                assert_close(&got, &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0], 1e-15);
            }
        }
        let grid = Array::new(&[1, 1, 3, 2], [0.5, 0.0, 3.0, 0.0, f64::NAN, 0.0]);
        assert_close(&sample(&image, &grid, (0, 0, true)), &[4.0, 0.0, 0.0], 1e-15);
        assert_close(&sample(&image, &grid, (0, 1, true))[..2], &[4.0, 4.5], 1e-15);
        assert_close(&sample(&image, &grid, (0, 2, true))[..2], &[4.0, 2.5], 1e-15);
    }

    #[test]
    fn gradients_are_slopes() {
        let image = Array::new(&[1, 2, 5, 4], scattered(40));
        let grid = Array::new(&[1, 2, 3, 2], scattered(12).map(|x| x * 0.8));
        let cotangent = Array::new(&[1, 2, 2, 3], scattered(12)).reversed(3);
        for interpolation in 0..3 {
            for outside in 0..3 {
                for align_corners in [false, true] {
                    let modes = (interpolation, outside, align_corners);
                    let (mut of_image, mut of_grid) = (Array::zeros(&image.sizes), Array::zeros(&grid.sizes));
                    let (images, places) = (of_image.view_mut(), of_grid.view_mut());
                    let grad = cotangent.view();
                    let (x, g) = (image.view(), grid.view());
                    grid_sampler_2d_backward(grad, x, g, modes.0, modes.1, modes.2, images, places).unwrap();
                    let value = |image: &Array<f64>, grid: &Array<f64>| -> f64 {
                        sample(image, grid, modes).iter().zip(cotangent.to_vec()).map(|(a, b)| a * b).sum()
                    };
                    assert_close(&of_image.to_vec(), &slopes(&image, |x| value(x, &grid)), 1e-6);
                    assert_close(&of_grid.to_vec(), &slopes(&grid, |g| value(&image, g)), 1e-5);
                }
            }
        }
    }

    fn slopes(input: &Array<f64>, value: impl Fn(&Array<f64>) -> f64) -> Vec<f64> {
        let elements = input.to_vec();
        (0..elements.len())
            .map(|at| {
                let moved = |by: f64| {
                    let mut elements = elements.clone();
                    elements[at] += by;
                    value(&Array::new(&input.sizes, elements))
                };
                (moved(1e-6) - moved(-1e-6)) / 2e-6
            })
            .collect()
    }

    #[test]
    fn places_side_by_side_are_those_one_after_the_other() {
        let (height, width, channels, places) = (7, 9, 3, 150);
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e9, 0.0, -0.0, 1.0, -1.0];
        let numbers = scattered(4 * places).enumerate().map(|(at, number)| match at % 11 {
            0 => odd[at / 11 % odd.len()],
            _ => number as f32 * 0.8,
        });
        let grid = Array::new(&[2, 1, places as i64, 2], numbers);
        let image = Array::new(&[2, channels, height, width], scattered(378).map(|element| element as f32));
        let sizes = [2, channels, 1, places as i64];
        for interpolation in 0..3 {
            for outside in 0..2 {
                for align_corners in [false, true] {
                    let modes = (interpolation, outside, align_corners);
                    let sampler = Sampler::new(&image.sizes, &grid.sizes, &sizes, modes).unwrap();
                    let mut expected = vec![0.0; 6 * places];
                    by_place(
                        &sampler,
                        [0, 0],
                        &elements(&image.view()),
                        &elements(&grid.view()),
                        &mut expected,
                    );
                    let mut got = vec![0.0; 6 * places];
                    let along = sampler.side_by_side().unwrap();
                    side_by_side::sample(&sampler, along, &image.to_vec(), &grid.to_vec(), &mut got);
                    for (place, (got, expected)) in got.iter().zip(&expected).enumerate() {
                        let is_same =
                            got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                        assert!(is_same, "{modes:?} at {place}: {got} instead of {expected}");
                    }
                }
            }
        }
    }

    /// In single precision, the last place of a longer line would be rounded to the one behind it.
    #[test]
    fn lines_whose_places_are_not_exact_are_read_place_by_place() {
        let of_width = |width: i64| {
            let sampler = Sampler::new(&[1, 1, 1, width], &[1, 1, 1, 2], &[1, 1, 1, 1], (0, 0, true));
            sampler.unwrap().side_by_side().is_some()
        };
        assert!(of_width(1 << 24) && !of_width((1 << 24) + 1));
    }

    #[test]
    fn shapes_and_modes_are_checked() {
        let (image, grid) = (Array::<f32>::zeros(&[1, 1, 2, 2]), Array::<f32>::zeros(&[1, 1, 1, 2]));
        let mut out = Array::zeros(&[1, 1, 1, 1]);
        assert!(grid_sampler_2d(image.view(), grid.view(), 3, 0, true, out.view_mut()).is_err());
        assert!(grid_sampler_2d(image.view(), grid.view(), 0, 3, true, out.view_mut()).is_err());
        assert!(grid_sampler_2d(image.view(), image.view(), 0, 0, true, out.view_mut()).is_err());
    }
}
