//! Replay: the nodes of a program as calls of operators.
//!
//! In: a model, its weights, and input tensors. Out: the results. `Graph::trace` replays a program on meta tensors at
//! several sizes: integers computed from shapes become formulas, as those of any traced function do. A node that fails
//! does not end the replay: all mistakes are found, except of nodes that need a failed one.

use std::cell::{Cell, RefCell};

use opsmith_graph::{at_source, cond, while_loop};
use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::copy;
use opsmith_runtime::error::{Error, Result, ShapeText};
use opsmith_runtime::library::Form;
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::model::{Argument, Binding, Block, InputKind, Model, Node, Number, Output};
use crate::numbers;
use crate::operators;
use crate::structural::{self, LayoutNumber, Structural};

/// A program that can be called.
pub(crate) struct Replay<'a> {
    pub model: &'a Model,
    /// The tensors of inputs that are weights.
    pub weights: &'a [Option<Tensor>],
    /// The mistakes of the last replay.
    pub errors: RefCell<Vec<Error>>,
    /// Whether a check depends on sizes alone, so that it must be repeated for others.
    pub checks_sizes: Cell<bool>,
}

/// The values of a block; `None` for those of nodes that failed.
struct Frame {
    values: Vec<Option<Value>>,
}

impl<'a> Replay<'a> {
    pub fn new(model: &'a Model, weights: &'a [Option<Tensor>]) -> Replay<'a> {
        Replay { model, weights, errors: RefCell::default(), checks_sizes: Cell::new(false) }
    }

    /// Calls the program.
    ///
    /// # Errors
    /// If a node failed; the mistakes are in [`Replay::errors`].
    pub fn call(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.errors.borrow_mut().clear();
        let mut given = inputs.iter();
        let of_input = |(input, weight): (&crate::model::Input, &Option<Tensor>)| match &input.kind {
            InputKind::Tensor(_) => given.next().cloned().map(Value::Tensor),
            InputKind::Weight { .. } => weight.clone().map(Value::Tensor),
            InputKind::Value(value) => Some(value.clone()),
        };
        let values: Vec<Option<Value>> = self.model.inputs.iter().zip(self.weights).map(of_input).collect();
        let frame = self.block(&self.model.block, &values);
        if !self.errors.borrow().is_empty() {
            return Err(stopped());
        }
        let mut outputs = Vec::new();
        for (number, output) in self.model.outputs.iter().enumerate() {
            let Output::User(argument) = output else { continue };
            match frame.value(argument).ok_or_else(stopped)? {
                Value::Tensor(tensor) => outputs.push(tensor),
                Value::None => {}
                other => {
                    let kind = other.as_arg().kind();
                    let error = unsupported(format!("output {number}, which is {kind} and no tensor,"));
                    self.errors.borrow_mut().push(error);
                    return Err(stopped());
                }
            }
        }
        for output in &self.model.outputs {
            let Output::Write { input, value } = output else { continue };
            let (Some(Some(Value::Tensor(target))), Some(Value::Tensor(value))) =
                (values.get(*input), &frame.values[*value])
            else {
                return Err(stopped());
            };
            if !target.same(value) {
                copy::copy(target, value)?;
            }
        }
        Ok(outputs)
    }

    /// Calls the nodes of a block.
    fn block(&self, block: &Block, inputs: &[Option<Value>]) -> Frame {
        let mut frame = Frame { values: vec![None; block.slots] };
        for (slot, value) in block.inputs.iter().zip(inputs) {
            frame.values[*slot].clone_from(value);
        }
        for node in &block.nodes {
            let before = self.errors.borrow().len();
            let made = at_source(&node.source.place, || self.node(node, &frame));
            let bound = made.and_then(|results| match results {
                Some(results) => frame.bind(node, results),
                None if frame.lacks(node) || operators::known(&node.target).is_err() => Ok(()),
                None => Err(Error::argument("a number or tensor is expected, and another value is given")),
            });
            // The nodes of a block inside have reported their errors.
            if let Err(error) = bound
                && self.errors.borrow().len() == before
            {
                let place =
                    format!("in the node `{}` ({}), written in {}", node.name, node.target, node.source);
                self.errors.borrow_mut().push(error.with_note(place));
            }
        }
        frame
    }

    /// The results of a block, all of which are tensors.
    fn tensors(&self, block: &Block, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let inputs: Vec<Option<Value>> =
            inputs.iter().map(|input| Some(Value::Tensor(input.clone()))).collect();
        if inputs.len() != block.inputs.len() {
            let text = format!("a block takes {} values, and gets {}", block.inputs.len(), inputs.len());
            return Err(Error::argument(text));
        }
        let frame = self.block(block, &inputs);
        let outputs = block.outputs.iter().map(|output| match frame.value(output) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            Some(other) => Err(unsupported(format!("a block that returns {}", other.as_arg().kind()))),
            None => Err(stopped()),
        });
        outputs.collect()
    }

    /// The results of a node; `None` if an argument is that of a failed one, or its operator is reported as missing.
    fn node(&self, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        if let Some(function) = numbers::find(&node.target) {
            let Some((args, _)) = frame.arguments(node) else { return Ok(None) };
            return match function(&args) {
                Some(value) => Ok(Some(vec![value])),
                None => Err(Error::value(format!("{}({}) has no value", node.target, text(&args)))),
            };
        }
        match structural::find(&node.target) {
            Some(Structural::Operator(target)) => call(target, node, frame),
            Some(structural) => self.structural(structural, node, frame),
            None => call(&node.target, node, frame),
        }
    }

    fn structural(&self, act: Structural, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        match act {
            Structural::Branch => self.branch(node, frame),
            Structural::Loop => self.repeat(node, frame),
            Structural::Inline { skipped } => self.inline(node, frame, skipped),
            _ => {
                let Some((args, named)) = frame.arguments(node) else { return Ok(None) };
                let given = |position: usize, name: &str| {
                    let by_name = named.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
                    args.get(position).or(by_name)
                };
                match act {
                    Structural::Layout(number) => layout_number(number, given(0, "self"), given(1, "dim"))
                        .map(|value| Some(vec![value])),
                    Structural::AssertTruth => {
                        self.checks_sizes.set(true);
                        assert_truth(given(0, "self"), given(1, "assert_msg"))
                    }
                    _ => assert_metadata(given(0, "a"), given(1, "size"), given(3, "dtype")),
                }
            }
        }
    }

    /// `cond(predicate, then, otherwise, operands)`.
    fn branch(&self, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        let [Argument::Slot(predicate), Argument::Block(then), Argument::Block(otherwise), operands @ ..] =
            node.args.as_slice()
        else {
            return Err(unsupported("a branch without predicate and two blocks"));
        };
        let Some(operands) = frame.operands(operands)? else { return Ok(None) };
        match &frame.values[*predicate] {
            None => Ok(None),
            Some(Value::Tensor(predicate)) => {
                let results =
                    cond(predicate, || self.tensors(then, &operands), || self.tensors(otherwise, &operands))?;
                Ok(Some(results.into_iter().map(Value::Tensor).collect()))
            }
            // A predicate of sizes is known while the program is replayed.
            Some(Value::Bool(truth)) => {
                let results = self.tensors(if *truth { then } else { otherwise }, &operands)?;
                Ok(Some(results.into_iter().map(Value::Tensor).collect()))
            }
            Some(other) => Err(unsupported(format!("a predicate that is {}", other.as_arg().kind()))),
        }
    }

    /// `while_loop(condition, body, state, additional)`: both blocks take the state and the additional tensors.
    fn repeat(&self, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
        let [Argument::Block(condition), Argument::Block(body), state, additional @ ..] =
            node.args.as_slice()
        else {
            return Err(unsupported("a loop without two blocks and a state"));
        };
        let Some(state) = frame.operands(std::slice::from_ref(state))? else { return Ok(None) };
        let Some(additional) = frame.operands(additional)? else { return Ok(None) };
        let with = |state: &[Tensor]| state.iter().chain(&additional).cloned().collect::<Vec<_>>();
        let holds = |state: &[Tensor]| {
            let mut results = self.tensors(condition, &with(state))?;
            match results.len() {
                1 => Ok(results.remove(0)),
                count => Err(Error::graph(format!("the condition of a loop returns {count} tensors"))),
            }
        };
        let results = while_loop(&state, holds, |state| self.tensors(body, &with(state)))?;
        Ok(Some(results.into_iter().map(Value::Tensor).collect()))
    }

    fn inline(&self, node: &Node, frame: &Frame, skipped: usize) -> Result<Option<Vec<Value>>> {
        let Some([Argument::Block(block), operands @ ..]) = node.args.get(skipped..) else {
            return Err(unsupported("a wrapper without a block"));
        };
        let Some(operands) = frame.operands(operands)? else { return Ok(None) };
        let results = self.tensors(block, &operands)?;
        Ok(Some(results.into_iter().map(Value::Tensor).collect()))
    }
}

