//! Operators in place of their compositions.
//!
//! A call, and an element-wise call on its result, become one call of an operator that the spec declares as their composition, where
//! the result's device has a kernel of that operator. So a product with bias and its activation are one call, which a vendor's
//! library computes in one step. The composition is the rule: it is traced with the arguments of the two calls, and both traces have
//! to be the same calls. Nodes in regions, and calls with numbers that depend on sizes, stay.
//!
//! ```text
//! %1 = f(a, b, alpha=2)                  trace of the composition of `fused(a, b, alpha, use_h)`: f(a, b, alpha), then g
//! %2 = g(%1)               ──────►       %1 = fused(a, b, alpha=2, use_h=false)
//! ```

use opsmith_runtime::arg::Value;
use opsmith_runtime::infer::symbolic::Size;
use opsmith_runtime::internals::{OperatorInternals as _, TensorInternals as _, is_tracing};
use opsmith_runtime::layout::{Dims, numel};
use opsmith_runtime::library::linked;
use opsmith_runtime::op::{ArgKind, OpDef};
use opsmith_runtime::tensor::Tensor;

use super::facts::Facts;
use super::{for_each_mention, keep};
use crate::ir::{Argument, Graph, Node, NodeKind, TensorId};
use crate::trace::calls::{Calls, calls_of};

/// The largest number of switches of an operator, arguments that neither call has, for which each combination is tried.
const MOST_SWITCHES: usize = 3;

/// Two calls, by position, of which the second reads the result of the first, and nothing else does.
struct Pair {
    first: usize,
    second: usize,
    /// The result of the first as the second reads it: itself, or a view of all of it.
    operand: TensorId,
    result: TensorId,
}

pub(super) fn replace(graph: &mut Graph) -> bool {
    let operators = operators();
    if operators.is_empty() || is_tracing() {
        return false;
    }
    let mut kept = vec![true; graph.nodes.len()];
    let mut changed = false;
    for pair in pairs(graph) {
        // The second call of a pair may be the first one of the next.
        if !kept[pair.first] || !kept[pair.second] {
            continue;
        }
        let found = operators.iter().find_map(|op| one_call(graph, &pair, op));
        let Some(node) = found else { continue };
        let (from, to) = (graph.buffer_of(pair.result), graph.buffer_of(pair.operand));
        graph.tensors.iter_mut().filter(|info| info.buffer == from).for_each(|info| info.buffer = to);
        graph.nodes[pair.first] = node;
        kept[pair.second] = false;
        changed = true;
        let instead = |id: &mut TensorId| {
            if *id == pair.result {
                *id = pair.operand;
            }
        };
        graph.nodes.iter_mut().for_each(|node| for_each_mention(node, &mut { instead }));
        graph.outputs.iter_mut().for_each(instead);
    }
    keep(&mut graph.nodes, &kept);
    changed
}

/// The operators with a composition, of one result.
fn operators() -> Vec<&'static OpDef> {
    let all = linked().flat_map(|library| library.ops).copied();
    all.filter(|op| op.composite.is_some() && op.infer.is_some() && op.schema.returns.len() == 1).collect()
}

fn pairs(graph: &Graph) -> Vec<Pair> {
    let facts = Facts::of(graph);
    let mut reads = vec![0; graph.buffers.len()];
    for node in &graph.nodes {
        node.for_each_read(&mut |id| reads[graph.buffer_of(id).index()] += 1);
    }
    let of = |(second, node): (usize, &Node)| {
        let (op, [result]) = (called(node)?, node.outs.as_slice()) else { return None };
        let mut tensors = node.args.iter().filter(|arg| !matches!(arg, Argument::Value(_)));
        let (Some(Argument::Tensor(operand)), None) = (tensors.next(), tensors.next()) else { return None };
        let buffer = graph.buffer_of(*operand).index();
        let first = facts.maker[buffer]?;
        let whole = *graph.nodes[first].outs.first()?;
        let (a, b) = (graph.tensor(*operand), graph.tensor(*result));
        let is_all = *operand == whole
            || numel(&sizes(graph, *operand, 0)?) == numel(&sizes(graph, whole, 0)?)
                && a.dtype == graph.tensor(whole).dtype;
        let fits = op.forms.elementwise
            && called(&graph.nodes[first]).is_some()
            && first < second
            && reads[buffer] == 1
            && !facts.is_output[buffer]
            && facts.maker[graph.buffer_of(*result).index()] == Some(second)
            && is_all
            && (a.dtype, a.device, &a.layout) == (b.dtype, b.device, &b.layout)
            && a.layout.sizes.iter().chain(&a.layout.strides).all(|size| !size.is_unknown());
        fits.then_some(Pair { first, second, operand: *operand, result: *result })
    };
    graph.nodes.iter().enumerate().filter_map(of).collect()
}

