//! Normalisation against its definition, and gradients against differences.

use opsmith_runtime::bf16;

use super::*;
use crate::cpu::testing::{Array, assert_close, scattered};

fn dense(sizes: &[i64]) -> Array<f64> {
    Array::new(sizes, scattered(sizes.iter().product::<i64>() as usize))
}

struct Layer {
    out: Vec<f64>,
    mean: Array<f64>,
    rstd: Array<f64>,
}

fn layer(input: &Array<f64>, weight: &Array<f64>, bias: &Array<f64>) -> Layer {
    let (mut out, mut mean, mut rstd) =
        (Array::zeros(&input.sizes), Array::zeros(&[input.sizes[0], 1]), Array::zeros(&[input.sizes[0], 1]));
    let (shape, weight, bias) = (input.sizes[1..].to_vec(), weight.view(), bias.view());
    let (out_view, eps) = (out.view_mut(), 1e-3);
    let (mean_view, rstd_view) = (mean.view_mut(), rstd.view_mut());
    native_layer_norm(input.view(), &shape, Some(weight), Some(bias), eps, out_view, mean_view, rstd_view)
        .unwrap();
    Layer { out: out.to_vec(), mean, rstd }
}

#[test]
fn rows_are_normalised() {
    for input in [dense(&[3, 40]), dense(&[40, 3]).permuted(&[1, 0])] {
        let (weight, bias) = (dense(&[40]), dense(&[40]).reversed(0));
        let result = layer(&input, &weight, &bias);
        for (row, out) in input.to_vec().chunks(40).zip(result.out.chunks(40)) {
            let mean = row.iter().sum::<f64>() / 40.0;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 40.0;
            let expected: Vec<f64> = (0..40)
                .map(|i| {
                    (row[i] - mean) / (variance + 1e-3).sqrt() * weight.at(&[i as i64]) + bias.at(&[i as i64])
                })
                .collect();
            assert_close(out, &expected, 1e-12);
        }
    }
}

/// The derivative of a sum of outputs, weighted by `cotangent`, by differences.
fn differences(input: &Array<f64>, cotangent: &[f64], f: impl Fn(&Array<f64>) -> Vec<f64>) -> Vec<f64> {
    let value = |input: &Array<f64>| f(input).iter().zip(cotangent).map(|(x, c)| x * c).sum::<f64>();
    let elements = input.to_vec();
    (0..elements.len())
        .map(|at| {
            let moved = |by: f64| {
                let mut elements = elements.clone();
                elements[at] += by;
                value(&Array::new(&input.sizes, elements))
            };
            (moved(1e-5) - moved(-1e-5)) / 2e-5
        })
        .collect()
}

#[test]
fn gradients_of_layer_normalisation() {
    let (input, weight, bias, grad) = (dense(&[3, 5]), dense(&[5]), dense(&[5]), dense(&[3, 5]).reversed(1));
    let forward = layer(&input, &weight, &bias);
    let (mut of_input, mut of_weight, mut of_bias) =
        (Array::zeros(&[3, 5]), Array::zeros(&[5]), Array::zeros(&[5]));
    let mut backward = |mask: &[bool], of_input: &mut Array<f64>| {
        native_layer_norm_backward(
            grad.view(),
            input.view(),
            &[5],
            forward.mean.view(),
            forward.rstd.view(),
            Some(weight.view()),
            mask,
            of_input.view_mut(),
            of_weight.view_mut(),
            of_bias.view_mut(),
        )
        .unwrap();
    };
    backward(&[true, true, true], &mut of_input);
    let cotangent = grad.to_vec();
    assert_close(
        &of_input.to_vec(),
        &differences(&input, &cotangent, |x| layer(x, &weight, &bias).out),
        1e-7,
    );
    backward(&[false, true, true], &mut of_input);
    assert_eq!(of_input.to_vec(), [0.0; 15]);
    assert_close(
        &of_weight.to_vec(),
        &differences(&weight, &cotangent, |w| layer(&input, w, &bias).out),
        1e-7,
    );
    assert_close(&of_bias.to_vec(), &differences(&bias, &cotangent, |b| layer(&input, &weight, b).out), 1e-7);
}

