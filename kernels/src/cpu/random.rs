//! Random elements.
//!
//! Every kernel takes its random bits from a [`Generator`], or from the default one; the same seed
//! gives the same elements for all strides of the output.

use std::ops::Range;

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::parallel::{self, CHUNK, Shared};
use opsmith_runtime::random::{
    Distribution, Generator, Integers, Normal, Stream, Uniform, default_generator,
};
use opsmith_runtime::{Element, Error, Result, Scalar, Scratch, View, ViewMut};

use super::copy::{copy_into, with_slice};
use super::simd::widest;
use super::strides::{expect_operand, expect_sizes};

/// A factor and then a shift of random numbers.
#[derive(Clone, Copy)]
pub struct Scale {
    factor: f64,
    shift: f64,
}

impl Scale {
    /// Numbers as they are.
    const NONE: Scale = Scale { factor: 1.0, shift: 0.0 };

    #[inline]
    fn apply<T: Element<Compute: Arithmetic>>(self, out: &mut [T]) {
        if (self.shift, self.factor) == (0.0, 1.0) {
            return;
        }
        let number = |value: f64| T::Compute::from_scalar(Scalar::Float(value));
        let (shift, factor) = (number(self.shift), number(self.factor));
        widest(
            #[inline(always)]
            || {
                for element in out {
                    let scaled = Arithmetic::mul(element.to_compute(), factor);
                    *element = T::from_compute(Arithmetic::add(scaled, shift));
                }
            },
        );
    }
}

/// Fills a slice with numbers of a distribution, in several threads if that takes long.
fn fill<T: Element<Compute: Arithmetic>>(
    generator: &Generator,
    distribution: &(impl Distribution<Element = T> + Sync),
    out: &mut [T],
    scale: Scale,
) {
    let stream = generator.reserve_for(distribution, out.len());
    let (count, target) = (out.len(), Shared(out.as_mut_ptr()));
    parallel::for_each_range(count, CHUNK, |range| {
        // SAFETY: each range has one thread.
        let part = unsafe { part(&target, &range) };
        stream.fill(distribution, range.start as u64, part);
        scale.apply(part);
    });
}

/// Some elements of an output.
///
/// # Safety
/// They are elements of it, and this thread alone uses them.
unsafe fn part<'a, T>(out: &Shared<T>, range: &Range<usize>) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(out.at(range.start as i64), range.len()) }
}

/// Numbers that a kernel has in memory at a time.
pub(in crate::cpu) const PIECE: usize = 512;

/// Calls `body` with the numbers of some elements, piece by piece, and with the first element of each piece.
fn for_each_piece<D: Distribution>(
    distribution: &D,
    stream: &Stream,
    range: Range<usize>,
    mut body: impl FnMut(usize, &[D::Element]),
) {
    let filler = stream.element(distribution, 0);
    let mut numbers = Scratch::filled(filler, PIECE.min(range.len()));
    for first in range.clone().step_by(PIECE) {
        let numbers = &mut numbers[..PIECE.min(range.end - first)];
        stream.fill(distribution, first as u64, numbers);
        body(first, numbers);
    }
}

/// Float types with random numbers.
pub trait Random: Element<Compute: Arithmetic> {
    /// Fills a slice with numbers from 0 to below 1, each multiplied and shifted.
    fn fill_uniform(generator: &Generator, out: &mut [Self], scale: Scale);
    /// Fills a slice with numbers of mean 0 and deviation 1, each multiplied and shifted.
    fn fill_normal(generator: &Generator, out: &mut [Self], scale: Scale);
}

