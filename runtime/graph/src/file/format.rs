//! The data of `graph.json`. Numbers of tensors and buffers are positions in their lists.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::argument::Argument;
use crate::ir::{BufferId, TensorId};

/// Grows with each change that older programs cannot read.
pub(super) const VERSION: u32 = 3;
pub(super) const FORMAT: &str = "opsmith graph";

/// The part that determines whether the rest can be read.
#[derive(Deserialize)]
pub(super) struct Head {
    pub format: String,
    pub version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub format: String,
    pub version: u32,
    /// The definition of every called operator when the graph was saved.
    pub operators: BTreeMap<String, Operator>,
    /// The SHA-256 of the file of constants.
    pub constants: String,
    pub graph: Graph,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    pub symbols: Vec<Symbol>,
    pub guards: Vec<Guard>,
    pub inputs: Vec<Input>,
    pub outputs: Vec<TensorId>,
    pub buffers: Vec<Buffer>,
    pub tensors: Vec<Tensor>,
    pub nodes: Vec<Node>,
    /// Whether element-wise calls may write over dead inputs.
    pub reuse: bool,
    /// Whether consecutive element-wise calls run tile by tile.
    #[serde(default)]
    pub fuse: bool,
    /// Graphs that run instead of this one for certain values of symbols.
    pub variants: Vec<Variant>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub symbol: usize,
    pub value: i64,
    pub graph: Graph,
}

/// The properties of an operator that callers of its kernel rely on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Operator {
    pub signature: String,
    pub args: Vec<Arg>,
    pub returns: Vec<String>,
    /// `kernel` or `view`.
    pub kind: String,
    pub deterministic: bool,
    pub element_wise: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arg {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    pub default: Option<String>,
    /// The element type for kernels, if it is a tensor.
    pub elements: Option<String>,
    pub row_major: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Symbol {
    pub name: String,
    pub least: i64,
    pub most: i64,
    pub multiple_of: i64,
    pub example: i64,
    pub source: Source,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    Input { input: usize, dim: usize },
    Node { tensor: TensorId, dim: usize },
    Quotient { symbol: usize, plus: i64, by: i64 },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Guard {
    pub size: Size,
    pub equals: i64,
    pub reason: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub name: String,
    pub tensor: TensorId,
    pub requires_grad: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buffer {
    pub kind: BufferKind,
    pub root: TensorId,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BufferKind {
    Input(usize),
    /// Its name in the file of constants.
    Constant(String),
    Internal,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tensor {
    pub buffer: BufferId,
    pub dtype: String,
    pub device: String,
    pub sizes: Vec<Size>,
    pub strides: Vec<Size>,
    pub offset: Size,
}

/// A number, a sum of products of symbols, or unknown.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Size {
    Number(i64),
    Sum(Vec<Term>),
    Unknown(()),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Term {
    pub times: i64,
    /// Symbols, each repeated by its exponent.
    pub of: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    #[serde(rename = "do")]
    pub kind: Kind,
    pub args: Vec<Argument>,
    pub outs: Vec<TensorId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Call { op: String, compute: String },
    View { op: String },
    Copy,
    Add,
    Cond { then: Vec<Node>, otherwise: Vec<Node> },
    While { condition: Vec<Node>, predicate: TensorId, body: Vec<Node> },
    Scan { length: Size, moving: Vec<(TensorId, Size)>, body: Vec<Node> },
}
