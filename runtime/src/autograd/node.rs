//! The graph: nodes, and the edges along which gradients flow back.
//!
//! Each recorded call has a node; its edges lead to the nodes that computed the call's tensor inputs. Edges never
//! change and always lead to older nodes, so the order of sequence numbers is a topological order, and no cycle can
//! exist. Nodes hold no tensor that is part of a graph: tensors that a formula reads are saved as memory (`saved`).

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::call::Call;
use super::context::TensorMeta;
use super::custom::Custom;
use super::hooks::Extras;
use super::strided::Strided;
use crate::dispatch::spans;
use crate::op::OpDef;
use crate::shared::{Room, Shared};
use crate::tensor::WeakTensor;

/// The path of a gradient: into the gradient of one output of a node.
#[derive(Clone)]
pub(crate) struct Edge {
    pub node: Shared<Node>,
    pub output: u32,
}

/// The edges of a node, one for each tensor input; `None` where no gradient is needed.
pub(crate) type Edges = SmallVec<[Option<Edge>; 2]>;

/// Metadata of the node's outputs, whose gradients it receives.
pub(crate) type OutputMetas = SmallVec<[TensorMeta; 1]>;

/// One step of the backward pass.
pub(crate) struct Node {
    /// Greater than the sequence numbers of all nodes that the edges lead to.
    pub sequence: u64,
    pub edges: Edges,
    pub outputs: OutputMetas,
    pub kind: Kind,
    extras: OnceLock<Box<Extras>>,
}

/// The operation of a node on the gradients it receives.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every node is a call, and a box would cost one more allocation"
)]
pub(crate) enum Kind {
    /// Adds to the gradient that a leaf holds. Weak, because a leaf holds its node.
    Leaf(WeakTensor),
    /// Runs the formulas of a recorded operator.
    Call(Call),
    /// The derivative of a view or of an in-place change of one.
    Strided(Box<Strided>),
    /// Runs the backward of a custom function.
    Custom(Box<Custom>),
}

impl Kind {
    /// Whether dropping this may drop tensors that are part of a graph.
    fn may_own_graphs(&mut self) -> bool {
        match self {
            Kind::Custom(_) => true,
            Kind::Call(call) => call.saved.has_places(),
            Kind::Leaf(_) | Kind::Strided(_) => false,
        }
    }
}

impl Node {
    /// A node with the next sequence number.
    pub fn new(edges: Edges, outputs: OutputMetas, kind: Kind) -> Shared<Node> {
        let sequence = next_sequence(&edges);
        #[cfg(test)]
        LIVE.set(LIVE.get() + 1);
        let node = Shared::new(Node { sequence, edges, outputs, kind, extras: OnceLock::new() });
        if !matches!(node.kind, Kind::Leaf(_)) {
            spans::recorded(|| node.number());
        }
        node
    }

    /// A number that no other node has at the same time, in any thread, for profilers.
    pub fn number(&self) -> u64 {
        (std::ptr::from_ref(self).addr() as u64).rotate_left(16) ^ self.sequence
    }

    /// The definition of a recorded call.
    pub fn op(&self) -> Option<&'static OpDef> {
        match &self.kind {
            Kind::Call(call) => Some(call.op),
            _ => None,
        }
    }

    /// The name of the node's operator or step.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Leaf(_) => "leaf",
            Kind::Call(call) => call.op.name,
            Kind::Strided(_) => "view",
            Kind::Custom(custom) => &custom.name,
        }
    }

    /// An input's description for messages: its name and the operator's.
    pub fn input_name(&self, position: usize) -> String {
        match &self.kind {
            Kind::Call(call) => format!("`{}` of `{}`", call.input_name(position), call.op.name),
            _ => format!("input {position} of `{}`", self.name()),
        }
    }

    /// Hooks and retained outputs; created at first use.
    pub fn extras(&self) -> &Extras {
        self.extras.get_or_init(Box::default)
    }

    /// Hooks and retained outputs, if any were created.
    #[inline]
    pub fn existing_extras(&self) -> Option<&Extras> {
        self.extras.get().map(|extras| &**extras)
    }
}

/// A node of a call before it is shared. It is completed in place, because it is large to move.
pub(super) struct NewNode(Shared<Node>);

