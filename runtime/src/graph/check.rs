//! All mistakes of a graph at once.
//!
//! In: a graph, and values of its symbols. Out: nothing, or every step that inference refuses, each with operator,
//! place, shapes of its inputs and the steps that led there. What depends on a refused step is not reported
//! again.

use std::fmt;

use super::bind::{Binder, check_guards};
use super::ir::{BufferKind, Graph, Node, NodeKind};
use super::sheet::{self, Drawing};
use crate::error::{Error, ErrorKind};

/// Every mistake of a graph.
#[derive(Clone, PartialEq, Eq)]
pub struct GraphErrors(Vec<Error>);

impl GraphErrors {
    /// A list that is not empty.
    pub(super) fn of(errors: Vec<Error>) -> Result<(), GraphErrors> {
        if errors.is_empty() { Ok(()) } else { Err(GraphErrors(errors)) }
    }

    /// One error with all of them in its text, for functions that return one. Not a conversion, since `?` in
    /// closures would have two to choose from.
    #[must_use]
    pub fn into_error(self) -> Error {
        let text = self.to_string();
        match <[Error; 1]>::try_from(self.0) {
            Ok([only]) => only,
            Err(_) => Error::new(ErrorKind::Graph, text),
        }
    }

    /// One mistake.
    pub(super) fn one(error: Error) -> GraphErrors {
        GraphErrors(vec![error])
    }

    /// The mistakes in the order of the graph's steps.
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
    /// Infers every shape and dtype at the sizes that the graph was traced with.
    ///
    /// # Errors
    /// Every step that its operator refuses.
    pub fn check(&self) -> Result<(), GraphErrors> {
        self.check_at(&[])
    }

    /// As [`Graph::check`], where symbols have values, by name.
    ///
    /// # Errors
    /// As [`Graph::check`]; and if there is no symbol of a name, or the graph is not for a size.
    pub fn check_at(&self, symbols: &[(&str, i64)]) -> Result<(), GraphErrors> {
        let (graph, symbols) = self.variant_at(symbols);
        graph.check_where(&graph.values_by_name(&symbols).map_err(GraphErrors::one)?)
    }

    fn check_where(&self, symbols: &[Option<i64>]) -> Result<(), GraphErrors> {
        check_guards(self, symbols).map_err(GraphErrors::one)?;
        let layouts: Vec<_> = self.tensors.iter().map(|info| info.layout.evaluate(symbols)).collect();
        let mut binder = Binder::new(self, symbols);
        binder.start(&layouts).map_err(GraphErrors::one)?;
        let failed = vec![false; self.buffers.len()];
        let mut checker = Checker { binder, failed, errors: Vec::new(), drawing: None };
        for (number, node) in self.nodes.iter().enumerate() {
            checker.node(node, number);
        }
        GraphErrors::of(checker.errors)
    }
}

struct Checker<'a> {
    binder: Binder<'a>,
    /// Buffers whose tensors are not known, since what makes them was refused.
    failed: Vec<bool>,
    errors: Vec<Error>,
    /// Who made what, once there is a mistake.
    drawing: Option<Drawing>,
}

impl Checker<'_> {
    /// Checks a step, which is, or is inside of, the graph's step of a number.
    fn node(&mut self, node: &Node, number: usize) {
        let graph = self.binder.graph;
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
                node.outs.iter().try_for_each(|out| self.binder.tensor(*out).map(drop)).map_err(Some)
            }
            // What elements decide, inference cannot find again.
            _ if node.outs.iter().any(|out| graph.is_found_by_node(*out)) => {
                node.outs.iter().try_for_each(|out| self.binder.tensor(*out).map(drop)).map_err(Some)
            }
            _ => self.binder.node_with_place(node).map_err(Some),
        };
        let Err(error) = result else { return };
        if let Some(error) = error {
            let drawing = self.drawing.get_or_insert_with(|| sheet::drawing(graph));
            let chain = chain(drawing, number);
            self.errors.push(if chain.is_empty() { error } else { error.with_note(chain) });
        }
        for out in &node.outs {
            let buffer = graph.buffer_of(*out).index();
            // Memory from outside is known whatever was to be written to it.
            self.failed[buffer] |= matches!(graph.buffers[buffer].kind, BufferKind::Internal);
        }
    }
}

/// The steps from which a step got its first input, from the last to the first.
fn chain(drawing: &Drawing, number: usize) -> String {
    /// Further back, the steps tell nothing new.
    const MOST: usize = 8;
    let mut at = drawing.boxes.iter().position(|boxed| boxed.step == Some(number));
    let mut links: Vec<String> = Vec::new();
    while let Some(before) = at.and_then(|at| drawing.lines.iter().find(|line| line.to == at))
        && links.len() < MOST
    {
        let boxed = &drawing.boxes[before.from];
        links.push(match boxed.step {
            Some(_) => format!("`{}` at {}", boxed.name, boxed.site),
            None => format!("{} `{}`", boxed.kind.name(), boxed.name),
        });
        at = Some(before.from);
    }
    if links.is_empty() {
        String::new()
    } else {
        format!("its first input came from {}", links.join(", from "))
    }
}
