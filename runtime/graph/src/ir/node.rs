//! Parts of nodes: operators, regions, numbers and tensors, read or replaced.
//!
//! In: a node. Out: its parts in a fixed order, or the same node with other parts. Must not know the execution of
//! nodes.

use opsmith_runtime::op::OpDef;
use smallvec::SmallVec;

use super::{Argument, Moving, Node, NodeKind, Region, TensorId};

impl<N> NodeKind<N> {
    /// The operator, if it is a call of one.
    pub fn op(&self) -> Option<&'static OpDef> {
        match self {
            NodeKind::Call { op, .. } | NodeKind::View { op } => Some(op),
            _ => None,
        }
    }

    /// The operator's name, or the name of the node's kind.
    pub fn name(&self) -> &'static str {
        match self {
            NodeKind::Call { op, .. } | NodeKind::View { op } => op.name,
            NodeKind::Copy => "copy elements",
            NodeKind::Add => "add elements",
            NodeKind::Cond { .. } => "cond",
            NodeKind::While { .. } => "while",
            NodeKind::Scan { .. } => "scan",
        }
    }

    /// The regions of the node.
    pub fn regions(&self) -> SmallVec<[&Region<N>; 2]> {
        match self {
            NodeKind::Cond { branches } => branches.iter().collect(),
            NodeKind::While { condition, body, .. } => [condition, body].into_iter().collect(),
            NodeKind::Scan { body, .. } => std::iter::once(body).collect(),
            _ => SmallVec::new(),
        }
    }

    /// The regions of the node, mutable.
    pub fn regions_mut(&mut self) -> SmallVec<[&mut Region<N>; 2]> {
        match self {
            NodeKind::Cond { branches } => branches.iter_mut().collect(),
            NodeKind::While { condition, body, .. } => [condition, body].into_iter().collect(),
            NodeKind::Scan { body, .. } => std::iter::once(body).collect(),
            _ => SmallVec::new(),
        }
    }

    /// The numbers that may depend on sizes, in order.
    pub(crate) fn numbers(&self) -> Vec<&N> {
        match self {
            NodeKind::Scan { length, moving, .. } => {
                std::iter::once(length).chain(moving.iter().map(|moving| &moving.step)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The same kind of node with other numbers, in the order of [`NodeKind::numbers`], and other regions, in the order
    /// of [`NodeKind::regions`].
    ///
    /// # Errors
    /// The first one of the functions.
    pub(crate) fn with<M, E>(
        &self,
        mut number: impl FnMut() -> Result<M, E>,
        mut region: impl FnMut() -> Result<Region<M>, E>,
    ) -> Result<NodeKind<M>, E> {
        Ok(match self {
            NodeKind::Call { op, compute } => NodeKind::Call { op, compute: *compute },
            NodeKind::View { op } => NodeKind::View { op },
            NodeKind::Copy => NodeKind::Copy,
            NodeKind::Add => NodeKind::Add,
            NodeKind::Cond { .. } => NodeKind::Cond { branches: Box::new([region()?, region()?]) },
            NodeKind::While { predicate, .. } => {
                NodeKind::While { condition: region()?, predicate: *predicate, body: region()? }
            }
            NodeKind::Scan { moving, .. } => {
                let length = number()?;
                let moving =
                    moving.iter().map(|moving| Ok(Moving { tensor: moving.tensor, step: number()? }));
                NodeKind::Scan { length, moving: moving.collect::<Result<_, E>>()?, body: region()? }
            }
        })
    }
}

impl<N> Argument<N> {
    /// Calls `visit` with each tensor of the argument, in order.
    pub fn for_each_tensor(&self, mut visit: impl FnMut(TensorId)) {
        match self {
            Argument::Tensor(tensor) => visit(*tensor),
            Argument::Tensors(tensors) => tensors.iter().copied().for_each(visit),
            Argument::OptionalTensors(tensors) => tensors.iter().flatten().copied().for_each(visit),
            _ => {}
        }
    }
}

impl<N> Node<N> {
    /// Calls `visit` with each tensor that the node, or a node in its regions, reads. A view reads nothing.
    pub fn for_each_read(&self, visit: &mut dyn FnMut(TensorId)) {
        match &self.kind {
            NodeKind::View { .. } => return,
            NodeKind::Add => self.outs.iter().copied().for_each(&mut *visit),
            // The predicate is written in a region, and read by the loop itself, as is its state.
            NodeKind::While { predicate, .. } => {
                visit(*predicate);
                self.outs.iter().copied().for_each(&mut *visit);
            }
            NodeKind::Scan { .. } => self.outs.iter().copied().for_each(&mut *visit),
            _ => {}
        }
        self.args.iter().for_each(|arg| arg.for_each_tensor(&mut *visit));
        for region in self.kind.regions() {
            region.nodes.iter().for_each(|node| node.for_each_read(visit));
        }
    }

    /// Calls `visit` with each tensor that the node, or a node in its regions, writes.
    pub fn for_each_write(&self, visit: &mut dyn FnMut(TensorId)) {
        if matches!(self.kind, NodeKind::View { .. }) {
            return;
        }
        self.outs.iter().copied().for_each(&mut *visit);
        for region in self.kind.regions() {
            region.nodes.iter().for_each(|node| node.for_each_write(visit));
        }
    }
}
