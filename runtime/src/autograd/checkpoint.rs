//! Checkpointing: the saved tensors of a part of the forward pass are recomputed when backward needs them.
//!
//! The part runs and is recorded as usual, but its nodes hold placeholders ([`Place`]) in a shared [`Segment`] instead
//! of tensors. The first formula that reads a placeholder runs the part once more and collects the tensors saved this
//! time, in the same order. The graph is that of the first run, so every function of graphs works on a checkpointed
//! one.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::context::TensorMeta;
use super::mode::enable_grad;
use super::recording;
use super::saved::{SavedName, SavedTensor, Slot};
use crate::dispatch::Borrows;
use crate::error::{Error, Result};
use crate::layout::{Dims, Layout};
use crate::random::observer::traced_draws;
use crate::random::{GeneratorState, default_generator};
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::trace_hook;

type Function = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

/// Runs a function whose saved tensors are not kept but computed again during backward, which trades
/// time for memory.
///
/// The function must be deterministic: from its inputs and from captured tensors that do not change before backward.
/// Operators that draw from the default generator draw the same numbers again. A difference in shapes, dtypes or in a
/// sample of the elements is an error.
///
/// # Errors
/// Errors of the function.
pub fn checkpoint(
    inputs: &[&Tensor],
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let tensors: Vec<Tensor> = inputs.iter().map(|input| (*input).clone()).collect();
    if !recording() {
        return function(&tensors);
    }
    let segment = Arc::new(Segment {
        inputs: inputs.iter().map(|input| Input::new(input)).collect(),
        function: Box::new(function),
        random: default_generator().place(),
        drew: AtomicBool::new(false),
        running: Mutex::default(),
        replayed: Mutex::default(),
    });
    let _scope = Scope::enter(Collecting::Places { segment: segment.clone(), count: 0 });
    let before = traced_draws();
    let outputs = (segment.function)(&tensors)?;
    segment.drew.store(traced_draws() > before, Ordering::Relaxed);
    Ok(outputs)
}

/// A part of the forward pass that can be run again.
pub(crate) struct Segment {
    inputs: Vec<Input>,
    function: Box<Function>,
    /// State of the default generator before the first run.
    random: GeneratorState,
    /// Whether a traced function drew from the default generator in this segment.
    drew: AtomicBool,
    /// Held while the function runs again.
    running: Mutex<()>,
    /// Tensors saved by the second run, by placeholder; empty before it, `None` where the node has dropped its
    /// placeholder.
    replayed: Mutex<Replayed>,
}

/// Tensors saved by the second run, by index of their placeholder.
type Replayed = Vec<Option<(SavedTensor, TensorMeta)>>;

struct Input {
    meta: TensorMeta,
    storage: Storage,
    saved: SavedTensor,
    tracked: bool,
}

impl Input {
    fn new(tensor: &Tensor) -> Input {
        let saved = SavedTensor::kept(Slot::Other(0), tensor);
        Input {
            meta: TensorMeta::of(tensor),
            storage: tensor.storage().clone(),
            saved,
            tracked: tensor.requires_grad(),
        }
    }
}

/// A placeholder for a tensor of a segment, held by a node instead of a saved tensor.
pub(crate) struct Place {
    segment: Arc<Segment>,
    index: usize,
    fingerprint: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut replayed = self.segment.replayed();
        let left = replayed.get_mut(self.index).and_then(Option::take);
        drop(replayed);
        drop(left);
    }
}

impl Place {
    /// The tensor of this placeholder from the second run; starts that run if needed.
    ///
    /// # Errors
    /// Errors of the function, or if it did not compute the same again.
    pub fn replay(&self, meta: &TensorMeta, name: &dyn Fn() -> SavedName) -> Result<Tensor> {
        self.segment.ensure_replayed()?;
        let found = self.segment.replayed().get(self.index).and_then(Clone::clone);
        let Some((saved, replayed_meta)) = found else {
            return Err(differs(&name(), "nothing was saved"));
        };
        if replayed_meta != *meta {
            return Err(differs(&name(), "it saved another shape or dtype"));
        }
        let tensor = saved.restore(meta, name)?;
        if fingerprint(&tensor) != self.fingerprint {
            return Err(differs(&name(), "it saved other elements"));
        }
        Ok(tensor)
    }
}

#[cold]
fn differs(name: &SavedName, how: &str) -> Error {
    Error::autograd(format!(
        "a checkpointed function did not compute the same again: where `{}` saved its {}, {how}",
        name.op, name.what
    ))
    .with_help("make it depend only on its inputs and on tensors that stay as they are until backward")
}

impl Segment {
    fn replayed(&self) -> MutexGuard<'_, Replayed> {
        self.replayed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Runs the function again if that has not been done; other threads wait for the same run.
    fn ensure_replayed(&self) -> Result<()> {
        let _running = self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.replayed().is_empty() {
            // Runs without the lock of the results: placeholders dropped during the run take that lock.
            let results = self.run()?;
            *self.replayed() = results;
        }
        Ok(())
    }

    /// Whether a tensor shares memory with an input.
    fn reads(&self, tensor: &Tensor) -> bool {
        self.inputs.iter().any(|input| input.storage.same(tensor.storage()))
    }

