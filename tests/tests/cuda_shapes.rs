//! Products, windows and attention on CUDA devices in shapes of several tiles and parts, which samples do not have, on the
//! stand-ins for driver and compiler (`tests/cuda`). Operands are small integers, whose sums are exact in any order, so that
//! results are those of the host bit for bit; attention has a bound.

use std::path::Path;

use opsmith::{self as f, Complex64, DType, Device, Generator, Tensor, TensorOps};
use opsmith_stand_in::process::{self, StandIns};

const DEVICE: Device = Device::cuda(0);

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::BF16, DType::C128, DType::I64];
const FLOATS: [DType; 3] = [DType::F32, DType::F64, DType::BF16];

#[test]
fn large_shapes_agree_with_the_host() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-shapes");
    let stand_ins = StandIns::new(folder, "cublaslt,cudnn");
    stand_ins.done("all", &[("OPSMITH_CUDA_LIBRARIES", "off")]);
    stand_ins.done("libraries", &[]);
}

/// The process started by the test above.
#[test]
fn worker() {
    process::work(&[("all", all), ("libraries", of_libraries)]);
}

fn all() {
    of_libraries();
    windows();
    places();
    attention();
}

/// Operators that libraries compute.
fn of_libraries() {
    matrices();
    vectors();
    convolutions();
}

/// Integers from -4 to 4 in an order without a short period.
fn numbers(sizes: &[i64], dtype: DType) -> Tensor {
    let count = sizes.iter().product::<i64>();
    let values: Vec<i64> =
        (0..count).map(|number| (number * number / 3 + 7 * number + count) % 9 - 4).collect();
    Tensor::from_slice(&values, sizes).unwrap().to_dtype(dtype).unwrap()
}

/// Compares a function of tensors on the device and on the host; the largest difference relative to the largest number of a
/// result is at most `bound`.
#[track_caller]
fn compare(inputs: &[Tensor], bound: f64, function: impl Fn(&[Tensor]) -> Vec<Tensor>) {
    let moved: Vec<Tensor> = inputs.iter().map(|input| input.to_device(DEVICE).unwrap()).collect();
    for (number, (found, expected)) in function(&moved).iter().zip(function(inputs)).enumerate() {
        assert_eq!((found.device(), found.shape()), (DEVICE, expected.shape()));
        let numbers = |tensor: &Tensor| {
            let tensor = tensor.to_device(Device::CPU).unwrap();
            match tensor.dtype().is_complex() {
                true => tensor.to_dtype(DType::C128).unwrap().to_vec::<Complex64>().unwrap(),
                false => {
                    let wide = tensor.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
                    wide.into_iter().map(|number| Complex64::new(number, 0.0)).collect()
                }
            }
        };
        let (found, expected) = (numbers(found), numbers(&expected));
        let largest = expected.iter().fold(0.0f64, |largest, number| largest.max(number.norm()));
        let difference = found.iter().zip(&expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        let same = difference <= bound * largest && found.iter().all(|number| number.is_finite());
        assert!(same, "result {number} of {:?}: {difference} of {largest}", inputs[0].dtype());
    }
}

fn matrices() {
    for dtype in DTYPES {
        let product = |x: &[Tensor]| vec![x[0].mm(&x[1]).unwrap()];
        compare(&[numbers(&[130, 70], dtype), numbers(&[70, 90], dtype)], 0.0, product);
        compare(
            &[numbers(&[70, 33], dtype).t().unwrap(), numbers(&[90, 70], dtype).t().unwrap()],
            0.0,
            product,
        );
        // Parts of the inner dimension.
        compare(&[numbers(&[3, 5000], dtype), numbers(&[5000, 20], dtype)], 0.0, product);
        compare(&[numbers(&[40, 2000], dtype), numbers(&[30, 2000], dtype).t().unwrap()], 0.0, product);
        let products = |x: &[Tensor]| vec![f::baddbmm(&x[2], &x[0], &x[1]).unwrap()];
        let batches = [numbers(&[5, 20, 30], dtype), numbers(&[30, 5, 40], dtype).transpose(0, 1).unwrap()];
        compare(&[batches[0].clone(), batches[1].clone(), numbers(&[20, 1], dtype)], 0.0, products);
    }
    // Tiles of 128.
    let large = [numbers(&[1100, 20], DType::F32), numbers(&[20, 2100], DType::F32)];
    compare(&large, 0.0, |x| vec![x[0].mm(&x[1]).unwrap()]);
}

fn vectors() {
    for dtype in DTYPES {
        let product = |x: &[Tensor]| vec![x[0].mv(&x[1]).unwrap()];
        compare(&[numbers(&[70, 9000], dtype), numbers(&[9000], dtype)], 0.0, product);
        compare(&[numbers(&[500, 70], dtype).t().unwrap(), numbers(&[500], dtype)], 0.0, product);
        let dots = |x: &[Tensor]| vec![f::dot(&x[0], &x[1]).unwrap(), f::vdot(&x[0], &x[1]).unwrap()];
        // The host rounds sums of blocks of 16-bit floats no more than the device does.
        compare(&[numbers(&[40001], dtype), numbers(&[40001], dtype)], 0.0, dots);
    }
}

fn convolutions() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::C128] {
        for (transposed, stride, groups) in [(false, 1, 1), (false, 2, 2), (true, 2, 2), (true, 1, 1)] {
            let weight = if transposed { [20, 3, 3, 2] } else { [20, 20 / groups, 3, 2] };
            let inputs = [numbers(&[2, 20, 15, 11], dtype), numbers(&weight, dtype)];
            compare(&inputs, 0.0, |x| {
                let (pads, ones, none) = ([1, 0], [1, 2], [0, 0]);
                let steps = [stride, stride];
                let y =
                    f::convolution(&x[0], &x[1], None, steps, pads, ones, transposed, none, groups).unwrap();
                let all = &[true, true, true];
                let (a, b, c) = f::convolution_backward(
                    &y, &x[0], &x[1], None, steps, pads, ones, transposed, none, groups, all,
                )
                .unwrap();
                // Gradients of 16-bit floats are sums of numbers that are not small.
                if dtype == DType::BF16 { vec![y] } else { vec![y, a, b, c] }
            });
        }
    }
}

