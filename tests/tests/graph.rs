//! Graph mode against eager mode: for every operator and every sample.

use opsmith::autograd::{self, Options};
use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::ErrorKind;
use opsmith_runtime::graph::{Dim, Graph, InputSpec, Pass, Passes};
use opsmith_runtime::op::OpDef;
use opsmith_tests::calls::{bits, call, resized, tensors, with_tensors};
use opsmith_tests::samples::{repeatable, samples};

/// What is different about two results.
fn difference(graph: &[Tensor], eager: &[Tensor]) -> Option<String> {
    if graph.len() != eager.len() {
        return Some(format!("{} outputs in place of {}", graph.len(), eager.len()));
    }
    graph.iter().zip(eager).enumerate().find_map(|(number, (graph, eager))| {
        if (graph.dtype(), graph.shape(), graph.strides()) != (eager.dtype(), eager.shape(), eager.strides())
        {
            return Some(format!(
                "output {number} is {} {:?} {:?} in place of {} {:?} {:?}",
                graph.dtype(),
                graph.shape(),
                graph.strides(),
                eager.dtype(),
                eager.shape(),
                eager.strides()
            ));
        }
        (bits(graph) != bits(eager)).then(|| format!("output {number} is {graph} in place of {eager}"))
    })
}

/// A graph as it was traced, after each pass alone, and after all.
fn with_passes(graph: &Graph) -> Vec<(String, Graph)> {
    let alone = Pass::all().map(|pass| (format!("{pass:?}"), graph.optimize(&Passes::none().with(pass))));
    traced_and_optimised(graph).into_iter().chain(alone).collect()
}

/// A graph as it was traced, and after all passes.
fn traced_and_optimised(graph: &Graph) -> Vec<(String, Graph)> {
    let all = graph.optimize(&Passes::all().frozen());
    vec![("as traced".to_owned(), graph.clone()), ("all passes".to_owned(), all)]
}

/// What is different about the results of graphs, each with what was done to it.
fn differing<'a>(
    op: &'static OpDef,
    graphs: &'a [(String, Graph)],
    inputs: &'a [Tensor],
    eager: &'a [Tensor],
) -> impl Iterator<Item = String> + 'a {
    graphs.iter().filter_map(move |(passes, graph)| {
        let found = match repeatable(op, || graph.run(inputs)) {
            Ok(outs) => difference(&outs, eager),
            Err(error) => Some(error.to_string()),
        };
        found.map(|found| format!("{passes}: {found}"))
    })
}

/// Of how many graphs one is run after each pass alone where running all of them so would take too long.
const SOME: usize = 4;

