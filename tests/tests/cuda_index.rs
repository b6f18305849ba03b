//! Operators whose kernels take several passes on CUDA devices, for more elements than a block has: orders, indices, masks, random
//! numbers. The stand-ins of driver and compiler run them (`tests/cuda`), in a process of its own; every bit is the host's.

use std::path::Path;

use opsmith::runtime::random::manual_seed;
use opsmith::{DType, Device, Tensor, TensorOps, Value, call};
use opsmith_stand_in::process::{self, StandIns};

const DEVICE: Device = Device::cuda(0);

#[test]
fn kernels_of_several_passes_give_the_bits_of_the_host() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-index");
    StandIns::new(folder, "off").done("all", &[]);
}

/// The process started by the test above.
#[test]
fn worker() {
    process::work(&[("all", all)]);
}

fn all() {
    orders();
    targets();
    places();
    masks();
    random_numbers();
    wrong_indices();
}

/// Numbers that repeat, in no order.
fn scattered(count: usize, distinct: u64) -> Vec<i64> {
    let mut state = 7u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % distinct) as i64
    };
    (0..count).map(next).collect()
}

fn integers(shape: &[i64], distinct: u64) -> Tensor {
    Tensor::from_slice(&scattered(shape.iter().product::<i64>() as usize, distinct), shape).unwrap()
}

fn floats(shape: &[i64], dtype: DType) -> Tensor {
    let numbers = integers(shape, 3000).to_dtype(DType::F64).unwrap();
    numbers.div(7.0).unwrap().sub(200.0).unwrap().to_dtype(dtype).unwrap()
}

fn moved(value: &Value) -> Value {
    match value {
        Value::Tensor(tensor) => Value::Tensor(tensor.to_device(DEVICE).unwrap()),
        Value::OptionalTensors(tensors) => {
            let there =
                |tensor: &Option<Tensor>| tensor.as_ref().map(|tensor| tensor.to_device(DEVICE).unwrap());
            Value::OptionalTensors(tensors.iter().map(there).collect())
        }
        other => other.clone(),
    }
}

/// Shape, dtype and numbers of a tensor.
type Bits = (Vec<i64>, DType, Vec<u64>);

fn bits(results: &[Value]) -> Vec<Bits> {
    let of = |result: &Value| {
        let Value::Tensor(tensor) = result else { panic!("{result:?} is no tensor") };
        let host = tensor.to_device(Device::CPU).unwrap();
        let numbers = host.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        (host.shape().to_vec(), host.dtype(), numbers.into_iter().map(f64::to_bits).collect())
    };
    results.iter().map(of).collect()
}

/// Calls an operator on the host and on the device.
#[track_caller]
fn same(name: &str, args: &[Value], named: &[(&str, Value)]) {
    manual_seed(5);
    let expected = call(name, args, named).unwrap();
    manual_seed(5);
    let args: Vec<Value> = args.iter().map(moved).collect();
    let named: Vec<(&str, Value)> = named.iter().map(|(name, value)| (*name, moved(value))).collect();
    let found = call(name, &args, &named).unwrap();
    let pairs = bits(&expected).into_iter().zip(bits(&found));
    for (number, (expected, found)) in pairs.enumerate() {
        assert_eq!((&found.0, found.1), (&expected.0, expected.1), "{name}, result {number}");
        let wrong = expected.2.iter().zip(&found.2).position(|(expected, found)| expected != found);
        assert_eq!(wrong, None, "{name}, result {number}");
    }
}

fn tensor(tensor: &Tensor) -> Value {
    Value::Tensor(tensor.clone())
}

