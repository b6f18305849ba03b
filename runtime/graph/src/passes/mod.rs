//! Passes: transformations of a graph that keep its results, all but one of them bit for bit.
//!
//! In: a graph and the passes to run. Out: another graph. A pass is a function of its own file and a row
//! of [`ORDER`]; it may leave unreferenced tensors and buffers behind, which `compact` drops if the pass says that it
//! changed nodes.

mod common;
mod compact;
mod composed;
mod constants;
mod copies;
mod dead;
mod facts;
mod order;

use crate::ir::{Argument, Graph, Node, NodeKind, RunState, TensorId, Variant};
use crate::plan::fusion::TILE;

/// A transformation that reduces the work or memory of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// Constant folding: nodes that depend on constants alone run once.
    ConstantFolding,
    /// Common subexpression elimination.
    CommonSubexpressions,
    /// Drops views, and redundant copies.
    ViewElimination,
    /// Dead code elimination.
    DeadCode,
    /// Replaces a call and an element-wise call on its result by one call of the operator that is declared as their composition, where
    /// the device has a kernel of it. A product with bias and its activation become one step of a vendor's library, which rounds
    /// once: results keep their bits only if the kernel has those of the composition, so this pass is not in [`Passes::all`].
    ComposedOperators,
    /// Moves nodes that free memory and allocate none, such as updates of parameters by gradients, to an earlier
    /// position.
    EarlyRelease,
    /// Runs consecutive element-wise calls of one shape tile by tile, so that intermediate results stay in the
    /// processor's cache, without memory beyond a tile. The choice is made when sizes are known: [`Graph::memory`] shows it.
    Fusion,
    /// Lets element-wise calls write over dead inputs. The choice is made when sizes are known: [`Graph::memory`] shows
    /// it.
    InPlaceReuse,
}

/// The transformation of a pass. Returns whether it removed or replaced nodes.
type Run = fn(&mut Graph, &Passes) -> bool;

/// A callback with the graph before and after each pass.
type Watch<'a> = dyn FnMut(Pass, &Graph, &Graph) + 'a;

/// The passes in the order they run.
const ORDER: [(Pass, Run); 8] = [
    (Pass::ConstantFolding, constants::fold),
    (Pass::CommonSubexpressions, |graph, _| common::merge(graph)),
    (Pass::ViewElimination, |graph, _| copies::drop(graph)),
    (Pass::DeadCode, |graph, _| dead::drop(graph)),
    (Pass::ComposedOperators, |graph, _| composed::replace(graph)),
    (Pass::EarlyRelease, |graph, _| {
        order::release_early(graph);
        false
    }),
    (Pass::Fusion, |graph, _| {
        graph.tile = Some(TILE);
        false
    }),
    (Pass::InPlaceReuse, |graph, _| {
        graph.reuse = true;
        false
    }),
];

/// A selection of passes.
///
/// ```
/// use opsmith_graph::{Pass, Passes};
/// let passes = Passes::all().without(Pass::CommonSubexpressions);
/// assert!(passes.contains(Pass::DeadCode) && !passes.contains(Pass::CommonSubexpressions));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passes {
    wanted: [bool; ORDER.len()],
    frozen: bool,
}

impl Passes {
    /// Every pass that keeps the bits of results.
    pub fn all() -> Passes {
        Passes { wanted: [true; ORDER.len()], frozen: false }.without(Pass::ComposedOperators)
    }

    /// No pass.
    pub fn none() -> Passes {
        Passes { wanted: [false; ORDER.len()], frozen: false }
    }

    /// The selection with a pass.
    #[must_use]
    pub fn with(mut self, pass: Pass) -> Passes {
        self.wanted[position(pass)] = true;
        self
    }

    /// The selection without a pass.
    #[must_use]
    pub fn without(mut self, pass: Pass) -> Passes {
        self.wanted[position(pass)] = false;
        self
    }

