//! Poolings against values worked out by hand, and gradients against their transposes.

use super::*;
use crate::cpu::testing::{Array, assert_close, scattered};

#[test]
fn the_largest_of_each_window() {
    let input = Array::new(&[1, 3, 4], [1.0, 2.0, 3.0, 4.0, 9.0, 1.0, f64::NAN, 0.0, 5.0, 5.0, 7.0, 8.0]);
    let (mut out, mut at) = (Array::zeros(&[1, 2, 2]), Array::zeros(&[1, 2, 2]));
    let (stride, none): (&[i64], &[i64]) = (&[2], &[]);
    let (values, places) = (out.view_mut(), at.view_mut());
    max_pool2d_with_indices(input.view(), &[2], stride, &[0], none, true, values, places).unwrap();
    assert_close(&out.to_vec(), &[9.0, f64::NAN, 5.0, 8.0], 0.0);
    assert_eq!(at.to_vec(), [4, 6, 8, 11]);
    let grad = Array::new(&[1, 2, 2], [1.0, 2.0, 3.0, 4.0]);
    let mut back = Array::zeros(&[1, 3, 4]);
    let mut backward = |at: &Array<i64>| {
        let (grad, input, out) = (grad.view(), input.view(), back.view_mut());
        max_pool2d_with_indices_backward(grad, input.into(), at.view(), out)
    };
    backward(&at).unwrap();
    assert!(backward(&Array::new(&[1, 2, 2], [0, 0, 0, 12])).is_err());
    assert_eq!(back.to_vec(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 4.0]);
}

#[test]
fn blocks_of_windows_are_those_of_single_ones() {
    let (rows, columns) = (7, 3 * largest::WIDTH as i64 + 1);
    let mut elements: Vec<f64> =
        scattered((2 * rows * columns) as usize).map(|x| (x * 4.0).floor()).collect();
    elements[40] = f64::NAN;
    elements[41] = f64::NAN;
    elements[300..330].fill(f64::NEG_INFINITY);
    let input = Array::new(&[2, rows, columns], elements);
    for (kernel, stride, padding, dilation) in
        [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 3, 1, 2), (5, 1, 2, 1), (3, 1, 1, 3)]
    {
        let window = Window::new(2, &[kernel], &[stride], &[padding], &[dilation]).unwrap();
        let sizes = window.output_sizes([1, rows, columns], false).unwrap();
        let sizes = [2, sizes[1], sizes[2]];
        let (mut out, mut at) = (Array::zeros(&sizes), Array::zeros(&sizes));
        let (k, s, p, d): ([i64; 1], [i64; 1], [i64; 1], [i64; 1]) =
            ([kernel], [stride], [padding], [dilation]);
        max_pool2d_with_indices(input.view(), &k, &s, &p, &d, false, out.view_mut(), at.view_mut()).unwrap();
        for index in crate::cpu::testing::indices(&sizes) {
            let [plane, row, column] = [index[0], index[1] * stride - padding, index[2] * stride - padding];
            let mut best: Option<(f64, i64)> = None;
            for (i, j) in (0..kernel).flat_map(|i| (0..kernel).map(move |j| (i, j))) {
                let (row, column) = (row + i * dilation, column + j * dilation);
                if (0..rows).contains(&row) && (0..columns).contains(&column) {
                    let value = input.at(&[plane, row, column]);
                    if best.is_none_or(|(old, _)| value > old || value.is_nan()) {
                        best = Some((value, row * columns + column));
                    }
                }
            }
            let (value, place) = best.unwrap();
            assert_eq!((out.at(&index).to_bits(), at.at(&index)), (value.to_bits(), place));
        }
    }
}

