//! Calls allocate no memory once they are warm, nor does a graph in a repeated run: results come from the caches of blocks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use opsmith::{DType, Result, Tensor, TensorOps};
use opsmith_graph::{Graph, InputSpec, Passes};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting allocations of this thread.
struct Counting;

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
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

/// Number of allocations of a call, once it is warm.
fn allocations(mut call: impl FnMut()) -> usize {
    call();
    let before = CALLS.get();
    (0..10).for_each(|_| call());
    CALLS.get() - before
}

#[test]
fn warm_calls_do_not_allocate() {
    let (a, b) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[3.0f32, 4.0]));
    let mut out = Tensor::of(&[0.0f32, 0.0]);
    assert_eq!(allocations(|| a.add_(&b).unwrap()), 0, "in place");
    assert_eq!(allocations(|| a.mul_out(&b, &mut out).unwrap()), 0, "out");
    assert_eq!(allocations(|| drop(a.add(&b).unwrap())), 0, "functional");
    assert_eq!(allocations(|| drop(a.view([2, 1]).unwrap())), 0, "a view");
    let tracked = Tensor::of(&[1.0f32, 2.0]).requires_grad_(true).unwrap();
    assert_eq!(allocations(|| drop(tracked.mul(&b).unwrap())), 0, "recorded");
}

#[test]
fn a_warm_graph_does_not_allocate() {
    let scale = Tensor::of(&[1.0f32, 2.0, 3.0, 4.0]);
    let square = opsmith::ones([4, 4]).unwrap();
    type Function<'a> = &'a dyn Fn(&[Tensor]) -> Result<Tensor>;
    type Alone<'a> = &'a dyn Fn(&Tensor, &mut Tensor) -> Result<()>;
    let nothing: Alone<'_> = &|_, _| Ok(());
    // With each function its kernel alone, if that takes memory to work in, which is not the graph's to plan.
    let functions: [(&str, Function<'_>, Alone<'_>); 5] = [
        ("element-wise", &|x| x[0].exp()?.mul(&scale)?.relu(), nothing),
        ("views", &|x| x[0].transpose(0, 1)?.narrow(0, 1, 2)?.sin(), nothing),
        ("a reduction", &|x| x[0].exp()?.sum(), nothing),
        ("a list", &|x| opsmith::cat(&[&x[0], &x[0]]), &|x, out| opsmith::cat_out(&[x, x], out)),
        ("a product", &|x| x[0].mm(&square), &|x, out| x.mm_out(&square, out)),
    ];
    let x = opsmith::ones([6, 4]).unwrap();
    for (name, function, alone) in functions {
        let spec = InputSpec::new(DType::F32, ["rows".into(), 4.into()]);
        let traced = Graph::trace(|x: &[Tensor]| function(x), [spec]).unwrap();
        let mut out = function(std::slice::from_ref(&x)).unwrap();
        let kernel = allocations(|| alone(&x, &mut out).unwrap());
        for graph in [traced.optimize(&Passes::all()), traced] {
            let mut outputs = Vec::new();
            // The second run has the memory of the first one's outputs.
            graph.run_into(&[&x], &mut outputs).unwrap();
            let found = allocations(|| graph.run_into(&[&x], &mut outputs).unwrap());
            assert!(found <= kernel, "{name}: {found} beside {kernel} of its kernel");
        }
    }
}