fn rms(input: &Array<f64>, weight: &Array<f64>, eps: Option<f64>) -> Vec<f64> {
    let mut out = Array::zeros(&input.sizes);
    rms_norm(input.view(), &input.sizes[1..], Some(weight.view()), eps, out.view_mut()).unwrap();
    out.to_vec()
}

#[test]
fn rows_are_divided_by_their_root_mean_square() {
    for (input, weight) in [
        (dense(&[3, 2000]), dense(&[2000])),
        (dense(&[40, 3]).permuted(&[1, 0]), dense(&[40]).reversed(0)),
        (dense(&[2, 1]), dense(&[1])),
    ] {
        let width = input.sizes[1] as usize;
        let out = rms(&input, &weight, None);
        for (row, out) in input.to_vec().chunks(width).zip(out.chunks(width)) {
            let mean = row.iter().map(|x| x * x).sum::<f64>() / width as f64;
            let expected: Vec<f64> =
                (0..width).map(|i| row[i] / (mean + f64::EPSILON).sqrt() * weight.at(&[i as i64])).collect();
            assert_close(out, &expected, 1e-12);
        }
    }
    let input = Array::new(&[1, 2], [bf16::ZERO, bf16::from_f32(1e-3)]);
    let mut out = Array::zeros(&[1, 2]);
    rms_norm(input.view(), &[2], None, None, out.view_mut()).unwrap();
    // The absent `eps` is that of single precision; that of bfloat16, 0.0078, would give 0.011.
    assert_eq!(out.to_vec(), [bf16::ZERO, bf16::from_f32(1.2734375)]);
    assert!(rms_norm(input.view(), &[3], None, None, out.view_mut()).is_err());
}

#[test]
fn gradients_of_root_mean_square_normalisation() {
    // More rows than a chunk.
    let rows = layer::CHUNK as i64 + 3;
    let (input, weight, grad) = (dense(&[rows, 5]), dense(&[5]), dense(&[rows, 5]).reversed(1));
    let (mut of_input, mut of_weight) = (Array::zeros(&[rows, 5]), Array::zeros(&[5]));
    let mut backward = |mask: &[bool], of_input: &mut Array<f64>| {
        let (weight, eps) = (Some(weight.view()), Some(1e-3));
        let (of_input, of_weight) = (of_input.view_mut(), of_weight.view_mut());
        rms_norm_backward(grad.view(), input.view(), &[5], weight, eps, mask, of_input, of_weight).unwrap();
    };
    backward(&[true, true], &mut of_input);
    let cotangent = grad.to_vec();
    let by_input = differences(&input, &cotangent, |x| rms(x, &weight, Some(1e-3)));
    assert_close(&of_input.to_vec(), &by_input, 1e-7);
    backward(&[false, true], &mut of_input);
    assert!(of_input.to_vec().iter().all(|x| *x == 0.0));
    let by_weight = differences(&weight, &cotangent, |w| rms(&input, w, Some(1e-3)));
    assert_close(&of_weight.to_vec(), &by_weight, 1e-7);
}

fn group(input: &Array<f64>, weight: &Array<f64>, bias: &Array<f64>) -> Layer {
    let (mut out, mut mean, mut rstd) =
        (Array::zeros(&input.sizes), Array::zeros(&[2, 3]), Array::zeros(&[2, 3]));
    let (weight, bias) = (Some(weight.view()), Some(bias.view()));
    let (out_view, mean_view, rstd_view) = (out.view_mut(), mean.view_mut(), rstd.view_mut());
    native_group_norm(input.view(), weight, bias, 2, 6, 4, 3, 1e-3, out_view, mean_view, rstd_view).unwrap();
    Layer { out: out.to_vec(), mean, rstd }
}