    /// Runs the function again and collects the tensors that its calls save.
    fn run(&self) -> Result<Replayed> {
        if trace_hook::is_tracing() && self.drew.load(Ordering::Relaxed) {
            return Err(Error::graph(
                "a checkpointed function draws random numbers, and a graph cannot draw the same ones again",
            )
            .with_help("draw them before the checkpoint, or do without one in a traced function"));
        }
        let name = |index: usize| SavedName { op: "checkpoint".to_owned(), what: format!("input {index}") };
        let input = |(index, input): (usize, &Input)| {
            let tensor = input.saved.restore(&input.meta, &|| name(index))?;
            tensor.set_requires_grad(input.tracked)?;
            Ok(tensor)
        };
        let inputs: Vec<Tensor> = self.inputs.iter().enumerate().map(input).collect::<Result<_>>()?;
        let _random = Random::restore(self.random);
        let scope = Scope::enter(Collecting::Tensors(Vec::new()));
        enable_grad(|| (self.function)(&inputs))?;
        Ok(scope.leave())
    }
}

/// Restores the default generator's state from before a second run.
struct Random(GeneratorState);

impl Random {
    fn restore(state: GeneratorState) -> Random {
        let now = default_generator().place();
        default_generator().go_to(state);
        Random(now)
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        default_generator().go_to(self.0);
    }
}

/// Treatment of the tensors that calls of this thread save.
enum Collecting {
    /// They get placeholders in a segment.
    Places { segment: Arc<Segment>, count: usize },
    /// They are collected for the placeholders of the first run.
    Tensors(Replayed),
}

thread_local! {
    static COLLECTING: RefCell<Option<Collecting>> = const { RefCell::new(None) };
    /// Whether `COLLECTING` is set; cheaper to test.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// Collects while it lives; restores the former state when dropped.
struct Scope(Option<Collecting>);

impl Scope {
    fn enter(collecting: Collecting) -> Scope {
        ACTIVE.set(true);
        Scope(COLLECTING.replace(Some(collecting)))
    }

    /// Ends the scope and returns the collected tensors.
    fn leave(self) -> Replayed {
        match COLLECTING.take() {
            Some(Collecting::Tensors(tensors)) => tensors,
            _ => Replayed::new(),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        ACTIVE.set(self.0.is_some());
        let ended = COLLECTING.replace(self.0.take());
        drop(ended);
    }
}

/// Whether calls of this thread save placeholders.
#[inline]
pub(super) fn is_collecting() -> bool {
    ACTIVE.get()
}

/// A placeholder for a tensor that a call saves; `None` if the tensor itself is kept.
#[cold]
pub(super) fn place_for(slot: Slot, tensor: &Tensor) -> Option<Place> {
    COLLECTING.with_borrow_mut(|collecting| match collecting {
        Some(Collecting::Places { segment, count }) => {
            let index = *count;
            *count += 1;
            // Leaves and inputs stay alive anyway; they are kept as usual, so that their versions are checked.
            let lives = (tensor.requires_grad() && tensor.is_leaf()) || segment.reads(tensor);
            (!lives).then(|| Place { segment: segment.clone(), index, fingerprint: fingerprint(tensor) })
        }
        Some(Collecting::Tensors(tensors)) => {
            tensors.push(Some((SavedTensor::kept(slot, tensor), TensorMeta::of(tensor))));
            None
        }
        None => None,
    })
}

/// The tensor itself if it is on the host, else a few evenly spaced elements of it.
fn sampled_on_host(tensor: &Tensor, samples: i64) -> Result<Tensor> {
    if tensor.is_on_host() || tensor.storage().is_meta() || tensor.numel() <= samples {
        return tensor.on_host();
    }
    let whole = tensor.contiguous_untracked()?;
    let layout = Layout {
        sizes: Dims::from_slice(&[samples]),
        strides: Dims::from_slice(&[whole.numel() / samples]),
        offset: whole.layout().offset,
    };
    whole.with_layout(&layout)?.on_host()
}

/// A hash of at most 64 elements, evenly spaced.
fn fingerprint(tensor: &Tensor) -> u64 {
    const SAMPLES: i64 = 64;
    let Ok(tensor) = &sampled_on_host(tensor, SAMPLES) else { return 0 };
    let reads = [crate::Arg::Tensor(tensor)];
    // Tensors of traced functions are meta tensors: no elements to compare.
    let Ok(_held) = Borrows::acquire(&reads, &[]) else { return 0 };
    let (numel, size) = (tensor.numel(), tensor.dtype().size());
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for sample in 0..numel.min(SAMPLES) {
        let mut rest = sample * (numel / numel.min(SAMPLES));
        let mut offset = 0;
        for (length, stride) in tensor.shape().iter().zip(tensor.strides()).rev() {
            offset += rest % length * stride;
            rest /= length;
        }
        // SAFETY: the index is one of the tensor's, each element has `size` initialised bytes, and
        // the borrow is held.
        let bytes = unsafe {
            std::slice::from_raw_parts(tensor.data_ptr().offset(offset as isize * size as isize), size)
        };
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}
