//! Recorded runs: stretches of a plan's steps on devices, each submitted as a whole.
//!
//! In: a plan that ran at these addresses before, so that its kernels are compiled. Out: its stretches, recorded by the backend in
//! one pass and replayed from then on, with the other steps between them. Addresses of inputs and outputs are inside the recorded
//! work: a run at others is one of single launches, and is recorded when they come again. A step that cannot be recorded has a
//! reason, which [`Graph::replays`] reports.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use opsmith_runtime::backend::{Capture, DeviceMemory, Recording, Work};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use opsmith_runtime::storage::Storage;

use super::executable::Executable;
use super::{run_all, run_step};
use crate::ir::{Graph, TensorId};
use crate::plan::Plan;
use crate::plan::records::{Addresses, Stretch};
use crate::show::table::counted;

/// The runs of a graph on devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replays {
    /// Recordings of consecutive steps.
    pub recorded: u64,
    /// Requests that replayed one.
    pub replayed: u64,
    /// Steps that were launched alone.
    pub launched: u64,
    /// The reasons why steps are not recorded, each once.
    pub reasons: Vec<String>,
}

impl fmt::Display for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {} launched alone",
            counted(self.recorded as usize, "recording"),
            counted(self.replayed as usize, "replay"),
            counted(self.launched as usize, "step")
        )?;
        self.reasons.iter().try_for_each(|reason| write!(f, "\nnot recorded: {reason}"))
    }
}

/// The counts of one graph's runs.
#[derive(Default)]
pub(crate) struct Counts {
    recorded: AtomicU64,
    replayed: AtomicU64,
    launched: AtomicU64,
    reasons: std::sync::Mutex<Vec<String>>,
}

impl Counts {
    /// Takes note of the reason why runs are not recorded.
    pub fn refuse(&self, reason: &str) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if !reasons.iter().any(|known| known == reason) {
            reasons.push(reason.to_owned());
        }
    }

    fn add_to(&self, sum: &mut Replays) {
        sum.recorded += self.recorded.load(Ordering::Relaxed);
        sum.replayed += self.replayed.load(Ordering::Relaxed);
        sum.launched += self.launched.load(Ordering::Relaxed);
        for reason in self.reasons.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if !sum.reasons.contains(reason) {
                sum.reasons.push(reason.clone());
            }
        }
    }
}

impl Graph {
    /// Recordings and replays so far, steps on devices that were launched alone, and the reasons for the last. The second run at
    /// some sizes and at the same addresses of inputs and outputs is recorded, and later ones replay it: consecutive steps on a
    /// device then cost the host one request. Recordings for four addresses are kept for each plan.
    pub fn replays(&self) -> Replays {
        let mut sum = Replays::default();
        self.add_replays(&mut sum);
        sum
    }

    fn add_replays(&self, sum: &mut Replays) {
        let executable = Executable::of(self);
        executable.counts.add_to(sum);
        executable.segments.iter().for_each(|segment| segment.graph.add_replays(sum));
        self.variants.iter().for_each(|variant| variant.graph.add_replays(sum));
    }
}

impl Plan {
    /// Runs the steps, stretches as replays of recorded work if there are records for these addresses.
    pub(super) fn replay_or_launch(&mut self, counts: &Counts) -> Result<()> {
        for reason in &self.records.reasons {
            counts.refuse(reason);
        }
        let stretches = self.records.stretches.iter().map(|stretch| stretch.steps.len() as u64).sum::<u64>();
        let position =
            if stretches == 0 || internals::is_listening() { None } else { self.records_for_run(counts) };
        let Some(position) = position else {
            counts.launched.fetch_add(self.records.alone + stretches, Ordering::Relaxed);
            return self.launch();
        };
        counts.launched.fetch_add(self.records.alone, Ordering::Relaxed);
        counts.replayed.fetch_add(self.records.stretches.len() as u64, Ordering::Relaxed);
        let mut next = 0;
        for number in 0..self.records.stretches.len() {
            let Stretch { device, steps } = self.records.stretches[number].clone();
            run_all(&self.steps[next..steps.start], &mut self.tensors, &self.list_values)?;
            self.replay(device, position, number)?;
            next = steps.end;
        }
        run_all(&self.steps[next..], &mut self.tensors, &self.list_values)
    }

    /// The position of the records for this run's addresses, which are made if a run had them before.
    fn records_for_run(&mut self, counts: &Counts) -> Option<usize> {
        let addresses = self.addresses();
        let known = self.records.find(&addresses);
        if known.is_some() || !self.records.came_before(&addresses) {
            return known;
        }
        let mut captures = Vec::new();
        while let Some(stretch) = self.records.stretches.get(captures.len()).cloned() {
            // Another thread may use an operand just now, so one failure says little.
            let recorded =
                self.record(&stretch).or_else(|_| self.record(&stretch)).or_else(|_| self.record(&stretch));
            match recorded {
                Ok(capture) => captures.push(capture),
                Err((step, error)) => {
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default().to_owned();
                    counts.refuse(&reason);
                    self.records.divide(captures.len(), step, reason);
                }
            }
        }
        counts.recorded.fetch_add(captures.len() as u64, Ordering::Relaxed);
        (!captures.is_empty()).then(|| self.records.keep(addresses, captures))
    }

    /// The addresses that change from run to run.
    fn addresses(&self) -> Addresses {
        let outside = self.inputs.iter().chain(&self.results);
        outside.map(|outside| self.tensors[outside.root.index()].data_ptr().addr()).collect()
    }

    /// The memory of a device that the steps use, each once.
    fn memories(&self, device: Device) -> impl Iterator<Item = &DeviceMemory> {
        let outside = self.inputs.iter().chain(&self.results).map(|outside| outside.root);
        let inside = self.reads.iter().chain(&self.writes).chain(&self.records.arenas).copied();
        let memories = outside.chain(inside).map(|id: TensorId| self.tensors[id.index()].storage());
        memories.filter_map(Storage::device_memory).filter(move |memory| memory.device() == device)
    }

    fn follow(&self, device: Device, work: &Work) -> Result<()> {
        self.memories(device).try_for_each(|memory| work.follow(memory.last_use()))
    }

    /// The record of a stretch; an error has the step that cannot be in one, or none if it is of the whole. Nothing runs.
    fn record(&mut self, stretch: &Stretch) -> Result<Capture, (Option<usize>, Error)> {
        let Stretch { device, steps } = stretch;
        let of_all = |error: Error| (None, error);
        let work = Work::on(*device).map_err(of_all)?;
        // Work of other threads comes before the record, of which it cannot be a part.
        self.follow(*device, &work).map_err(of_all)?;
        let recording = Recording::begin(&work).map_err(of_all)?;
        for (number, step) in steps.clone().zip(&self.steps[steps.clone()]) {
            run_step(step, &mut self.tensors, &self.list_values).map_err(|error| (Some(number), error))?;
        }
        recording.end().map_err(of_all)
    }

    fn replay(&self, device: Device, position: usize, stretch: usize) -> Result<()> {
        let work = Work::on(device)?;
        self.follow(device, &work)?;
        // SAFETY: the record accesses the memory of the plan and that at the addresses for which it was made, which are those of
        // this run's inputs and outputs; the run has borrowed them, and notes their use.
        let replayed = unsafe { self.records.capture(position, stretch).replay(&work) };
        let noted = self.memories(device).try_for_each(|memory| memory.note_use(&work));
        replayed.and(noted)
    }
}
