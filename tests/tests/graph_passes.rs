//! Passes over graphs: the nodes that each drops, and random programs that give the same bits after them.

use opsmith::{DType, Generator, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, NodeKind, Pass, Passes, Place};
use opsmith_testing::samples::drawing;

fn square() -> InputSpec {
    InputSpec::new(DType::F32, [4.into(), 4.into()])
}

fn input(seed: u64) -> Tensor {
    opsmith::rand_generator([4, 4], Some(&Generator::new(seed))).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// The steps of a graph that do something, by name.
fn steps(graph: &Graph) -> Vec<&'static str> {
    let runs = |kind: &NodeKind| !matches!(kind, NodeKind::View { .. });
    graph.nodes().iter().map(|node| &node.kind).filter(|kind| runs(kind)).map(NodeKind::name).collect()
}

fn only(pass: Pass) -> Passes {
    Passes::none().with(pass)
}

#[test]
fn constants_are_computed_once() {
    let graph = Graph::trace(
        |x: &[Tensor]| {
            let scale = Tensor::of(&[1.0f32, 2.0, 3.0, 4.0]).exp()?.add(&Tensor::scalar(1.0, DType::F32))?;
            x[0].mul(&scale)
        },
        [square()],
    )
    .unwrap();
    assert_eq!(steps(&graph), ["exp", "add.Tensor", "mul.Tensor"]);
    let folded = graph.optimize(&only(Pass::ConstantFolding));
    assert_eq!(steps(&folded), ["mul.Tensor"]);
    assert_eq!(bits(&folded.run(&[input(1)]).unwrap()[0]), bits(&graph.run(&[input(1)]).unwrap()[0]));
}

#[test]
fn a_tensor_that_somebody_holds_is_folded_only_if_it_is_frozen() {
    let weight = input(3);
    let graph = Graph::trace(|x: &[Tensor]| x[0].mul(&weight.exp()?), [square()]).unwrap();
    let folded = graph.optimize(&only(Pass::ConstantFolding));
    assert_eq!(steps(&folded), ["exp", "mul.Tensor"]);
    let frozen = graph.optimize(&only(Pass::ConstantFolding).frozen());
    assert_eq!(steps(&frozen), ["mul.Tensor"]);
    let before = bits(&frozen.run(&[input(1)]).unwrap()[0]);
    assert_eq!(before, bits(&folded.run(&[input(1)]).unwrap()[0]));
    weight.mul_(&weight).unwrap();
    assert_eq!(bits(&frozen.run(&[input(1)]).unwrap()[0]), before);
    assert_eq!(
        bits(&folded.run(&[input(1)]).unwrap()[0]),
        bits(&input(1).mul(&weight.exp().unwrap()).unwrap())
    );
}

#[test]
fn what_nothing_needs_is_dropped_and_what_others_see_stays() {
    let counter = Tensor::of(&[0.0f32]);
    let graph = Graph::trace(
        |x: &[Tensor]| {
            x[0].exp()?.sin()?;
            counter.add_(&Tensor::scalar(1.0, DType::F32))?;
            opsmith::rand([3])?;
            x[0].relu()
        },
        [square()],
    )
    .unwrap();
    assert_eq!(steps(&graph), ["exp", "sin", "add.Tensor", "rand.generator", "relu"]);
    let less = graph.optimize(&only(Pass::DeadCode));
    assert_eq!(steps(&less), ["add.Tensor", "rand.generator", "relu"]);
    drawing(|| {
        less.run(&[input(1)]).unwrap();
        less.run(&[input(1)]).unwrap();
    });
    assert_eq!(counter.to_vec::<f32>().unwrap(), [2.0]);
}

