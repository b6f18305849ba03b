//! Normalisation of rows by the device library, and its gradients, give the results of the host's kernels.
//!
//! In: the texts of the library, compiled and launched by the stand-ins. Out: comparisons with `kernels::cpu::normalisation`
//! over rows of several lengths, with and without factors. Sums are added in another order: distances are in units of numbers
//! from one on.

mod device_support;

use std::ffi::c_void;

use device_support::arrays::Array;
use device_support::launch::{Device, Memory, device};
use device_support::numbers::Number;
use half::bf16;
use opsmith_kernels::cpu::normalisation;
use opsmith_kernels::device::{LAYER_NORM_HEADERS, Normalisation, Shape};
use opsmith_runtime::Element;

const EPS: f64 = 1e-5;
const SHAPES: [[i64; 2]; 7] = [[7, 33], [300, 5], [3, 2000], [1000, 40], [1, 1], [2, 8200], [5, 516]];

/// Runs a kernel: its macro, and the arguments after the name.
fn run(
    device: &Device,
    instance: &str,
    arguments: &str,
    shape: Shape,
    splits: u32,
    geometry: &Normalisation,
) {
    let text = format!("{}{instance}(opsmith_kernel, {arguments})\n", LAYER_NORM_HEADERS.concat());
    let parameter: *const c_void = (&raw const *geometry).cast();
    device.launch(device.function(&text), [shape.blocks, splits], shape.threads, &[parameter]);
}

#[track_caller]
fn near<T: Number + Element>(name: &str, found: &Memory<'_>, wanted: &Array<T>, units: f64) {
    for (index, (found, &wanted)) in
        found.read::<T>(wanted.elements.len()).iter().zip(&wanted.elements).enumerate()
    {
        let distance = found.distance(wanted, 1.0);
        assert!(
            distance <= units,
            "{name}, element {index}: {found:?} instead of {wanted:?}, {distance} units"
        );
    }
}

/// Operands of one shape: input, gradient of the output, weight, bias.
fn operands<T: Number + Element>([rows, size]: [i64; 2]) -> [Array<T>; 4] {
    let mut grad = Array::random(&[rows, size]);
    grad.elements.reverse();
    let mut bias = Array::random(&[size]);
    bias.elements.reverse();
    [Array::random(&[rows, size]), grad, Array::random(&[size]), bias]
}

fn empty<T: Number + Element>(sizes: &[i64]) -> Array<T> {
    Array::new(sizes, vec![T::default(); sizes.iter().product::<i64>() as usize])
}

/// A factor's view and address, if factors are given.
type Factor<'a, T> = (Option<&'a Array<T>>, *const c_void);

/// Layer normalisation of one shape, with factors or without, and all gradients.
fn layer<T: Number + Element<Compute: normalisation::Real>>(shape: [i64; 2], factors: bool, units: f64) {
    let device = device();
    let [x, grad, weight, bias] = operands::<T>(shape);
    let memory = [&x, &grad, &weight, &bias].map(|array| device.copied(&array.elements));
    let factor = |array, place: usize| match factors {
        true => (Some(array), memory[place].pointer().cast_const()),
        false => (None, std::ptr::null()),
    };
    let (weight, bias) = (factor(&weight, 2), factor(&bias, 3));
    let geometry = Normalisation {
        input: memory[0].pointer(),
        grad: memory[1].pointer(),
        weight: weight.1,
        bias: bias.1,
        ..Normalisation::of_rows(shape[0] as u64, shape[1] as u64, EPS)
    };
    let statistics = layer_forward(&device, geometry, &x, [weight, bias], units);
    layer_backward(&device, geometry, [&x, &grad], weight, &statistics, units);
}

