//! Building a graph call by call, by names of operators.
//!
//! In: what inputs are like, and calls. Out: a graph, or every call that is refused. The calls are noted and then
//! traced as a function that makes them, so inference, conversion and composition are those of every call.

use std::cell::RefCell;
use std::panic::Location;

use super::check::GraphErrors;
use super::ir::Graph;
use super::recorder;
use super::trace::InputSpec;
use crate::arg::Value;
use crate::boxed;
use crate::error::{Error, Result};
use crate::library::{self, Form};
use crate::op::OpDef;
use crate::tensor::Tensor;

/// Makes a graph from calls by name.
///
/// ```ignore
/// let mut builder = GraphBuilder::new();
/// let x = builder.input(InputSpec::new(DType::F32, ["batch".into(), 64.into()]));
/// let y = builder.call("mul.Tensor", [x.into(), x.into()]);
/// let graph = builder.finish([y])?;
/// ```
#[derive(Default)]
pub struct GraphBuilder {
    inputs: Vec<InputSpec>,
    calls: Vec<Call>,
}

/// A tensor of a graph that is being built: an input, or a result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    /// The call, or none if it is an input.
    call: Option<usize>,
    position: usize,
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
    /// Anything else; tensors in it are constants of the graph.
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

impl<V: Into<Value>> From<V> for BuilderArg {
    fn from(value: V) -> BuilderArg {
        BuilderArg::Value(value.into())
    }
}

struct Call {
    name: String,
    args: Vec<BuilderArg>,
    named: Vec<(String, BuilderArg)>,
    site: &'static Location<'static>,
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

    /// Adds a call of an operator by its full name, with arguments by position. What is wrong with it is said
    /// when the graph is finished, together with everything else.
    #[track_caller]
    pub fn call(&mut self, name: &str, args: impl IntoIterator<Item = BuilderArg>) -> Handle {
        self.call_with(name, args, [])
    }

    /// As [`GraphBuilder::call`], with arguments by name, too.
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
    /// Every call that is refused, in order. A call that needs the result of a refused one is not among them.
    pub fn finish(self, outputs: impl IntoIterator<Item = Handle>) -> Result<Graph, GraphErrors> {
        let outputs: Vec<Handle> = outputs.into_iter().collect();
        let errors = RefCell::new(Vec::new());
        let traced = Graph::trace(
            |inputs: &[Tensor]| {
                let results = self.replay(inputs)?;
                let mut found = results.1;
                let tensors: Vec<Option<Tensor>> =
                    outputs.iter().map(|output| results.0.get(inputs, *output, &mut found)).collect();
                if found.is_empty()
                    && let Some(tensors) = tensors.into_iter().collect::<Option<Vec<_>>>()
                {
                    return Ok(tensors);
                }
                *errors.borrow_mut() = found;
                Err(Error::graph("a call was refused"))
            },
            &self.inputs,
        );
        GraphErrors::of(errors.into_inner())?;
        traced.map_err(GraphErrors::one)
    }

    fn replay(&self, inputs: &[Tensor]) -> Result<(Results, Vec<Error>)> {
        let mut results = Results(Vec::with_capacity(self.calls.len()));
        let mut errors = Vec::new();
        for call in &self.calls {
            let made = match results.arguments(inputs, call, &mut errors) {
                Some((args, named)) => {
                    let _site = recorder::enter(call.site);
                    make(&call.name, &args, &named).map_err(|error| {
                        errors
                            .push(error.with_note(format!("called at {}", super::ir::Site::Here(call.site))));
                    })
                }
                None => Err(()),
            };
            results.0.push(made.ok());
        }
        Ok((results, errors))
    }
}

/// The results of each call; none of one that was refused, or needs one that was.
struct Results(Vec<Option<Vec<Tensor>>>);

impl Results {
    fn get(&self, inputs: &[Tensor], handle: Handle, errors: &mut Vec<Error>) -> Option<Tensor> {
        let (list, what) = match handle.call {
            None => (Some(inputs), "input".to_owned()),
            Some(call) => (self.0.get(call)?.as_deref(), format!("result of call {call}")),
        };
        let list = list?;
        let found = list.get(handle.position).cloned();
        if found.is_none() {
            let text =
                format!("there is no {what} with the position {}: there are {}", handle.position, list.len());
            errors.push(Error::graph(text));
        }
        found
    }

    #[allow(clippy::type_complexity, reason = "arguments by position and by name, as calls take them")]
    fn arguments(
        &self,
        inputs: &[Tensor],
        call: &Call,
        errors: &mut Vec<Error>,
    ) -> Option<(Vec<Value>, Vec<(String, Value)>)> {
        let mut value = |arg: &BuilderArg| {
            Some(match arg {
                BuilderArg::Tensor(handle) => Value::Tensor(self.get(inputs, *handle, errors)?),
                BuilderArg::Tensors(handles) => Value::Tensors(
                    handles.iter().map(|handle| self.get(inputs, *handle, errors)).collect::<Option<_>>()?,
                ),
                BuilderArg::OptionalTensors(handles) => {
                    let mut list = Vec::with_capacity(handles.len());
                    for handle in handles {
                        list.push(match handle {
                            Some(handle) => Some(self.get(inputs, *handle, errors)?),
                            None => None,
                        });
                    }
                    Value::OptionalTensors(list)
                }
                BuilderArg::Value(value) => value.clone(),
            })
        };
        let args = call.args.iter().map(&mut value).collect::<Option<Vec<_>>>()?;
        let named = call.named.iter().map(|(name, arg)| Some((name.clone(), value(arg)?)));
        Some((args, named.collect::<Option<Vec<_>>>()?))
    }
}

fn make(name: &str, args: &[Value], named: &[(String, Value)]) -> Result<Vec<Tensor>> {
    let op = find(name)?;
    let named: Vec<(&str, Value)> =
        named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
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

/// The operator of a name among those of all libraries in the program.
pub(super) fn find(name: &str) -> Result<&'static OpDef> {
    match library::linked().find_map(|library| library.find(name)) {
        Some((op, Form::Functional)) => Ok(op),
        Some((op, _)) => Err(Error::argument(format!("`{name}` writes to tensors that exist"))
            .with_help(format!("a graph is built of functional forms: `{}`", op.name))),
        None => Err(Error::new(
            crate::error::ErrorKind::NotFound,
            format!("no library in this program has an operator `{name}`"),
        )
        .with_help(
            "give the full name with overload, e.g. `family.Tensor`, and link the crate that declares it",
        )),
    }
}
