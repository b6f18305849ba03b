//! Factors of matrices, Fourier transforms, recurrent layers, paths of labels and frequent elements on the stand-ins for CUDA,
//! against the host, in sizes of several warps, blocks and passes.
//!
//! The work is done in processes of their own, as in `cuda.rs`, with the threads of a block in both orders.

use std::path::Path;

use opsmith::runtime::op::OpDef;
use opsmith::{Complex64, DType, Device, LIBRARY, Tensor, TensorOps, Value};
use opsmith_stand_in::process::{self, StandIns};
use opsmith_testing::calls::call;

const DEVICE: Device = Device::cuda(0);

#[test]
fn large_matrices_and_long_transforms_agree_with_the_host() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-matrices");
    let stand_ins = StandIns::new(folder, "cublaslt,cufft");
    // Transforms, and products in steps of recurrent layers, once by libraries.
    stand_ins.done("all", &[("STANDIN_ORDER", "forward")]);
    stand_ins.done("all", &[("STANDIN_ORDER", "reversed"), ("OPSMITH_CUDA_LIBRARIES", "off")]);
}

/// The process started by the test above.
#[test]
fn worker() {
    process::work(&[("all", all)]);
}

fn all() {
    factors();
    transforms();
    layers();
    paths();
    often();
}

/// Numbers from -1 to 1, complex ones of two.
fn numbers(sizes: &[i64], dtype: DType) -> Tensor {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ sizes.iter().sum::<i64>() as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let count = sizes.iter().product::<i64>();
    let values: Vec<Complex64> =
        (0..count).map(|_| Complex64::new(next(), if dtype.is_complex() { next() } else { 0.0 })).collect();
    Tensor::from_slice(&values, sizes).unwrap().to_dtype(dtype).unwrap()
}

fn tensor(tensor: &Tensor) -> Value {
    Value::Tensor(tensor.clone())
}

fn op(name: &str) -> &'static OpDef {
    LIBRARY.ops.iter().find(|op| op.name == name).unwrap()
}

/// Calls an operator on the host and on the device. Numbers may differ by `units` in the last place of the largest one.
#[track_caller]
fn compare(name: &str, args: &[Value], units: f64) {
    let there = |tensor: &Tensor| tensor.to_device(DEVICE).unwrap();
    let moved: Vec<Value> = args
        .iter()
        .map(|arg| match arg {
            Value::Tensor(tensor) => Value::Tensor(there(tensor)),
            Value::Tensors(tensors) => Value::Tensors(tensors.iter().map(there).collect()),
            other => other.clone(),
        })
        .collect();
    let expected = call(op(name), args).unwrap();
    let found = call(op(name), &moved).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.device(), DEVICE, "{name}");
        assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{name}");
        let unit = match expected.dtype() {
            DType::F64 | DType::C128 => f64::EPSILON,
            DType::F32 | DType::C64 => f64::from(f32::EPSILON),
            _ => 0.0,
        };
        let values = |tensor: &Tensor| {
            let host = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::C128).unwrap();
            host.contiguous().unwrap().to_vec::<Complex64>().unwrap()
        };
        let (found, expected) = (values(found), values(expected));
        let largest = expected.iter().filter(|x| x.is_finite()).fold(0.0, |most: f64, x| most.max(x.norm()));
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let near = (found - expected).norm() <= units * unit * largest;
            let same = found == expected || found.is_nan() && expected.is_nan();
            assert!(
                same || near,
                "{name}, result {number}, element {index}: {found} in place of {expected}, largest {largest}"
            );
        }
    }
}

const REALS: [DType; 2] = [DType::F64, DType::F32];
const FIELDS: [DType; 3] = [DType::F64, DType::F32, DType::C128];

/// Square matrices far from singular.
fn regular(stack: i64, n: i64, dtype: DType) -> Tensor {
    let diagonal = opsmith::eye(n).unwrap().mul(n as f64).unwrap().to_dtype(dtype).unwrap();
    numbers(&[stack, n, n], dtype).mul(2.0).unwrap().add(&diagonal).unwrap()
}