fn windows() {
    for dtype in FLOATS {
        let x = numbers(&[2, 3, 20, 17], dtype);
        compare(std::slice::from_ref(&x), 0.0, |x| {
            let options = f::MaxPool2dWithIndicesOptions::new().stride([1, 2]).padding([1, 1]);
            let (y, places) = f::max_pool2d_with_indices_with(&x[0], [3, 3], options).unwrap();
            let back = f::max_pool2d_with_indices_backward(
                &y,
                &x[0],
                [3, 3],
                [1, 2],
                [1, 1],
                [1, 1],
                false,
                &places,
            );
            vec![y, places, back.unwrap()]
        });
        compare(std::slice::from_ref(&x), 0.0, |x| {
            let y = f::reflection_pad2d(&x[0], [16, 3, 2, 19]).unwrap();
            let back = f::reflection_pad2d_backward(&y, &x[0], [16, 3, 2, 19]).unwrap();
            vec![y, back]
        });
    }
}

/// Images read at places that are data, so that many places read one element, and resized.
fn places() {
    for dtype in FLOATS {
        let grid = (numbers(&[2, 40, 30, 2], dtype) / 4.0).unwrap();
        let inputs = [numbers(&[2, 3, 3, 2], dtype), grid, numbers(&[2, 3, 40, 30], dtype)];
        for (interpolation, outside) in [(0, 0), (1, 1), (2, 2)] {
            compare(&inputs, 0.0, |x| {
                let y = f::grid_sampler_2d(&x[0], &x[1], interpolation, outside, false).unwrap();
                let mask = &[true, true];
                let back =
                    f::grid_sampler_2d_backward(&x[2], &x[0], &x[1], interpolation, outside, false, mask);
                let (a, b) = back.unwrap();
                vec![y, a, b]
            });
        }
        for mode in 0..4 {
            compare(&[numbers(&[2, 3, 19, 40], dtype)], 0.0, |x| {
                let y = f::upsample(&x[0], [44, 33], mode, false, &[]).unwrap();
                let back = f::upsample_backward(&y, [44, 33], [2, 3, 19, 40], mode, false, &[]).unwrap();
                vec![y, back]
            });
        }
    }
}

fn attention() {
    for (dtype, bound) in [(DType::F64, 1e-13), (DType::F32, 2e-5)] {
        compare_attention(dtype, bound, [70, 150, 20, 80]);
    }
    // By tensor cores: rows that are copied whole and others, one band of queries and two, the narrow tiles and the wide ones. Host
    // and device differ by the rounding of weights to the dtype, and of results.
    for (dtype, bound) in [(DType::F16, 2e-3), (DType::BF16, 1.6e-2)] {
        compare_attention(dtype, bound, [70, 150, 20, 80]);
        compare_attention(dtype, bound, [150, 70, 64, 64]);
        compare_attention(dtype, bound, [5, 133, 128, 40]);
        compare_attention(dtype, bound, [200, 200, 9, 17]);
    }
}

/// Attention of two heads and its gradients, for these numbers of queries, keys, columns of queries and columns of values.
fn compare_attention(dtype: DType, bound: f64, [queries, keys, inner, width]: [i64; 4]) {
    let generator = Generator::new(17);
    let operand = |sizes: [i64; 2]| {
        let numbers = opsmith::rand_generator([2, sizes[0], sizes[1]], Some(&generator)).unwrap();
        numbers.sub(0.5).unwrap().mul(4.0).unwrap().to_dtype(dtype).unwrap()
    };
    let inputs =
        [[queries, inner], [keys, inner], [keys, width], [queries, keys], [queries, width]].map(operand);
    for (is_causal, masked) in [(false, true), (true, true), (true, false), (false, false)] {
        compare(&inputs, bound, |x| {
            let (q, k, v, mask) = (&x[0], &x[1], &x[2], masked.then_some(&x[3]));
            let (out, sums) = f::_scaled_dot_product_attention(q, k, v, mask, is_causal, None).unwrap();
            let all = &[true, true, true, masked];
            let (a, b, c, d) = f::_scaled_dot_product_attention_backward(
                &x[4], None, q, k, v, mask, &out, &sums, is_causal, None, all,
            )
            .unwrap();
            let mut results = vec![out, sums, a, b, c];
            results.extend(masked.then_some(d));
            results
        });
    }
}
