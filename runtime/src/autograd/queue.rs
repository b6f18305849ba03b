//! The nodes that wait to run in a backward pass, ordered by sequence number.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};

use super::node::{Edge, Node};
use crate::shared::Shared;
use crate::tensor::Tensor;

/// Gradients of a node's outputs.
pub(super) type Gradients = SmallVec<[Option<Tensor>; 1]>;

/// A node and the gradients it has received so far.
pub(super) struct Waiting<'g> {
    pub node: &'g Shared<Node>,
    pub gradients: Gradients,
}

/// Waiting nodes, the newest first.
#[derive(Default)]
pub(super) struct Queue<'g> {
    /// The newest, in ascending order. In most graphs these are all waiting nodes.
    newest: SmallVec<[(Rank, Waiting<'g>); NEWEST]>,
    /// The older ones.
    others: BTreeMap<Rank, Waiting<'g>>,
}

/// Maximal number of nodes in the list; more are kept in the tree.
const NEWEST: usize = 8;

/// Order of execution, greatest first. The address breaks ties between nodes of different threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    sequence: u64,
    address: usize,
}

impl<'g> Queue<'g> {
    /// Removes and returns the newest node.
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

    /// The sum of gradients at the end of an edge; its node waits from now on.
    #[inline]
    pub fn slot(&mut self, edge: &'g Edge) -> &mut Option<Tensor> {
        let rank = Rank { sequence: edge.node.sequence, address: Shared::as_ptr(&edge.node).addr() };
        let after = self.newest.iter().rposition(|(other, _)| *other <= rank);
        let waiting = match after {
            Some(position) if self.newest[position].0 == rank => &mut self.newest[position].1,
            // Older than the whole list, but the tree may hold newer ones.
            None if !self.others.is_empty() => self.others.entry(rank).or_insert_with(|| Waiting::new(edge)),
            _ => {
                let position = after.map_or(0, |position| position + 1);
                self.insert(position, rank, Waiting::new(edge))
            }
        };
        &mut waiting.gradients[edge.output as usize]
    }

    /// Inserts a node into the list of the newest; if the list is full, its oldest moves to the tree.
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
