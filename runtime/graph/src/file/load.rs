//! Loading: from texts to a graph. The texts are not trusted: every number is checked before use, operators are
//! compared with those of this program, and the graph is bound to the sizes of its example before it is returned.

use std::collections::{BTreeMap, BTreeSet};

use opsmith_core::DType;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{Condition, Guard, Origin, Size, Symbol, SymbolInfo};
use opsmith_runtime::internals::TensorInternals as _;
use opsmith_runtime::layout::MAX_NUMEL;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use safetensors::SafeTensors;

use super::argument::{self, device, dtype};
use super::changes;
use super::format::{self, Document, FORMAT, Head, Kind, Operator, VERSION};
use super::save::{self, stored};
use super::structure;
use crate::build::calls::find;
use crate::ir::{
    self, Graph, Moving, NodeKind, Region, Site, SymbolSource, SymbolicLayout, TensorId, Variant,
};
use crate::plan::bind;
use crate::plan::fusion::TILE;
use crate::plan::verify::malformed;

/// The graph in `graph.json` and `constants.safetensors`.
pub(super) fn graph(structure: &[u8], constants: &[u8]) -> Result<Graph> {
    let unreadable = |error: serde_json::Error| malformed(format!("`graph.json` cannot be read: {error}"));
    let head: Head = serde_json::from_slice(structure).map_err(unreadable)?;
    if head.format != FORMAT || head.version != VERSION {
        return Err(Error::graph(format!(
            "the file is of the format {:?}, version {}, and this program reads {FORMAT:?}, version {VERSION}",
            head.format, head.version
        ))
        .with_help("save the graph again with the version of opsmith that loads it"));
    }
    let document: Document = serde_json::from_slice(structure).map_err(unreadable)?;
    if save::digest(constants) != document.constants {
        return Err(malformed("`constants.safetensors` is not the file that was written with `graph.json`"));
    }
    let constants = SafeTensors::deserialize(constants)
        .map_err(|error| malformed(format!("`constants.safetensors` cannot be read: {error}")))?;
    refuse_changes(&document)?;
    Loader { document: &document.graph, operators: &document.operators, constants: &constants }
        .graph(&mut BTreeMap::new())
}

