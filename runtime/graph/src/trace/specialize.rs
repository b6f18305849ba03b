//! Specialisation: variants for sizes 1 and 0, at which a function may make other calls.
//!
//! In: a graph, and the function it was traced from. Out: the graph with its variants. A call on one row may be a view
//! where one on two rows is a copy, so a function of a batch may take other steps at size 1 or 0. Eager mode takes
//! those, and so does a variant; where the steps are the same there is none.

use std::borrow::Borrow;

use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Symbol;
use opsmith_runtime::tensor::Tensor;

use super::sample_points::{self, InputSymbol, Point};
use super::{InputSpec, Run};
use crate::ir::{Graph, RunState, SymbolSource, Variant};

/// Values of symbols with another variant, by name.
pub(crate) type FixedSymbols = Vec<(String, i64)>;

/// Maximal number of symbols; more would need too many graphs, so sizes that need one are rejected.
const MOST_SYMBOLS: usize = 3;

/// The traced function with its inputs, to trace it again.
pub(crate) struct Tracing<'a> {
    pub specs: &'a [InputSpec],
    pub symbols: &'a [InputSymbol],
    /// The sizes of the first trace.
    pub example: &'a Point,
    pub fixed: &'a FixedSymbols,
    /// Runs the function with sizes from a point.
    pub run: &'a dyn Fn(&Point) -> Result<Run>,
    /// Traces a graph for other inputs.
    pub trace: &'a dyn Fn(Vec<InputSpec>, &FixedSymbols) -> Result<Graph>,
}

/// Adds variants where the function takes other steps, and guards against sizes that neither the graph nor a variant
/// accepts.
pub(crate) fn add(graph: &mut Graph, of: &Tracing<'_>) {
    for value in sample_points::SMALL {
        let size = |symbol: usize| value * of.symbols[symbol].multiple_of;
        let open: Vec<usize> = (0..of.symbols.len())
            .filter(|&symbol| {
                let (name, value) = (&of.symbols[symbol].name, size(symbol));
                of.symbols[symbol].admits(value)
                    && !of.fixed.iter().any(|(known, fixed)| known == name && *fixed == value)
            })
            .collect();
        let mut alike = Vec::new();
        for &symbol in &open {
            let mut point = of.example.clone();
            point[symbol] = size(symbol);
            match (of.run)(&point) {
                Ok(run) if sample_points::agrees(graph, &point, &run) => alike.push(symbol),
                Ok(_) => vary(graph, of, symbol, size(symbol)),
                Err(_) => refuse(graph, symbol, size(symbol)),
            }
        }
        // Sizes without effect alone may have one together.
        if let [first, _, ..] = alike[..] {
            let mut point = of.example.clone();
            alike.iter().for_each(|&symbol| point[symbol] = size(symbol));
            if !(of.run)(&point).is_ok_and(|run| sample_points::agrees(graph, &point, &run)) {
                vary(graph, of, first, size(first));
            }
        }
        // Data-dependent sizes are unknown when a variant is chosen.
        let found = of.symbols.len()..of.example.len();
        if !found.is_empty() {
            let mut point = of.example.clone();
            point[found.clone()].fill(value);
            if !(of.run)(&point).is_ok_and(|run| sample_points::agrees(graph, &point, &run)) {
                found.for_each(|symbol| refuse(graph, symbol, value));
            }
        }
    }
}

fn vary(graph: &mut Graph, of: &Tracing<'_>, symbol: usize, value: i64) {
    let name = &of.symbols[symbol].name;
    let mut specs = of.specs.to_vec();
    for dim in specs.iter_mut().flat_map(|spec| &mut spec.dims) {
        *dim = dim.with_fixed(name, value);
    }
    // The first matching variant runs, so a later one never gets the sizes of an earlier one.
    let mut fixed = of.fixed.clone();
    fixed.extend(graph.variants.iter().map(|variant| {
        let name = &of.symbols[variant.symbol.0 as usize].name;
        (name.clone(), variant.value)
    }));
    let few = of.symbols.len() <= MOST_SYMBOLS;
    match few.then(|| (of.trace)(specs, &fixed)) {
        Some(Ok(variant)) => {
            graph.variants.push(Variant { symbol: Symbol(symbol as u32), value, graph: variant })
        }
        Some(Err(_)) | None => refuse(graph, symbol, value),
    }
}

fn refuse(graph: &mut Graph, symbol: usize, value: i64) {
    graph.symbols.raise_least(Symbol(symbol as u32), value + 1);
}

impl Graph {
    /// The graphs that run instead of this one for a value of a symbol, by name, because the function takes other steps
    /// there; the first match runs.
    pub fn variants(&self) -> impl Iterator<Item = (&str, i64, &Graph)> {
        self.variants.iter().map(|variant| {
            (self.symbols.infos()[variant.symbol.0 as usize].name.as_str(), variant.value, &variant.graph)
        })
    }

    /// A copy without variants and without state of runs.
    pub(crate) fn bare(&self) -> Graph {
        Graph {
            symbols: self.symbols.clone(),
            sources: self.sources.clone(),
            buffers: self.buffers.clone(),
            tensors: self.tensors.clone(),
            nodes: self.nodes.clone(),
            inputs: self.inputs.clone(),
            input_names: self.input_names.clone(),
            outputs: self.outputs.clone(),
            guards: self.guards.clone(),
            generators: self.generators.clone(),
            grad_inputs: self.grad_inputs.clone(),
            reuse: self.reuse,
            tile: self.tile,
            threads: self.threads,
            loaded: self.loaded,
            shape_constants: self.shape_constants.clone(),
            variants: Vec::new(),
            state: RunState::default(),
        }
    }

    /// The variant for some inputs.
    pub(crate) fn variant_for<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Option<&Graph> {
        self.variant_where(|input, dim| inputs.get(input)?.borrow().shape().get(dim).copied())
    }

    /// The variant for inputs whose sizes a function gives, by the input's position and the dimension.
    pub(crate) fn variant_where(&self, size: impl Fn(usize, usize) -> Option<i64>) -> Option<&Graph> {
        let fits = |variant: &&Variant| match self.source(variant.symbol) {
            SymbolSource::Input { input, dim } => size(input, dim) == Some(variant.value),
            SymbolSource::Node { .. } | SymbolSource::Derived => false,
        };
        self.variants.iter().find(fits).map(|variant| &variant.graph)
    }

    /// The graph that runs at values of symbols, and the values of its own symbols.
    pub(crate) fn variant_at<'a>(&self, given: &[(&'a str, i64)]) -> (&Graph, Vec<(&'a str, i64)>) {
        let fits = |variant: &&Variant| {
            let name = &self.symbols.infos()[variant.symbol.0 as usize].name;
            given.iter().any(|(known, value)| known == name && *value == variant.value)
        };
        match self.variants.iter().find(fits) {
            Some(variant) => {
                let name = &self.symbols.infos()[variant.symbol.0 as usize].name;
                let others: Vec<_> = given.iter().copied().filter(|(known, _)| known != name).collect();
                variant.graph.variant_at(&others)
            }
            None => (self, given.to_vec()),
        }
    }
}