#[test]
fn every_sample_gives_the_same_bits() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for op in opsmith::LIBRARY.all_ops() {
        if op.host.is_some() {
            continue;
        }
        for dtype in [DType::F64, DType::F32, DType::C128] {
            for (number, args) in samples(op, dtype).into_iter().enumerate() {
                let Ok(eager) = repeatable(op, || call(op, &args)) else { continue };
                let inputs = tensors(&args);
                let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
                let graph = Graph::trace(|inputs: &[Tensor]| call(op, &with_tensors(&args, inputs)), &specs);
                let graphs = match graph {
                    Ok(graph) => with_passes(&graph),
                    Err(error) => {
                        wrong.push(format!("{} {dtype} sample {number}: {error}", op.name));
                        continue;
                    }
                };
                count += graphs.len();
                let wrongs = differing(op, &graphs, &inputs, &eager);
                wrong.extend(wrongs.map(|found| format!("{} {dtype} sample {number}, {found}", op.name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The gradients of a call by all its inputs, of the sum of its results with fixed weights.
fn gradients(op: &'static OpDef, args: &[Value], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let outs = call(op, &with_tensors(args, inputs))?;
    let tracked: Vec<&Tensor> = outs.iter().filter(|out| out.requires_grad()).collect();
    let leaves: Vec<&Tensor> = inputs.iter().filter(|input| input.requires_grad()).collect();
    if tracked.is_empty() {
        return Ok(Vec::new());
    }
    // Made of the results, since how many elements they have may depend on elements.
    let starts: Vec<Tensor> = tracked.iter().map(|out| (out.detach() * 0.3)? + 0.7).collect::<Result<_>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let found = autograd::grad(&tracked, &leaves, &starts, Options::default())?;
    Ok(found.into_iter().flatten().collect())
}

#[test]
fn every_gradient_has_the_same_bits() {
    let mut wrong = Vec::new();
    let (mut count, mut runs) = (0, 0);
    for op in opsmith::LIBRARY.all_ops() {
        if op.host.is_some() {
            continue;
        }
        for dtype in [DType::F64, DType::C128] {
            for (number, args) in samples(op, dtype).into_iter().enumerate() {
                let leaf = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
                    true => tensor.detach().requires_grad_(true).unwrap(),
                    false => tensor.clone(),
                };
                let inputs: Vec<Tensor> = tensors(&args).iter().map(leaf).collect();
                let Ok(eager) = repeatable(op, || gradients(op, &args, &inputs)) else { continue };
                if eager.is_empty() {
                    continue;
                }
                let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
                let graph = Graph::trace(|inputs: &[Tensor]| gradients(op, &args, inputs), &specs);
                count += 1;
                let graphs = match graph {
                    Ok(graph) if count % SOME == 0 => with_passes(&graph),
                    Ok(graph) => traced_and_optimised(&graph),
                    Err(error) => {
                        wrong.push(format!("{} {dtype} sample {number}: {error}", op.name));
                        continue;
                    }
                };
                runs += graphs.len();
                let wrongs = differing(op, &graphs, &inputs, &eager);
                wrong.extend(wrongs.map(|found| format!("{} {dtype} sample {number}, {found}", op.name)));
            }
        }
    }
    println!("{count} gradients, {runs} graphs");
    assert!(wrong.is_empty(), "{} of {runs}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 300, "{count} gradients were compared");
}

/// Sizes in place of those of the samples, by a function of them.
const OTHER_SIZES: [fn(i64) -> i64; 5] = [|size| size, |size| size + 4, |size| 2 * size + 1, |_| 1, |_| 0];

/// One graph for all sizes: what it gives at five of them is what eager mode gives there.
#[test]
fn symbolic_sizes_give_the_same_bits() {
    let (mut wrong, mut traced, mut count, mut specialised, mut refused) = (Vec::new(), 0, 0, 0, 0);
    for op in opsmith::LIBRARY.all_ops() {
        if op.host.is_some() {
            continue;
        }
        for (number, args) in samples(op, DType::F64).into_iter().enumerate() {
            let inputs = tensors(&args);
            let symbol = |&size: &i64| {
                if size > 1 { Dim::from(format!("s{size}").as_str()) } else { Dim::Fixed(size) }
            };
            let spec = |input: &Tensor| InputSpec::new(input.dtype(), input.shape().iter().map(symbol));
            let specs: Vec<InputSpec> = inputs.iter().map(spec).collect();
            let trace = Graph::trace(|inputs: &[Tensor]| call(op, &with_tensors(&args, inputs)), &specs);
            // Attributes of the sample can make an operator refuse other sizes.
            let Ok(graph) = trace else {
                refused += 1;
                continue;
            };
            traced += 1;
            let graphs = if traced % SOME == 0 { with_passes(&graph) } else { traced_and_optimised(&graph) };
            for sizes in OTHER_SIZES {
                let inputs: Result<Vec<Tensor>> = inputs.iter().map(|input| resized(input, sizes)).collect();
                let Ok(inputs) = inputs else { continue };
                let eager = repeatable(op, || call(op, &with_tensors(&args, &inputs)));
                for (passes, graph) in &graphs {
                    count += 1;
                    let problem = match (repeatable(op, || graph.run(&inputs)), &eager) {
                        (Ok(found), Ok(eager)) => difference(&found, eager),
                        (Err(error), _) if error.kind() == ErrorKind::Graph => {
                            specialised += 1;
                            None
                        }
                        (Err(_), Err(_)) => None,
                        (Ok(_), Err(error)) => Some(format!("eager mode refuses: {error}")),
                        (Err(error), Ok(_)) => Some(format!("the graph refuses: {error}")),
                    };
                    wrong.extend(
                        problem.map(|problem| format!("{} sample {number}, {passes}: {problem}", op.name)),
                    );
                }
            }
        }
    }
    println!("{count} runs, {specialised} of them refused by a guard; {refused} samples refuse other sizes");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 2000 && specialised * 10 < count, "{count} runs, {specialised} guarded");
}
