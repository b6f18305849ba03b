//! Norms of vectors.

use opsmith_runtime::infer::reduced_dims;
use opsmith_runtime::{Element, Error, Result, Scalar, View, ViewMut};

use super::extreme::refuse_empty;
use super::scan::Running;
use super::variance::Deviation;
use super::{Plain, Sum, fold::fold};
use crate::math::maximum;

/// `(∑ |x|^ord)^(1 / ord)` over dimensions: the norm of `[3, 4]` is 5 for `ord` 2 and 7 for 1. Infinity and
/// minus infinity give the largest and the smallest size, 0 counts the elements that are not zero.
///
/// In double precision, rounded once, so that sums and powers overflow only where the norm does.
///
/// # Errors
/// If `ord` is complex, or an infinity or negative where there are outputs without elements.
pub fn vector_norm<T>(
    self_: View<'_, T>,
    ord: Scalar,
    dim: Option<&[i64]>,
    keepdim: bool,
    mut out: ViewMut<'_, T::Real>,
) -> Result<()>
where
    T: Element<Compute: Deviation>,
{
    let reduced = reduced_dims(self_.dim(), dim)?;
    let ord = real_order(ord, self_.sizes(), &reduced)?;
    let rounded = |norm: f64| T::Real::from_scalar(Scalar::Float(norm));
    let size = |element: T| T::Compute::size(element.to_compute().widen());
    let square = |element: T| T::Compute::square(element.to_compute().widen());
    match ord {
        1.0 => fold(&self_, &reduced, keepdim, &mut out, &Sum { map: size, end: rounded }),
        2.0 => {
            let end = |sum: f64| rounded(sum.sqrt());
            fold(&self_, &reduced, keepdim, &mut out, &Sum { map: square, end })
        }
        f64::INFINITY | f64::NEG_INFINITY => {
            // The smallest size is the largest of the negative ones.
            let (start, sign) = if ord > 0.0 { (0.0, 1.0) } else { (f64::NEG_INFINITY, -1.0) };
            let take = |most: f64, x: T| maximum(most, sign * size(x));
            let end = |most: f64| rounded(sign * most);
            let largest = Plain::<true, _, _, _, _> { start, take, merge: maximum::<f64>, end };
            fold(&self_, &reduced, keepdim, &mut out, &largest)
        }
        _ => {
            let power = |size: f64| match ord {
                0.0 => f64::from(u8::from(size != 0.0)),
                _ => size.powf(ord),
            };
            let take = |sum: f64, x: T| sum + power(size(x));
            let end = |sum: f64| rounded(if ord == 0.0 { sum } else { sum.powf(1.0 / ord) });
            let sum = Plain::<false, _, _, _, _> { start: 0.0, take, merge: |a: f64, b: f64| a + b, end };
            fold(&self_, &reduced, keepdim, &mut out, &sum)
        }
    }
}

/// The order of a norm over dimensions.
///
/// # Errors
/// As [`vector_norm`].
pub(crate) fn real_order(ord: Scalar, sizes: &[i64], reduced: &[bool]) -> Result<f64> {
    if ord.to_complex().im != 0.0 {
        return Err(
            Error::value(format!("there is no {ord}-norm")).with_help("use a real number or infinity")
        );
    }
    let ord = ord.to_f64();
    if ord < 0.0 || ord == f64::INFINITY {
        refuse_empty(sizes, reduced)?;
    }
    Ok(ord)
}

#[cfg(test)]
mod tests {
    use half::f16;
    use opsmith_runtime::Complex64;

    use super::*;
    use crate::cpu::testing::Array;

    fn norm<T: Element<Compute: Deviation>>(elements: Vec<T>, ord: f64) -> Result<f64> {
        let (x, mut out) = (Array::new(&[elements.len() as i64], elements), Array::zeros(&[]));
        vector_norm(x.view(), Scalar::Float(ord), None, false, out.view_mut())?;
        Ok(out.to_vec()[0].to_scalar().to_f64())
    }

    #[test]
    fn norms_of_every_order() {
        let sizes = |ord: f64| norm(vec![3.0, -4.0, 0.0], ord).unwrap();
        assert_eq!([sizes(0.0), sizes(1.0), sizes(2.0)], [2.0, 7.0, 5.0]);
        assert_eq!([sizes(f64::INFINITY), sizes(f64::NEG_INFINITY), sizes(-1.0)], [4.0, 0.0, 0.0]);
        assert_eq!(norm(vec![Complex64::new(3.0, 4.0); 4], 2.0).unwrap(), 10.0);
        assert!(norm(vec![f64::NAN, 1.0], f64::INFINITY).unwrap().is_nan());
    }

    #[test]
    fn only_the_norm_is_rounded() {
        // 8.5 to the power of 6 is beyond the largest half.
        assert_eq!(norm(vec![f16::from_f32(8.5)], 6.0).unwrap(), 8.5);
        assert_eq!(norm(vec![1e30f32, 0.0], 2.0).unwrap(), f64::from(1e30f32));
    }

    #[test]
    fn nothing_has_some_norms() {
        assert_eq!(norm(Vec::<f32>::new(), 2.0).unwrap(), 0.0);
        assert!(norm(Vec::<f32>::new(), f64::INFINITY).is_err() && norm(Vec::<f32>::new(), -1.0).is_err());
    }
}
