//! The elements that each place along one dimension is made of, and their weights.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{DType, Element, Scalar, Scratch};

/// How a place is made of elements.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    /// The element below the place.
    Below,
    /// The element nearest to the place's middle.
    Nearest,
    /// The two elements around the place.
    Linear,
    /// The four elements around the place.
    Cubic,
}

impl Mode {
    pub(super) fn of(number: i64) -> Mode {
        match number {
            0 => Mode::Below,
            1 => Mode::Nearest,
            2 => Mode::Linear,
            _ => Mode::Cubic,
        }
    }

    fn taps(self) -> usize {
        match self {
            Mode::Below | Mode::Nearest => 1,
            Mode::Linear => 2,
            Mode::Cubic => 4,
        }
    }
}

/// One dimension: `taps` elements for each place of the result.
pub(super) struct Axis<C> {
    pub input: usize,
    pub output: usize,
    pub taps: usize,
    places: Scratch<usize>,
    weights: Scratch<C>,
}

/// Whether grids share their outermost elements or their edges, and how often larger the result is said to be.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    pub align_corners: bool,
    /// 0 if the sizes say it.
    pub factor: f64,
}

impl<C: Arithmetic> Axis<C> {
    /// A dimension that is not there.
    pub(super) fn none() -> Axis<C> {
        let (places, weights) = ([0].into_iter().collect(), [C::ONE].into_iter().collect());
        Axis { input: 1, output: 1, taps: 1, places, weights }
    }

    /// The elements and weights of each place of a result of elements `T`.
    pub(super) fn new<T>(input: usize, output: usize, mode: Mode, scale: Scale) -> Axis<C>
    where
        T: Element<Compute = C>,
    {
        let taps = mode.taps();
        let (mut places, mut weights) =
            (Scratch::with_capacity(output * taps), Scratch::with_capacity(output * taps));
        let sources = Sources::new(input, output, scale, T::DTYPE == DType::F64);
        for place in 0..output {
            for (from, weight) in &sources.at(place, mode)[..taps] {
                places.push(*from);
                // Weights are elements: 16-bit floats have few of them.
                weights.push(T::from_scalar(Scalar::Float(*weight)).to_compute());
            }
        }
        Axis { input, output, taps, places, weights }
    }

    /// The elements of each place and their weights, if each has as many.
    #[inline(always)]
    pub(super) fn of_places<const TAPS: usize>(&self) -> (&[[usize; TAPS]], &[[C; TAPS]]) {
        debug_assert_eq!(TAPS, self.taps);
        (self.places.as_chunks().0, self.weights.as_chunks().0)
    }

    /// The elements of a place, with their weights.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> impl Iterator<Item = (usize, C)> + '_ {
        let range = place * self.taps..(place + 1) * self.taps;
        self.places[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }
}

/// Elements from one place of a result to the next, as a number that elements' dtype holds.
pub(crate) fn scale_of(
    input: usize,
    output: usize,
    align_corners: bool,
    factor: f64,
    is_double: bool,
) -> f64 {
    Sources::new(input, output, Scale { align_corners, factor }, is_double).scale
}

/// Places of a result among the elements, in single precision unless elements are double.
struct Sources {
    input: usize,
    output: usize,
    align_corners: bool,
    scale: f64,
    is_double: bool,
}

impl Sources {
    fn new(input: usize, output: usize, scale: Scale, is_double: bool) -> Sources {
        let Scale { align_corners, factor } = scale;
        let mut sources = Sources { input, output, align_corners, scale: 0.0, is_double };
        let held = |value| sources.held(value);
        let quotient = |above: usize, below: usize| held(held(above as f64) / held(below as f64));
        sources.scale = if align_corners {
            if output > 1 { quotient(input - 1, output - 1) } else { 0.0 }
        } else if factor > 0.0 {
            held(1.0 / factor)
        } else {
            quotient(input, output)
        };
        sources
    }

    fn held(&self, value: f64) -> f64 {
        if self.is_double { value } else { f64::from(value as f32) }
    }

