//! Numbers as text, with a common number of digits for a list of them.

use opsmith_core::{DType, DTypeCategory};

use super::PrintOptions;
use crate::element::Element;
use crate::with_dtype;

/// A text for each value; not yet aligned.
pub(super) fn words<T: Element>(values: &[T], options: &PrintOptions) -> Vec<String> {
    let real = T::DTYPE.to_real();
    match T::DTYPE.category() {
        // Rust's own notation: `true`, `-12`.
        DTypeCategory::Bool | DTypeCategory::Int => values.iter().map(|value| format!("{value:?}")).collect(),
        DTypeCategory::Float => {
            let numbers: Vec<f64> = values.iter().map(|value| value.to_scalar().to_f64()).collect();
            float_words(&numbers, real, false, options)
        }
        DTypeCategory::Complex => {
            let numbers = || values.iter().map(|value| value.to_scalar().to_complex());
            let re: Vec<f64> = numbers().map(|number| number.re).collect();
            let im: Vec<f64> = numbers().map(|number| number.im).collect();
            let re = align(float_words(&re, real, false, options));
            let im = align(float_words(&im, real, true, options));
            re.into_iter().zip(im).map(|(re, im)| format!("{re}{im}j")).collect()
        }
    }
}

fn align(words: Vec<String>) -> Vec<String> {
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// Texts of floats that all have the same notation and the same number of digits after the point.
fn float_words(values: &[f64], dtype: DType, plus: bool, options: &PrintOptions) -> Vec<String> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let scientific = options.sci_mode.unwrap_or_else(|| needs_exponent(finite(), dtype));
    let digits =
        finite().map(|value| digits_needed(value, dtype, scientific, options.precision)).max().unwrap_or(0);
    let parts: Vec<String> = values.iter().map(|value| plain(*value, scientific, digits)).collect();
    let exponent_width =
        parts.iter().filter_map(|part| Some(part.len() - part.find('e')? - 2)).max().unwrap_or(0);
    values
        .iter()
        .zip(parts)
        .map(|(value, part)| {
            // Exponents get leading zeros up to the longest.
            let part = match part.find('e') {
                Some(e) if part.len() - e - 2 < exponent_width => {
                    format!("{}{:0>exponent_width$}", &part[..e + 2], &part[e + 2..])
                }
                _ => part,
            };
            let sign = if plus && (value.is_nan() || value.is_sign_positive()) { "+" } else { "" };
            format!("{sign}{part}")
        })
        .collect()
}

fn needs_exponent(finite: impl Iterator<Item = f64>, dtype: DType) -> bool {
    let (smallest, largest) = finite
        .map(f64::abs)
        .filter(|value| *value != 0.0)
        .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let cutoff = match dtype.size() {
        0..4 => 1e3,
        4 => 1e6,
        _ => 1e8,
    };
    // Compared in the tensor's own precision, in which 0.0001 is not below 0.0001.
    largest > 0.0
        && (largest >= cutoff
            || smallest < round_to(dtype, 1e-4)
            || round_to(dtype, largest / smallest) > 1e3)
}

/// Digits after the point of the shortest text that reads back as the value, at most `precision`.
fn digits_needed(value: f64, dtype: DType, scientific: bool, precision: usize) -> usize {
    let shortest = match dtype {
        DType::F32 => format!("{:e}", value as f32),
        DType::F64 => format!("{value:e}"),
        // `half` prints these with the digits of their conversion to float32, more than they have.
        _ => (0..5)
            .map(|digits| format!("{value:.digits$e}"))
            .find(|text| text.parse().is_ok_and(|read| round_to(dtype, read) == value))
            .unwrap_or_else(|| format!("{value:e}")),
    };
    let (mantissa, exponent) = shortest.split_once('e').expect("Rust writes an exponent");
    let behind_point = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len()) as i64;
    let exponent: i64 = exponent.parse().expect("an exponent is an integer");
    let needed = if scientific { behind_point } else { (behind_point - exponent).max(0) };
    if needed <= precision as i64 {
        return needed as usize;
    }
    // Rounded; trailing zeros are removed.
    let rounded = plain(value, scientific, precision);
    let fraction = rounded.split('.').nth(1).unwrap_or("");
    fraction.split('e').next().unwrap_or("").trim_end_matches('0').len()
}

/// The nearest value that a tensor of this dtype can hold.
fn round_to(dtype: DType, value: f64) -> f64 {
    with_dtype!(dtype, T => T::from_scalar(value.into()).to_scalar().to_f64())
}

/// The value rounded to a number of digits, always with a decimal point: `2.`, `1.5e-03`.
fn plain(value: f64, scientific: bool, digits: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let point = if digits == 0 { "." } else { "" };
    if !scientific {
        return format!("{value:.digits$}{point}");
    }
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent");
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{mantissa}{point}e{sign}{exponent:0>2}")
}
