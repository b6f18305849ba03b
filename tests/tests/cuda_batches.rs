//! Element-wise calls in batches on the stand-ins for CUDA: the bits of separate launches, fewer launches, steps of optimizers.
//!
//! Each part is done in a process of its own, as in `cuda.rs`; the driver's stand-in prints the number of launches at its end.

use std::path::Path;
use std::sync::LazyLock;

use opsmith::runtime::in_batches;
use opsmith::{DType, Device, Error, Generator, Result, Tensor, TensorOps};
use opsmith_graph::Graph;
use opsmith_nn::optim::{
    AdagradConfig, Adam, AdamConfig, AdamWConfig, Optimizer, RmsPropConfig, SgdConfig, UpdateRule,
};
use opsmith_stand_in::process::{self, Part, StandIns};

const DEVICE: Device = Device::cuda(0);

const PARTS: &[Part] = &[
    ("random", random),
    ("optimizers", optimizers),
    ("short", || steps(2)),
    ("long", || steps(12)),
    ("lists", lists),
    ("errors", errors),
    ("graphs", graphs),
];

#[test]
fn worker() {
    process::work(PARTS);
}

/// The output of a part, which succeeds without a request that the driver refuses.
#[track_caller]
fn done(part: &str) -> String {
    static STAND_INS: LazyLock<StandIns> =
        LazyLock::new(|| StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-batches"), "off"));
    STAND_INS.done_strictly(part, &[])
}

fn launches(text: &str) -> Option<i64> {
    process::counted(text, "launches")
}

fn numbers(shape: &[i64], seed: u64) -> Tensor {
    let numbers = opsmith::rand_generator(shape, Some(&Generator::new(seed))).unwrap().sub(0.5).unwrap();
    numbers.to_device(DEVICE).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u64> {
    let here = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
    here.contiguous().unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

#[test]
fn batches_give_the_bits_of_separate_calls() {
    done("random");
}

/// Programs of random calls over tensors of several sizes, with parts, rows, casts, calls in place, reductions and reads between.
fn random() {
    for seed in 1..20u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let choices: Vec<[usize; 4]> = (0..40).map(|_| [next(14), next(64), next(64), next(4)]).collect();
        let shapes = [[4, 6], [3, 6], [4, 1], [40, 33]];
        let program = || -> Result<Vec<Vec<u64>>> {
            let mut pools: Vec<Vec<Tensor>> =
                shapes.iter().map(|shape| vec![numbers(shape, seed), numbers(shape, seed + 1)]).collect();
            let mut read = 0.0;
            for [kind, one, other, pool] in &choices {
                let column = pools[2][other % pools[2].len()].clone();
                let pool = &mut pools[*pool];
                let (a, b) = (pool[one % pool.len()].clone(), pool[other % pool.len()].clone());
                match kind {
                    0 => pool.push(a.add(&b)?.tanh()?),
                    1 => pool.push(a.mul(0.75)?.sub(&b)?),
                    2 => a.mul_(0.5)?,
                    3 => a.add_(&b.sin()?)?,
                    4 if a.shape() == [4, 6] => pool.push(a.mul(&column)?),
                    4 => pool.push(a.clamp_with(opsmith::ClampOptions::new().min(-0.25))?),
                    5 => pool.push(a.where_(&a.gt(&b)?, &b)?),
                    6 if one % 2 == 0 => a.narrow(0, 0, 1)?.mul_(&a.narrow(0, 2, 1)?)?,
                    6 => a.narrow(0, 1, 2)?.mul_(1.5)?,
                    7 => pool.push(a.to_dtype(DType::F16)?.add(0.1)?.to_dtype(DType::F32)?),
                    8 => pool.push(a.sub(&b.sum()?)?),
                    9 => read += a.mul(&b)?.sum()?.item()?.to_f64(),
                    10 => drop(pool.swap_remove(one % pool.len()).exp()?),
                    11 => pool.push(a.t()?.neg()?.t()?.abs()?),
                    12 => b.copy_(&a.mul(2.0)?)?,
                    _ => pool.push(a.deep_clone()?.square()?),
                }
                if pool.is_empty() {
                    pool.push(a);
                }
            }
            let rest = pools.iter().flatten().map(bits);
            Ok(std::iter::once(vec![read.to_bits()]).chain(rest).collect())
        };
        let expected = program().unwrap();
        assert!(in_batches(program).unwrap() == expected, "program {seed}");
        // Calls that are held back at the end have their results afterwards.
        let (x, y) = (numbers(&[50], seed), numbers(&[50], seed + 1));
        let later = in_batches(|| x.mul(&y)?.add(&x)?.sqrt()).unwrap();
        assert_eq!(bits(&later), bits(&x.mul(&y).unwrap().add(&x).unwrap().sqrt().unwrap()));
    }
}

#[test]
fn optimizers_update_lists_with_the_bits_of_single_updates() {
    done("optimizers");
}

/// The values after some steps of parameters of many shapes, on a device.
fn trained<R: UpdateRule>(rule: &R, device: Device) -> Vec<Vec<u64>> {
    let shapes: Vec<Vec<i64>> = (0..70).map(|number| vec![1 + number % 7, 3 + number * 5 % 41]).collect();
    let parameters: Vec<Tensor> = shapes
        .iter()
        .zip(1..)
        .map(|(shape, seed)| numbers(shape, seed).to_device(device).unwrap().requires_grad_(true).unwrap())
        .collect();
    let mut optimizer = Optimizer::new(parameters.iter().cloned(), rule.clone()).unwrap();
    for step in 0..3 {
        optimizer.zero_grad();
        let losses: Vec<Tensor> = parameters
            .iter()
            .enumerate()
            // Some have no gradient at some steps.
            .filter(|(number, _)| (number + step) % 9 != 0)
            .map(|(number, parameter)| {
                parameter.sub(number as f64 * 0.01).unwrap().square().unwrap().sum().unwrap()
            })
            .collect();
        losses.iter().for_each(|loss| loss.backward().unwrap());
        optimizer.step().unwrap();
    }
    parameters.iter().map(|parameter| bits(&parameter.detach())).collect()
}

fn optimizers() {
    /// Elements are computed alone, by operations that round as on the host.
    fn agrees<R: UpdateRule>(name: &str, rule: R) {
        assert!(trained(&rule, DEVICE) == trained(&rule, Device::CPU), "{name}");
    }
    agrees("sgd", SgdConfig::new().learning_rate(0.1));
    agrees("momentum", SgdConfig::new().learning_rate(0.1).momentum(0.9).weight_decay(0.01));
    agrees("nesterov", SgdConfig::new().learning_rate(0.1).momentum(0.9).nesterov(true));
    agrees("adam", AdamConfig::new().learning_rate(0.01));
    agrees("amsgrad", AdamConfig::new().learning_rate(0.01).amsgrad(true).weight_decay(0.1));
    agrees("adamw", AdamWConfig::new().learning_rate(0.01));
    agrees("rms_prop", RmsPropConfig::new().learning_rate(0.01));
    agrees("adagrad", AdagradConfig::new().learning_rate(0.01));
}

#[test]
fn a_step_of_many_parameters_is_few_launches() {
    let (short, long) = (done("short"), done("long"));
    let Some((short, long)) = launches(&short).zip(launches(&long)) else { return };
    // Ten steps of 60 parameters: 3 launches a step, in place of 9 for each parameter.
    assert!(long - short <= 30, "{short} and {long} launches");
}

fn steps(count: usize) {
    let parameters: Vec<Tensor> = (0..60)
        .map(|number| numbers(&[2 + number % 5, 7 + number], 1).requires_grad_(true).unwrap())
        .collect();
    let mut optimizer = Adam::new(parameters.iter().cloned(), AdamConfig::new()).unwrap();
    for parameter in &parameters {
        parameter.square().unwrap().sum().unwrap().backward().unwrap();
    }
    for _ in 0..count {
        optimizer.step().unwrap();
    }
}

#[test]
fn lists_of_tensors_are_few_launches() {
    let text = done("lists");
    assert!(launches(&text).is_none_or(|launches| launches <= 200), "{text}");
}

/// Operators over lists, each of which is one for each tensor.
fn lists() {
    let inputs: Vec<Tensor> = (1..100).map(|size| numbers(&[size], size as u64)).collect();
    let host: Vec<Tensor> = inputs.iter().map(|input| input.to_device(Device::CPU).unwrap()).collect();
    let function = |list: &[Tensor]| {
        let scaled = list.iter().map(|x| x.mul(1.5)).collect::<Result<Vec<Tensor>>>()?;
        scaled.iter().zip(list).map(|(y, x)| y.sub(x)?.abs()).collect::<Result<Vec<Tensor>>>()
    };
    for _ in 0..20 {
        let found = in_batches(|| function(&inputs)).unwrap();
        assert_eq!(found.len(), 99);
    }
    let found = in_batches(|| function(&inputs)).unwrap();
    let expected = function(&host).unwrap();
    assert!(found.iter().zip(&expected).all(|(found, expected)| bits(found) == bits(expected)));
}

#[test]
fn graphs_run_inside_batches() {
    done("graphs");
}

/// A graph's own calls are not held back, and come after those before it.
fn graphs() {
    let function = |x: &[Tensor]| Ok(vec![x[0].mul(2.0)?.matmul(&x[0])?.add(1.0)?]);
    let x = numbers(&[6, 6], 1);
    let graph = Graph::trace(function, std::slice::from_ref(&x)).unwrap();
    for _ in 0..4 {
        let found = in_batches(|| {
            x.add_(0.25)?;
            let y = graph.run(std::slice::from_ref(&x))?.remove(0);
            y.mul_(0.5)?;
            let z = graph.run(&[y.tanh()?])?.remove(0);
            z.sub(&y)
        });
        let y = function(std::slice::from_ref(&x)).unwrap().remove(0).mul(0.5).unwrap();
        let z = function(&[y.tanh().unwrap()]).unwrap().remove(0);
        assert_eq!(bits(&found.unwrap()), bits(&z.sub(&y).unwrap()));
    }
}

#[test]
fn errors_in_batches_are_errors() {
    done("errors");
}

fn errors() {
    let x = numbers(&[6], 1);
    // Calls before an error are submitted.
    let y = x.deep_clone().unwrap();
    let result: Result<()> = in_batches(|| {
        y.mul_(2.0)?;
        Err(Error::argument("given up"))
    });
    assert!(result.unwrap_err().to_string().contains("given up"));
    assert_eq!(bits(&y), bits(&x.mul(2.0).unwrap()));
    // An error of a call is one at the call; after a panic, nothing is held back any more.
    let error = in_batches(|| x.add(&numbers(&[5], 1))).unwrap_err().to_string();
    assert!(error.contains("add"), "{error}");
    let panicked = std::panic::catch_unwind(|| in_batches::<()>(|| panic!("for the test")));
    assert!(panicked.is_err());
    assert_eq!(bits(&x.mul(2.0).unwrap()), bits(&y));
    // A report of a kernel arrives at the next wait.
    let (a, b) =
        (Tensor::of(&[6, 7]).to_device(DEVICE).unwrap(), Tensor::of(&[3, 0]).to_device(DEVICE).unwrap());
    let quotient = in_batches(|| a.floor_divide(&b)?.add(1)).unwrap();
    let error = quotient.to_vec::<i32>().unwrap_err().to_string();
    assert!(error.contains("integer division by zero"), "{error}");
    // Batches inside batches are one.
    let inner = in_batches(|| in_batches(|| x.mul(2.0))?.add(0.0)).unwrap();
    assert_eq!(bits(&inner), bits(&y.add(0.0).unwrap()));
}