#[test]
fn the_same_is_computed_once_unless_it_was_written_between() {
    let graph = Graph::trace(
        |x: &[Tensor]| {
            let (a, b) = (x[0].exp()?.transpose(0, 1)?, x[0].exp()?.transpose(0, 1)?);
            a.mul(&b)
        },
        [square()],
    )
    .unwrap();
    assert_eq!(steps(&graph.optimize(&only(Pass::CommonSubexpressions))), ["exp", "mul.Tensor"]);
    let state = input(5);
    let graph = Graph::trace(
        |x: &[Tensor]| {
            let before = state.exp()?;
            state.add_(&x[0])?;
            before.mul(&state.exp()?)
        },
        [square()],
    )
    .unwrap();
    let less = graph.optimize(&only(Pass::CommonSubexpressions));
    assert_eq!(steps(&less), ["exp", "add.Tensor", "exp", "mul.Tensor"]);
    let written = Graph::trace(
        |x: &[Tensor]| {
            let (a, b) = (x[0].exp()?, x[0].exp()?);
            a.add_(&x[0])?;
            a.mul(&b)
        },
        [square()],
    )
    .unwrap();
    let less = written.optimize(&only(Pass::CommonSubexpressions));
    assert_eq!(steps(&less), ["exp", "exp", "add.Tensor", "mul.Tensor"]);
}

#[test]
fn two_outputs_never_share_memory() {
    let twice = |x: &[Tensor]| Ok((x[0].exp()?, x[0].exp()?));
    let graph = Graph::trace(twice, [square()]).unwrap().optimize(&Passes::all());
    let outs = graph.run(&[input(1)]).unwrap();
    assert!(!outs[0].shares_storage(&outs[1]));
    let copied = |x: &[Tensor]| {
        let a = x[0].exp()?;
        Ok((a.clone(), opsmith::deep_clone(&a)?))
    };
    let graph = Graph::trace(copied, [square()]).unwrap().optimize(&Passes::all());
    let outs = graph.run(&[input(1)]).unwrap();
    assert!(!outs[0].shares_storage(&outs[1]));
    let graph = Graph::trace(|x: &[Tensor]| opsmith::deep_clone(&x[0]), [square()]).unwrap();
    let x = input(1);
    assert!(!graph.optimize(&Passes::all()).run(&[&x]).unwrap()[0].shares_storage(&x));
}

#[test]
fn an_element_wise_call_writes_over_what_nothing_needs() {
    let chain = |x: &[Tensor]| x[0].exp()?.sin()?.cos()?.exp()?.transpose(0, 1)?.sum();
    let graph = Graph::trace(chain, [square()]).unwrap();
    assert_eq!(graph.memory().unwrap().planned, 128);
    let reused = graph.optimize(&only(Pass::InPlaceReuse));
    let report = reused.memory().unwrap();
    assert_eq!(report.planned, 64);
    let over = |place: &Place| matches!(place, Place::Arena { over: Some(_), .. });
    assert_eq!(report.buffers.iter().filter(|buffer| over(&buffer.place)).count(), 3);
    // Elements read at other positions, or again, stay.
    let kept = |x: &[Tensor]| {
        let a = x[0].exp()?;
        a.add(&a.transpose(0, 1)?)?.mul(&x[0])?.sum()
    };
    let graph = Graph::trace(kept, [square()]).unwrap().optimize(&only(Pass::InPlaceReuse));
    assert_eq!(graph.memory().unwrap().planned, 128);
}

