//! In-place and out forms ask for no memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use opsmith::{Tensor, TensorOps};

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting what this thread asks it for.
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

/// How often a call asks for memory, once it is warm.
fn allocations(mut call: impl FnMut()) -> usize {
    call();
    let before = CALLS.get();
    (0..10).for_each(|_| call());
    CALLS.get() - before
}

#[test]
fn in_place_and_out_forms_do_not_allocate() {
    let (a, b) = (Tensor::of(&[1.0f32, 2.0]), Tensor::of(&[3.0f32, 4.0]));
    let mut out = Tensor::of(&[0.0f32, 0.0]);
    assert_eq!(allocations(|| a.add_(&b).unwrap()), 0, "in place");
    assert_eq!(allocations(|| a.mul_out(&b, &mut out).unwrap()), 0, "out");
    assert_eq!(allocations(|| drop(a.add(&b).unwrap())), 10, "a functional form makes a tensor a call");
}
