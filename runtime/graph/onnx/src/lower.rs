//! Lowering: from messages to the typed model.
//!
//! In: a message of a model, and a reader of its tensors. Out: the model, in which values have numbers, nodes have
//! operators, and calls of the model's own functions are replaced by their nodes. The first damaged part ends it; a node
//! whose operator is unknown is kept, so that `check` lists it with all other mistakes.

use std::collections::{BTreeMap, BTreeSet};

use opsmith_core::DType;
use opsmith_graph::{Dim, InputSpec};
use opsmith_runtime::error::{Error, Result};

use crate::attributes;
use crate::errors::{damaged, unsupported};
use crate::libraries;
use crate::model::{Attribute, Block, Called, Declared, DeclaredSize, Model, Node, Slot, Weight};
use crate::operators;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::tensors::{self, Reader};

/// The versions of ONNX's operators that this reader knows.
pub(crate) const VERSIONS: std::ops::RangeInclusive<i64> = 18..=23;
/// Depth of blocks in blocks and of functions in functions.
const DEPTH: usize = 32;
/// Nodes of a model, with those of functions at each of their calls.
const NODES: usize = 1 << 20;

/// Lowers a model.
///
/// # Errors
/// If it is damaged, or needs another version of the operators.
pub(crate) fn model(message: &ModelProto, reader: &Reader) -> Result<Model> {
    let Some(graph) = &message.graph else {
        return Err(damaged("the graph", "it is missing"));
    };
    let mut lowering = Lowering {
        reader,
        functions: message.functions.iter().map(|function| (function_key(function), function)).collect(),
        versions: versions(message)?,
        names: Vec::new(),
        declared: Vec::new(),
        weights: Vec::new(),
        nodes: 0,
    };
    let mut scope = Scope::default();
    let initial: BTreeSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    let given: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|input| !initial.contains(input.name.as_str())).collect();
    let inputs = inputs(&given)?;
    let block = lowering.block(graph, &given, &mut scope, 0)?;
    Ok(Model {
        inputs,
        weights: lowering.weights,
        block,
        output_names: graph.output.iter().map(|output| output.name.clone()).collect(),
        declared: lowering.declared,
        names: lowering.names,
        nodes: lowering.nodes,
        producer: format!("{} {}", message.producer_name, message.producer_version).trim().to_owned(),
    })
}

/// The version of each domain.
fn versions(message: &ModelProto) -> Result<BTreeMap<String, i64>> {
    let mut versions = BTreeMap::new();
    for imported in &message.opset_import {
        let domain = if imported.domain == "ai.onnx" { "" } else { &imported.domain };
        if domain.is_empty() && !VERSIONS.contains(&imported.version) {
            return Err(Error::argument(format!(
                "the model is written for version {} of the operators of ONNX, and this reader knows {} to {}",
                imported.version,
                VERSIONS.start(),
                VERSIONS.end()
            ))
            .with_help("export it with `opset_version=18`, or convert it with `onnx.version_converter.convert_version`"));
        }
        versions.insert(domain.to_owned(), imported.version);
    }
    Ok(versions)
}

/// The inputs of each run, with symbols for sizes that the file leaves open.
fn inputs(given: &[&ValueInfoProto]) -> Result<Vec<InputSpec>> {
    let mut specs = Vec::with_capacity(given.len());
    for input in given {
        let place = || format!("the input `{}`", input.name);
        let declared = declared(input).map_err(|error| error.with_note(format!("for {}", place())))?;
        let (Some(dtype), Some(sizes)) = (declared.dtype, declared.sizes) else {
            return Err(unsupported(format!("{}, which is no tensor or has no rank,", place()))
                .with_help("export the model with tensors of known ranks as inputs"));
        };
        let dim = |(at, size): (usize, DeclaredSize)| match size {
            DeclaredSize::Number(number) => Dim::Fixed(number),
            DeclaredSize::Symbol(name) => Dim::from(name.as_str()),
            DeclaredSize::Unknown => Dim::from(format!("{}.{at}", input.name).as_str()),
        };
        specs.push(InputSpec::new(dtype, sizes.into_iter().enumerate().map(dim)).named(input.name.clone()));
    }
    Ok(specs)
}

/// The type of a value.
fn declared(value: &ValueInfoProto) -> Result<Declared> {
    let Some(tensor) = value.r#type.as_ref().and_then(|ty| ty.tensor_type.as_ref()) else {
        return Ok(Declared { dtype: None, sizes: None });
    };
    let dtype: Option<DType> = match tensor.elem_type {
        0 => None,
        code => Some(tensors::dtype(i64::from(code))?),
    };
    let sizes = tensor.shape.as_ref().map(|shape| {
        let size = |dim: &crate::proto::DimensionProto| match (&dim.dim_value, &dim.dim_param) {
            // Negative numbers are how some exporters write unknown sizes.
            (Some(number @ 0..), _) => DeclaredSize::Number(*number),
            (None, Some(name)) if !name.is_empty() => DeclaredSize::Symbol(name.clone()),
            _ => DeclaredSize::Unknown,
        };
        shape.dim.iter().map(size).collect()
    });
    Ok(Declared { dtype, sizes })
}

