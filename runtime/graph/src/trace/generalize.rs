//! Generalisation: one graph from several traces of a function.
//!
//! In: the trace of each run ([`Run`]) and its sizes. Out: a graph in which numbers that differ between runs are
//! formulas; if that is impossible, the graph of the first run, guarded to its sizes.

use opsmith_runtime::arg::Value;
use opsmith_runtime::infer::symbolic::{Condition, Guard, Origin, Size, Symbol, SymbolInfo, Symbols};
use opsmith_runtime::layout::Layout;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::compare::{contents_equal, kinds_equal};
use super::fit::FormulaFinder;
use super::recorder::{DataDependentSize, RawStorage, RawTrace};
use super::sample_points::{InputSymbol, Point};
use super::{InputSpec, Run};
use crate::ir::{
    Argument, Buffer, BufferId, BufferKind, Graph, Node, NodeKind, Region, SymbolSource, SymbolicLayout,
    SymbolicScalar, TensorId, TensorInfo, exactly,
};

/// The reason why runs have no common graph.
struct Differs(String);

type Merged<T> = Result<T, Differs>;

/// A thing of each run.
type OfRuns<T> = SmallVec<[T; 8]>;

/// Merges runs at the given points. `unified` gives the equalities of data-dependent sizes; with `divides`, numbers may
/// be formulas of quotients. Also returns whether formulas were missing.
pub(crate) fn merge(
    specs: &[InputSpec],
    symbols: &[InputSymbol],
    points: &[Point],
    unified: &[usize],
    runs: &[Run],
    divides: bool,
) -> (Graph, bool) {
    let mut table = table(symbols, &points[0], &runs[0].raw.unknown);
    // A formula must use the representative of equal sizes only.
    let of_inputs = 0..symbols.len();
    let own = unified.iter().enumerate().filter(|(size, tie)| size == *tie);
    let free: Vec<usize> = of_inputs.chain(own.map(|(size, _)| symbols.len() + size)).collect();
    let divided = divides.then_some(symbols.len());
    let merger = Merger { numbers: FormulaFinder::new(points, &free, &table.symbols, divided) };
    let merged = merger.graph(runs);
    let unfitted = merger.numbers.has_unfitted();
    let mut graph = match merged {
        Ok(graph) => {
            let symbols = merger.numbers.into_symbols();
            table.sources.resize(symbols.len(), SymbolSource::Derived);
            Graph { symbols, sources: table.sources, ..graph }
        }
        Err(Differs(reason)) => {
            let single = Merger { numbers: FormulaFinder::new(&points[..1], &free, &table.symbols, None) };
            let graph =
                single.graph(&runs[..1]).unwrap_or_else(|_| unreachable!("one run agrees with itself"));
            let guards = guards(&table.symbols, &points[0], &reason);
            Graph { symbols: table.symbols, sources: table.sources, guards, ..graph }
        }
    };
    // Inputs have the layouts that were declared: few sizes within bounds determine no formula, and a guard rejects
    // another size of a graph without formulas, with its reason.
    for (spec, id) in specs.iter().zip(graph.inputs.clone()) {
        graph.tensors[id.index()].layout = spec.layout(symbols);
    }
    graph.grad_inputs = (0..specs.len()).filter(|&number| specs[number].requires_grad).collect();
    let named = specs.iter().enumerate();
    graph.input_names =
        named.map(|(number, spec)| spec.name.clone().unwrap_or_else(|| format!("input{number}"))).collect();
    (graph, unfitted)
}

/// A graph of symbols only: those of inputs, then data-dependent sizes.
fn table(symbols: &[InputSymbol], examples: &Point, unknown: &[DataDependentSize]) -> Graph {
    let mut table = Graph::default();
    for (symbol, example) in symbols.iter().zip(examples) {
        let InputSymbol { name, multiple_of, least, most, input, dim } = symbol;
        let info = SymbolInfo::new(name, Origin::Input);
        let most = if *most == i64::MAX { Size::Unknown } else { Size::Const(*most) };
        let info =
            SymbolInfo { multiple_of: *multiple_of, least: *least, most, example: Some(*example), ..info };
        table.add_symbol(info, SymbolSource::Input { input: *input, dim: *dim });
    }
    for (number, size) in unknown.iter().enumerate() {
        let &DataDependentSize { tensor, dim, example, most } = size;
        // With symbols among the inputs, the bound holds at this point only. A bound of 1 or 0 was not traced with,
        // since functions may make other calls there.
        let (most, example) = match symbols.is_empty() && most != i64::MAX {
            true => (Size::Const(most), example.min(most)),
            false => (Size::Unknown, example),
        };
        let info = SymbolInfo::new(format!("u{number}"), Origin::Run);
        let info = SymbolInfo { most, example: Some(example), ..info };
        table.add_symbol(info, SymbolSource::Node { tensor, dim });
    }
    table
}

