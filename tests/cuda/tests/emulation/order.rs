//! Streams, events, copies and devices: work is done in the order that was asked for, and not earlier than waited for.
//!
//! In: the loaded kernels. Out: assertions. Must not know the stand-ins' insides.

use std::ptr::null_mut;

use crate::cuda::{Handle, call, grid};
use crate::{Loaded, SM_90, TEXT, passes};

pub const SCENARIOS: &[(&str, fn())] = &[
    ("late", late),
    ("events", events),
    ("questions", questions),
    ("pageable", pageable),
    ("fills", fills),
    ("two devices", two_devices),
    ("facts", facts),
];

#[test]
fn work_is_done_when_it_is_waited_for() {
    passes("late", &[]);
    passes("events", &[]);
    passes("questions", &[]);
}

#[test]
fn copies_and_fills() {
    assert!(passes("pageable", &[]).contains("READ 1\n"));
    assert!(passes("pageable", &[("STANDIN_PAGEABLE", "late")]).contains("READ 2\n"));
    passes("fills", &[]);
}

#[test]
fn memory_of_one_device_is_none_of_another() {
    let text = passes("two devices", &[("STANDIN_DEVICES", "2")]);
    assert!(text.contains("STANDIN add_one: ") && text.contains(", of another device"), "{text}");
}

#[test]
fn devices_are_described() {
    passes("facts", &[("STANDIN_MEMORY", "1000000")]);
}

/// Pinned memory shows when a copy was done.
fn late() {
    let loaded = Loaded::new();
    let x = loaded.cuda.send(&[1f32; 4]);
    let seen = loaded.cuda.pinned(16).cast::<f32>();
    // SAFETY: the memory has room for four; streams run only in calls of this thread.
    unsafe { seen.write(-1.0) };
    loaded.launch("add_one", grid(1, 4), &[&x, &4u64]);
    let stream = loaded.stream;
    let code = call!(loaded.cuda.driver(), "cuMemcpyDtoHAsync_v2", seen => *mut f32, x.0 => u64, 16 => usize, stream => Handle);
    assert_eq!(code, 0);
    // SAFETY: as above.
    assert_eq!(unsafe { seen.read_volatile() }, -1.0);
    assert_eq!(loaded.cuda.wait(stream), 0);
    // SAFETY: as above.
    assert_eq!(unsafe { seen.read_volatile() }, 2.0);
}

/// A stream that waits for an event runs the other stream's work up to it, and no further.
fn events() {
    let loaded = Loaded::new();
    let (first, second) = (loaded.stream, loaded.cuda.stream());
    let add = loaded.cuda.function(loaded.module, "add_one").unwrap();
    let copy = loaded.cuda.function(loaded.module, "copy_first").unwrap();
    let (x, out, early) = (loaded.cuda.send(&[1f32]), loaded.cuda.send(&[0f32]), loaded.cuda.send(&[0f32]));
    let event = loaded.cuda.event();
    assert_eq!(loaded.cuda.launch(add, grid(1, 1), first, &[&x, &1u64]), 0);
    loaded.cuda.record(event, first);
    assert_eq!(loaded.cuda.launch(add, grid(1, 1), first, &[&x, &1u64]), 0);
    // Before the stream follows, it sees the old value.
    assert_eq!(loaded.cuda.launch(copy, grid(1, 1), second, &[&x, &early]), 0);
    loaded.cuda.follow(second, event);
    // The event's later records do not count.
    loaded.cuda.record(event, first);
    assert_eq!(loaded.cuda.launch(copy, grid(1, 1), second, &[&x, &out]), 0);
    assert_eq!(loaded.cuda.fetch::<f32>(early, 1, second), [1.0]);
    assert_eq!(loaded.cuda.fetch::<f32>(out, 1, second), [2.0]);
    assert_eq!(loaded.cuda.fetch::<f32>(x, 1, first), [3.0]);
}

fn questions() {
    let loaded = Loaded::new();
    let (start, end) = (loaded.cuda.event(), loaded.cuda.event());
    let driver = loaded.cuda.driver();
    let x = loaded.cuda.send(&[1f32]);
    loaded.cuda.record(start, loaded.stream);
    loaded.launch("add_one", grid(1, 1), &[&x, &1u64]);
    loaded.cuda.record(end, loaded.stream);
    let mut milliseconds = -1f32;
    let mut elapsed = || call!(driver, "cuEventElapsedTime", &raw mut milliseconds => *mut f32, start => Handle, end => Handle);
    assert_eq!(elapsed(), 600);
    let answers: Vec<i32> = (0..4).map(|_| call!(driver, "cuEventQuery", end => Handle)).collect();
    assert_eq!(answers, [600, 600, 600, 0]);
    assert_eq!(call!(driver, "cuStreamQuery", loaded.stream => Handle), 0);
    assert_eq!(elapsed(), 0);
    assert!((0.0..60_000.0).contains(&milliseconds), "{milliseconds}");
    loaded.launch("add_one", grid(1, 1), &[&x, &1u64]);
    assert_eq!(call!(driver, "cuStreamQuery", loaded.stream => Handle), 600);
    assert_eq!(call!(driver, "cuEventSynchronize", end => Handle), 0);
    assert_eq!(call!(driver, "cuEventDestroy_v2", end => Handle), 0);
    assert_eq!(call!(driver, "cuEventDestroy_v2", end => Handle), 400);
}