fn factors() {
    let [yes, no] = [true, false].map(Value::Bool);
    for dtype in FIELDS {
        for n in [5, 20, 70] {
            let a = regular(3, n, dtype);
            let units = 40.0 * n as f64;
            let right = numbers(&[3, n, 4], dtype);
            let by_rows = a.transpose(-2, -1).unwrap();
            compare("linalg_lu_factor_ex", &[tensor(&by_rows), yes.clone(), yes.clone()], units);
            compare(
                "linalg_lu_factor_ex",
                &[tensor(&numbers(&[2, n, 9], dtype)), yes.clone(), no.clone()],
                1e5,
            );
            for left in [true, false] {
                let b = if left { right.clone() } else { right.transpose(-2, -1).unwrap() };
                compare("linalg_solve", &[tensor(&a), tensor(&b), Value::Bool(left)], units);
                for upper in [&yes, &no] {
                    let options = [upper.clone(), Value::Bool(left), no.clone()];
                    // One matrix for all of the stack.
                    let args = [&[tensor(&a.narrow(0, 1, 1).unwrap()), tensor(&b)][..], &options].concat();
                    compare("linalg_solve_triangular", &args, units);
                }
            }
            compare("linalg_inv", &[tensor(&a)], units);
            compare("_linalg_slogdet", &[tensor(&a)], units);
            compare("_cofactors", &[tensor(&a.div(n as f64).unwrap())], units);
            let adjoint = a.transpose(-2, -1).unwrap().conj().unwrap();
            let definite = a.matmul(&adjoint).unwrap();
            for upper in [&yes, &no] {
                compare("linalg_cholesky", &[tensor(&definite), upper.clone()], units);
            }
        }
        orthogonal(dtype);
    }
}

/// Factors by reflections and rotations; their vectors are as exact as values are apart.
fn orthogonal(dtype: DType) {
    let [yes, no] = [true, false].map(Value::Bool);
    for sizes in [[2, 20, 20], [1, 40, 9], [1, 9, 36], [3, 1, 4]] {
        let a = numbers(&sizes, dtype);
        for mode in ["reduced", "complete"] {
            compare("linalg_qr", &[tensor(&a), Value::Str(mode.into())], 1e5);
        }
        compare("_linalg_svd", &[tensor(&a), no.clone(), yes.clone(), Value::None], 1e6);
        compare("_linalg_svd", &[tensor(&a), no.clone(), no.clone(), Value::None], 1e3);
    }
    for n in [1, 8, 40] {
        let a = numbers(&[2, n, n], dtype);
        for triangle in ["L", "U"] {
            compare("_linalg_eigh", &[tensor(&a), Value::Str(triangle.into()), yes.clone()], 1e6);
        }
        compare("_linalg_eigh", &[tensor(&a), Value::Str("L".into()), no.clone()], 1e3);
    }
    // Half of the singular values are 0.
    let low = numbers(&[12, 6], dtype).matmul(&numbers(&[6, 12], dtype)).unwrap();
    compare("linalg_svdvals", &[tensor(&low), Value::None], 1e3);
    compare("linalg_pinv", &[tensor(&low), Value::Float(1e-3), no], 1e5);
}

/// Lengths of each radix, of several, of one pass in shared memory and of several in working memory, and with large factors.
const LENGTHS: [i64; 22] =
    [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 60, 77, 105, 343, 509, 521, 1000, 1024, 1025, 2048, 3000, 5145];

fn transforms() {
    let dims = |dims: &[i64]| Value::Ints(dims.to_vec());
    for length in LENGTHS {
        for forward in [true, false] {
            let x = numbers(&[3, length, 2], DType::C128).transpose(0, 2).unwrap();
            compare("_fft_c2c", &[tensor(&x), dims(&[1]), Value::Int(1), Value::Bool(forward)], 64.0);
        }
        let real = numbers(&[5, length], DType::F64);
        compare("_fft_r2c", &[tensor(&real), dims(&[1]), Value::Int(0), Value::Bool(true)], 64.0);
        let half = numbers(&[2, length / 2 + 1], DType::C128);
        compare("_fft_c2r", &[tensor(&half), dims(&[-1]), Value::Int(2), Value::Int(length)], 64.0);
        let single = numbers(&[length, 4], DType::C64);
        compare("_fft_c2c", &[tensor(&single), dims(&[0]), Value::Int(0), Value::Bool(true)], 1.0);
    }
    let x = numbers(&[6, 1030, 5], DType::C128);
    for some in [&[0, 1, 2][..], &[2, 0], &[1, 0], &[]] {
        compare("_fft_c2c", &[tensor(&x), dims(some), Value::Int(2), Value::Bool(true)], 64.0);
    }
    let real = numbers(&[7, 12, 9], DType::F32);
    for onesided in [true, false] {
        compare("_fft_r2c", &[tensor(&real), dims(&[2, 0, 1]), Value::Int(1), Value::Bool(onesided)], 1.0);
    }
    let half = numbers(&[7, 12, 9], DType::C64);
    compare("_fft_c2r", &[tensor(&half), dims(&[1, 0, 2]), Value::Int(2), Value::Int(14)], 1.0);
}

