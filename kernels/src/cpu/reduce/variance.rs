//! Variances.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{Complex32, Complex64, Element, Result, Scalar, View, ViewMut};

use super::fold::{Fold, fold};
use super::scan::Running;
use super::{Plain, reduced_count};

/// Compute types with a squared distance: floats and complex numbers.
pub trait Deviation: Running {
    /// |x|², in double precision.
    fn square(wide: Self::Wide) -> f64;
}

impl Deviation for f32 {
    #[inline(always)]
    fn square(wide: f64) -> f64 {
        wide * wide
    }
}

impl Deviation for f64 {
    #[inline(always)]
    fn square(wide: f64) -> f64 {
        wide * wide
    }
}

impl Deviation for Complex32 {
    #[inline(always)]
    fn square(wide: Complex64) -> f64 {
        wide.norm_sqr()
    }
}

impl Deviation for Complex64 {
    #[inline(always)]
    fn square(wide: Complex64) -> f64 {
        wide.norm_sqr()
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
    variance(&self_, &reduced, correction, keepdim, &mut out)?;
    Ok(())
}

/// Variances as [`var`] gives them, and means.
pub fn var_mean<T>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
    mut out: ViewMut<'_, T::Real>,
    mut mean: ViewMut<'_, T>,
) -> Result<()>
where
    T: Element<Compute: Deviation>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    let means = variance(&self_, &reduced, correction, keepdim, &mut out)?;
    mean.write(means.into_iter().map(|mean| T::from_compute(Running::narrow(mean))));
    Ok(())
}

/// Writes variances and returns means in row-major order of outputs.
fn variance<T>(
    input: &View<'_, T>,
    reduced: &[bool],
    correction: Option<Scalar>,
    keepdim: bool,
    out: &mut ViewMut<'_, T::Real>,
) -> Result<Vec<Wide<T>>>
where
    T: Element<Compute: Deviation>,
{
    let count = reduced_count(input.sizes(), reduced) as f64;
    let divisor = Wide::<T>::from_scalar(Scalar::Float(count));
    let mut means = vec![Wide::<T>::ZERO; out.numel()];
    let strides = contiguous_strides(out.sizes());
    // SAFETY: the vector holds an element for each output.
    let mut view = unsafe { ViewMut::from_raw(means.as_mut_ptr(), out.sizes(), &strides) };
    let mean = Plain {
        start: Wide::<T>::ZERO,
        take: |sum: Wide<T>, element: T| Arithmetic::add(sum, element.to_compute().widen()),
        merge: |a: Wide<T>, b: Wide<T>| Arithmetic::add(a, b),
        end: |sum| Arithmetic::div(sum, divisor),
    };
    fold(input, reduced, keepdim, &mut view, &mean)?;
    let divisor = (count - correction.map_or(1.0, Scalar::to_f64)).max(0.0);
    fold(input, reduced, keepdim, out, &Squares::<T> { means: &means, divisor })?;
    Ok(means)
}
