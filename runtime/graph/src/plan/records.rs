//! The records that a plan keeps of its work on a device, and the reason if there can be none.
//!
//! In: the steps of a plan. Out: the device whose backend may record them, or the reason against it: what runs on the host, waits
//! for elements, draws random numbers, or submits work to streams of its own. Must not know runs.

use opsmith_runtime::arg::Value;
use opsmith_runtime::backend::Capture;
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::StorageInternals as _;
use opsmith_runtime::op::{Kernel, KernelOrigin, OpDef};
use smallvec::SmallVec;

use super::{Plan, Step, StepArg, StepKind};
use crate::ir::{BufferKind, Graph, TensorId};

/// The addresses that change from run to run.
pub(crate) type Addresses = SmallVec<[usize; 8]>;

/// Recordings that a plan keeps, and addresses that it remembers.
const KEPT: usize = 4;

/// The records of a plan.
#[derive(Default)]
pub(crate) struct Records {
    /// The device of the steps; `None` if they have none.
    pub device: Option<Device>,
    /// Why the steps are not recorded.
    pub refused: Option<String>,
    /// A tensor of each arena.
    pub arenas: Vec<TensorId>,
    /// Addresses of runs, the latest last.
    seen: Vec<Addresses>,
    kept: Vec<(Addresses, Capture)>,
}

impl Records {
    /// The records of a plan, of which none is made yet.
    pub fn of(graph: &Graph, plan: &Plan) -> Records {
        let mut used: SmallVec<[TensorId; 16]> = SmallVec::new();
        plan.steps.iter().for_each(|step| used_by(step, plan, &mut used));
        let devices = used.iter().map(|id| graph.tensor(*id).device);
        let Some(device) = devices.clone().find(|device| *device != Device::CPU) else {
            return Records::default();
        };
        let elsewhere = devices.clone().find(|other| *other != device);
        let refused = match elsewhere {
            Some(other) => Some(format!("steps use memory of {device} and of {other}")),
            None if plan.threads > 1 => Some("nodes run in several threads".to_owned()),
            None if plan.steps.len() < 2 => Some("the graph is one launch".to_owned()),
            None => plan.steps.iter().find_map(|step| refusal(step, plan)),
        };
        let mut arenas: Vec<TensorId> = Vec::new();
        for (number, tensor) in plan.tensors.iter().enumerate() {
            let id = TensorId(number as u32);
            let internal = matches!(graph.buffers[graph.buffer_of(id).index()].kind, BufferKind::Internal);
            let known = arenas.iter().map(|id| plan.tensors[id.index()].storage().address());
            if internal
                && tensor.storage().device_memory().is_some()
                && !known.into_iter().any(|known| known == tensor.storage().address())
            {
                arenas.push(id);
            }
        }
        let outside = |id: &TensorId| plan.results.iter().any(|result| result.tensors.contains(id));
        arenas.retain(|id| !outside(id));
        Records { device: Some(device), refused, arenas, ..Records::default() }
    }

    /// The record for some addresses.
    pub fn find(&self, addresses: &Addresses) -> Option<usize> {
        self.kept.iter().position(|(known, _)| known == addresses)
    }

    /// A record.
    pub fn capture(&self, position: usize) -> &Capture {
        &self.kept[position].1
    }

    /// Whether a run had these addresses before; it has from now on.
    pub fn came_before(&mut self, addresses: &Addresses) -> bool {
        if self.seen.contains(addresses) {
            return true;
        }
        if self.seen.len() == KEPT {
            self.seen.remove(0);
        }
        self.seen.push(addresses.clone());
        false
    }

    /// Keeps a record, instead of the oldest if there are enough.
    pub fn keep(&mut self, addresses: Addresses, capture: Capture) {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push((addresses, capture));
    }
}

/// The tensors of a step, and of the steps inside it.
fn used_by(step: &Step, plan: &Plan, used: &mut SmallVec<[TensorId; 16]>) {
    used.extend(step.outs.iter().copied());
    for arg in &step.args {
        match arg {
            StepArg::Tensor(id) => used.push(*id),
            StepArg::List(position) => {
                let listed = plan.lists.iter().find(|(list, _)| list == position);
                used.extend(listed.iter().flat_map(|(_, ids)| ids.iter().flatten().copied()));
            }
            StepArg::Plain(_) | StepArg::Value(_) => {}
        }
    }
    match &step.kind {
        StepKind::Tiled(tiled) => used.extend(tiled.operands.iter().map(|operand| operand.tensor)),
        StepKind::Chain(fused) => used.extend(fused.operands.iter().copied()),
        StepKind::Cond { branches } => branches.iter().flatten().for_each(|step| used_by(step, plan, used)),
        StepKind::While { condition, body, .. } => {
            condition.iter().chain(body).for_each(|step| used_by(step, plan, used));
        }
        StepKind::Scan { body, .. } => body.iter().for_each(|step| used_by(step, plan, used)),
        StepKind::Kernel { .. } | StepKind::Copy | StepKind::Add => {}
    }
}

/// The reason why a step of a device cannot be recorded.
fn refusal(step: &Step, plan: &Plan) -> Option<String> {
    match &step.kind {
        StepKind::Kernel { kernel, op } => {
            let draws = step.args.iter().any(|arg| matches!(arg, StepArg::Value(Value::Generator(_))));
            let why = match () {
                () if draws || !op.facts.deterministic => "draws random numbers",
                () if submits_elsewhere(op, *kernel, step, plan) => "has a kernel of the program's own",
                () => return None,
            };
            Some(format!("`{}` at {} {why}", op.name, step.site))
        }
        StepKind::Cond { .. } | StepKind::While { .. } => {
            Some(format!("the condition at {} is read by the host", step.site))
        }
        StepKind::Scan { body, .. } => body.iter().find_map(|step| refusal(step, plan)),
        StepKind::Copy | StepKind::Add | StepKind::Tiled(_) | StepKind::Chain(_) => None,
    }
}

/// Whether a kernel may submit work to other streams than the one of the thread: one that is compiled apart, or that the program
/// installed.
fn submits_elsewhere(op: &OpDef, kernel: Kernel, step: &Step, plan: &Plan) -> bool {
    let backend = step.outs.first().map_or(Device::CPU, |out| plan.tensors[out.index()].device()).backend;
    match op.kernels.origin(backend, kernel.address()) {
        KernelOrigin::Program(_) => true,
        KernelOrigin::Spec { name, .. } => op.custom.is_some() || name.starts_with("aot:"),
    }
}