/// The error that ends a replay whose mistakes are in the list.
fn stopped() -> Error {
    Error::graph("a node of the program failed")
}

/// Calls an operator.
fn call(target: &str, node: &Node, frame: &Frame) -> Result<Option<Vec<Value>>> {
    let Ok((op, form)) = operators::find(target) else { return Ok(None) };
    let Some((args, named)) = frame.arguments(node) else { return Ok(None) };
    let results = match (form, op.forms.inplace) {
        (Form::Functional, _) => boxed::call_definition(op, &args, &named)?,
        (Form::Inplace, Some(name)) => boxed::call(op.library, name, &args, &named)?,
        _ => return Err(unsupported("a form that writes to `out`")),
    };
    Ok(Some(results))
}

fn layout_number(number: LayoutNumber, tensor: Option<&Value>, dim: Option<&Value>) -> Result<Value> {
    let Some(Value::Tensor(tensor)) = tensor else { return Err(Error::argument("it is given no tensor")) };
    let number = match (number, dim) {
        (LayoutNumber::Count, _) => tensor.numel(),
        (LayoutNumber::Offset, _) => tensor.layout().offset,
        (LayoutNumber::Size, Some(Value::Int(dim))) => tensor.size(*dim)?,
        (LayoutNumber::Stride, Some(Value::Int(dim))) => {
            tensor.strides()[opsmith_runtime::layout::wrap_dim(*dim, tensor.dim())?]
        }
        _ => return Err(Error::argument("it is given no dimension")),
    };
    Ok(Value::Int(number))
}

