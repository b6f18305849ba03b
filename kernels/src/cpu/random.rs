//! Random elements.
//!
//! Every kernel takes its random bits from a [`Generator`], or from the default one; the same seed
//! gives the same elements for all strides of the output.

use opsmith_runtime::random::{Distribution, Generator, Integers, Normal, Uniform, default_generator};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use opsmith_runtime::arith::Arithmetic;

use super::copy::with_slice;
use super::strides::{expect_operand, expect_sizes};

/// Float types with random numbers.
pub trait Random: Element<Compute: Arithmetic> {
    /// Fills a slice with numbers from 0 to below 1.
    fn fill_uniform(generator: &Generator, out: &mut [Self]);
    /// Fills a slice with numbers of mean 0 and deviation 1.
    fn fill_normal(generator: &Generator, out: &mut [Self]);
}

macro_rules! random {
    ($($ty:ty),*) => {$(
        impl Random for $ty {
            fn fill_uniform(generator: &Generator, out: &mut [$ty]) {
                generator.fill(&Uniform::<$ty>::new(), out);
            }
            fn fill_normal(generator: &Generator, out: &mut [$ty]) {
                generator.fill(&Normal::<$ty>::new(), out);
            }
        }
    )*};
}

macro_rules! random_halves {
    ($({ $variant:ident: $($columns:tt)* })*) => {
        random!($(opsmith_runtime::element::named::$variant),*);
    };
}

random!(f32, f64);
opsmith_core::for_each_half!(random_halves);

/// Numbers from `from` to below `to`.
///
/// # Errors
/// If `from` is above `to` or one is not finite.
pub fn uniform<T: Random>(
    from: f64,
    to: f64,
    generator: Option<&Generator>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    check_range(from, to)?;
    with_slice(&mut out, |out| {
        T::fill_uniform(chosen(generator), out);
        scale(out, from, to - from);
    })
}

/// Refuses a range of uniform numbers that has none.
///
/// # Errors
/// As it says.
pub(crate) fn check_range(from: f64, to: f64) -> Result<()> {
    match from <= to && from.is_finite() && to.is_finite() {
        true => Ok(()),
        false => Err(Error::value(format!("there are no numbers from {from} to {to}"))),
    }
}

/// Refuses a number that is no standard deviation.
///
/// # Errors
/// As it says.
pub(crate) fn check_deviation(std: f64) -> Result<()> {
    if std.is_nan() || std < 0.0 {
        return Err(Error::value(format!("a deviation of {std} is not possible"))
            .with_help("the standard deviation is a number from 0 on"));
    }
    Ok(())
}

/// Normally distributed numbers.
///
/// # Errors
/// If the deviation is negative.
pub fn normal<T: Random>(
    mean: f64,
    std: f64,
    generator: Option<&Generator>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    check_deviation(std)?;
    with_slice(&mut out, |out| {
        T::fill_normal(chosen(generator), out);
        scale(out, mean, std);
    })
}

/// The generator, or the default one.
pub(crate) fn chosen(generator: Option<&Generator>) -> &Generator {
    generator.unwrap_or_else(|| default_generator())
}

fn scale<T: Random>(out: &mut [T], shift: f64, factor: f64) {
    if (shift, factor) == (0.0, 1.0) {
        return;
    }
    let number = |value: f64| T::Compute::from_scalar(Scalar::Float(value));
    let (shift, factor) = (number(shift), number(factor));
    for element in out {
        let scaled = Arithmetic::mul(element.to_compute(), factor);
        *element = T::from_compute(Arithmetic::add(scaled, shift));
    }
}

/// Numbers from 0 to below 1.
pub fn rand<T: Random>(generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    with_slice(&mut out, |out| T::fill_uniform(chosen(generator), out))
}

/// Normally distributed numbers of mean 0 and deviation 1.
pub fn randn<T: Random>(generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    with_slice(&mut out, |out| T::fill_normal(chosen(generator), out))
}

