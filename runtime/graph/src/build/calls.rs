//! Deferred calls by name.
//!
//! In: recorded calls, and a function that makes one. Out: the results of each call, and the error of every rejected
//! one. The function may trace a call, or only infer it: then results are meta tensors.

use std::panic::Location;

use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use opsmith_runtime::library::{self, Form};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

use super::builder::{BuilderArg, Handle};
use crate::check::{FURTHEST_BACK, chain_text};
use crate::ir::Site;
use crate::trace::{InputSpec, input_name};

/// A recorded call.
pub(crate) struct Call {
    pub name: String,
    pub args: Vec<BuilderArg>,
    pub named: Vec<(String, BuilderArg)>,
    pub site: &'static Location<'static>,
}

/// A function that makes a call, with arguments by position and by name.
pub(crate) type Make<'a> = dyn FnMut(&Call, &[Value], &[(String, Value)]) -> Result<Vec<Tensor>> + 'a;

/// Makes every call that does not need the result of a rejected one.
pub(crate) fn replay<'a>(calls: &'a [Call], inputs: &'a [Tensor], make: &mut Make<'_>) -> Results<'a> {
    let mut results = Results { inputs, of_calls: Vec::with_capacity(calls.len()), errors: Vec::new() };
    for (number, call) in calls.iter().enumerate() {
        let made = results.arguments(number, call).and_then(|(args, named)| {
            let refused = |error: Error| {
                let error = error.with_note(format!("called at {}", Site::Here(call.site)));
                results.errors.push((number, error));
            };
            make(call, &args, &named).map_err(refused).ok()
        });
        results.of_calls.push(made);
    }
    results
}

/// The results of calls.
pub(crate) struct Results<'a> {
    inputs: &'a [Tensor],
    /// The results of each call; `None` for a call that was rejected or needs one that was.
    pub of_calls: Vec<Option<Vec<Tensor>>>,
    /// Errors, by the number of the call.
    pub errors: Vec<(usize, Error)>,
}

type Arguments = (Vec<Value>, Vec<(String, Value)>);

impl Results<'_> {
    /// The tensors of handles; `None` if one does not exist.
    pub fn all(&mut self, handles: &[Handle]) -> Option<Vec<Tensor>> {
        let last = self.of_calls.len();
        // All are looked up, so that every missing one is reported.
        let found: Vec<Option<Tensor>> = handles.iter().map(|handle| self.get(last, *handle)).collect();
        found.into_iter().collect()
    }

    /// A tensor that a call uses, given the call's number.
    fn get(&mut self, asked_by: usize, handle: Handle) -> Option<Tensor> {
        let (list, what) = match handle.call {
            None => (Some(self.inputs), "input".to_owned()),
            Some(call) => (self.of_calls.get(call)?.as_deref(), format!("result of call {call}")),
        };
        let list = list?;
        let found = list.get(handle.position).cloned();
        if found.is_none() {
            let text =
                format!("there is no {what} with the position {}: there are {}", handle.position, list.len());
            self.errors.push((asked_by, Error::graph(text)));
        }
        found
    }

    fn arguments(&mut self, number: usize, call: &Call) -> Option<Arguments> {
        let args = call.args.iter().map(|arg| self.value(number, arg)).collect::<Option<Vec<_>>>()?;
        let named = call.named.iter().map(|(name, arg)| Some((name.clone(), self.value(number, arg)?)));
        Some((args, named.collect::<Option<Vec<_>>>()?))
    }

    fn value(&mut self, number: usize, arg: &BuilderArg) -> Option<Value> {
        Some(match arg {
            BuilderArg::Tensor(handle) => Value::Tensor(self.get(number, *handle)?),
            BuilderArg::Tensors(handles) => {
                Value::Tensors(handles.iter().map(|handle| self.get(number, *handle)).collect::<Option<_>>()?)
            }
            BuilderArg::OptionalTensors(handles) => {
                let mut list = Vec::with_capacity(handles.len());
                for handle in handles {
                    list.push(match handle {
                        Some(handle) => Some(self.get(number, *handle)?),
                        None => None,
                    });
                }
                Value::OptionalTensors(list)
            }
            BuilderArg::Value(value) => value.clone(),
        })
    }
}

/// The tensors of the graph that a call uses, in order.
pub(crate) fn handles(call: &Call) -> Vec<Handle> {
    let each = |arg: &BuilderArg| match arg {
        BuilderArg::Tensor(handle) => vec![*handle],
        BuilderArg::Tensors(handles) => handles.clone(),
        BuilderArg::OptionalTensors(handles) => handles.iter().flatten().copied().collect(),
        BuilderArg::Value(_) => Vec::new(),
    };
    call.args.iter().chain(call.named.iter().map(|(_, arg)| arg)).flat_map(each).collect()
}

/// The calls that lead to a call's first tensor, as a note; empty if it has none.
pub(crate) fn chain(calls: &[Call], inputs: &[InputSpec], number: usize) -> String {
    let mut links = Vec::new();
    let mut at = Some(number);
    while let Some(handle) = at.and_then(|at| calls.get(at)).and_then(|call| handles(call).first().copied())
        && links.len() < FURTHEST_BACK
    {
        links.push(match handle.call.and_then(|call| calls.get(call)) {
            Some(call) => format!("`{}` at {}", call.name, Site::Here(call.site)),
            None => format!("input `{}`", input_name(inputs, handle.position)),
        });
        at = handle.call;
    }
    chain_text(&links)
}

/// The operator of a name among all libraries in the program, by the rule of calls by name.
pub(crate) fn resolve(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<&'static OpDef> {
    match internals::choose_linked(name, args, named)? {
        (op, Form::Functional) => Ok(op),
        (op, _) => Err(Error::argument(format!("`{name}` writes to tensors that exist"))
            .with_help(format!("a graph is built of functional forms: `{}`", op.name))),
    }
}

/// The operator of a full name among those of all libraries in the program.
///
/// # Errors
/// If there is none.
pub(crate) fn find(name: &str) -> Result<&'static OpDef> {
    match library::linked().find_map(|library| library.find(name)) {
        Some((op, Form::Functional)) => Ok(op),
        _ => Err(Error::not_found(format!("no library in this program has an operator `{name}`"))),
    }
}
