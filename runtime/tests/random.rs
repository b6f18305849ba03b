//! Random numbers: reproducible, addressable element by element, and with the documented distributions.

use std::collections::HashSet;

use opsmith_runtime::random::{self, Distribution, Generator, GeneratorState, Integers, Normal, Uniform};
use opsmith_runtime::{Element, bf16, f16};

fn sample<D: Distribution>(distribution: &D, count: usize) -> Vec<D::Element>
where
    D::Element: Default,
{
    let mut values = vec![D::Element::default(); count];
    Generator::new(2024).fill(distribution, &mut values);
    values
}

fn as_f64<T: Element>(values: Vec<T>) -> Vec<f64> {
    values.into_iter().map(|value| value.to_scalar().to_f64()).collect()
}

/// Mean, variance, and the largest distance between the sample's and the true distribution function
/// (Kolmogorov and Smirnov), each within four standard errors, the last below its 0.1 % quantile.
fn check(mut values: Vec<f64>, mean: f64, variance: f64, below: impl Fn(f64) -> f64) {
    let count = values.len() as f64;
    let sample_mean = values.iter().sum::<f64>() / count;
    assert!((sample_mean - mean).abs() < 4.0 * (variance / count).sqrt(), "mean {sample_mean}");
    let sample_variance = values.iter().map(|value| (value - sample_mean).powi(2)).sum::<f64>() / count;
    // The variance of a sample variance is at most 2 σ⁴ / n for these distributions.
    assert!(
        (sample_variance - variance).abs() < 4.0 * variance * (2.0 / count).sqrt(),
        "variance {sample_variance}"
    );
    values.sort_by(f64::total_cmp);
    let distance = values
        .iter()
        .enumerate()
        .map(|(rank, value)| {
            let expected = below(*value);
            (expected - rank as f64 / count).abs().max((expected - (rank + 1) as f64 / count).abs())
        })
        .fold(0.0, f64::max);
    assert!(distance * count.sqrt() < 1.95, "Kolmogorov-Smirnov statistic {}", distance * count.sqrt());
}

/// The normal distribution function, by Simpson's rule from the mean.
fn normal_below(value: f64) -> f64 {
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let steps = 64;
    let width = value / f64::from(steps);
    let sum: f64 = (0..=steps)
        .map(|step| {
            let weight = if step == 0 || step == steps { 1.0 } else { f64::from(2 + step % 2 * 2) };
            weight * density(width * f64::from(step))
        })
        .sum();
    0.5 + sum * width / 3.0
}

const COUNT: usize = 100_003;

#[test]
fn uniform_numbers_are_uniform() {
    check(as_f64(sample(&Uniform::<f32>::new(), COUNT)), 0.5, 1.0 / 12.0, |x| x);
    check(as_f64(sample(&Uniform::<f64>::new(), COUNT)), 0.5, 1.0 / 12.0, |x| x);
}

#[test]
fn uniform_numbers_stay_below_one() {
    fn check<T: Element>(steps: f64)
    where
        Uniform<T>: Distribution<Element = T>,
    {
        let values = as_f64(sample(&Uniform::<T>::new(), 50_000));
        let largest = values.iter().copied().fold(0.0, f64::max);
        assert!(largest < 1.0 && largest > 0.999 - 1.0 / steps, "{} reaches {largest}", T::DTYPE);
        assert!(values.iter().all(|value| (value * steps).fract() == 0.0), "{}", T::DTYPE);
    }
    check::<f16>(2048.0);
    check::<bf16>(256.0);
    check::<f32>((1u64 << 24) as f64);
    check::<f64>((1u64 << 53) as f64);
}

#[test]
fn normal_numbers_are_normal() {
    check(as_f64(sample(&Normal::<f32>::new(), COUNT)), 0.0, 1.0, normal_below);
    check(as_f64(sample(&Normal::<f64>::new(), COUNT)), 0.0, 1.0, normal_below);
    let halves = sample(&Normal::<f16>::new(), 100);
    let floats = sample(&Normal::<f32>::new(), 100);
    assert!(halves.iter().zip(&floats).all(|(half, float)| *half == f16::from_f32(*float)));
}