/// Guards that fix every symbol to one size.
fn guards(symbols: &Symbols, sizes: &Point, reason: &str) -> Vec<Guard> {
    let guard = |((symbol, info), size): ((Symbol, &SymbolInfo), &i64)| Guard {
        condition: Condition::Equal(Size::from(symbol), Size::Const(*size)),
        op: "",
        reason: format!("`{}` was specialised: {reason}", info.name),
    };
    symbols.all().zip(symbols.infos()).zip(sizes).map(guard).collect()
}

struct Merger {
    numbers: FormulaFinder,
}

impl Merger {
    fn graph(&self, runs: &[Run]) -> Merged<Graph> {
        let raws: Vec<&RawTrace> = runs.iter().map(|run| &run.raw).collect();
        let nodes: Vec<&[Node<i64>]> = raws.iter().map(|raw| raw.nodes.as_slice()).collect();
        // Nodes are compared first: they show where runs diverge, tensors only that they do.
        let nodes = self.nodes(&nodes)?;
        let first = &runs[0];
        if runs.iter().any(|run| {
            run.raw.tensors.len() != first.raw.tensors.len()
                || run.raw.storages.len() != first.raw.storages.len()
                || run.outputs != first.outputs
        }) {
            return Err(Differs("it decides which tensors the function works with".to_owned()));
        }
        let mut graph = Graph {
            tensors: Vec::with_capacity(first.raw.tensors.len()),
            nodes,
            inputs: first.inputs.clone(),
            outputs: first.outputs.clone(),
            generators: first.raw.generators.clone(),
            shape_constants: first.raw.shape_constants.clone(),
            ..Graph::default()
        };
        let derived = derived(&graph.nodes, &first.raw);
        for (number, derived) in derived.into_iter().enumerate() {
            graph.tensors.push(self.tensor(&raws, number, derived)?);
        }
        for number in 0..first.raw.storages.len() {
            let storages: OfRuns<&RawStorage> = raws.iter().map(|raw| &raw.storages[number]).collect();
            let input =
                first.inputs.iter().position(|id| first.raw.tensors[id.index()].buffer.index() == number);
            let buffer = buffer(&mut graph, number as u32, input, &storages)?;
            graph.buffers.push(buffer);
        }
        Ok(graph)
    }

    fn tensor(&self, raws: &[&RawTrace], number: usize, derived: bool) -> Merged<TensorInfo> {
        let first = &raws[0].tensors[number];
        let layouts: OfRuns<&Layout> = raws.iter().map(|raw| &raw.tensors[number].layout).collect();
        let differs = || Differs("it decides the layout of a tensor".to_owned());
        let alike = raws.iter().all(|raw| {
            let tensor = &raw.tensors[number];
            tensor.dtype == first.dtype
                && tensor.buffer == first.buffer
                && tensor.layout.dim() == first.layout.dim()
        });
        if !alike {
            return Err(differs());
        }
        let fit = |of: &dyn Fn(&Layout) -> i64| -> Merged<Size> {
            match self.numbers.fit(layouts.iter().map(|layout| of(layout))) {
                Some(size) => Ok(size),
                // Binding infers it again when the sizes are known.
                None if derived => Ok(Size::Unknown),
                None => Err(differs()),
            }
        };
        let all = |of: &dyn Fn(&Layout, usize) -> i64| {
            (0..first.layout.dim()).map(|dim| fit(&|layout| of(layout, dim))).collect::<Merged<SmallVec<_>>>()
        };
        Ok(TensorInfo {
            buffer: first.buffer,
            dtype: first.dtype,
            device: first.device,
            layout: SymbolicLayout {
                sizes: all(&|layout, dim| layout.sizes[dim])?,
                strides: all(&|layout, dim| layout.strides[dim])?,
                offset: fit(&|layout| layout.offset)?,
            },
        })
    }

