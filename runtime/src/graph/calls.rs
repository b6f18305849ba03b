//! Calls by name that were noted, to be made later.
//!
//! In: calls, and what makes one. Out: the results of each call, and every call that was refused. What makes a call may
//! trace it, or only infer it: then tensors stand for what is known of them.

use std::panic::Location;

use super::builder::{BuilderArg, Handle};
use super::check::{FURTHEST_BACK, chain_text};
use super::ir::Site;
use super::trace::InputSpec;
use crate::arg::Value;
use crate::boxed;
use crate::error::{Error, Result};
use crate::library::{self, Form};
use crate::op::OpDef;
use crate::tensor::Tensor;

/// A call that was noted.
pub(super) struct Call {
    pub name: String,
    pub args: Vec<BuilderArg>,
    pub named: Vec<(String, BuilderArg)>,
    pub site: &'static Location<'static>,
}

/// What makes a call, with arguments by position and by name.
pub(super) type Make<'a> = dyn FnMut(&Call, &[Value], &[(String, Value)]) -> Result<Vec<Tensor>> + 'a;

/// Makes every call that does not need the result of a refused one.
pub(super) fn replay<'a>(calls: &'a [Call], inputs: &'a [Tensor], make: &mut Make<'_>) -> Results<'a> {
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

/// What calls gave.
pub(super) struct Results<'a> {
    inputs: &'a [Tensor],
    /// The results of each call; none of one that was refused, or needs one that was.
    pub of_calls: Vec<Option<Vec<Tensor>>>,
    /// What was refused, by the number of the call.
    pub errors: Vec<(usize, Error)>,
}

type Arguments = (Vec<Value>, Vec<(String, Value)>);

impl Results<'_> {
    /// The tensors of handles; none if one is not there.
    pub fn all(&mut self, handles: &[Handle]) -> Option<Vec<Tensor>> {
        let last = self.of_calls.len();
        // All of them are looked for, so that every one that is not there is reported.
        let found: Vec<Option<Tensor>> = handles.iter().map(|handle| self.get(last, *handle)).collect();
        found.into_iter().collect()
    }

    /// A tensor that a call of a number asks for.
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

/// The tensors of the graph that a call takes, in order.
pub(super) fn handles(call: &Call) -> Vec<Handle> {
    let each = |arg: &BuilderArg| match arg {
        BuilderArg::Tensor(handle) => vec![*handle],
        BuilderArg::Tensors(handles) => handles.clone(),
        BuilderArg::OptionalTensors(handles) => handles.iter().flatten().copied().collect(),
        BuilderArg::Value(_) => Vec::new(),
    };
    call.args.iter().chain(call.named.iter().map(|(_, arg)| arg)).flat_map(each).collect()
}

/// The calls from which a call got its first tensor, as a note; nothing if it takes none.
pub(super) fn chain(calls: &[Call], inputs: &[InputSpec], number: usize) -> String {
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

/// The name of an input, or what it is called without one.
pub(super) fn input_name(inputs: &[InputSpec], position: usize) -> String {
    let given = inputs.get(position).and_then(|input| input.name.clone());
    given.unwrap_or_else(|| format!("input{position}"))
}

/// The operator that a call means among those of all libraries in the program, by the rule of calls by name.
pub(super) fn meant(name: &str, args: &[Value], named: &[(&str, Value)]) -> Result<&'static OpDef> {
    match boxed::choose_linked(name, args, named)? {
        (op, Form::Functional) => Ok(op),
        (op, _) => Err(Error::argument(format!("`{name}` writes to tensors that exist"))
            .with_help(format!("a graph is built of functional forms: `{}`", op.name))),
    }
}

/// The operator of a full name among those of all libraries in the program.
///
/// # Errors
/// If there is none.
pub(super) fn find(name: &str) -> Result<&'static OpDef> {
    match library::linked().find_map(|library| library.find(name)) {
        Some((op, Form::Functional)) => Ok(op),
        _ => Err(Error::not_found(format!("no library in this program has an operator `{name}`"))),
    }
}
