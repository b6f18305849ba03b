//! Recorded and replayed runs.

use std::time::{Duration, Instant};

use opsmith::{DType, Device, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, Pass, Passes, Replays};

use super::{DEVICE, all_bits, bits, moved, numbers};

pub fn layers(x: &[Tensor]) -> Result<Vec<Tensor>> {
    let hidden = x[0].matmul(&x[1])?.add(&x[2])?.relu()?;
    let scaled = hidden.softmax(-1)?.mul(&hidden)?;
    Ok(vec![
        scaled.sum_dim(Some(&[1]))?,
        scaled.cumsum(1)?.to_dtype(DType::F16)?,
        hidden.transpose(0, 1)?.contiguous()?,
    ])
}

/// Runs a graph into the outputs, and compares them with an eager run.
#[track_caller]
pub fn agrees(graph: &Graph, inputs: &[Tensor], outputs: &mut Vec<Tensor>) {
    graph.run_into(inputs, outputs).unwrap();
    assert!(all_bits(outputs) == all_bits(&layers(inputs).unwrap()), "{}", graph.replays());
}

pub fn replayed() {
    let inputs = |rows: i64, seed: u64| {
        moved(&[numbers(&[rows, 16], seed), numbers(&[16, 24], seed + 1), numbers(&[24], seed + 2)])
    };
    let specs = [
        InputSpec::new(DType::F32, ["rows".into(), 16.into()]).on(DEVICE),
        InputSpec::new(DType::F32, [16.into(), 24.into()]).on(DEVICE),
        InputSpec::new(DType::F32, [24.into()]).on(DEVICE),
    ];
    let graph = Graph::trace(layers, specs).unwrap().optimize(&Passes::all());
    let (first, mut outputs) = (inputs(9, 1), Vec::new());
    let counts = |graph: &Graph| {
        let replays = graph.replays();
        assert!(replays.reasons.is_empty(), "{replays}");
        (replays.recorded, replays.replayed, replays.launched)
    };
    for _ in 0..4 {
        agrees(&graph, &first, &mut outputs);
    }
    // Five launches are the first run: the product, a kernel of two calls, and so on.
    let steps = counts(&graph).2;
    assert_eq!(counts(&graph), (1, 3, steps));
    // Other numbers in the same memory.
    for seed in 10..13 {
        for (input, new) in first.iter().zip(inputs(9, seed)) {
            input.copy_(&new).unwrap();
        }
        agrees(&graph, &first, &mut outputs);
    }
    assert_eq!(counts(&graph), (1, 6, steps));
    // Other memory: launched, then recorded, and the first record is still there.
    let second = inputs(9, 20);
    for _ in 0..3 {
        agrees(&graph, &second, &mut outputs);
        agrees(&graph, &first, &mut outputs);
    }
    assert_eq!(counts(&graph), (2, 11, 2 * steps));
    // Outputs that are kept have memory of their own.
    let kept: Vec<Vec<Tensor>> = (0..3).map(|_| graph.run(&first).unwrap()).collect();
    let expected = all_bits(&layers(&first).unwrap());
    assert!(kept.iter().all(|outputs| all_bits(outputs) == expected));
    // Other sizes have another plan.
    let (third, mut others) = (inputs(5, 30), Vec::new());
    for _ in 0..3 {
        agrees(&graph, &third, &mut others);
        agrees(&graph, &first, &mut outputs);
    }
    // More addresses than are kept.
    let many: Vec<Vec<Tensor>> = (0..7).map(|seed| inputs(9, 40 + seed)).collect();
    for inputs in many.iter().flat_map(|inputs| std::iter::repeat_n(inputs, 3)) {
        agrees(&graph, inputs, &mut outputs);
    }
    println!("{}", graph.replays());
}

/// Steps of gradient descent, whose weights are written in place.
pub fn training(record: bool) {
    let step = |x: &[Tensor]| {
        let weights = x[1].detach().requires_grad_(true)?;
        let loss = x[0].matmul(&weights)?.tanh()?.sub(0.25)?.square()?.mean()?;
        let gradients = opsmith::autograd::grad(&[&loss], &[&weights], &[None], Default::default())?;
        let gradient = gradients.into_iter().flatten().next().unwrap();
        Ok(vec![x[1].sub(&gradient.mul(0.5)?)?, loss.detach()])
    };
    let data = numbers(&[12, 6], 1).to_device(DEVICE).unwrap();
    let weights = numbers(&[6, 4], 2).to_device(DEVICE).unwrap();
    let eager = weights.mul(1.0).unwrap();
    let graph = Graph::trace(step, &[data.clone(), weights.clone()]).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for number in 0..40 {
        if !record {
            outputs.clear();
        }
        graph.run_into(&[&data, &weights], &mut outputs).unwrap();
        if !record {
            // Other addresses.
            std::mem::forget(outputs.clone());
        }
        weights.copy_(&outputs[0]).unwrap();
        if number % 13 == 0 {
            let found = bits(&weights);
            let mut expected = eager.clone();
            for _ in 0..=number {
                expected = step(&[data.clone(), expected]).unwrap().remove(0);
            }
            assert!(found == bits(&expected), "step {number}");
        }
    }
    if record {
        assert_eq!(graph.replays().replayed, 39, "{}", graph.replays());
    }
}

