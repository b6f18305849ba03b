//! Checking: all mistakes of a graph at once.
//!
//! In: a graph, with symbolic sizes or with values of its symbols. Out: the conditions on sizes, or the error of every
//! node that inference rejects, each with operator, call site, shapes of its inputs and the nodes before it. Nodes that
//! depend on a rejected one are not reported.

mod agreement;
pub(crate) mod infer;
mod symbolic;

use std::collections::HashSet;
use std::fmt;

use opsmith_runtime::error::{Error, ErrorKind, Result};
use opsmith_runtime::infer::symbolic::Bindings;

use crate::ir::{BufferKind, Graph, Node, NodeKind};
use crate::plan::bind::{Binder, check_guards};
use crate::show::model::{self, Drawing};
use infer::{Checked, Requirement};
use symbolic::SymbolicGraph;

/// Every mistake of a graph.
#[derive(Clone, PartialEq, Eq)]
pub struct GraphErrors(Vec<Error>);

impl GraphErrors {
    /// An error unless the list is empty.
    pub(crate) fn of(errors: Vec<Error>) -> Result<(), GraphErrors> {
        if errors.is_empty() { Ok(()) } else { Err(GraphErrors(errors)) }
    }

    /// Several mistakes.
    pub(crate) fn several(errors: Vec<Error>) -> GraphErrors {
        GraphErrors(errors)
    }

    /// One error with all mistakes in its text, for functions that return one error. Not a `From` conversion, since `?`
    /// in closures would then be ambiguous.
    #[must_use]
    pub fn into_error(self) -> Error {
        let text = self.to_string();
        match <[Error; 1]>::try_from(self.0) {
            Ok([only]) => only,
            Err(_) => Error::new(ErrorKind::Graph, text),
        }
    }

    /// One mistake.
    pub(crate) fn one(error: Error) -> GraphErrors {
        GraphErrors(vec![error])
    }

    /// The mistakes in the order of the graph's nodes.
    pub fn errors(&self) -> &[Error] {
        &self.0
    }
}

impl fmt::Display for GraphErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(f, "the graph has 1 mistake\n\n{only}"),
            errors => {
                write!(f, "the graph has {} mistakes", errors.len())?;
                errors
                    .iter()
                    .enumerate()
                    .try_for_each(|(number, error)| write!(f, "\n\n{}. {error}", number + 1))
            }
        }
    }
}

impl fmt::Debug for GraphErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for GraphErrors {}

impl Graph {
    /// Infers every shape and dtype for all sizes of the graph: a node that fails at each of them is an error, and a
    /// condition that only some sizes satisfy is in the result. `println!("{}", graph.check()?)` shows it.
    ///
    /// # Errors
    /// Every node that its operator rejects.
    pub fn check(&self) -> Result<Checked, GraphErrors> {
        let mut checked = self.check_itself()?;
        for (symbol, value, graph) in self.variants() {
            let of_variant = graph.check()?;
            checked.to_confirm += of_variant.to_confirm;
            checked.requirements.extend(of_variant.requirements.into_iter().map(|requirement| {
                let condition = format!("{} where {symbol} = {value}", requirement.condition);
                Requirement { condition, ..requirement }
            }));
        }
        Ok(checked)
    }

    fn check_itself(&self) -> Result<Checked, GraphErrors> {
        let example = self.values_by_name(&[]).map_err(GraphErrors::one)?;
        let at_example = self.errors_where(&example)?;
        if self.symbols.is_empty() {
            return GraphErrors::of(at_example.into_iter().map(|(_, error)| error).collect())
                .map(|()| Checked::default());
        }
        // An error of inference at one size need not be an error at all.
        let refused: HashSet<usize> = at_example.iter().map(|(visited, _)| *visited).collect();
        let (mut errors, formulas) = walk(SymbolicGraph::new(self, &refused));
        for (visited, error) in at_example {
            if !errors.iter().any(|(known, _)| *known == visited) {
                errors.push((visited, error));
            }
        }
        errors.sort_by_key(|(visited, _)| *visited);
        GraphErrors::of(errors.into_iter().map(|(_, error)| error).collect())?;
        Ok(formulas.inference.checked)
    }

    /// As [`Graph::check`], where symbols have values, by name.
    ///
    /// # Errors
    /// As [`Graph::check`]; and if a name is not a symbol's, or the graph does not accept a size.
    pub fn check_at(&self, symbols: &[(&str, i64)]) -> Result<(), GraphErrors> {
        let (graph, symbols) = self.variant_at(symbols);
        let symbols = graph.values_by_name(&symbols).map_err(GraphErrors::one)?;
        GraphErrors::of(graph.errors_where(&symbols)?.into_iter().map(|(_, error)| error).collect())
    }

