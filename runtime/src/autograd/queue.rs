//! The nodes that wait to run in a backward pass.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::node::{Edge, Node};
use crate::tensor::Tensor;

/// Gradients of a node's outputs.
pub(super) type Gradients = SmallVec<[Option<Tensor>; 1]>;

/// A node and the gradients it has received so far.
pub(super) struct Waiting {
    pub node: Arc<Node>,
    pub gradients: Gradients,
}

/// Waiting nodes, the newest first.
#[derive(Default)]
pub(super) struct Queue {
    /// The newest of all, if it is known. In a chain it is the only one, and the map stays empty.
    newest: Option<(Rank, Waiting)>,
    others: BTreeMap<Rank, Waiting>,
}

/// Order of execution, the greatest first. The address tells apart nodes of different threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    sequence: u64,
    address: usize,
}

impl Queue {
    /// Takes the newest node out.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        match self.newest.take() {
            Some((_, waiting)) => Some(waiting),
            None => self.others.pop_last().map(|(_, waiting)| waiting),
        }
    }

    /// The place where gradients that go along an edge wait; the node at its end waits from now on.
    #[inline]
    pub fn slot(&mut self, edge: &Edge) -> &mut Option<Tensor> {
        let rank = Rank { sequence: edge.node.sequence, address: Arc::as_ptr(&edge.node).addr() };
        let known = match &self.newest {
            Some((newest, _)) => Some(*newest),
            None => self.others.last_key_value().map(|(newest, _)| *newest),
        };
        if known.is_none_or(|newest| rank > newest)
            && let Some((older, waiting)) = self.newest.replace((rank, Waiting::new(edge)))
        {
            self.others.insert(older, waiting);
        }
        let waiting = match &mut self.newest {
            Some((newest, waiting)) if *newest == rank => waiting,
            _ => match self.others.entry(rank) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(Waiting::new(edge)),
            },
        };
        &mut waiting.gradients[edge.output as usize]
    }
}

impl Waiting {
    fn new(edge: &Edge) -> Waiting {
        let gradients = match edge.node.outputs.len() {
            1 => smallvec![None],
            count => SmallVec::from_elem(None, count),
        };
        Waiting { node: edge.node.clone(), gradients }
    }
}
