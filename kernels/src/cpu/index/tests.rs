//! Indexing of arrays with all kinds of strides, against index arithmetic.

mod rows;

use opsmith_runtime::{Dims, Scalar, View, ViewMut, bf16};

use super::*;
use crate::cpu::testing::{Array, indices, scattered, with_threads};

fn dense(sizes: &[i64]) -> Array<f64> {
    Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize))
}

fn ints(sizes: &[i64], values: &[i64]) -> Array<i64> {
    Array::new(sizes, values.iter().copied())
}

#[test]
fn slices() {
    for input in
        [dense(&[3, 4, 2]), dense(&[4, 2, 3]).permuted(&[2, 0, 1]), dense(&[6, 4, 2]).halved(0).reversed(1)]
    {
        for dim in 0..3 {
            let index = ints(&[4], &[1, 0, 0, 1]).reversed(0);
            let mut sizes = input.sizes.to_vec();
            sizes[dim] = 4;
            let mut out = Array::zeros(&sizes);
            index_select(input.view(), dim as i64, index.view(), out.view_mut()).unwrap();
            for mut at in indices(&sizes) {
                let got = out.at(&at);
                at[dim] = index.at(&[at[dim]]);
                assert_eq!(got, input.at(&at));
            }
            let mut sum = input.clone();
            let alpha = Scalar::Float(0.5);
            index_add(dim as i64, index.view(), out.view(), alpha, sum.view_mut()).unwrap();
            for at in indices(&input.sizes) {
                // Indices 0 and 1 occur twice.
                let times = if at[dim] < 2 { 2.0 } else { 1.0 };
                assert_eq!(sum.at(&at), input.at(&at) * times);
            }
        }
    }
}

/// Of tensors that threads share, by parts of the dimension and by stacks.
#[test]
fn many_slices() {
    for (sizes, dim) in [([3, 150, 40], 1), ([300, 5, 20], 0), ([2000, 3, 9], 1), ([30, 2, 300], 2)] {
        let (size, count) = (sizes[dim], 400);
        let places: Vec<i64> = (0..count).map(|number| number * number % size).collect();
        let index = ints(&[count], &places);
        let mut of_source = sizes.to_vec();
        of_source[dim] = count;
        let source = dense(&of_source);
        let (mut sum, mut copy) = (dense(&sizes), dense(&sizes));
        let (mut expected_sum, mut expected_copy) = (sum.clone(), sum.clone());
        for at in indices(&of_source) {
            let mut to = at.clone();
            to[dim] = index.at(&[at[dim]]);
            expected_sum.set(&to, expected_sum.at(&to) + 0.5 * source.at(&at));
            expected_copy.set(&to, source.at(&at));
        }
        let alpha = Scalar::Float(0.5);
        index_add(dim as i64, index.view(), source.view(), alpha, sum.view_mut()).unwrap();
        index_copy(dim as i64, index.view(), source.view(), copy.view_mut()).unwrap();
        assert_eq!(sum.to_vec(), expected_sum.to_vec());
        assert_eq!(copy.to_vec(), expected_copy.to_vec());
    }
}

#[test]
fn scalars_have_one_slice() {
    let mut out = Array::zeros(&[]);
    index_select(dense(&[]).view(), 0, ints(&[1], &[0]).view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), dense(&[]).to_vec());
    gather(dense(&[]).view(), -1, ints(&[], &[0]).view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), dense(&[]).to_vec());
}

#[test]
fn an_index_out_of_range_is_named() {
    let mut out = Array::zeros(&[1]);
    let error = index_select(dense(&[3]).view(), 0, ints(&[1], &[3]).view(), out.view_mut()).unwrap_err();
    assert_eq!(error.message(), "the index 3 is out of range for dimension 0 with size 3");
    assert_eq!(error.help(), Some("use 0 to 2"));
    assert!(gather(dense(&[3]).view(), 0, ints(&[1], &[-1]).view(), out.view_mut()).is_err());
    let error = super::index(dense(&[3]).view(), &[Some(ints(&[1], &[-4]).view().into())], out.view_mut())
        .unwrap_err();
    assert_eq!(error.help(), Some("use -3 to 2"));
}

