//! Variances.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{Complex32, Complex64, Element, Result, Scalar, View, ViewMut};

use super::fold::{Fold, fold};
use super::{adding, reduced_count};

/// Compute types with a squared distance: floats and complex numbers.
pub trait Deviation: Arithmetic {
    /// The type of squared distances.
    type Square: Arithmetic;
    /// |x|².
    fn square(self) -> Self::Square;
    /// A number of elements as a number.
    fn from_count(count: f64) -> Self::Square;
}

macro_rules! deviation {
    ($($ty:ty => $real:ty, |$x:ident| $square:expr;)*) => {$(
        impl Deviation for $ty {
            type Square = $real;
            #[inline(always)]
            fn square(self) -> $real {
                let $x = self;
                $square
            }
            #[inline(always)]
            fn from_count(count: f64) -> $real {
                count as $real
            }
        }
    )*};
}

deviation! {
    f32 => f32, |x| x * x;
    f64 => f64, |x| x * x;
    Complex32 => f32, |x| x.re * x.re + x.im * x.im;
    Complex64 => f64, |x| x.re * x.re + x.im * x.im;
}

/// The square of a compute type.
type Square<T> = <<T as Element>::Compute as Deviation>::Square;

/// Sums of deviations and of their squares from a mean known beforehand.
///
/// The sum of deviations would be zero but for the rounding of the mean, whose effect it corrects.
struct Squares<'a, T: Element<Compute: Deviation>> {
    means: &'a [T::Compute],
    count: f64,
    correction: f64,
}

impl<T> Fold<T> for Squares<'_, T>
where
    T: Element<Compute: Deviation>,
    T::Real: Element<Compute = Square<T>>,
{
    type Context = T::Compute;
    type Partial = (T::Compute, Square<T>);
    type Out = T::Real;

    #[inline(always)]
    fn context(&self, number: usize) -> T::Compute {
        self.means[number]
    }
    #[inline(always)]
    fn start(&self) -> Self::Partial {
        (T::Compute::ZERO, Arithmetic::ZERO)
    }
    #[inline(always)]
    fn take(&self, mean: T::Compute, (sum, squares): Self::Partial, element: T) -> Self::Partial {
        let deviation = Arithmetic::sub(element.to_compute(), mean);
        (Arithmetic::add(sum, deviation), Arithmetic::add(squares, deviation.square()))
    }
    #[inline(always)]
    fn merge(&self, first: Self::Partial, second: Self::Partial) -> Self::Partial {
        (Arithmetic::add(first.0, second.0), Arithmetic::add(first.1, second.1))
    }
    #[inline(always)]
    fn finish(&self, (sum, squares): Self::Partial) -> T::Real {
        let count = T::Compute::from_count(self.count);
        let divisor = T::Compute::from_count((self.count - self.correction).max(0.0));
        let squares = Arithmetic::sub(squares, Arithmetic::div(sum.square(), count));
        T::Real::from_compute(Arithmetic::div(squares, divisor))
    }
}

/// Variances over dimensions: squared distances from the mean, summed and divided by the number of
/// elements less `correction` (1 if absent). Complex numbers give a real variance.
///
/// `[1, 2, 3, 4]` has the variance 5/3. NaN without elements; a divisor of 0 gives NaN or infinity.
///
/// Source: two passes, corrected for the rounding of the mean (Chan, Golub and LeVeque 1983).
pub fn var<T>(
    self_: View<'_, T>,
    dim: Option<&[i64]>,
    correction: Option<Scalar>,
    keepdim: bool,
    mut out: ViewMut<'_, T::Real>,
) -> Result<()>
where
    T: Element<Compute: Deviation>,
    T::Real: Element<Compute = Square<T>>,
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
    T::Real: Element<Compute = Square<T>>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    let means = variance(&self_, &reduced, correction, keepdim, &mut out)?;
    mean.write(means.into_iter().map(T::from_compute));
    Ok(())
}

/// Writes variances and returns means in row-major order of outputs.
fn variance<T>(
    input: &View<'_, T>,
    reduced: &[bool],
    correction: Option<Scalar>,
    keepdim: bool,
    out: &mut ViewMut<'_, T::Real>,
) -> Result<Vec<T::Compute>>
where
    T: Element<Compute: Deviation>,
    T::Real: Element<Compute = Square<T>>,
{
    let count = reduced_count(input.sizes(), reduced) as f64;
    let divisor = T::Compute::from_scalar(Scalar::Float(count));
    let mut means = vec![T::Compute::ZERO; out.numel()];
    let strides = contiguous_strides(out.sizes());
    // SAFETY: the vector holds an element for each output.
    let mut view = unsafe { ViewMut::from_raw(means.as_mut_ptr(), out.sizes(), &strides) };
    fold(input, reduced, keepdim, &mut view, &adding::<T, _>(|sum| Arithmetic::div(sum, divisor)))?;
    let correction = correction.map_or(1.0, Scalar::to_f64);
    fold(input, reduced, keepdim, out, &Squares::<T> { means: &means, count, correction })?;
    Ok(means)
}
