//! Graphs with sizes that depend on elements: a graph for each stretch between the steps that find them.
//!
//! In: a graph in which a step makes a tensor of unknown size. Out: stages. A stage is a graph of its own, whose
//! inputs are the memory that earlier stages left; its sizes are known when it begins, so it is planned and runs
//! like any graph. Between two stages a step runs as in eager mode, since nobody knows how much memory it needs.

use std::borrow::Borrow;

use smallvec::SmallVec;

use super::arrange::Uses;
use super::bind::argument;
use super::ir::{BufferId, BufferKind, Graph, Node, NodeKind, SymbolSource, TensorId};
use super::levels::moments;
use super::run::Places;
use crate::arg::{Arg, Value};
use crate::call;
use crate::error::{Error, Result, ShapeText};
use crate::infer::symbolic::Symbol;
use crate::random::{Generator, Start};
use crate::tensor::Tensor;

/// A stretch of a graph, and the step that ends it.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    graph: Graph,
    /// The buffer of each input after those of the whole graph.
    given: Vec<BufferId>,
    /// The buffer of each output, unless it is the last stage.
    left: Vec<BufferId>,
    /// The step whose results have unknown sizes.
    last: Option<Node>,
}

/// The stages of a graph; none if every size is known before it runs.
pub(super) fn split(graph: &Graph) -> Vec<Stage> {
    let unknown: Vec<TensorId> = graph
        .symbols
        .iter()
        .filter_map(|symbol| match symbol.source {
            SymbolSource::Node { tensor, .. } => Some(tensor),
            SymbolSource::Input { .. } | SymbolSource::Quotient { .. } => None,
        })
        .collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let mut stretches: Vec<(Vec<Node>, Option<Node>)> = Vec::new();
    let mut nodes = Vec::new();
    for node in &graph.nodes {
        if node.outs.iter().any(|out| unknown.contains(out)) {
            stretches.push((std::mem::take(&mut nodes), Some(node.clone())));
        } else {
            nodes.push(node.clone());
        }
    }
    stretches.push((nodes, None));
    let mut made: Vec<bool> =
        graph.buffers.iter().map(|buffer| !matches!(buffer.kind, BufferKind::Internal)).collect();
    let count = stretches.len();
    let mut stages = Vec::with_capacity(count);
    let needs: Vec<Vec<bool>> =
        stretches.iter().map(|(nodes, last)| touched(graph, nodes.iter().chain(last))).collect();
    for (number, (nodes, last)) in stretches.into_iter().enumerate() {
        let is_last = number + 1 == count;
        let mut stage = Graph { nodes, ..graph.bare() };
        let internal = |id: usize| matches!(graph.buffers[id].kind, BufferKind::Internal);
        // The sizes that were found are read off the tensors they belong to.
        let sized: Vec<BufferId> = unknown.iter().map(|id| graph.buffer_of(*id)).collect();
        let is_output = |id: usize| graph.outputs.iter().any(|output| graph.buffer_of(*output).index() == id);
        let mut given: Vec<BufferId> = Vec::new();
        for id in 0..graph.buffers.len() {
            let buffer = BufferId(id as u32);
            let wanted = needs[number][id] || sized.contains(&buffer) || (is_last && is_output(id));
            if internal(id) && made[id] && wanted {
                stage.buffers[id].kind = BufferKind::Input(stage.inputs.len());
                stage.inputs.push(graph.buffers[id].root);
                stage.input_names.push(format!("buffer {id}"));
                given.push(buffer);
            }
        }
        for symbol in &mut stage.symbols {
            if let SymbolSource::Node { tensor, dim } = symbol.source
                && let Some(input) = stage.inputs.iter().position(|input| *input == tensor)
            {
                symbol.source = SymbolSource::Input { input, dim };
            }
        }
        let uses = Uses::of(&stage, &moments(&stage));
        let later = |id: usize| needs[number + 1..].iter().any(|needs| needs[id]) || is_output(id);
        let of_last = |id: usize| last.as_ref().is_some_and(|node| touched(graph, std::iter::once(node))[id]);
        let mut left = Vec::new();
        if !is_last {
            for (id, &made) in made.iter().enumerate() {
                let new = internal(id) && !made && uses.spans[id].is_some();
                if new && (later(id) || of_last(id)) {
                    left.push(BufferId(id as u32));
                }
            }
            stage.outputs = left.iter().map(|buffer| graph.buffers[buffer.index()].root).collect();
        }
        let touched_here = touched(graph, stage.nodes.iter().chain(&last));
        made.iter_mut().zip(touched_here).for_each(|(made, touched)| *made |= touched);
        stages.push(Stage { graph: stage, given, left, last });
    }
    stages
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

/// Runs the stages one after the other.
pub(super) fn run<T: Borrow<Tensor>>(
    graph: &Graph,
    stages: &[Stage],
    inputs: &[T],
    outputs: &mut Vec<Tensor>,
    places: &mut Places,
) -> Result<()> {
    let mut memory: Vec<Option<Tensor>> = vec![None; graph.buffers.len()];
    for stage in stages {
        let given: Option<Vec<&Tensor>> =
            stage.given.iter().map(|buffer| memory[buffer.index()].as_ref()).collect();
        let given =
            given.ok_or_else(|| Error::graph("a stage of the graph needs what no earlier one made"))?;
        let all: Vec<&Tensor> = inputs.iter().map(Borrow::borrow).chain(given).collect();
        let Some(last) = &stage.last else { return stage.graph.run_drawing(&all, outputs, places) };
        let mut results = Vec::new();
        stage.graph.run_drawing(&all, &mut results, places)?;
        let symbols: Vec<Option<i64>> = stage
            .graph
            .symbol_values(&all)
            .into_iter()
            .map(|(value, known)| known.then_some(value))
            .collect();
        for (buffer, result) in stage.left.iter().zip(results) {
            memory[buffer.index()] = Some(result);
        }
        for (number, input) in graph.inputs.iter().enumerate() {
            // Views of an input are of its elements in row-major order.
            let whole = inputs[number].borrow().contiguous_untracked()?.detach();
            memory[graph.buffer_of(*input).index()] = Some(whole);
        }
        for (out, result) in last.outs.iter().zip(run_last(graph, last, &symbols, &memory, places)?) {
            memory[graph.buffer_of(*out).index()] = Some(result);
        }
    }
    Err(Error::graph("the graph has no last stage"))
}

/// Runs the step that ends a stage as in eager mode.
fn run_last(
    graph: &Graph,
    node: &Node,
    symbols: &[Option<i64>],
    memory: &[Option<Tensor>],
    places: &mut Places,
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
        // A dtype of its own is what views of constants have, whose root is all of the memory.
        // SAFETY: the layout was just found to lie inside the memory, all of which was written.
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
    let outs = crate::autograd::no_grad(|| call::invoke(op, &args))
        .map_err(|error| error.with_note(format!("called at {}", node.site)))?;
    own.iter().for_each(|(number, own)| places[*number] = own.place());
    for (&id, out) in node.outs.iter().zip(&outs) {
        check_found(graph, id, out, symbols).map_err(|error| {
            error.in_op(op.name, Vec::new()).with_note(format!("called at {}", node.site))
        })?;
    }
    Ok(outs)
}

/// Whether a result has the sizes that were known before, and as many as tracing found to be equal.
fn check_found(graph: &Graph, id: TensorId, out: &Tensor, symbols: &[Option<i64>]) -> Result<()> {
    let expected = &graph.tensor(id).layout.sizes;
    if expected.len() != out.dim() {
        return Err(Error::graph(format!("the result has the shape {}", ShapeText(out.shape()))));
    }
    for (dim, (size, &real)) in expected.iter().zip(out.shape()).enumerate() {
        let source = |symbol: Symbol| graph.symbols[symbol.0 as usize].source;
        if size.as_symbol().is_some_and(|symbol| source(symbol) == SymbolSource::Node { tensor: id, dim }) {
            continue;
        }
        let known = size.evaluate(|symbol| *symbols.get(symbol.0 as usize)?);
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