/// Kernels with memory of their own, which other work would get between replays if it were released.
pub fn working_memory() {
    let function = |x: &[Tensor]| {
        let (sorted, places) = x[0].sort()?;
        let sums = sorted.cumsum(-1)?.add(&x[0].sum()?)?;
        Ok(vec![sums.topk(40)?.0, places, x[0].matmul(&x[0].transpose(0, 1)?)?.median()?])
    };
    let input = numbers(&[6, 9000], 1).to_device(DEVICE).unwrap();
    let expected = all_bits(&function(std::slice::from_ref(&input)).unwrap());
    let graph = Graph::trace(function, std::slice::from_ref(&input)).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for _ in 0..6 {
        graph.run_into(std::slice::from_ref(&input), &mut outputs).unwrap();
        let others: Vec<Tensor> = (1..30)
            .map(|size| opsmith::full([size * 997], 1e9).unwrap().to_device(DEVICE).unwrap())
            .collect();
        assert!(all_bits(&outputs) == expected, "{}", graph.replays());
        drop(others);
    }
    assert_eq!(graph.replays().recorded, 1, "{}", graph.replays());
    let before = opsmith_cuda::memory_statistics(0).unwrap().live_bytes;
    drop((graph, outputs));
    assert!(opsmith_cuda::memory_statistics(0).unwrap().live_bytes < before);
}

/// The reason why a function's runs are not recorded; they agree with eager ones all the same.
#[track_caller]
pub fn reason(
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: &[Tensor],
    part: &str,
    parts: u64,
) {
    let graph = Graph::trace(&function, inputs).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for _ in 0..3 {
        graph.run_into(inputs, &mut outputs).unwrap();
    }
    let replays = graph.replays();
    assert!(
        replays.launched >= 3 && replays.reasons.len() == 1 && replays.reasons[0].contains(part),
        "{replays}"
    );
    assert_eq!((replays.recorded, replays.replayed), (parts, 2 * parts), "{replays}");
    if !part.contains("random") {
        assert!(all_bits(&outputs) == all_bits(&function(inputs).unwrap()), "{replays}");
    }
}

pub fn reasons() {
    let x = moved(&[numbers(&[8, 8], 1)]);
    let dropout = |x: &[Tensor]| {
        let mask = x[0].rand_like()?.gt(0.5)?;
        Ok(vec![x[0].matmul(&x[0])?.mul(&mask)?.matmul(&x[0])?])
    };
    reason(dropout, &x, "draws random numbers", 1);
    let branches = |x: &[Tensor]| {
        let positive = x[0].sum()?.gt(0.0)?;
        opsmith_graph::cond(&positive, || x[0].matmul(&x[0]), || x[0].neg())
    };
    reason(branches, &x, "the condition at", 1);
    // The host looks whether the matrix was refused.
    let solved = |x: &[Tensor]| {
        let before = x[0].matmul(&x[0])?.softmax(0)?;
        Ok(vec![before.inverse()?.matmul(&x[0])?.softmax(1)?.sum()?])
    };
    reason(solved, &x, "work that is recorded cannot contain", 2);
    // One launch is no shorter as a record.
    let graph = Graph::trace(|x| Ok(vec![x[0].mul(2.0)?.add(1.0)?]), &x).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    (0..4).for_each(|_| graph.run_into(&x, &mut outputs).unwrap());
    assert_eq!(graph.replays(), Replays { launched: 4, ..Replays::default() });
}

/// Work of the host and of two devices in one graph, with arenas on each side.
pub fn transfers() {
    let other = Device::cuda(1);
    let function = |x: &[Tensor]| {
        let here = x[0].mul(2.0)?.exp()?.sub(&x[0])?;
        let there = x[1].matmul(&here.to_device(DEVICE)?)?.softmax(0)?.mul(&x[1])?;
        let further = there.to_device(other)?.matmul(&x[2])?.relu()?.sum_dim(Some(&[0]))?;
        let back = here.mul(&there.to_device(Device::CPU)?.add(1.0)?)?;
        Ok(vec![
            back.to_device(DEVICE)?.softmax(1)?.matmul(&x[1])?,
            further.to_device(Device::CPU)?.exp()?,
            back,
        ])
    };
    let host = numbers(&[8, 8], 1);
    let inputs = [
        host.clone(),
        numbers(&[8, 8], 2).to_device(DEVICE).unwrap(),
        numbers(&[8, 8], 3).to_device(other).unwrap(),
    ];
    let expected = all_bits(&function(&inputs).unwrap());
    let graph = Graph::trace(function, &inputs).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for _ in 0..5 {
        graph.run_into(&inputs, &mut outputs).unwrap();
        assert!(all_bits(&outputs) == expected, "{}", graph.replays());
    }
    // A stretch before and one after the work of the host on the first device, and one on the second.
    let replays = graph.replays();
    assert_eq!((replays.recorded, replays.replayed, replays.reasons.len()), (3, 12, 0), "{replays}");
    // Other numbers of the host.
    let inputs = [host.mul(0.5).unwrap(), inputs[1].clone(), inputs[2].clone()];
    let expected = all_bits(&function(&inputs).unwrap());
    for _ in 0..3 {
        graph.run_into(&inputs, &mut outputs).unwrap();
        assert!(all_bits(&outputs) == expected, "{}", graph.replays());
    }
}