/// Integers from `low` to below `high`.
///
/// # Errors
/// If there are none.
pub fn randint<T: Element>(
    low: i64,
    high: i64,
    generator: Option<&Generator>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let integers = Integers::new(low, high)?;
    write(&mut out, &integers, generator, |_, integer| T::from_scalar(Scalar::Int(integer)))
}

/// Draws one number an output element and writes `element` of its position and the number.
fn write<T: Element, D: Distribution>(
    out: &mut ViewMut<'_, T>,
    distribution: &D,
    generator: Option<&Generator>,
    mut element: impl FnMut(usize, D::Element) -> T,
) -> Result<()> {
    let count = out.numel();
    let stream = chosen(generator).reserve_for(distribution, count);
    let blocks = (count as u64).div_ceil(D::PER_BLOCK);
    let numbers = (0..blocks).flat_map(|index| {
        let block = distribution.block(&stream, index);
        (0..D::PER_BLOCK as usize).map(move |within| block.as_ref()[within])
    });
    out.write(numbers.take(count).enumerate().map(|(position, number)| element(position, number)))
}

/// 1 with the probability that the element of `self` gives, else 0.
///
/// # Errors
/// If a probability is not between 0 and 1.
pub fn bernoulli<T: Element>(
    self_: View<'_, T>,
    generator: Option<&Generator>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_sizes(out.sizes(), self_.sizes())?;
    let probabilities: Scratch<f64> =
        self_.iter().map(|element| probability(element.to_scalar().to_f64())).collect::<Result<_>>()?;
    write(&mut out, &Uniform::<f64>::new(), generator, |position, number| {
        T::from_scalar(Scalar::Bool(number < probabilities[position]))
    })
}

/// 1 with probability `p`, else 0.
///
/// # Errors
/// If the probability is not between 0 and 1.
pub fn bernoulli_p<T: Element>(p: f64, generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    let p = probability(p)?;
    write(&mut out, &Uniform::<f64>::new(), generator, |_, number| T::from_scalar(Scalar::Bool(number < p)))
}

/// A probability.
///
/// # Errors
/// If the number is none.
pub(crate) fn probability(p: f64) -> Result<f64> {
    if (0.0..=1.0).contains(&p) {
        return Ok(p);
    }
    Err(Error::value(format!("{p} is not a probability")).with_help("use a number from 0 to 1"))
}

/// The numbers from 0 to `n - 1` in random order.
///
/// # Errors
/// If the output does not have that many elements.
pub fn randperm<T: Element>(n: i64, generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    expect_sizes(out.sizes(), &[n])?;
    let mut order = Scratch::filled(0, n as usize);
    chosen(generator).permute_into(&mut order);
    out.write(order.into_iter().map(|number| T::from_scalar(Scalar::Int(number))))
}

