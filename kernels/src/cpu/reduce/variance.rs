//! Variances.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::parallel::{self, Shared};
use opsmith_runtime::{Complex32, Complex64, Dims, Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::fold::{Fold, fold};
use super::scan::Running;
use super::{Sum, reduced_count, sum_row};

/// Compute types with a squared distance: floats and complex numbers.
pub trait Deviation: Running {
    /// |x|², in double precision.
    fn square(wide: Self::Wide) -> f64;
    /// |x|, in double precision.
    fn size(wide: Self::Wide) -> f64;
}

impl Deviation for f32 {
    #[inline(always)]
    fn square(wide: f64) -> f64 {
        wide * wide
    }
    #[inline(always)]
    fn size(wide: f64) -> f64 {
        wide.abs()
    }
}

impl Deviation for f64 {
    #[inline(always)]
    fn square(wide: f64) -> f64 {
        wide * wide
    }
    #[inline(always)]
    fn size(wide: f64) -> f64 {
        wide.abs()
    }
}

impl Deviation for Complex32 {
    #[inline(always)]
    fn square(wide: Complex64) -> f64 {
        wide.norm_sqr()
    }
    #[inline(always)]
    fn size(wide: Complex64) -> f64 {
        wide.re.hypot(wide.im)
    }
}

impl Deviation for Complex64 {
    #[inline(always)]
    fn square(wide: Complex64) -> f64 {
        wide.norm_sqr()
    }
    #[inline(always)]
    fn size(wide: Complex64) -> f64 {
        wide.re.hypot(wide.im)
    }
}

/// A compute type's wider type.
type Wide<T> = <<T as Element>::Compute as Running>::Wide;

/// The sum of squared deviations from means known beforehand.
struct Squares<'a, T: Element<Compute: Deviation>> {
    means: &'a [Wide<T>],
    divisor: f64,
}

impl<T: Element<Compute: Deviation>> Fold<T> for Squares<'_, T> {
    type Context = Wide<T>;
    type Partial = f64;
    type Out = T::Real;

    #[inline(always)]
    fn context(&self, number: usize) -> Wide<T> {
        self.means[number]
    }
    #[inline(always)]
    fn start(&self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn take(&self, mean: Wide<T>, squares: f64, element: T) -> f64 {
        squares + T::Compute::square(Arithmetic::sub(element.to_compute().widen(), mean))
    }
    #[inline(always)]
    fn take_row(&self, mean: Wide<T>, row: &[T]) -> f64 {
        sum_row(row, |element| self.take(mean, 0.0, element))
    }
    #[inline(always)]
    fn merge(&self, first: f64, second: f64) -> f64 {
        first + second
    }
    #[inline(always)]
    fn finish(&self, squares: f64) -> T::Real {
        T::Real::from_scalar(Scalar::Float(squares / self.divisor))
    }
}

/// Variances over dimensions: squared distances from the mean, summed and divided by the number of
/// elements less `correction` (1 if absent). Complex numbers give a real variance.
///
/// `[1, 2, 3, 4]` has the variance 5/3. NaN without elements; a divisor of 0 gives NaN or infinity.
///
/// Two passes in double precision, so that a mean far from zero costs no digits.
pub fn var<T>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
    mut out: ViewMut<'_, T::Real>,
) -> Result<()>
where
    T: Element<Compute: Deviation>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    variance(&self_, &reduced, correction, keepdim, &mut out)
}

/// The number subtracted from that of elements.
///
/// # Errors
/// If it is complex.
pub(crate) fn real_correction(correction: Option<Scalar>) -> Result<f64> {
    if let Some(Scalar::Complex(_)) = correction {
        return Err(Error::value("`correction` must be a real number"));
    }
    Ok(correction.map_or(1.0, Scalar::to_f64))
}

/// Elements whose second pass still finds them in the second cache.
pub(in crate::cpu) const CACHED: i64 = 1 << 15;

/// Writes variances.
fn variance<T>(
    input: &View<'_, T>,
    reduced: &[bool],
    correction: Option<Scalar>,
    keepdim: bool,
    out: &mut ViewMut<'_, T::Real>,
) -> Result<()>
where
    T: Element<Compute: Deviation>,
{
    let count = reduced_count(input.sizes(), reduced) as f64;
    let divisor = Wide::<T>::from_scalar(Scalar::Float(count));
    let mean = Sum {
        map: |element: T| element.to_compute().widen(),
        end: |sum: Wide<T>| Arithmetic::div(sum, divisor),
    };
    let divisor = (count - real_correction(correction)?).max(0.0);
    let mut means = Scratch::filled(Wide::<T>::ZERO, out.numel());
    let strides = contiguous_strides(out.sizes());
    // SAFETY: the vector holds an element for each output.
    let mut means_view = unsafe { ViewMut::from_raw(means.as_mut_ptr(), out.sizes(), &strides) };
    // Slices of a kept first dimension are independent, so each makes both passes while it is cached.
    let (slices, of_each) = match (input.sizes(), reduced) {
        (&[first, ..], &[false, ..]) => (first, input.numel() as i64 / first.max(1)),
        _ => return whole(input, reduced, keepdim, &mean, divisor, &mut means_view, out),
    };
    let together = (CACHED / of_each.max(1)).max(1);
    let (source, target) = (Shared(input.as_ptr().cast_mut()), Shared(out.as_mut_ptr()));
    let (means, out) = (Shared(means_view.as_mut_ptr()), (out.sizes(), out.strides()));
    let blocks = (slices as usize).div_ceil(together as usize);
    parallel::try_for_each_range_of((together * of_each) as usize, blocks, |range| {
        for first in range.map(|block| block as i64 * together) {
            let slice = |strides: &[i64], sizes: &[i64]| {
                let mut sizes = Dims::from_slice(sizes);
                sizes[0] = together.min(slices - first);
                (first * strides[0], sizes)
            };
            let (offset, sizes) = slice(input.strides(), input.sizes());
            // SAFETY: the slices lie inside the views, which are not used otherwise meanwhile, and each has one thread.
            unsafe {
                let input = View::from_raw(source.at(offset).cast_const(), &sizes, input.strides());
                let (offset, sizes) = slice(&strides, out.0);
                let mut means = ViewMut::from_raw(means.at(offset), &sizes, &strides);
                let mut out = ViewMut::from_raw(target.at(first * out.1[0]), &sizes, out.1);
                whole(&input, reduced, keepdim, &mean, divisor, &mut means, &mut out)?;
            }
        }
        Ok(())
    })
}

/// Writes the means, which are contiguous, and then the variances.
fn whole<T: Element<Compute: Deviation>>(
    input: &View<'_, T>,
    reduced: &[bool],
    keepdim: bool,
    mean: &impl Fold<T, Out = Wide<T>>,
    divisor: f64,
    means: &mut ViewMut<'_, Wide<T>>,
    out: &mut ViewMut<'_, T::Real>,
) -> Result<()> {
    fold(input, reduced, keepdim, means, mean)?;
    let means = means.as_mut_slice().unwrap_or(&mut []);
    fold(input, reduced, keepdim, out, &Squares::<T> { means, divisor })
}