pub fn threads() {
    let inputs = moved(&[numbers(&[9, 16], 1), numbers(&[16, 24], 2), numbers(&[24], 3)]);
    let graph = Graph::trace(layers, &inputs).unwrap().optimize(&Passes::all());
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (graph, weights) = (&graph, [inputs[1].clone(), inputs[2].clone()]);
            scope.spawn(move || {
                let own = numbers(&[9, 16], 100 + seed).to_device(DEVICE).unwrap();
                let [first, second] = weights;
                let (inputs, mut outputs) = ([own, first, second], Vec::new());
                for _ in 0..12 {
                    agrees(graph, &inputs, &mut outputs);
                }
            });
        }
    });
    // Work of one thread is an operand of the next one.
    let mut outputs = Vec::new();
    let mut own = inputs[0].clone();
    for _ in 0..6 {
        own = std::thread::spawn(move || own.mul(1.5).unwrap()).join().unwrap();
        agrees(&graph, &[own.clone(), inputs[1].clone(), inputs[2].clone()], &mut outputs);
    }
    println!("{}", graph.replays());
}

/// A kernel that reports: each replay does.
pub fn failures() {
    let divide = |x: &[Tensor]| Ok(vec![x[0].floor_divide(&x[1])?.sum()?]);
    let inputs = moved(&[Tensor::of(&[6i64, 7, 8]), Tensor::of(&[3i64, 2, 1])]);
    let graph = Graph::trace(divide, &inputs).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for divisor in [1i64, 1, 1, 0, 2, 0, 1] {
        inputs[1].copy_(&Tensor::of(&[3, 2, divisor]).to_device(DEVICE).unwrap()).unwrap();
        graph.run_into(&inputs, &mut outputs).unwrap();
        match outputs[0].to_device(Device::CPU) {
            Ok(sum) => assert_eq!(
                (divisor != 0, sum.item().unwrap().to_f64()),
                (true, 5.0 + (8 / divisor.max(1)) as f64)
            ),
            Err(error) => {
                assert!(divisor == 0 && error.to_string().contains("integer division by zero"), "{error}");
            }
        }
    }
    assert!(graph.replays().replayed > 3, "{}", graph.replays());
}

pub fn lost() {
    let inputs = moved(&[numbers(&[9, 16], 1), numbers(&[16, 24], 2), numbers(&[24], 3)]);
    let graph = Graph::trace(layers, &inputs).unwrap().optimize(&Passes::all());
    let mut outputs = Vec::new();
    for _ in 0..3 {
        agrees(&graph, &inputs, &mut outputs);
    }
    // SAFETY: the stand-in is loaded, and its function takes the number of a device.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").unwrap();
        let lose: libloading::Symbol<'_, unsafe extern "C" fn(i32)> =
            driver.get(b"standin_lose_device\0").unwrap();
        lose(0);
    }
    let error = graph.run_into(&inputs, &mut outputs).unwrap_err().to_string();
    assert!(error.contains("the context of the device is lost"), "{error}");
    let error = graph.run_into(&inputs, &mut outputs).unwrap_err().to_string();
    assert!(error.contains("cannot be used any more"), "{error}");
    drop(graph);
}

/// Times of the host's side of a run with 40 calls, the stand-in's own included.
pub fn costs() {
    let function = |x: &[Tensor]| {
        let mut y = x[0].clone();
        for _ in 0..10 {
            y = y.mul(&x[1])?.add(0.5)?.tanh()?.softmax(0)?;
        }
        Ok(vec![y])
    };
    let inputs = moved(&[numbers(&[8], 1), numbers(&[8], 2)]);
    let traced = Graph::trace(function, &inputs).unwrap();
    let separate = traced.optimize(&Passes::all().without(Pass::Fusion));
    let fused = traced.optimize(&Passes::all());
    for (name, graph, record) in [
        ("40 launches", &separate, false),
        ("20 launches, chains fused", &fused, false),
        ("a replay of 40 launches", &separate, true),
        ("a replay of 20 launches", &fused, true),
    ] {
        let mut best = Duration::MAX;
        let mut outputs = Vec::new();
        for _ in 0..60 {
            let start = Instant::now();
            graph.run_into(&inputs, &mut outputs).unwrap();
            best = best.min(start.elapsed());
            DEVICE.synchronize().unwrap();
            if !record {
                std::mem::forget(std::mem::take(&mut outputs));
            }
        }
        println!("{name}: {best:?}");
    }
}