/// `input` with elements set to 0 with probability `p` and the others divided by `1 - p`, and which
/// were kept. Without `train`, everything is.
///
/// # Errors
/// If the probability is not between 0 and 1.
pub fn native_dropout<T: Element<Compute: Arithmetic>>(
    input: View<'_, T>,
    p: f64,
    train: Option<bool>,
    mut out: ViewMut<'_, T>,
    mut mask: ViewMut<'_, bool>,
) -> Result<()> {
    let p = if train.unwrap_or(true) { probability(p)? } else { 0.0 };
    expect_operand("mask", mask.sizes(), input.sizes())?;
    if p == 0.0 {
        mask.write(std::iter::repeat(true))?;
    } else {
        write(&mut mask, &Uniform::<f32>::new(), None, |_, number| f64::from(number) >= p)?;
    }
    let scale = T::Compute::from_scalar(Scalar::Float(if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) }));
    let kept = input.iter().zip(mask.as_view().iter().collect::<Scratch<_>>());
    out.write(kept.map(|(element, keep)| {
        let scaled = Arithmetic::mul(element.to_compute(), scale);
        if keep { T::from_compute(scaled) } else { T::default() }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::Array;
    use opsmith_runtime::f16;

    #[test]
    fn the_same_seed_gives_the_same_elements_at_any_strides() {
        let mut dense = Array::<f32>::zeros(&[20, 50]);
        let mut strided = Array::<f32>::zeros(&[50, 40]).halved(1).permuted(&[1, 0]);
        rand(Some(&Generator::new(7)), dense.view_mut()).unwrap();
        uniform(0.0, 1.0, Some(&Generator::new(7)), strided.view_mut()).unwrap();
        assert_eq!(dense.to_vec(), strided.to_vec());
        let mut whole = Array::<i64>::zeros(&[1000]);
        randint(3, 5, Some(&Generator::new(7)), whole.view_mut()).unwrap();
        let fours = whole.to_vec().iter().filter(|&&x| x == 4).count();
        assert!(whole.to_vec().iter().all(|x| (3..5).contains(x)) && (400..600).contains(&fours));
    }

    #[test]
    fn moments() {
        let generator = Generator::new(1);
        let mut out = Array::<f64>::zeros(&[20_000]);
        normal(2.0, 3.0, Some(&generator), out.view_mut()).unwrap();
        let mean = out.to_vec().iter().sum::<f64>() / 20_000.0;
        let variance = out.to_vec().iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!((mean - 2.0).abs() < 0.1 && (variance - 9.0).abs() < 0.4);
        let mut out = Array::<f16>::zeros(&[1000]);
        uniform(-1.0, 1.0, Some(&generator), out.view_mut()).unwrap();
        assert!(out.to_vec().iter().all(|x| x.to_f32().abs() <= 1.0));
    }

    #[test]
    fn choices() {
        let generator = Generator::new(1);
        let p = Array::new(&[2], [0.0f32, 1.0]).repeated(50);
        let mut out = Array::zeros(&[50, 2]);
        bernoulli(p.view(), Some(&generator), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), p.to_vec());
        let mut out = Array::<bool>::zeros(&[1000]);
        bernoulli_p(0.25, Some(&generator), out.view_mut()).unwrap();
        assert!((180..320).contains(&out.to_vec().iter().filter(|x| **x).count()));
        let mut order = Array::<i32>::zeros(&[100]);
        randperm(100, Some(&generator), order.view_mut()).unwrap();
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        assert!(sorted == (0..100).collect::<Vec<_>>() && sorted != order.to_vec());
        let ones = Array::new(&[100], vec![1.0f32; 100]);
        let (mut out, mut mask) = (Array::zeros(&[100]), Array::zeros(&[100]));
        native_dropout(ones.view(), 0.5, None, out.view_mut(), mask.view_mut()).unwrap();
        assert!(out.to_vec().iter().zip(mask.to_vec()).all(|(&x, keep)| x == if keep { 2.0 } else { 0.0 }));
        let many = Array::new(&[1000], vec![1.0f32; 1000]);
        let (mut some, mut which) = (Array::zeros(&[1000]), Array::zeros(&[1000]));
        native_dropout(many.view(), 0.2, None, some.view_mut(), which.view_mut()).unwrap();
        assert!((120..280).contains(&which.to_vec().iter().filter(|keep| !**keep).count()));
        assert!(
            some.to_vec().iter().zip(which.to_vec()).all(|(&x, keep)| x == if keep { 1.25 } else { 0.0 })
        );
        native_dropout(ones.view(), 1.0, None, out.view_mut(), mask.view_mut()).unwrap();
        assert_eq!(out.to_vec(), [0.0; 100]);
        native_dropout(ones.view(), 0.9, Some(false), out.view_mut(), mask.view_mut()).unwrap();
        assert_eq!(out.to_vec(), ones.to_vec());
    }

    #[test]
    fn impossible_parameters_are_errors() {
        let mut out = Array::<f32>::zeros(&[1]);
        assert!(uniform(1.0, 0.0, None, out.view_mut()).is_err());
        assert!(normal(0.0, -1.0, None, out.view_mut()).is_err());
        assert!(bernoulli_p(f64::NAN, None, out.view_mut()).is_err());
        assert!(randint::<f32>(3, 3, None, out.view_mut()).is_err());
    }
}
