//! The builder of graphs: calls by names of operators.
//!
//! In: specifications of inputs, and calls. Out: a graph, or the error of every rejected call. The calls are recorded
//! and then traced as a function that makes them, so inference, conversion and composition are those of eager calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use opsmith_runtime::lists::{ListItem, Lists};
use opsmith_runtime::tensor::Tensor;

use super::calls::{Call, replay, resolve};
use super::check::InferredCalls;
use super::unranked::OpenGraph;
use crate::check::GraphErrors;
use crate::ir::Graph;
use crate::trace::InputSpec;
use crate::trace::sample_points::check_ranks;

/// Makes a graph from calls by name, as the documentation of `opsmith` shows.
#[derive(Default)]
pub struct GraphBuilder {
    pub(crate) inputs: Vec<InputSpec>,
    pub(crate) calls: Vec<Call>,
}

/// A tensor of a graph that is being built: an input, or a result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    /// The call, or `None` for an input.
    pub(crate) call: Option<usize>,
    pub(crate) position: usize,
}

impl Handle {
    /// Another result of the same call, by position.
    #[must_use]
    pub fn result(self, position: usize) -> Handle {
        Handle { position, ..self }
    }
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum BuilderArg {
    /// A tensor of the graph.
    Tensor(Handle),
    /// A list of tensors of the graph.
    Tensors(Vec<Handle>),
    /// A list of tensors of the graph of which some may be absent.
    OptionalTensors(Vec<Option<Handle>>),
    /// Any other argument; tensors in it are constants of the graph.
    Value(Value),
}

impl From<Handle> for BuilderArg {
    fn from(handle: Handle) -> BuilderArg {
        BuilderArg::Tensor(handle)
    }
}

impl From<Vec<Handle>> for BuilderArg {
    fn from(handles: Vec<Handle>) -> BuilderArg {
        BuilderArg::Tensors(handles)
    }
}

macro_rules! from_values {
    ($($ty:ty => $variant:ident;)*) => {$(
        impl From<$ty> for BuilderArg {
            fn from(value: $ty) -> BuilderArg {
                BuilderArg::Value(value.into())
            }
        }
    )*};
}

opsmith_runtime::with_value_types!(from_values);

impl From<Value> for BuilderArg {
    fn from(value: Value) -> BuilderArg {
        BuilderArg::Value(value)
    }
}

impl From<&Tensor> for BuilderArg {
    fn from(tensor: &Tensor) -> BuilderArg {
        BuilderArg::Value(tensor.into())
    }
}

impl<T: ListItem> From<Lists<T>> for BuilderArg {
    fn from(lists: Lists<T>) -> BuilderArg {
        BuilderArg::Value(lists.into())
    }
}

impl<T: ListItem> From<Vec<Vec<T>>> for BuilderArg {
    fn from(rows: Vec<Vec<T>>) -> BuilderArg {
        BuilderArg::Value(rows.into())
    }
}

impl GraphBuilder {
    /// A graph without inputs or calls.
    pub fn new() -> GraphBuilder {
        GraphBuilder::default()
    }

    /// Adds an input.
    pub fn input(&mut self, spec: InputSpec) -> Handle {
        self.inputs.push(spec);
        Handle { call: None, position: self.inputs.len() - 1 }
    }

    /// Adds a call of an operator by its full name, with arguments by position. Its errors are reported when the graph
    /// is finished, together with all others.
    #[track_caller]
    pub fn call(&mut self, name: &str, args: impl IntoIterator<Item = BuilderArg>) -> Handle {
        self.call_with(name, args, [])
    }

    /// As [`GraphBuilder::call`], with additional arguments by name.
    #[track_caller]
    pub fn call_with<'a>(
        &mut self,
        name: &str,
        args: impl IntoIterator<Item = BuilderArg>,
        named: impl IntoIterator<Item = (&'a str, BuilderArg)>,
    ) -> Handle {
        self.calls.push(Call {
            name: name.to_owned(),
            args: args.into_iter().collect(),
            named: named.into_iter().map(|(name, arg)| (name.to_owned(), arg)).collect(),
            site: Location::caller(),
        });
        Handle { call: Some(self.calls.len() - 1), position: 0 }
    }