/// The source is changed after the request.
fn pageable() {
    let loaded = Loaded::new();
    let x = loaded.cuda.allocate(4);
    let mut source = Box::new(1f32);
    assert_eq!(loaded.cuda.send_bytes(x, (&raw const *source).cast(), 4, loaded.stream), 0);
    *source = 2.0;
    println!("READ {}", loaded.cuda.fetch::<f32>(x, 1, loaded.stream)[0]);
    let pinned = loaded.cuda.pinned(4).cast::<f32>();
    // SAFETY: the memory has room for one; streams run only in calls of this thread.
    unsafe { pinned.write(3.0) };
    assert_eq!(loaded.cuda.send_bytes(x, pinned.cast(), 4, loaded.stream), 0);
    // SAFETY: as above.
    unsafe { pinned.write(4.0) };
    assert_eq!(loaded.cuda.fetch::<f32>(x, 1, loaded.stream), [4.0]);
}

fn fills() {
    let loaded = Loaded::new();
    let (driver, stream) = (loaded.cuda.driver(), loaded.stream);
    let x = loaded.cuda.send(&[0u16; 12]);
    assert_eq!(call!(driver, "cuMemsetD16Async", x.0 => u64, 7 => u16, 3 => usize, stream => Handle), 0);
    let code = call!(driver, "cuMemsetD2D16Async", x.0 + 8 => u64, 8 => usize, 9 => u16, 2 => usize, 2 => usize, stream => Handle);
    assert_eq!(code, 0);
    let y = loaded.cuda.allocate(24);
    let code = call!(driver, "cuMemcpyDtoDAsync_v2", y.0 => u64, x.0 => u64, 24 => usize, stream => Handle);
    assert_eq!(code, 0);
    assert_eq!(loaded.cuda.fetch::<u16>(y, 12, stream), [7, 7, 7, 0, 9, 9, 0, 0, 9, 9, 0, 0]);
    // Past the block, and at an odd address.
    assert_eq!(call!(driver, "cuMemsetD16Async", x.0 => u64, 7 => u16, 13 => usize, stream => Handle), 1);
    assert_eq!(call!(driver, "cuMemsetD16Async", x.0 + 1 => u64, 7 => u16, 1 => usize, stream => Handle), 1);
}

fn two_devices() {
    let loaded = Loaded::new();
    let cuda = &loaded.cuda;
    let x = cuda.send(&[1f32; 4]);
    let first = cuda.enter(0);
    let second = cuda.enter(1);
    let image = cuda.compile(TEXT, SM_90).unwrap();
    let module = cuda.load(&image).unwrap();
    let (stream, y) = (cuda.stream(), cuda.send(&[0f32; 4]));
    let add = cuda.function(module, "add_one").unwrap();
    assert_eq!(cuda.launch(add, grid(1, 4), loaded.stream, &[&y, &4u64]), 400, "a stream of another device");
    let code = call!(cuda.driver(), "cuMemcpyPeerAsync",
        y.0 => u64, second => Handle, x.0 => u64, first => Handle, 16 => usize, stream => Handle);
    assert_eq!(code, 0);
    assert_eq!(cuda.launch(add, grid(1, 4), stream, &[&y, &4u64]), 0);
    assert_eq!(cuda.fetch::<f32>(y, 4, stream), [2.0; 4]);
    // The kernel of one device accesses memory of the other, whose context is not lost.
    assert_eq!(cuda.launch(add, grid(1, 4), stream, &[&x, &4u64]), 0);
    assert_eq!(cuda.wait(stream), 700);
    cuda.enter(0);
    loaded.launch("add_one", grid(1, 4), &[&x, &4u64]);
    assert_eq!(cuda.fetch::<f32>(x, 4, loaded.stream), [2.0; 4]);
}

fn facts() {
    let loaded = Loaded::new();
    let driver = loaded.cuda.driver();
    let attribute = |number: i32| {
        let mut value = 0;
        assert_eq!(
            call!(driver, "cuDeviceGetAttribute", &raw mut value => *mut i32, number => i32, 0 => i32),
            0
        );
        value
    };
    assert_eq!(
        [attribute(75), attribute(76), attribute(16), attribute(10), attribute(1)],
        [9, 0, 132, 32, 1024]
    );
    let mut version = 0;
    assert_eq!(call!(driver, "cuDriverGetVersion", &raw mut version => *mut i32), 0);
    assert_eq!(version, 13000);
    let mut count = 0;
    assert_eq!(call!(driver, "cuDeviceGetCount", &raw mut count => *mut i32), 0);
    assert_eq!(count, 1);
    let x = loaded.cuda.allocate(1000);
    let (mut free, mut total) = (0usize, 0usize);
    assert_eq!(
        call!(driver, "cuMemGetInfo_v2", &raw mut free => *mut usize, &raw mut total => *mut usize),
        0
    );
    assert_eq!((free, total), (999_000, 1_000_000));
    let mut address = 0u64;
    assert_eq!(call!(driver, "cuMemAlloc_v2", &raw mut address => *mut u64, 999_001 => usize), 2);
    assert_eq!(loaded.cuda.free(x), 0);
    let mut context = null_mut();
    assert_eq!(call!(driver, "cuStreamGetCtx", loaded.stream => Handle, &raw mut context => *mut Handle), 0);
    assert_eq!(context, loaded.cuda.enter(0));
}