#[test]
fn gathering_and_scattering() {
    let index_values: Vec<i64> = scattered(12).map(|x| (x.abs() * 10.0) as i64 % 3).collect();
    for (input, index) in [
        (dense(&[3, 4, 2]), ints(&[2, 3, 2], &index_values)),
        (dense(&[2, 3, 4]).permuted(&[1, 2, 0]), ints(&[3, 2, 2], &index_values).permuted(&[1, 0, 2])),
        (dense(&[3, 4, 5]), ints(&[2], &index_values[..2]).repeated(4).repeated(3).permuted(&[2, 1, 0])),
    ] {
        for dim in 0..3 {
            let small = (0..3).all(|other| other == dim || index.sizes[other] <= input.sizes[other]);
            let known = (0..3).contains(&index.to_vec().iter().max().unwrap().to_owned())
                && *index.to_vec().iter().max().unwrap() < input.sizes[dim];
            let mut out = Array::zeros(&index.sizes);
            let result = gather(input.view(), dim as i64, index.view(), out.view_mut());
            assert_eq!(result.is_ok(), small && known);
            if result.is_err() {
                continue;
            }
            let mut expected = input.clone();
            let (mut put, mut added) = (input.clone(), input.clone());
            scatter(dim as i64, index.view(), out.view(), put.view_mut()).unwrap();
            scatter_add(dim as i64, index.view(), out.view(), added.view_mut()).unwrap();
            let mut sums: Vec<f64> = input.to_vec();
            let all = indices(&input.sizes);
            for at in indices(&index.sizes) {
                let mut place = at.clone();
                place[dim] = index.at(&at);
                assert_eq!(out.at(&at), input.at(&place));
                let number = all.iter().position(|other| *other == place).unwrap();
                sums[number] += out.at(&at);
            }
            expected.view_mut().write(sums).unwrap();
            assert_eq!(put.to_vec(), input.to_vec());
            crate::cpu::testing::assert_close(&added.to_vec(), &expected.to_vec(), 1e-14);
        }
    }
}

#[test]
fn runs_of_one_index_are_rows() {
    let width = 3 * places::RUN as i64 + 5;
    // Whole rows of one index, runs that begin and end anywhere, and no runs.
    let index = |kind: i64| {
        let of = move |at: i64| [at / width, at / 20, at % 7][kind as usize] % 5;
        Array::new(&[4, width], (0..4 * width).map(of))
    };
    for kind in 0..3 {
        let places = index(kind);
        for input in [dense(&[5, width]), dense(&[width, 5]).permuted(&[1, 0])] {
            let mut out = Array::zeros(&[4, width]);
            gather(input.view(), 0, places.view(), out.view_mut()).unwrap();
            let mut sum = input.clone();
            scatter_add(0, places.view(), out.view(), sum.view_mut()).unwrap();
            let mut expected: Vec<f64> = input.to_vec();
            for at in indices(&[4, width]) {
                let place = [places.at(&at), at[1]];
                assert_eq!(out.at(&at), input.at(&place));
                expected[(place[0] * width + place[1]) as usize] += input.at(&place);
            }
            assert_eq!(sum.to_vec(), expected);
        }
        // Along the last dimension, elements of a run have one place.
        let mut out = dense(&[4, 5]);
        let ones = Array::new(&[4, width], vec![1.0; 4 * width as usize]);
        scatter_add(1, places.view(), ones.view(), out.view_mut()).unwrap();
        for at in indices(&[4, 5]) {
            let times = (0..width).filter(|&column| places.at(&[at[0], column]) == at[1]).count();
            let expected = (0..times).fold(dense(&[4, 5]).at(&at), |sum, _| sum + 1.0);
            assert_eq!(out.at(&at), expected);
        }
    }
    let mut outside = index(0).to_vec();
    outside[width as usize * 2..].fill(5);
    let outside = Array::new(&[4, width], outside);
    let mut out = Array::zeros(&[4, width]);
    assert!(gather(dense(&[5, width]).view(), 0, outside.view(), out.view_mut()).is_err());
}