    fn nodes(&self, runs: &[&[Node<i64>]]) -> Merged<Vec<Node>> {
        let first = runs[0];
        let nodes = (0..first.len()).map(|number| {
            let nodes: Option<OfRuns<&Node<i64>>> = runs.iter().map(|run| run.get(number)).collect();
            let nodes = nodes
                .ok_or_else(|| Differs(format!("at other sizes {} is not done", place(&first[number]))))?;
            self.node(&nodes)
        });
        let nodes = exactly(first.len(), nodes)?;
        match runs.iter().find_map(|run| run.get(first.len())) {
            Some(extra) => Err(Differs(format!("at other sizes {} is done, too", place(extra)))),
            None => Ok(nodes),
        }
    }

    fn node(&self, nodes: &[&Node<i64>]) -> Merged<Node> {
        let first = nodes[0];
        let same = |node: &&Node<i64>| kinds_equal(&node.kind, &first.kind) && node.outs == first.outs;
        if let Some(other) = nodes.iter().find(|node| !same(node)) {
            return Err(Differs(format!(
                "at other sizes {} is done in place of {}",
                place(other),
                place(first)
            )));
        }
        let args = (0..first.args.len()).map(|position| {
            let args: OfRuns<&Argument<i64>> = nodes.iter().map(|node| &node.args[position]).collect();
            self.argument(&args).ok_or_else(|| {
                let name = first.kind.op().map_or("its argument", |op| op.schema.args[position].name);
                Differs(format!("no formula of the sizes gives `{name}` of {}", place(first)))
            })
        });
        let args = exactly(first.args.len(), args)?;
        let numbers: OfRuns<Vec<&i64>> = nodes.iter().map(|node| node.kind.numbers()).collect();
        let mut numbers = (0..numbers[0].len()).map(|at| {
            let fitted = self.numbers.fit(numbers.iter().map(|numbers| *numbers[at]));
            fitted.ok_or_else(|| Differs(format!("no formula gives the steps of {}", place(first))))
        });
        let mut regions = (0..first.kind.regions().len()).map(|at| {
            let runs = nodes.iter().map(|node| node.kind.regions()[at].nodes.as_slice());
            Ok(Region { nodes: self.nodes(&runs.collect::<Vec<_>>())? })
        });
        let missing = "as many as the first run has";
        let kind = first.kind.with(|| numbers.next().expect(missing), || regions.next().expect(missing))?;
        Ok(Node { kind, args, outs: first.outs.clone(), site: first.site.clone() })
    }

    fn argument(&self, args: &[&Argument<i64>]) -> Option<Argument> {
        match args[0] {
            Argument::Tensor(id) => {
                let same = |arg: &&Argument<i64>| matches!(arg, Argument::Tensor(other) if other == id);
                args.iter().all(same).then_some(Argument::Tensor(*id))
            }
            Argument::Tensors(ids) => {
                let same = |arg: &&Argument<i64>| matches!(arg, Argument::Tensors(others) if others == ids);
                args.iter().all(same).then(|| Argument::Tensors(ids.clone()))
            }
            Argument::OptionalTensors(ids) => {
                let same =
                    |arg: &&Argument<i64>| matches!(arg, Argument::OptionalTensors(others) if others == ids);
                args.iter().all(same).then(|| Argument::OptionalTensors(ids.clone()))
            }
            Argument::Value(_) => {
                let values = args.iter().map(|arg| match arg {
                    Argument::Value(value) => Some(value),
                    _ => None,
                });
                self.value(&values.collect::<Option<OfRuns<&Value>>>()?)
            }
            // A run records its numbers as values; this function determines whether they depend on sizes.
            Argument::Int(_) | Argument::Ints(_) | Argument::Scalar(_) | Argument::Float(_) => None,
        }
    }

    fn value(&self, values: &[&Value]) -> Option<Argument> {
        let first = values[0];
        if values.iter().all(|value| value.same_bits(first)) {
            return Some(Argument::Value(first.clone()));
        }
        match first {
            Value::Int(_) => {
                let numbers = values.iter().map(|value| match value {
                    Value::Int(number) => Some(*number),
                    _ => None,
                });
                self.numbers.fit(numbers.collect::<Option<Vec<_>>>()?.into_iter()).map(Argument::Int)
            }
            Value::Ints(list) => {
                let formula = |position: usize| {
                    let numbers = values.iter().map(|value| match value {
                        Value::Ints(numbers) if numbers.len() == list.len() => Some(numbers[position]),
                        _ => None,
                    });
                    self.numbers.fit(numbers.collect::<Option<Vec<_>>>()?.into_iter())
                };
                (0..list.len()).map(formula).collect::<Option<Vec<_>>>().map(Argument::Ints)
            }
            Value::Float(_) => self.scalar(values).map(Argument::Float),
            Value::Scalar(_) => self.scalar(values).map(Argument::Scalar),
            _ => None,
        }
    }