    /// The selection, with captured tensors declared constant, as a trained model's are, so that nodes that depend on
    /// them alone are folded.
    ///
    /// By default only constants without other owners are folded, since others may change between runs.
    #[must_use]
    pub fn frozen(mut self) -> Passes {
        self.frozen = true;
        self
    }

    /// Whether a pass is selected.
    pub fn contains(&self, pass: Pass) -> bool {
        self.wanted[position(pass)]
    }
}

fn position(pass: Pass) -> usize {
    ORDER.iter().position(|(known, _)| *known == pass).expect("every pass has a row")
}

impl Pass {
    /// Every pass, in the order they run.
    pub fn all() -> impl Iterator<Item = Pass> {
        ORDER.iter().map(|(pass, _)| *pass)
    }
}

impl Graph {
    /// The graph after some passes. Results stay the same, bit for bit unless a pass says otherwise; nodes without effect on results or a caller's
    /// memory may be dropped, together with their errors.
    #[must_use]
    pub fn optimize(&self, passes: &Passes) -> Graph {
        self.optimized(passes, None)
    }

    /// As [`Graph::optimize`], with a callback that gets the graph before and after each pass:
    /// `graph.optimize_with(&Passes::all(), |pass, before, after| println!("{pass:?}\n{}", after.describe()))`.
    #[must_use]
    pub fn optimize_with(&self, passes: &Passes, mut look: impl FnMut(Pass, &Graph, &Graph)) -> Graph {
        self.optimized(passes, Some(&mut look))
    }

    fn optimized(&self, passes: &Passes, mut look: Option<&mut Watch<'_>>) -> Graph {
        let mut graph = self.bare();
        // A trace, or a program, may have unreferenced tensors.
        compact::compact(&mut graph);
        for (pass, run) in ORDER {
            if !passes.contains(pass) {
                continue;
            }
            let before = look.is_some().then(|| graph.bare());
            if run(&mut graph, passes) {
                compact::compact(&mut graph);
            }
            graph.state = RunState::default();
            if let (Some(look), Some(before)) = (&mut look, before) {
                look(pass, &before, &graph);
            }
        }
        for Variant { symbol, value, graph: variant } in &self.variants {
            let look = look.as_mut().map(|look| &mut **look as &mut Watch<'_>);
            let optimized = variant.optimized(passes, look);
            graph.variants.push(Variant { symbol: *symbol, value: *value, graph: optimized });
        }
        graph
    }
}

/// Keeps the nodes for which `kept` says so, by position. Returns whether one was removed.
fn keep(nodes: &mut Vec<Node>, kept: &[bool]) -> bool {
    let before = nodes.len();
    let mut kept = kept.iter();
    nodes.retain(|_| kept.next().copied().unwrap_or(true));
    nodes.len() < before
}

/// Calls `visit` with each reference to a tensor in a node and its regions, including tensors that are neither read nor
/// written.
fn for_each_mention(node: &mut Node, visit: &mut dyn FnMut(&mut TensorId)) {
    for arg in &mut node.args {
        match arg {
            Argument::Tensor(id) => visit(id),
            Argument::Tensors(ids) => ids.iter_mut().for_each(&mut *visit),
            Argument::OptionalTensors(ids) => ids.iter_mut().flatten().for_each(&mut *visit),
            _ => {}
        }
    }
    node.outs.iter_mut().for_each(&mut *visit);
    match &mut node.kind {
        NodeKind::While { predicate, .. } => visit(predicate),
        NodeKind::Scan { moving, .. } => moving.iter_mut().for_each(|moving| visit(&mut moving.tensor)),
        _ => {}
    }
    for region in node.kind.regions_mut() {
        region.nodes.iter_mut().for_each(|node| for_each_mention(node, visit));
    }
}

/// Whether a call gives the same bits each time for the same inputs.
fn repeats(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Call { op, .. } => op.facts.deterministic,
        NodeKind::View { .. } | NodeKind::Copy | NodeKind::Add => true,
        _ => node.kind.regions().iter().all(|region| region.nodes.iter().all(repeats)),
    }
}
