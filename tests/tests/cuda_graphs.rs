//! Graphs on the stand-ins for CUDA: chains of element-wise calls as one kernel, bit for bit as separate launches, and runs that
//! are recorded and replayed.
//!
//! Each part is done in a process of its own, as in `cuda.rs`; the driver's stand-in prints the number of launches at its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use opsmith::{DType, Device, Generator, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, Pass, Passes, Place, Replays};

const DEVICE: Device = Device::cuda(0);

/// The variable that names the part of a process.
const PART: &str = "OPSMITH_CUDA_GRAPHS";

/// A name and the work of a process.
type Part = (&'static str, fn());

const PARTS: &[Part] = &[
    ("patterns", patterns),
    ("random", random_programs),
    ("separate", || launched(false)),
    ("fused", || launched(true)),
    ("conversions", conversions),
    ("replayed", replayed),
    ("single", || training(false)),
    ("recorded", || training(true)),
    ("memory", working_memory),
    ("reasons", reasons),
    ("threads", threads),
    ("transfers", transfers),
    ("failures", failures),
    ("lost", lost),
];

#[test]
fn worker() {
    let Ok(name) = std::env::var(PART) else { return };
    let (_, part) = PARTS.iter().find(|(known, _)| *known == name).expect("a part of that name");
    part();
    println!("DONE {name}");
}

static STAND_IN: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-graphs");
    opsmith_stand_in::driver(&folder);
    opsmith_stand_in::nvrtc(&folder);
    folder
});

/// The output of a part, which succeeds.
#[track_caller]
fn done(part: &str, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env(PART, part);
    command.envs(variables.iter().copied());
    if std::env::var_os("OPSMITH_ON_DEVICE").is_none() {
        command.env("LD_LIBRARY_PATH", &*STAND_IN).env("OPSMITH_CACHE_DIR", STAND_IN.join("cache"));
        command.env_remove("OPSMITH_NVRTC");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(&format!("DONE {part}")), "{part}: {text}\n{said}");
    text
}

/// A count that the driver's stand-in prints; `None` on a real device.
fn counted(text: &str, name: &str) -> Option<i64> {
    let report = text.lines().find(|line| line.contains("STANDIN live="))?;
    let count = report.split(' ').find_map(|word| word.strip_prefix(&format!("{name}=")))?;
    Some(count.parse().unwrap())
}

/// As [`done`], where the driver refuses nothing.
#[track_caller]
fn done_strictly(part: &str) -> String {
    let text = done(part, &[("STANDIN_DEVICES", "2")]);
    assert!(counted(&text, "refused").is_none_or(|refused| refused == 0), "{text}");
    text
}

fn numbers(shape: &[i64], seed: u64) -> Tensor {
    opsmith::rand_generator(shape, Some(&Generator::new(seed))).unwrap().sub(0.5).unwrap()
}

fn moved(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.to_device(DEVICE).unwrap()).collect()
}

fn bits(tensor: &Tensor) -> Vec<u64> {
    let here = tensor.to_device(Device::CPU).unwrap().to_dtype(DType::F64).unwrap();
    here.contiguous().unwrap().to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

fn all_bits(tensors: &[Tensor]) -> Vec<Vec<u64>> {
    tensors.iter().map(bits).collect()
}

/// The fused graph of a function on the device, after a check that it, and the graph without fusion, give the bits of eager calls.
#[track_caller]
fn fused(function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor]) -> Graph {
    let inputs = moved(inputs);
    let eager = all_bits(&function(&inputs).unwrap());
    let traced = Graph::trace(&function, &inputs).unwrap();
    let separate = traced.optimize(&Passes::all().without(Pass::Fusion));
    assert!(separate.memory().unwrap().kernels.is_empty());
    let graph = traced.optimize(&Passes::all());
    for graph in [&separate, &graph] {
        let mut outputs = Vec::new();
        // Once to warm up, once recorded, once replayed.
        for _ in 0..3 {
            graph.run_into(&inputs, &mut outputs).unwrap();
            assert!(all_bits(&outputs) == eager, "{}", graph.describe());
        }
    }
    graph
}