/// Reports all changes of the operators that the graph calls.
fn refuse_changes(document: &Document) -> Result<()> {
    let mut found = Vec::new();
    for (name, was) in &document.operators {
        match find(name) {
            Ok(op) => {
                let changes = changes::between(was, &changes::record(op));
                found.extend(changes.into_iter().map(|change| format!("`{name}`: {change}")));
            }
            Err(_) => found.push(format!("`{name}`: no library in this program has it any more")),
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let error = Error::graph(format!("{} changed since the graph was saved", counted(found.len())));
    let error = found.into_iter().fold(error, Error::with_note);
    Err(error.with_help("trace the function again, and save the new graph"))
}

fn counted(count: usize) -> String {
    if count == 1 { "an operator".to_owned() } else { format!("{count} things about operators") }
}

struct Loader<'a> {
    document: &'a format::Graph,
    operators: &'a BTreeMap<String, Operator>,
    constants: &'a SafeTensors<'a>,
}

impl Loader<'_> {
    /// The graph and its variants, which share constants of the same name.
    fn graph(&self, loaded: &mut BTreeMap<String, Tensor>) -> Result<Graph> {
        let document = self.document;
        let inputs: Vec<TensorId> = document.inputs.iter().map(|input| input.tensor).collect();
        let mut own = BTreeSet::new();
        let buffer = |buffer: &format::Buffer| {
            if let format::BufferKind::Constant(name) = &buffer.kind
                && !own.insert(name.clone())
            {
                return Err(malformed(format!("two buffers are the constant `{name}`")));
            }
            self.buffer(buffer, loaded)
        };
        let mut graph = Graph {
            tensors: document.tensors.iter().map(|tensor| self.tensor(tensor)).collect::<Result<_>>()?,
            buffers: document.buffers.iter().map(buffer).collect::<Result<_>>()?,
            nodes: self.nodes(&document.nodes)?,
            input_names: document.inputs.iter().map(|input| input.name.clone()).collect(),
            grad_inputs: (0..inputs.len()).filter(|&input| document.inputs[input].requires_grad).collect(),
            inputs,
            outputs: document.outputs.clone(),
            guards: document
                .guards
                .iter()
                .map(|guard| {
                    let size = self.size(&guard.size)?;
                    let condition = Condition::Equal(size, Size::Const(guard.equals));
                    Ok(Guard { condition, op: "", reason: guard.reason.clone() })
                })
                .collect::<Result<_>>()?,
            reuse: document.reuse,
            tile: document.fuse.then_some(TILE),
            loaded: true,
            // Graphs with generators or shape constants of their own are not saved.
            ..Graph::default()
        };
        symbols(&document.symbols, &mut graph)?;
        structure::check(&graph)?;
        bind::everything(&graph)?;
        for variant in &document.variants {
            let format::Variant { symbol, value, graph: of } = variant;
            let variant = Loader { document: of, ..*self }.graph(loaded)?;
            let fits = matches!(graph.sources.get(*symbol), Some(SymbolSource::Input { .. }))
                && variant.inputs.len() == graph.inputs.len()
                && variant.outputs.len() == graph.outputs.len();
            if !fits {
                return Err(malformed("a variant is not for the inputs and outputs of its graph"));
            }
            graph.variants.push(Variant { symbol: Symbol(*symbol as u32), value: *value, graph: variant });
        }
        Ok(graph)
    }

    fn tensor(&self, tensor: &format::Tensor) -> Result<ir::TensorInfo> {
        let sizes = |list: &[format::Size]| list.iter().map(|size| self.size(size)).collect::<Result<_>>();
        if tensor.strides.len() != tensor.sizes.len() {
            return Err(malformed("a tensor has another number of sizes than of strides"));
        }
        Ok(ir::TensorInfo {
            buffer: tensor.buffer,
            dtype: dtype(&tensor.dtype)?,
            device: device(&tensor.device)?,
            layout: SymbolicLayout {
                sizes: sizes(&tensor.sizes)?,
                strides: sizes(&tensor.strides)?,
                offset: self.size(&tensor.offset)?,
            },
        })
    }

    fn buffer(&self, buffer: &format::Buffer, loaded: &mut BTreeMap<String, Tensor>) -> Result<ir::Buffer> {
        let kind = match &buffer.kind {
            format::BufferKind::Input(input) => ir::BufferKind::Input(*input),
            format::BufferKind::Internal => ir::BufferKind::Internal,
            format::BufferKind::Constant(name) => {
                let constant = self.constant(name, buffer.root)?;
                let dtype = constant.dtype();
                let shared = loaded.entry(name.clone()).or_insert(constant);
                if shared.dtype() != dtype {
                    return Err(malformed(format!(
                        "the constant `{name}` is {} and {dtype}",
                        shared.dtype()
                    )));
                }
                ir::BufferKind::Constant(shared.clone())
            }
        };
        Ok(ir::Buffer { kind, root: buffer.root })
    }

    fn constant(&self, name: &str, root: TensorId) -> Result<Tensor> {
        let view = self
            .constants
            .tensor(name)
            .map_err(|error| malformed(format!("the constant `{name}` cannot be read: {error}")))?;
        let root = self.document.tensors.get(root.index()).ok_or_else(|| unknown("tensor", root.0))?;
        let dtype = dtype(&root.dtype)?;
        let bytes = view.data();
        if view.dtype() != stored(dtype).0 || !bytes.len().is_multiple_of(dtype.size()) {
            return Err(malformed(format!(
                "the constant `{name}` is {:?}, and the graph takes {dtype}",
                view.dtype()
            )));
        }
        if dtype == DType::Bool && bytes.iter().any(|byte| *byte > 1) {
            return Err(malformed(format!("the constant `{name}` has truth values other than 0 and 1")));
        }
        let count = (bytes.len() / dtype.size()) as i64;
        // SAFETY: every element is written below.
        let tensor = unsafe { Tensor::with_memory(&[count], dtype, Device::CPU)? };
        // SAFETY: the new tensor has no other owner, and has the same number of bytes; those of a `bool` were checked,
        // and all bytes are valid for the other dtypes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), tensor.data_ptr(), bytes.len()) };
        tensor.on(device(&root.device)?)
    }

    fn nodes(&self, nodes: &[format::Node]) -> Result<Vec<ir::Node>> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn region(&self, nodes: &[format::Node]) -> Result<Region> {
        Ok(Region { nodes: self.nodes(nodes)? })
    }

    fn operator(&self, name: &str) -> Result<&'static OpDef> {
        if !self.operators.contains_key(name) {
            return Err(malformed(format!(
                "a step calls `{name}`, which is not among the operators of the file"
            )));
        }
        find(name)
    }

    fn node(&self, node: &format::Node) -> Result<ir::Node> {
        let kind = match &node.kind {
            Kind::Call { op, compute } => NodeKind::Call { op: self.operator(op)?, compute: dtype(compute)? },
            Kind::View { op } => NodeKind::View { op: self.operator(op)? },
            Kind::Copy => NodeKind::Copy,
            Kind::Add => NodeKind::Add,
            Kind::Cond { then, otherwise } => {
                NodeKind::Cond { branches: Box::new([self.region(then)?, self.region(otherwise)?]) }
            }
            Kind::While { condition, predicate, body } => NodeKind::While {
                condition: self.region(condition)?,
                predicate: *predicate,
                body: self.region(body)?,
            },
            Kind::Scan { length, moving, body } => NodeKind::Scan {
                length: self.size(length)?,
                moving: moving
                    .iter()
                    .map(|(tensor, step)| Ok(Moving { tensor: *tensor, step: self.size(step)? }))
                    .collect::<Result<_>>()?,
                body: self.region(body)?,
            },
        };
        let args =
            node.args.iter().map(|arg| argument::read(arg, |size| self.size(size))).collect::<Result<_>>()?;
        let site = node.site.clone().map_or(Site::Unknown, Site::Elsewhere);
        Ok(ir::Node { kind, args, outs: node.outs.as_slice().into(), site })
    }

    fn size(&self, size: &format::Size) -> Result<Size> {
        /// Maximal length of formulas found by tracing; their degree is bounded, too.
        const TERMS: usize = 64;
        const DEGREE: usize = 8;
        match size {
            format::Size::Number(value) => Ok(Size::Const(*value)),
            format::Size::Unknown(()) => Ok(Size::Unknown),
            format::Size::Sum(terms) => {
                if terms.len() > TERMS {
                    return Err(malformed(format!(
                        "a formula has {} terms, at most {TERMS} are read",
                        terms.len()
                    )));
                }
                terms.iter().try_fold(Size::Const(0), |sum, term| {
                    if term.of.len() > DEGREE {
                        return Err(malformed(format!(
                            "a term has {} factors, at most {DEGREE} are read",
                            term.of.len()
                        )));
                    }
                    let mut product = Size::Const(term.times);
                    for &symbol in &term.of {
                        if symbol as usize >= self.document.symbols.len() {
                            return Err(unknown("symbol", symbol));
                        }
                        product = product * Size::from(Symbol(symbol));
                    }
                    Ok(sum + product)
                })
            }
        }
    }
}

