//! Specialisation: graphs for sizes 1 and 0, at which a function may take other steps.
//!
//! In: a graph, and the function it was traced from. Out: the graph with its variants. A view of one row is a copy of
//! two, so a function of a batch may take other steps where a size is 1 or 0. Eager mode takes those, and so does a
//! variant; where the steps are the same there is none.

use std::borrow::Borrow;

use opsmith_runtime::error::Result;
use opsmith_runtime::infer::symbolic::Symbol;
use opsmith_runtime::tensor::Tensor;

use super::sample_points::{self, InputSymbol, Point};
use super::{Dim, InputSpec, Run};
use crate::ir::{Graph, RunState, SymbolSource, Variant};

/// Values of symbols that another variant is for, by name.
pub(crate) type FixedSymbols = Vec<(String, i64)>;

/// With more symbols than this, there would be too many graphs; sizes that would need one are refused.
const MOST_SYMBOLS: usize = 3;

/// The traced function with its inputs, to trace it again.
pub(crate) struct Tracing<'a> {
    pub specs: &'a [InputSpec],
    pub symbols: &'a [InputSymbol],
    /// The sizes it was traced with first.
    pub example: &'a Point,
    pub fixed: &'a FixedSymbols,
    /// Runs the function with sizes from a point.
    pub run: &'a dyn Fn(&Point) -> Result<Run>,
    /// Makes a graph for other inputs.
    pub trace: &'a dyn Fn(Vec<InputSpec>, &FixedSymbols) -> Result<Graph>,
}

/// Makes variants where the function takes other steps, and notes the sizes that the graph is not for.
pub(crate) fn add(graph: &mut Graph, of: &Tracing<'_>) {
    for value in sample_points::SMALL {
        let size = |symbol: usize| value * of.symbols[symbol].multiple_of;
        let open: Vec<usize> = (0..of.symbols.len())
            .filter(|&symbol| {
                let (name, value) = (&of.symbols[symbol].name, size(symbol));
                !of.fixed.iter().any(|(known, fixed)| known == name && *fixed == value)
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
        // Sizes that change nothing alone may do so together.
        if let [first, _, ..] = alike[..] {
            let mut point = of.example.clone();
            alike.iter().for_each(|&symbol| point[symbol] = size(symbol));
            if !(of.run)(&point).is_ok_and(|run| sample_points::agrees(graph, &point, &run)) {
                vary(graph, of, first, size(first));
            }
        }
        // Sizes that elements decide are not known when a variant would have to be chosen.
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
        if matches!(dim, Dim::Symbol { name: known, .. } if known == name) {
            *dim = Dim::Fixed(value);
        }
    }
    // The first variant that matches is taken, so a later one never gets the sizes of an earlier one.
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
    /// The graphs that run in place of this one where a symbol, by name, has a value, because the function takes
    /// other steps there; the first that fits is taken.
    pub fn variants(&self) -> impl Iterator<Item = (&str, i64, &Graph)> {
        self.variants.iter().map(|variant| {
            (self.symbols.infos()[variant.symbol.0 as usize].name.as_str(), variant.value, &variant.graph)
        })
    }

    /// A copy without variants, which did not run yet.
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
            threads: self.threads,
            loaded: self.loaded,
            shape_constants: self.shape_constants.clone(),
            variants: Vec::new(),
            state: RunState::default(),
        }
    }

    /// The variant for some inputs.
    pub(crate) fn variant_for<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Option<&Graph> {
        let fits = |variant: &&Variant| match self.source(variant.symbol) {
            SymbolSource::Input { input, dim } => {
                inputs.get(input).and_then(|input| input.borrow().shape().get(dim).copied())
                    == Some(variant.value)
            }
            SymbolSource::Node { .. } | SymbolSource::Derived => false,
        };
        self.variants.iter().find(fits).map(|variant| &variant.graph)
    }

    /// The graph that runs where symbols have values, and the values of its own symbols.
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