#[test]
fn groups_are_layers_of_their_channels() {
    let input = dense(&[2, 6, 4]);
    let (ones, zeros) = (Array::new(&[6], [1.0; 6]), Array::zeros(&[6]));
    let grouped = group(&input, &ones, &zeros);
    let rows = Array::new(&[6, 8], input.to_vec());
    let layered = layer(&rows, &Array::new(&[8], [1.0; 8]), &Array::zeros(&[8]));
    assert_close(&grouped.out, &layered.out, 1e-12);

    let (weight, bias, grad) = (dense(&[6]), dense(&[6]), dense(&[2, 6, 4]).reversed(2));
    let forward = group(&input, &weight, &bias);
    let (mut of_input, mut of_weight, mut of_bias) =
        (Array::zeros(&[2, 6, 4]), Array::zeros(&[6]), Array::zeros(&[6]));
    native_group_norm_backward(
        grad.view(),
        input.view(),
        forward.mean.view(),
        forward.rstd.view(),
        Some(weight.view()),
        2,
        6,
        4,
        3,
        &[true, true, true],
        of_input.view_mut(),
        of_weight.view_mut(),
        of_bias.view_mut(),
    )
    .unwrap();
    let cotangent = grad.to_vec();
    assert_close(
        &of_input.to_vec(),
        &differences(&input, &cotangent, |x| group(x, &weight, &bias).out),
        1e-7,
    );
    assert_close(
        &of_weight.to_vec(),
        &differences(&weight, &cotangent, |w| group(&input, w, &bias).out),
        1e-7,
    );
    assert_close(&of_bias.to_vec(), &differences(&bias, &cotangent, |b| group(&input, &weight, b).out), 1e-7);
}

fn batch(input: &Array<f64>, weight: &Array<f64>, bias: &Array<f64>) -> Layer {
    let (mut out, mut mean, mut rstd) = (Array::zeros(&input.sizes), Array::zeros(&[3]), Array::zeros(&[3]));
    let (weight, bias) = (Some(weight.view()), Some(bias.view()));
    let (out_view, mean_view, rstd_view) = (out.view_mut(), mean.view_mut(), rstd.view_mut());
    native_batch_norm_no_stats(input.view(), weight, bias, 1e-3, out_view, mean_view, rstd_view).unwrap();
    Layer { out: out.to_vec(), mean, rstd }
}

#[test]
fn channels_are_normalised_over_the_batch() {
    let input = dense(&[4, 3, 5]);
    let (weight, bias) = (dense(&[3]), dense(&[3]).reversed(0));
    // Channels in front, the rest in one row: a layer for each channel.
    let rows = Array::new(&[4, 3, 5], input.to_vec()).permuted(&[1, 0, 2]).to_vec();
    let layered = layer(&Array::new(&[3, 20], rows), &Array::new(&[20], [1.0; 20]), &Array::zeros(&[20]));
    let expected: Vec<f64> = (0..60)
        .map(|at| {
            let (sample, channel, place) = (at / 15, at / 5 % 3, at % 5);
            layered.out[channel * 20 + sample * 5 + place] * weight.at(&[channel as i64])
                + bias.at(&[channel as i64])
        })
        .collect();
    let forward = batch(&input, &weight, &bias);
    assert_close(&forward.out, &expected, 1e-12);

    let grad = dense(&[4, 3, 5]).reversed(2);
    let (mut of_input, mut of_weight, mut of_bias) =
        (Array::zeros(&[4, 3, 5]), Array::zeros(&[3]), Array::zeros(&[3]));
    native_batch_norm_backward(
        grad.view(),
        input.view(),
        Some(weight.view()),
        None,
        None,
        Some(forward.mean.view()),
        Some(forward.rstd.view()),
        true,
        1e-3,
        &[true; 3],
        of_input.view_mut(),
        of_weight.view_mut(),
        of_bias.view_mut(),
    )
    .unwrap();
    let cotangent = grad.to_vec();
    assert_close(
        &of_input.to_vec(),
        &differences(&input, &cotangent, |x| batch(x, &weight, &bias).out),
        1e-7,
    );
    assert_close(
        &of_weight.to_vec(),
        &differences(&weight, &cotangent, |w| batch(&input, w, &bias).out),
        1e-7,
    );
    assert_close(&of_bias.to_vec(), &differences(&bias, &cotangent, |b| batch(&input, &weight, b).out), 1e-7);
}