pub(super) fn unknown(what: &str, number: u32) -> Error {
    malformed(format!("there is no {what} {number}"))
}

/// Adds the symbols to a graph that is otherwise complete. Quotients are derived again, with their bounds and names.
fn symbols(symbols: &[format::Symbol], graph: &mut Graph) -> Result<()> {
    /// Limit of symbols; tracing adds a few for each input, quotient and node with data-dependent sizes.
    const MOST: usize = 1024;
    if symbols.len() > MOST {
        return Err(malformed(format!("the graph has {} symbols, at most {MOST} are read", symbols.len())));
    }
    for symbol in symbols {
        let format::Symbol { name, least, most, multiple_of, example, source } = symbol;
        let bounded = 0 <= *least
            && least <= example
            && example <= most
            && (1..=MAX_NUMEL).contains(multiple_of)
            && example % multiple_of == 0;
        if !bounded {
            return Err(malformed(format!(
                "`{name}` is a size from {least} to {most}, a multiple of {multiple_of}, and {example} is not one"
            )));
        }
        let source = match *source {
            format::Source::Input { input, dim } => SymbolSource::Input { input, dim },
            format::Source::Node { tensor, dim } => SymbolSource::Node { tensor, dim },
            format::Source::Quotient { symbol: of, plus, by } => {
                let is_input = matches!(graph.sources.get(of), Some(SymbolSource::Input { .. }));
                let count = graph.symbols.len();
                if is_input && (0..by).contains(&plus) {
                    let dividend = Size::from(Symbol(of as u32)) + Size::Const(plus);
                    graph.symbols.quotient(&dividend, &Size::Const(by));
                }
                // An existing symbol or a formula is not valid here either.
                if graph.symbols.len() == count {
                    return Err(malformed(format!("`{name}` is no quotient of an input's size")));
                }
                graph.sources.push(SymbolSource::Derived);
                continue;
            }
        };
        let most = if *most == i64::MAX { Size::Unknown } else { Size::Const(*most) };
        let info = SymbolInfo::new(name, Origin::Input);
        let (least, multiple_of, example) = (*least, *multiple_of, Some(*example));
        graph.add_symbol(SymbolInfo { least, most, multiple_of, example, ..info }, source);
    }
    Ok(())
}
