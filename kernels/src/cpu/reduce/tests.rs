//! Reductions of arrays with all kinds of strides, against loops over indices.

use opsmith_runtime::arith::Ordered;
use opsmith_runtime::{Complex32, Complex64, Scalar, bf16, f16, parallel};

use super::*;
use crate::cpu::testing::{Array, assert_close, indices, scattered};

/// Arrays that reach every path: long and short rows, first and last axes, gaps, repetition.
fn arrays() -> Vec<Array<f64>> {
    let dense = |sizes: &[i64]| Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize));
    vec![
        dense(&[]),
        dense(&[7]),
        dense(&[3000]).reversed(0),
        dense(&[3, 4, 5]),
        dense(&[3, 4, 5]).permuted(&[2, 0, 1]),
        dense(&[130, 20]),
        dense(&[20, 130]).permuted(&[1, 0]),
        dense(&[200, 3]),
        dense(&[6, 9]).halved(1).reversed(0),
        dense(&[4, 50]).repeated(3),
        dense(&[1, 20, 1, 2]),
        dense(&[0, 3]),
        dense(&[3, 0]),
    ]
}

/// Every set of dimensions of a rank.
fn dim_sets(rank: usize) -> Vec<Vec<i64>> {
    (0..1 << rank).map(|set| (0..rank as i64).filter(|dim| set >> dim & 1 == 1).collect()).collect()
}

/// The elements behind each output, by index arithmetic alone.
fn groups(input: &Array<f64>, dims: &[i64], keepdim: bool) -> (Vec<i64>, Vec<Vec<f64>>) {
    let reduced = reduced_dims(input.sizes.len(), Some(dims)).unwrap();
    let sizes: Vec<i64> = (0..input.sizes.len())
        .filter(|&dim| keepdim || !reduced[dim])
        .map(|dim| if reduced[dim] { 1 } else { input.sizes[dim] })
        .collect();
    let outputs = indices(&sizes);
    let mut groups = vec![Vec::new(); outputs.len()];
    for index in indices(&input.sizes) {
        let output: Vec<i64> = (0..index.len())
            .filter(|&dim| keepdim || !reduced[dim])
            .map(|dim| if reduced[dim] { 0 } else { index[dim] })
            .collect();
        let number = outputs.iter().position(|other| other[..] == output[..]).unwrap();
        groups[number].push(input.at(&index));
    }
    (sizes, groups)
}

/// Compares a kernel with a function of the list of elements behind each output.
#[track_caller]
fn check(
    kernel: impl Fn(View<'_, f64>, &[i64], bool, ViewMut<'_, f64>) -> Result<()>,
    expected: impl Fn(&[f64]) -> f64,
) {
    for input in arrays() {
        for dims in dim_sets(input.sizes.len()) {
            for keepdim in [false, true] {
                let (sizes, groups) = groups(&input, &dims, keepdim);
                let mut out = Array::zeros(&sizes);
                if kernel(input.view(), &dims, keepdim, out.view_mut()).is_err() {
                    assert!(groups.iter().any(Vec::is_empty), "an error only without elements");
                    continue;
                }
                let expected: Vec<f64> = groups.iter().map(|group| expected(group)).collect();
                assert_close(&out.to_vec(), &expected, 1e-12);
            }
        }
    }
}

#[test]
fn sums_and_means() {
    check(|x, dims, keep, out| sum(x, Some(dims), keep, out), |group| group.iter().sum());
    check(
        |x, dims, keep, out| mean(x, Some(dims), keep, out),
        |group| group.iter().sum::<f64>() / group.len() as f64,
    );
}

#[test]
fn extremes() {
    check(amax, |group| group.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    check(amin, |group| group.iter().copied().fold(f64::INFINITY, f64::min));
}

#[test]
fn variances() {
    for correction in [0.0, 1.0, 2.5] {
        check(
            |x, dims, keep, out| var(x, Some(dims), Some(Scalar::Float(correction)), keep, out),
            |group| {
                let count = group.len() as f64;
                let mean = group.iter().sum::<f64>() / count;
                group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - correction).max(0.0)
            },
        );
    }
}

