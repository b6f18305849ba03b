//! The records that a plan keeps of its work on devices.
//!
//! In: the steps of a plan. Out: stretches, which are consecutive steps of one device that its backend may record, and the reasons
//! against the others: a step that waits for elements, draws random numbers, or submits work to streams of its own. Steps of the
//! host, and copies between devices, lie between stretches. Must not know runs.

use std::ops::Range;

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

/// Consecutive steps of one device, which are recorded together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stretch {
    pub device: Device,
    pub steps: Range<usize>,
}

/// The records of a plan.
#[derive(Default)]
pub(crate) struct Records {
    pub stretches: Vec<Stretch>,
    /// Why other steps of devices are not recorded.
    pub reasons: Vec<String>,
    /// Number of steps of devices outside of stretches.
    pub alone: u64,
    /// A tensor of each arena of a device.
    pub arenas: Vec<TensorId>,
    /// Addresses of runs, the latest last.
    seen: Vec<Addresses>,
    /// For addresses, the record of each stretch.
    kept: Vec<(Addresses, Vec<Capture>)>,
}

impl Records {
    /// The records of a plan, of which none is made yet.
    pub fn of(graph: &Graph, plan: &Plan) -> Records {
        let mut records = Records::default();
        let mut open: Option<Stretch> = None;
        for (number, step) in plan.steps.iter().enumerate() {
            let device = device_of(step, plan, graph);
            let refusal = if plan.threads > 1 {
                Some("nodes run in several threads".to_owned())
            } else {
                refusal(step, plan)
            };
            match (device, refusal) {
                (Some(device), None) => match &mut open {
                    Some(stretch) if stretch.device == device => stretch.steps.end = number + 1,
                    _ => {
                        let stretch = Stretch { device, steps: number..number + 1 };
                        records.close(open.replace(stretch));
                    }
                },
                (device, refusal) => {
                    records.close(open.take());
                    records.alone += u64::from(device.is_some());
                    if let (Some(_), Some(reason)) = (device, refusal) {
                        records.refuse(reason);
                    }
                }
            }
        }
        records.close(open);
        records.arenas = arenas(graph, plan);
        records
    }

    /// Adds a stretch. A single launch is no shorter as a record.
    fn close(&mut self, stretch: Option<Stretch>) {
        match stretch {
            Some(stretch) if stretch.steps.len() > 1 => self.stretches.push(stretch),
            Some(stretch) => self.alone += stretch.steps.len() as u64,
            None => {}
        }
    }

    fn refuse(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Divides a stretch at a step that its backend refused to record, or gives it up. Records of the whole stretch are dropped.
    pub fn divide(&mut self, stretch: usize, step: Option<usize>, reason: String) {
        self.kept.clear();
        let Stretch { device, steps } = self.stretches.remove(stretch);
        let others = std::mem::take(&mut self.stretches);
        let (before, after) = others.split_at(stretch);
        self.stretches.extend_from_slice(before);
        match step {
            Some(step) => {
                self.alone += 1;
                self.close(Some(Stretch { device, steps: steps.start..step }));
                self.close(Some(Stretch { device, steps: step + 1..steps.end }));
            }
            None => self.alone += steps.len() as u64,
        }
        self.stretches.extend_from_slice(after);
        self.refuse(reason);
    }

    /// The record for some addresses.
    pub fn find(&self, addresses: &Addresses) -> Option<usize> {
        self.kept.iter().position(|(known, _)| known == addresses)
    }

    /// The record of a stretch.
    pub fn capture(&self, position: usize, stretch: usize) -> &Capture {
        &self.kept[position].1[stretch]
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

    /// Keeps the record of each stretch, instead of the oldest ones if there are enough. Returns their position.
    pub fn keep(&mut self, addresses: Addresses, captures: Vec<Capture>) -> usize {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push((addresses, captures));
        self.kept.len() - 1
    }
}

/// The device of a step; `None` if it uses memory of the host, or of two devices.
fn device_of(step: &Step, plan: &Plan, graph: &Graph) -> Option<Device> {
    let mut used: SmallVec<[TensorId; 16]> = SmallVec::new();
    used_by(step, plan, &mut used);
    let (first, others) = used.split_first()?;
    let device = graph.tensor(*first).device;
    let same = others.iter().all(|id| graph.tensor(*id).device == device);
    (device != Device::CPU && same).then_some(device)
}

/// A tensor of each arena of a device.
fn arenas(graph: &Graph, plan: &Plan) -> Vec<TensorId> {
    let mut arenas: Vec<TensorId> = Vec::new();
    for (number, tensor) in plan.tensors.iter().enumerate() {
        let id = TensorId(number as u32);
        let internal = matches!(graph.buffers[graph.buffer_of(id).index()].kind, BufferKind::Internal);
        let outside = plan.results.iter().any(|result| result.tensors.contains(&id));
        let address = tensor.storage().address();
        let known = arenas.iter().any(|id| plan.tensors[id.index()].storage().address() == address);
        if internal && !outside && !known && tensor.storage().device_memory().is_some() {
            arenas.push(id);
        }
    }
    arenas
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
        StepKind::Kernel { kernel, op, .. } => {
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