fn orders() {
    for x in [
        integers(&[3, 5000], 50),
        floats(&[3, 5000], DType::F32),
        floats(&[5000, 3], DType::F16).t().unwrap(),
        integers(&[2, 40], 2).to_dtype(DType::Bool).unwrap(),
    ] {
        for descending in [false, true] {
            same("sort", &[tensor(&x), Value::Int(-1), Value::Bool(descending)], &[]);
        }
        same("sort", &[tensor(&x), Value::Int(0), Value::Bool(false)], &[]);
    }
    // Long lines, in digits of 8 bits: one, two, three, four and eight, with a block that is not full, NaN and both zeros.
    let roots = floats(&[2, 131_100], DType::F32).sqrt().unwrap();
    for (x, descending) in [
        (integers(&[270_000], 200).to_dtype(DType::U8).unwrap(), false),
        (floats(&[270_000], DType::BF16), true),
        (floats(&[270_000], DType::F16), false),
        (roots.mul(&integers(&[131_100], 3)).unwrap(), true),
        (integers(&[2, 131_100], 1 << 31).mul(&integers(&[131_100], 1 << 31)).unwrap().neg().unwrap(), false),
        (roots.to_dtype(DType::F64).unwrap(), true),
    ] {
        same("sort", &[tensor(&x), Value::Int(-1), Value::Bool(descending)], &[]);
    }
    let x = floats(&[2, 6000], DType::F64);
    for (k, largest) in [(1, true), (7, false), (512, true), (700, true), (6000, false)] {
        same("topk", &[tensor(&x), Value::Int(k), Value::Int(1), Value::Bool(largest)], &[]);
    }
    same(
        "_unique2",
        &[tensor(&floats(&[50, 60], DType::F32)), Value::Bool(true), Value::Bool(true), Value::Bool(true)],
        &[],
    );
    let many =
        [tensor(&floats(&[600, 450], DType::F32)), Value::Bool(true), Value::Bool(true), Value::Bool(true)];
    same("_unique2", &many, &[]);
}

fn targets() {
    let (index, many) = (integers(&[4000], 50), integers(&[4000, 3], 20));
    for dtype in [DType::I64, DType::F32, DType::F64] {
        let (start, source) = (floats(&[50], dtype), floats(&[4000], dtype));
        for name in ["scatter_add", "scatter.src"] {
            same(name, &[tensor(&start), Value::Int(0), tensor(&index), tensor(&source)], &[]);
        }
        for reduce in ["mean", "amax", "amin", "prod"] {
            let args =
                [tensor(&start), Value::Int(0), tensor(&index), tensor(&source), Value::Str(reduce.into())];
            same("scatter_reduce.two", &args, &[("include_self", Value::Bool(false))]);
        }
        let (wide, rows) = (floats(&[50, 7], dtype), floats(&[4000, 7], dtype));
        same("index_add", &[tensor(&wide), Value::Int(0), tensor(&index), tensor(&rows)], &[]);
        let (table, columns) = (floats(&[20, 3], dtype), floats(&[4000, 3], dtype));
        same("scatter_add", &[tensor(&table), Value::Int(0), tensor(&many), tensor(&columns)], &[]);
        if dtype != DType::I64 {
            for by_frequency in [false, true] {
                let args =
                    [tensor(&rows), tensor(&index), Value::Int(50), Value::Int(3), Value::Bool(by_frequency)];
                same("embedding_dense_backward", &args, &[]);
            }
        }
    }
}

