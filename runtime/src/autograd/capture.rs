//! Captures gradients in a backward pass before they reach leaves, for `grad`.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::node::{Edge, Node};
use crate::shared::Shared;
use crate::tensor::Tensor;

/// The nodes on a path to a requested gradient, by address.
pub(crate) struct Wanted(HashSet<usize>);

impl Wanted {
    /// Whether a requested gradient depends on this node's gradient.
    pub fn contains(&self, node: &Shared<Node>) -> bool {
        self.0.contains(&address(node))
    }

    /// The nodes from which a target can be reached, found by a depth-first walk without recursion.
    fn leading_to(targets: &[Edge], roots: &[Edge]) -> Wanted {
        let mut wanted: HashSet<usize> = targets.iter().map(|edge| address(&edge.node)).collect();
        let oldest = targets.iter().map(|edge| edge.node.sequence).min().unwrap_or(u64::MAX);
        let mut visited: HashSet<usize> = HashSet::new();
        // Each node is visited twice: before its successors, and after them, when its membership is known.
        let mut stack: Vec<(&Shared<Node>, bool)> = roots.iter().map(|edge| (&edge.node, false)).collect();
        while let Some((node, decided)) = stack.pop() {
            if decided {
                if node.edges.iter().flatten().any(|edge| wanted.contains(&address(&edge.node))) {
                    wanted.insert(address(node));
                }
            } else if node.sequence >= oldest && visited.insert(address(node)) {
                stack.push((node, true));
                stack.extend(node.edges.iter().flatten().map(|edge| (&edge.node, false)));
            }
        }
        Wanted(wanted)
    }
}

/// The requested gradients and those captured so far.
pub(super) struct Capture {
    pub wanted: Wanted,
    /// Result indices for each requested gradient, by node address and output.
    targets: HashMap<(usize, u32), SmallVec<[usize; 1]>>,
    pub found: Vec<Option<Tensor>>,
}

impl Capture {
    /// Takes the gradients that go along the edges in `targets`.
    pub fn new(targets: &[Edge], roots: &[Edge]) -> Capture {
        let mut by_output: HashMap<(usize, u32), SmallVec<[usize; 1]>> = HashMap::new();
        for (index, edge) in targets.iter().enumerate() {
            by_output.entry((address(&edge.node), edge.output)).or_default().push(index);
        }
        let wanted = Wanted::leading_to(targets, roots);
        Capture { wanted, targets: by_output, found: vec![None; targets.len()] }
    }

    /// Captures the requested ones among the gradients that a node is about to consume.
    pub fn take(&mut self, node: &Shared<Node>, gradients: &[Option<Tensor>]) {
        for (output, gradient) in gradients.iter().enumerate() {
            for &index in self.targets.get(&(address(node), output as u32)).into_iter().flatten() {
                self.found[index].clone_from(gradient);
            }
        }
    }
}

fn address(node: &Shared<Node>) -> usize {
    Shared::as_ptr(node).addr()
}