/// The names of values that are visible, from the outermost block.
#[derive(Default)]
struct Scope {
    levels: Vec<BTreeMap<String, Slot>>,
}

impl Scope {
    fn find(&self, name: &str) -> Option<Slot> {
        self.levels.iter().rev().find_map(|level| level.get(name).copied())
    }
}

type FunctionKey = (String, String, String);

fn function_key(function: &FunctionProto) -> FunctionKey {
    (function.domain.clone(), function.name.clone(), function.overload.clone())
}

struct Lowering<'a> {
    reader: &'a Reader,
    functions: BTreeMap<FunctionKey, &'a FunctionProto>,
    versions: BTreeMap<String, i64>,
    names: Vec<String>,
    declared: Vec<Option<Declared>>,
    weights: Vec<Weight>,
    nodes: usize,
}

/// Attributes of a call, for the nodes of the function that refer to them.
type Bindings<'a> = BTreeMap<&'a str, &'a AttributeProto>;

impl<'a> Lowering<'a> {
    fn slot(&mut self, name: &str) -> Slot {
        self.names.push(name.to_owned());
        self.declared.push(None);
        self.names.len() - 1
    }

    /// A new value in the innermost level.
    fn define(&mut self, name: &str, scope: &mut Scope) -> Result<Slot> {
        let slot = self.slot(name);
        let level = scope.levels.last_mut().expect("a block has a level");
        match level.insert(name.to_owned(), slot) {
            None => Ok(slot),
            Some(_) => Err(damaged(&format!("the value `{name}`"), "it is defined twice")),
        }
    }

    fn block(
        &mut self,
        graph: &'a GraphProto,
        given: &[&ValueInfoProto],
        scope: &mut Scope,
        depth: usize,
    ) -> Result<Block> {
        if depth > DEPTH {
            return Err(damaged("a graph", format!("blocks are nested more than {DEPTH} deep")));
        }
        if !graph.sparse_initializer.is_empty() {
            return Err(unsupported("a sparse tensor").with_help("export the model with dense tensors"));
        }
        scope.levels.push(BTreeMap::new());
        let inputs = given.iter().map(|input| self.define(&input.name, scope)).collect::<Result<_>>()?;
        for message in &graph.initializer {
            let tensor = self.reader.tensor(message)?;
            let slot = self.define(&message.name, scope)?;
            self.weights.push(Weight { name: message.name.clone(), slot, tensor });
        }
        let mut nodes = Vec::with_capacity(graph.node.len());
        self.nodes(&graph.node, &Bindings::new(), scope, depth, &mut nodes)?;
        for value in graph.value_info.iter().chain(&graph.input).chain(&graph.output) {
            let known = scope.levels.last().and_then(|level| level.get(&value.name));
            if let Some(slot) = known {
                // A type that no tensor here has is an error of the node that needs it.
                self.declared[*slot] = declared(value).ok();
            }
        }
        let outputs = graph.output.iter().map(|output| {
            scope
                .find(&output.name)
                .ok_or_else(|| damaged(&format!("the output `{}`", output.name), "no node makes it"))
        });
        let outputs = outputs.collect::<Result<_>>()?;
        scope.levels.pop();
        Ok(Block { inputs, nodes, outputs })
    }

    fn nodes(
        &mut self,
        messages: &'a [NodeProto],
        bindings: &Bindings<'a>,
        scope: &mut Scope,
        depth: usize,
        into: &mut Vec<Node>,
    ) -> Result<()> {
        for message in messages {
            let name = node_name(message);
            let noted = |error: Error| error.with_note(format!("in the node `{name}` ({})", message.op_type));
            let domain = if message.domain == "ai.onnx" { "" } else { &message.domain };
            let key = (domain.to_owned(), message.op_type.clone(), message.overload.clone());
            if let Some(function) = self.functions.get(&key).copied() {
                self.function(function, message, bindings, scope, depth, into).map_err(noted)?;
                continue;
            }
            let node = self.node(message, domain, bindings, scope, depth).map_err(noted)?;
            into.push(node);
        }
        Ok(())
    }