/// The numbers of nodes of each kernel, views among them.
fn kernels(graph: &Graph) -> Vec<usize> {
    graph.memory().unwrap().kernels.iter().map(ExactSizeIterator::len).collect()
}

#[test]
fn chains_of_calls_are_one_kernel() {
    done_strictly("patterns");
}

fn patterns() {
    let gate = |x: &[Tensor]| Ok(vec![x[0].add(&x[1])?.tanh()?.mul(&x[0].sigmoid()?)?]);
    // One shape; a row and a column that are broadcast; a number.
    for other in [&[6, 50][..], &[50], &[6, 1], &[]] {
        let graph = fused(gate, &[numbers(&[6, 50], 1), numbers(other, 2)]);
        assert_eq!(kernels(&graph), [4], "{}", graph.describe());
        let report = graph.memory().unwrap();
        let registers = report.buffers.iter().filter(|buffer| buffer.place == Place::Register).count();
        assert_eq!((report.planned, registers), (0, 3), "{}", graph.describe());
        assert!(graph.describe().contains("one kernel each: steps 0–3"), "{}", graph.describe());
    }
    // Results inside the chain are outputs, too; numbers of the call; conditions; dtypes of results.
    let several = |x: &[Tensor]| {
        let scaled = x[0].mul(0.25)?.clamp_with(opsmith::ClampOptions::new().min(-0.1))?;
        let positive = scaled.gt(&x[1])?;
        let chosen = scaled.where_(&positive, &x[1])?;
        Ok(vec![scaled, chosen.exp()?, positive])
    };
    let graph = fused(several, &[numbers(&[700], 3), numbers(&[700], 4)]);
    assert_eq!(kernels(&graph), [5], "{}", graph.describe());
    // Transposed and sliced operands, views between calls, more elements than a block has.
    let turned = |x: &[Tensor]| {
        let y = x[0].transpose(0, 1)?.mul(&x[1])?;
        Ok(vec![y.neg()?.add(&x[1].narrow(1, 0, 90)?.abs()?)?, y.unsqueeze(0)?.sin()?])
    };
    fused(turned, &[numbers(&[90, 40], 5), numbers(&[40, 90], 6)]);
    // In place: the last value of a buffer is the one that is kept.
    let in_place = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        y.add_(&x[1])?;
        y.mul_(&y.exp()?)?;
        Ok(vec![y])
    };
    let graph = fused(in_place, &[numbers(&[33, 5], 7), numbers(&[5], 8)]);
    assert_eq!(kernels(&graph).len(), 1, "{}", graph.describe());
    // Parts of a buffer that is written are other elements, so they end the chain.
    let parts = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?;
        y.narrow(0, 0, 15)?.mul_(&y.narrow(0, 15, 15)?)?;
        Ok(vec![y.narrow(0, 5, 20)?.add(&y.narrow(0, 0, 20)?)?])
    };
    fused(parts, &[numbers(&[30, 4], 9)]);
    // Reductions and products stay kernels of their own.
    let broken = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?.exp()?;
        let sums = y.sum_dim(Some(&[1]))?.unsqueeze(1)?;
        Ok(vec![y.div(&sums)?.add(1.0)?.sqrt()?.matmul(&x[1])?.relu()?.neg()?])
    };
    let graph = fused(broken, &[numbers(&[12, 8], 10), numbers(&[8, 3], 11)]);
    assert_eq!(kernels(&graph), [2, 3, 2], "{}", graph.describe());
    // Integers, halves, complex numbers.
    for dtype in [DType::I32, DType::U8, DType::F16, DType::BF16, DType::F64, DType::C64] {
        let inputs =
            [numbers(&[300], 12), numbers(&[300], 13)].map(|x| x.mul(20.0).unwrap().to_dtype(dtype).unwrap());
        let graph = fused(|x| Ok(vec![x[0].mul(&x[1])?.add(&x[0])?.square()?]), &inputs);
        assert_eq!(kernels(&graph), [3], "{}", graph.describe());
    }
    // More calls than one kernel takes.
    let long = |x: &[Tensor]| {
        let mut y = x[0].clone();
        for number in 0..60 {
            y = if number % 3 == 0 { y.sin()? } else { y.mul(1.01)?.add(&x[0])? };
        }
        Ok(vec![y])
    };
    let graph = fused(long, &[numbers(&[100], 14)]);
    assert!(
        kernels(&graph).iter().sum::<usize>() == 100 && kernels(&graph).len() < 8,
        "{:?}",
        kernels(&graph)
    );
}