#[test]
fn reductions_while_scattering() {
    let base = Array::new(&[3], [1.0, 2.0, 4.0]);
    let (index, src) = (ints(&[3], &[0, 0, 2]), Array::new(&[3], [3.0, 5.0, -8.0]));
    let run = |reduce, include_self| {
        let mut out = Array::zeros(&[3]);
        scatter_reduce_two(base.view(), 0, index.view(), src.view(), reduce, include_self, out.view_mut())
            .map(|()| out.to_vec())
    };
    assert_eq!(run("sum", true).unwrap(), [9.0, 2.0, -4.0]);
    assert_eq!(run("sum", false).unwrap(), [8.0, 2.0, -8.0]);
    assert_eq!(run("mean", true).unwrap(), [3.0, 2.0, -2.0]);
    assert_eq!(run("mean", false).unwrap(), [4.0, 2.0, -8.0]);
    assert_eq!(run("prod", true).unwrap(), [15.0, 2.0, -32.0]);
    assert_eq!(run("amax", false).unwrap(), [5.0, 2.0, -8.0]);
    assert_eq!(run("amin", true).unwrap(), [1.0, 2.0, -8.0]);
    let (mut out, one) = (Array::zeros(&[]), Array::new(&[], [2.0]));
    scatter_reduce_two(one.view(), -1, ints(&[], &[0]).view(), one.view(), "sum", true, out.view_mut())
        .unwrap();
    assert_eq!(out.to_vec(), [4.0]);
    assert!(run("median", true).unwrap_err().help().unwrap().contains("amax"));
    let mut out = base.clone();
    scatter_value(0, index.view(), Scalar::Int(7), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [7.0, 2.0, 7.0]);
}

#[test]
fn an_index_without_elements_may_have_any_dimensions() {
    let base = dense(&[2, 3]);
    for sizes in [&[0][..], &[2, 0], &[0, 7], &[2, 3, 0], &[4, 0, 1, 9]] {
        let index = ints(sizes, &[]);
        let mut none = Array::zeros(sizes);
        gather(base.view(), 1, index.view(), none.view_mut()).unwrap();
        let mut out = base.clone();
        scatter(1, index.view(), none.view(), out.view_mut()).unwrap();
        scatter_add(0, index.view(), none.view(), out.view_mut()).unwrap();
        scatter_value(1, index.view(), Scalar::Int(7), out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), base.to_vec(), "{sizes:?}");
        let mut out = Array::zeros(&[2, 3]);
        scatter_reduce_two(base.view(), 0, index.view(), none.view(), "sum", false, out.view_mut()).unwrap();
        assert_eq!(out.to_vec(), base.to_vec(), "{sizes:?}");
    }
}

#[test]
fn several_indices_at_once() {
    let input = dense(&[3, 4, 5]);
    let (rows, columns) = (ints(&[2, 1], &[-1, 0]), ints(&[3], &[1, 2, -5]));
    let mut out = Array::zeros(&[2, 3, 4]);
    index(input.view(), &[Some(rows.view().into()), None, Some(columns.view().into())], out.view_mut())
        .unwrap();
    for at in indices(&[2, 3, 4]) {
        let place = [[2, 0][at[0] as usize], at[2], [1, 2, 0][at[1] as usize]];
        assert_eq!(out.at(&at), input.at(&place));
    }
    let mut out = Array::zeros(&[3, 2, 3]);
    let inner = ints(&[2, 1], &[-1, 0]);
    index(input.view(), &[None, Some(inner.view().into()), Some(columns.view().into())], out.view_mut())
        .unwrap();
    for at in indices(&[3, 2, 3]) {
        let place = [at[0], [3, 0][at[1] as usize], [1, 2, 0][at[2] as usize]];
        assert_eq!(out.at(&at), input.at(&place));
    }
}

#[test]
fn an_index_out_of_range_changes_nothing() {
    let (ones, index) = (Array::new(&[3], [1.0; 3]), ints(&[3], &[0, 1, 2]));
    let mut out = Array::new(&[2], [5.0, 6.0]);
    assert!(scatter_add(0, index.view(), ones.view(), out.view_mut()).is_err());
    assert!(scatter(0, index.view(), ones.view(), out.view_mut()).is_err());
    assert!(scatter_value(0, index.view(), Scalar::Int(7), out.view_mut()).is_err());
    assert!(index_add(0, index.view(), ones.view(), Scalar::Int(1), out.view_mut()).is_err());
    assert!(index_put(&[Some(index.view().into())], ones.view(), true, out.view_mut()).is_err());
    assert_eq!(out.to_vec(), [5.0, 6.0]);
}

#[test]
fn putting_values() {
    let input = Array::new(&[2, 3], [0i32, 1, 2, 3, 4, 5]);
    let at = ints(&[3], &[0, -1, 0]);
    let values = Array::new(&[2, 1], [10i32, 20]);
    let mut out = input.clone();
    index_put(&[None, Some(at.view().into())], values.view(), true, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [20, 1, 12, 43, 4, 25]);
    let mut out = input.clone();
    index_put(&[None, Some(at.view().into())], values.view(), false, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [10, 1, 10, 20, 4, 20]);
}