#[test]
fn a_single_precision_variance_far_from_zero_keeps_its_digits() {
    let input = Array::new(&[4], [1e6f32, 1e6 + 1.0, 1e6 + 2.0, 1e6 + 3.0]);
    let mut out = Array::zeros(&[]);
    var(input.view(), None, None, false, out.view_mut()).unwrap();
    assert_close(&[f64::from(out.to_vec()[0])], &[5.0 / 3.0], 1e-6);
}

#[test]
fn a_complex_variance_is_real() {
    let input = Array::new(&[2], [Complex64::new(0.0, 1.0), Complex64::new(2.0, -1.0)]);
    let mut out = Array::<f64>::zeros(&[]);
    var(input.view(), None, None, false, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [4.0]);
}

#[test]
fn products_and_truth_over_one_dimension() {
    let input = Array::new(&[2, 3], [1i64, 2, 3, 0, 5, 6]);
    let mut out = Array::zeros(&[3]);
    prod(input.view(), 0, false, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [0, 10, 18]);
    let mut out = Array::zeros(&[2]);
    all(input.view(), Some(&[-1]), false, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [true, false]);
    any(input.view(), Some(&[-1]), false, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [true, true]);
}

#[test]
fn half_precision_sums_in_single() {
    // In half precision 2048 + 1 is 2048.
    let input = Array::new(&[4096], vec![f16::ONE; 4096]);
    let mut out = Array::zeros(&[]);
    sum_full(input.view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [f16::from_f32(4096.0)]);
}

#[test]
fn single_precision_sums_keep_their_digits() {
    for sizes in [[1 << 20, 1], [1 << 18, 4]] {
        let input = Array::new(&sizes, vec![0.1f32; 1 << 20]);
        let (count, width) = (sizes[0], sizes[1]);
        let mut out = Array::zeros(&[width]);
        sum(input.view(), Some(&[0]), false, out.view_mut()).unwrap();
        let expected = f64::from(0.1f32) * count as f64;
        for got in out.to_vec() {
            assert!((f64::from(got) / expected - 1.0).abs() < 1e-6, "{got} instead of {expected}");
        }
    }
}

/// The first position of the best element, NaN above all.
fn first_best(line: &[f64], better: impl Fn(f64, f64) -> bool) -> usize {
    (1..line.len()).fold(0, |best, index| {
        let (new, old) = (line[index], line[best]);
        if better(new, old) || (new.is_nan() && !old.is_nan()) { index } else { best }
    })
}

#[test]
fn positions_of_extremes() {
    for mut input in arrays().into_iter().filter(|input| input.view().numel() > 0) {
        let mut values: Vec<f64> = input.to_vec().iter().map(|x| (x * 4.0).round()).collect();
        for nan in [false, true] {
            if nan {
                let middle = values.len() / 2;
                values[middle] = f64::NAN;
            }
            if input.strides.contains(&0) {
                continue;
            }
            input.view_mut().write(values.iter().copied()).unwrap();
            let mut out = Array::zeros(&[]);
            argmax(input.view(), None, false, out.view_mut()).unwrap();
            assert_eq!(out.to_vec(), [first_best(&values, |a, b| a > b) as i64]);
            argmin(input.view(), None, false, out.view_mut()).unwrap();
            assert_eq!(out.to_vec(), [first_best(&values, |a, b| a < b) as i64]);
            for dim in 0..input.sizes.len() as i64 {
                let (sizes, lines) = groups(&input, &[dim], false);
                let (mut best, mut at) = (Array::zeros(&sizes), Array::zeros(&sizes));
                max_dim(input.view(), dim, false, best.view_mut(), at.view_mut()).unwrap();
                let expected: Vec<i64> =
                    lines.iter().map(|line| first_best(line, |a, b| a > b) as i64).collect();
                assert_eq!(at.to_vec(), expected);
                let expected: Vec<f64> =
                    lines.iter().zip(&expected).map(|(line, &at)| line[at as usize]).collect();
                assert_close(&best.to_vec(), &expected, 0.0);
            }
        }
    }
}

