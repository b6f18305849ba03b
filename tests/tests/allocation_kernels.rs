//! A warm graph asks the system for no memory, whatever its operators.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use opsmith::{DType, Result, Tensor, TensorOps, Value};
use opsmith_runtime::graph::{Graph, InputSpec, Pass, Passes};
use opsmith_runtime::op::OpDef;
use opsmith_testing::calls::{call, resized, tensors, with_tensors};
use opsmith_testing::samples::arguments;

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting what any thread asks it for.
struct Counting;

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often a warm run asks for memory.
fn allocations(graph: &Graph, inputs: &[Tensor], warm: usize) -> Result<usize> {
    let mut outputs = Vec::new();
    for _ in 0..warm {
        graph.run_into(inputs, &mut outputs)?;
    }
    let before = CALLS.load(Ordering::Relaxed);
    graph.run_into(inputs, &mut outputs)?;
    Ok(CALLS.load(Ordering::Relaxed) - before)
}

/// The call of a sample as a graph, and inputs for it, with its own sizes or larger ones; `None` where the operator
/// refuses them.
fn traced(op: &'static OpDef, args: &[Value], sizes: fn(i64) -> i64) -> Option<(Graph, Vec<Tensor>)> {
    let inputs = tensors(args).iter().map(|input| resized(input, sizes)).collect::<Result<Vec<_>>>().ok()?;
    let specs: Vec<InputSpec> = inputs.iter().map(InputSpec::from).collect();
    let graph = Graph::trace(|inputs: &[Tensor]| call(op, &with_tensors(args, inputs)), &specs).ok()?;
    let small = inputs.iter().all(|input| input.numel() < 20_000);
    (small && graph.run(&inputs).is_ok()).then_some((graph, inputs))
}

// One test, since threads of others would be counted, too.
#[test]
fn no_operator_allocates_in_a_warm_run() {
    let (mut wrong, mut count, mut operators, mut sized_by_elements) = (Vec::new(), 0, 0, BTreeSet::new());
    for op in opsmith::LIBRARY.all_ops().into_iter().filter(|op| op.host.is_none()) {
        let ran = count;
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::C128, DType::I64] {
            for (number, args) in arguments(op, dtype).into_iter().enumerate() {
                // Buffers within a kernel may be large enough for the sample's own sizes, and for no others.
                let grown = traced(op, &args, |size| size * 9).map(|graph| (graph, "9 times as large"));
                let own = traced(op, &args, |size| size).map(|graph| (graph, "as it is"));
                for ((graph, inputs), size) in own.into_iter().chain(grown) {
                    // Elements decide how large results are, so memory is found while the graph runs: all other sizes
                    // are known here.
                    if !graph.symbols().is_empty() {
                        sized_by_elements.insert(op.name);
                        continue;
                    }
                    let found = allocations(&graph, &inputs, 2).unwrap();
                    count += 1;
                    if found > 0 {
                        wrong.push(format!("{} {dtype} sample {number} {size}: {found}", op.name));
                    }
                }
            }
        }
        operators += usize::from(count > ran);
    }
    println!("{count} graphs of {operators} operators");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(sized_by_elements.contains("nonzero") && sized_by_elements.len() < 8, "{sized_by_elements:?}");
    assert!(operators > 300 && count > 5000, "{count} graphs of {operators} operators");
    over_an_input_allocates_nothing();
    several_threads_allocate_nothing();
}

/// Element-wise calls over memory that nothing needs any more.
fn over_an_input_allocates_nothing() {
    let x = opsmith::ones([70, 40]).unwrap();
    let function = |x: &[Tensor]| {
        let y = x[0].exp()?.sin()?;
        y.mul_(&x[0])?;
        y.softmax(1)?.cos()?.mm(&x[0].transpose(0, 1)?)
    };
    let graph = Graph::trace(function, [&x]).unwrap();
    for passes in [Passes::none().with(Pass::InPlaceReuse), Passes::all()] {
        assert_eq!(
            allocations(&graph.optimize(&passes), std::slice::from_ref(&x), 2).unwrap(),
            0,
            "{passes:?}"
        );
    }
}

/// With several threads a thread is warm when it has run each step: which one runs which is not decided before.
fn several_threads_allocate_nothing() {
    let x = opsmith::ones([70, 70]).unwrap();
    let function = |x: &[Tensor]| {
        let branch = |start: Tensor| start.mm(&x[0])?.softmax(1)?.cumsum(0)?.mm(&x[0]);
        let ends = [branch(x[0].sin()?)?, branch(x[0].cos()?)?];
        opsmith::cat(&[&ends[0], &ends[1]])
    };
    let mut graph = Graph::trace(function, [&x]).unwrap().optimize(&Passes::all());
    graph.set_threads(2);
    let mut outputs = Vec::new();
    // Each thread that meets a size for the first time asks for a block, so only so many runs can.
    let (mut quiet, mut runs) = (0, 0);
    while quiet < 50 {
        let before = CALLS.load(Ordering::Relaxed);
        graph.run_into(std::slice::from_ref(&x), &mut outputs).unwrap();
        quiet = if CALLS.load(Ordering::Relaxed) == before { quiet + 1 } else { 0 };
        runs += 1;
        assert!(runs < 2000, "a graph with two threads goes on allocating");
    }
}