#[test]
fn dilated_windows_skip_the_border() {
    let input = Array::new(&[1, 1, 5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    let (mut out, mut at) = (Array::zeros(&[1, 1, 3]), Array::zeros(&[1, 1, 3]));
    let (values, places) = (out.view_mut(), at.view_mut());
    let (kernel, padding, dilation): (&[i64], &[i64], &[i64]) = (&[1, 3], &[0, 1], &[1, 2]);
    max_pool2d_with_indices(input.view(), kernel, &[1], padding, dilation, false, values, places).unwrap();
    assert_eq!((out.to_vec(), at.to_vec()), (vec![4.0, 5.0, 4.0], vec![3, 4, 3]));
}

#[test]
fn means_count_the_border_if_asked_to() {
    let input = Array::new(&[3, 1, 1], [1.0, 2.0, 6.0]).permuted(&[1, 2, 0]);
    let mut out = Array::zeros(&[1, 1, 2]);
    let mut pool = |count: bool, divisor| {
        let (kernel, stride, padding): (&[i64], &[i64], &[i64]) = (&[1, 2], &[1, 2], &[0, 1]);
        avg_pool2d(input.view(), kernel, stride, padding, false, count, divisor, out.view_mut()).unwrap();
        out.to_vec()
    };
    assert_eq!(pool(true, None), [0.5, 4.0]);
    assert_eq!(pool(false, None), [1.0, 4.0]);
    assert_eq!(pool(true, Some(1)), [1.0, 8.0]);
    let mut out = Array::zeros(&[1, 1, 2]);
    adaptive_avg_pool(input.view(), &[1, 2], out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [1.5, 4.0]);
}

#[test]
fn means_of_stretches_are_those_of_single_windows() {
    let (rows, columns) = (7, 3 * means::WIDTH as i64 + 1);
    let input = Array::new(&[2, rows, columns], scattered((2 * rows * columns) as usize));
    let mean = |plane: i64, down: std::ops::Range<i64>, across: std::ops::Range<i64>, count: i64| {
        let inside = |range: std::ops::Range<i64>, size: i64| range.start.max(0)..range.end.min(size);
        let elements =
            inside(down, rows).flat_map(|row| inside(across.clone(), columns).map(move |at| (row, at)));
        elements.map(|(row, column)| input.at(&[plane, row, column])).sum::<f64>() / count as f64
    };
    for (kernel, stride, padding) in [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 3, 1), (5, 1, 2), (1, 1, 0)] {
        let window = Window::new(2, &[kernel], &[stride], &[padding], &[1]).unwrap();
        let sizes = window.output_sizes([1, rows, columns], false).unwrap();
        let sizes = [2, sizes[1], sizes[2]];
        let mut out = Array::zeros(&sizes);
        let (k, s, p) = ([kernel], [stride], [padding]);
        avg_pool2d(input.view(), &k, &s, &p, false, true, None, out.view_mut()).unwrap();
        for index in crate::cpu::testing::indices(&sizes) {
            let [row, column] = [index[1], index[2]].map(|at| at * stride - padding);
            let expected = mean(index[0], row..row + kernel, column..column + kernel, kernel * kernel);
            assert_close(&[out.at(&index)], &[expected], 1e-12);
        }
    }
    for output in [[1, 1], [3, 1], [2, 5], [7, columns], [4, 193]] {
        let sizes = [2, output[0], output[1]];
        let mut out = Array::zeros(&sizes);
        adaptive_avg_pool(input.view(), &output, out.view_mut()).unwrap();
        for index in crate::cpu::testing::indices(&sizes) {
            let part =
                |at: i64, size: i64, parts: i64| at * size / parts..((at + 1) * size + parts - 1) / parts;
            let (down, across) = (part(index[1], rows, output[0]), part(index[2], columns, output[1]));
            let count = (down.end - down.start) * (across.end - across.start);
            assert_close(&[out.at(&index)], &[mean(index[0], down, across, count)], 1e-12);
        }
    }
}

#[test]
fn gradients_of_means_are_their_transposes() {
    let input = Array::new(&[2, 3, 5, 4], scattered(120));
    let grad = Array::new(&[2, 3, 3, 2], scattered(36)).reversed(2);
    let (mut out, mut back) = (Array::zeros(&[2, 3, 3, 2]), Array::zeros(&[2, 3, 5, 4]));
    let (k, s, p): (&[i64], &[i64], &[i64]) = (&[3, 2], &[2, 2], &[1, 0]);
    avg_pool2d(input.view(), k, s, p, false, false, None, out.view_mut()).unwrap();
    avg_pool2d_backward(grad.view(), input.view().into(), k, s, p, false, false, None, back.view_mut())
        .unwrap();
    let product = |a: &Array<f64>, b: &Array<f64>| -> f64 {
        a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum()
    };
    assert_close(&[product(&out, &grad)], &[product(&input, &back)], 1e-12);
    adaptive_avg_pool(input.view(), &[3, 2], out.view_mut()).unwrap();
    adaptive_avg_pool2d_backward(grad.view(), input.view().into(), back.view_mut()).unwrap();
    assert_close(&[product(&out, &grad)], &[product(&input, &back)], 1e-12);
}

#[test]
fn largest_of_parts_in_threads() {
    for (planes, [rows, columns], output) in
        [(1, [1, 1], [1, 1]), (3, [5, 7], [2, 3]), (300, [20, 9], [7, 9])]
    {
        let input = Array::new(&[planes, rows, columns], scattered((planes * rows * columns) as usize));
        let sizes = [planes, output[0], output[1]];
        for threads in [1, 2, 5] {
            opsmith_runtime::parallel::set_num_threads(threads).unwrap();
            let (mut out, mut places) = (Array::zeros(&sizes), Array::zeros(&sizes));
            adaptive_max_pool2d(input.view(), out.view_mut(), places.view_mut()).unwrap();
            for index in crate::cpu::testing::indices(&sizes) {
                let part =
                    |at: i64, size: i64, parts: i64| at * size / parts..((at + 1) * size + parts - 1) / parts;
                let (down, across) = (part(index[1], rows, output[0]), part(index[2], columns, output[1]));
                let seen = down.flat_map(|y| across.clone().map(move |x| (y, x)));
                let most = seen.map(|(y, x)| input.at(&[index[0], y, x])).fold(f64::NEG_INFINITY, f64::max);
                let place = places.at(&index);
                assert_eq!(out.at(&index), most);
                assert_eq!(input.at(&[index[0], place / columns, place % columns]), most);
            }
        }
    }
}
