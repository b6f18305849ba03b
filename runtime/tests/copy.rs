//! Copying: every pair of dtypes against an independent conversion rule, and every layout.

mod support;

use opsmith_runtime::copy::copy;
use opsmith_runtime::{
    Complex32, Complex64, DType, DTypeCategory, Element, Float8E4M3, Float8E5M2, Scalar, Tensor, bf16, f16,
    with_dtype,
};
use support::strided;

/// A source element without its type.
#[derive(Clone, Copy)]
enum Exact {
    Int(i128),
    Real(f64),
    Complex(Complex64),
}

fn exact<T: Element>(value: T) -> Exact {
    match value.to_scalar() {
        Scalar::Bool(value) => Exact::Int(i128::from(value)),
        // A scalar holds `uint64` only up to half its range.
        Scalar::Int(_) => Exact::Int(format!("{value:?}").parse().unwrap()),
        Scalar::Float(value) => Exact::Real(value),
        Scalar::Complex(value) => Exact::Complex(value),
    }
}

/// The converted element, in Debug format.
fn expected(value: Exact, target: DType) -> String {
    let re = match value {
        Exact::Complex(value) => Exact::Real(value.re),
        other => other,
    };
    match target.category() {
        DTypeCategory::Bool => match value {
            Exact::Int(value) => format!("{:?}", value != 0),
            Exact::Real(value) => format!("{:?}", value != 0.0),
            Exact::Complex(value) => format!("{:?}", value.re != 0.0 || value.im != 0.0),
        },
        DTypeCategory::Int => match re {
            Exact::Int(value) => wrap(value, target),
            Exact::Real(value) => truncate(value, target),
            Exact::Complex(_) => unreachable!(),
        },
        DTypeCategory::Float => round(re, target),
        DTypeCategory::Complex => {
            let im = match value {
                Exact::Complex(value) => Exact::Real(value.im),
                _ => Exact::Real(0.0),
            };
            let part = target.to_real();
            format!("Complex {{ re: {}, im: {} }}", round(re, part), round(im, part))
        }
    }
}

/// Modulo two to the number of bits.
fn wrap(value: i128, target: DType) -> String {
    let bits = if matches!(target, DType::I4 | DType::U4) { 4 } else { 8 * target.size() };
    let range = 1i128 << bits;
    let unsigned = value.rem_euclid(range);
    let signed = matches!(target, DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64);
    if signed && unsigned >= range / 2 { unsigned - range } else { unsigned }.to_string()
}

fn truncate(value: f64, target: DType) -> String {
    // This cast truncates and gives 0 for NaN.
    let whole = value as i128;
    match target {
        DType::I32 => whole.clamp(i32::MIN.into(), i32::MAX.into()).to_string(),
        DType::U64 if whole >= 0 => whole.min(u64::MAX.into()).to_string(),
        _ => wrap(whole.clamp(i64::MIN.into(), i64::MAX.into()), target),
    }
}

fn round(value: Exact, target: DType) -> String {
    match (value, target) {
        (Exact::Int(value), DType::F64) => format!("{:?}", value as f64),
        (Exact::Int(value), DType::F32) => format!("{:?}", value as f32),
        (Exact::Int(value), _) => round(Exact::Real(value as f64), target),
        (Exact::Real(value), DType::F64) => format!("{value:?}"),
        (Exact::Real(value), DType::F32) => format!("{:?}", value as f32),
        (Exact::Real(value), DType::F16) => format!("{:?}", f16::from_f64(value)),
        (Exact::Real(value), DType::BF16) => format!("{:?}", bf16::from_f64(value)),
        (Exact::Real(value), DType::F8E4M3) => nearest_byte(value, Float8E4M3::from_bits, 448.0),
        (Exact::Real(value), _) => nearest_byte(value, Float8E5M2::from_bits, f64::INFINITY),
        (Exact::Complex(_), _) => unreachable!(),
    }
}

/// The nearest of the finite numbers of all bytes, of two the one with an even byte; `beyond` from the middle to the number
/// after the largest.
fn nearest_byte<T: Element>(value: f64, number: fn(u8) -> T, beyond: f64) -> String {
    let number = |byte: u8| number(byte).to_scalar().to_f64();
    let finite: Vec<u8> = (0..0x7f).filter(|byte| number(*byte).is_finite()).collect();
    let [.., before, last] = finite[..] else { unreachable!("bytes") };
    // The number after the largest would have the even byte if the largest has not.
    let end = number(last) + (number(last) - number(before)) / 2.0;
    let found = if value.is_nan() {
        value
    } else if value.abs() > end || value.abs() == end && last % 2 == 1 {
        beyond
    } else {
        let distance = |byte: &u8| ((number(*byte) - value.abs()).abs(), byte % 2);
        let best = finite.iter().min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap());
        number(*best.unwrap())
    };
    format!("{:?}", found.copysign(value))
}

const INTEGERS: [i64; 19] = [
    0,
    1,
    -1,
    2,
    100,
    127,
    128,
    -128,
    255,
    256,
    -32_768,
    65_535,
    65_537,
    16_777_217,
    i32::MAX as i64,
    i32::MIN as i64,
    (1 << 53) + 1,
    i64::MAX,
    i64::MIN,
];
const FLOATS: [f64; 27] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    -0.9,
    1.5,
    -1.5,
    127.9,
    255.5,
    300.7,
    -300.7,
    2049.0,
    65_504.0,
    65_520.0,
    -70_000.0,
    1e10,
    -3e9,
    1e19,
    -1e19,
    1e30,
    1e-8,
    1e-45,
    3.4e38,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