fn places() {
    let (x, index) = (floats(&[60, 9, 5], DType::F32), integers(&[7, 300], 60));
    same("index_select", &[tensor(&x), Value::Int(0), tensor(&index.select(0, 0).unwrap())], &[]);
    same("embedding", &[tensor(&x.select(1, 2).unwrap()), tensor(&index)], &[]);
    let narrow = index.to_dtype(DType::I32).unwrap();
    let negative = integers(&[300], 9).sub(9).unwrap();
    let lists = |indices: Vec<Option<Tensor>>| Value::OptionalTensors(indices);
    same(
        "index.Tensor",
        &[tensor(&x), lists(vec![Some(narrow.clone()), None, Some(integers(&[300], 5))])],
        &[],
    );
    same(
        "index.Tensor",
        &[tensor(&x), lists(vec![None, Some(negative.clone()), Some(integers(&[7, 1], 5))])],
        &[],
    );
    let mask = integers(&[60, 9], 2).to_dtype(DType::Bool).unwrap();
    same("index.Tensor", &[tensor(&x), lists(vec![Some(mask.clone())])], &[]);
    for accumulate in [false, true] {
        let args = [tensor(&x), lists(vec![Some(index.clone()), Some(negative.clone())])];
        let values = floats(&[300, 5], DType::F32);
        same("index_put", &[&args[..], &[tensor(&values), Value::Bool(accumulate)]].concat(), &[]);
        let args = [tensor(&x), lists(vec![Some(mask.clone())]), tensor(&floats(&[5], DType::F32))];
        same("index_put", &[&args[..], &[Value::Bool(accumulate)]].concat(), &[]);
    }
    let sequence = floats(&[3000], DType::F64).sort().unwrap().0;
    same(
        "_searchsorted",
        &[tensor(&sequence), tensor(&floats(&[70, 30], DType::F64)), Value::Bool(true)],
        &[],
    );
}

fn masks() {
    let (x, mask) = (floats(&[70, 80], DType::F32), integers(&[70, 80], 3).to_dtype(DType::Bool).unwrap());
    let (turned, other) = (x.t().unwrap(), integers(&[80, 70], 2).to_dtype(DType::Bool).unwrap());
    same("nonzero", &[tensor(&mask)], &[]);
    same("nonzero", &[tensor(&integers(&[11, 13, 17], 2).to_dtype(DType::F16).unwrap())], &[]);
    same("masked_select", &[tensor(&x), tensor(&mask)], &[]);
    same("masked_select", &[tensor(&turned), tensor(&other)], &[]);
    same("masked_scatter", &[tensor(&turned), tensor(&other), tensor(&x)], &[]);
    let sizes = Value::Ints(vec![6000]);
    same("masked_scatter_backward", &[tensor(&x), tensor(&mask), sizes], &[]);
}

fn random_numbers() {
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        let x = floats(&[5001], dtype);
        same("uniform", &[tensor(&x), Value::Float(-2.0), Value::Float(3.0)], &[]);
        same("bernoulli.p", &[tensor(&x), Value::Float(0.3)], &[]);
        if dtype != DType::F64 {
            same("normal_functional", &[tensor(&x), Value::Float(1.0), Value::Float(3.0)], &[]);
        }
        same("native_dropout", &[tensor(&x), Value::Float(0.3), Value::Bool(true)], &[]);
    }
    let shape = Value::Ints(vec![77, 33]);
    let there = |device: Device| -> Vec<Bits> {
        manual_seed(3);
        let place = [("generator", Value::None), ("device", Value::Device(device))];
        let numbers = [Value::Int(-5), Value::Int(1 << 40), shape.clone()];
        let mut all = bits(&call("randint.low_generator", &numbers, &place).unwrap());
        all.extend(bits(&call("randperm.generator", &[Value::Int(3000)], &place).unwrap()));
        all
    };
    assert!(there(DEVICE) == there(Device::CPU));
    let wrong = Tensor::of(&[0.5f32, 2.0, 0.1]).to_device(DEVICE).unwrap();
    let error = call("bernoulli", &[tensor(&wrong)], &[]).unwrap_err().to_string();
    assert!(error.contains("2 is not a probability"), "{error}");
}

/// An index out of range is the error of the next wait.
fn wrong_indices() {
    let (x, index) = (floats(&[20], DType::F32), Tensor::of(&[3i64, 20]));
    let args = [x, index].map(|tensor| tensor.to_device(DEVICE).unwrap());
    let picked = args[0].index_select(0, &args[1]);
    let error = picked.and_then(|picked| picked.to_vec::<f32>()).unwrap_err().to_string();
    assert!(error.contains("out of range"), "{error}");
    assert_eq!(args[0].numel(), 20);
}