/// A program of calls, views and calls in place, decided by a seed.
fn program(seed: u64, x: &[Tensor], state: &Tensor) -> Result<Vec<Tensor>> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut pick = |count: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) as usize % count
    };
    let mut known: Vec<Tensor> = vec![x[0].clone(), x[1].clone(), state.clone(), made(seed)?, made(9)?];
    // Inputs may not be written, as programs of both modes get the same ones; nor tensors that a program makes from
    // numbers, which a graph makes once.
    let mut writable = vec![false, false, true, false, false];
    for _ in 0..6 + pick(14) {
        let (first, second) = (pick(known.len()), pick(known.len()));
        let (a, b) = (known[first].clone(), known[second].clone());
        let (new, own) = match pick(17) {
            0 => (a.add(&b)?, true),
            1 => (a.mul(&b)?, true),
            2 => (a.sin()?, true),
            3 => (a.relu()?, true),
            4 => (a.transpose(0, 1)?, writable[first]),
            5 => (a.narrow(0, 1, 2)?.sum_dim_keepdim(&b)?, true),
            6 => (opsmith::deep_clone(&a)?, true),
            7 => (a.mm(&b)?, true),
            8 => (a.transpose(0, 1)?.contiguous()?, true),
            9 => (a.reshape([2, 8])?.reshape([4, 4])?, writable[first] && a.is_contiguous()),
            10 => (a.to_dtype(DType::F64)?.to_dtype(DType::F32)?, true),
            11 => (opsmith::rand([4, 4])?, true),
            12 if writable[first] => (changed(&a, a.add_(&b.sin()?))?, false),
            13 if writable[first] => {
                (changed(&a, a.narrow(1, 1, 2)?.mul_(&b.narrow(1, 0, 2)?.cos()?))?, false)
            }
            14 if writable[first] => {
                (changed(&a, a.narrow(0, 0, 1)?.copy_(&b.narrow(0, 2, 1)?.exp()?))?, false)
            }
            15 => {
                // A new tensor that is changed at once, as `z = a * b; z += c` is.
                let new = a.mul(&b)?;
                new.add_(&known[pick(known.len())])?;
                (new, true)
            }
            _ => (a.sub(&b)?, true),
        };
        if new.shape() == [4, 4] {
            known.push(new);
            writable.push(own);
        }
    }
    let count = known.len();
    if pick(2) == 0 {
        // A single output, at the end of a chain: all others may share memory.
        return Ok(vec![known[count - 1].mm(&known[count - 2])?]);
    }
    Ok((0..1 + pick(3)).map(|_| known[count - 1 - pick(count.min(6))].clone()).collect())
}

#[test]
fn memory_that_a_fused_group_still_reads_is_not_taken_over() {
    let program = |x: &[Tensor]| {
        let first = x[0].exp()?.mm(&x[0])?;
        let second = first.sin()?.mm(&x[0])?;
        // The product is of row-major order, its factor is not; the sum reads `first` for the last time.
        let sum = second.transpose(0, 1)?.mul(&x[0])?;
        sum.add_(&first)?;
        let last = sum.mm(&x[0])?;
        last.add(&sum)
    };
    let x = input(4);
    let eager = program(std::slice::from_ref(&x)).unwrap();
    let graph = Graph::trace(program, [square()]).unwrap().optimize(&Passes::all());
    for tile in [1, 3, 16, 100] {
        let graph = graph.clone().with_tiles(tile);
        assert_eq!(bits(&graph.run(std::slice::from_ref(&x)).unwrap()[0]), bits(&eager), "tiles of {tile}");
    }
}

/// A tensor that a program makes from numbers.
fn made(seed: u64) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..16).map(|number| ((number * 7 + seed) % 11) as f32 / 8.0).collect();
    Tensor::from_slice(&numbers, &[4, 4])
}

/// A tensor that was written to.
fn changed(tensor: &Tensor, written: Result<()>) -> Result<Tensor> {
    written.map(|()| tensor.clone())
}

trait SumRows {
    fn sum_dim_keepdim(&self, like: &Tensor) -> Result<Tensor>;
}

impl SumRows for Tensor {
    /// The sum of the rows, as a tensor of another's shape.
    fn sum_dim_keepdim(&self, like: &Tensor) -> Result<Tensor> {
        opsmith::sum_dim(self, Some(&[0]))?.mul(like)
    }
}

#[test]
fn random_programs_give_the_same_bits() {
    let mut ran = 0;
    for seed in 1..400 {
        let inputs = [input(seed + 1000), input(seed + 2000)];
        // Starts anew for each kind of run, as programs change it.
        let fresh = || input(seed + 3000);
        let twice = |run: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>, state: &Tensor| {
            drawing(|| {
                opsmith_runtime::random::manual_seed(seed);
                let mut found = Vec::new();
                for _ in 0..2 {
                    found.extend(run(&inputs).unwrap().iter().map(bits));
                }
                found.push(bits(state));
                found
            })
        };
        let state = fresh();
        if drawing(|| program(seed, &inputs, &fresh())).is_err() {
            continue;
        }
        ran += 1;
        let eager = twice(&|x| program(seed, x, &state), &state);
        let choices = Pass::all()
            .map(only)
            .chain(Pass::all().map(|pass| Passes::all().without(pass)))
            .chain([Passes::none(), Passes::all()]);
        // Tiles of their usual size hold the tensors of these programs whole.
        let small = 1 + seed as i64 % 6;
        for (passes, tile) in choices.flat_map(|passes| [(passes.clone(), None), (passes, Some(small))]) {
            let state = fresh();
            let traced = || Graph::trace(|x: &[Tensor]| program(seed, x, &state), [square(), square()]);
            let graph = drawing(traced).unwrap();
            let mut graph = graph.optimize(&passes);
            if let Some(tile) = tile {
                graph = graph.with_tiles(tile);
            }
            if seed % 2 == 0 && passes == Passes::all() {
                graph.set_threads(3);
            }
            let found = twice(&|x| graph.run(x), &state);
            assert!(found == eager, "program {seed} with {passes:?} in tiles of {tile:?}");
        }
    }
    assert!(ran > 300, "{ran} programs ran");
}