    fn scalar(&self, values: &[&Value]) -> Option<SymbolicScalar> {
        let numbers = values.iter().map(|value| match value {
            Value::Float(number) => Some(Scalar::Float(*number)),
            Value::Scalar(number) => Some(*number),
            _ => None,
        });
        let numbers = numbers.collect::<Option<Vec<Scalar>>>()?;
        if matches!(numbers[0], Scalar::Int(_)) {
            let whole = numbers.iter().map(|number| match number {
                Scalar::Int(number) => Some(*number),
                _ => None,
            });
            return self.numbers.fit(whole.collect::<Option<Vec<_>>>()?.into_iter()).map(SymbolicScalar::Int);
        }
        let floats = numbers.iter().map(|number| match number {
            Scalar::Float(number) => Some(*number),
            _ => None,
        });
        let floats = floats.collect::<Option<Vec<f64>>>()?;
        // Integers up to here are exact floats.
        const EXACT: f64 = (1i64 << 53) as f64;
        let whole = |number: f64| (number.trunc() == number && number.abs() < EXACT).then_some(number as i64);
        if let Some(whole) = floats.iter().map(|number| whole(*number)).collect::<Option<Vec<_>>>() {
            return self.numbers.fit(whole.into_iter()).map(SymbolicScalar::Float);
        }
        let inverse = floats.iter().map(|number| {
            let inverse = whole((1.0 / number).round())?;
            (1.0 / inverse as f64 == *number).then_some(inverse)
        });
        self.numbers.fit(inverse.collect::<Option<Vec<_>>>()?.into_iter()).map(SymbolicScalar::Reciprocal)
    }
}

/// Whether binding can infer each tensor again: new results of calls, and views by operators.
fn derived(nodes: &[Node], raw: &RawTrace) -> Vec<bool> {
    let mut found = vec![false; raw.tensors.len()];
    mark_derived(nodes, raw, &mut found);
    found
}

fn mark_derived(nodes: &[Node], raw: &RawTrace, found: &mut [bool]) {
    for node in nodes {
        match node.kind {
            NodeKind::View { .. } => node.outs.iter().for_each(|out| found[out.index()] = true),
            NodeKind::Call { .. } => {
                for out in &node.outs {
                    let storage = &raw.storages[raw.tensors[out.index()].buffer.index()];
                    found[out.index()] |= storage.tensors[0] == out.0 && storage.storage.is_meta();
                }
            }
            _ => {}
        }
        for region in node.kind.regions() {
            mark_derived(&region.nodes, raw, found);
        }
    }
}

fn buffer(graph: &mut Graph, number: u32, input: Option<usize>, storages: &[&RawStorage]) -> Merged<Buffer> {
    let first = storages[0];
    if let Some(input) = input {
        return Ok(Buffer { kind: BufferKind::Input(input), root: TensorId(first.tensors[0]) });
    }
    if first.storage.is_meta() {
        return Ok(Buffer { kind: BufferKind::Internal, root: TensorId(first.tensors[0]) });
    }
    if !storages.iter().all(|other| contents_equal(&first.storage, &other.storage)) {
        return Err(Differs("the elements of a tensor that the function makes depend on it".to_owned()));
    }
    let (dtype, device) = {
        let info = graph.tensor(TensorId(first.tensors[0]));
        (info.dtype, info.device)
    };
    let layout = Layout::contiguous(&[(first.storage.bytes() / dtype.size()) as i64]);
    // SAFETY: the layout covers the storage's memory, which its creator has written, or the part of it under tensors.
    let whole = unsafe { Tensor::from_parts(first.storage.clone(), layout.clone(), dtype, device) };
    let root = TensorId(graph.tensors.len() as u32);
    graph.tensors.push(TensorInfo {
        buffer: BufferId(number),
        dtype,
        device,
        layout: SymbolicLayout::of(&layout),
    });
    Ok(Buffer { kind: BufferKind::Constant(whole), root })
}

fn place(node: &Node<i64>) -> String {
    let name = node.kind.op().map_or("a copy", |op| op.name);
    format!("`{name}` at {}", node.site)
}