/// Compares results and statistics, and returns the host's mean and reciprocal deviation of each row.
fn layer_forward<T: Number + Element<Compute: normalisation::Real>>(
    device: &Device,
    mut geometry: Normalisation,
    x: &Array<T>,
    [weight, bias]: [Factor<'_, T>; 2],
    units: f64,
) -> [Array<T>; 2] {
    let rows = x.sizes[0];
    let [mut out, mut mean, mut rstd] = [empty::<T>(&x.sizes), empty(&[rows, 1]), empty(&[rows, 1])];
    let (y, means, rstds) = (out.view_mut(), mean.view_mut(), rstd.view_mut());
    let [weight, bias] = [weight, bias].map(|factor| factor.0.map(Array::view));
    normalisation::native_layer_norm(x.view(), &x.sizes[1..], weight, bias, EPS, y, means, rstds).unwrap();
    let results = [&out, &mean, &rstd].map(|array| device.memory::<T>(array.elements.len()));
    [geometry.out, geometry.mean, geometry.rstd] = [0, 1, 2].map(|place| results[place].pointer());
    let shape = geometry.of_each_row(T::DTYPE).unwrap();
    run(device, "OPSMITH_NORMALISE", &format!("{}, true", T::NAME), shape, 1, &geometry);
    near("out", &results[0], &out, units);
    near("mean", &results[1], &mean, units);
    // Of a row of one element it is 1 / √eps.
    near("rstd", &results[2], &rstd, units * 300.0);
    [mean, rstd]
}

/// Compares the gradients of input, weight and bias.
fn layer_backward<T: Number + Element<Compute: normalisation::Real>>(
    device: &Device,
    mut geometry: Normalisation,
    [x, grad]: [&Array<T>; 2],
    weight: Factor<'_, T>,
    [mean, rstd]: &[Array<T>; 2],
    units: f64,
) {
    let sizes = &x.sizes[1..];
    let [mut of_x, mut of_weight, mut of_bias] = [empty::<T>(&x.sizes), empty(sizes), empty(sizes)];
    let (gx, gw, gb) = (of_x.view_mut(), of_weight.view_mut(), of_bias.view_mut());
    let (dy, means, rstds, scale) = (grad.view(), mean.view(), rstd.view(), weight.0.map(Array::view));
    normalisation::native_layer_norm_backward(
        dy,
        x.view(),
        sizes,
        means,
        rstds,
        scale,
        &[true; 3],
        gx,
        gw,
        gb,
    )
    .unwrap();
    let statistics = [mean, rstd].map(|array| device.copied(&array.elements));
    let results = [&of_x, &of_weight, &of_bias].map(|array| device.memory::<T>(array.elements.len()));
    let partials = device.memory::<[f64; 2]>(sizes[0] as usize * geometry.splits as usize);
    [geometry.mean, geometry.rstd] = [0, 1].map(|place| statistics[place].pointer());
    geometry.partials = partials.pointer();
    [geometry.out, geometry.grad_weight, geometry.grad_bias] =
        [0, 1, 2].map(|place| results[place].pointer());
    let arguments = format!("{}, true", T::NAME);
    run(
        device,
        "OPSMITH_NORMALISE_BACKWARD",
        &arguments,
        geometry.of_each_row(T::DTYPE).unwrap(),
        1,
        &geometry,
    );
    near("gradient of the input", &results[0], &of_x, units);
    of_factors(device, &arguments, &geometry);
    // Of a thousand rows, partial sums are of the size of a hundred, and so are their units.
    near("gradient of the weight", &results[1], &of_weight, units * 16.0);
    near("gradient of the bias", &results[2], &of_bias, units * 16.0);
}

/// The gradients of the factors, in two steps.
fn of_factors(device: &Device, arguments: &str, geometry: &Normalisation) {
    let columns = geometry.of_columns().unwrap();
    run(device, "OPSMITH_NORMALISE_FACTORS", arguments, columns, geometry.splits, geometry);
    let end = Shape { blocks: geometry.size.div_ceil(256) as u32, threads: [256, 1] };
    let name = arguments.split(',').next().unwrap();
    run(device, "OPSMITH_NORMALISE_FACTORS_END", name, end, 1, geometry);
}

/// Normalisation by the root mean square, and all gradients.
fn root_mean_square<T: Number + Element<Compute: normalisation::Real>>([rows, size]: [i64; 2], units: f64) {
    let device = device();
    let [x, grad, weight, _] = operands::<T>([rows, size]);
    let (sizes, both) = ([size], [rows, size]);
    let mut out = empty::<T>(&both);
    normalisation::rms_norm(x.view(), &sizes, Some(weight.view()), Some(EPS), out.view_mut()).unwrap();
    let memory = [&x, &grad, &weight].map(|array| device.copied(&array.elements));
    let results = [&out, &x, &weight].map(|array| device.memory::<T>(array.elements.len()));
    let rstd = device.memory::<T::Compute>(rows as usize);
    let mut geometry = Normalisation {
        input: memory[0].pointer(),
        grad: memory[1].pointer(),
        weight: memory[2].pointer(),
        rstd: rstd.pointer(),
        out: results[0].pointer(),
        ..Normalisation::of_rows(rows as u64, size as u64, EPS)
    };
    let arguments = format!("{}, false", T::NAME);
    let by_row = geometry.of_each_row(T::DTYPE).unwrap();
    run(&device, "OPSMITH_NORMALISE", &arguments, by_row, 1, &geometry);
    near("out", &results[0], &out, units);

    let [mut of_x, mut of_weight] = [empty::<T>(&both), empty(&sizes)];
    let (gx, gw) = (of_x.view_mut(), of_weight.view_mut());
    let weight_view = Some(weight.view());
    normalisation::rms_norm_backward(
        grad.view(),
        x.view(),
        &sizes,
        weight_view,
        Some(EPS),
        &[true; 2],
        gx,
        gw,
    )
    .unwrap();
    let partials = device.memory::<[f64; 2]>(size as usize * geometry.splits as usize);
    (geometry.out, geometry.partials) = (results[1].pointer(), partials.pointer());
    geometry.grad_weight = results[2].pointer();
    run(&device, "OPSMITH_NORMALISE_BACKWARD", &arguments, by_row, 1, &geometry);
    near("gradient of the input", &results[1], &of_x, units);
    of_factors(&device, &arguments, &geometry);
    near("gradient of the weight", &results[2], &of_weight, units * 16.0);
}

#[test]
fn layers() {
    for shape in SHAPES {
        for factors in [true, false] {
            layer::<f32>(shape, factors, 16.0);
            layer::<f64>(shape, factors, 16.0);
        }
        layer::<bf16>(shape, true, 1.0);
    }
}

#[test]
fn root_mean_squares() {
    for shape in SHAPES {
        root_mean_square::<f32>(shape, 16.0);
        root_mean_square::<bf16>(shape, 1.0);
    }
}
