//! The typed model of an ONNX file, in which every name is resolved.
//!
//! In: nothing. Out: the types. Values are numbered: one number for a value of the file, also in blocks inside, which use
//! values from outside. Must not know messages of the format.

use opsmith_core::DType;
use opsmith_graph::InputSpec;
use opsmith_runtime::tensor::Tensor;

use crate::operators::Operator;

/// The number of a value.
pub(crate) type Slot = usize;

/// A model without its weights' file.
pub(crate) struct Model {
    pub inputs: Vec<InputSpec>,
    /// Tensors of the file, with the names by which they can be replaced.
    pub weights: Vec<Weight>,
    pub block: Block,
    pub output_names: Vec<String>,
    /// The types that the file declares for values.
    pub declared: Vec<Option<Declared>>,
    /// The names of values.
    pub names: Vec<String>,
    /// The number of nodes, with those of blocks inside.
    pub nodes: usize,
    pub producer: String,
}

/// A tensor of the file.
pub(crate) struct Weight {
    pub name: String,
    pub slot: Slot,
    pub tensor: Tensor,
}

/// Nodes in execution order.
pub(crate) struct Block {
    pub inputs: Vec<Slot>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<Slot>,
}

/// A call.
pub(crate) struct Node {
    /// Its number among all nodes.
    pub number: usize,
    /// Its name, or that of its first output.
    pub name: String,
    pub operator: Called,
    /// The version of the operator set that the node was written for.
    pub version: i64,
    pub inputs: Vec<Option<Slot>>,
    pub outputs: Vec<Option<Slot>>,
    pub attributes: Vec<(String, Attribute)>,
    /// The line of the exporter's source, if the file has it.
    pub source: Option<String>,
}

/// The operator of a node.
pub(crate) enum Called {
    /// One of ONNX's, or one that ONNX Runtime adds.
    Standard(&'static Operator),
    /// One of a linked library, by domain and name.
    Library { domain: String, name: String },
    /// Neither: an error of every check.
    Unknown { domain: String, name: String },
}

impl Called {
    /// Its name in ONNX, with the domain if that is another one.
    pub fn text(&self) -> String {
        match self {
            Called::Standard(operator) => operator.name.to_owned(),
            Called::Library { domain, name } | Called::Unknown { domain, name } if !domain.is_empty() => {
                format!("{domain}::{name}")
            }
            Called::Library { name, .. } | Called::Unknown { name, .. } => name.clone(),
        }
    }
}

/// The value of an attribute.
pub(crate) enum Attribute {
    Int(i64),
    Float(f64),
    Text(String),
    Tensor(Tensor),
    Block(Block),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

/// The type of a value as the file declares it.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub dtype: Option<DType>,
    /// The sizes; `None` if not even the rank is declared.
    pub sizes: Option<Vec<DeclaredSize>>,
}

/// A size as the file declares it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum DeclaredSize {
    Number(i64),
    Symbol(String),
    Unknown,
}
