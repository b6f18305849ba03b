//! The nodes that wait to run in a backward pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::node::{Edge, Node};
use crate::tensor::Tensor;

/// Gradients of a node's outputs.
pub(super) type Gradients = SmallVec<[Option<Tensor>; 1]>;

/// A node and the gradients it has received so far.
pub(super) struct Waiting<'g> {
    pub node: &'g Arc<Node>,
    pub gradients: Gradients,
}

/// Waiting nodes, the newest first.
#[derive(Default)]
pub(super) struct Queue<'g> {
    /// The newest of all, the oldest of them first. In most graphs these are all that wait.
    newest: SmallVec<[(Rank, Waiting<'g>); NEWEST]>,
    /// Those that are older.
    others: BTreeMap<Rank, Waiting<'g>>,
}

/// How many of the newest nodes wait in a list rather than in a tree.
const NEWEST: usize = 8;

/// Order of execution, the greatest first. The address tells apart nodes of different threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    sequence: u64,
    address: usize,
}

impl<'g> Queue<'g> {
    /// Takes the newest node out.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting<'g>> {
        match self.newest.pop() {
            Some((_, waiting)) => Some(waiting),
            None => self.others.pop_last().map(|(_, waiting)| waiting),
        }
    }

    /// Whether no node waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.others.is_empty()
    }

    /// The place where gradients that go along an edge wait; the node at its end waits from now on.
    #[inline]
    pub fn slot(&mut self, edge: &'g Edge) -> &mut Option<Tensor> {
        let rank = Rank { sequence: edge.node.sequence, address: Arc::as_ptr(&edge.node).addr() };
        let after = self.newest.iter().rposition(|(other, _)| *other <= rank);
        let waiting = match after {
            Some(position) if self.newest[position].0 == rank => &mut self.newest[position].1,
            // Older than all of the list: what is in the tree may be newer still.
            None if !self.others.is_empty() => self.others.entry(rank).or_insert_with(|| Waiting::new(edge)),
            _ => {
                let position = after.map_or(0, |position| position + 1);
                self.insert(position, rank, Waiting::new(edge))
            }
        };
        &mut waiting.gradients[edge.output as usize]
    }

    /// Puts a node into the list of the newest; if that is full, its oldest leaves it.
    fn insert(&mut self, mut position: usize, rank: Rank, waiting: Waiting<'g>) -> &mut Waiting<'g> {
        if self.newest.len() == NEWEST {
            if position == 0 {
                return self.others.entry(rank).or_insert(waiting);
            }
            let (oldest, left) = self.newest.remove(0);
            self.others.insert(oldest, left);
            position -= 1;
        }
        self.newest.insert(position, (rank, waiting));
        &mut self.newest[position].1
    }
}

impl<'g> Waiting<'g> {
    fn new(edge: &'g Edge) -> Waiting<'g> {
        let gradients = match edge.node.outputs.len() {
            1 => smallvec![None],
            count => SmallVec::from_elem(None, count),
        };
        Waiting { node: &edge.node, gradients }
    }
}