macro_rules! random {
    ($($ty:ty),*) => {$(
        impl Random for $ty {
            fn fill_uniform(generator: &Generator, out: &mut [$ty], scale: Scale) {
                fill(generator, &Uniform::<$ty>::new(), out, scale);
            }
            fn fill_normal(generator: &Generator, out: &mut [$ty], scale: Scale) {
                fill(generator, &Normal::<$ty>::new(), out, scale);
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
        T::fill_uniform(chosen(generator), out, Scale { factor: to - from, shift: from });
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
        T::fill_normal(chosen(generator), out, Scale { factor: std, shift: mean });
    })
}

/// The generator, or the default one.
pub(crate) fn chosen(generator: Option<&Generator>) -> &Generator {
    generator.unwrap_or_else(|| default_generator())
}

/// Numbers from 0 to below 1.
pub fn rand<T: Random>(generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    with_slice(&mut out, |out| T::fill_uniform(chosen(generator), out, Scale::NONE))
}

/// Normally distributed numbers of mean 0 and deviation 1.
pub fn randn<T: Random>(generator: Option<&Generator>, mut out: ViewMut<'_, T>) -> Result<()> {
    with_slice(&mut out, |out| T::fill_normal(chosen(generator), out, Scale::NONE))
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

/// Draws one number an output element and writes `element` of its position and the number, in several threads if that takes
/// long.
fn write<T: Element, D: Distribution + Sync>(
    out: &mut ViewMut<'_, T>,
    distribution: &D,
    generator: Option<&Generator>,
    element: impl Fn(usize, D::Element) -> T + Sync,
) -> Result<()> {
    let stream = chosen(generator).reserve_for(distribution, out.numel());
    with_slice(out, |out| {
        let (count, target) = (out.len(), Shared(out.as_mut_ptr()));
        parallel::for_each_range(count, CHUNK, |range| {
            for_each_piece(distribution, &stream, range, |first, numbers| {
                // SAFETY: each range has one thread.
                let out = unsafe { part(&target, &(first..first + numbers.len())) };
                for ((position, out), &number) in (first..).zip(out).zip(numbers) {
                    *out = element(position, number);
                }
            });
        });
    })
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
    let probabilities = self_.to_contiguous();
    probabilities.iter().try_for_each(|element| probability(element.to_scalar().to_f64()).map(drop))?;
    write(&mut out, &Uniform::<f64>::new(), generator, |position, number| {
        T::from_scalar(Scalar::Bool(number < probabilities[position].to_scalar().to_f64()))
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
        return copy_into(&input, &mut out);
    }
    expect_sizes(out.sizes(), input.sizes())?;
    let scale = T::Compute::from_scalar(Scalar::Float(if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) }));
    let distribution = Uniform::<f32>::new();
    let stream = default_generator().reserve_for(&distribution, input.numel());
    let elements = input.to_contiguous();
    let mut result = Ok(());
    with_slice(&mut mask, |mask| {
        let mask = Shared(mask.as_mut_ptr());
        result = with_slice(&mut out, |out| {
            let out = Shared(out.as_mut_ptr());
            parallel::for_each_range(elements.len(), CHUNK, |range| {
                for_each_piece(&distribution, &stream, range, |first, numbers| {
                    let piece = first..first + numbers.len();
                    // SAFETY: each range has one thread.
                    let (mask, out) = unsafe { (part(&mask, &piece), part(&out, &piece)) };
                    widest(
                        #[inline(always)]
                        || drop_out(&elements[piece], numbers, (p, scale), mask, out),
                    );
                });
            });
        });
    })?;
    result
}

/// Keeps the elements whose number is at least `p`, multiplied by a factor, and says which.
#[inline(always)]
fn drop_out<T: Element<Compute: Arithmetic>>(
    elements: &[T],
    numbers: &[f32],
    (p, factor): (f64, T::Compute),
    mask: &mut [bool],
    out: &mut [T],
) {
    for ((&number, &element), (mask, out)) in numbers.iter().zip(elements).zip(mask.iter_mut().zip(out)) {
        let scaled = T::from_compute(Arithmetic::mul(element.to_compute(), factor));
        *mask = f64::from(number) >= p;
        *out = if *mask { scaled } else { T::default() };
    }
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
