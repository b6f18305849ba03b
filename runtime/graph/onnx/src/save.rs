//! Graphs as ONNX models.
//!
//! In: a graph. Out: a model of version 21 of ONNX's operators. Operators that ONNX lacks are nodes of the domain of their
//! library, which [`OnnxModel`](crate::OnnxModel) reads again. Sizes that differ from run to run are computed from shapes of
//! inputs. A graph that writes memory in place, or that has branches or loops, is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use opsmith_core::DType;
use opsmith_graph::{Argument, BufferKind, Graph, Node, NodeKind, TensorId};
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Bindings, Size, Symbol};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::scalar::Scalar;
use opsmith_runtime::tensor::Tensor;
use prost::Message;

use crate::custom::LENGTHS;
use crate::errors::unsupported;
use crate::libraries::run;
use crate::messages::{self, int_attribute, ints_attribute, message};
use crate::operators::written;
use crate::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto,
    TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::tensors;

/// The versions of the format and of its operators.
const FORMAT: i64 = 10;
const OPERATORS: i64 = 21;
/// A message has at most as many bytes.
const LARGEST: usize = (1 << 31) - 1;

/// Writes a graph as an ONNX model into a file, which is replaced at once.
///
/// Inputs keep their names, or are `input0`, `input1` and so on; outputs are `output0`, `output1` and so on. Operators that
/// ONNX lacks get the domain of their library: other programs need them registered there.
///
/// # Errors
/// If the graph writes tensors in place, or has branches, loops, or sizes that are computed from elements; if it is larger
/// than a file in this format can be; or if the file cannot be written.
pub fn save_onnx(graph: &Graph, path: impl AsRef<Path>) -> Result<()> {
    let bytes = onnx_bytes(graph)?;
    let path = path.as_ref();
    let partial = path.with_extension(format!("onnx.{}.part", std::process::id()));
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        _ = std::fs::remove_file(&partial);
        Error::io(format!("{} cannot be written: {error}", path.display()))
    })
}

/// The bytes of the file that [`save_onnx`] writes.
///
/// # Errors
/// As [`save_onnx`], but for those of files.
pub fn onnx_bytes(graph: &Graph) -> Result<Vec<u8>> {
    let mut writer = Writer::new(graph)?;
    for node in graph.nodes() {
        writer.node(node).map_err(|error| error.with_note(format!("in the node `{}`", node.kind.name())))?;
    }
    let model = writer.finish()?;
    if model.encoded_len() > LARGEST {
        return Err(Error::io("the model has more than 2 GiB, which one file in this format cannot have"));
    }
    Ok(model.encode_to_vec())
}

/// The tensors of a graph that a node reads, or that are outputs.
fn used(graph: &Graph) -> BTreeSet<TensorId> {
    let mut used: BTreeSet<TensorId> = graph.outputs().iter().copied().collect();
    for node in graph.nodes() {
        for argument in &node.args {
            argument.for_each_tensor(|id| {
                used.insert(id);
            });
        }
    }
    used
}

/// A model that grows node by node.
pub(crate) struct Writer<'g> {
    graph: &'g Graph,
    message: GraphProto,
    /// The names of tensors that exist.
    names: BTreeMap<TensorId, String>,
    /// The names of values that are sizes of symbols.
    symbols: BTreeMap<Symbol, String>,
    /// Domains besides ONNX's.
    domains: Vec<String>,
    /// Names of values with a type.
    declared: BTreeSet<String>,
    /// Tensors that a node or an output reads.
    used: BTreeSet<TensorId>,
    fresh: usize,
}

