//! Borders and their gradients, compared with arithmetic of indices: any strides, sizes and numbers of threads.

use opsmith_runtime::Dims;

use super::*;
use crate::cpu::testing::{Array, assert_close, indices, scattered};

#[test]
fn borders() {
    let x = Array::new(&[1, 3], [1, 2, 3]).reversed(1).reversed(1);
    let mut out = Array::zeros(&[1, 7]);
    reflection_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [3, 2, 1, 2, 3, 2, 1]);
    replication_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [1, 1, 1, 2, 3, 3, 3]);
    circular_pad(x.view(), &[2, 2], out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [2, 3, 1, 2, 3, 1, 2]);
    let mut out = Array::zeros(&[1, 8]);
    assert!(reflection_pad(x.view(), &[3, 2], out.view_mut()).is_err());
    let mut out = Array::zeros(&[1, 9]);
    assert!(circular_pad(x.view(), &[4, 2], out.view_mut()).is_err());
    assert!(reflection_pad(x.view(), &[3, 3], out.view_mut()).is_err());
    let x = Array::new(&[1, 2, 3], [1, 2, 3, 4, 5, 6]);
    let mut out = Array::zeros(&[1, 3, 3]);
    replication_pad(x.view(), &[-1, 1, 1, 0], out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [2, 3, 3, 2, 3, 3, 5, 6, 6]);
    assert!(replication_pad(x.view(), &[1], out.view_mut()).is_err());
}

#[test]
fn gradients_are_transposes() {
    let dense = |sizes: &[i64]| Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize));
    let (x, dy) = (dense(&[2, 3, 4, 3]), dense(&[2, 5, 3, 6]).reversed(3));
    let (mut y, mut dx) = (Array::zeros(&[2, 5, 3, 6]), Array::zeros(&[2, 3, 4, 3]));
    let padding = [1, 2, -1, 0, 2, 0];
    let product = |a: &Array<f64>, b: &Array<f64>| -> f64 {
        a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum()
    };
    reflection_pad(x.view(), &padding, y.view_mut()).unwrap();
    reflection_pad_backward(dy.view(), x.view().into(), &padding, dx.view_mut()).unwrap();
    assert_close(&[product(&y, &dy)], &[product(&x, &dx)], 1e-12);
    replication_pad(x.view(), &padding, y.view_mut()).unwrap();
    replication_pad_backward(dy.view(), x.view().into(), &padding, dx.view_mut()).unwrap();
    assert_close(&[product(&y, &dy)], &[product(&x, &dx)], 1e-12);
}

/// The number of the element that each place of an output shows, by index arithmetic alone.
fn shown(sizes: &[i64], padding: &[i64], out_sizes: &[i64], place: Place) -> Vec<usize> {
    let from = |index: &Dims| {
        (0..sizes.len()).fold(0, |number, dim| {
            let pair = 2 * (sizes.len() - 1 - dim);
            let (before, after) =
                if pair < padding.len() { (padding[pair], padding[pair + 1]) } else { (0, 0) };
            let kept = (-before).max(0)..sizes[dim] + after.min(0);
            number * sizes[dim] + place(index[dim] - before, sizes[dim], kept).unwrap()
        }) as usize
    };
    indices(out_sizes).iter().map(from).collect()
}

#[test]
fn elements_and_sums_are_those_of_index_arithmetic() {
    let cases: [(&[i64], &[i64]); 8] = [
        (&[7], &[3, 5]),
        (&[20_000], &[7, -9000]),
        (&[2, 0, 4], &[1, 1]),
        (&[2, 3, 5], &[-2, 2]),
        (&[3, 5, 7], &[2, -3, -1, 2]),
        (&[2, 3, 90, 70], &[1, 1, 1, 1]),
        (&[130, 120], &[5, 0, 30, 40]),
        (&[2, 4, 5, 6], &[2, 3, 1, 2, 2, 3]),
    ];
    for (threads, (sizes, padding)) in [1, 2, 5].into_iter().flat_map(|n| cases.map(|case| (n, case))) {
        parallel::set_num_threads(threads).unwrap();
        let out_sizes = padded_sizes(sizes, padding).unwrap();
        for place in [mirror as Place, nearest, around] {
            let shown = shown(sizes, padding, &out_sizes, place);
            check(sizes, padding, place, &shown, |x| x as f32);
            check(sizes, padding, place, &shown, opsmith_runtime::bf16::from_f64);
        }
    }
}

/// Compares results of one case, of several strides, with the elements shown and with sums in row-major order.
fn check<T: Element<Compute: Arithmetic>>(
    sizes: &[i64],
    padding: &[i64],
    place: Place,
    shown: &[usize],
    of: impl Fn(f64) -> T,
) {
    let out_sizes = padded_sizes(sizes, padding).unwrap();
    let doubled = |sizes: &[i64]| {
        let mut doubled = Dims::from_slice(sizes);
        *doubled.last_mut().unwrap() *= 2;
        Array::new(
            &doubled,
            scattered(doubled.iter().product::<i64>() as usize).map(|x| of(if x > 1.0 { -0.0 } else { x })),
        )
    };
    let last = sizes.len() - 1;
    for strided in [false, true] {
        let of_sizes = |sizes: &[i64]| {
            let array = doubled(sizes).halved(last);
            if strided { array.reversed(0) } else { Array::new(sizes, array.to_vec()) }
        };
        let (x, dy) = (of_sizes(sizes), of_sizes(&out_sizes));
        let (mut y, mut dx) = (of_sizes(&out_sizes), of_sizes(sizes));
        pad(&x.view(), padding, place, y.view_mut()).unwrap();
        let elements = x.to_vec();
        assert!(y.to_vec().into_iter().eq(shown.iter().map(|at| elements[*at])), "{sizes:?} {padding:?}");
        pad_backward(&dy.view(), sizes, padding, place, dx.view_mut()).unwrap();
        let mut sums = vec![T::default(); elements.len()];
        for (at, grad) in shown.iter().zip(dy.to_vec()) {
            sums[*at] = T::from_compute(Arithmetic::add(sums[*at].to_compute(), grad.to_compute()));
        }
        let sums = Array::new(sizes, sums);
        assert!(dx.view().bits().iter().eq(sums.view().bits().iter()), "{sizes:?} {padding:?}");
    }
}
