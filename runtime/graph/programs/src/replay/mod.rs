//! Replay: the nodes of a program as calls of operators.
//!
//! In: a model, its weights, and input tensors. Out: the results. `Graph::trace` replays a program on meta tensors at
//! several sizes: integers computed from shapes become formulas, as those of any traced function do. A node that fails
//! does not end the replay: all mistakes are found, except of nodes that need a failed one. A node that needs elements,
//! which a traced function does not have, is noted: such a program has no graph.

mod casts;
mod checks;
mod control;
mod frame;
mod in_place;
mod mapped;
mod on_copies;

use std::cell::{Cell, RefCell};

use opsmith_core::{ArgKind, DType};
use opsmith_graph::{at_source, data_dependent_sizes};
use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::copy;
use opsmith_runtime::device::Device;
use opsmith_runtime::embedder;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use opsmith_runtime::library::Form;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::model::{Argument, Block, Input, InputKind, Model, Node, Output};
use crate::numbers::{self, Bounds};
use crate::operators;
use crate::structural::{self, AT_POSITION, CLONE, LayoutNumber, NEW_DIM, OF_NUMBER, PLACES, Structural};
use frame::Frame;
use in_place::apart;

/// A program that can be called.
pub(crate) struct Replay<'a> {
    pub model: &'a Model,
    /// The tensors of inputs that are weights.
    pub weights: &'a [Option<Tensor>],
    /// The device of all tensors, in place of those that the program names.
    pub device: Device,
    /// The mistakes of the last replay.
    pub errors: RefCell<Vec<Error>>,
    /// Whether a check depends on sizes alone, so that it must be repeated for others.
    pub checks_sizes: Cell<bool>,
    /// The first node or input of the last replay that needs elements which a traced function does not have.
    pub lacking: RefCell<Option<String>>,
    /// Whether operands of calls are cast as the program records.
    pub casts: Cell<bool>,
}