#[test]
fn conversions_join_chains() {
    done_strictly("conversions");
}

/// Casts between calls, from every dtype to every other.
fn conversions() {
    let computed: Vec<DType> = DType::ALL.into_iter().filter(|dtype| !dtype.is_stored()).collect();
    for from in &computed {
        let values = [-300.7, -2.5, -1.0, -0.3, 0.0, 0.3, 1.0, 2.5, 90.2, 255.0, 70_000.5, 3e9];
        let x = Tensor::of(&values).to_dtype(*from).unwrap();
        let targets: Vec<DType> = computed.iter().copied().filter(|to| to != from).collect();
        let function = |x: &[Tensor]| {
            let y = x[0].add(&x[0])?;
            targets.iter().map(|to| y.to_dtype(*to)).collect::<Result<Vec<Tensor>>>()
        };
        let graph = fused(function, &[x]);
        assert!(!kernels(&graph).is_empty(), "{from}: {}", graph.describe());
    }
}

#[test]
fn random_chains() {
    done_strictly("random");
}

/// Programs of random calls over tensors with rows, columns, parts and casts, also in place.
fn random_programs() {
    for seed in 1..40u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let choices: Vec<[usize; 3]> = (0..10).map(|_| [next(9), next(64), next(64)]).collect();
        let shape = [[5, 7, 12], [12, 1, 9], [1, 30, 6]][next(3)];
        let program = |x: &[Tensor]| {
            let mut whole = vec![x[0].clone(), x[0].mul(&x[1])?];
            for [kind, one, other] in &choices {
                let (a, b) = (whole[one % whole.len()].clone(), whole[other % whole.len()].clone());
                match kind {
                    0 => whole.push(a.add(&b)?.tanh()?),
                    1 => whole.push(a.mul(&x[2])?),
                    2 => whole.push(a.sub(&x[1])?.abs()?),
                    3 => whole.push(a.to_dtype(DType::F16)?.mul(0.5)?.to_dtype(DType::F32)?),
                    4 => whole.push(a.where_(&a.gt(&b)?, &b)?),
                    5 => whole.push(a.reshape([-1, shape[2]])?.exp()?.reshape(shape)?),
                    6 => whole[1].add_(&a)?,
                    7 => whole.push(a.transpose(0, 1)?.neg()?.transpose(0, 1)?.add(&b)?),
                    _ => whole.last().unwrap().narrow(2, 1, 4)?.mul_(0.5)?,
                }
            }
            whole.iter().skip(1).map(|result| result.mul(1.0)).collect::<Result<Vec<Tensor>>>()
        };
        let inputs = [
            numbers(&shape, seed),
            numbers(&shape[2..], seed + 1),
            numbers(&[shape[0], shape[1], 1], seed + 2),
        ];
        fused(program, &inputs);
    }
}