impl NewNode {
    /// A node of a call without recorded inputs yet.
    #[inline]
    pub fn of_call(op: &'static OpDef) -> NewNode {
        #[cfg(test)]
        LIVE.set(LIVE.get() + 1);
        let room = Room::<Node>::new();
        // SAFETY: the address is valid for writes, and has a whole node then.
        unsafe {
            room.place().write(Node {
                sequence: 0,
                edges: Edges::new(),
                outputs: OutputMetas::new(),
                kind: Kind::Call(Call::new(op)),
                extras: OnceLock::new(),
            });
            NewNode(room.filled())
        }
    }

    /// The parts that are filled in while the call runs.
    #[inline]
    pub fn parts(&mut self) -> (&mut Edges, &mut OutputMetas, &mut Call) {
        let node = Shared::get_mut(&mut self.0).expect("this is the only handle");
        let Kind::Call(call) = &mut node.kind else { unreachable!("the node was made for a call") };
        (&mut node.edges, &mut node.outputs, call)
    }

    /// The node, complete.
    #[inline]
    pub fn share(mut self) -> Shared<Node> {
        let node = Shared::get_mut(&mut self.0).expect("this is the only handle");
        node.sequence = next_sequence(&node.edges);
        spans::recorded(|| self.0.number());
        self.0
    }
}

/// A number greater than those of the nodes that the edges lead to.
fn next_sequence(edges: &Edges) -> u64 {
    let newest = edges.iter().flatten().map(|edge| edge.node.sequence).max().unwrap_or(0);
    let sequence = CLOCK.get().max(newest + 1);
    CLOCK.set(sequence + 1);
    sequence
}

thread_local! {
    /// The next sequence number of this thread. Since a node's number is greater than those of its inputs, this is
    /// Lamport's clock: threads share no counter, and within a thread numbers follow the order of recording.
    static CLOCK: Cell<u64> = const { Cell::new(1) };
    static ORPHANS: RefCell<Orphans> = const { RefCell::new(Orphans { draining: false, queue: Vec::new() }) };
}

/// The successors of nodes that are being dropped in this thread.
struct Orphans {
    draining: bool,
    queue: Vec<Orphan>,
}

/// A value whose drop may drop nodes; kept only to be dropped.
enum Orphan {
    Edge(#[expect(dead_code, reason = "kept only to be dropped")] Edge),
    Other(#[expect(dead_code, reason = "kept only to be dropped")] Box<dyn Send>),
}

impl Drop for Node {
    /// Drops the successor nodes in a loop: recursive drops would overflow the stack on a deep graph.
    fn drop(&mut self) {
        #[cfg(test)]
        LIVE.set(LIVE.get() - 1);
        let extras = self.extras.take();
        let owner = extras.is_some() || self.kind.may_own_graphs();
        // A node with other owners only loses one reference. If the last other owner drops it concurrently, it is
        // dropped here after all, one call deeper.
        for edge in &mut self.edges {
            if edge.as_ref().is_some_and(|edge| Shared::has_others(&edge.node)) {
                *edge = None;
            }
        }
        if !owner && self.edges.iter().all(Option::is_none) {
            return;
        }
        let mut outermost = false;
        // A thread that is ending has no list any more; its graphs are dropped recursively.
        let _ = ORPHANS.try_with(|orphans| {
            let mut orphans = orphans.borrow_mut();
            outermost = !std::mem::replace(&mut orphans.draining, true);
            for edge in &mut self.edges {
                orphans.queue.extend(edge.take().map(Orphan::Edge));
            }
            if owner {
                let kind = std::mem::replace(&mut self.kind, Kind::Leaf(WeakTensor::dangling()));
                orphans.queue.push(Orphan::Other(Box::new((kind, extras))));
            }
        });
        if !outermost {
            return;
        }
        let _draining = Draining;
        let next = || ORPHANS.try_with(|orphans| orphans.borrow_mut().queue.pop()).ok().flatten();
        while let Some(orphan) = next() {
            // The drop of the last handle to a node re-enters here and adds its successors to the list.
            drop(orphan);
        }
    }
}

/// Marks the list as not being drained, even after a panic in a drop; the rest is dropped with the next node.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        let _ = ORPHANS.try_with(|orphans| orphans.borrow_mut().draining = false);
    }
}

#[cfg(test)]
thread_local! {
    /// Nodes made minus nodes dropped in this thread.
    pub(crate) static LIVE: Cell<isize> = const { Cell::new(0) };
}
