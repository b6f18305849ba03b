//! Reading images at places that are data.
//!
//! A place is a pair of numbers from -1 to 1, across and down. With `align_corners` these are the
//! centres of the outermost elements, otherwise their outer edges.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Element, Error, Result, View, ViewMut};

use super::float::Float;
use super::rounded::Rounded;
use super::strides::expect_sizes;

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
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let sampler = Sampler::new(input.sizes(), grid.sizes(), interpolation_mode, padding_mode, align_corners)?;
    expect_sizes(out.sizes(), &sampler.out_sizes())?;
    let (images, places) = (elements(&input), elements(&grid));
    let mut result = vec![T::default(); out.numel()];
    sampler.for_each_place(&places, |sample, number, taps: &Taps<T>| {
        for channel in 0..sampler.channels {
            let image = sampler.image(sample, channel);
            let sum: Rounded<T> = taps.iter().map(|tap| images[image + tap.at] * tap.weight).sum();
            result[sampler.plane(sample, channel) + number] = Rounded::to_element(sum);
        }
    });
    out.write(result);
    Ok(())
}

/// The gradients of [`grid_sampler_2d`] for image and grid; those not asked for in `output_mask` are
/// zeros.
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
    _output_mask: &[bool],
    mut grad_input: ViewMut<'_, T>,
    mut grad_grid: ViewMut<'_, T>,
) -> Result<()> {
    let sampler = Sampler::new(input.sizes(), grid.sizes(), interpolation_mode, padding_mode, align_corners)?;
    expect_sizes(grad_output.sizes(), &sampler.out_sizes())?;
    let (images, places, grads) = (elements(&input), elements(&grid), elements(&grad_output));
    let zero = Rounded::<T>::of(0.0);
    let mut of_images = vec![zero; images.len()];
    let mut of_places = vec![zero; places.len()];
    sampler.for_each_place(&places, |sample, number, taps: &Taps<T>| {
        let (mut across, mut down) = (zero, zero);
        for channel in 0..sampler.channels {
            let grad = grads[sampler.plane(sample, channel) + number];
            let image = sampler.image(sample, channel);
            for tap in taps {
                let element = image + tap.at;
                of_images[element] = of_images[element] + grad * tap.weight;
                across = across + grad * images[element] * tap.across;
                down = down + grad * images[element] * tap.down;
            }
        }
        let place = 2 * (sample * sampler.places() + number);
        (of_places[place], of_places[place + 1]) = (across, down);
    });
    grad_input.write(of_images.into_iter().map(Rounded::to_element));
    grad_grid.write(of_places.into_iter().map(Rounded::to_element));
    Ok(())
}

fn elements<T: Element<Compute: Float>>(view: &View<'_, T>) -> Vec<Rounded<T>> {
    view.to_contiguous().iter().map(|element| Rounded::from_element(*element)).collect()
}

/// An element that a place reads: where in its image, how much of it, and how that changes with the
/// grid's two numbers.
struct Tap<T: Element> {
    at: usize,
    weight: Rounded<T>,
    across: Rounded<T>,
    down: Rounded<T>,
}

type Taps<T> = Vec<Tap<T>>;

#[derive(Clone, Copy, PartialEq)]
enum Interpolation {
    Bilinear,
    Nearest,
    Bicubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Mirror,
}

struct Sampler {
    samples: usize,
    channels: usize,
    /// Height and width of the images.
    size: [i64; 2],
    /// Rows and columns of the grid.
    grid: [i64; 2],
    interpolation: Interpolation,
    outside: Outside,
    align_corners: bool,
}

impl Sampler {
    fn new(
        input: &[i64],
        grid: &[i64],
        interpolation: i64,
        outside: i64,
        align_corners: bool,
    ) -> Result<Sampler> {
        let (&[samples, channels, height, width], &[grids, rows, columns, 2]) = (input, grid) else {
            return Err(Error::shape(format!(
                "images {} cannot be read at a grid {}",
                ShapeText(input),
                ShapeText(grid)
            ))
            .with_help("images are (samples, channels, height, width), grids (samples, rows, columns, 2)"));
        };
        if samples != grids || height == 0 || width == 0 {
            return Err(Error::shape(format!(
                "there are {samples} samples of images of {height} by {width} and {grids} of the grid"
            )));
        }
        let interpolation = match interpolation {
            0 => Interpolation::Bilinear,
            1 => Interpolation::Nearest,
            2 => Interpolation::Bicubic,
            other => return Err(Error::value(format!("there is no interpolation {other}"))),
        };
        let outside = match outside {
            0 => Outside::Zeros,
            1 => Outside::Border,
            2 => Outside::Mirror,
            other => return Err(Error::value(format!("there is no padding {other}"))),
        };
        Ok(Sampler {
            samples: samples as usize,
            channels: channels as usize,
            size: [height, width],
            grid: [rows, columns],
            interpolation,
            outside,
            align_corners,
        })
    }