    fn node(
        &mut self,
        message: &'a NodeProto,
        domain: &str,
        bindings: &Bindings<'a>,
        scope: &mut Scope,
        depth: usize,
    ) -> Result<Node> {
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(damaged(
                "the graph",
                format!("it has more than {NODES} nodes, with those of functions"),
            ));
        }
        let number = self.nodes - 1;
        let inputs =
            message.input.iter().map(|name| self.operand(name, scope)).collect::<Result<Vec<_>>>()?;
        let mut attributes = Vec::with_capacity(message.attribute.len());
        for attribute in &message.attribute {
            let value = match attribute.ref_attr_name.as_str() {
                "" => Some(attribute),
                name => bindings.get(name).copied(),
            };
            // An attribute of a function that its call leaves out is absent in its nodes, too.
            let Some(value) = value else { continue };
            let value = match (&value.g, value.kind) {
                (Some(graph), _) => {
                    let given: Vec<&ValueInfoProto> = graph.input.iter().collect();
                    Attribute::Block(self.block(graph, &given, scope, depth + 1)?)
                }
                _ => attributes::value(value, self.reader)?,
            };
            attributes.push((attribute.name.clone(), value));
        }
        let outputs = message.output.iter().map(|name| match name.as_str() {
            "" => Ok(None),
            name => self.define(name, scope).map(Some),
        });
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        let source = message.metadata_props.iter().find(|entry| entry.key.ends_with("stack_trace"));
        Ok(Node {
            number,
            name: node_name(message),
            operator: called(domain, &message.op_type),
            version: self.versions.get(domain).copied().unwrap_or(*VERSIONS.end()),
            inputs,
            outputs,
            attributes,
            source: source.and_then(|entry| source_line(&entry.value)),
        })
    }

    fn operand(&self, name: &str, scope: &Scope) -> Result<Option<Slot>> {
        if name.is_empty() {
            return Ok(None);
        }
        scope.find(name).map(Some).ok_or_else(|| {
            Error::graph(format!("the value `{name}` is used before a node makes it"))
                .with_help("nodes of a model are in the order of execution, and form no cycle: run `onnx.checker.check_model`")
        })
    }

    /// The nodes of a function in place of its call.
    fn function(
        &mut self,
        function: &'a FunctionProto,
        call: &'a NodeProto,
        outer: &Bindings<'a>,
        scope: &mut Scope,
        depth: usize,
        into: &mut Vec<Node>,
    ) -> Result<()> {
        if depth > DEPTH {
            return Err(damaged("a function", format!("functions call each other more than {DEPTH} deep")));
        }
        if call.input.len() > function.input.len() || call.output.len() > function.output.len() {
            return Err(damaged("a call of a function", "it has more inputs or outputs than the function"));
        }
        let mut bindings: Bindings<'a> =
            function.attribute_proto.iter().map(|attribute| (attribute.name.as_str(), attribute)).collect();
        for attribute in &call.attribute {
            let value = match attribute.ref_attr_name.as_str() {
                "" => Some(attribute),
                name => outer.get(name).copied(),
            };
            if let Some(value) = value {
                bindings.insert(attribute.name.as_str(), value);
            }
        }
        let mut level = BTreeMap::new();
        for (name, given) in function.input.iter().zip(&call.input) {
            if let Some(slot) = self.operand(given, scope)? {
                level.insert(name.clone(), slot);
            }
        }
        // An input that the call leaves out is one that no node makes.
        let absent: BTreeSet<&String> =
            function.input.iter().filter(|name| !level.contains_key(*name)).collect();
        let mut inner = Scope { levels: vec![level] };
        let own = std::mem::take(&mut self.versions);
        self.versions = own.clone();
        for imported in &function.opset_import {
            let domain = if imported.domain == "ai.onnx" { "" } else { &imported.domain };
            self.versions.insert(domain.to_owned(), imported.version);
        }
        for name in absent {
            inner.levels[0].insert(name.clone(), ABSENT);
        }
        let lowered = self.nodes(&function.node, &bindings, &mut inner, depth + 1, into);
        self.versions = own;
        lowered?;
        for (name, given) in function.output.iter().zip(&call.output).filter(|(_, given)| !given.is_empty()) {
            let slot = inner
                .find(name)
                .filter(|slot| *slot != ABSENT)
                .ok_or_else(|| damaged(&format!("the output `{name}` of a function"), "no node makes it"))?;
            let level = scope.levels.last_mut().expect("a block has a level");
            if level.insert(given.clone(), slot).is_some() {
                return Err(damaged(&format!("the value `{given}`"), "it is defined twice"));
            }
        }
        Ok(())
    }
}

/// The number of a value that a call of a function leaves out; no value has it.
pub(crate) const ABSENT: Slot = usize::MAX;

fn called(domain: &str, name: &str) -> Called {
    let (domain, name) = (domain.to_owned(), name.to_owned());
    if !domain.is_empty() && libraries::find_in(&domain, &name).is_some() {
        return Called::Library { domain, name };
    }
    match operators::find(&domain, &name) {
        Some(operator) => Called::Standard(operator),
        None => Called::Unknown { domain, name },
    }
}

/// The name of a node, or that of its first output.
fn node_name(message: &NodeProto) -> String {
    match (message.name.as_str(), message.output.first()) {
        ("", Some(output)) => output.clone(),
        (name, _) => name.to_owned(),
    }
}

/// The last line of a stack trace in Python, as `model.py:12`.
fn source_line(trace: &str) -> Option<String> {
    let line = trace.lines().rev().find(|line| line.trim_start().starts_with("File \""))?;
    let (file, rest) = line.trim_start().strip_prefix("File \"")?.split_once('"')?;
    let number: String =
        rest.trim_start_matches(", line ").chars().take_while(char::is_ascii_digit).collect();
    let file = file.rsplit('/').next().unwrap_or(file);
    (!number.is_empty()).then(|| format!("{file}:{number}"))
}