/// Elements of a type that are hard to convert.
fn sources<T: Element>() -> Vec<T> {
    match T::DTYPE.category() {
        DTypeCategory::Bool | DTypeCategory::Int => {
            INTEGERS.iter().map(|value| T::from_scalar(Scalar::Int(*value))).collect()
        }
        DTypeCategory::Float => FLOATS.iter().map(|value| T::from_scalar(Scalar::Float(*value))).collect(),
        DTypeCategory::Complex => FLOATS
            .iter()
            .flat_map(|re| [0.0, 2.5, f64::NAN].map(|im| Complex64::new(*re, im)))
            .map(|value| T::from_scalar(Scalar::Complex(value)))
            .collect(),
    }
}

#[test]
fn every_pair_of_dtypes_converts_by_the_rule() {
    let mut count = 0;
    for source in DType::ALL {
        for target in DType::ALL {
            with_dtype!(source, S => with_dtype!(target, D => {
                let values = sources::<S>();
                let out = Tensor::of(&vec![D::default(); values.len()]);
                copy(&out, &Tensor::of(&values)).unwrap();
                for (value, found) in values.iter().zip(out.to_vec::<D>().unwrap()) {
                    assert_eq!(
                        format!("{found:?}"),
                        expected(exact(*value), target),
                        "{value:?} from {source} to {target}"
                    );
                    count += 1;
                }
            }));
        }
    }
    assert_eq!(count, 19 * (11 * INTEGERS.len() + 6 * FLOATS.len() + 2 * 3 * FLOATS.len()));
}

#[test]
fn the_rule_of_this_test_says_what_it_should() {
    assert_eq!(expected(Exact::Real(-1.5), DType::U8), "255");
    assert_eq!(expected(Exact::Real(-1.5), DType::U64), "18446744073709551615");
    assert_eq!(expected(Exact::Real(f64::NAN), DType::I64), "0");
    assert_eq!(expected(Exact::Real(f64::NAN), DType::Bool), "true");
    assert_eq!(expected(Exact::Real(1e30), DType::I32), "2147483647");
    assert_eq!(expected(Exact::Int(300), DType::I8), "44");
    assert_eq!(expected(Exact::Int(300), DType::I4), "-4");
    assert_eq!(expected(Exact::Real(-1.5), DType::U4), "15");
    assert_eq!(expected(Exact::Complex(Complex64::new(0.0, 1.0)), DType::Bool), "true");
    assert_eq!(expected(Exact::Complex(Complex64::new(2.0, 1.0)), DType::F32), "2.0");
    let value = Complex32::new(1.0, 0.5);
    assert_eq!(expected(exact(value), DType::C64), format!("{value:?}"));
}

#[test]
fn layouts_of_both_sides_are_followed() {
    let check = |target: &Tensor, source: &Tensor, expected: &[f64]| {
        copy(target, source).unwrap();
        assert_eq!(target.to_vec::<f64>().unwrap(), expected);
    };
    let ones = [1i32, 2, 3, 4, 5, 6];
    let backwards = strided(&ones, &[2, 3], &[-3, -1], 5);
    let out = || Tensor::from_slice(&[0.0f64; 6], &[2, 3]).unwrap();
    check(&out(), &backwards, &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let transposed = strided(&[0.0f64; 6], &[2, 3], &[1, 2], 0);
    check(&transposed, &backwards, &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    check(&out(), &Tensor::of(&[7i32, 8, 9]), &[7.0, 8.0, 9.0, 7.0, 8.0, 9.0]);
    check(&out(), &Tensor::from_slice(&[7i32, 8], &[2, 1]).unwrap(), &[7.0, 7.0, 7.0, 8.0, 8.0, 8.0]);
    check(&out(), &Tensor::scalar(5, DType::F64), &[5.0; 6]);
    let nothing = Tensor::from_slice(&[0.0f64; 0], &[0, 3]).unwrap();
    check(&nothing, &Tensor::scalar(5, DType::F64), &[]);
}

#[test]
fn a_copy_within_one_storage_reads_before_it_writes() {
    let whole = Tensor::of(&[1i64, 2, 3, 4, 5]);
    let part = |offset: i64, stride: i64| {
        let layout = opsmith_runtime::Layout {
            sizes: [4].as_slice().into(),
            strides: [stride].as_slice().into(),
            offset,
        };
        // SAFETY: four elements from `offset` in either direction lie inside the five.
        unsafe { Tensor::from_parts(whole.storage().clone(), layout, DType::I64, whole.device()) }
    };
    copy(&part(1, 1), &part(0, 1)).unwrap();
    assert_eq!(whole.to_vec::<i64>().unwrap(), [1, 1, 2, 3, 4]);
    copy(&part(0, 1), &part(4, -1)).unwrap();
    assert_eq!(whole.to_vec::<i64>().unwrap(), [4, 3, 2, 1, 4]);
    assert_eq!(whole.version(), 2);
}