    fn out_sizes(&self) -> [i64; 4] {
        [self.samples as i64, self.channels as i64, self.grid[0], self.grid[1]]
    }

    /// Places of a sample.
    fn places(&self) -> usize {
        (self.grid[0] * self.grid[1]) as usize
    }

    /// The first element of an image.
    fn image(&self, sample: usize, channel: usize) -> usize {
        (sample * self.channels + channel) * (self.size[0] * self.size[1]) as usize
    }

    /// The first element of an output plane.
    fn plane(&self, sample: usize, channel: usize) -> usize {
        (sample * self.channels + channel) * self.places()
    }

    /// Calls `body` with the sample and number of each place, and the elements it reads.
    fn for_each_place<T: Element<Compute: Float>>(
        &self,
        places: &[Rounded<T>],
        mut body: impl FnMut(usize, usize, &Taps<T>),
    ) {
        let mut taps = Vec::with_capacity(16);
        for (place, pair) in places.chunks_exact(2).enumerate() {
            taps.clear();
            self.taps(pair[1], pair[0], &mut taps);
            body(place / self.places().max(1), place % self.places().max(1), &taps);
        }
    }

    fn taps<T: Element<Compute: Float>>(&self, down: Rounded<T>, across: Rounded<T>, taps: &mut Taps<T>) {
        let y = self.weights(down, 0);
        let x = self.weights(across, 1);
        for &(row, weight_y, slope_y) in &y {
            for &(column, weight_x, slope_x) in &x {
                let inside = (0..self.size[0]).contains(&row) && (0..self.size[1]).contains(&column);
                if inside {
                    taps.push(Tap {
                        at: (row * self.size[1] + column) as usize,
                        weight: weight_y * weight_x,
                        across: weight_y * slope_x,
                        down: slope_y * weight_x,
                    });
                }
            }
        }
    }

    /// The elements that one number of the grid reads along a dimension, the weight of each, and how it
    /// changes with the number. Elements outside have no element to read.
    fn weights<T: Element<Compute: Float>>(
        &self,
        number: Rounded<T>,
        dim: usize,
    ) -> Vec<(i64, Rounded<T>, Rounded<T>)> {
        let (position, slope) = self.position(number, dim);
        let (zero, one) = (Rounded::of(0.0), Rounded::of(1.0));
        match self.interpolation {
            Interpolation::Bilinear => {
                let (position, slope) = self.folded(position, slope, dim);
                let first = position.floor();
                let part = position - first;
                let at = index(first);
                vec![(at, first + one - position, -slope), (at + 1, part, slope)]
            }
            Interpolation::Nearest => {
                let (position, _) = self.folded(position, slope, dim);
                vec![(index(position.round()), one, zero)]
            }
            Interpolation::Bicubic => {
                let first = position.floor();
                let part = position - first;
                // Each of the four elements is looked up outside on its own.
                let element = |offset: f64| {
                    let (at, _) = self.folded(first + Rounded::of(offset), one, dim);
                    index(at)
                };
                let far = |x: Rounded<T>| cubic_far(x);
                let near = |x: Rounded<T>| cubic_near(x);
                let [a, b, c, d] =
                    [far(part + one), near(part), near(one - part), far(Rounded::of(2.0) - part)];
                vec![
                    (element(-1.0), a.0, a.1 * slope),
                    (element(0.0), b.0, b.1 * slope),
                    (element(1.0), c.0, -c.1 * slope),
                    (element(2.0), d.0, -d.1 * slope),
                ]
            }
        }
    }

    /// A number of the grid as a position between elements, and how that changes with it.
    fn position<T: Element<Compute: Float>>(
        &self,
        number: Rounded<T>,
        dim: usize,
    ) -> (Rounded<T>, Rounded<T>) {
        let size = Rounded::of(self.size[dim] as f64);
        let (one, two) = (Rounded::of(1.0), Rounded::of(2.0));
        if self.align_corners {
            ((number + one) / two * (size - one), (size - one) / two)
        } else {
            (((number + one) * size - one) / two, size / two)
        }
    }