    /// The mistakes at values of the symbols, each with the number of its node among all visited ones.
    fn errors_where(&self, symbols: &Bindings) -> Result<Vec<(usize, Error)>, GraphErrors> {
        check_guards(self, symbols).map_err(GraphErrors::one)?;
        let mut binder = Binder::new(self, symbols);
        binder.start().map_err(GraphErrors::one)?;
        Ok(walk(binder).0)
    }
}

/// Inference of a graph, node by node.
pub(crate) trait Steps<'a> {
    fn graph(&self) -> &'a Graph;

    /// Infers a node without regions; `visited` is its number among all visited nodes.
    ///
    /// # Errors
    /// Errors of the operator, with the call site.
    fn step(&mut self, node: &Node, visited: usize) -> Result<()>;

    /// Takes the results of a node from the graph, without inference.
    ///
    /// # Errors
    /// If their layouts are invalid.
    fn results(&mut self, node: &Node) -> Result<()>;
}

impl<'a> Steps<'a> for Binder<'a> {
    fn graph(&self) -> &'a Graph {
        self.graph
    }

    fn step(&mut self, node: &Node, _visited: usize) -> Result<()> {
        self.node_with_place(node)
    }

    fn results(&mut self, node: &Node) -> Result<()> {
        node.outs.iter().try_for_each(|out| self.tensor(*out).map(drop))
    }
}

/// Visits every node. Returns the mistakes, each with the number of its node among all visited ones.
fn walk<'a, S: Steps<'a>>(steps: S) -> (Vec<(usize, Error)>, S) {
    let graph = steps.graph();
    let failed = vec![false; graph.buffers.len()];
    let mut checker = Checker { steps, failed, visited: 0, errors: Vec::new(), drawing: None };
    for (number, node) in graph.nodes.iter().enumerate() {
        checker.node(node, number);
    }
    (checker.errors, checker.steps)
}

struct Checker<S> {
    steps: S,
    /// Buffers whose tensors are unknown, since the node that makes them was rejected.
    failed: Vec<bool>,
    visited: usize,
    errors: Vec<(usize, Error)>,
    /// The graph's boxes and edges, computed at the first mistake.
    drawing: Option<Drawing>,
}

impl<'a, S: Steps<'a>> Checker<S> {
    /// Checks a node that is, or lies in a region of, the top-level node `number`.
    fn node(&mut self, node: &Node, number: usize) {
        self.visited += 1;
        let visited = self.visited;
        let graph = self.steps.graph();
        let mut unknown = false;
        let failed = &self.failed;
        node.args
            .iter()
            .for_each(|arg| arg.for_each_tensor(|id| unknown |= failed[graph.buffer_of(id).index()]));
        let result = match &node.kind {
            _ if unknown => Err(None),
            NodeKind::Cond { .. } | NodeKind::While { .. } | NodeKind::Scan { .. } => {
                for region in node.kind.regions() {
                    region.nodes.iter().for_each(|inside| self.node(inside, number));
                }
                self.steps.results(node).map_err(Some)
            }
            // Data-dependent sizes cannot be inferred again.
            _ if node.outs.iter().any(|out| graph.is_found_by_node(*out)) => {
                self.steps.results(node).map_err(Some)
            }
            _ => self.steps.step(node, visited).map_err(Some),
        };
        let Err(error) = result else { return };
        if let Some(error) = error {
            let drawing = self.drawing.get_or_insert_with(|| model::drawing(graph));
            let chain = chain(drawing, number);
            self.errors.push((visited, if chain.is_empty() { error } else { error.with_note(chain) }));
        }
        for out in &node.outs {
            let buffer = graph.buffer_of(*out).index();
            // The layout of memory from outside is known even if a write to it was rejected.
            self.failed[buffer] |= matches!(graph.buffers[buffer].kind, BufferKind::Internal);
        }
    }
}

/// The nodes that lead to a node's first input, from the last to the first.
fn chain(drawing: &Drawing, number: usize) -> String {
    let mut at = drawing.boxes.iter().position(|boxed| boxed.step == Some(number));
    let mut links: Vec<String> = Vec::new();
    while let Some(before) = at.and_then(|at| drawing.edges.iter().find(|line| line.to == at))
        && links.len() < FURTHEST_BACK
    {
        let boxed = &drawing.boxes[before.from];
        links.push(match boxed.step {
            Some(_) => format!("`{}` at {}", boxed.name, boxed.site),
            None => format!("{} `{}`", boxed.kind.name(), boxed.name),
        });
        at = Some(before.from);
    }
    chain_text(&links)
}

/// Maximal length of a chain of nodes; earlier nodes add no information.
pub(crate) const FURTHEST_BACK: usize = 8;

/// The note of a chain, from the last link to the first; empty if there is none.
pub(crate) fn chain_text(links: &[String]) -> String {
    match links {
        [] => String::new(),
        links => format!("its first input came from {}", links.join(", from ")),
    }
}
