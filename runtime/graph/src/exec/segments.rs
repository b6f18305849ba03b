//! Segments: the parts of a graph between nodes whose results have data-dependent sizes.
//!
//! In: a graph with such nodes. Out: segments. A segment is a graph of its own, whose inputs are the memory of earlier
//! segments; its sizes are known when it begins, so it is planned and run like any graph. The node at the end of a
//! segment runs as in eager mode, since the size of its result is unknown.

use std::borrow::Borrow;

use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::infer::symbolic::Bindings;
use opsmith_runtime::internals::call;
use opsmith_runtime::internals::{GeneratorInternals as _, Start, TensorInternals as _};
use opsmith_runtime::random::Generator;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::GeneratorStates;
use super::executable::Executable;
use crate::ir::{BufferId, BufferKind, Graph, Node, NodeKind, SymbolSource, TensorId};
use crate::plan::bind::argument;
use crate::plan::fusion::Fusion;
use crate::plan::liveness::Liveness;
use crate::plan::schedule::levels;

/// The nodes between two data-dependent sizes, and the node that ends them.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub graph: Graph,
    /// The buffers of the inputs after those of the whole graph.
    pub given: Vec<BufferId>,
    /// The buffers of the outputs; for the last segment they are those of the graph.
    pub left: Vec<BufferId>,
    /// The node whose results have data-dependent sizes.
    pub last: Option<Node>,
}

/// The segments of a graph; empty if every size is known before it runs.
pub(crate) fn split(graph: &Graph) -> Vec<Segment> {
    let unknown: Vec<TensorId> = graph.sized_by_nodes().collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let stretches = stretches(graph, &unknown);
    let mut made: Vec<bool> =
        graph.buffers.iter().map(|buffer| !matches!(buffer.kind, BufferKind::Internal)).collect();
    let count = stretches.len();
    let mut segments = Vec::with_capacity(count);
    let needs: Vec<Vec<bool>> =
        stretches.iter().map(|(nodes, last)| touched(graph, nodes.iter().chain(last))).collect();
    for (number, (nodes, last)) in stretches.into_iter().enumerate() {
        let is_last = number + 1 == count;
        let mut segment = Graph { nodes, state: Executable::whole(), ..graph.bare() };
        let internal = |id: usize| matches!(graph.buffers[id].kind, BufferKind::Internal);
        // The data-dependent sizes are read from the shapes of their tensors.
        let sized: Vec<BufferId> = unknown.iter().map(|id| graph.buffer_of(*id)).collect();
        let is_output = |id: usize| graph.outputs.iter().any(|output| graph.buffer_of(*output).index() == id);
        let mut given: Vec<BufferId> = Vec::new();
        for id in 0..graph.buffers.len() {
            let buffer = BufferId(id as u32);
            let wanted = needs[number][id] || sized.contains(&buffer) || (is_last && is_output(id));
            if internal(id) && made[id] && wanted {
                segment.buffers[id].kind = BufferKind::Input(segment.inputs.len());
                segment.inputs.push(graph.buffers[id].root);
                segment.input_names.push(format!("buffer {id}"));
                given.push(buffer);
            }
        }
        read_sizes_of_inputs(&mut segment);
        let liveness = Liveness::of(&segment, &levels(&segment, &Fusion::default()));
        let later = |id: usize| needs[number + 1..].iter().any(|needs| needs[id]) || is_output(id);
        let of_last = |id: usize| last.as_ref().is_some_and(|node| touched(graph, std::iter::once(node))[id]);
        let mut left = Vec::new();
        if !is_last {
            for (id, &made) in made.iter().enumerate() {
                let new = internal(id) && !made && liveness.live_ranges[id].is_some();
                if new && (later(id) || of_last(id)) {
                    left.push(BufferId(id as u32));
                }
            }
            segment.outputs = left.iter().map(|buffer| graph.buffers[buffer.index()].root).collect();
        }
        let touched_here = touched(graph, segment.nodes.iter().chain(&last));
        made.iter_mut().zip(touched_here).for_each(|(made, touched)| *made |= touched);
        segments.push(Segment { graph: segment, given, left, last });
    }
    segments
}

/// Replaces sources of sizes that earlier segments found by the inputs that pass their tensors.
fn read_sizes_of_inputs(segment: &mut Graph) {
    for source in &mut segment.sources {
        if let SymbolSource::Node { tensor, dim } = *source
            && let Some(input) = segment.inputs.iter().position(|input| *input == tensor)
        {
            *source = SymbolSource::Input { input, dim };
        }
    }
}

/// The nodes of each segment, and the node with data-dependent sizes at its end; the last segment has none.
fn stretches(graph: &Graph, unknown: &[TensorId]) -> Vec<(Vec<Node>, Option<Node>)> {
    let mut stretches = Vec::new();
    let mut nodes = Vec::new();
    for node in &graph.nodes {
        if node.outs.iter().any(|out| unknown.contains(out)) {
            stretches.push((std::mem::take(&mut nodes), Some(node.clone())));
        } else {
            nodes.push(node.clone());
        }
    }
    stretches.push((nodes, None));
    stretches
}

fn touched<'a>(graph: &Graph, nodes: impl Iterator<Item = &'a Node>) -> Vec<bool> {
    let mut touched = vec![false; graph.buffers.len()];
    let mut touch = |id: TensorId| touched[graph.buffer_of(id).index()] = true;
    for node in nodes {
        node.for_each_read(&mut touch);
        node.for_each_write(&mut touch);
        node.outs.iter().copied().for_each(&mut touch);
        node.args.iter().for_each(|arg| arg.for_each_tensor(&mut touch));
    }
    touched
}

