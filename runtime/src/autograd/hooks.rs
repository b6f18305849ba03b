//! Hooks: user functions that run during backward, and other rarely used data of a node.

use std::sync::{Arc, Mutex, MutexGuard};

use super::anomaly::Forward;
use super::context::TensorMeta;
use super::handle::check_like;
use super::node::Node;
use crate::error::Result;
use crate::shared::{Shared, WeakShared};
use crate::tensor::{Tensor, WeakTensor};

/// Runs before a node, and may replace the gradients of its outputs.
pub(super) type Before = dyn Fn(&mut [Option<Tensor>]) -> Result<()> + Send + Sync;
/// Runs after a node, and may replace the gradients of its inputs, the first argument.
pub(super) type After = dyn Fn(&mut [Option<Tensor>], &[Option<Tensor>]) -> Result<()> + Send + Sync;

/// Hooks and retained outputs, which few nodes have.
#[derive(Default)]
pub(crate) struct Extras(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    next: u64,
    before: Vec<(u64, Arc<Before>)>,
    after: Vec<(u64, Arc<After>)>,
    /// Outputs whose gradients are also stored in their tensors.
    retained: Vec<(u32, WeakTensor)>,
    forward: Option<Forward>,
}

/// Identifies a hook, to remove it. Dropping it keeps the hook.
#[derive(Clone)]
pub struct HookHandle {
    node: WeakShared<Node>,
    id: u64,
}

impl HookHandle {
    /// Removes the hook.
    pub fn remove(&self) {
        let Some(node) = self.node.upgrade() else { return };
        let mut lists = node.extras().lock();
        let before = lists.before.extract_if(.., |(id, _)| *id == self.id).next();
        let after = lists.after.extract_if(.., |(id, _)| *id == self.id).next();
        drop(lists);
        // Dropped without the lock: a hook may own anything, this graph included.
        drop((before, after));
    }
}

impl Extras {
    // No hook runs under the lock, so a panic in a hook cannot poison it.
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn add_before(&self, node: &Shared<Node>, hook: Arc<Before>) -> HookHandle {
        let mut lists = self.lock();
        lists.next += 1;
        let id = lists.next;
        lists.before.push((id, hook));
        HookHandle { node: Shared::downgrade(node), id }
    }

    pub fn add_after(&self, node: &Shared<Node>, hook: Arc<After>) -> HookHandle {
        let mut lists = self.lock();
        lists.next += 1;
        let id = lists.next;
        lists.after.push((id, hook));
        HookHandle { node: Shared::downgrade(node), id }
    }

    pub fn retain(&self, output: u32, tensor: WeakTensor) {
        self.lock().retained.push((output, tensor));
    }

    /// The tensors that retain the gradient of an output of the node.
    pub fn retained(&self) -> Vec<(u32, WeakTensor)> {
        self.lock().retained.clone()
    }

    pub fn set_forward(&self, forward: Forward) {
        self.lock().forward = Some(forward);
    }

    pub fn forward(&self) -> Option<Forward> {
        self.lock().forward.clone()
    }

    /// Runs the hooks that come before the node.
    ///
    /// # Errors
    /// Errors of a hook, or if a gradient that it sets does not fit the output.
    pub fn run_before(&self, gradients: &mut [Option<Tensor>], outputs: &[TensorMeta]) -> Result<()> {
        let hooks: Vec<Arc<Before>> = self.lock().before.iter().map(|(_, hook)| hook.clone()).collect();
        for hook in hooks {
            hook(gradients)?;
            check(gradients, outputs)?;
        }
        Ok(())
    }

    pub fn has_after(&self) -> bool {
        !self.lock().after.is_empty()
    }

    /// Runs the hooks that come after the node.
    ///
    /// # Errors
    /// Errors of a hook.
    pub fn run_after(&self, inputs: &mut [Option<Tensor>], outputs: &[Option<Tensor>]) -> Result<()> {
        let hooks: Vec<Arc<After>> = self.lock().after.iter().map(|(_, hook)| hook.clone()).collect();
        hooks.iter().try_for_each(|hook| hook(inputs, outputs))
    }
}

fn check(gradients: &[Option<Tensor>], metas: &[TensorMeta]) -> Result<()> {
    for (gradient, meta) in gradients.iter().zip(metas) {
        if let Some(gradient) = gradient {
            check_like("the gradient that a hook returned", gradient, "the tensor", meta)?;
        }
    }
    Ok(())
}