impl<'g> Writer<'g> {
    fn new(graph: &'g Graph) -> Result<Writer<'g>> {
        let mut writer = Writer {
            graph,
            message: GraphProto { name: "graph".to_owned(), ..GraphProto::default() },
            names: BTreeMap::new(),
            symbols: BTreeMap::new(),
            domains: Vec::new(),
            declared: BTreeSet::new(),
            used: used(graph),
            fresh: 0,
        };
        for (number, id) in graph.inputs().iter().enumerate() {
            let given = graph.input_names().get(number).filter(|name| !name.is_empty());
            let name = given.cloned().unwrap_or_else(|| format!("input{number}"));
            writer.names.insert(*id, name.clone());
            writer.declared.insert(name.clone());
            let described = writer.described(&name, *id);
            writer.message.input.push(described);
        }
        Ok(writer)
    }

    fn finish(mut self) -> Result<ModelProto> {
        for (number, id) in self.graph.outputs().iter().enumerate() {
            let name = self.name(*id)?;
            let output = format!("output{number}");
            self.push("Identity", vec![name], vec![output.clone()], Vec::new());
            let described = self.described(&output, *id);
            self.message.output.push(described);
        }
        let own = OperatorSetIdProto { domain: String::new(), version: OPERATORS };
        let others = self.domains.into_iter().map(|domain| OperatorSetIdProto { domain, version: 1 });
        Ok(ModelProto {
            ir_version: Some(FORMAT),
            producer_name: "opsmith".to_owned(),
            producer_version: env!("CARGO_PKG_VERSION").to_owned(),
            graph: Some(self.message),
            opset_import: std::iter::once(own).chain(others).collect(),
            ..ModelProto::default()
        })
    }

    /// A value with the type of a tensor.
    fn described(&self, name: &str, id: TensorId) -> ValueInfoProto {
        let info = &self.graph.tensors()[id.0 as usize];
        let dim = |size: &Size| match size {
            Size::Const(number) => DimensionProto { dim_value: Some(*number), dim_param: None },
            other => DimensionProto { dim_value: None, dim_param: Some(self.graph.text(other)) },
        };
        let shape = TensorShapeProto { dim: info.layout.sizes.iter().map(dim).collect() };
        let tensor = TensorTypeProto { elem_type: tensors::code(info.dtype), shape: Some(shape) };
        ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type: Some(tensor) }) }
    }

    /// The name of a tensor that exists; a part of a constant becomes one of its own.
    ///
    /// # Errors
    /// If it is a part of memory that no node made as a value.
    pub fn name(&mut self, id: TensorId) -> Result<String> {
        if let Some(name) = self.names.get(&id) {
            return Ok(name.clone());
        }
        let refused = || unsupported("a tensor over memory that is written in parts");
        let layout_of =
            |id: TensorId| self.graph.tensors()[id.0 as usize].layout.evaluate(&Bindings::default());
        let buffer = &self.graph.buffers()[self.graph.tensors()[id.0 as usize].buffer.0 as usize];
        let BufferKind::Constant(tensor) = &buffer.kind else { return Err(refused()) };
        let (Some(mut layout), Some(root)) = (layout_of(id), layout_of(buffer.root)) else {
            return Err(refused());
        };
        layout.offset += tensor.layout().offset - root.offset;
        let name = self.constant(&tensor.with_layout(layout)?)?;
        self.names.insert(id, name.clone());
        Ok(name)
    }

    /// Whether a node or an output reads a tensor, or a view of it.
    pub fn is_used(&self, id: TensorId) -> bool {
        self.used.contains(&id)
    }

    pub fn dtype(&self, id: TensorId) -> DType {
        self.graph.tensors()[id.0 as usize].dtype
    }

    pub fn sizes(&self, id: TensorId) -> &'g [Size] {
        &self.graph.tensors()[id.0 as usize].layout.sizes
    }

    /// A name that no other value has.
    pub fn fresh(&mut self) -> String {
        self.fresh += 1;
        format!("value{}", self.fresh)
    }

    fn push(
        &mut self,
        operator: &str,
        input: Vec<String>,
        output: Vec<String>,
        attribute: Vec<AttributeProto>,
    ) {
        let name = format!("node{}", self.message.node.len());
        self.message.node.push(NodeProto {
            input,
            output,
            name,
            op_type: operator.to_owned(),
            attribute,
            ..NodeProto::default()
        });
    }

    /// A node with one result; returns its name.
    pub fn value(&mut self, operator: &str, input: Vec<String>, attribute: Vec<AttributeProto>) -> String {
        let output = self.fresh();
        self.push(operator, input, vec![output.clone()], attribute);
        output
    }

    /// A node with several results; returns their names.
    pub fn values(
        &mut self,
        operator: &str,
        input: Vec<String>,
        attribute: Vec<AttributeProto>,
        results: usize,
    ) -> Vec<String> {
        let outputs: Vec<String> = (0..results).map(|_| self.fresh()).collect();
        self.push(operator, input, outputs.clone(), attribute);
        outputs
    }

    /// A tensor of the model.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn constant(&mut self, tensor: &Tensor) -> Result<String> {
        let name = self.fresh();
        self.message.initializer.push(message(&name, tensor)?);
        Ok(name)
    }

    /// Numbers as a tensor of the model.
    ///
    /// # Errors
    /// None for numbers.
    pub fn ints(&mut self, numbers: &[i64]) -> Result<String> {
        self.constant(&Tensor::from_slice(numbers, &[numbers.len() as i64])?)
    }

    /// A number of a dtype, without dimensions.
    ///
    /// # Errors
    /// None for numbers.
    pub fn number(&mut self, number: Scalar, dtype: DType) -> Result<String> {
        let tensor = run!("full", Vec::<i64>::new(), number; "dtype" => dtype)?;
        self.constant(&tensor)
    }

    /// A value converted to a dtype.
    pub fn cast(&mut self, name: String, from: DType, to: DType) -> String {
        match from == to {
            true => name,
            false => self.value("Cast", vec![name], vec![int_attribute("to", i64::from(tensors::code(to)))]),
        }
    }

    /// Gives a tensor that a node makes its value.
    ///
    /// # Errors
    /// If the tensor is a part of memory that exists.
    pub fn define(&mut self, id: TensorId, name: String) -> Result<()> {
        let info = &self.graph.tensors()[id.0 as usize];
        let buffer = &self.graph.buffers()[info.buffer.0 as usize];
        // A write of all elements is a new value, unless another value shows the old ones.
        let is_shown =
            |other: &TensorId| *other != id && self.graph.tensors()[other.0 as usize].buffer == info.buffer;
        let is_whole = matches!(buffer.kind, BufferKind::Internal) && buffer.root == id;
        if !is_whole || self.names.keys().any(is_shown) {
            return Err(unsupported("a call that writes a tensor in place")
                .with_help("trace a function that returns new tensors"));
        }
        self.declare(id, name);
        Ok(())
    }

    /// Names a tensor, with its type: sizes of values tell a reader which sizes of inputs the graph takes.
    fn declare(&mut self, id: TensorId, name: String) {
        let described = self.described(&name, id);
        if self.declared.insert(name.clone()) {
            self.message.value_info.push(described);
        }
        self.names.insert(id, name);
    }

    /// Sizes as a vector of integers.
    ///
    /// # Errors
    /// If one is computed from elements, or by more than sums and products.
    pub fn shape(&mut self, sizes: &[Size]) -> Result<String> {
        if let Some(numbers) = sizes.iter().map(Size::known).collect::<Option<Vec<_>>>() {
            return self.ints(&numbers);
        }
        let each = sizes.iter().map(|size| self.size(size)).collect::<Result<Vec<_>>>()?;
        Ok(self.value("Concat", each, vec![int_attribute("axis", 0)]))
    }

    /// A size as a vector of one integer.
    fn size(&mut self, size: &Size) -> Result<String> {
        let formula = match size {
            Size::Const(number) => return self.ints(&[*number]),
            Size::Formula(formula) => formula.clone(),
            Size::Unknown => return Err(unsupported("an unknown size")),
        };
        let mut sum: Option<String> = None;
        for term in formula.terms() {
            let mut product = self.ints(&[term.coefficient])?;
            for (symbol, power) in &term.powers {
                for _ in 0..*power {
                    let factor = self.symbol(*symbol)?;
                    product = self.value("Mul", vec![product, factor], Vec::new());
                }
            }
            sum = Some(match sum {
                Some(sum) => self.value("Add", vec![sum, product], Vec::new()),
                None => product,
            });
        }
        sum.ok_or_else(|| unsupported("an empty formula"))
    }

    fn symbol(&mut self, symbol: Symbol) -> Result<String> {
        if let Some(name) = self.symbols.get(&symbol) {
            return Ok(name.clone());
        }
        let found = self.graph.inputs().iter().find_map(|id| {
            let dim = self.sizes(*id).iter().position(|size| size.as_symbol() == Some(symbol))?;
            Some((*id, dim as i64))
        });
        let Some((id, dim)) = found else {
            return Err(unsupported("a size that is no sum of products of sizes of inputs"));
        };
        let input = self.name(id)?;
        let part = vec![int_attribute("start", dim), int_attribute("end", dim + 1)];
        let name = self.value("Shape", vec![input], part);
        self.symbols.insert(symbol, name.clone());
        Ok(name)
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        match &node.kind {
            NodeKind::Call { op, compute } => {
                let done = written::call(self, op.name, *compute, node)?;
                if done { Ok(()) } else { self.custom(node) }
            }
            NodeKind::View { op } => match written::view(self, op.name, node)? {
                Some(names) => {
                    node.outs.iter().zip(names).for_each(|(id, name)| self.declare(*id, name));
                    Ok(())
                }
                None => Err(unsupported("this view")),
            },
            NodeKind::Copy => {
                let Some(Argument::Tensor(source)) = node.args.first() else {
                    return Err(Error::argument("a copy has no source"));
                };
                let out = node.outs[0];
                let name = self.name(*source)?;
                let name = self.cast(name, self.dtype(*source), self.dtype(out));
                let shape = self.shape(self.sizes(out))?;
                let name = self.value("Expand", vec![name, shape], Vec::new());
                self.define(out, name)
            }
            _ => Err(unsupported("a branch, a loop or a sum into memory")
                .with_help("save the graph with `Graph::save`, which has all of it")),
        }
    }

    /// A node of the domain of its operator's library.
    fn custom(&mut self, node: &Node) -> Result<()> {
        let NodeKind::Call { op, .. } = &node.kind else { return Err(unsupported("this node")) };
        let domain = op.library.name.replace('-', "_");
        let (mut input, mut attribute, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for (argument, given) in op.schema.args.iter().zip(&node.args) {
            match given {
                Argument::Tensor(id) => input.push(self.name(*id)?),
                Argument::Tensors(ids) => {
                    lengths.push(ids.len() as i64);
                    for id in ids {
                        input.push(self.name(*id)?);
                    }
                }
                Argument::OptionalTensors(ids) => {
                    lengths.push(ids.len() as i64);
                    for id in ids {
                        input.push(match id {
                            Some(id) => self.name(*id)?,
                            None => String::new(),
                        });
                    }
                }
                Argument::Value(Value::None) if argument.ty.kind == opsmith_runtime::op::ArgKind::Tensor => {
                    input.push(String::new());
                }
                other => attribute.extend(messages::attribute(argument.name, other)?),
            }
        }
        if !lengths.is_empty() {
            attribute.push(ints_attribute(LENGTHS, lengths));
        }
        let outputs: Vec<String> = node.outs.iter().map(|_| self.fresh()).collect();
        let name = format!("node{}", self.message.node.len());
        self.message.node.push(NodeProto {
            input,
            output: outputs.clone(),
            name,
            op_type: op.name.to_owned(),
            domain: domain.clone(),
            attribute,
            ..NodeProto::default()
        });
        if !self.domains.contains(&domain) {
            self.domains.push(domain);
        }
        node.outs.iter().zip(outputs).try_for_each(|(id, name)| self.define(*id, name))
    }
}
