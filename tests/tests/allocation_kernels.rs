//! A warm graph allocates no memory, for any operator.

use opsmith::runtime::parallel::set_num_threads;
use opsmith::{Tensor, TensorOps};
use opsmith_graph::{Graph, Pass, Passes};
use opsmith_testing::allocation::{Counting, allocations, allocations_of, warm_graphs};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test, since threads of others would be counted, too.
#[test]
fn no_operator_allocates_in_a_warm_run() {
    let warm = warm_graphs(&opsmith::LIBRARY);
    warm.report.assert_right();
    let (operators, graphs, sized) = (warm.operators, warm.report.compared, &warm.sized_by_elements);
    println!("{graphs} graphs of {operators} operators");
    assert!(sized.contains(&"nonzero") && sized.len() < 8, "{sized:?}");
    assert!(operators > 300 && graphs > 5000, "{graphs} graphs of {operators} operators");
    set_num_threads(1).unwrap();
    over_an_input_allocates_nothing();
    set_num_threads(2).unwrap();
    branches_in_several_threads_allocate_nothing();
    kernels_in_several_threads_allocate_nothing();
}

/// Element-wise calls over dead buffers.
fn over_an_input_allocates_nothing() {
    let x = opsmith::ones([70, 40]).unwrap();
    let function = |x: &[Tensor]| {
        let y = x[0].exp()?.sin()?;
        y.mul_(&x[0])?;
        y.softmax(1)?.cos()?.mm(&x[0].transpose(0, 1)?)
    };
    let graph = Graph::trace(function, [&x]).unwrap();
    for passes in [Passes::none().with(Pass::InPlaceReuse), Passes::all()] {
        let found = allocations_of(&graph.optimize(&passes), std::slice::from_ref(&x)).unwrap();
        assert_eq!(found, 0, "{passes:?}");
        let tiled = graph.optimize(&passes).with_tiles(500);
        assert_eq!(allocations_of(&tiled, std::slice::from_ref(&x)).unwrap(), 0, "{passes:?} in tiles");
    }
}

/// Schedule levels of two threads.
fn branches_in_several_threads_allocate_nothing() {
    let x = opsmith::ones([70, 70]).unwrap();
    let function = |x: &[Tensor]| {
        let branch = |start: Tensor| start.mm(&x[0])?.softmax(1)?.cumsum(0)?.mm(&x[0]);
        let ends = [branch(x[0].sin()?)?, branch(x[0].cos()?)?];
        opsmith::cat(&[&ends[0], &ends[1]])
    };
    let mut graph = Graph::trace(function, [&x]).unwrap().optimize(&Passes::all());
    graph.set_threads(2);
    assert_warm_at_last(&graph, &x);
}

/// Kernels whose loops two threads share.
fn kernels_in_several_threads_allocate_nothing() {
    let x = opsmith::ones([2, 8, 64, 64]).unwrap();
    let function = |x: &[Tensor]| {
        let weight = x[0].narrow(2, 0, 3)?.narrow(3, 0, 3)?;
        let maps = x[0].conv2d(&weight)?.sin()?.conv_transpose2d(&weight)?.softmax(3)?;
        let rows = maps.reshape([-1, maps.size(3)?])?;
        rows.transpose(0, 1)?.mm(&rows)?.cumsum(0)?.sum_dim(Some(&[1]))
    };
    let graph = Graph::trace(function, [&x]).unwrap().optimize(&Passes::all());
    assert_warm_at_last(&graph, &x);
}

/// A thread is warm when it has run each step, and each that meets a size for the first time allocates a block: the
/// number of runs that allocate is limited.
fn assert_warm_at_last(graph: &Graph, x: &Tensor) {
    let mut outputs = Vec::new();
    let (mut quiet, mut runs) = (0, 0);
    while quiet < 50 {
        let before = allocations();
        graph.run_into(std::slice::from_ref(x), &mut outputs).unwrap();
        quiet = if allocations() == before { quiet + 1 } else { 0 };
        runs += 1;
        assert!(runs < 2000, "a graph with two threads goes on allocating");
    }
}