/// The operator of a call that gives the same bits each time.
fn called(node: &Node) -> Option<&'static OpDef> {
    match &node.kind {
        NodeKind::Call { op, .. } => op.facts.deterministic.then_some(op),
        _ => None,
    }
}

/// The sizes of a tensor, where symbols have the values of the example and some more.
fn sizes(graph: &Graph, id: TensorId, more: i64) -> Option<Dims> {
    let symbols = &graph.symbols;
    let value = |symbol| symbols.example(symbol).map(|example| example + more);
    let number = |size: &Size| size.evaluate(|symbol| symbols.value(symbol, &value));
    graph.tensor(id).layout.sizes.iter().map(number).collect()
}

/// Numbers that are added to the values of symbols in the example. A composition may read sizes: its calls must be the same for each
/// of these that it accepts.
const POINTS: [i64; 3] = [0, 1, 7];

/// The call of an operator that does the work of both calls; `None` if the operator is another one.
fn one_call(graph: &Graph, pair: &Pair, op: &'static OpDef) -> Option<Node> {
    let first = &graph.nodes[pair.first];
    let &[whole] = first.outs.as_slice() else { return None };
    let (device, dtype) = (graph.tensor(whole).device, graph.tensor(whole).dtype);
    op.kernel(device.backend, dtype).ok()?;
    let known = Known::of(graph, op, pair, 0)?;
    let is_right = |choice: usize| {
        POINTS[1..].iter().all(|more| match Known::of(graph, op, pair, *more) {
            Some(known) => !matches!(known.call(graph, pair, op, choice), Some(None)),
            None => true,
        })
    };
    let choices = 0..1usize << known.switches.len();
    choices.into_iter().find_map(|choice| {
        let node = known.call(graph, pair, op, choice).flatten()?;
        (graph.symbols.is_empty() || is_right(choice)).then_some(node)
    })
}

/// Arguments of an operator that are known from two calls: those of the same name.
struct Known {
    /// The tensors of the graph, and meta tensors in their place.
    ids: Vec<TensorId>,
    tensors: Vec<Tensor>,
    arguments: Vec<(&'static str, Value)>,
    /// Names of switches that neither call has.
    switches: Vec<&'static str>,
    /// The number that is added to the values of symbols.
    more: i64,
}

impl Known {
    fn of(graph: &Graph, op: &OpDef, pair: &Pair, more: i64) -> Option<Known> {
        let (first, second) = (&graph.nodes[pair.first], &graph.nodes[pair.second]);
        let (ids, tensors, arguments, switches) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut known = Known { ids, tensors, arguments, switches, more };
        for parameter in op.schema.args {
            let of = |node: &Node| -> Option<Argument> {
                let own = called(node)?.schema.args.iter().position(|arg| arg.name == parameter.name)?;
                node.args.get(own).cloned()
            };
            let is_tensor = parameter.ty.kind == ArgKind::Tensor;
            let value = match (of(first), of(second)) {
                (Some(Argument::Tensor(id)), _) if is_tensor => Value::Tensor(known.tensor(graph, id)?),
                (Some(Argument::Value(value)), _) => value,
                (None, Some(Argument::Value(value))) if !is_tensor => value,
                (None, None) if parameter.ty.kind == ArgKind::Bool => {
                    known.switches.push(parameter.name);
                    continue;
                }
                (None, _) if parameter.default.is_some() => continue,
                _ => return None,
            };
            known.arguments.push((parameter.name, value));
        }
        (known.switches.len() <= MOST_SWITCHES && !known.ids.is_empty()).then_some(known)
    }