/// Runs the segments in order.
pub(crate) fn run<T: Borrow<Tensor>>(
    graph: &Graph,
    segments: &[Segment],
    inputs: &[T],
    outputs: &mut Vec<Tensor>,
    places: &mut GeneratorStates,
) -> Result<()> {
    let mut memory: Vec<Option<Tensor>> = vec![None; graph.buffers.len()];
    for segment in segments {
        let given: Option<Vec<&Tensor>> =
            segment.given.iter().map(|buffer| memory[buffer.index()].as_ref()).collect();
        let given =
            given.ok_or_else(|| Error::graph("a segment of the graph needs what no earlier one made"))?;
        let all: Vec<&Tensor> = inputs.iter().map(Borrow::borrow).chain(given).collect();
        let Some(last) = &segment.last else { return segment.graph.run_drawing(&all, outputs, places) };
        let mut results = Vec::new();
        segment.graph.run_drawing(&all, &mut results, places)?;
        let symbols = segment.graph.symbol_values(&all);
        for (buffer, result) in segment.left.iter().zip(results) {
            memory[buffer.index()] = Some(result);
        }
        for (number, input) in graph.inputs.iter().enumerate() {
            // Views of an input refer to its elements in row-major order.
            let whole = inputs[number].borrow().contiguous_untracked()?.detach();
            memory[graph.buffer_of(*input).index()] = Some(whole);
        }
        for (out, result) in last.outs.iter().zip(run_last(graph, last, &symbols, &memory, places)?) {
            memory[graph.buffer_of(*out).index()] = Some(result);
        }
    }
    Err(Error::graph("the graph has no last segment"))
}

/// Runs the node that ends a segment as in eager mode.
fn run_last(
    graph: &Graph,
    node: &Node,
    symbols: &Bindings,
    memory: &[Option<Tensor>],
    places: &mut GeneratorStates,
) -> Result<SmallVec<[Tensor; 1]>> {
    let NodeKind::Call { op, .. } = &node.kind else {
        return Err(Error::graph("only calls have results of unknown size"));
    };
    let mut tensor = |id: TensorId| {
        let info = graph.tensor(id);
        let buffer = &graph.buffers[info.buffer.index()];
        let whole = match &buffer.kind {
            BufferKind::Constant(whole) => Some(whole),
            _ => memory[info.buffer.index()].as_ref(),
        };
        let unknown = || Error::graph("a step needs what no earlier one made");
        let whole = whole.ok_or_else(unknown)?;
        if buffer.root == id {
            return Ok(whole.clone());
        }
        let mut layout = info.layout.evaluate(symbols).ok_or_else(unknown)?;
        layout.offset = layout.offset.checked_add(whole.layout().offset).ok_or_else(unknown)?;
        layout.check_inside((whole.storage().bytes() / info.dtype.size()) as i64)?;
        // Views of constants may have another dtype than their base, which covers the whole memory.
        // SAFETY: the layout was just checked to lie inside the memory, all of which was written.
        Ok(unsafe { Tensor::from_parts(whole.storage().clone(), layout, info.dtype, info.device) })
    };
    let mut values =
        node.args.iter().map(|arg| argument(arg, symbols, &mut tensor)).collect::<Result<Vec<Value>>>()?;
    let mut own: SmallVec<[(usize, Generator); 1]> = SmallVec::new();
    for value in &mut values {
        if let Value::Generator(generator) = value
            && let Some(Start { number, .. }) = generator.start()
        {
            *generator = Generator::at(places[number]);
            own.push((number, generator.clone()));
        }
    }
    let args: Vec<Arg<'_>> = values.iter().map(Value::as_arg).collect();
    let outs = opsmith_runtime::autograd::no_grad(|| call::invoke(op, &args))
        .map_err(|error| error.with_note(format!("called at {}", node.site)))?;
    own.iter().for_each(|(number, own)| places[*number] = own.place());
    for (&id, out) in node.outs.iter().zip(&outs) {
        check_found(graph, id, out, symbols).map_err(|error| {
            error.in_op(op.name, Vec::new()).with_note(format!("called at {}", node.site))
        })?;
    }
    Ok(outs)
}

/// Checks that a result has the sizes known before, and that sizes unified by tracing are equal.
fn check_found(graph: &Graph, id: TensorId, out: &Tensor, symbols: &Bindings) -> Result<()> {
    let expected = &graph.tensor(id).layout.sizes;
    if expected.len() != out.dim() {
        return Err(Error::graph(format!("the result has the shape {}", ShapeText(out.shape()))));
    }
    for (dim, (size, &real)) in expected.iter().zip(out.shape()).enumerate() {
        let source = size.as_symbol().map(|symbol| graph.source(symbol));
        if source == Some(SymbolSource::Node { tensor: id, dim }) {
            continue;
        }
        let known = size.bind(symbols);
        if known.is_some_and(|known| known != real) {
            let formula = graph.text(size);
            return Err(Error::graph(format!(
                "dimension {dim} of the result has the size {real}, and `{formula}` is {}",
                known.unwrap_or(real)
            ))
            .with_help("the function takes the two to be equal: it could not be traced where they differ"));
        }
    }
    Ok(())
}
