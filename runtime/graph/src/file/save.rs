//! Saving: from a graph to texts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use opsmith_core::DType;
use opsmith_runtime::arg::Arg;
use opsmith_runtime::error::{Error, ErrorKind, Result};
use opsmith_runtime::infer::symbolic::{Condition, Derivation, Guard, Origin, Size, Symbol};
use opsmith_runtime::internals::{self, Borrows, StorageInternals as _};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use safetensors::Dtype;
use safetensors::tensor::View;
use sha2::{Digest as _, Sha256};

use super::argument;
use super::changes;
use super::format::{self, Document, FORMAT, Kind, Operator, VERSION};
use crate::ir::{self, Graph, NodeKind, SymbolSource};

/// `graph.json` and `constants.safetensors`.
pub(super) fn texts(graph: &Graph) -> Result<(String, Vec<u8>)> {
    let mut saver = Saver { operators: BTreeMap::new(), constants: Vec::new(), names: HashMap::new() };
    let graph = saver.graph(graph)?;
    let constants = safetensors::serialize(saver.constants, None).map_err(unwritable)?;
    let document = Document {
        format: FORMAT.to_owned(),
        version: VERSION,
        operators: saver.operators,
        constants: digest(&constants),
        graph,
    };
    Ok((serde_json::to_string_pretty(&document).map_err(unwritable)?, constants))
}

/// A digest of a file of constants.
pub(super) fn digest(constants: &[u8]) -> String {
    Sha256::digest(constants).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unwritable(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("the graph cannot be written: {error}"))
}

/// The bytes of a constant.
struct Constant {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Constant {
    fn of(whole: &Tensor) -> Result<Constant> {
        let count = whole.storage().bytes();
        let args = [Arg::Tensor(whole)];
        let _held = Borrows::acquire(&args, &[])?;
        // SAFETY: the constant's creator has written it, and it is borrowed.
        let bytes = unsafe { internals::bytes_of(whole.storage())? };
        let (dtype, parts) = stored(whole.dtype());
        Ok(Constant { dtype, shape: vec![count / whole.dtype().size() * parts], bytes })
    }
}

macro_rules! stored {
    ($({
        $variant:ident: $rust:ty, $name:literal, $kind:ident, $size:literal, $numpy:literal, $safetensors:ident,
        $($columns:tt)*
    })*) => {
        /// The safetensors dtype, and the number of its values per element.
        pub(super) fn stored(dtype: DType) -> (Dtype, usize) {
            let parts = if dtype.is_complex() { 2 } else { 1 };
            match dtype { $(DType::$variant => (Dtype::$safetensors, parts),)* }
        }
    };
}

opsmith_core::for_each_dtype!(stored);

impl View for Constant {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

struct Saver {
    operators: BTreeMap<String, Operator>,
    constants: Vec<(String, Constant)>,
    /// The names of constants, by the address of their memory: variants share them.
    names: HashMap<(usize, DType), String>,
}

impl Saver {
    fn graph(&mut self, graph: &Graph) -> Result<format::Graph> {
        Ok(format::Graph {
            symbols: graph.symbols.all().map(|of| symbol(graph, of)).collect::<Result<_>>()?,
            guards: graph.guards.iter().map(guard).collect::<Result<_>>()?,
            inputs: graph
                .inputs
                .iter()
                .enumerate()
                .map(|(number, id)| format::Input {
                    name: graph.input_names.get(number).cloned().unwrap_or_default(),
                    tensor: *id,
                    requires_grad: graph.grad_inputs.contains(&number),
                })
                .collect(),
            outputs: graph.outputs.clone(),
            buffers: graph.buffers.iter().map(|buffer| self.buffer(buffer)).collect::<Result<_>>()?,
            tensors: graph.tensors.iter().map(tensor).collect(),
            nodes: self.nodes(&graph.nodes)?,
            reuse: graph.reuse,
            fuse: graph.tile.is_some(),
            variants: graph
                .variants
                .iter()
                .map(|variant| {
                    let graph = self.graph(&variant.graph)?;
                    Ok(format::Variant { symbol: variant.symbol.0 as usize, value: variant.value, graph })
                })
                .collect::<Result<_>>()?,
        })
    }

    fn buffer(&mut self, buffer: &ir::Buffer) -> Result<format::Buffer> {
        let kind = match &buffer.kind {
            ir::BufferKind::Input(input) => format::BufferKind::Input(*input),
            ir::BufferKind::Constant(whole) => format::BufferKind::Constant(self.constant(whole)?),
            ir::BufferKind::Internal => format::BufferKind::Internal,
        };
        Ok(format::Buffer { kind, root: buffer.root })
    }

