//! Graph mode against eager mode: the same bits, as traced, after every pass, at other sizes, and from a file.

use std::path::Path;

use opsmith::autograd::{self, Options};
use opsmith::{DType, Error, Result, Tensor, Value};
use opsmith_graph::{Dim, Graph, InputSpec, Pass, Passes};
use opsmith_runtime::ErrorKind;
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::op::OpDef;

use crate::calls::{bits, call, resized, tensors, with_tensors};
use crate::report::Report;
use crate::results::{self, CheckOutcome};
use crate::samples::{arguments, exact_dtype, repeatable};

/// The difference of two results.
pub(super) fn difference(graph: &[Tensor], eager: &[Tensor]) -> Option<String> {
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

/// A graph with the name of its transformation.
pub(super) type Variant = (String, Graph);

/// A graph as traced, after all passes, and fused in tiny tiles; if `thorough`, also after each pass alone.
pub(super) fn variants(graph: &Graph, thorough: bool) -> Vec<Variant> {
    let all = graph.optimize(&Passes::all().frozen());
    let tiled = all.clone().with_tiles(3);
    let mut graphs = vec![
        ("as traced".to_owned(), graph.clone()),
        ("all passes".to_owned(), all),
        ("tiles".to_owned(), tiled),
    ];
    if thorough {
        let alone = |pass| (format!("{pass:?}"), graph.optimize(&Passes::none().with(pass)));
        graphs.extend(Pass::all().map(alone));
    }
    graphs
}

/// Runs graphs and reports results that differ from those of eager mode.
fn compare(
    report: &mut Report,
    op: &'static OpDef,
    what: &str,
    graphs: &[Variant],
    inputs: &[Tensor],
    eager: &[Tensor],
) {
    for (passes, graph) in graphs {
        let found = match repeatable(op, || graph.run(inputs)) {
            Ok(outs) => difference(&outs, eager),
            Err(error) => Some(error.to_string()),
        };
        report
            .compare(found.map(|found| format!("{} ({}), {what}, {passes}: {found}", op.name, op.location)));
    }
}

/// A call that cannot be traced: a failure, except for operators that must know elements when a graph is made.
pub(super) fn untraced(report: &mut Report, op: &OpDef, what: &str, error: &Error) {
    if op.schema.args.iter().any(|arg| arg.value == ValueUse::Required) {
        report.left_out += 1;
    } else {
        report.compare(Some(format!("{} ({}), {what}: {error}", op.name, op.location)));
    }
}

/// Every sample as a graph; after each pass alone for the first of them.
pub fn graphs(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    for dtype in [DType::F64, DType::F32, DType::C128] {
        for (number, args) in arguments(op, dtype).into_iter().enumerate() {
            let Ok(eager) = repeatable(op, || call(op, &args)) else { continue };
            let inputs = tensors(&args);
            let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
            let function = |inputs: &[Tensor]| call(op, &with_tensors(&args, inputs));
            let graph = repeatable(op, || Graph::trace(function, &specs));
            let what = format!("{dtype} sample {number} as a graph");
            match graph {
                Ok(graph) => compare(&mut report, op, &what, &variants(&graph, true), &inputs, &eager),
                Err(error) => untraced(&mut report, op, &what, &error),
            }
        }
    }
    report
}

/// The gradients of a call with respect to all its inputs, of the sum of its results with fixed weights.
pub(super) fn gradients(op: &'static OpDef, args: &[Value], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    gradients_of(&call(op, &with_tensors(args, inputs))?, inputs)
}

/// The gradients of results with respect to all inputs that have one, of their sum with weights that follow from them.
pub(super) fn gradients_of(outs: &[Tensor], inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let tracked: Vec<&Tensor> = outs.iter().filter(|out| out.requires_grad()).collect();
    let leaves: Vec<&Tensor> = inputs.iter().filter(|input| input.requires_grad()).collect();
    if tracked.is_empty() {
        return Ok(Vec::new());
    }
    // Computed from the results, since their sizes may be data-dependent. With weights that are a line of them, gradients of
    // normalised results cancel.
    let start = |out: &&Tensor| {
        let out = out.detach();
        ((&out * &out)? * 0.3)? + 0.7
    };
    let starts: Vec<Tensor> = tracked.iter().map(start).collect::<Result<_>>()?;
    let starts: Vec<Option<&Tensor>> = starts.iter().map(Some).collect();
    let found = autograd::grad(&tracked, &leaves, &starts, Options::default())?;
    Ok(found.into_iter().flatten().collect())
}

/// The gradients of every sample as a graph; after each pass alone for the first of them.
pub fn graph_gradients(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    for dtype in [DType::F64, DType::C128, DType::F32] {
        for (number, args) in arguments(op, dtype).into_iter().enumerate() {
            let leaf = |tensor: &Tensor| match tensor.dtype().is_differentiable() {
                true => tensor.detach().requires_grad_(true),
                false => Ok(tensor.clone()),
            };
            let inputs: Result<Vec<Tensor>> = tensors(&args).iter().map(leaf).collect();
            let Ok(inputs) = inputs else { continue };
            let Ok(eager) = repeatable(op, || gradients(op, &args, &inputs)) else { continue };
            if eager.is_empty() {
                continue;
            }
            let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
            let function = |inputs: &[Tensor]| gradients(op, &args, inputs);
            let graph = repeatable(op, || Graph::trace(function, &specs));
            let what = format!("gradients of {dtype} sample {number} as a graph");
            match graph {
                Ok(graph) => {
                    let graphs = variants(&graph, report.compared == 0);
                    compare(&mut report, op, &what, &graphs, &inputs, &eager);
                }
                Err(error) => untraced(&mut report, op, &what, &error),
            }
        }
    }
    report
}

/// Sizes substituted for those of the samples, as functions of them.
const OTHER_SIZES: [fn(i64) -> i64; 5] = [|size| size, |size| size + 4, |size| 2 * size + 1, |_| 1, |_| 0];

/// One graph for all sizes: its results at five of them against eager mode. Runs that a guard rejects, and samples
/// whose attributes do not allow other sizes, are excluded.
pub fn symbolic_graphs(op: &'static OpDef) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    let dtype = exact_dtype(op).unwrap_or(DType::F64);
    for (number, args) in arguments(op, dtype).into_iter().enumerate() {
        let inputs = tensors(&args);
        let symbol =
            |&size: &i64| if size > 1 { Dim::from(format!("s{size}").as_str()) } else { Dim::Fixed(size) };
        let spec = |input: &Tensor| InputSpec::new(input.dtype(), input.shape().iter().map(symbol));
        let specs: Vec<InputSpec> = inputs.iter().map(spec).collect();
        let function = |inputs: &[Tensor]| call(op, &with_tensors(&args, inputs));
        let Ok(graph) = repeatable(op, || Graph::trace(function, &specs)) else {
            report.left_out += 1;
            continue;
        };
        let graphs = variants(&graph, report.compared == 0);
        for sizes in OTHER_SIZES {
            let inputs: Result<Vec<Tensor>> = inputs.iter().map(|input| resized(input, sizes)).collect();
            let Ok(inputs) = inputs else { continue };
            let eager = repeatable(op, || call(op, &with_tensors(&args, &inputs)));
            for (passes, graph) in &graphs {
                let problem = match (repeatable(op, || graph.run(&inputs)), &eager) {
                    (Ok(found), Ok(eager)) => difference(&found, eager),
                    (Err(error), _) if error.kind() == ErrorKind::Graph => {
                        report.left_out += 1;
                        None
                    }
                    (Err(_), Err(_)) => None,
                    (Ok(_), Err(error)) => Some(format!("eager mode refuses: {error}")),
                    (Err(error), Ok(_)) => Some(format!("the graph refuses: {error}")),
                };
                let what = |problem| {
                    format!(
                        "{} ({}), sample {number} with sizes open, {passes}: {problem}",
                        op.name, op.location
                    )
                };
                report.compare(problem.map(what));
            }
        }
    }
    report
}

/// Graphs of the first samples, saved to a folder and loaded again, give the same results.
pub fn saved_graphs(op: &'static OpDef, folder: &Path) -> Report {
    let mut report = Report::default();
    if op.host.is_some() {
        return report;
    }
    let dtype = exact_dtype(op).unwrap_or(DType::F64);
    for (number, args) in arguments(op, dtype).into_iter().take(2).enumerate() {
        let inputs = tensors(&args);
        let function = |tensors: &[Tensor]| call(op, &with_tensors(&args, tensors));
        let specs = inputs.iter().map(InputSpec::from);
        let Ok(graph) = repeatable(op, || Graph::trace(function, specs)) else { continue };
        let Ok(expected) = repeatable(op, || graph.run(&inputs)) else { continue };
        let loaded = graph.save(folder).and_then(|()| Graph::load(folder));
        let wrong = match loaded.and_then(|loaded| repeatable(op, || loaded.run(&inputs))) {
            Ok(found) => difference(&found, &expected),
            Err(error) => Some(error.to_string()),
        };
        let what = |wrong| format!("{} ({}), sample {number} from a file: {wrong}", op.name, op.location);
        report.compare(wrong.map(what));
    }
    if results::wanted() {
        results::record(op, None, "saved graph", &CheckOutcome::from(&report));
    }
    report
}