    /// The meta tensor in place of one of the graph.
    fn tensor(&mut self, graph: &Graph, id: TensorId) -> Option<Tensor> {
        if let Some(place) = self.ids.iter().position(|known| *known == id) {
            return Some(self.tensors[place].clone());
        }
        let info = graph.tensor(id);
        let tensor = Tensor::meta(&sizes(graph, id, self.more)?, info.dtype, info.device).ok()?;
        self.ids.push(id);
        self.tensors.push(tensor.clone());
        Some(tensor)
    }

    /// The call of the operator with a choice of its switches, a bit each: `None` if it refuses the arguments, and inside if it does
    /// other work than both calls.
    fn call(&self, graph: &Graph, pair: &Pair, op: &'static OpDef, choice: usize) -> Option<Option<Node>> {
        let (first, second) = (&graph.nodes[pair.first], &graph.nodes[pair.second]);
        let chosen = |(place, name): (usize, &&'static str)| (*name, Value::Bool(choice >> place & 1 == 1));
        let mut arguments = self.arguments.clone();
        arguments.extend(self.switches.iter().enumerate().map(chosen));
        let (composed, own) = calls_of(op, &self.tensors, &arguments).ok()?;
        let (_, layout, dtype) = &own.result;
        let is_same = self.is_same_work(&composed, first, second)
            && (layout, dtype) == (&composed.result.1, &composed.result.2)
            && layout.is_contiguous()
            && first.outs.first().and_then(|whole| sizes(graph, *whole, self.more)).as_ref()
                == Some(&layout.sizes);
        let [Node { kind: NodeKind::Call { op: called, compute }, args, .. }] = own.nodes.as_slice() else {
            return Some(None);
        };
        if !is_same || !std::ptr::eq(*called, op) {
            return Some(None);
        }
        let args: Option<Vec<Argument>> = args.iter().map(|arg| self.in_graph(&own, arg)).collect();
        let kind = NodeKind::Call { op, compute: *compute };
        let node = |args| Node { kind, args, outs: first.outs.clone(), site: second.site.clone() };
        Some(args.map(node))
    }

    /// Whether the calls of a composition are these two.
    fn is_same_work(&self, composed: &Calls, first: &Node, second: &Node) -> bool {
        let [one, other] = composed.nodes.as_slice() else { return false };
        let is_call = |traced: &Node<i64>, node: &Node| match (&traced.kind, &node.kind) {
            (NodeKind::Call { op, compute }, NodeKind::Call { op: own, compute: own_compute }) => {
                std::ptr::eq(*op, *own) && compute == own_compute && traced.args.len() == node.args.len()
            }
            _ => false,
        };
        if !is_call(one, first) || !is_call(other, second) || other.outs.as_slice() != [composed.result.0] {
            return false;
        }
        let is_value = |traced: &Argument<i64>, own: &Argument| match (traced, own) {
            (Argument::Value(a), Argument::Value(b)) => a.same_bits(b),
            _ => false,
        };
        let of_first = one.args.iter().zip(&first.args).all(|(traced, own)| match (traced, own) {
            (Argument::Tensor(id), Argument::Tensor(own)) => self.id(composed, *id) == Some(*own),
            _ => is_value(traced, own),
        });
        let of_second = other.args.iter().zip(&second.args).all(|(traced, own)| match (traced, own) {
            (Argument::Tensor(id), Argument::Tensor(_)) => one.outs.as_slice() == [*id],
            _ => is_value(traced, own),
        });
        of_first && of_second
    }

    /// The graph's number of a given tensor.
    fn id(&self, calls: &Calls, traced: TensorId) -> Option<TensorId> {
        calls.given.iter().position(|given| *given == traced).map(|place| self.ids[place])
    }

    /// An argument of a traced call as one of the graph; `None` if it is a tensor that is not given.
    fn in_graph(&self, calls: &Calls, arg: &Argument<i64>) -> Option<Argument> {
        match arg {
            Argument::Tensor(id) => self.id(calls, *id).map(Argument::Tensor),
            Argument::Value(value) => Some(Argument::Value(value.clone())),
            _ => None,
        }
    }
}