impl<'a> Replay<'a> {
    pub fn new(model: &'a Model, weights: &'a [Option<Tensor>], device: Device) -> Replay<'a> {
        let (errors, checks_sizes, lacking, casts) = Default::default();
        Replay { model, weights, device, errors, checks_sizes, lacking, casts }
    }

    /// Calls the program.
    ///
    /// # Errors
    /// If a node failed; the mistakes are in [`Replay::errors`]. If one lacks elements, [`Replay::lacking`] is set.
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.errors.borrow_mut().clear();
        self.lacking.take();
        let mut given = inputs.iter();
        let mut values = Vec::with_capacity(self.model.inputs.len());
        for (input, weight) in self.model.inputs.iter().zip(self.weights) {
            values.push(match &input.kind {
                InputKind::Tensor(_) => given.next().cloned().map(Value::Tensor),
                InputKind::Number(_) => given.next().and_then(|tensor| self.number(input, tensor)),
                InputKind::Weight { .. } => weight.clone().map(Value::Tensor),
                InputKind::Value(value) => Some(value.clone()),
            });
        }
        let frame = self.block(&self.model.block, &values, &Bounds::Exact);
        match (self.errors.borrow().is_empty(), self.lacking.borrow().as_ref()) {
            (true, None) => {}
            (true, Some(place)) => return Err(Error::without_elements(format!("elements decide: {place}"))),
            (false, _) => return Err(stopped()),
        }
        let mut outputs = Vec::new();
        for (number, output) in self.model.outputs.iter().enumerate() {
            let Output::User { value, .. } = output else { continue };
            match frame.value(value).ok_or_else(stopped)? {
                Value::Tensor(tensor) => outputs.push(tensor),
                Value::None | Value::Str(_) => {}
                other => outputs.push(self.of_number(other).map_err(|error| {
                    self.errors.borrow_mut().push(error.with_note(format!("in output {number}")));
                    stopped()
                })?),
            }
        }
        for output in &self.model.outputs {
            let Output::Write { input, value } = output else { continue };
            let (Some(Some(Value::Tensor(target))), Some(Value::Tensor(value))) =
                (values.get(*input), frame.at(*value))
            else {
                return Err(stopped());
            };
            if !target.same(value) {
                copy::copy(target, value)?;
            }
        }
        Ok(outputs)
    }

    /// The number that an input is; `None` if it has no elements, or cannot be read.
    fn number(&self, input: &Input, tensor: &Tensor) -> Option<Value> {
        match tensor.item() {
            Ok(number) => Some(as_number(Value::Scalar(number))),
            Err(error) if error.lacks_elements() => {
                self.note_lacking(|| format!("the number `{}`, an input", input.name));
                None
            }
            Err(error) => {
                self.errors.borrow_mut().push(error.with_note(format!("for the input `{}`", input.name)));
                None
            }
        }
    }

    fn note_lacking(&self, text: impl FnOnce() -> String) {
        self.lacking.borrow_mut().get_or_insert_with(text);
    }

    /// Calls the nodes of a block, whose inputs have these bounds.
    fn block(&self, block: &Block, inputs: &[Option<Value>], bounds: &Bounds) -> Frame {
        let mut frame = Frame::new(block, inputs, bounds);
        for node in &block.nodes {
            // A program that is read is only known to be right once all of it is.
            if !internals::is_tracing()
                && let Err(error) = embedder::step()
            {
                self.errors.borrow_mut().push(error);
                break;
            }
            let before = self.errors.borrow().len();
            let (lacking, sizes) = (self.lacking.borrow().is_some(), data_dependent_sizes().len());
            let site = if node.source.place.is_empty() { &node.name } else { &node.source.place };
            let made = at_source(site, || self.node(node, &frame));
            let bound = made.and_then(|results| match results {
                Some(results) => {
                    let depends = data_dependent_sizes().len() != sizes || frame.is_inexact(node);
                    let bounds = if depends { bounds_of(node, &frame, &results) } else { Bounds::Exact };
                    let levels = mapped::levels_after(node, &frame);
                    frame.bind(node, results, &bounds, &levels)
                }
                None if frame.lacks(node) || operators::known(&node.target).is_err() => Ok(()),
                None if self.lacking.borrow().is_some() => Ok(()),
                None => Err(Error::argument("a number or tensor is expected, and another value is given")),
            });
            let place = || format!("the node `{}` ({}), written in {}", node.name, node.target, node.source);
            match bound {
                Ok(()) => {}
                Err(error) if error.lacks_elements() => self.note_lacking(place),
                // The nodes of a block inside have reported their errors.
                Err(_) if self.errors.borrow().len() > before => {}
                Err(_) if !lacking && self.lacking.borrow().is_some() => {}
                Err(error) => self.errors.borrow_mut().push(error.with_note(format!("in {}", place()))),
            }
        }
        frame
    }

    /// The results of a block, all of which are tensors; `inexact` if sizes of the inputs depend on elements.
    fn tensors(&self, block: &Block, inputs: &[Tensor], inexact: bool) -> Result<Vec<Tensor>> {
        let inputs: Vec<Option<Value>> =
            inputs.iter().map(|input| Some(Value::Tensor(input.clone()))).collect();
        if inputs.len() != block.inputs.len() {
            let text = format!("a block takes {} values, and gets {}", block.inputs.len(), inputs.len());
            return Err(Error::argument(text));
        }
        let bounds = if inexact { Bounds::Any } else { Bounds::Exact };
        let frame = self.block(block, &inputs, &bounds);
        let outputs = block.outputs.iter().map(|output| match frame.value(output) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            Some(other) => Err(unsupported(format!("a block that returns {}", other.as_arg().kind()))),
            None => Err(stopped()),
        });
        outputs.collect()
    }

    /// The results of a node; `None` if an argument is that of a failed one, its operator is reported as missing, or it lacks
    /// elements.
    fn node(&self, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        if let Some(function) = numbers::find(&node.target) {
            let Some((args, _)) = frame.arguments(node) else { return Ok(None) };
            return match function(&args) {
                Some(value) => Ok(Some(vec![value])),
                None => Err(Error::value(format!("{}({}) has no value", node.target, text(&args)))),
            };
        }
        match structural::find(&node.target) {
            Some(Structural::Operator(target)) => self.operator(target, node, frame),
            Some(Structural::Statistics(statistics)) => self.update(statistics, node, frame),
            Some(structural) => self.structural(structural, node, frame),
            None => self.operator(&node.target, node, frame),
        }
    }

    /// Calls an operator.
    fn operator(&self, target: &str, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        let (op, form, is_copied) = match (operators::find(target), operators::copied_view(target)) {
            (Ok((op, form)), _) => (op, form, false),
            (Err(_), Some(view)) => (view, Form::Functional, true),
            (Err(_), None) => return Ok(None),
        };
        let Some((mut args, mut named)) = frame.arguments(node) else { return Ok(None) };
        for arg in args.iter_mut().chain(named.iter_mut().map(|(_, arg)| arg)) {
            if let Value::Device(device) = arg {
                *device = self.device;
            }
        }
        // A number of the program may differ from run to run: as a tensor it is a result of a call, no constant.
        for (position, (value, argument)) in args.iter_mut().zip(&node.args).enumerate() {
            let takes_tensor = op.schema.args.get(position).is_some_and(|arg| arg.ty.kind == ArgKind::Tensor);
            self.as_tensor(value, argument, takes_tensor)?;
        }
        for ((name, value), (_, argument)) in named.iter_mut().zip(&node.named) {
            let mut args = op.schema.args.iter();
            let takes_tensor = args.any(|arg| arg.name == *name && arg.ty.kind == ArgKind::Tensor);
            self.as_tensor(value, argument, takes_tensor)?;
        }
        let call = |args: Vec<Value>, named: Vec<(&str, Value)>| match (form, op.forms.inplace) {
            (Form::Functional, _) if self.casts.get() => casts::call(op, args, named, node.dtype),
            (Form::Functional, _) => boxed::call_definition(op, &args, &named),
            (Form::Inplace, Some(name)) => boxed::call(op.library, name, &apart(args)?, &named),
            _ => Err(unsupported("a form that writes to `out`")),
        };
        let results = match frame.all_levels(node).is_empty() {
            true => call(args, named)?,
            false => mapped::call(op, form, node, frame, (args, named), &call)?,
        };
        let results =
            results.into_iter().map(|value| if is_copied { copied(value) } else { Ok(as_number(value)) });
        results.collect::<Result<_>>().map(Some)
    }

    /// Makes a tensor of a number of the block that is given for one.
    fn as_tensor(&self, value: &mut Value, argument: &Argument, takes_tensor: bool) -> Result<()> {
        let is_number = matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_));
        if takes_tensor && is_number && matches!(argument, Argument::Slot(_)) {
            *value = Value::Tensor(self.of_number(value.clone())?);
        }
        Ok(())
    }

    /// A number as a tensor.
    ///
    /// # Errors
    /// If it is no number, or no library makes such tensors.
    fn of_number(&self, value: Value) -> Result<Tensor> {
        let dtype = match &value {
            Value::Int(_) => DType::I64,
            Value::Float(_) => DType::F64,
            Value::Bool(_) => DType::Bool,
            other => return Err(unsupported(format!("an output that is {}", other.as_arg().kind()))),
        };
        let (op, _) = operators::find(OF_NUMBER)?;
        match boxed::call_definition(
            op,
            &[value],
            &[("dtype", Value::DType(dtype)), ("device", Value::Device(self.device))],
        )?
        .pop()
        {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(unsupported("an operator that makes no tensor of a number")),
        }
    }

    fn structural(&self, act: Structural, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        match act {
            Structural::MapStart | Structural::MapIn | Structural::MapOut => {
                mapped::boundary(act, node, frame)
            }
            _ if has_block(node) && !frame.all_levels(node).is_empty() => {
                Err(unsupported("a branch or loop in `torch.vmap`"))
            }
            Structural::Branch => self.branch(node, frame),
            Structural::Loop => self.repeat(node, frame),
            Structural::Map => self.map(node, frame),
            Structural::Scan => self.scan(node, frame),
            Structural::Accumulate => self.accumulate(node, frame),
            Structural::Inline { before, after } => self.inline(node, frame, before, after),
            Structural::Autocast => self.autocast(node, frame),
            Structural::OnCopies => on_copies::call(node, frame),
            Structural::Number(number) => Ok(Some(vec![Value::Int(number)])),
            Structural::Nothing => Ok(Some(vec![Value::None])),
            Structural::PlacesByDimension => places_by_dimension(node, frame),
            Structural::AssertTruth | Structural::AssertRange if frame.is_inexact(node) => {
                assert_of_elements(act, node, frame)
            }
            _ => {
                let Some(arguments) = frame.arguments(node) else { return Ok(None) };
                let (args, named) = mapped::of_first(node, frame, arguments)?;
                let given = |position: usize, name: &str| {
                    let by_name = named.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
                    args.get(position).or(by_name)
                };
                match act {
                    Structural::Layout(number) => {
                        checks::layout_number(number, given(0, "self"), given(1, "dim"))
                            .map(|value| Some(vec![value]))
                    }
                    Structural::AssertTruth => {
                        self.checks_sizes.set(true);
                        checks::assert_truth(given(0, "self"), given(1, "assert_msg"))
                    }
                    Structural::AssertElement => {
                        checks::assert_element(given(0, "self"), given(1, "assert_msg"))
                    }
                    Structural::AssertZeros => checks::assert_zeros(given(0, "info"), given(1, "api_name")),
                    Structural::AssertRange => {
                        self.checks_sizes.set(true);
                        checks::assert_range(given(0, "size"), given(1, "min"), given(2, "max"))
                    }
                    _ => checks::assert_metadata(given(0, "a"), given(1, "size"), given(3, "dtype")),
                }
            }
        }
    }
}