    /// A place among the elements, as a number that need not be whole.
    fn position(&self, place: usize, aligned: bool) -> f64 {
        let place = self.held(place as f64);
        if aligned {
            self.held(self.scale * place)
        } else {
            // Rounded once, as PyTorch's compiled code does.
            self.held(self.scale.mul_add(self.held(place + 0.5), -0.5))
        }
    }

    /// The elements of a place and their weights; a mode uses the first ones.
    fn at(&self, place: usize, mode: Mode) -> [(usize, f64); 4] {
        let last = self.input - 1;
        let whole = |position: f64| (position.floor() as i64).clamp(0, last as i64) as usize;
        match mode {
            Mode::Below => [(whole(self.position(place, true)), 1.0); 4],
            Mode::Nearest => [(whole(self.held(self.position(place, false) + 0.5)), 1.0); 4],
            Mode::Linear if self.input == self.output => {
                let at = place.min(last);
                [(at, 1.0), (at, 0.0), (at, 0.0), (at, 0.0)]
            }
            Mode::Linear => {
                let position = self.position(place, self.align_corners).max(0.0);
                let first = whole(position);
                let part = self.held(position - first as f64).clamp(0.0, 1.0);
                let second = (first + 1).min(last);
                [(first, self.held(1.0 - part)), (second, part), (second, 0.0), (second, 0.0)]
            }
            Mode::Cubic => {
                let position = self.position(place, self.align_corners);
                // A place before the first element is a negative part of the way to it.
                let first = (position.floor() as i64).min(last as i64);
                let part = self.held(position - first as f64).clamp(0.0, 1.0);
                let weights = cubic(part);
                std::array::from_fn(|tap| {
                    let at = first.saturating_add(tap as i64 - 1).clamp(0, last as i64);
                    (at as usize, weights[tap])
                })
            }
        }
    }
}

/// Weights of four neighbours of a place between the second and the third, by cubics whose slope is -0.75.
fn cubic(part: f64) -> [f64; 4] {
    const SLOPE: f64 = -0.75;
    let near = |x: f64| ((SLOPE + 2.0) * x - (SLOPE + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((SLOPE * x - 5.0 * SLOPE) * x + 8.0 * SLOPE) * x - 4.0 * SLOPE;
    [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps(input: usize, output: usize, mode: Mode, align_corners: bool) -> Vec<Vec<(usize, f64)>> {
        let scale = Scale { align_corners, factor: 0.0 };
        let axis = Axis::new::<f64>(input, output, mode, scale);
        (0..output).map(|place| axis.at(place).collect()).collect()
    }

    #[test]
    fn weights_of_places() {
        let linear = taps(2, 4, Mode::Linear, false);
        assert_eq!(linear[0], [(0, 1.0), (1, 0.0)]);
        assert_eq!(linear[1], [(0, 0.75), (1, 0.25)]);
        assert_eq!(linear[3], [(1, 0.75), (1, 0.25)]);
        assert_eq!(taps(3, 5, Mode::Linear, true)[3], [(1, 0.5), (2, 0.5)]);
        assert_eq!(taps(4, 2, Mode::Below, false), [[(0, 1.0)], [(2, 1.0)]]);
        assert_eq!(taps(4, 2, Mode::Nearest, false), [[(1, 1.0)], [(3, 1.0)]]);
        for (mode, align) in [(Mode::Linear, false), (Mode::Cubic, false), (Mode::Cubic, true)] {
            for place in taps(5, 13, mode, align) {
                let sum: f64 = place.iter().map(|(_, weight)| weight).sum();
                assert!((sum - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn odd_scales_stay_inside() {
        for factor in [1e-308, 1e308, f64::INFINITY, f64::NAN, -1.0] {
            for mode in [Mode::Below, Mode::Nearest, Mode::Linear, Mode::Cubic] {
                let scale = Scale { align_corners: false, factor };
                let axis = Axis::new::<f32>(3, 5, mode, scale);
                assert!((0..5).all(|place| axis.at(place).all(|(from, _)| from < 3)));
            }
        }
    }
}
