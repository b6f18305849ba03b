//! Lowering: from the schema to the model.
//!
//! In: an exported program. Out: the model, in which names are numbers and enums are enums, or the first part of the
//! program that is damaged or unknown.

mod arguments;
mod signature;
mod source;
mod tensors;
mod tree;

use std::collections::{BTreeMap, HashMap};

use opsmith_core::DType;
use opsmith_runtime::arg::Value;
use opsmith_runtime::error::{Error, Result};
use serde_json::Value as Json;

use crate::errors::damaged;
use crate::expression::Formula;
use crate::model::{Argument, Binding, Block, Model, Node, Range, Slot};
use crate::schema;
use crate::structural::WITH_TOKEN;

pub(crate) use tensors::{TensorLayout, layout};

/// Maximal depth of blocks in blocks.
const DEPTH: usize = 16;

/// Lowers a program. `member` is its name in the archive, for messages.
///
/// # Errors
/// If a name is unknown, an argument is of an unknown kind, or a part of the signature is not supported.
pub(crate) fn program(member: &str, program: schema::ExportedProgram) -> Result<Model> {
    let graph = &program.graph_module.graph;
    let mut scope = Scope::new(0);
    let slots = inputs(&mut scope, graph).map_err(|problem| damaged(member, problem))?;
    let inputs = signature::inputs(&program.graph_module.signature, graph, slots.len())
        .map_err(|error| error.with_note(format!("in the signature of `{member}`")))?;
    let block = block(&mut scope, graph, slots)?;
    let paths = tree::output_paths(&program.graph_module.module_call_graph);
    let outputs = signature::outputs(&program.graph_module.signature, &inputs, &scope, paths)
        .map_err(|error| error.with_note(format!("in the signature of `{member}`")))?;
    let range = |range: &schema::RangeConstraint| Range {
        // PyTorch specialises sizes 0 and 1 when it exports, and lets programs with the bound 2 run at them.
        least: range.min_val.filter(|least| *least > 2).unwrap_or(0),
        most: range.max_val,
    };
    Ok(Model {
        ranges: program
            .range_constraints
            .iter()
            .map(|(name, bounds)| (name.clone(), range(bounds)))
            .collect(),
        examples: examples(graph),
        inputs,
        outputs,
        block,
        guards: program.guards_code,
        torch_version: program.torch_version,
    })
}

/// The values of symbols at which a program was exported.
fn examples(graph: &schema::Graph) -> BTreeMap<String, i64> {
    let mut examples = BTreeMap::new();
    for size in graph.tensor_values.values().flat_map(|meta| &meta.sizes) {
        if let schema::SymInt::AsExpr(expression) = size
            && let Some(example) = expression.example()
            && let Ok(Formula::Symbol(name)) = Formula::parse(&expression.expr_str)
        {
            examples.insert(name, example);
        }
    }
    examples
}

/// The names of the values of a block.
struct Scope {
    slots: HashMap<String, Slot>,
    count: usize,
    /// Number of blocks around this one.
    depth: usize,
}

impl Scope {
    fn new(depth: usize) -> Scope {
        Scope { slots: HashMap::new(), count: 0, depth }
    }

    /// The value of a name that was defined.
    fn find(&self, name: &str) -> Result<Slot, String> {
        self.slots.get(name).copied().ok_or_else(|| format!("there is no value `{name}` before it"))
    }

    /// A new value of a name, which replaces an older one.
    fn define(&mut self, name: &str) -> Slot {
        self.slots.insert(name.to_owned(), self.count);
        self.anonymous()
    }

    fn anonymous(&mut self) -> Slot {
        self.count += 1;
        self.count - 1
    }
}

/// The values of a block's inputs; one for each, also for constants, which have no name.
fn inputs(scope: &mut Scope, graph: &schema::Graph) -> Result<Vec<Slot>, String> {
    graph
        .inputs
        .iter()
        .map(|input| match arguments::name_of(input)? {
            Some(name) => Ok(scope.define(name)),
            None => Ok(scope.anonymous()),
        })
        .collect()
}

fn block(scope: &mut Scope, graph: &schema::Graph, inputs: Vec<Slot>) -> Result<Block> {
    let nodes = graph.nodes.iter().map(|node| {
        let lowered = lower_node(scope, node)?;
        Ok(Node { dtype: recorded_dtype(node, graph), ..lowered })
    });
    let nodes = nodes.collect::<Result<Vec<_>>>()?;
    let outputs = graph.outputs.iter().map(|output| arguments::argument(scope, output));
    let outputs = outputs
        .collect::<Result<Vec<_>, String>>()
        .map_err(|problem| Error::io(format!("an output of the graph cannot be read: {problem}")))?;
    Ok(Block { slots: scope.count, inputs, nodes, outputs })
}

/// The dtype that a file records for the first result of a node.
fn recorded_dtype(node: &schema::Node, graph: &schema::Graph) -> Option<DType> {
    let name = arguments::name_of(node.outputs.first()?).ok()??;
    tensors::dtype(graph.tensor_values.get(name)?.dtype).ok()
}

/// A block inside a node, whose values are its own.
fn inner_block(scope: &Scope, graph: &Json) -> Result<Argument, String> {
    if scope.depth >= DEPTH {
        return Err(format!("blocks are nested more than {DEPTH} levels deep"));
    }
    let graph: schema::Graph = serde::Deserialize::deserialize(graph).map_err(|error| error.to_string())?;
    let mut inner = Scope::new(scope.depth + 1);
    let slots = inputs(&mut inner, &graph)?;
    let block = block(&mut inner, &graph, slots).map_err(|error| error.to_string())?;
    Ok(Argument::Block(Box::new(block)))
}

fn lower_node(scope: &mut Scope, node: &schema::Node) -> Result<Node> {
    let source = source::of(node.metadata.get("stack_trace").map_or("", String::as_str));
    let first = node.outputs.first().and_then(|output| arguments::name_of(output).ok().flatten());
    let name = node.name.as_deref().or(first).unwrap_or(&node.target).to_owned();
    let refuse = |problem: String| {
        Error::io(format!("the node `{name}` of `{}` cannot be read: {problem}", node.target))
            .with_note(format!("written in {source}"))
            .with_help("the program is damaged, or newer than this reader")
    };
    let (mut args, mut named) = (Vec::new(), Vec::new());
    for given in &node.inputs {
        let argument = arguments::argument(scope, &given.arg)
            .map_err(|problem| refuse(format!("the argument `{}`: {problem}", given.name)))?;
        let by_name = match given.kind {
            Some(kind) => kind == 2,
            None => !given.name.is_empty(),
        };
        match by_name {
            true => named.push((given.name.clone(), argument)),
            false if named.is_empty() => args.push(argument),
            false => return Err(refuse(format!("`{}` is given by position after one by name", given.name))),
        }
    }
    let outputs = node.outputs.iter().map(|output| arguments::binding(scope, output));
    let mut outputs = outputs.collect::<Result<Vec<Binding>, String>>().map_err(&refuse)?;
    let mut target = node.target.clone();
    if target == WITH_TOKEN {
        let Some(Argument::Value(Value::Str(operator))) = args.get(1) else {
            return Err(refuse("it names no operator".to_owned()));
        };
        target.clone_from(operator);
        args.drain(..2);
        outputs.drain(..outputs.len().min(1));
    }
    Ok(Node { name, target, args, named, outputs, dtype: None, source })
}
