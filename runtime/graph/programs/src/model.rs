//! The typed model of a program, in which every name is resolved.
//!
//! In: nothing. Out: the types. After `lower` nothing here is text that means something else. Must not know JSON or
//! graphs.

use std::collections::BTreeMap;
use std::fmt;

use opsmith_core::DType;
use opsmith_runtime::arg::Value;

use crate::expression::Formula;
use crate::outputs::OutputRole;

/// The number of a value in a block.
pub(crate) type Slot = usize;

/// A program.
pub(crate) struct Model {
    /// The bounds of symbols.
    pub ranges: BTreeMap<String, Range>,
    /// The values of symbols at which the program was exported, as far as they are known.
    pub examples: BTreeMap<String, i64>,
    /// Values that exist before the first node: weights and inputs, in the order of the block's inputs.
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub block: Block,
    /// Conditions on inputs, in Python.
    pub guards: Vec<String>,
    /// The version of PyTorch that wrote it; empty if unknown.
    pub torch_version: String,
}

/// The bounds of a symbol, both inclusive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Range {
    pub least: i64,
    pub most: Option<i64>,
}

/// A value that exists before the first node.
pub(crate) struct Input {
    pub name: String,
    pub kind: InputKind,
}

pub(crate) enum InputKind {
    /// A tensor that each run gets.
    Tensor(TensorSpec),
    /// A number that each run gets, as a tensor without dimensions.
    Number(DType),
    /// A tensor of the archive, by its name in the module. Aliases are other names of it there, which the program does not have:
    /// an exporter may choose one of those of tied parameters.
    Weight { name: String, aliases: Vec<String>, kind: WeightKind, spec: Option<TensorSpec> },
    /// A value that the program was exported for.
    Value(Value),
}

/// The role of a tensor of the archive in the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum WeightKind {
    Parameter,
    /// A persistent buffer, which state dicts have and training does not change.
    Buffer,
    /// A constant, or a buffer that state dicts do not have.
    Constant,
}

/// Dtype and sizes of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TensorSpec {
    pub dtype: DType,
    pub sizes: Vec<Formula>,
}

/// A result of a run.
pub(crate) enum Output {
    /// A value that the caller gets.
    User { value: Argument, role: OutputRole, name: Option<String> },
    /// The end of a chain of effects, which no caller gets.
    Token,
    /// A value that is written to a weight, by its number among the inputs, or to a tensor of the caller.
    Write { input: usize, value: Slot },
}

impl Output {
    /// The role and the name of a result that the caller gets: `None` for writes, and for one that is `None` or a text in
    /// Python.
    pub fn of_caller(&self) -> Option<(&OutputRole, Option<&str>)> {
        match self {
            Output::User { value: Argument::Value(Value::None | Value::Str(_)), .. }
            | Output::Token
            | Output::Write { .. } => None,
            Output::User { role, name, .. } => Some((role, name.as_deref())),
        }
    }
}

/// Nodes in execution order, with values of their own.
pub(crate) struct Block {
    /// The number of values.
    pub slots: usize,
    pub inputs: Vec<Slot>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<Argument>,
}

/// A call.
pub(crate) struct Node {
    /// Its name in the graph.
    pub name: String,
    /// The full name of the called function, such as `torch.ops.aten.add.Tensor`.
    pub target: String,
    /// Arguments by position.
    pub args: Vec<Argument>,
    /// Arguments by name.
    pub named: Vec<(String, Argument)>,
    pub outputs: Vec<Binding>,
    /// The dtype that the file records for its first result, if that is a tensor of a known dtype.
    pub dtype: Option<DType>,
    pub source: Source,
}

/// The values that a result becomes.
pub(crate) enum Binding {
    One(Slot),
    List(Vec<Slot>),
    None,
}

/// An argument of a node.
pub(crate) enum Argument {
    /// A value of the block.
    Slot(Slot),
    /// Tensors of the block.
    Tensors(Vec<Slot>),
    /// Tensors of the block, of which some are absent.
    OptionalTensors(Vec<Option<Slot>>),
    /// Numbers, of which some are values of the block.
    Numbers(Vec<Number>),
    /// A value of its own.
    Value(Value),
    /// The body of a branch or loop.
    Block(Box<Block>),
}

impl Node {
    /// The values of the block among the arguments.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        let args = self.args.iter().chain(self.named.iter().map(|(_, arg)| arg));
        args.flat_map(Argument::slots)
    }
}

impl Argument {
    /// The values of the block in it.
    pub fn slots(&self) -> Vec<Slot> {
        match self {
            Argument::Slot(slot) => vec![*slot],
            Argument::Tensors(slots) => slots.clone(),
            Argument::OptionalTensors(slots) => slots.iter().flatten().copied().collect(),
            Argument::Numbers(numbers) => {
                let slot = |number: &Number| if let Number::Slot(slot) = number { Some(*slot) } else { None };
                numbers.iter().filter_map(slot).collect()
            }
            Argument::Value(_) | Argument::Block(_) => Vec::new(),
        }
    }
}

impl Binding {
    /// The values that it gives.
    pub fn slots(&self) -> &[Slot] {
        match self {
            Binding::One(slot) => std::slice::from_ref(slot),
            Binding::List(slots) => slots,
            Binding::None => &[],
        }
    }
}

/// A number: its own, or a value of the block.
pub(crate) enum Number {
    Slot(Slot),
    Int(i64),
}

/// The line of Python that made a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Source {
    /// File and line, as `model.py:12`; empty if unknown.
    pub place: String,
    /// The text of the line; may be empty.
    pub code: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place.as_str(), self.code.as_str()) {
            ("", _) => f.write_str("an unknown line"),
            (place, "") => f.write_str(place),
            (place, code) => write!(f, "{place}: `{code}`"),
        }
    }
}
