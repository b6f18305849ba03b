//! From blocks of random bits to numbers: uniform, normal, integers, permutations.
//!
//! Each distribution says which words of which block make which element, so that a kernel in another
//! language or on another device can give the same values.

use std::marker::PhantomData;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::random::Stream;
use crate::random::normal;

/// How blocks become elements.
///
/// Element `i` is number `i % PER_BLOCK` of block `i / PER_BLOCK`.
pub trait Distribution {
    /// The type of its numbers.
    type Element: Copy;
    /// The elements of one block.
    type Block: AsRef<[Self::Element]>;
    /// How many elements one block gives.
    const PER_BLOCK: u64;

    /// The elements that the `index`-th block of a stream gives, which has these words.
    fn of_words(&self, stream: &Stream, index: u64, words: [u32; 4]) -> Self::Block;

    /// The elements that the `index`-th block of a stream gives.
    #[inline]
    fn block(&self, stream: &Stream, index: u64) -> Self::Block {
        self.of_words(stream, index, stream.block(index))
    }
}

/// Uniform over `[0, 1)`, for `f16`, `bf16`, `f32` and `f64`.
///
/// `f32` is the upper 24 bits of word `i % 4` of block `i / 4`, divided by 2^24: every multiple of
/// 2^-24 below 1 is equally likely. `f16` and `bf16` take the upper 11 and 8 bits of the same word, so
/// they never round to 1. `f64` is the upper 53 bits of the 64-bit number whose low half is word
/// `2 * (i % 2)` of block `i / 2` and whose high half is the word after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform<T>(PhantomData<T>);

impl<T: Element> Uniform<T> {
    /// The distribution for this element type.
    pub fn new() -> Uniform<T> {
        Uniform(PhantomData)
    }
}

macro_rules! uniform_from_words {
    ($($ty:ty, $bits:expr, |$upper:ident| $from:expr;)*) => {$(
        impl Distribution for Uniform<$ty> {
            type Element = $ty;
            type Block = [$ty; 4];
            const PER_BLOCK: u64 = 4;
            #[inline(always)]
            fn of_words(&self, _: &Stream, _: u64, words: [u32; 4]) -> [$ty; 4] {
                const SCALE: f32 = 1.0 / (1u32 << $bits) as f32;
                words.map(|word| {
                    let $upper = (word >> (32 - $bits)) as f32 * SCALE;
                    $from
                })
            }
        }
    )*};
}

uniform_from_words! {
    f32, 24, |value| value;
}

impl Distribution for Uniform<f64> {
    type Element = f64;
    type Block = [f64; 2];
    const PER_BLOCK: u64 = 2;
    #[inline(always)]
    fn of_words(&self, _: &Stream, _: u64, words: [u32; 4]) -> [f64; 2] {
        halves(words).map(|bits| (bits >> 11) as f64 * F64_STEP)
    }
}

/// Distance between neighbouring values of a uniform `f64`.
const F64_STEP: f64 = 1.0 / (1u64 << 53) as f64;

/// A block as two 64-bit numbers.
#[inline(always)]
fn halves([w0, w1, w2, w3]: [u32; 4]) -> [u64; 2] {
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [join(w0, w1), join(w2, w3)]
}

/// Normal with mean 0 and standard deviation 1 by the method of Box and Muller, for `f16`, `bf16`,
/// `f32` and `f64`.
///
/// A pair of elements comes from a pair of uniform numbers `u` in (0, 1] and `v` in [0, 1): the even
/// one is `sqrt(-2 ln u) cos(2 π v)`, the odd one has the sine. For `f32` the pair `2p, 2p + 1` uses
/// words `2 (p % 2)` and the next of block `p / 2`, with `u = (word + 1) / 2^32` rounded to `f32` and
/// `v = word / 2^32`; logarithm and sine are polynomials of additions and multiplications, so every
/// device gives the same bits. `f16` and `bf16` are the `f32` values, rounded. For `f64` the pair uses
/// all of block `p`, 53 bits each, and the platform's logarithm and sine, whose last bit may differ.
///
/// The largest magnitudes are 6.66 (`f32`) and 8.57 (`f64`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Normal<T>(PhantomData<T>);

impl<T: Element> Normal<T> {
    /// The distribution for this element type.
    pub fn new() -> Normal<T> {
        Normal(PhantomData)
    }
}