#[test]
fn a_chain_is_one_launch() {
    let (separate, fused) = (done_strictly("separate"), done_strictly("fused"));
    let launches = |text: &str| counted(text, "launches");
    // Nine calls and one kernel, each ten times, beside those that make the inputs.
    assert_eq!(launches(&separate).zip(launches(&fused)).map(|(one, other)| one - other).unwrap_or(80), 80);
}

fn launched(fuse: bool) {
    let function = |x: &[Tensor]| {
        let y = x[0].add(&x[1])?.mul(0.5)?.tanh()?;
        Ok(vec![y.sin()?.mul(&y)?.add(1.0)?.sqrt()?.neg()?.exp()?])
    };
    let inputs = moved(&[numbers(&[64], 1), numbers(&[64], 2)]);
    let passes = if fuse { Passes::all() } else { Passes::all().without(Pass::Fusion) };
    let graph = Graph::trace(function, &inputs).unwrap().optimize(&passes);
    for _ in 0..10 {
        // Outputs at other addresses each time, so that nothing is recorded.
        let outputs = graph.run(&inputs).unwrap();
        std::mem::forget(outputs);
    }
    assert_eq!(graph.replays().recorded, 0);
}

#[test]
fn a_replay_is_the_eager_run() {
    done_strictly("replayed");
}

fn layers(x: &[Tensor]) -> Result<Vec<Tensor>> {
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
fn agrees(graph: &Graph, inputs: &[Tensor], outputs: &mut Vec<Tensor>) {
    graph.run_into(inputs, outputs).unwrap();
    assert!(all_bits(outputs) == all_bits(&layers(inputs).unwrap()), "{}", graph.replays());
}

fn replayed() {
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

#[test]
fn a_recorded_run_is_one_request() {
    let (single, recorded) = (done_strictly("single"), done_strictly("recorded"));
    let Some((one, other)) = counted(&single, "launches").zip(counted(&recorded, "launches")) else { return };
    assert_eq!(one - other, 39 * 6, "{one} and {other} launches");
    assert_eq!((counted(&recorded, "graphs"), counted(&recorded, "replays")), (Some(1), Some(39)));
    assert_eq!((counted(&single, "graphs"), counted(&single, "replays")), (Some(0), Some(0)));
}

/// Steps of gradient descent, whose weights are written in place.
fn training(record: bool) {
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

#[test]
fn recorded_work_keeps_its_working_memory() {
    done_strictly("memory");
}

/// Kernels with memory of their own, which other work would get between replays if it were released.
fn working_memory() {
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
            .map(|size| opsmith::full(&[size * 997], 1e9).unwrap().to_device(DEVICE).unwrap())
            .collect();
        assert!(all_bits(&outputs) == expected, "{}", graph.replays());
        drop(others);
    }
    assert_eq!(graph.replays().recorded, 1, "{}", graph.replays());
    let before = opsmith_cuda::memory_statistics(0).unwrap().live_bytes;
    drop((graph, outputs));
    assert!(opsmith_cuda::memory_statistics(0).unwrap().live_bytes < before);
}

#[test]
fn a_run_that_is_not_recorded_has_a_reason() {
    done_strictly("reasons");
}

/// The reason why a function's runs are not recorded; they agree with eager ones all the same.
#[track_caller]
fn reason(function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>, inputs: &[Tensor], part: &str, parts: u64) {
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

fn reasons() {
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

#[test]
fn transfers_lie_between_recorded_stretches() {
    done_strictly("transfers");
}

/// Work of the host and of two devices in one graph, with arenas on each side.
fn transfers() {
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

#[test]
fn threads_replay_work_of_their_own() {
    done_strictly("threads");
}

fn threads() {
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

#[test]
fn errors_of_recorded_work_arrive() {
    done_strictly("failures");
}

/// A kernel that reports: each replay does.
fn failures() {
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

#[test]
fn a_lost_context_is_an_error() {
    if std::env::var_os("OPSMITH_ON_DEVICE").is_none() {
        done("lost", &[]);
    }
}

fn lost() {
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