#[test]
fn rows_of_a_table() {
    let weight = dense(&[3, 4]).permuted(&[1, 0]);
    let places = ints(&[2, 2], &[3, 0, 0, 1]);
    let mut out = Array::zeros(&[2, 2, 3]);
    embedding(weight.view(), places.view(), out.view_mut()).unwrap();
    for at in indices(&[2, 2, 3]) {
        assert_eq!(out.at(&at), weight.at(&[places.at(&at[..2]), at[2]]));
    }
    let grad = Array::new(&[2, 2, 3], vec![bf16::ONE; 12]);
    let mut out = Array::zeros(&[4, 3]);
    embedding_dense_backward(grad.view(), places.view(), 4, 3, false, out.view_mut()).unwrap();
    let sums: Vec<f32> = out.to_vec().iter().map(|x| x.to_f32()).collect();
    assert_eq!(sums, [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    embedding_dense_backward(grad.view(), places.view(), 4, -1, true, out.view_mut()).unwrap();
    let sums: Vec<f32> = out.to_vec().iter().map(|x| x.to_f32()).collect();
    assert_eq!(sums, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn masks() {
    let input = Array::new(&[2, 2], [1, 2, 3, 4]);
    let mask = Array::new(&[2], [false, true]);
    let mut out = Array::zeros(&[2, 2]);
    let source = Array::new(&[3], [10, 20, 30]);
    masked_scatter(input.view(), mask.view(), source.view(), out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [1, 10, 3, 20]);
    let all = Array::new(&[1], [true]);
    assert!(masked_scatter(input.view(), all.view(), source.view(), out.view_mut()).is_err());
}

#[test]
fn bags_of_rows() {
    let weight = Array::new(&[3, 2], [1.0, 10.0, 2.0, 20.0, 4.0, 5.0]);
    let (at, offsets) = (ints(&[5], &[2, 0, 1, 1, 2]), ints(&[3], &[0, 2, 2]));
    let run = |mode: i64, factors: Option<View<'_, f64>>, padding: i64| {
        let (mut out, mut bag) = (Array::zeros(&[3, 2]), Array::zeros(&[5]));
        let (mut size, mut largest) =
            (Array::zeros(&[3]), Array::zeros(if mode == 2 { &[3, 2] } else { &[3] }));
        embedding_bag(
            weight.view(),
            at.view(),
            offsets.view(),
            mode,
            factors,
            false,
            padding,
            out.view_mut(),
            bag.view_mut(),
            size.view_mut(),
            largest.view_mut(),
        )
        .map(|()| (out.to_vec(), bag.to_vec(), size.to_vec(), largest.to_vec()))
    };
    let (out, bag, ..) = run(0, None, -1).unwrap();
    assert_eq!((out, bag), (vec![5.0, 15.0, 0.0, 0.0, 8.0, 45.0], vec![0, 0, 2, 2, 2]));
    let factors = Array::new(&[5], [2.0, 1.0, 1.0, 0.0, -1.0]);
    assert_eq!(run(0, Some(factors.view()), -1).unwrap().0, [9.0, 20.0, 0.0, 0.0, -2.0, 15.0]);
    let (out, _, size, _) = run(1, None, 1).unwrap();
    assert_eq!((out, size), (vec![2.5, 7.5, 0.0, 0.0, 4.0, 5.0], vec![2, 0, 1]));
    let (out, _, _, largest) = run(2, None, -1).unwrap();
    assert_eq!((out, largest), (vec![4.0, 10.0, 0.0, 0.0, 4.0, 20.0], vec![2, 0, 0, 0, 2, 1]));
    assert!(run(3, None, -1).is_err() && run(1, Some(factors.view()), -1).is_err());
}

#[test]
fn gradients_of_bags() {
    let (at, bag) = (ints(&[3], &[1, 0, 1]), ints(&[3], &[0, 0, 1]));
    let grad = Array::new(&[2, 1], [10.0, 1.0]);
    let run = |scale: bool, mode: i64, largest: &Array<i64>| {
        let mut out = Array::zeros(&[2, 1]);
        let size = ints(&[2], &[2, 1]);
        let (size, largest) = (size.view(), largest.view());
        let (grad, at, bag) = (grad.view(), at.view(), bag.view());
        embedding_bag_dense_backward(grad, at, bag, size, largest, 2, scale, mode, None, -1, out.view_mut())
            .unwrap();
        out.to_vec()
    };
    let none = ints(&[2], &[0, 0]);
    assert_eq!(run(false, 0, &none), [10.0, 11.0]);
    assert_eq!(run(true, 0, &none), [10.0, 5.5]);
    assert_eq!(run(false, 1, &none), [5.0, 6.0]);
    assert_eq!(run(false, 2, &ints(&[2, 1], &[0, 1])), [10.0, 1.0]);
    let weight = Array::new(&[2, 1], [3.0, 7.0]);
    let mut out = Array::zeros(&[3]);
    let (grad, weight) = (grad.view(), weight.view());
    let offsets = ints(&[2], &[0, 2]);
    let (at, offsets, bag) = (at.view(), offsets.view(), bag.view());
    embedding_bag_per_sample_weights_backward(grad, weight, at, offsets, bag, 0, 0, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [70.0, 0.0, 7.0]);
}

/// Of lines, whose indices are checked and whose elements are read in blocks and in threads.
#[test]
fn single_elements_of_lines() {
    let input = dense(&[2 * 700]).halved(0).reversed(0);
    for count in [0, 1, 511, 513, 30_001] {
        let places: Vec<i64> = (0..count).map(|number| number * 7919 % 1400 - 700).collect();
        let index = ints(&[count], &places);
        let expected: Vec<f64> =
            places.iter().map(|place| input.at(&[if *place < 0 { place + 700 } else { *place }])).collect();
        with_threads(|| {
            let mut out = Array::zeros(&[count]).reversed(0);
            index_of(&input, &index, out.view_mut()).unwrap();
            assert_eq!(out.to_vec(), expected);
        });
        for bad in [700, -701, i64::MAX, i64::MIN] {
            let Some(at) = count.checked_sub(1).filter(|at| *at > 0) else { continue };
            let mut index = index.clone();
            for (at, value) in [(at, 9000), (at / 2, bad)] {
                index.set(&[at], value);
            }
            with_threads(|| {
                let refused = index_of(&input, &index, Array::zeros(&[count]).view_mut()).unwrap_err();
                assert!(
                    refused.to_string().contains(&format!("the index {bad} is out of range")),
                    "{refused}"
                );
            });
        }
    }
    let refused = index_of(&dense(&[0]), &ints(&[1], &[0]), Array::zeros(&[1]).view_mut()).unwrap_err();
    assert!(refused.to_string().contains("size 0"), "{refused}");
    index_of(&dense(&[0]), &ints(&[0], &[]), Array::zeros(&[0]).view_mut()).unwrap();
}

fn index_of(input: &Array<f64>, index: &Array<i64>, out: ViewMut<'_, f64>) -> Result<()> {
    super::index(input.view(), &[Some(index.view().into())], out)
}

/// Columns, of which a row has several in a line, and of which threads share rows.
#[test]
fn columns_and_long_lines() {
    for (input, dim) in [
        (dense(&[60, 301]), 1),
        (dense(&[301, 60]).permuted(&[1, 0]), 1),
        (dense(&[3, 20, 602]).halved(2).reversed(2), 2),
        (dense(&[5, 301, 1]), 1),
        (dense(&[301]), 0),
        (dense(&[0, 301]), 1),
    ] {
        for count in [0, 1, 5000] {
            let places: Vec<i64> = (0..count).map(|number| number * 7919 % 301).collect();
            let index = ints(&[count], &places);
            let mut sizes = input.sizes.clone();
            sizes[dim] = count;
            let element = |mut at: Dims| {
                at[dim] = places[at[dim] as usize];
                input.at(&at)
            };
            let expected: Vec<f64> = indices(&sizes).into_iter().map(element).collect();
            with_threads(|| {
                let mut out = Array::zeros(&sizes).reversed(dim);
                index_select(input.view(), dim as i64, index.view(), out.view_mut()).unwrap();
                assert!(out.to_vec() == expected, "{sizes:?}");
            });
            if count > 1 {
                let mut index = index.clone();
                for (at, value) in [(count - 1, -1), (count / 2, 301)] {
                    index.set(&[at], value);
                }
                let mut out = Array::zeros(&sizes);
                let refused =
                    index_select(input.view(), dim as i64, index.view(), out.view_mut()).unwrap_err();
                assert!(refused.to_string().contains("the index 301 is out of range"), "{refused}");
            }
        }
    }
}
