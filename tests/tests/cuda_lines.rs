//! Reductions, running results, order statistics and normalisation of long lines on the stand-ins for CUDA, against the host.
//!
//! Samples of operators are small; here lines need several warps, blocks and digits. The work is done in a process of its own,
//! as in `cuda.rs`.

use std::path::Path;

use opsmith::runtime::op::OpDef;
use opsmith::{DType, Device, LIBRARY, Tensor, TensorOps, Value};
use opsmith_stand_in::process::{self, StandIns};
use opsmith_testing::calls::call;

const DEVICE: Device = Device::cuda(0);

#[test]
fn long_lines_agree_with_the_host() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-lines");
    StandIns::new(folder, "off").done("all", &[]);
}

/// The process started by the test above.
#[test]
fn worker() {
    process::work(&[("all", all)]);
}

fn all() {
    reductions();
    running();
    order();
    normalisation();
}

/// Sizes with lines along the first and the last dimension, short and long.
const SHAPES: [&[i64]; 4] = [&[3, 3000], &[1500, 4], &[30, 9, 130], &[2, 17_000]];

/// Numbers from -1 to 1, of which many are equal if `step` is large.
fn numbers(sizes: &[i64], dtype: DType, step: f64) -> Tensor {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        (number / step).round() * step
    };
    let values: Vec<f64> = (0..sizes.iter().product::<i64>()).map(|_| next()).collect();
    Tensor::from_slice(&values, sizes).unwrap().to_dtype(dtype).unwrap()
}

/// The numbers in another way.
fn mapped(tensor: &Tensor, dtype: DType, map: impl Fn(f64) -> f64) -> Tensor {
    let values = tensor.to_dtype(DType::F64).unwrap().contiguous().unwrap().to_vec::<f64>().unwrap();
    let values: Vec<f64> = values.into_iter().map(map).collect();
    Tensor::from_slice(&values, tensor.shape()).unwrap().to_dtype(dtype).unwrap()
}

fn op(name: &str) -> &'static OpDef {
    LIBRARY.ops.iter().find(|op| op.name == name).unwrap()
}

/// Calls an operator on the host and on the device. Floats may differ by `units` in the last place of the largest one.
#[track_caller]
fn compare(name: &str, args: &[Value], units: f64) {
    let moved: Vec<Value> = args
        .iter()
        .map(|arg| match arg {
            Value::Tensor(tensor) => Value::Tensor(tensor.to_device(DEVICE).unwrap()),
            other => other.clone(),
        })
        .collect();
    let expected = call(op(name), args).unwrap();
    let found = call(op(name), &moved).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{name}");
        let unit = match expected.dtype() {
            DType::F64 => f64::EPSILON,
            DType::F32 => f64::from(f32::EPSILON),
            DType::BF16 => 2f64.powi(-7),
            _ => 0.0,
        };
        let values = |tensor: &Tensor| {
            let host = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
            host.contiguous().unwrap().to_vec::<f64>().unwrap()
        };
        let (found, expected) = (values(found), values(expected));
        let largest = expected.iter().filter(|x| x.is_finite()).fold(0.0, |most: f64, x| most.max(x.abs()));
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let same = found == expected || found.is_nan() && expected.is_nan();
            let near = (found - expected).abs() <= units * unit * largest;
            assert!(
                same || near,
                "{name}, result {number} of {args:?}, element {index}: {found} in place of {expected}"
            );
        }
    }
}

fn tensor(tensor: &Tensor) -> Value {
    Value::Tensor(tensor.clone())
}

/// Inputs of all shapes and a transposed one, with each of their dimensions.
fn each_line(dtype: DType, step: f64, mut body: impl FnMut(&Tensor, i64)) {
    let mut inputs: Vec<Tensor> = SHAPES.iter().map(|sizes| numbers(sizes, dtype, step)).collect();
    inputs.push(numbers(&[300, 40], dtype, step).t().unwrap());
    for input in inputs {
        for dim in 0..input.dim() as i64 {
            body(&input, dim);
        }
    }
}

fn reductions() {
    for dtype in [DType::F32, DType::BF16, DType::I64] {
        each_line(dtype, 1e-3, |x, dim| {
            let no = Value::Bool(false);
            compare("sum.dim_IntList", &[tensor(x), Value::Ints(vec![dim]), no.clone(), Value::None], 16.0);
            compare("max.dim", &[tensor(x), Value::Int(dim), no.clone()], 0.0);
            compare("argmin", &[tensor(x), Value::None, no.clone()], 0.0);
            if dtype != DType::I64 {
                let dims = Value::Ints(vec![dim]);
                compare("var.correction", &[tensor(x), dims, Value::None, no], 4.0);
            }
        });
    }
    compare(
        "sum_to_size",
        &[tensor(&numbers(&[40, 30, 50], DType::F32, 1e-3)), Value::Ints(vec![30, 1])],
        16.0,
    );
}

fn running() {
    for dtype in [DType::F32, DType::F64, DType::I64] {
        // Kept in double precision, in which the host's errors grow with each of thousands of steps.
        let units = if dtype == DType::F64 { 512.0 } else { 1.0 };
        each_line(dtype, 0.01, |x, dim| {
            compare("cumsum", &[tensor(x), Value::Int(dim), Value::None], units);
            compare("cummax", &[tensor(x), Value::Int(dim)], 0.0);
            compare("cummin", &[tensor(x), Value::Int(dim)], 0.0);
            if dtype != DType::I64 {
                let near_one = mapped(x, dtype, |x| 1.0 + x / 1000.0);
                compare("cumprod", &[tensor(&near_one), Value::Int(dim), Value::None], units);
                compare("logcumsumexp", &[tensor(x), Value::Int(dim)], units);
            }
        });
    }
    let x = numbers(&[3, 80], DType::F64, 0.01);
    compare("cumprod_backward", &[tensor(&x), tensor(&x), Value::Int(1)], 16.0);
}