#[test]
fn positions_beyond_the_rows_that_are_searched_together() {
    let rows = position::ROWS as usize + 10;
    let mut elements = vec![0.0f32; rows * 3];
    elements[(rows - 7) * 3] = 1.0;
    for row in [5, rows - 9] {
        elements[row * 3 + 1] = 2.0;
    }
    elements[2] = f32::INFINITY;
    elements[(rows - 8) * 3 + 2] = f32::NAN;
    let input = Array::new(&[rows as i64, 3], elements);
    let (mut best, mut at) = (Array::zeros(&[3]), Array::zeros(&[3]));
    max_dim(input.view(), 0, false, best.view_mut(), at.view_mut()).unwrap();
    assert_eq!(at.to_vec(), [rows as i64 - 7, 5, rows as i64 - 8]);
    assert_eq!(best.to_vec()[..2], [1.0, 2.0]);
    assert!(best.to_vec()[2].is_nan());
}

#[test]
fn extremes_of_infinities_and_nan() {
    let largest = |elements: &[f32]| {
        let (input, mut out) = (Array::new(&[elements.len() as i64], elements.to_vec()), Array::zeros(&[]));
        amax(input.view(), &[0], false, out.view_mut()).unwrap();
        out.to_vec()[0]
    };
    let mut elements = vec![0.0; 100];
    (elements[3], elements[70]) = (f32::NEG_INFINITY, f32::INFINITY);
    // Their sum is NaN, and yet none of them.
    assert_eq!(largest(&elements), f32::INFINITY);
    assert_eq!(largest(&[f32::NEG_INFINITY; 20]), f32::NEG_INFINITY);
    elements[99] = f32::NAN;
    assert!(largest(&elements).is_nan());
}

#[test]
fn nothing_to_choose_from_is_an_error() {
    let input = Array::<f32>::zeros(&[3, 0]);
    let mut out = Array::zeros(&[3]);
    let error = argmax(input.view(), Some(1), false, out.view_mut()).unwrap_err();
    assert_eq!(
        error.message(),
        "no element to choose from: a reduced dimension of the shape (3, 0) has size 0"
    );
    let mut out = Array::zeros(&[3]);
    assert!(amax(input.view(), &[1], false, out.view_mut()).is_err());
}

#[test]
fn running_sums() {
    for input in arrays() {
        for dim in 0..input.sizes.len() {
            let mut out = Array::zeros(&input.sizes);
            cumsum(input.view(), dim as i64, out.view_mut()).unwrap();
            let expected: Vec<f64> = indices(&input.sizes)
                .into_iter()
                .map(|mut index| {
                    let last = index[dim];
                    (0..=last)
                        .map(|i| {
                            index[dim] = i;
                            input.at(&index)
                        })
                        .sum()
                })
                .collect();
            assert_close(&out.to_vec(), &expected, 1e-12);
        }
    }
    let mut out = Array::zeros(&[]);
    cumprod(Array::new(&[], [3i32]).view(), -1, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [3]);
}

#[test]
fn four_rows_together_have_the_sums_of_each_alone() {
    for length in [1, 31, 32, 33, 1000, 4096, 8192, 8193, 20_000, 9 * 8192 + 5] {
        for rows in [3, 4, 7, 8] {
            let elements: Vec<f32> = scattered(rows * length).map(|element| element as f32).collect();
            let all = Array::new(&[rows as i64, length as i64], elements.iter().copied());
            let mut together = Array::zeros(&[rows as i64]);
            sum(all.view(), Some(&[1]), false, together.view_mut()).unwrap();
            for (row, together) in elements.chunks_exact(length).zip(together.to_vec()) {
                let mut alone = Array::zeros(&[]);
                sum(Array::new(&[length as i64], row.iter().copied()).view(), None, false, alone.view_mut())
                    .unwrap();
                let alone: f32 = alone.at(&[]);
                assert_eq!(alone.to_bits(), together.to_bits(), "{rows} x {length}");
                let exact: f64 = row.iter().map(|element| f64::from(*element)).sum();
                let size: f64 = row.iter().map(|element| f64::from(element.abs())).sum();
                assert!((f64::from(alone) - exact).abs() <= size * 1e-6, "{length}: {alone} {exact}");
            }
        }
    }
}

