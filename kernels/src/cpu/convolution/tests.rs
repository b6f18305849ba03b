//! Convolutions against sums over indices, and gradients against their transposes.

use opsmith_runtime::bf16;

use super::*;
use crate::cpu::testing::{Array, assert_close, indices, scattered};

fn dense(sizes: &[i64]) -> Array<f64> {
    Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize))
}

/// A convolution's shapes and parameters.
struct Case {
    input: Vec<i64>,
    weight: Vec<i64>,
    output: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

fn cases() -> Vec<Case> {
    let case = |input: &[i64], weight: &[i64], output: &[i64], parameters: [&[i64]; 3], groups| Case {
        input: input.to_vec(),
        weight: weight.to_vec(),
        output: output.to_vec(),
        stride: parameters[0].to_vec(),
        padding: parameters[1].to_vec(),
        dilation: parameters[2].to_vec(),
        groups,
    };
    vec![
        case(&[2, 3, 7], &[4, 3, 3], &[2, 4, 4], [&[2], &[1], &[1]], 1),
        case(&[1, 4, 5, 6], &[6, 2, 3, 2], &[1, 6, 5, 3], [&[1, 2], &[2, 0], &[2, 1]], 2),
        case(&[2, 3, 4, 4], &[5, 3, 1, 1], &[2, 5, 4, 4], [&[1], &[0], &[1]], 1),
        case(&[1, 2, 3, 4, 5], &[2, 1, 2, 2, 2], &[1, 2, 2, 3, 4], [&[1], &[0], &[1]], 2),
        case(&[1, 1, 2], &[1, 1, 5], &[1, 1, 2], [&[3], &[3], &[1]], 1),
        // Several phases of a stride, several blocks, a long row, an inner dimension of several parts.
        case(&[2, 3, 19, 23], &[5, 3, 3, 3], &[2, 5, 11, 7], [&[2, 3], &[2, 1], &[1, 2]], 1),
        case(&[1, 2, 7, 8, 9], &[3, 2, 2, 3, 2], &[1, 3, 4, 6, 4], [&[2, 1, 2], &[1, 0, 1], &[2, 1, 3]], 1),
        case(&[2, 6, 9, 9], &[6, 1, 3, 3], &[2, 6, 9, 9], [&[1], &[1], &[1]], 6),
        case(&[1, 2, 33_000], &[3, 2, 3], &[1, 3, 33_000], [&[1], &[1], &[1]], 1),
        case(&[1, 90, 40, 41], &[1, 90, 3, 3], &[1, 1, 38, 39], [&[1], &[0], &[1]], 1),
        case(&[1, 4, 6, 5], &[2, 4, 1, 1], &[1, 2, 3, 3], [&[2], &[0], &[1]], 1),
        // A channel at a time: rows together and apart, several blocks, three dimensions.
        case(&[2, 5, 31, 150], &[5, 1, 5, 5], &[2, 5, 16, 75], [&[2], &[2], &[1]], 5),
        case(&[2, 3, 7, 7], &[3, 1, 5, 5], &[2, 3, 7, 7], [&[1], &[2], &[1]], 3),
        case(&[1, 2, 300, 240], &[2, 1, 3, 3], &[1, 2, 300, 240], [&[1], &[1], &[1]], 2),
        case(&[1, 3, 4, 5, 6], &[3, 1, 2, 2, 2], &[1, 3, 3, 6, 7], [&[2, 1, 1], &[1], &[1]], 3),
        // A window whose elements lie far apart has no patches.
        case(&[1, 1, 3], &[2, 1, 3], &[1, 2, 3], [&[1], &[100_000], &[100_000]], 1),
    ]
}

/// The convolution by its definition.
fn naive(case: &Case, input: &Array<f64>, weight: &Array<f64>) -> Vec<f64> {
    let (outputs, groups) = (case.weight[0], case.groups);
    let of = |values: &[i64], dim: usize| if values.len() == 1 { values[0] } else { values[dim] };
    indices(&case.output)
        .iter()
        .map(|at| {
            let group = at[1] / (outputs / groups);
            indices(&case.weight[1..])
                .iter()
                .map(|k| {
                    let mut place = vec![at[0], group * case.weight[1] + k[0]];
                    for dim in 0..case.weight.len() - 2 {
                        let start = at[2 + dim] * of(&case.stride, dim) - of(&case.padding, dim);
                        place.push(start + k[1 + dim] * of(&case.dilation, dim));
                    }
                    let inside = place.iter().zip(&case.input).all(|(&i, &size)| i >= 0 && i < size);
                    let mut of_weight = vec![at[1]];
                    of_weight.extend_from_slice(k);
                    if inside { input.at(&place) * weight.at(&of_weight) } else { 0.0 }
                })
                .sum()
        })
        .collect()
}

fn run<T: Element<Compute: Convolve>>(
    case: &Case,
    transposed: bool,
    x: &Array<T>,
    w: &Array<T>,
    out_sizes: &[i64],
) -> Array<T> {
    let mut out = Array::zeros(out_sizes);
    convolution(
        x.view(),
        w.view(),
        None,
        &case.stride,
        &case.padding,
        &case.dilation,
        transposed,
        &[0],
        case.groups,
        out.view_mut(),
    )
    .unwrap();
    out
}

fn product(a: &Array<f64>, b: &Array<f64>) -> f64 {
    a.to_vec().iter().zip(b.to_vec()).map(|(a, b)| a * b).sum()
}

#[test]
fn convolutions_and_gradients() {
    for case in cases() {
        let (x, w, dy) = (dense(&case.input), dense(&case.weight), dense(&case.output).reversed(1));
        let y = run(&case, false, &x, &w, &case.output);
        assert_close(&y.to_vec(), &naive(&case, &x, &w), 1e-12);
        // The transposed convolution is the adjoint: <conv(x), dy> = <x, convᵀ(dy)>.
        let back = run(&case, true, &dy, &w, &case.input);
        assert_close(&[product(&y, &dy)], &[product(&x, &back)], 1e-12);

        let (mut dx, mut dw) = (Array::zeros(&case.input), Array::zeros(&case.weight));
        let mut db = Array::zeros(&[case.weight[0]]);
        let mut backward = |transposed: bool, dy: &Array<f64>, x: &Array<f64>, mask: &[bool]| {
            let (mut of_x, mut of_b) = (Array::zeros(&x.sizes), Array::zeros(&[dy.sizes[1]]));
            convolution_backward(
                dy.view(),
                x.view(),
                w.view(),
                &case.stride,
                &case.padding,
                &case.dilation,
                transposed,
                &[0],
                case.groups,
                mask,
                of_x.view_mut(),
                dw.view_mut(),
                of_b.view_mut(),
            )
            .unwrap();
            (of_x, of_b, product(&dw, &w))
        };
        let (of_x, of_b, of_w) = backward(false, &dy, &x, &[true; 3]);
        dx.view_mut().write(of_x.to_vec()).unwrap();
        db.view_mut().write(of_b.to_vec()).unwrap();
        assert_close(&dx.to_vec(), &back.to_vec(), 1e-12);
        // A convolution is linear in its weight: <dw, w> = <dy, conv(x)>.
        assert_close(&[of_w], &[product(&y, &dy)], 1e-12);
        let sums: Vec<f64> = (0..case.output[1])
            .map(|channel| {
                indices(&case.output).iter().filter(|at| at[1] == channel).map(|at| dy.at(at)).sum()
            })
            .collect();
        assert_close(&db.to_vec(), &sums, 1e-12);
        let (of_dy, _, of_w) = backward(true, &x, &dy, &[true, true, false]);
        assert_close(&of_dy.to_vec(), &y.to_vec(), 1e-12);
        assert_close(&[of_w], &[product(&y, &dy)], 1e-12);
    }
}

#[test]
fn the_bias_is_added_to_its_channel() {
    let (x, w) = (Array::new(&[1, 1, 2], [1i64, 2]), Array::new(&[2, 1, 1], [1i64, 10]));
    let mut out = Array::zeros(&[1, 2, 2]);
    let bias = Array::new(&[2], [100i64, 200]);
    let (x, w) = (x.view(), w.view());
    convolution(x, w, Some(bias.view()), &[1], &[0], &[1], false, &[0], 1, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [101, 102, 210, 220]);
    let (x, w) = (Array::new(&[1, 2, 2], [1f32, 2.0, 3.0, 4.0]), Array::new(&[2, 1, 1], [10f32, 1.0]));
    let (bias, mut each) = (Array::new(&[2], [100f32, 200.0]), Array::zeros(&[1, 2, 4]));
    let (x, w) = (x.view(), w.view());
    convolution(x, w, Some(bias.view()), &[1], &[1], &[1], false, &[0], 2, each.view_mut()).unwrap();
    assert_eq!(each.to_vec(), [100.0, 110.0, 120.0, 100.0, 200.0, 203.0, 204.0, 200.0]);
    let (x, w) = (Array::new(&[1, 1, 2], [1i64, 2]), Array::new(&[2, 1, 1], [1i64, 10]));
    let (x, w, bias) = (x.view(), w.view(), Array::new(&[1], [1i64]));
    assert!(convolution(x, w, Some(bias.view()), &[1], &[0], &[1], false, &[0], 1, out.view_mut()).is_err());
}

#[test]
fn half_precision_rounds_once() {
    let ones = Array::new(&[1, 300, 1], vec![bf16::ONE; 300]);
    let mut out = Array::zeros(&[1, 1, 1]);
    convolution(ones.view(), ones.view(), None, &[1], &[0], &[1], false, &[0], 1, out.view_mut()).unwrap();
    assert_eq!(out.to_vec(), [bf16::from_f32(300.0)]);
}

/// Checks that an input whose channels are neighbours gives the bits of one whose columns are.
fn check_channels_last<T: Element<Compute: Convolve>>(of: impl Fn(f64) -> T) {
    // More and fewer channels and places than a square has, and places that a stride separates.
    for (channels, width, stride) in [(8, 8, 1), (19, 21, 1), (11, 40, 2), (3, 9, 1), (16, 5, 1)] {
        let case = Case {
            input: vec![2, channels, 7, width],
            weight: vec![3, channels, 3, 3],
            output: vec![2, 3, (7 - 1) / stride + 1, (width - 1) / stride + 1],
            stride: vec![stride],
            padding: vec![1],
            dilation: vec![1],
            groups: 1,
        };
        let typed = |sizes: &[i64]| Array::new(sizes, dense(sizes).to_vec().into_iter().map(&of));
        let (x, w) = (typed(&case.input), typed(&case.weight));
        let last = [2, 7, width, channels];
        let elements = indices(&last).into_iter().map(|at| x.at(&[at[0], at[3], at[1], at[2]]));
        let neighbours = Array::new(&last, elements).permuted(&[0, 3, 1, 2]);
        let [first, second] = [&x, &neighbours].map(|x| run(&case, false, x, &w, &case.output).to_vec());
        assert!(first == second, "{channels} channels, {width} columns, stride {stride}");
    }
}

#[test]
fn channels_that_are_neighbours_give_the_same_bits() {
    check_channels_last(|x| x);
    check_channels_last(|x| x as f32);
    check_channels_last(bf16::from_f64);
}

#[test]
fn columns_and_their_sums() {
    let x = Array::new(&[1, 2, 3], [1, 2, 3, 4, 5, 6]);
    let mut columns = Array::zeros(&[4, 2]);
    let (kernel, one, zero): (&[i64], &[i64], &[i64]) = (&[2, 2], &[1], &[0]);
    im2col(x.view(), kernel, one, zero, one, columns.view_mut()).unwrap();
    assert_eq!(columns.to_vec(), [1, 2, 2, 3, 4, 5, 5, 6]);
    let mut back = Array::zeros(&[1, 2, 3]);
    col2im(columns.view(), kernel, one, zero, one, back.view_mut()).unwrap();
    assert_eq!(back.to_vec(), [1, 4, 3, 4, 10, 6]);
    assert!(col2im(columns.view(), kernel, one, one, one, back.view_mut()).is_err());
}

#[test]
fn no_samples_have_no_gradient() {
    let (input, weight) = (dense(&[0, 3, 9, 9]), dense(&[4, 3, 3, 3]));
    let grad = dense(&[0, 4, 7, 7]);
    let (mut of_input, mut of_weight, mut of_bias) =
        (Array::zeros(&input.sizes), dense(&weight.sizes), dense(&[4]));
    let (one, none) = ([1i64, 1], [0i64, 0]);
    let outputs = (of_input.view_mut(), of_weight.view_mut(), of_bias.view_mut());
    convolution_backward(
        grad.view(),
        input.view(),
        weight.view(),
        &one,
        &none,
        &one,
        false,
        &none,
        1,
        &[true; 3],
        outputs.0,
        outputs.1,
        outputs.2,
    )
    .unwrap();
    assert!(of_weight.to_vec().iter().chain(&of_bias.to_vec()).all(|sum| *sum == 0.0));
}

#[test]
fn convolutions_of_narrow_floats_in_threads() {
    for case in cases() {
        let narrow = |x: &Array<f64>| Array::new(&x.sizes, x.to_vec().into_iter().map(bf16::from_f64));
        let wide = |x: &Array<bf16>| Array::new(&x.sizes, x.to_vec().into_iter().map(|x| x.to_f64()));
        let (x, w) = (narrow(&dense(&case.input)), narrow(&dense(&case.weight)));
        let expected = naive(&case, &wide(&x), &wide(&w));
        let terms = case.weight[1..].iter().product::<i64>() as f64;
        let mut first: Option<Vec<bf16>> = None;
        for threads in [1, 2, 5] {
            opsmith_runtime::parallel::set_num_threads(threads).unwrap();
            let y = run(&case, false, &x, &w, &case.output).to_vec();
            assert_eq!(first.get_or_insert_with(|| y.clone()), &y);
            for (got, expected) in y.iter().zip(&expected) {
                let error = (got.to_f64() - expected).abs();
                assert!(error <= expected.abs() / 200.0 + terms * 1e-5, "{got} instead of {expected}");
            }
        }
    }
}