fn order() {
    let no = Value::Bool(false);
    for (dtype, scale, step) in [(DType::F32, 1.0, 1e-9), (DType::F64, 1.0, 0.1), (DType::I64, 1000.0, 1e-3)]
    {
        for sizes in [[3, 700], [300, 2]] {
            let x = mapped(&numbers(&sizes, DType::F64, step), dtype, |x| x * scale);
            compare("median", &[tensor(&x)], 0.0);
            for dim in [0, 1] {
                compare("median.dim", &[tensor(&x), Value::Int(dim), no.clone()], 0.0);
                let third = Value::Int(sizes[dim as usize] / 3 + 1);
                compare("kthvalue", &[tensor(&x), third, Value::Int(dim), no.clone()], 0.0);
                compare("mode", &[tensor(&x), Value::Int(dim), no.clone()], 0.0);
            }
        }
    }
    let x = numbers(&[7, 130], DType::F64, 1e-9);
    let with_nan = x.sqrt().unwrap();
    for dim in [0, 1] {
        let args = [tensor(&with_nan), Value::Int(dim), Value::Bool(false)];
        compare("median.dim", &args, 0.0);
        compare("nanmedian.dim", &args, 0.0);
        compare("mode", &args, 0.0);
    }
    let range = |low: f64, high: f64| [low, high].map(|end| Value::Scalar(end.into()));
    for [low, high] in [range(0.0, 0.0), range(-0.5, 0.25)] {
        compare("histc", &[tensor(&x), Value::Int(37), low, high], 0.0);
    }
    let places = mapped(&numbers(&[2000], DType::F64, 1e-3), DType::I64, |x| x.abs() * 90.0);
    let weights = numbers(&[2000], DType::F32, 1e-6);
    compare("bincount", &[tensor(&places), Value::None, Value::Int(0)], 0.0);
    compare("bincount", &[tensor(&places), tensor(&weights), Value::Int(200)], 0.0);
}

fn normalisation() {
    each_line(DType::F32, 1e-6, |x, dim| {
        compare("_softmax", &[tensor(x), Value::Int(dim), Value::Bool(false)], 16.0);
        let dtype = Value::DType(DType::F32);
        compare("_log_softmax_backward_data", &[tensor(x), tensor(x), Value::Int(dim), dtype], 64.0);
    });
    for [samples, channels, places] in [[3, 8, 700], [200, 8, 1], [1, 64, 33], [40, 4, 5]] {
        let sizes = [samples, channels, places];
        let x = numbers(&sizes, DType::F32, 1e-6);
        let dy = mapped(&x, DType::F32, |x| (x * 7919.0).fract());
        let [w, b] = [1e-3, 1e-4].map(|step| tensor(&numbers(&[channels], DType::F32, step)));
        let var = tensor(&numbers(&[channels], DType::F32, 1e-3).abs().unwrap());
        let (eps, all) = (Value::Float(1e-5), Value::Bools(vec![true; 3]));
        for training in [true, false] {
            let mode = Value::Bool(training);
            let args = [tensor(&x), w.clone(), b.clone(), b.clone(), var.clone(), mode.clone()];
            let more = [Value::Float(0.1), eps.clone()];
            compare("_native_batch_norm_legit_functional", &[&args[..], &more].concat(), 32.0);
            let args = [tensor(&dy), tensor(&x), w.clone(), b.clone(), var.clone(), Value::None, Value::None];
            compare(
                "native_batch_norm_backward",
                &[&args[..], &[mode, eps.clone(), all.clone()]].concat(),
                64.0,
            );
        }
        let counts = [samples, channels, places, 2].map(Value::Int);
        let args = [&[tensor(&x), w.clone(), b.clone()][..], &counts, &[eps]].concat();
        compare("native_group_norm", &args, 32.0);
        let statistics = [1e-3, 1e-4].map(|step| tensor(&numbers(&[samples, 2], DType::F32, step)));
        let args = [&[tensor(&dy), tensor(&x)][..], &statistics, &[w], &counts, &[all]].concat();
        compare("native_group_norm_backward", &args, 64.0);
    }
    let x = numbers(&[100, 300], DType::F32, 1e-6);
    let dy = mapped(&x, DType::F32, |x| (x * 7919.0).fract());
    let w = tensor(&numbers(&[300], DType::F32, 1e-3));
    let shape = Value::Ints(vec![300]);
    let args = [tensor(&dy), tensor(&x), shape.clone(), w.clone(), Value::None, Value::Bools(vec![true; 2])];
    compare("_rms_norm_backward", &args, 64.0);
    let args = [tensor(&x), shape, w.clone(), w, Value::Float(1e-5)];
    compare("native_layer_norm", &args, 32.0);
    let scores = mapped(&numbers(&[50, 30, 40], DType::F32, 1e-6), DType::F32, |x| -x.abs());
    let classes = mapped(&numbers(&[50, 40], DType::F64, 1e-3), DType::I64, |x| x.abs() * 29.0);
    let weight = tensor(&numbers(&[30], DType::F32, 1e-3).abs().unwrap());
    for reduction in 0..3 {
        let numbers = [Value::Int(reduction), Value::Int(3)];
        let args = [&[tensor(&scores), tensor(&classes), weight.clone()][..], &numbers].concat();
        // The host adds one after the other.
        compare("nll_loss_forward", &args, 64.0);
    }
}
