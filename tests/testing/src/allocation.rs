//! Allocations of warm graphs.
//!
//! In: a library, in a program whose global allocator is [`Counting`]. Out: every sample's graph that allocates memory
//! in a repeated run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::{DType, Result, Tensor, Value};
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::library::Library;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::parallel::{num_threads, set_num_threads};

use crate::calls::{call, resized, tensors, with_tensors};
use crate::report::{Report, runs_on_host};
use crate::samples::arguments;

static CALLS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CALLS_OF_THREAD: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting requests of all threads together and of each.
pub struct Counting;

// SAFETY: every call is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        CALLS_OF_THREAD.set(CALLS_OF_THREAD.get() + 1);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Number of allocations of all threads so far.
pub fn allocations() -> usize {
    CALLS.load(Ordering::Relaxed)
}

/// Number of allocations of this thread in a run of a graph, after two others. Those of the test harness's own thread
/// do not count: it reports a test that runs for a minute while the graph runs.
///
/// # Errors
/// Errors of the run.
pub fn allocations_of(graph: &Graph, inputs: &[Tensor]) -> Result<usize> {
    let mut outputs = Vec::new();
    for _ in 0..2 {
        graph.run_into(inputs, &mut outputs)?;
    }
    let before = CALLS_OF_THREAD.get();
    graph.run_into(inputs, &mut outputs)?;
    Ok(CALLS_OF_THREAD.get() - before)
}

/// Allocations of warm graphs of a library's operators.
#[derive(Default, Debug)]
pub struct Warm {
    /// Graphs that allocate. Those with data-dependent sizes are excluded: their memory is allocated during the run.
    pub report: Report,
    /// Number of operators with a graph that ran.
    pub operators: usize,
    /// Operators with data-dependent sizes.
    pub sized_by_elements: Vec<&'static str>,
}

/// Every sample of every operator as a graph, with its own sizes and larger ones, in this thread alone: which thread
/// runs a part of a kernel's loop is not decided before, so a helping thread may meet a part for the first time in any
/// run.
///
/// # Panics
/// If the program's global allocator is not [`Counting`], or the number of threads cannot be set.
pub fn warm_graphs(library: &'static Library) -> Warm {
    let before = allocations();
    drop(std::hint::black_box(Box::new(0)));
    assert!(
        allocations() > before,
        "nothing is counted: the global allocator is not `opsmith_testing::allocation::Counting`"
    );
    let threads = num_threads();
    set_num_threads(1).expect("one thread is a valid number");
    let mut warm = Warm::default();
    for &op in library.ops.iter().filter(|op| op.host.is_none() && runs_on_host(op)) {
        let before = warm.report.compared;
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::C128, DType::I64] {
            for (number, args) in arguments(op, dtype).into_iter().enumerate() {
                // Buffers within a kernel may be large enough for the sample's own sizes only.
                let grown = traced(op, &args, |size| size * 9).map(|graph| (graph, "9 times as large"));
                let own = traced(op, &args, |size| size).map(|graph| (graph, "as it is"));
                for ((graph, inputs), size) in own.into_iter().chain(grown) {
                    // All other sizes are known before the run.
                    if !graph.symbols().is_empty() {
                        warm.report.left_out += 1;
                        warm.sized_by_elements.push(op.name);
                        continue;
                    }
                    let wrong = match allocations_of(&graph, &inputs) {
                        Ok(0) => None,
                        Ok(found) => Some(format!("asks for memory {found} times in a warm run")),
                        Err(error) => Some(error.to_string()),
                    };
                    let place = || format!("{} ({}), {dtype}, sample {number} {size}", op.name, op.location);
                    warm.report.compare(wrong.map(|wrong| format!("{} {wrong}", place())));
                }
            }
        }
        warm.operators += usize::from(warm.report.compared > before);
    }
    warm.sized_by_elements.sort_unstable();
    warm.sized_by_elements.dedup();
    set_num_threads(threads).expect("the number of threads was this one before");
    warm
}

/// The call of a sample as a graph, and inputs for it, with its own sizes or larger ones; `None` if the operator
/// rejects them.
fn traced(op: &'static OpDef, args: &[Value], sizes: fn(i64) -> i64) -> Option<(Graph, Vec<Tensor>)> {
    let inputs = tensors(args).iter().map(|input| resized(input, sizes)).collect::<Result<Vec<_>>>().ok()?;
    let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
    let graph = Graph::trace(|inputs: &[Tensor]| call(op, &with_tensors(args, inputs)), &specs).ok()?;
    let small = inputs.iter().all(|input| input.numel() < 20_000);
    (small && graph.run(&inputs).is_ok()).then_some((graph, inputs))
}
