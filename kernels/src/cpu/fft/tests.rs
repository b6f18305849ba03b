//! Transforms against sums, of every way that lines are taken.

use std::f64::consts::PI;

use num_complex::{Complex32, Complex64};

use super::*;
use crate::cpu::testing::{Array as Strided, scattered};

fn naive(values: &[Complex64], sign: f64) -> Vec<Complex64> {
    let length = values.len();
    (0..length)
        .map(|k| {
            (0..length)
                .map(|j| {
                    let angle = sign * 2.0 * PI * ((j * k) % length) as f64 / length as f64;
                    values[j] * Complex64::from_polar(1.0, angle)
                })
                .sum()
        })
        .collect()
}

fn complex(count: usize) -> Vec<Complex64> {
    scattered(2 * count).collect::<Vec<_>>().chunks(2).map(|pair| Complex64::new(pair[0], pair[1])).collect()
}

#[track_caller]
fn assert_close(got: &[Complex64], expected: &[Complex64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).norm() < 1e-11, "{got} instead of {expected}");
    }
}

#[test]
fn every_length() {
    for length in [1, 2, 3, 4, 5, 7, 8, 12, 17, 64, 100] {
        let values = complex(length as usize);
        let input = Strided::new(&[length], values.iter().rev().copied()).reversed(0);
        let mut out = Strided::zeros(&[length]);
        fft_c2c(input.view(), &[0], 0, true, out.view_mut()).unwrap();
        assert_close(&out.to_vec(), &naive(&values, -1.0));
        let mut back = Strided::zeros(&[length]);
        fft_c2c(out.view(), &[-1], 2, false, back.view_mut()).unwrap();
        assert_close(&back.to_vec(), &values);
    }
}

#[test]
fn real_numbers_there_and_back() {
    for sizes in [[3, 4, 6], [2, 5, 7]] {
        let count = sizes.iter().product::<i64>() as usize;
        let input = Strided::new(&sizes, scattered(count));
        let mut whole = Strided::<Complex64>::zeros(&sizes);
        fft_r2c(input.view(), &[2, 1], 0, false, whole.view_mut()).unwrap();
        let half_sizes = [sizes[0], sizes[1] / 2 + 1, sizes[2]];
        let mut half = Strided::<Complex64>::zeros(&half_sizes);
        fft_r2c(input.view(), &[2, 1], 0, true, half.view_mut()).unwrap();
        for at in crate::cpu::testing::indices(&half_sizes) {
            assert!((half.at(&at) - whole.at(&at)).norm() < 1e-12);
        }
        let mut back = Strided::<f64>::zeros(&sizes);
        fft_c2r(half.view(), &[2, 1], 2, sizes[1], back.view_mut()).unwrap();
        crate::cpu::testing::assert_close(&back.to_vec(), &input.to_vec(), 1e-12);
    }
}

#[test]
fn parameters_out_of_range_are_errors() {
    let input = Strided::new(&[2], complex(2));
    let mut out = Strided::<Complex64>::zeros(&[2]);
    assert!(fft_c2c(input.view(), &[1], 0, true, out.view_mut()).is_err());
    assert!(fft_c2c(input.view(), &[0, -1], 0, true, out.view_mut()).is_err());
    assert!(fft_c2c(input.view(), &[0], 3, true, out.view_mut()).is_err());
    let mut real = Strided::<f64>::zeros(&[4]);
    assert!(fft_c2r(input.view(), &[0], 0, 4, real.view_mut()).is_err());
}

/// Largest distance between the numbers of two lines, relative to the largest of the second.
fn distance(got: impl IntoIterator<Item = Complex64>, expected: &[Complex64]) -> f64 {
    let most = expected.iter().fold(0f64, |most, number| most.max(number.norm()));
    let far = got.into_iter().zip(expected).map(|(got, expected)| (got - expected).norm());
    far.fold(0f64, f64::max) / most
}