fn assert_truth(truth: Option<&Value>, message: Option<&Value>) -> Result<Option<Vec<Value>>> {
    let message = match message {
        Some(Value::Str(message)) => format!(": {message}"),
        _ => String::new(),
    };
    match truth {
        Some(Value::Bool(true)) => Ok(Some(Vec::new())),
        Some(Value::Int(number)) if *number != 0 => Ok(Some(Vec::new())),
        Some(Value::Bool(false) | Value::Int(_)) => {
            Err(Error::value(format!("a check of the program does not hold{message}"))
                .with_help("use sizes that the program was exported for"))
        }
        _ => Err(unsupported(format!("a check of elements{message}"))),
    }
}

/// Checks dtype and sizes. Strides are those of our kernels, and programs run on one device.
fn assert_metadata(
    tensor: Option<&Value>,
    sizes: Option<&Value>,
    dtype: Option<&Value>,
) -> Result<Option<Vec<Value>>> {
    let Some(Value::Tensor(tensor)) = tensor else { return Err(Error::argument("it is given no tensor")) };
    if let Some(Value::DType(dtype)) = dtype
        && tensor.dtype() != *dtype
    {
        let text = format!("the program was exported with {dtype} here, and this is {}", tensor.dtype());
        return Err(Error::new(opsmith_runtime::ErrorKind::DType, text));
    }
    if let Some(Value::Ints(sizes)) = sizes
        && tensor.shape() != sizes.as_slice()
    {
        let text = format!(
            "the program was exported with the shape {} here, and this is {}",
            ShapeText(sizes),
            ShapeText(tensor.shape())
        );
        return Err(Error::shape(text));
    }
    Ok(Some(Vec::new()))
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

/// Arguments by position and by name.
type Arguments<'n> = (Vec<Value>, Vec<(&'n str, Value)>);