/// Sums and extremes of a matrix along both dimensions and of all its elements, with any number of threads.
fn check_in_threads<T: Element<Compute: Ordered>>(rows: usize, columns: usize, tolerance: f64) {
    let sizes = [rows as i64, columns as i64];
    let x = Array::new(&sizes, scattered(rows * columns).map(|x| T::from_scalar(Scalar::Float(x))));
    let numbers: Vec<f64> = x.to_vec().iter().map(|x| x.to_scalar().to_f64()).collect();
    let line = |dim: usize, number: usize| -> Vec<f64> {
        let all = numbers.iter().enumerate();
        let same = |at: usize| [at % columns, at / columns, 0][dim] == number;
        all.filter(|(at, _)| same(*at)).map(|(_, &x)| x).collect()
    };
    for (dim, dims) in [&[0i64][..], &[1], &[0, 1]].into_iter().enumerate() {
        let out_sizes = [columns, rows, 1][dim];
        let shape: &[i64] = if dim == 2 { &[] } else { &[out_sizes as i64] };
        let mut first: Option<[Vec<T>; 3]> = None;
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            let mut outs = [(); 3].map(|()| Array::<T>::zeros(shape));
            let [sums, most, least] = &mut outs;
            sum(x.view(), Some(dims), false, sums.view_mut()).unwrap();
            amax(x.view(), dims, false, most.view_mut()).unwrap();
            amin(x.view(), dims, false, least.view_mut()).unwrap();
            let results = outs.map(|out| out.to_vec());
            assert_eq!(first.get_or_insert_with(|| results.clone()), &results, "{rows} {columns} {threads}");
        }
        let results =
            first.unwrap().map(|out| out.iter().map(|x| x.to_scalar().to_f64()).collect::<Vec<_>>());
        let expected =
            |of: fn(&[f64]) -> f64| (0..out_sizes).map(|at| of(&line(dim, at))).collect::<Vec<_>>();
        let sizes_of = (0..out_sizes).map(|at| line(dim, at).iter().map(|x| x.abs()).sum::<f64>());
        for ((got, sum), size) in results[0].iter().zip(expected(|line| line.iter().sum())).zip(sizes_of) {
            assert!((got - sum).abs() <= tolerance * size, "{got} instead of {sum}");
        }
        assert_eq!(results[1], expected(|line| line.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
        assert_eq!(results[2], expected(|line| line.iter().copied().fold(f64::INFINITY, f64::min)));
    }
}

#[test]
fn narrow_elements_are_folded_in_blocks_and_threads() {
    for (rows, columns) in
        [(1, 1), (3, 7), (5, 2047), (5, 2048), (6, 2049), (70, 513), (3, 20_001), (1030, 6)]
    {
        check_in_threads::<bf16>(rows, columns, 0.01);
        check_in_threads::<f16>(rows, columns, 0.001);
        check_in_threads::<f32>(rows, columns, 1e-6);
    }
}

#[test]
fn nan_is_found_in_every_block() {
    for at in [0, 2047, 2048, 5000] {
        let x = Array::new(&[5001], (0..5001).map(|n| if n == at { f16::NAN } else { f16::ONE }));
        let mut out = Array::zeros(&[]);
        amax(x.view(), &[0], false, out.view_mut()).unwrap();
        assert!(out.to_vec()[0].is_nan());
        let mut place = Array::zeros(&[]);
        argmax(x.view(), Some(0), false, place.view_mut()).unwrap();
        assert_eq!(place.to_vec(), [at]);
    }
}

#[test]
fn complex_numbers_are_added_as_pairs() {
    for length in [0, 1, 2, 15, 16, 17, 33, 1000, 100_003] {
        let numbers: Vec<f64> = scattered(2 * length).collect();
        let x = Array::new(
            &[length as i64],
            numbers.chunks_exact(2).map(|parts| Complex32::new(parts[0] as f32, parts[1] as f32)),
        );
        let part = |part: usize| numbers.iter().skip(part).step_by(2).sum::<f64>();
        let mut first = None;
        for threads in [1, 2, 5] {
            parallel::set_num_threads(threads).unwrap();
            let mut out = Array::<Complex32>::zeros(&[]);
            sum_full(x.view(), out.view_mut()).unwrap();
            let [sum] = out.to_vec()[..] else { panic!("one sum") };
            assert_eq!(*first.get_or_insert(sum), sum, "{length} {threads}");
            let close =
                |got: f32, expected: f64| (f64::from(got) - expected).abs() <= 1e-6 * (1.0 + length as f64);
            assert!(close(sum.re, part(0)) && close(sum.im, part(1)), "{length}: {sum}");
        }
    }
}
