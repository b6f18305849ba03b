//! Reductions, softmax and normalisation of the device library give the results of the host's kernels.
//!
//! In: the texts of the library, compiled and launched by the stand-ins. Out: comparisons with `kernels::cpu` over rows,
//! columns, several and no dimensions, broadcast and permuted inputs. Integers, choices and truth agree exactly; floats add
//! up in another order, and are compared with the distance that their test says.

mod device_support;

use std::ffi::c_void;

use device_support::arrays::{Array, row_major};
use device_support::launch::{Device, device};
use device_support::numbers::Number;
use half::bf16;
use opsmith_kernels::cpu::{reduce, softmax};
use opsmith_kernels::device::{Dim, Lines, Plan, REDUCTION_HEADERS, Reduction, SOFTMAX_HEADERS, Shape};
use opsmith_runtime::{Complex32, Element, Scalar, View, ViewMut};

/// Sizes of inputs, the order of their dimensions, and the dimensions to reduce.
const SHAPES: [(&[i64], &[usize], &[i64]); 10] = [
    (&[7, 33], &[0, 1], &[1]),
    (&[5, 3000], &[0, 1], &[1]),
    (&[1, 70_000], &[0, 1], &[0, 1]),
    (&[300, 37], &[0, 1], &[0]),
    (&[4000, 3], &[0, 1], &[0]),
    (&[4, 5, 6, 7], &[0, 1, 2, 3], &[1, 3]),
    (&[4, 5, 6, 7], &[3, 1, 0, 2], &[0, 2]),
    (&[6, 50, 9], &[1, 0, 2], &[0]),
    (&[3, 0, 4], &[0, 1, 2], &[1]),
    (&[], &[], &[]),
];

/// The fold's results for an array: a fold by its text, with its numbers.
fn folded<T: Number, O: Copy + Default>(
    device: &Device,
    fold: &str,
    numbers: &[f64],
    input: &Array<T>,
    reduced: &[i64],
) -> Vec<O> {
    let reduced: Vec<bool> = (0..input.sizes.len()).map(|dim| reduced.contains(&(dim as i64))).collect();
    let kept: Vec<i64> =
        (0..reduced.len()).map(|dim| if reduced[dim] { 1 } else { input.sizes[dim] }).collect();
    let output = row_major(&kept);
    let dims: Vec<Dim> = (0..reduced.len())
        .map(|dim| Dim {
            size: input.sizes[dim],
            input: input.strides[dim],
            output: output[dim],
            reduced: reduced[dim],
        })
        .collect();
    let plan = Plan::new(&dims, fold.starts_with("Arg")).unwrap();
    let outputs = plan.geometry.outputs as usize;
    let (source, target) = (device.copied(&input.elements), device.memory::<O>(outputs));
    let partials = device.memory::<[u64; 6]>(outputs * plan.geometry.splits as usize);
    let geometry = Reduction {
        input: source.pointer(),
        out: target.pointer(),
        partials: partials.pointer(),
        ..plan.geometry
    };
    let parameters: [*const c_void; 2] = [numbers.as_ptr().cast(), (&raw const geometry).cast()];
    let text = |name: &str| format!("{}{name}(opsmith_kernel, {fold})\n", REDUCTION_HEADERS.concat());
    if outputs > 0 {
        device.launch(device.function(&text("OPSMITH_REDUCTION")), plan.blocks, plan.threads, &parameters);
        if plan.end_blocks > 0 {
            let function = device.function(&text("OPSMITH_REDUCTION_END"));
            device.launch(function, [plan.end_blocks, 1], [256, 1], &parameters);
        }
    }
    target.read(outputs)
}

/// Compares a fold with a kernel of the host, for all shapes. `units` are units in the last place of numbers from one on.
fn check<T: Element + Number, O: Element + Number>(
    fold: &str,
    numbers: &[f64],
    units: f64,
    host: impl Fn(View<'_, T>, &[i64], ViewMut<'_, O>) -> opsmith_runtime::Result<()>,
) {
    let device = device();
    for (sizes, order, dims) in SHAPES {
        let input = Array::<T>::random(sizes).permuted(order);
        let kept = |dim: usize| if dims.contains(&(dim as i64)) { 1 } else { input.sizes[dim] };
        let kept: Vec<i64> = (0..sizes.len()).map(kept).collect();
        let mut wanted = Array::new(&kept, vec![O::default(); kept.iter().product::<i64>() as usize]);
        // Some folds of nothing are errors of the host, before a kernel would run.
        if host(input.view(), dims, wanted.view_mut()).is_err() {
            continue;
        }
        let found: Vec<O> =
            folded(&device, fold, if numbers.is_empty() { &[0.0] } else { numbers }, &input, dims);
        for (index, (found, &wanted)) in found.iter().zip(&wanted.elements).enumerate() {
            let distance = found.distance(wanted, 1.0);
            assert!(
                distance <= units,
                "{fold} of {sizes:?} in the order {order:?} over {dims:?}, output {index}: {found:?} instead of {wanted:?}"
            );
        }
    }
}

