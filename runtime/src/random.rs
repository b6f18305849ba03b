//! Random numbers: the counter-based Philox 4x32-10 generator.
//!
//! In: a seed and how many blocks of random bits a call needs. Out: a [`Stream`] whose blocks can be
//! computed in any order. Nothing is carried from one element to the next, so the value of element
//! `i` depends only on the seed, the offset at which the call started, and `i`: any number of threads,
//! or a GPU, produce the same tensor.

mod distribution;
mod draws;
mod normal;
pub(crate) mod observer;
mod philox;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use crate::simd::widest;
pub use distribution::{Distribution, Integers, Normal, Uniform, permutation};
pub(crate) use draws::{Draws, noted, repeated};
use observer::Start;
use philox::LANES;
pub use philox::philox4x32_10;

/// A random generator; clones share their state, across threads too.
///
/// ```
/// use opsmith_runtime::random::{Generator, Uniform};
/// let generator = Generator::new(42);
/// let mut first = [0.0f32; 3];
/// generator.fill(&Uniform::<f32>::new(), &mut first);
/// generator.manual_seed(42);
/// let mut again = [0.0f32; 3];
/// generator.fill(&Uniform::<f32>::new(), &mut again);
/// assert_eq!(first, again);
/// ```
#[derive(Clone)]
pub struct Generator(Arc<Shared>);

struct Shared {
    state: Mutex<GeneratorState>,
    /// Of one that stands for a generator that a traced function makes.
    start: Option<Start>,
}

/// Where a generator stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeneratorState {
    /// The key of the block cipher: which sequence of blocks it is.
    pub seed: u64,
    /// The next block of the sequence that was not handed out yet.
    pub offset: u64,
}

impl Generator {
    /// A generator at the start of the sequence of a seed.
    ///
    /// One that a traced function makes starts there in each run of the graph, as in each call of the function.
    pub fn new(seed: u64) -> Generator {
        let generator = Generator::at(GeneratorState { seed, offset: 0 });
        if let Some(observer) = observer::observer() {
            observer.made(&generator);
        }
        generator
    }

    /// A generator at some place, whether or not a function is traced.
    pub(crate) fn at(state: GeneratorState) -> Generator {
        Generator(Arc::new(Shared { state: Mutex::new(state), start: None }))
    }

    /// Placeholder in a graph for a generator that the traced function makes.
    pub(crate) fn starting(start: Start) -> Generator {
        Generator(Arc::new(Shared { state: Mutex::new(start.state), start: Some(start) }))
    }

    /// Where it starts in each run of a graph, if it is one of a traced function.
    pub(crate) fn start(&self) -> Option<Start> {
        self.0.start
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.lock().seed
    }

    /// Goes to the start of the sequence of a seed.
    pub fn manual_seed(&self, seed: u64) {
        self.set_state(GeneratorState { seed, offset: 0 });
    }

    /// Seed and offset, from which [`Generator::set_state`] continues exactly.
    pub fn state(&self) -> GeneratorState {
        if let Some(observer) = observer::observer() {
            observer.read(self);
        }
        self.place()
    }

    /// Goes to a place that [`Generator::state`] gave.
    pub fn set_state(&self, state: GeneratorState) {
        if let Some(observer) = observer::observer() {
            observer.set(self);
        }
        self.go_to(state);
    }

    /// Where it stands, whether or not a function is traced.
    pub(crate) fn place(&self) -> GeneratorState {
        *self.lock()
    }

    /// Goes to a place, whether or not a function is traced.
    pub(crate) fn go_to(&self, state: GeneratorState) {
        *self.lock() = state;
    }

    /// Takes the next `blocks` blocks; no other call gets them.
    ///
    /// Past 2^64 blocks the sequence starts over.
    pub fn reserve(&self, blocks: u64) -> Stream {
        if let Some(observer) = observer::observer() {
            observer.read(self);
        }
        draws::next(|| {
            let mut state = self.lock();
            let stream = Stream { seed: state.seed, offset: state.offset };
            state.offset = state.offset.wrapping_add(blocks);
            stream
        })
    }

    /// Takes the blocks that `count` elements of a distribution need.
    pub fn reserve_for<D: Distribution>(&self, _distribution: &D, count: usize) -> Stream {
        self.reserve((count as u64).div_ceil(D::PER_BLOCK))
    }

    /// Fills a slice with elements of a distribution.
    pub fn fill<D: Distribution>(&self, distribution: &D, out: &mut [D::Element]) {
        self.reserve_for(distribution, out.len()).fill(distribution, 0, out);
    }

    /// The numbers from 0 to `length - 1` in random order (see [`permutation`]).
    pub fn permutation(&self, length: usize) -> Vec<i64> {
        let mut order = vec![0; length];
        self.permute_into(&mut order);
        order
    }