    fn constant(&mut self, whole: &Tensor) -> Result<String> {
        let key = (whole.storage().address(), whole.dtype());
        if let Some(name) = self.names.get(&key) {
            return Ok(name.clone());
        }
        let name = format!("constant{}", self.constants.len());
        self.constants.push((name.clone(), Constant::of(whole)?));
        self.names.insert(key, name.clone());
        Ok(name)
    }

    fn nodes(&mut self, nodes: &[ir::Node]) -> Result<Vec<format::Node>> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn operator(&mut self, op: &'static OpDef) -> Result<String> {
        if op.custom.is_some() {
            return Err(Error::graph(format!(
                "`{}` was declared while the program ran, and cannot be saved",
                op.name
            ))
            .with_help("declare it in a spec, so that the program that loads the graph has it, too"));
        }
        self.operators.entry(op.name.to_owned()).or_insert_with(|| changes::record(op));
        Ok(op.name.to_owned())
    }

    fn node(&mut self, node: &ir::Node) -> Result<format::Node> {
        let kind = match &node.kind {
            NodeKind::Call { op, compute } => {
                Kind::Call { op: self.operator(op)?, compute: compute.name().to_owned() }
            }
            NodeKind::View { op } => Kind::View { op: self.operator(op)? },
            NodeKind::Copy => Kind::Copy,
            NodeKind::Add => Kind::Add,
            NodeKind::Cond { branches } => Kind::Cond {
                then: self.nodes(&branches[0].nodes)?,
                otherwise: self.nodes(&branches[1].nodes)?,
            },
            NodeKind::While { condition, predicate, body } => Kind::While {
                condition: self.nodes(&condition.nodes)?,
                predicate: *predicate,
                body: self.nodes(&body.nodes)?,
            },
            NodeKind::Scan { length, moving, body } => Kind::Scan {
                length: size(length),
                moving: moving.iter().map(|moving| (moving.tensor, size(&moving.step))).collect(),
                body: self.nodes(&body.nodes)?,
            },
        };
        let args = node.args.iter().map(argument::write).collect::<Result<_>>();
        let args = args.map_err(|error| error.with_note(format!("called at {}", node.site)))?;
        let site = (node.site != ir::Site::Unknown).then(|| node.site.to_string());
        Ok(format::Node { kind, args, outs: node.outs.to_vec(), site })
    }
}

fn guard(guard: &Guard) -> Result<format::Guard> {
    match &guard.condition {
        Condition::Equal(formula, Size::Const(equals)) => {
            Ok(format::Guard { size: size(formula), equals: *equals, reason: guard.reason.clone() })
        }
        _ => Err(Error::graph("a condition other than an equation cannot be saved")),
    }
}

fn symbol(graph: &Graph, symbol: Symbol) -> Result<format::Symbol> {
    let (info, name) = (graph.symbols.info(symbol), graph.text(&Size::from(symbol)));
    let info = info.ok_or_else(|| Error::graph(format!("there is no symbol `{name}`")))?;
    let source = match graph.source(symbol) {
        SymbolSource::Input { input, dim } => format::Source::Input { input, dim },
        SymbolSource::Node { tensor, dim } => format::Source::Node { tensor, dim },
        SymbolSource::Derived => quotient(&info.origin).ok_or_else(|| {
            Error::graph(format!("the size `{name}` is no quotient of one size, and cannot be saved"))
        })?,
    };
    Ok(format::Symbol {
        name,
        least: info.least,
        most: info.most.known().unwrap_or(i64::MAX),
        multiple_of: info.multiple_of,
        example: info.example.unwrap_or(info.least),
        source,
    })
}

/// The symbol and the divisor of a quotient.
fn quotient(origin: &Origin) -> Option<format::Source> {
    let Origin::Derived(Derivation::Quotient(dividend, Size::Const(by))) = origin else { return None };
    let [symbol] = dividend.symbols()[..] else { return None };
    let plus = (dividend - &Size::from(symbol)).known()?;
    Some(format::Source::Quotient { symbol: symbol.0 as usize, plus, by: *by })
}

fn tensor(info: &ir::TensorInfo) -> format::Tensor {
    format::Tensor {
        buffer: info.buffer,
        dtype: info.dtype.name().to_owned(),
        device: info.device.to_string(),
        sizes: info.layout.sizes.iter().map(size).collect(),
        strides: info.layout.strides.iter().map(size).collect(),
        offset: size(&info.layout.offset),
    }
}

/// The form of a size in a file.
pub(super) fn size(size: &Size) -> format::Size {
    match size {
        Size::Const(value) => format::Size::Number(*value),
        Size::Unknown => format::Size::Unknown(()),
        Size::Formula(formula) => {
            let term = |term: &opsmith_runtime::internals::Term| format::Term {
                times: term.coefficient,
                of: term
                    .powers
                    .iter()
                    .flat_map(|&(symbol, power)| (0..power).map(move |_| symbol.0))
                    .collect(),
            };
            format::Size::Sum(formula.terms().iter().map(term).collect())
        }
    }
}