impl Frame {
    /// The values of a node's arguments; `None` if one is of a failed node.
    fn arguments<'n>(&self, node: &'n Node) -> Option<Arguments<'n>> {
        let args = node.args.iter().map(|arg| self.value(arg)).collect::<Option<_>>()?;
        let named = node.named.iter().map(|(name, arg)| Some((name.as_str(), self.value(arg)?)));
        Some((args, named.collect::<Option<_>>()?))
    }

    /// Whether an argument of a node is of a failed one.
    fn lacks(&self, node: &Node) -> bool {
        let missing = |slot: &usize| self.values[*slot].is_none();
        let mut args = node.args.iter().chain(node.named.iter().map(|(_, arg)| arg));
        args.any(|argument| match argument {
            Argument::Slot(slot) => missing(slot),
            Argument::Tensors(slots) => slots.iter().any(missing),
            Argument::OptionalTensors(slots) => slots.iter().flatten().any(missing),
            Argument::Numbers(numbers) => {
                numbers.iter().any(|number| matches!(number, Number::Slot(slot) if missing(slot)))
            }
            Argument::Value(_) | Argument::Block(_) => false,
        })
    }

    fn value(&self, argument: &Argument) -> Option<Value> {
        let tensor = |slot: &usize| match self.values[*slot].as_ref()? {
            Value::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        };
        Some(match argument {
            Argument::Slot(slot) => self.values[*slot].clone()?,
            Argument::Tensors(slots) => Value::Tensors(slots.iter().map(tensor).collect::<Option<_>>()?),
            Argument::OptionalTensors(slots) => {
                let mut list = Vec::with_capacity(slots.len());
                for slot in slots {
                    list.push(match slot {
                        Some(slot) => Some(tensor(slot)?),
                        None => None,
                    });
                }
                Value::OptionalTensors(list)
            }
            Argument::Numbers(numbers) => {
                let number = |number: &Number| match number {
                    Number::Int(number) => Some(*number),
                    Number::Slot(slot) => match self.values[*slot].as_ref()? {
                        Value::Int(number) => Some(*number),
                        _ => None,
                    },
                };
                Value::Ints(numbers.iter().map(number).collect::<Option<_>>()?)
            }
            Argument::Value(value) => value.clone(),
            Argument::Block(_) => return None,
        })
    }

    /// Tensors among arguments, lists joined; `None` if one is of a failed node.
    ///
    /// # Errors
    /// If one is no tensor.
    fn operands(&self, arguments: &[Argument]) -> Result<Option<Vec<Tensor>>> {
        let mut tensors = Vec::new();
        for argument in arguments {
            match self.value(argument) {
                Some(Value::Tensor(tensor)) => tensors.push(tensor),
                Some(Value::Tensors(list)) => tensors.extend(list),
                Some(other) => {
                    return Err(unsupported(format!(
                        "an operand of a block that is {}",
                        other.as_arg().kind()
                    )));
                }
                None => return Ok(None),
            }
        }
        Ok(Some(tensors))
    }

    /// Stores the results of a node.
    fn bind(&mut self, node: &Node, results: Vec<Value>) -> Result<()> {
        let mut results = results.into_iter();
        for (number, binding) in node.outputs.iter().enumerate() {
            let result = results.next();
            match (binding, result) {
                (Binding::None, _) => {}
                (Binding::One(slot), Some(value)) => self.values[*slot] = Some(value),
                (Binding::List(slots), Some(Value::Tensors(list))) if list.len() == slots.len() => {
                    for (slot, tensor) in slots.iter().zip(list) {
                        self.values[*slot] = Some(Value::Tensor(tensor));
                    }
                }
                (Binding::List(slots), found) => {
                    let found = found.map_or("nothing".to_owned(), |value| match value {
                        Value::Tensors(list) => format!("{} tensors", list.len()),
                        other => other.as_arg().kind().to_owned(),
                    });
                    let text = format!("result {number} is {found}, and the program has {}", slots.len());
                    return Err(Error::graph(text));
                }
                (Binding::One(_), None) => {
                    let text =
                        format!("the program takes {} results, and there are {number}", node.outputs.len());
                    return Err(Error::graph(text));
                }
            }
        }
        Ok(())
    }
}
