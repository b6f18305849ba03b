//! The records that a plan keeps of its work on devices.
//!
//! In: the steps of a plan. Out: stretches, which are consecutive steps of one device that its backend may record, and the reasons
//! against the others: a step that waits for elements, draws random numbers, or submits work to streams of its own. Steps of the
//! host, and copies between devices, lie between stretches. A branch or a loop whose condition the host reads has stretches inside;
//! one whose tensors move from step to step of a scan has none. Must not know runs.

use std::ops::Range;

use opsmith_runtime::arg::Value;
use opsmith_runtime::backend::Capture;
use opsmith_runtime::device::Device;
use opsmith_runtime::internals::StorageInternals as _;
use opsmith_runtime::op::{Kernel, KernelOrigin, OpDef};
use smallvec::SmallVec;

use super::{Plan, Step, StepArg, StepKind, StepList};
use crate::ir::{BufferKind, Graph, TensorId};

/// The addresses that change from run to run.
pub(crate) type Addresses = SmallVec<[usize; 8]>;

/// Recordings that a plan keeps, and addresses that it remembers.
const KEPT: usize = 4;

/// Consecutive steps of one device, which are recorded together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stretch {
    pub device: Device,
    /// The number of their list.
    pub list: usize,
    pub steps: Range<usize>,
}

/// A stretch at some addresses.
pub(crate) enum Record {
    /// It did not run there, so that kernels may have to be compiled.
    New,
    /// It ran there.
    Ready,
    Made(Capture),
}

/// The records of a plan.
#[derive(Default)]
pub(crate) struct Records {
    /// In the order of the lists' numbers.
    pub stretches: Vec<Stretch>,
    /// Why other steps of devices are not recorded.
    pub reasons: Vec<String>,
    /// Number of the plan's own steps on devices outside of stretches.
    pub alone: u64,
    /// A tensor of each arena of a device.
    pub arenas: Vec<TensorId>,
    /// Addresses of runs, the latest last.
    seen: Vec<Addresses>,
    /// For addresses, the record of each stretch.
    kept: Vec<(Addresses, Vec<Record>)>,
}

impl Records {
    /// The records of a plan, of which none is made yet.
    pub fn of(graph: &Graph, plan: &Plan) -> Records {
        let mut records = Records::default();
        if plan.threads > 1 {
            let of_devices = plan.steps.iter().filter(|step| device_of(step, plan, graph).is_some());
            records.alone = of_devices.count() as u64;
            if records.alone > 0 {
                records.refuse("nodes run in several threads".to_owned());
            }
            return records;
        }
        records.divide_list(0, &plan.steps, graph, plan);
        records.stretches.sort_by_key(|stretch| stretch.list);
        records.arenas = arenas(graph, plan);
        records
    }

    /// Adds the stretches of a list, and of the lists inside.
    fn divide_list(&mut self, list: usize, steps: &[Step], graph: &Graph, plan: &Plan) {
        let mut open: Option<Stretch> = None;
        for (number, step) in steps.iter().enumerate() {
            match (device_of(step, plan, graph), refusal(step, plan)) {
                (Some(device), None) => match &mut open {
                    Some(stretch) if stretch.device == device => stretch.steps.end = number + 1,
                    _ => {
                        let stretch = Stretch { device, list, steps: number..number + 1 };
                        self.close(open.replace(stretch));
                    }
                },
                (device, refusal) => {
                    self.close(open.take());
                    self.alone += u64::from(device.is_some() && list == 0);
                    if let (Some(_), Some(reason)) = (device, refusal) {
                        self.refuse(reason);
                    }
                    for inner in lists_inside(step) {
                        self.divide_list(inner.number, &inner.steps, graph, plan);
                    }
                }
            }
        }
        self.close(open);
    }

    /// Adds a stretch. A single launch is no shorter as a record.
    fn close(&mut self, stretch: Option<Stretch>) {
        match stretch {
            Some(stretch) if stretch.steps.len() > 1 => self.stretches.push(stretch),
            Some(stretch) if stretch.list == 0 => self.alone += stretch.steps.len() as u64,
            _ => {}
        }
    }

    fn refuse(&mut self, reason: String) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Divides a stretch at a step that its backend refused to record, or gives it up. Its records are dropped; its parts are in its
    /// place, and ran where it did.
    pub fn divide(&mut self, stretch: usize, step: Option<usize>, reason: String) {
        let after = self.stretches.split_off(stretch + 1);
        let Some(Stretch { device, list, steps }) = self.stretches.pop() else { return };
        match step {
            Some(step) => {
                self.alone += u64::from(list == 0);
                self.close(Some(Stretch { device, list, steps: steps.start..step }));
                self.close(Some(Stretch { device, list, steps: step + 1..steps.end }));
            }
            None if list == 0 => self.alone += steps.len() as u64,
            None => {}
        }
        let parts = self.stretches.len() - stretch;
        self.stretches.extend(after);
        for (_, records) in &mut self.kept {
            let ran = !matches!(records[stretch], Record::New);
            let part = || if ran { Record::Ready } else { Record::New };
            records.splice(stretch..=stretch, std::iter::repeat_with(part).take(parts));
        }
        self.refuse(reason);
    }

    /// The first stretch of a list that is not before a number.
    pub fn next(&self, list: usize, from: usize) -> Option<usize> {
        let found = self.stretches.get(from..)?.iter().position(|stretch| stretch.list >= list)? + from;
        (self.stretches[found].list == list).then_some(found)
    }

    /// The record of a stretch.
    pub fn record(&mut self, position: usize, stretch: usize) -> &mut Record {
        &mut self.kept[position].1[stretch]
    }

    /// The position of the records for some addresses, if a run had these before; it has from now on. All stretches of the plan's
    /// own steps ran there, then.
    pub fn position(&mut self, addresses: Addresses) -> Option<usize> {
        let known = self.kept.iter().position(|(known, _)| *known == addresses);
        if known.is_some() || !self.came_before(&addresses) {
            return known;
        }
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        let of = |stretch: &Stretch| if stretch.list == 0 { Record::Ready } else { Record::New };
        self.kept.push((addresses, self.stretches.iter().map(of).collect()));
        Some(self.kept.len() - 1)
    }

    fn came_before(&mut self, addresses: &Addresses) -> bool {
        if self.seen.contains(addresses) {
            return true;
        }
        if self.seen.len() == KEPT {
            self.seen.remove(0);
        }
        self.seen.push(addresses.clone());
        false
    }
}

/// The lists inside a step, of which each lies at the same addresses whenever it runs. The tensors of a scan move.
fn lists_inside(step: &Step) -> impl Iterator<Item = &StepList> {
    let lists = match &step.kind {
        StepKind::Cond { branches: [one, other] } => [Some(one), Some(other)],
        StepKind::While { condition, body, .. } => [Some(condition), Some(body)],
        _ => [None, None],
    };
    lists.into_iter().flatten()
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
        StepKind::Cond { .. } | StepKind::While { .. } => {
            lists_inside(step).flat_map(|list| &list.steps).for_each(|step| used_by(step, plan, used));
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