    /// A position brought inside as the padding says, and how it changes with the grid's number.
    fn folded<T: Element<Compute: Float>>(
        &self,
        position: Rounded<T>,
        slope: Rounded<T>,
        dim: usize,
    ) -> (Rounded<T>, Rounded<T>) {
        let size = self.size[dim] as f64;
        let (position, slope) = match self.outside {
            Outside::Zeros => return (position, slope),
            Outside::Border => (position, slope),
            Outside::Mirror if self.align_corners => mirror(position, slope, 0.0, 2.0 * (size - 1.0)),
            Outside::Mirror => mirror(position, slope, -1.0, 2.0 * size - 1.0),
        };
        let last = Rounded::of(size - 1.0);
        let inside = position > Rounded::of(0.0) && position < last;
        let clipped = position.max(Rounded::of(0.0)).min(last);
        // Where the position is clipped, the grid's number changes nothing.
        (
            if position.is_finite() { clipped } else { Rounded::of(0.0) },
            if inside { slope } else { Rounded::of(0.0) },
        )
    }
}

/// A position mirrored at two edges, given in halves, until it lies between them.
fn mirror<T: Element<Compute: Float>>(
    position: Rounded<T>,
    slope: Rounded<T>,
    low: f64,
    high: f64,
) -> (Rounded<T>, Rounded<T>) {
    if low == high {
        return (Rounded::of(0.0), Rounded::of(0.0));
    }
    let (low, span) = (Rounded::of(low / 2.0), Rounded::of((high - low) / 2.0));
    let distance = position - low;
    let slope = if distance < Rounded::of(0.0) { -slope } else { slope };
    let distance = distance.abs();
    let rest = distance.fmod(span);
    let flips = distance.floor_div(span);
    if flips.fmod(Rounded::of(2.0)) == Rounded::of(0.0) {
        (rest + low, slope)
    } else {
        (span - rest + low, -slope)
    }
}

/// The nearest integer of a whole number; far outside any image if it is not one of moderate size.
fn index<T: Element<Compute: Float>>(position: Rounded<T>) -> i64 {
    let position = position.double();
    if position.abs() < 1e9 { position as i64 } else { -1_000_000_000 }
}

/// Keys' cubic with a = -0.75, at distances up to 1, and its derivative.
fn cubic_near<T: Element<Compute: Float>>(x: Rounded<T>) -> (Rounded<T>, Rounded<T>) {
    let a = Rounded::of(-0.75);
    let (two, three) = (Rounded::of(2.0), Rounded::of(3.0));
    let value = ((a + two) * x - (a + three)) * x * x + Rounded::of(1.0);
    (value, (three * (a + two) * x - two * (a + three)) * x)
}

/// Keys' cubic with a = -0.75, at distances from 1 to 2, and its derivative.
fn cubic_far<T: Element<Compute: Float>>(x: Rounded<T>) -> (Rounded<T>, Rounded<T>) {
    let a = Rounded::of(-0.75);
    let value = ((a * x - Rounded::of(5.0) * a) * x + Rounded::of(8.0) * a) * x - Rounded::of(4.0) * a;
    (value, (Rounded::of(3.0) * a * x - Rounded::of(10.0) * a) * x + Rounded::of(8.0) * a)
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
                    let (x, g, mask) = (image.view(), grid.view(), [true; 2]);
                    grid_sampler_2d_backward(grad, x, g, modes.0, modes.1, modes.2, &mask, images, places)
                        .unwrap();
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
    fn shapes_and_modes_are_checked() {
        let (image, grid) = (Array::<f32>::zeros(&[1, 1, 2, 2]), Array::<f32>::zeros(&[1, 1, 1, 2]));
        let mut out = Array::zeros(&[1, 1, 1, 1]);
        assert!(grid_sampler_2d(image.view(), grid.view(), 3, 0, true, out.view_mut()).is_err());
        assert!(grid_sampler_2d(image.view(), grid.view(), 0, 3, true, out.view_mut()).is_err());
        assert!(grid_sampler_2d(image.view(), image.view(), 0, 0, true, out.view_mut()).is_err());
    }
}