    /// The same, written into a slice of that length.
    pub fn permute_into(&self, order: &mut [i64]) {
        permutation(&self.reserve((order.len() as u64).div_ceil(Integers::PER_BLOCK)), order);
    }

    /// Whether both handles share their state.
    pub fn same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lock(&self) -> MutexGuard<'_, GeneratorState> {
        // The state is two words that are always valid, so a panic elsewhere does not spoil it.
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GeneratorState { seed, offset } = self.place();
        write!(f, "Generator(seed={seed}, offset={offset})")
    }
}

/// The generator that operators use when none is given. Its first seed differs from run to run.
pub fn default_generator() -> &'static Generator {
    static DEFAULT: LazyLock<Generator> =
        // The standard library's hasher is the one source of entropy it offers.
        LazyLock::new(|| Generator::new(RandomState::new().hash_one("opsmith")));
    &DEFAULT
}

/// Seeds the default generator, so that a program gives the same numbers each time it runs.
pub fn manual_seed(seed: u64) {
    default_generator().manual_seed(seed);
}

/// Blocks of random bits that one call reserved, in any order. C knows it as `OpsmithStream`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// The generator's seed.
    pub seed: u64,
    /// The first reserved block.
    pub offset: u64,
}

impl Stream {
    /// The `index`-th reserved block: Philox 4x32-10 of the counter `(offset + index, 0)` (the first
    /// number fills the low two words) under the key `seed`.
    #[inline]
    pub fn block(&self, index: u64) -> [u32; 4] {
        self.block_of_attempt(index, 0)
    }

    /// A further block for the same index, for distributions that reject some of the bits they draw:
    /// the counter is `(offset + index, attempt)`.
    #[inline]
    pub fn block_of_attempt(&self, index: u64, attempt: u64) -> [u32; 4] {
        let position = self.offset.wrapping_add(index);
        let words = |value: u64| [value as u32, (value >> 32) as u32];
        let ([c0, c1], [c2, c3]) = (words(position), words(attempt));
        philox4x32_10([c0, c1, c2, c3], words(self.seed))
    }

    /// Element `index` of a tensor filled from this stream.
    #[inline]
    pub fn element<D: Distribution>(&self, distribution: &D, index: u64) -> D::Element {
        let elements = distribution.block(self, index / D::PER_BLOCK);
        elements.as_ref()[(index % D::PER_BLOCK) as usize]
    }

    /// Writes the elements from `first` on of a tensor filled from this stream; threads fill parts.
    pub fn fill<D: Distribution>(&self, distribution: &D, first: u64, out: &mut [D::Element]) {
        let head = ((D::PER_BLOCK - first % D::PER_BLOCK) % D::PER_BLOCK).min(out.len() as u64);
        let (head, body) = out.split_at_mut(head as usize);
        for (index, element) in (first..).zip(head.iter_mut()) {
            *element = self.element(distribution, index);
        }
        let first_block = (first + head.len() as u64) / D::PER_BLOCK;
        widest(
            #[inline(always)]
            || self.fill_blocks(distribution, first_block, body),
        );
    }

    /// Writes the elements of blocks one after the other, of the last one perhaps a part.
    #[inline(always)]
    fn fill_blocks<D: Distribution>(&self, distribution: &D, first: u64, out: &mut [D::Element]) {
        let of_block = D::PER_BLOCK as usize;
        let mut groups = out.chunks_exact_mut(LANES * of_block);
        let mut index = first;
        for group in &mut groups {
            let words = self.blocks(index);
            for (lane, out) in group.chunks_exact_mut(of_block).enumerate() {
                let words = [words[0][lane], words[1][lane], words[2][lane], words[3][lane]];
                out.copy_from_slice(distribution.of_words(self, index + lane as u64, words).as_ref());
            }
            index += LANES as u64;
        }
        for (index, out) in (index..).zip(groups.into_remainder().chunks_mut(of_block)) {
            let elements = distribution.block(self, index);
            out.copy_from_slice(&elements.as_ref()[..out.len()]);
        }
    }

    /// The words of blocks one after the other: the first word of each, the second, and so on.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "iterators that are not inlined are not vectorised")]
    fn blocks(&self, first: u64) -> [[u32; LANES]; 4] {
        let first = self.offset.wrapping_add(first);
        let mut counters = [[0; LANES]; 4];
        for lane in 0..LANES {
            let position = first.wrapping_add(lane as u64);
            (counters[0][lane], counters[1][lane]) = (position as u32, (position >> 32) as u32);
        }
        philox::side_by_side(counters, [self.seed as u32, (self.seed >> 32) as u32])
    }
}