#[test]
fn the_two_normal_numbers_of_a_pair_are_uncorrelated() {
    for values in
        [as_f64(sample(&Normal::<f32>::new(), 200_000)), as_f64(sample(&Normal::<f64>::new(), 200_000))]
    {
        let product = values.chunks_exact(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 100_000.0;
        assert!(product.abs() < 4.0 / 100_000f64.sqrt(), "correlation {product}");
    }
}

#[test]
fn integers_are_equally_likely() {
    // Chi-squared with 9 and with 2 degrees of freedom, each below its 0.1 % quantile.
    for (low, high, limit) in [(-3, 7, 27.9), (i64::MIN, i64::MAX, 13.9)] {
        let cells = if high == 7 { 10usize } else { 3 };
        let mut counts = vec![0u32; cells];
        for value in sample(&Integers::new(low, high).unwrap(), COUNT) {
            assert!((low..high).contains(&value));
            let share = (value as f64 - low as f64) / (high as f64 - low as f64);
            counts[(share * cells as f64) as usize] += 1;
        }
        let expected = COUNT as f64 / cells as f64;
        let squared: f64 = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        assert!(squared < limit, "{low}..{high}: {squared}, {counts:?}");
    }
    assert_eq!(sample(&Integers::new(5, 6).unwrap(), 9), [5; 9]);
}

#[test]
fn an_empty_range_is_an_error() {
    assert_eq!(
        Integers::new(3, 3).unwrap_err().to_string(),
        "there is no integer from 3 to below 3\n  help: the upper bound is exclusive and must be above the lower one"
    );
}

#[test]
fn any_part_of_a_tensor_can_be_filled_alone() {
    fn check<D: Distribution>(distribution: D)
    where
        D::Element: Default + PartialEq + std::fmt::Debug,
    {
        let stream = Generator::new(7).reserve_for(&distribution, 101);
        let mut whole = vec![D::Element::default(); 101];
        stream.fill(&distribution, 0, &mut whole);
        for first in 0..20 {
            for end in first..101 {
                let mut part = vec![D::Element::default(); end - first];
                stream.fill(&distribution, first as u64, &mut part);
                assert_eq!(part, whole[first..end], "{first}..{end}");
            }
        }
        for (index, value) in whole.iter().enumerate() {
            assert_eq!(stream.element(&distribution, index as u64), *value);
        }
    }
    check(Uniform::<f32>::new());
    check(Uniform::<f64>::new());
    check(Normal::<f32>::new());
    check(Normal::<f64>::new());
    check(Integers::new(0, 1 << 40).unwrap());
}

#[test]
fn permutations_are_equally_likely() {
    let generator = Generator::new(11);
    assert!(generator.permutation(0).is_empty());
    let mut sorted = generator.permutation(1000);
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..1000));
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..24_000 {
        *counts.entry(generator.permutation(4)).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 24);
    // Chi-squared with 23 degrees of freedom, below its 0.1 % quantile.
    let squared: f64 = counts.values().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
    assert!(squared < 49.7, "{squared}");
}

#[test]
fn a_state_can_be_returned_to() {
    let generator = Generator::new(5);
    generator.reserve(12);
    let state = generator.state();
    assert_eq!(state, GeneratorState { seed: 5, offset: 12 });
    assert_eq!(format!("{generator:?}"), "Generator(seed=5, offset=12)");
    let first = generator.permutation(50);
    generator.set_state(state);
    assert_eq!(generator.permutation(50), first);
    generator.manual_seed(5);
    assert_eq!(generator.state(), GeneratorState { seed: 5, offset: 0 });
}

#[test]
fn clones_share_their_state_and_threads_get_different_blocks() {
    let generator = Generator::new(1);
    let clone = generator.clone();
    assert!(generator.same(&clone) && !generator.same(&Generator::new(1)));
    let offsets: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..500).map(|_| clone.reserve(3).offset).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(offsets.iter().collect::<HashSet<_>>().len(), 2000);
    assert_eq!(generator.state().offset, 6000);
}

#[test]
fn the_default_generator_can_be_seeded() {
    random::manual_seed(99);
    assert_eq!(random::default_generator().state(), GeneratorState { seed: 99, offset: 0 });
}

/// Pins the values themselves, so that a seed gives the same numbers in every version. Computed by a separate
/// implementation in Python, in double precision.
#[test]
fn a_seed_keeps_its_meaning() {
    assert_eq!(Generator::new(0).reserve(1).block(0), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
    assert_eq!(sample(&Uniform::<f32>::new(), 3), [0.603_689_85, 0.268_563_27, 0.984_598_7]);
    let normal = sample(&Normal::<f32>::new(), 3);
    for (value, expected) in normal.iter().zip([-0.116_917_35f32, 0.997_857_5, 0.152_437_6]) {
        assert!((value - expected).abs() < 2e-7, "{normal:?}");
    }
    assert_eq!(sample(&Integers::new(0, 1000).unwrap(), 5), [268, 83, 435, 463, 49]);
    assert_eq!(Generator::new(2024).permutation(8), [7, 4, 6, 1, 5, 0, 3, 2]);
}
