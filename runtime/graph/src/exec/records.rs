//! Recorded runs: the work of a plan on a device, submitted as a whole.
//!
//! In: a plan that ran at these addresses before, so that its kernels are compiled. Out: its steps, recorded by the backend in one
//! pass and replayed from then on. Addresses of inputs and outputs are inside the recorded work: a run at others is one of single
//! launches, and is recorded when they come again. What cannot be recorded has a reason, which [`Graph::replays`] reports.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use opsmith_runtime::backend::{Recording, Work};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::Result;
use opsmith_runtime::internals;
use opsmith_runtime::tensor::Tensor;

use super::executable::Executable;
use crate::ir::{Graph, TensorId};
use crate::plan::Plan;
use crate::plan::records::Addresses;
use crate::show::table::counted;

/// The runs of a graph on devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replays {
    /// Recordings of runs.
    pub recorded: u64,
    /// Runs that replayed one.
    pub replayed: u64,
    /// Runs whose steps were launched one after the other.
    pub launched: u64,
    /// The reasons why runs are not recorded, each once.
    pub reasons: Vec<String>,
}

impl fmt::Display for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} recorded, {} replayed, {} launched step by step",
            counted(self.recorded as usize, "run"),
            self.replayed,
            self.launched
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
    /// The runs on devices so far that were recorded, replayed, and launched step by step, with the reasons for the last. The
    /// second run at some sizes and at the same addresses of inputs and outputs is recorded, and later ones replay it: a run then
    /// costs the host one request. Four recordings are kept for each plan.
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
    /// Runs the steps, as a replay of recorded work if there is a record for these addresses.
    pub(super) fn replay_or_launch(&mut self, counts: &Counts) -> Result<()> {
        let Some(device) = self.records.device else { return self.launch() };
        if let Some(reason) = &self.records.refused {
            counts.refuse(reason);
        } else if !internals::is_listening() {
            let addresses = self.addresses();
            let known = self.records.find(&addresses);
            if known.is_none() && self.records.came_before(&addresses) {
                match self.record(device) {
                    Ok(capture) => {
                        counts.recorded.fetch_add(1, Ordering::Relaxed);
                        self.records.keep(addresses.clone(), capture);
                    }
                    Err(error) => {
                        let reason = error.to_string();
                        self.records.refused = reason.lines().next().map(str::to_owned);
                    }
                }
            }
            if let Some(position) = self.records.find(&addresses) {
                counts.replayed.fetch_add(1, Ordering::Relaxed);
                return self.replay(device, position);
            }
        }
        counts.launched.fetch_add(1, Ordering::Relaxed);
        self.launch()
    }

    /// The addresses that change from run to run.
    fn addresses(&self) -> Addresses {
        let outside = self.inputs.iter().chain(&self.results);
        outside.map(|outside| self.tensors[outside.root.index()].data_ptr().addr()).collect()
    }

    /// The tensors whose memory the steps use: one of each memory.
    fn used(&self) -> impl Iterator<Item = &Tensor> {
        let outside = self.inputs.iter().chain(&self.results).map(|outside| outside.root);
        let inside = self.reads.iter().chain(&self.writes).chain(&self.records.arenas).copied();
        outside.chain(inside).map(|id: TensorId| &self.tensors[id.index()])
    }

    fn follow(&self, work: &Work) -> Result<()> {
        let mut memories = self.used().filter_map(|tensor| tensor.storage().device_memory());
        memories.try_for_each(|memory| work.follow(memory.last_use()))
    }

    fn record(&mut self, device: Device) -> Result<opsmith_runtime::backend::Capture> {
        let work = Work::on(device)?;
        // Work of other threads comes before the record, of which it cannot be a part.
        self.follow(&work)?;
        let recording = Recording::begin(&work)?;
        self.launch()?;
        recording.end()
    }

    fn replay(&self, device: Device, position: usize) -> Result<()> {
        let work = Work::on(device)?;
        self.follow(&work)?;
        // SAFETY: the record accesses the memory of the plan and that at the addresses for which it was made, which are those of
        // this run's inputs and outputs; the run has borrowed them, and notes their use.
        let replayed = unsafe { self.records.capture(position).replay(&work) };
        let mut memories = self.used().filter_map(|tensor| tensor.storage().device_memory());
        let noted = memories.try_for_each(|memory| memory.note_use(&work));
        replayed.and(noted)
    }
}