#[test]
fn threads_give_the_same_bits() {
    let x = opsmith::rand_generator([96, 96], Some(&Generator::new(1))).unwrap();
    let branches = |x: &[Tensor]| {
        let branch = |start: Tensor| (0..6).try_fold(start, |y, _| y.mm(&x[0])?.tanh());
        let ends = [branch(x[0].clone())?, branch(x[0].sin()?)?, branch(x[0].transpose(0, 1)?)?];
        ends[0].add(&ends[1])?.add(&ends[2])
    };
    let spec = InputSpec::from(&x);
    let graph = Graph::trace(branches, [spec]).unwrap().optimize(&Passes::all());
    let expected = bits(&graph.run(&[&x]).unwrap()[0]);
    let alone = graph.memory().unwrap();
    for threads in [2, 3] {
        let mut graph = graph.clone();
        graph.set_threads(threads);
        // Branches that run together need memory together.
        assert!(graph.memory().unwrap().planned > alone.planned);
        for _ in 0..20 {
            assert_eq!(bits(&graph.run(&[&x]).unwrap()[0]), expected);
        }
    }
}

/// Calls with operands of every kind: of the same shape, rows, columns, numbers, transposed, of other dtypes.
fn gate(x: &[Tensor]) -> Result<Tensor> {
    let shifted = x[0].add(&x[1])?.mul(&x[2])?;
    let gate = shifted.mul(0.5)?.add(&x[3])?.relu()?;
    let mask = gate.gt(0.25)?;
    gate.to_dtype(DType::F64)?.mul(&x[4].transpose(0, 1)?)?.where_(&mask, 0.0)?.sub(&shifted)
}

fn gate_inputs(rows: i64, columns: i64) -> Vec<Tensor> {
    let shapes = [vec![rows, columns], vec![columns], vec![rows, 1], vec![], vec![columns, rows]];
    let numbers = |(seed, shape): (u64, Vec<i64>)| {
        opsmith::rand_generator(shape, Some(&Generator::new(seed))).unwrap().sub(0.5).unwrap()
    };
    (1..).zip(shapes).map(numbers).collect()
}

#[test]
fn fused_calls_keep_their_bits_and_need_memory_for_a_tile_alone() {
    // The last tiles have fewer elements; rows are shorter and longer than a tile.
    for (rows, columns) in [(300, 100), (7, 20_011), (20_011, 3), (3, 8192), (129, 64)] {
        let inputs = gate_inputs(rows, columns);
        let eager = gate(&inputs).unwrap().to_vec::<f64>().unwrap();
        let traced = Graph::trace(gate, &inputs).unwrap();
        let graph = traced.optimize(&Passes::all());
        let report = graph.memory().unwrap();
        let tiled = report.buffers.iter().filter(|buffer| matches!(buffer.place, Place::Tile { .. })).count();
        assert!(
            tiled >= 6 && report.planned == 0,
            "{rows} x {columns}: {tiled} in tiles, {}",
            report.planned
        );
        assert!(report.tile <= 8192 * 32, "{} bytes", report.tile);
        assert!(graph.describe().contains("tile 0"), "{}", graph.describe());
        for threads in [1, 2, 5] {
            opsmith::runtime::parallel::set_num_threads(threads).unwrap();
            for graph in [graph.clone(), graph.clone().with_tiles(1000), traced.optimize(&only(Pass::Fusion))]
            {
                for _ in 0..3 {
                    let found = graph.run(&inputs).unwrap()[0].to_vec::<f64>().unwrap();
                    let same = found.iter().map(|x| x.to_bits()).eq(eager.iter().map(|x| x.to_bits()));
                    assert!(same, "{rows} x {columns} in {threads} threads");
                }
            }
        }
    }
}