/// A check of a number that depends on elements: it holds for all values within the number's bounds.
///
/// # Errors
/// If it may not hold, so that the check needs elements.
fn assert_of_elements(act: Structural, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
    let bounds = node.args.first().map(|argument| frame.bounds(argument));
    let holds = match (act, bounds) {
        (Structural::AssertTruth, Some(Bounds::Between(Value::Bool(least), _))) => least,
        (Structural::AssertRange, Some(Bounds::Between(least, most))) => {
            let Some((_, named)) = frame.arguments(node) else { return Ok(None) };
            let given = |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            let check = |number| checks::assert_range(Some(number), given("min"), given("max"));
            check(&least).is_ok() && check(&most).is_ok()
        }
        _ => false,
    };
    match holds {
        true => Ok(Some(Vec::new())),
        false => Err(Error::without_elements("a check of the program depends on elements")),
    }
}

/// The bounds of the results of a node that depends on elements.
fn bounds_of(node: &Node, frame: &Frame, results: &[Value]) -> Bounds {
    if numbers::find(&node.target).is_some() {
        let operand = |argument: &Argument| Some((frame.value(argument)?, frame.bounds(argument)));
        let operands: Option<Vec<(Value, Bounds)>> = node.args.iter().map(operand).collect();
        return operands.map_or(Bounds::Any, |operands| numbers::bounds(&node.target, &operands));
    }
    let is_size = structural::find(&node.target) == Some(Structural::Layout(LayoutNumber::Size));
    if let (true, [Value::Int(size)]) = (is_size, results) {
        // Several may be the same number.
        let sizes = data_dependent_sizes().into_iter().filter(|known| known.size == *size);
        return match sizes.map(|known| known.most).max() {
            Some(most) => Bounds::Between(Value::Int(0), Value::Int(most)),
            None => Bounds::Any,
        };
    }
    Bounds::Any
}