/// Few lines, many, and long ones, of lengths with and without large factors, are read in different ways.
#[test]
fn lines_of_every_number_and_length() {
    for (count, length) in
        [(1, 64), (3, 360), (1, 1024), (7, 67), (9, 64), (16, 30), (17, 48), (40, 77), (2, 1155)]
    {
        let values = complex(count * length);
        let sizes = [count as i64, length as i64];
        let along = Strided::new(&sizes, values.iter().copied());
        let singles = values.iter().map(|value| Complex32::new(value.re as f32, value.im as f32));
        let single = Strided::new(&sizes, singles);
        let across = Strided::new(&[length as i64, count as i64], {
            let values = &values;
            (0..length).flat_map(move |place| (0..count).map(move |line| values[line * length + place]))
        });
        let (mut out, mut out_across) = (Strided::zeros(&sizes), Strided::zeros(&across.sizes));
        let mut out_single = Strided::zeros(&[length as i64, count as i64]).permuted(&[1, 0]);
        fft_c2c(along.view(), &[1], 1, true, out.view_mut()).unwrap();
        fft_c2c(across.view(), &[0], 1, true, out_across.view_mut()).unwrap();
        fft_c2c(single.view(), &[1], 1, true, out_single.view_mut()).unwrap();
        for line in 0..count {
            let scale = 1.0 / (length as f64).sqrt();
            let exact: Vec<Complex64> = naive(&values[line * length..][..length], -1.0)
                .into_iter()
                .map(|number| number * scale)
                .collect();
            let number = |place: usize| [line as i64, place as i64];
            let far = distance((0..length).map(|place| out.at(&number(place))), &exact);
            assert!(far < 1e-14, "{count} lines of {length}: {far}");
            let far = distance((0..length).map(|place| out_across.at(&[place as i64, line as i64])), &exact);
            assert!(far < 1e-14, "{count} columns of {length}: {far}");
            let wide = |value: Complex32| Complex64::new(value.re.into(), value.im.into());
            let far = distance((0..length).map(|place| wide(out_single.at(&number(place)))), &exact);
            assert!(far < 2e-7, "{count} lines of {length} in single precision: {far}");
        }
    }
}

#[test]
fn real_lines_of_every_number_and_length() {
    for (count, length) in
        [(1, 2), (1, 1), (1, 128), (3, 720), (2, 1024), (5, 134), (20, 96), (33, 75), (1, 675)]
    {
        let reals: Vec<f64> = scattered(count * length).collect();
        let sizes = [count as i64, length as i64];
        let half = length as i64 / 2 + 1;
        let input = Strided::new(&sizes, reals.iter().copied());
        let mut out = Strided::<Complex64>::zeros(&[count as i64, half]);
        fft_r2c(input.view(), &[1], 0, true, out.view_mut()).unwrap();
        for line in 0..count {
            let line_values: Vec<Complex64> =
                reals[line * length..][..length].iter().map(|value| Complex64::from(*value)).collect();
            let exact = naive(&line_values, -1.0);
            let far = distance((0..half).map(|place| out.at(&[line as i64, place])), &exact[..half as usize]);
            assert!(far < 1e-14, "{count} lines of {length}: {far}");
        }
        let mut back = Strided::<f64>::zeros(&sizes);
        fft_c2r(out.view(), &[1], 2, length as i64, back.view_mut()).unwrap();
        crate::cpu::testing::assert_close(&back.to_vec(), &reals, 1e-13);
    }
}

/// Parts that no transform of real numbers has count for nothing.
#[test]
fn imaginary_parts_of_the_first_and_the_middle_frequency_are_not_read() {
    for length in [1i64, 2, 5, 8, 64, 128] {
        let values = complex(length as usize / 2 + 1);
        let mut real = values.clone();
        real[0].im = 0.0;
        if length % 2 == 0 {
            real[length as usize / 2].im = 0.0;
        }
        let transformed = |values: &[Complex64]| {
            let mut out = Strided::<f64>::zeros(&[length]);
            let input = Strided::new(&[length / 2 + 1], values.iter().copied());
            fft_c2r(input.view(), &[0], 0, length, out.view_mut()).unwrap();
            out.to_vec()
        };
        crate::cpu::testing::assert_close(&transformed(&values), &transformed(&real), 1e-13);
    }
}