#[test]
fn fused_calls_give_memory_of_callers_back() {
    let x = opsmith::ones([10_000]).unwrap();
    let graph = Graph::trace(|x: &[Tensor]| x[0].add(1.0)?.mul(&x[0])?.sub(&x[0]), [&x]).unwrap();
    let graph = graph.optimize(&Passes::all());
    let mut outputs = Vec::new();
    graph.run_into(&[&x], &mut outputs).unwrap();
    assert_eq!(x.storage().references(), 1);
    let kept = outputs.pop().unwrap();
    graph.run_into(&[&opsmith::zeros([10_000]).unwrap()], &mut outputs).unwrap();
    assert_eq!(
        kept.to_vec::<f32>().unwrap(),
        vec![1.0; 10_000],
        "an output that its caller has stays as it is"
    );
}

/// Whatever tile fails first, the error is that of the first call that fails.
#[test]
fn the_error_of_fused_calls_is_that_of_the_first_call() {
    let mut divisors = vec![1i64; 20_000];
    divisors[19_999] = 0;
    let late = Tensor::from_slice(&divisors, &[20_000]).unwrap();
    let early = late.flip([0]).unwrap();
    let function = |x: &[Tensor]| x[0].add(1)?.remainder(&x[1])?.add(1)?.floor_divide(&x[2])?.neg();
    let x = opsmith::ones_like(&late).unwrap();
    let traced = Graph::trace(function, [&x, &x, &x]).unwrap();
    let fused = traced.optimize(&Passes::all());
    assert!(fused.memory().unwrap().tile > 0);
    for inputs in [[&x, &late, &early], [&x, &early, &late], [&x, &x, &late], [&x, &early, &x]] {
        let error = fused.run(&inputs).unwrap_err().to_string();
        assert_eq!(error, traced.run(&inputs).unwrap_err().to_string());
        assert!(error.contains("(20000)") || error.contains("[20000]"), "{error}");
    }
    assert_eq!(fused.run(&[&x, &x, &x]).unwrap()[0].numel(), 20_000, "it runs after an error");
}

/// A call that reads other elements than those that a call before wrote at the same index is not fused with it.
#[test]
fn calls_at_other_indices_are_not_fused() {
    let x = opsmith::rand_generator([150, 150], Some(&Generator::new(3))).unwrap();
    let function = |x: &[Tensor]| {
        let y = x[0].mul(2.0)?.add(1.0)?;
        let z = y.add(&y.transpose(0, 1)?)?;
        z.narrow(0, 0, 1)?.copy_(&x[0].narrow(0, 5, 1)?)?;
        z.mul(&z.narrow(0, 0, 1)?)?.sub(&z)
    };
    let eager = bits(&function(std::slice::from_ref(&x)).unwrap());
    let graph = Graph::trace(function, [&x]).unwrap().optimize(&Passes::all());
    assert!(graph.memory().unwrap().planned > 0);
    assert_eq!(bits(&graph.run(&[&x]).unwrap()[0]), eager);
}

/// The plans of a graph that ran while it was optimised are not those of the graph that comes out.
#[test]
fn a_graph_that_runs_between_passes_runs_after_them() {
    let function = |x: &[Tensor]| {
        let (dead, shared) = (x[0].exp()?, x[0].neg()?);
        drop(dead);
        shared.add(&x[0].neg()?)?.relu()
    };
    let graph = Graph::trace(function, [square()]).unwrap();
    let x = input(3);
    let right = bits(&function(std::slice::from_ref(&x)).unwrap());
    let optimized = graph.optimize_with(&Passes::all(), |pass, before, after| {
        assert_eq!(bits(&before.run(&[&x]).unwrap()[0]), right, "before {pass:?}");
        assert_eq!(bits(&after.run(&[&x]).unwrap()[0]), right, "after {pass:?}");
    });
    assert!(optimized.nodes().len() < graph.nodes().len());
    assert_eq!(bits(&optimized.run(&[&x]).unwrap()[0]), right);
}
