//! Attention against the formula, element by element in double precision.

use half::bf16;

use super::{COLUMNS, ROWS, attention, attention_backward};
use crate::cpu::testing::{Array, assert_close, scattered};

/// Queries, keys, values, the gradient of the result and perhaps a mask.
struct Case {
    arrays: [Array<f64>; 4],
    mask: Option<Array<f64>>,
    /// The gradient of logarithms.
    grad_logarithms: Option<Array<f64>>,
    is_causal: bool,
}

/// Results, logarithms, and gradients by queries, keys, values and the mask.
type Found = [Vec<f64>; 6];

fn dense(sizes: &[i64]) -> Array<f64> {
    Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize))
}

fn expected(case: &Case, scale: f64) -> Found {
    let [query, key, value, grad] = &case.arrays;
    let (heads, queries, keys) = (query.sizes[0], query.sizes[1], key.sizes[1]);
    let (width, values) = (query.sizes[2], value.sizes[2]);
    let (mut out, mut logarithms) = (Vec::new(), Vec::new());
    let mut by = [query, key, value].map(|array| vec![0.0; array.to_vec().len()]);
    let mut by_mask = Vec::new();
    for head in 0..heads {
        for row in 0..queries {
            let score = |column: i64| {
                let product: f64 =
                    (0..width).map(|i| query.at(&[head, row, i]) * key.at(&[head, column, i])).sum();
                let added = case.mask.as_ref().map_or(0.0, |mask| mask.at(&[head, row, column]));
                if case.is_causal && column > row { f64::NEG_INFINITY } else { product * scale + added }
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
            let none = largest == f64::NEG_INFINITY;
            logarithms.push(if none { largest } else { largest + sum.ln() });
            let weight = |score: &f64| if none { 0.0 } else { (score - largest).exp() / sum };
            let weights: Vec<f64> = scores.iter().map(weight).collect();
            let mean = |i: i64| {
                (0..keys).map(|column| weights[column as usize] * value.at(&[head, column, i])).sum()
            };
            let result: Vec<f64> = (0..values).map(mean).collect();
            let along: f64 = (0..values).map(|i| result[i as usize] * grad.at(&[head, row, i])).sum();
            for column in 0..keys {
                let weight = weights[column as usize];
                let of_weight: f64 =
                    (0..values).map(|i| grad.at(&[head, row, i]) * value.at(&[head, column, i])).sum();
                let of_logarithm = case.grad_logarithms.as_ref().map_or(0.0, |grad| grad.at(&[head, row]));
                let of_score = weight * (of_weight - along + of_logarithm);
                by_mask.push(of_score);
                for i in 0..width {
                    let (q, k) = ([head, row, i], [head, column, i]);
                    by[0][((head * queries + row) * width + i) as usize] += of_score * scale * key.at(&k);
                    by[1][((head * keys + column) * width + i) as usize] += of_score * scale * query.at(&q);
                }
                for i in 0..values {
                    by[2][((head * keys + column) * values + i) as usize] +=
                        weight * grad.at(&[head, row, i]);
                }
            }
            out.extend(result);
        }
    }
    let [by_query, by_key, by_value] = by;
    [out, logarithms, by_query, by_key, by_value, if case.mask.is_some() { by_mask } else { Vec::new() }]
}

fn computed(case: &Case, scale: Option<f64>, wanted: [bool; 4]) -> Found {
    let [query, key, value, grad] = &case.arrays;
    let mask = || case.mask.as_ref().map(|mask| mask.view());
    let mut out = Array::zeros(&grad.sizes);
    let mut logarithms = Array::zeros(&grad.sizes[..2]);
    attention(
        query.view(),
        key.view(),
        value.view(),
        mask(),
        case.is_causal,
        scale,
        out.view_mut(),
        logarithms.view_mut(),
    )
    .unwrap();
    let sizes = [&query.sizes, &key.sizes, &value.sizes].map(|sizes| sizes.to_vec());
    let mask_sizes = case.mask.as_ref().map_or(vec![0], |mask| mask.sizes.to_vec());
    let [q, k, v] = sizes;
    let mut grads = [q, k, v, mask_sizes].into_iter().zip(wanted).map(|(sizes, wanted)| {
        // The old content of a gradient's memory must not show.
        let sizes = if wanted { sizes } else { vec![0] };
        Array::new(&sizes, vec![f64::NAN; sizes.iter().product::<i64>() as usize])
    });
    let mut grads: [Array<f64>; 4] = std::array::from_fn(|_| grads.next().unwrap());
    let [by_query, by_key, by_value, by_mask] = grads.each_mut().map(Array::view_mut);
    attention_backward(
        grad.view(),
        case.grad_logarithms.as_ref().map(Array::view),
        query.view(),
        key.view(),
        value.view(),
        mask(),
        out.view(),
        logarithms.view(),
        case.is_causal,
        scale,
        &wanted,
        by_query,
        by_key,
        by_value,
        by_mask,
    )
    .unwrap();
    let [by_query, by_key, by_value, by_mask] = grads.map(|grad| grad.to_vec());
    [out.to_vec(), logarithms.to_vec(), by_query, by_key, by_value, by_mask]
}

fn case(queries: usize, keys: usize, is_causal: bool) -> Case {
    let (queries, keys) = (queries as i64, keys as i64);
    let arrays =
        [dense(&[2, queries, 3]), dense(&[2, keys, 3]), dense(&[2, keys, 2]), dense(&[2, queries, 2])];
    Case { arrays, mask: None, grad_logarithms: None, is_causal }
}

#[track_caller]
fn check(case: &Case, scale: Option<f64>) {
    let width = case.arrays[0].sizes[2] as f64;
    let expected = expected(case, scale.unwrap_or(1.0 / width.sqrt()));
    let found = computed(case, scale, [true, true, true, case.mask.is_some()]);
    for (found, expected) in found.iter().zip(&expected) {
        assert_close(found, expected, 1e-12);
    }
}

#[test]
fn results_and_gradients_follow_the_formula() {
    for (queries, keys) in [
        (1, 1),
        (5, 3),
        (ROWS, COLUMNS),
        (ROWS + 1, COLUMNS - 1),
        (3, 2 * COLUMNS + 5),
        (2 * ROWS + 3, COLUMNS + 2),
    ] {
        for is_causal in [false, true] {
            check(&case(queries, keys, is_causal), None);
            check(&case(queries, keys, is_causal), Some(-0.7));
        }
    }
}

#[test]
fn operands_have_any_strides() {
    let arrays = [
        dense(&[3, 70, 2]).permuted(&[2, 1, 0]),
        dense(&[2, 600, 3]).halved(1).reversed(1),
        dense(&[300, 2, 2]).permuted(&[1, 0, 2]).reversed(2),
        dense(&[70, 2]).repeated(2),
    ];
    let mask = Some(dense(&[300, 70]).permuted(&[1, 0]).repeated(2));
    let grad_logarithms = Some(dense(&[70, 2]).permuted(&[1, 0]));
    check(&Case { arrays, mask, grad_logarithms, is_causal: true }, None);
}

#[test]
fn a_query_without_keys_gets_zeros() {
    let mut numbers: Vec<f64> = scattered(2 * 4 * 300).collect();
    // The second query has no key, the third none of the first block.
    numbers[300..600].fill(f64::NEG_INFINITY);
    numbers[600..600 + COLUMNS].fill(f64::NEG_INFINITY);
    let mask = Some(Array::new(&[2, 4, 300], numbers));
    let case = Case { mask, ..case(4, 300, false) };
    check(&case, None);
    let found = computed(&case, None, [true; 4]);
    assert_eq!(found[0][2..4], [0.0; 2]);
    assert_eq!(found[1][1], f64::NEG_INFINITY);
    let none = self::case(2, 0, false);
    assert_eq!(computed(&none, None, [true, true, true, false])[0], [0.0; 8]);
}

#[test]
fn only_wanted_gradients_are_written() {
    let case = Case { mask: Some(dense(&[2, 7, 9])), ..case(7, 9, false) };
    let all = computed(&case, None, [true; 4]);
    for number in 0..4 {
        let mut wanted = [false; 4];
        wanted[number] = true;
        let found = computed(&case, None, wanted);
        for other in 0..4 {
            assert_eq!(found[2 + other], if other == number { all[2 + other].clone() } else { Vec::new() });
        }
    }
}

#[test]
fn nan_is_not_lost() {
    let mut numbers: Vec<f64> = scattered(2 * 300 * 3).collect();
    numbers[290 * 3] = f64::NAN;
    let mut case = case(4, 300, false);
    case.arrays[1] = Array::new(&[2, 300, 3], numbers);
    let found = computed(&case, None, [true, true, true, false]);
    assert!(found[0][..8].iter().all(|x| x.is_nan()) && found[0][8..].iter().all(|x| x.is_finite()));
}

#[test]
fn narrow_floats_are_rounded_once() {
    let narrow =
        |array: &Array<f64>| Array::new(&array.sizes, array.to_vec().into_iter().map(bf16::from_f64));
    let wide = |array: &Array<bf16>| Array::new(&array.sizes, array.to_vec().into_iter().map(f64::from));
    let case = case(ROWS + 2, COLUMNS + 3, true);
    let narrowed = case.arrays.each_ref().map(narrow);
    let exact = expected(&Case { arrays: narrowed.each_ref().map(wide), ..case }, 0.5);
    let [query, key, value, grad] = &narrowed;
    let (mut out, mut logarithms) = (Array::zeros(&grad.sizes), Array::zeros(&grad.sizes[..2]));
    let (q, k, v) = (query.view(), key.view(), value.view());
    attention(q, k, v, None, true, Some(0.5), out.view_mut(), logarithms.view_mut()).unwrap();
    let found: Vec<f64> = out.to_vec().into_iter().map(f64::from).collect();
    // Half a unit in the last place of 8 bits, and the errors of single precision.
    for (found, exact) in found.iter().zip(&exact[0]) {
        assert!((found - exact).abs() <= exact.abs() / 255.0 + 1e-5, "{found} instead of {exact}");
    }
    let logarithms: Vec<f64> = logarithms.to_vec().into_iter().map(f64::from).collect();
    assert_close(&logarithms, &exact[1], 1e-5);
}

#[test]
fn sizes_that_do_not_belong_together_are_refused() {
    let arrays = [dense(&[1, 2, 3]), dense(&[1, 4, 2]), dense(&[1, 4, 2])];
    let [query, key, value] = arrays.each_ref().map(Array::view);
    let (mut out, mut logarithms) = (Array::zeros(&[1, 2, 2]), Array::zeros(&[1, 2]));
    let error =
        attention(query, key, value, None, false, None, out.view_mut(), logarithms.view_mut()).unwrap_err();
    assert!(error.to_string().contains("do not have sizes that belong together"), "{error}");
}