#[test]
fn running_statistics_follow_the_batch() {
    let input = Array::new(&[4, 1], [1.0, 2.0, 3.0, 6.0]);
    let (old_mean, old_variance) = (Array::new(&[1], [10.0]), Array::new(&[1], [4.0]));
    let (mut mean, mut variance) = (Array::zeros(&[1]), Array::zeros(&[1]));
    let mut out = Array::zeros(&[4, 1]);
    let mut run = |training: bool, saved: i64| {
        let (mut save_mean, mut save_invstd) = (Array::zeros(&[saved]), Array::zeros(&[saved]));
        native_batch_norm_functional(
            input.view(),
            None,
            None,
            old_mean.view(),
            old_variance.view(),
            training,
            0.5,
            0.0,
            out.view_mut(),
            save_mean.view_mut(),
            save_invstd.view_mut(),
            mean.view_mut(),
            variance.view_mut(),
        )
        .unwrap();
        (out.to_vec(), mean.to_vec(), variance.to_vec())
    };
    let (_, mean, variance) = run(true, 1);
    assert_close(&[mean[0], variance[0]], &[6.5, 0.5 * 4.0 + 0.5 * 14.0 / 3.0], 1e-12);
    assert_eq!(run(false, 0), (vec![-4.5, -4.0, -3.5, -2.0], vec![10.0], vec![4.0]));
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let input = Array::<bf16>::zeros(&[2, 4]);
    let (mut out, mut mean, mut rstd) =
        (Array::zeros(&[2, 4]), Array::<bf16>::zeros(&[2, 1]), Array::<bf16>::zeros(&[2, 1]));
    let result = native_layer_norm(
        input.view(),
        &[3],
        None,
        None,
        0.0,
        out.view_mut(),
        mean.view_mut(),
        rstd.view_mut(),
    );
    assert!(result.unwrap_err().message().contains("not the end of the input's shape"));
}

#[test]
fn narrow_rows_are_those_of_floats_rounded() {
    for (rows, width) in [(1, 1), (3, 7), (5, 2048), (300, 100)] {
        let x = Array::new(
            &[rows, width],
            scattered((rows * width) as usize).map(opsmith_runtime::bf16::from_f64),
        );
        let wide = Array::new(&[rows, width], x.to_vec().into_iter().map(|x| x.to_f32()));
        for threads in [1, 2, 5] {
            opsmith_runtime::parallel::set_num_threads(threads).unwrap();
            let (mut out, mut expected) = (Array::zeros(&[rows, width]), Array::zeros(&[rows, width]));
            let [mut a, mut b] = [(); 2].map(|()| Array::zeros(&[rows, 1]));
            let [mut c, mut d] = [(); 2].map(|()| Array::zeros(&[rows, 1]));
            let outs = (out.view_mut(), a.view_mut(), b.view_mut());
            native_layer_norm(x.view(), &[width], None, None, 1e-5, outs.0, outs.1, outs.2).unwrap();
            let outs = (expected.view_mut(), c.view_mut(), d.view_mut());
            native_layer_norm(wide.view(), &[width], None, None, 1e-5, outs.0, outs.1, outs.2).unwrap();
            let rounded: Vec<_> =
                expected.to_vec().into_iter().map(opsmith_runtime::bf16::from_f32).collect();
            assert_eq!(out.to_vec(), rounded, "{rows} {width} {threads}");
        }
    }
}
