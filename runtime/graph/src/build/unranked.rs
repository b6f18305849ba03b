//! Graphs of calls for inputs of unknown rank.
//!
//! In: calls by name, and inputs whose sizes or rank may be unknown. Out: the metas of all tensors before there are
//! inputs; for given inputs, graphs traced for their rank, which are cached.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Meta, Symbols};
use opsmith_runtime::tensor::Tensor;

use super::builder::{GraphBuilder, Handle};
use super::calls::chain;
use super::check::InferredCalls;
use super::unranked_view;
use crate::check::GraphErrors;
use crate::check::infer::Checked;
use crate::ir::Graph;
use crate::plan::bind::bind;
use crate::show::dot;
use crate::show::html;
use crate::show::table;
use crate::trace::sample_points::{check_ranks, name_unknown_dims};
use crate::trace::{Dim, InputSpec, input_name};

/// A graph of calls by name whose inputs may have any number of dimensions, made by [`GraphBuilder::open`].
///
/// It can be checked and described without inputs. A run traces the calls for the ranks of its inputs, with a symbol
/// for each size not given as a number, or for the exact sizes if symbols are not possible; both graphs are cached.
pub struct OpenGraph {
    pub(crate) builder: GraphBuilder,
    pub(crate) outputs: Vec<Handle>,
    pub(crate) inferred: InferredCalls,
    graphs: Mutex<Graphs>,
}

/// Capacity of the cache from shapes to graphs.
const KEPT_SHAPES: usize = 64;

#[derive(Default)]
struct Graphs {
    /// Graphs by the ranks of all inputs; `None` where sizes cannot be symbols.
    by_rank: HashMap<Vec<usize>, Option<Arc<Graph>>>,
    by_shape: HashMap<Vec<Vec<i64>>, Arc<Graph>>,
}

impl fmt::Debug for OpenGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenGraph of {} calls", self.builder.calls.len())
    }
}

impl OpenGraph {
    pub(crate) fn new(mut builder: GraphBuilder, outputs: Vec<Handle>) -> Result<OpenGraph, GraphErrors> {
        check_ranks(&builder.inputs, true).map_err(GraphErrors::one)?;
        builder.inputs = name_unknown_dims(builder.inputs);
        let mut inferred = InferredCalls::of(&builder.inputs, &builder.calls, &outputs);
        let errors = std::mem::take(&mut inferred.errors);
        GraphErrors::of(errors.into_iter().map(|(_, error)| error).collect())?;
        Ok(OpenGraph { builder, outputs, inferred, graphs: Mutex::default() })
    }

    /// The conditions on unknown sizes and ranks. Errors at all sizes and ranks were reported when the graph was made.
    pub fn check(&self) -> &Checked {
        &self.inferred.inference.checked
    }

    /// The metas of the outputs.
    pub fn outputs(&self) -> Vec<&Meta> {
        let known = |handle: &Handle| match handle.call {
            None => self.inferred.inputs.get(handle.position),
            Some(call) => self.inferred.of_calls[call].as_ref()?.get(handle.position),
        };
        self.outputs.iter().filter_map(known).collect()
    }

    /// The symbols in shapes of [`OpenGraph::outputs`].
    pub fn symbols(&self) -> &Symbols {
        &self.inferred.inference.context.symbols
    }

    /// A table of every tensor: its maker, dtype, shape, layout, bytes, and the range of calls that use it. Sizes are
    /// numbers, formulas, or −1 if unknown; a shape of unknown rank is (-2).
    pub fn describe(&self) -> String {
        let text = table::table(&unranked_view::view_model(self));
        text + "memory: planned when ranks and sizes are known\n"
    }

    /// The graph as one page to open in a browser, as [`Graph::to_html`].
    pub fn to_html(&self) -> String {
        html::page(&unranked_view::view_model(self), &[], None)
    }

    /// The graph for Graphviz, as [`Graph::to_dot`].
    pub fn to_dot(&self) -> String {
        dot::text(&unranked_view::view_model(self))
    }

    /// Runs the calls on inputs of any rank.
    ///
    /// # Errors
    /// As [`OpenGraph::graph_for`] and [`Graph::run`].
    pub fn run<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        self.graph_for(inputs)?.run(inputs)
    }

    /// The graph for inputs of such shapes, traced at first use.
    ///
    /// # Errors
    /// If the inputs do not match the graph's specifications, or an operator rejects them.
    pub fn graph_for<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Arc<Graph>> {
        let specs = &self.builder.inputs;
        if inputs.len() != specs.len() {
            let text = format!("the graph has {} inputs, {} were given", specs.len(), inputs.len());
            return Err(Error::graph(text));
        }
        for (number, (spec, input)) in specs.iter().zip(inputs).enumerate() {
            let (input, any) = (input.borrow(), spec.is_of_any_rank());
            if input.dtype() != spec.dtype || !any && input.dim() != spec.dims.len() {
                let dims = if any { "any rank".to_owned() } else { format!("rank {}", spec.dims.len()) };
                return Err(Error::graph(format!(
                    "input `{}` is {} of rank {}, and the graph takes {} of {dims}",
                    input_name(specs, number),
                    input.dtype(),
                    input.dim(),
                    spec.dtype
                )));
            }
        }
        let shapes: Vec<Vec<i64>> = inputs.iter().map(|input| input.borrow().shape().to_vec()).collect();
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = graphs.by_shape.get(&shapes) {
            return Ok(Arc::clone(graph));
        }
        let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
        let of_rank = graphs.by_rank.entry(ranks).or_insert_with(|| self.trace_ranks(&shapes).map(Arc::new));
        let serves = |graph: &&mut Arc<Graph>| {
            let mut graph: &Graph = graph;
            while let Some(variant) = graph.variant_for(inputs) {
                graph = variant;
            }
            bind(graph, graph.symbol_values(inputs)).is_ok()
        };
        let graph = match of_rank.as_mut().filter(serves) {
            Some(graph) => Arc::clone(graph),
            // The graph with symbols may accept fewer sizes than the calls.
            None => Arc::new(self.trace_shapes(inputs)?),
        };
        if graphs.by_shape.len() >= KEPT_SHAPES {
            graphs.by_shape.clear();
        }
        graphs.by_shape.insert(shapes, Arc::clone(&graph));
        Ok(graph)
    }

    /// The graph for ranks, with a symbol for each size not given as a number; `None` if there is no such graph.
    fn trace_ranks(&self, shapes: &[Vec<i64>]) -> Option<Graph> {
        let ranked =
            self.builder.inputs.iter().zip(shapes).map(|(spec, shape)| match spec.is_of_any_rank() {
                true => InputSpec { dims: vec![Dim::Unknown; shape.len()], ..spec.clone() },
                false => spec.clone(),
            });
        self.builder.trace(&ranked.collect::<Vec<_>>(), &self.outputs).ok()
    }

    /// The graph for the sizes of inputs.
    fn trace_shapes<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Graph> {
        let sized = self.builder.inputs.iter().zip(inputs).map(|(spec, input)| {
            let dims = input.borrow().shape().iter().map(|size| Dim::Fixed(*size)).collect();
            InputSpec { dims, ..spec.clone() }
        });
        let specs: Vec<InputSpec> = sized.collect();
        self.builder.trace(&specs, &self.outputs).map_err(|errors| {
            let errors = errors.into_iter().map(|(call, error)| {
                match chain(&self.builder.calls, &self.builder.inputs, call) {
                    none if none.is_empty() => error,
                    chain => error.with_note(chain),
                }
            });
            GraphErrors::several(errors.collect()).into_error()
        })
    }
}
