//! Recorded runs: stretches of a plan's steps on devices, each submitted as a whole.
//!
//! In: a plan that ran at these addresses before, so that its kernels are compiled. Out: its stretches, recorded by the backend and
//! replayed from then on, with the other steps between them. Addresses of inputs and outputs are inside the recorded work: a run at
//! others is one of single launches, and is recorded when they come again. Stretches of a branch or a loop's body are recorded when
//! it runs again. A step that cannot be recorded has a reason, which [`Graph::replays`] reports.

use std::fmt;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use opsmith_runtime::arg::Value;
use opsmith_runtime::backend::{Capture, DeviceMemory, Recording, Work};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::internals;
use opsmith_runtime::storage::Storage;
use opsmith_runtime::tensor::Tensor;

use super::executable::Executable;
use super::{run_plain, run_step, run_structured};
use crate::ir::{Graph, TensorId};
use crate::plan::records::{Addresses, Record, Records, Stretch};
use crate::plan::{External, Plan, Step};
use crate::show::table::counted;

/// The runs of a graph on devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replays {
    /// Recordings of consecutive steps.
    pub recorded: u64,
    /// Requests that replayed one.
    pub replayed: u64,
    /// Steps that were launched alone; those inside a branch or a loop are one.
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
        let all = &self.records.stretches;
        let position = if all.is_empty() || internals::is_listening() {
            None
        } else {
            let addresses = self.addresses();
            self.records.position(addresses)
        };
        counts.launched.fetch_add(self.records.alone, Ordering::Relaxed);
        let Some(position) = position else {
            let stretches = self.records.stretches.iter().filter(|stretch| stretch.list == 0);
            let steps = stretches.map(|stretch| stretch.steps.len() as u64).sum();
            counts.launched.fetch_add(steps, Ordering::Relaxed);
            return self.launch();
        };
        let Plan { steps, tensors, inputs, results, reads, writes, list_values, records, .. } = self;
        let memory = Memory { outside: [inputs, results], inside: [reads, writes] };
        Replay { position, memory, lists: list_values, records, counts }.run(0, steps, tensors)
    }

    /// The addresses that change from run to run.
    fn addresses(&self) -> Addresses {
        let outside = self.inputs.iter().chain(&self.results);
        outside.map(|outside| self.tensors[outside.root.index()].data_ptr().addr()).collect()
    }
}

/// The memory of a plan, apart from its arenas.
#[derive(Clone, Copy)]
struct Memory<'a> {
    outside: [&'a [External]; 2],
    inside: [&'a [TensorId]; 2],
}

/// A run with records.
struct Replay<'a> {
    /// The position of the records for this run's addresses.
    position: usize,
    memory: Memory<'a>,
    lists: &'a [Value],
    records: &'a mut Records,
    counts: &'a Counts,
}

impl Replay<'_> {
    /// Runs the steps of a list.
    fn run(&mut self, list: usize, steps: &[Step], tensors: &mut Vec<Tensor>) -> Result<()> {
        let (mut next, mut from) = (0, 0);
        // The stretches of lists inside have higher numbers, so that this list's keep theirs.
        while let Some(number) = self.records.next(list, from) {
            let stretch = self.records.stretches[number].clone();
            self.launch(&steps[next..stretch.steps.start], tensors)?;
            next = stretch.steps.start;
            from = number;
            if matches!(self.records.record(self.position, number), Record::Ready)
                && let Err((step, error)) = self.make(number, &stretch, steps, tensors)
            {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default().to_owned();
                self.counts.refuse(&reason);
                self.records.divide(number, step, reason);
                continue;
            }
            next = stretch.steps.end;
            from = number + 1;
            if let Record::Made(_) = self.records.record(self.position, number) {
                self.replay(number, stretch.device, tensors)?;
            } else {
                self.launch(&steps[stretch.steps], tensors)?;
                *self.records.record(self.position, number) = Record::Ready;
            }
        }
        self.launch(&steps[next..], tensors)
    }

    /// Runs steps outside of stretches, or for the first time.
    fn launch(&mut self, steps: &[Step], tensors: &mut Vec<Tensor>) -> Result<()> {
        let lists = self.lists;
        steps.iter().try_for_each(|step| {
            if step.kind.is_plain() {
                return run_plain::<false>(step, tensors, lists);
            }
            run_structured(step, tensors, lists, &mut |list, tensors| {
                self.run(list.number, &list.steps, tensors)
            })
        })
    }

    /// The memory of a device that the steps use, each once.
    fn memories<'t>(&self, device: Device, tensors: &'t [Tensor]) -> impl Iterator<Item = &'t DeviceMemory> {
        let Memory { outside: [inputs, results], inside: [reads, writes] } = self.memory;
        let outside = inputs.iter().chain(results).map(|outside| outside.root);
        let inside = reads.iter().chain(writes).chain(&self.records.arenas).copied();
        let memories = outside.chain(inside).map(|id: TensorId| tensors[id.index()].storage());
        memories.filter_map(Storage::device_memory).filter(move |memory| memory.device() == device)
    }

    fn follow(&self, device: Device, tensors: &[Tensor], work: &Work) -> Result<()> {
        self.memories(device, tensors).try_for_each(|memory| work.follow(memory.last_use()))
    }

    /// Makes the record of a stretch; an error has the step that cannot be in one, or none if it is of the whole. Nothing runs.
    fn make(
        &mut self,
        number: usize,
        stretch: &Stretch,
        steps: &[Step],
        tensors: &mut Vec<Tensor>,
    ) -> Result<(), (Option<usize>, Error)> {
        // Another thread may use an operand just now, so one failure says little.
        let mut again = || self.capture(stretch, steps, tensors);
        let capture = again().or_else(|_| again()).or_else(|_| again())?;
        *self.records.record(self.position, number) = Record::Made(capture);
        self.counts.recorded.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn capture(
        &self,
        stretch: &Stretch,
        steps: &[Step],
        tensors: &mut Vec<Tensor>,
    ) -> Result<Capture, (Option<usize>, Error)> {
        let Stretch { device, steps: range, .. } = stretch;
        let of_all = |error: Error| (None, error);
        let work = Work::on(*device).map_err(of_all)?;
        // Work of other threads comes before the record, of which it cannot be a part.
        self.follow(*device, tensors, &work).map_err(of_all)?;
        let recording = Recording::begin(&work).map_err(of_all)?;
        for (number, step) in range.clone().zip(&steps[range.clone()]) {
            run_step::<false>(step, tensors, self.lists).map_err(|error| (Some(number), error))?;
        }
        recording.end().map_err(of_all)
    }

    fn replay(&mut self, stretch: usize, device: Device, tensors: &[Tensor]) -> Result<()> {
        let work = Work::on(device)?;
        self.follow(device, tensors, &work)?;
        let Record::Made(capture) = self.records.record(self.position, stretch) else { return Ok(()) };
        self.counts.replayed.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the record accesses the memory of the plan and that at the addresses for which it was made, which are those of
        // this run's inputs and outputs; the run has borrowed them, and notes their use.
        let replayed = unsafe { capture.replay(&work) };
        let noted = self.memories(device, tensors).try_for_each(|memory| memory.note_use(&work));
        replayed.and(noted)
    }
}
