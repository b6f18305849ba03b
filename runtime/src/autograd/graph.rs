//! The public view of a graph: nodes with their names and inputs, and hooks on them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::edge_of;
use super::hooks::HookHandle;
use super::node::{Edge, Kind, Node};
use crate::error::{Error, Result};
use crate::shared::Shared;
use crate::tensor::Tensor;

/// One step of the backward pass: a recorded call, or a leaf that collects its gradient.
#[derive(Clone)]
pub struct GraphNode(Shared<Node>);

impl GraphNode {
    /// The operator's name, `leaf`, `view`, or the name of a custom function.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The nodes that receive this node's gradients, one for each tensor input; `None` where no gradient is needed.
    pub fn inputs(&self) -> Vec<Option<GraphNode>> {
        let node = |edge: &Option<Edge>| edge.as_ref().map(|edge| GraphNode(edge.node.clone()));
        self.0.edges.iter().map(node).collect()
    }

    /// Bytes of memory that the graph from this node on keeps for backward. Memory kept by several nodes counts once;
    /// memory that is also alive for other reasons, such as a leaf's, is included.
    pub fn saved_bytes(&self) -> usize {
        let mut memories = HashMap::new();
        let mut visited = HashSet::new();
        let mut stack = vec![&self.0];
        while let Some(node) = stack.pop() {
            if !visited.insert(Shared::as_ptr(node)) {
                continue;
            }
            let saved = match &node.kind {
                Kind::Call(call) => Some(&call.saved),
                Kind::Custom(custom) => Some(&custom.saved),
                Kind::Leaf(_) | Kind::Strided(_) => None,
            };
            if let Some(saved) = saved {
                saved.for_each_memory(|address, bytes| {
                    memories.insert(address, bytes);
                });
            }
            stack.extend(node.edges.iter().flatten().map(|edge| &edge.node));
        }
        memories.values().sum()
    }

    /// Whether both handles refer to the same node.
    pub fn same(&self, other: &GraphNode) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }

    /// Runs a function before each time the node runs. It gets the gradients of the outputs and may
    /// replace them, `None` standing for "no gradient".
    pub fn before_backward(
        &self,
        hook: impl Fn(&mut [Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.0.extras().add_before(&self.0, Arc::new(hook))
    }

    /// Runs a function after each run of the node. It gets the gradients of the inputs, which it may replace, and those
    /// of the outputs. For a leaf, whose gradient has been added by then, the inputs are empty.
    pub fn after_backward(
        &self,
        hook: impl Fn(&mut [Option<Tensor>], &[Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.0.extras().add_after(&self.0, Arc::new(hook))
    }
}

impl fmt::Debug for GraphNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.name())
    }
}

impl Tensor {
    /// The node that receives the tensor's gradient; `None` if it is not part of a graph.
    pub fn graph_node(&self) -> Option<GraphNode> {
        edge_of(self).ok().flatten().map(|edge| GraphNode(edge.node))
    }

    /// Runs a function on each gradient of this tensor; a tensor that it returns replaces the gradient. An in-place
    /// call gives the tensor a new node; hooks registered before stay with the old one.
    ///
    /// # Errors
    /// If the tensor is not part of a graph.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let Edge { node, output } = self.place("a hook")?;
        let on_output = move |gradients: &mut [Option<Tensor>]| {
            let slot = &mut gradients[output as usize];
            if let Some(gradient) = slot
                && let Some(replaced) = hook(gradient)?
            {
                *slot = Some(replaced);
            }
            Ok(())
        };
        Ok(node.extras().add_before(&node, Arc::new(on_output)))
    }

    /// Makes backward store the gradient in this tensor, as it does in leaves.
    ///
    /// # Errors
    /// If the tensor is not part of a graph.
    pub fn retain_grad(&self) -> Result<()> {
        let Edge { node, output } = self.place("retain_grad")?;
        let mut meta = self.autograd();
        if !meta.is_leaf() && !std::mem::replace(&mut meta.retains, true) {
            node.extras().retain(output, self.downgrade());
        }
        Ok(())
    }

    fn place(&self, what: &str) -> Result<Edge> {
        edge_of(self)?.ok_or_else(|| {
            Error::autograd(format!("{what} needs a tensor that is part of a graph, this one is not"))
                .with_help("call requires_grad_(true) on it, or compute it from such a tensor")
        })
    }
}