macro_rules! normal_from_words {
    ($($ty:ty, $from:expr;)*) => {$(
        impl Distribution for Normal<$ty> {
            type Element = $ty;
            type Block = [$ty; 4];
            const PER_BLOCK: u64 = 4;
            #[inline(always)]
            fn of_words(&self, _: &Stream, _: u64, [w0, w1, w2, w3]: [u32; 4]) -> [$ty; 4] {
                let (a, b) = (normal::pair_f32(w0, w1), normal::pair_f32(w2, w3));
                [a.0, a.1, b.0, b.1].map($from)
            }
        }
    )*};
}

normal_from_words! {
    f32, |value| value;
}

macro_rules! from_words_of_f32 {
    ($({ $variant:ident: $half:ty, $size:tt })*) => {
        uniform_from_words! {
            $($half, <$half>::MANTISSA_DIGITS, |value| <$half>::from_f32(value);)*
        }
        normal_from_words! { $($half, <$half>::from_f32;)* }
    };
}

opsmith_core::for_each_half!(from_words_of_f32);

impl Distribution for Normal<f64> {
    type Element = f64;
    type Block = [f64; 2];
    const PER_BLOCK: u64 = 2;
    #[inline(always)]
    fn of_words(&self, _: &Stream, _: u64, words: [u32; 4]) -> [f64; 2] {
        let [first, second] = halves(words).map(|bits| bits >> 11);
        let radius = (-2.0 * ((first + 1) as f64 * F64_STEP).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * (second as f64 * F64_STEP)).sin_cos();
        [radius * cosine, radius * sine]
    }
}

/// Integers of a range, all exactly equally likely.
///
/// Element `i` is the upper half of the 128-bit product of the range's length with a 64-bit number
/// `x`, plus the range's start. `x` is half `i % 2` of block `i / 2` (low word first). Where the lower
/// half of the product is below `2^64 mod length`, `x` would favour some results, and the same half of
/// the block of the next attempt (see [`Stream::block_of_attempt`]) is taken instead.
///
/// Source: Lemire, "Fast Random Integer Generation in an Interval", 2019.
#[derive(Clone, Copy, Debug)]
pub struct Integers {
    low: i64,
    length: u64,
}

impl Integers {
    /// The integers from `low` to `high - 1`.
    ///
    /// # Errors
    /// If there are none.
    pub fn new(low: i64, high: i64) -> Result<Integers> {
        if low >= high {
            return Err(Error::value(format!("there is no integer from {low} to below {high}"))
                .with_help("the upper bound is exclusive and must be above the lower one"));
        }
        Ok(Integers { low, length: high.wrapping_sub(low) as u64 })
    }

    #[inline]
    fn pick(&self, stream: &Stream, index: u64, half: usize, first: u64) -> i64 {
        let mut bits = first;
        let mut attempt = 0;
        loop {
            let product = u128::from(bits) * u128::from(self.length);
            // The threshold is below the length, so it is seldom needed.
            if product as u64 >= self.length || product as u64 >= self.length.wrapping_neg() % self.length {
                return self.low.wrapping_add((product >> 64) as i64);
            }
            attempt += 1;
            bits = halves(stream.block_of_attempt(index, attempt))[half];
        }
    }
}

impl Distribution for Integers {
    type Element = i64;
    type Block = [i64; 2];
    const PER_BLOCK: u64 = 2;
    #[inline(always)]
    fn of_words(&self, stream: &Stream, index: u64, words: [u32; 4]) -> [i64; 2] {
        let [first, second] = halves(words);
        [self.pick(stream, index, 0, first), self.pick(stream, index, 1, second)]
    }
}

/// Writes the numbers from 0 to `length - 1` into a slice of that length in random order, every order equally likely
/// as far as the stream's 64-bit seed allows.
///
/// Fisher and Yates: for `i` from `length - 1` down to 1, position `i` changes places with position
/// `j`, element `i` of the distribution [`Integers`] over `0..=i`. Needs `(length + 1) / 2` blocks.
pub fn permutation(stream: &Stream, order: &mut [i64]) {
    order.iter_mut().zip(0..).for_each(|(place, number)| *place = number);
    let (mut index, mut block) = (u64::MAX, [0; 2]);
    for position in (1..order.len()).rev() {
        if position as u64 / 2 != index {
            index = position as u64 / 2;
            block = halves(stream.block(index));
        }
        let range = Integers { low: 0, length: position as u64 + 1 };
        let other = range.pick(stream, index, position % 2, block[position % 2]);
        order.swap(position, other as usize);
    }
}