/// The places of elements that are not zero: a list with a tensor for each dimension, at least one.
fn places_by_dimension(node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
    let Some((args, _)) = frame.arguments(node) else { return Ok(None) };
    let [Value::Tensor(tensor), ..] = args.as_slice() else {
        return Err(Error::argument("it is given no tensor"));
    };
    if !frame.all_levels(node).is_empty() {
        return Err(unsupported("a size that depends on elements in `torch.vmap`"));
    }
    let tensor = match tensor.dim() {
        0 => operators::call(NEW_DIM, &[tensor.into(), Value::Int(0)])?,
        _ => tensor.clone(),
    };
    let places = operators::call(PLACES, &[(&tensor).into()])?;
    let of =
        |dim: usize| operators::call(AT_POSITION, &[(&places).into(), Value::Int(1), Value::Int(dim as i64)]);
    let all = (0..tensor.dim()).map(of).collect::<Result<_>>()?;
    Ok(Some(vec![Value::Tensors(all)]))
}

fn has_block(node: &Node) -> bool {
    node.args.iter().any(|argument| matches!(argument, Argument::Block(_)))
}

/// The error that ends a replay whose mistakes are in the list.
fn stopped() -> Error {
    Error::graph("a node of the program failed")
}

/// Copies of the tensors of a result.
fn copied(value: Value) -> Result<Value> {
    let copy = |tensor: Tensor| operators::call(CLONE, &[Value::Tensor(tensor)]);
    Ok(match value {
        Value::Tensor(tensor) => Value::Tensor(copy(tensor)?),
        Value::Tensors(list) => Value::Tensors(list.into_iter().map(copy).collect::<Result<_>>()?),
        other => other,
    })
}

/// A value in which a number is one of Python's kinds, as the functions of numbers take it.
fn as_number(value: Value) -> Value {
    match value {
        Value::Scalar(Scalar::Bool(truth)) => Value::Bool(truth),
        Value::Scalar(Scalar::Int(number)) => Value::Int(number),
        Value::Scalar(Scalar::Float(number)) => Value::Float(number),
        other => other,
    }
}

fn text(args: &[Value]) -> String {
    let each = args.iter().map(|arg| match arg {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        other => other.as_arg().kind().to_owned(),
    });
    each.collect::<Vec<_>>().join(", ")
}