fn layers() {
    for dtype in REALS {
        for (name, gates) in
            [("lstm.input", 4), ("gru.input", 3), ("rnn_tanh.input", 1), ("rnn_relu.input", 1)]
        {
            let (steps, batch, inputs, units) = (6, 5, 7, 70);
            let small = |sizes: &[i64]| numbers(sizes, dtype).mul(0.2).unwrap();
            let params: Vec<Tensor> = (0..2)
                .flat_map(|_| {
                    let rows = gates * units;
                    [small(&[rows, inputs]), small(&[rows, units]), small(&[rows]), small(&[rows])]
                })
                .collect();
            let state = numbers(&[2, batch, units], dtype);
            let first = match gates {
                4 => Value::Tensors(vec![state.clone(), state]),
                _ => Value::Tensor(state),
            };
            let options = [
                Value::Bool(true),
                Value::Int(1),
                Value::Float(0.0),
                Value::Bool(true),
                Value::Bool(true),
                Value::Bool(false),
            ];
            let input = numbers(&[steps, batch, inputs], dtype);
            let args = [&[tensor(&input), first, Value::Tensors(params)][..], &options].concat();
            compare(name, &args, 64.0);
        }
    }
}

fn paths() {
    for dtype in REALS {
        let scores = numbers(&[90, 3, 300], dtype).mul(3.0).unwrap();
        let log_probs = scores.log_softmax(2).unwrap();
        let labels: Vec<i64> = (0..3 * 40).map(|at| (at * 7 % 11) % 300).collect();
        let targets = Tensor::from_slice(&labels, &[3, 40]).unwrap();
        let lengths = [Value::Ints(vec![90, 85, 10]), Value::Ints(vec![40, 0, 33])];
        let args =
            [&[tensor(&log_probs), tensor(&targets)][..], &lengths, &[Value::Int(0), Value::Bool(false)]]
                .concat();
        compare("_ctc_loss", &args, 16.0);
        let results = call(op("_ctc_loss"), &args).unwrap();
        for zero_infinity in [true, false] {
            let back = [
                &[tensor(&numbers(&[3], dtype)), tensor(&log_probs), tensor(&targets)][..],
                &lengths,
                &[tensor(&results[0]), tensor(&results[1]), Value::Int(0), Value::Bool(zero_infinity)],
            ]
            .concat();
            compare("_ctc_loss_backward", &back, 512.0);
        }
    }
}

/// Frequent elements, sums of weights by numbers, gradients of running products, and elements rolled in row-major order.
fn often() {
    let rounded = |sizes: &[i64], scale: f64| numbers(sizes, DType::F64).mul(scale).unwrap().round().unwrap();
    for dtype in [DType::F32, DType::I64, DType::BF16] {
        let x = rounded(&[3, 3000], 20.0).to_dtype(dtype).unwrap();
        for (x, dim) in [(&x, 1), (&x.t().unwrap(), 0), (&x, 0)] {
            compare("mode", &[tensor(x), Value::Int(dim), Value::Bool(false)], 0.0);
        }
    }
    let counted = rounded(&[4000], 30.0).abs().unwrap().to_dtype(DType::I64).unwrap();
    let weights = numbers(&[4000], DType::F64);
    compare("bincount", &[tensor(&counted), tensor(&weights), Value::Int(40)], 0.0);
    // Zeros in the first line: one, and in the second: several.
    let factors = numbers(&[3, 1500], DType::F64).add(2.0).unwrap().mul(0.5).unwrap();
    let kept: Vec<f64> = (0..4500).map(|at| f64::from(!matches!(at, 700 | 1600 | 2900))).collect();
    let factors = factors.mul(&Tensor::from_slice(&kept, &[3, 1500]).unwrap()).unwrap();
    let grad = numbers(&[3, 1500], DType::F64);
    for dim in [0, 1] {
        compare("cumprod_backward", &[tensor(&grad), tensor(&factors), Value::Int(dim)], 1e4);
    }
    let x = numbers(&[50, 40], DType::F32);
    for x in [&x, &x.t().unwrap()] {
        compare("roll", &[tensor(x), Value::Ints(vec![77]), Value::Ints(vec![])], 0.0);
    }
}