    /// The graph of the calls, with the given outputs.
    ///
    /// # Errors
    /// Every rejected call, in order, with the shapes of its inputs as formulas where sizes are symbols. A call that
    /// needs the result of a rejected one is not among them. Also if the rank of an input is unknown.
    pub fn finish(self, outputs: impl IntoIterator<Item = Handle>) -> Result<Graph, GraphErrors> {
        let outputs: Vec<Handle> = outputs.into_iter().collect();
        check_ranks(&self.inputs, false)
            .map_err(|error| {
                error.with_help("`GraphBuilder::open` makes a graph of these calls for any rank")
            })
            .map_err(GraphErrors::one)?;
        let refused = match self.trace(&self.inputs, &outputs) {
            Ok(graph) => return Ok(graph),
            Err(refused) => refused,
        };
        // Errors of symbolic inference are preferred to those at the sampled sizes, if a call has both.
        let inferred = InferredCalls::of(&self.inputs, &self.calls, &outputs);
        let mut inferred: HashMap<usize, Error> = inferred.errors.into_iter().collect();
        let better = |(call, error)| inferred.remove(&call).unwrap_or(error);
        Err(GraphErrors::several(refused.into_iter().map(better).collect()))
    }

    /// A graph of the calls for inputs of any rank and size, traced when the inputs are known.
    ///
    /// # Errors
    /// Every call that is rejected for all ranks and sizes, as from [`GraphBuilder::finish`].
    pub fn open(self, outputs: impl IntoIterator<Item = Handle>) -> Result<OpenGraph, GraphErrors> {
        OpenGraph::new(self, outputs.into_iter().collect())
    }

    /// The graph for inputs with the given specifications; else the errors, by the number of the call.
    pub(crate) fn trace(
        &self,
        inputs: &[InputSpec],
        outputs: &[Handle],
    ) -> Result<Graph, Vec<(usize, Error)>> {
        let errors = RefCell::new(Vec::new());
        let traced = Graph::trace(
            |inputs: &[Tensor]| {
                let mut results = replay(&self.calls, inputs, &mut |call, args, named| {
                    let _site = internals::enter(call.site);
                    make(&call.name, args, named)
                });
                let outputs = results.all(outputs);
                match outputs {
                    Some(outputs) if results.errors.is_empty() => Ok(outputs),
                    _ => {
                        *errors.borrow_mut() = results.errors;
                        Err(Error::graph("a call was refused"))
                    }
                }
            },
            inputs,
        );
        traced.map_err(|error| match errors.into_inner() {
            none if none.is_empty() => vec![(self.calls.len(), error)],
            mut errors => {
                // For symbolic sizes, tracing adds the sampled sizes to the error.
                for (_, refused) in &mut errors {
                    let noted =
                        error.notes().iter().fold(refused.clone(), |refused, note| refused.with_note(note));
                    *refused = match error.help() {
                        Some(help) if noted.help().is_some() => noted.with_note(help),
                        Some(help) => noted.with_help(help),
                        None => noted,
                    };
                }
                errors
            }
        })
    }
}

fn make(name: &str, args: &[Value], named: &[(String, Value)]) -> Result<Vec<Tensor>> {
    let named: Vec<(&str, Value)> =
        named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let op = resolve(name, args, &named)?;
    let mut tensors = Vec::new();
    for value in boxed::call_definition(op, args, &named)? {
        match value {
            Value::Tensor(tensor) => tensors.push(tensor),
            Value::Tensors(list) => tensors.extend(list),
            other => {
                let text =
                    format!("the operator returns {}, and a graph computes tensors", other.as_arg().kind());
                return Err(Error::graph(text).in_op(op.name, Vec::new()));
            }
        }
    }
    Ok(tensors)
}