/// The only reduced dimension.
fn only(dims: &[i64]) -> opsmith_runtime::Result<i64> {
    match dims {
        [dim] => Ok(*dim),
        _ => Err(opsmith_runtime::Error::value("several dimensions")),
    }
}

#[test]
fn sums_and_means() {
    check("Sum<i32>", &[], 0.0, |x: View<'_, i32>, dims, out| reduce::sum(x, Some(dims), true, out));
    check("Sum<i64>", &[], 0.0, |x: View<'_, i64>, dims, out| reduce::sum(x, Some(dims), true, out));
    // Sums are of several hundreds, whose units are some hundred times as large; those in double precision are exact.
    check("Sum<float>", &[], 64.0, |x: View<'_, f32>, dims, out| reduce::sum(x, Some(dims), true, out));
    check("Sum<double>", &[], 0.0, |x: View<'_, f64>, dims, out| reduce::sum(x, Some(dims), true, out));
    check("Sum<c32>", &[], 64.0, |x: View<'_, Complex32>, dims, out| reduce::sum(x, Some(dims), true, out));
    check("Mean<float>", &[], 2.0, |x: View<'_, f32>, dims, out| reduce::mean(x, Some(dims), true, out));
    check("Mean<bf16>", &[], 1.0, |x: View<'_, bf16>, dims, out| reduce::mean(x, Some(dims), true, out));
}

#[test]
fn products() {
    check("Product<i32>", &[], 0.0, |x: View<'_, i32>, dims, out| reduce::prod(x, only(dims)?, true, out));
}

#[test]
fn extremes_and_their_places() {
    check("Largest<float>", &[], 0.0, |x: View<'_, f32>, dims, out| reduce::amax(x, dims, true, out));
    check("Smallest<i8>", &[], 0.0, |x: View<'_, i8>, dims, out| reduce::amin(x, dims, true, out));
    check("Largest<bf16>", &[], 0.0, |x: View<'_, bf16>, dims, out| reduce::amax(x, dims, true, out));
    // Small integers, of which many are equal.
    check("ArgLargest<i32>", &[], 0.0, |x: View<'_, i32>, dims, out| {
        reduce::argmax(x, Some(only(dims)?), true, out)
    });
    check("ArgSmallest<double>", &[], 0.0, |x: View<'_, f64>, dims, out| {
        reduce::argmin(x, Some(only(dims)?), true, out)
    });
}

#[test]
fn nan_is_the_extreme_and_the_first_one_its_place() {
    let device = device();
    let mut elements = vec![1.0f32; 1000];
    (elements[10], elements[700], elements[300]) = (5.0, f32::NAN, f32::NAN);
    let input = Array::new(&[1000], elements);
    assert!(folded::<f32, f32>(&device, "Largest<float>", &[0.0], &input, &[0])[0].is_nan());
    assert!(folded::<f32, f32>(&device, "Smallest<float>", &[0.0], &input, &[0])[0].is_nan());
    assert_eq!(folded::<f32, i64>(&device, "ArgLargest<float>", &[0.0], &input, &[0]), [300]);
    assert_eq!(folded::<f32, i64>(&device, "ArgSmallest<float>", &[0.0], &input, &[0]), [300]);
}

#[test]
fn truth() {
    check("Any<float>", &[], 0.0, |x: View<'_, f32>, dims, out| reduce::any(x, Some(dims), true, out));
    check("All<i32>", &[], 0.0, |x: View<'_, i32>, dims, out| reduce::all(x, Some(dims), true, out));
}

#[test]
fn norms_and_variances() {
    for ord in [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
        let norm = move |x: View<'_, f32>, dims: &[i64], out: ViewMut<'_, f32>| {
            reduce::vector_norm(x, Scalar::Float(ord), Some(dims), true, out)
        };
        // Rounded once from double precision, in which the order of terms shows in the last digits alone.
        check("Norm<float>", &[ord], 1.0, norm);
    }
    let norm = |x: View<'_, Complex32>, dims: &[i64], out: ViewMut<'_, f32>| {
        reduce::vector_norm(x, Scalar::Float(2.0), Some(dims), true, out)
    };
    check("Norm<c32>", &[2.0], 1.0, norm);
    let correction = Some(Scalar::Float(1.0));
    check("Variance<float>", &[1.0], 1.0, |x: View<'_, f32>, dims, out| {
        reduce::var(x, Some(dims), correction, true, out)
    });
    check("Variance<double>", &[1.0], 6.0, |x: View<'_, f64>, dims, out| {
        reduce::var(x, Some(dims), correction, true, out)
    });
    check("Variance<c32>", &[1.0], 1.0, |x: View<'_, Complex32>, dims, out| {
        reduce::var(x, Some(dims), correction, true, out)
    });
}

/// The inputs of a rule for sizes and an order of dimensions.
type Inputs<T> = fn(&[i64], &[usize]) -> Vec<Array<T>>;

/// Runs a rule over lines along a dimension, and compares it with the host.
fn check_lines<T: Element + Number, const N: usize>(
    rule: &str,
    units: f64,
    inputs: Inputs<T>,
    host: impl Fn(&[Array<T>], i64, ViewMut<'_, T>) -> opsmith_runtime::Result<()>,
) {
    let device = device();
    let text = format!("{}OPSMITH_SOFTMAX(opsmith_kernel, {rule})\n", SOFTMAX_HEADERS.concat());
    let function = device.function(&text);
    for (sizes, order, _) in SHAPES {
        for dim in 0..sizes.len() {
            let inputs = inputs(sizes, order);
            let sizes = &inputs[0].sizes;
            let count = sizes.iter().product::<i64>() as usize;
            let mut wanted = Array::new(sizes, vec![T::default(); count]);
            host(&inputs, dim as i64, wanted.view_mut()).unwrap();
            let mut strides = [&wanted.strides[..]; N];
            inputs.iter().zip(&mut strides[1..]).for_each(|(input, strides)| *strides = &input.strides);
            let (mut lines, _): (Lines<N>, Shape) = Lines::along(dim, sizes, strides).unwrap();
            let shape = lines.in_chunks(T::DTYPE).unwrap();
            let memory: Vec<_> = inputs.iter().map(|input| device.copied(&input.elements)).collect();
            let target = device.memory::<T>(count);
            lines.pointers[0] = target.pointer();
            memory
                .iter()
                .zip(&mut lines.pointers[1..])
                .for_each(|(memory, pointer)| *pointer = memory.pointer());
            if count > 0 {
                device.launch(function, [shape.blocks, 1], shape.threads, &[(&raw const lines).cast()]);
            }
            for (index, (found, &wanted)) in target.read::<T>(count).iter().zip(&wanted.elements).enumerate()
            {
                let distance = found.distance(wanted, 1.0);
                assert!(
                    distance <= units,
                    "{rule} of {sizes:?} along {dim}, element {index}: {found:?} instead of {wanted:?}"
                );
            }
        }
    }
}

/// Random numbers with some infinite ones: a line of minus infinity and 1, as masks make it, is no NaN.
fn masked(sizes: &[i64], order: &[usize]) -> Vec<Array<f32>> {
    let mut array = Array::<f32>::random(sizes);
    for (index, element) in array.elements.iter_mut().enumerate() {
        if index % 3 == 0 {
            *element = f32::NEG_INFINITY;
        } else if index % 1009 == 1008 {
            *element = if index % 2 == 0 { f32::INFINITY } else { f32::NAN };
        }
    }
    vec![array.permuted(order)]
}

/// Two arrays of random numbers.
fn pair<T: Element + Number>(sizes: &[i64], order: &[usize]) -> Vec<Array<T>> {
    let mut second = Array::<T>::random(sizes);
    second.elements.reverse();
    vec![Array::random(sizes).permuted(order), second.permuted(order)]
}

#[test]
fn softmax_and_its_logarithm() {
    let host = |x: &[Array<f32>], dim, out: ViewMut<'_, f32>| softmax::softmax(x[0].view(), dim, out);
    check_lines::<f32, 2>("Softmax<float>", 2.0, masked, host);
    let host = |x: &[Array<f32>], dim, out: ViewMut<'_, f32>| softmax::log_softmax(x[0].view(), dim, out);
    check_lines::<f32, 2>("LogSoftmax<float>", 4.0, masked, host);
    let one: Inputs<bf16> = |sizes, order| vec![Array::<bf16>::random(sizes).permuted(order)];
    let host = |x: &[Array<bf16>], dim, out: ViewMut<'_, bf16>| softmax::softmax(x[0].view(), dim, out);
    check_lines::<bf16, 2>("Softmax<bf16>", 1.0, one, host);
}

#[test]
fn gradients_of_softmax() {
    let host = |x: &[Array<f64>], dim, out: ViewMut<'_, f64>| {
        softmax::softmax_backward_data(x[0].view(), x[1].view(), dim, out)
    };
    check_lines::<f64, 3>("SoftmaxBackward<double>", 8.0, pair, host);
    let host = |x: &[Array<f64>], dim, out: ViewMut<'_, f64>| {
        softmax::log_softmax_backward_data(x[0].view(), x[1].view(), dim, out)
    };
    check_lines::<f64, 3>("LogSoftmaxBackward<double>", 16.0, pair, host);
}
