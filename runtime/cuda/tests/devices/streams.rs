//! Order: streams of threads, tickets, reuse of memory.

use std::ptr::NonNull;
use std::sync::{Arc, mpsc};
use std::thread;

use opsmith_runtime::backend::{DeviceMemory, Elements, ForeignStream, Queue, StreamId, Work};
use opsmith_runtime::{DType, Scalar, Tensor};

use crate::common::{DEVICE, Part, done, download, runtime, says, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("two", two),
    ("reused", reused),
    ("many", many),
    ("ended", ended),
    ("first_use", first_use),
    ("foreign", foreign),
];

#[test]
fn a_stream_follows_anothers_work() {
    done("two", &[]);
}

#[test]
fn freed_memory_is_reused_in_order() {
    done("reused", &[]);
}

#[test]
fn threads_allocate_and_fill_at_once() {
    done("many", &[]);
}

#[test]
fn a_thread_that_ended_leaves_its_stream() {
    let text = done("ended", &[]);
    assert!(text.contains(" streams=2 "), "{text}");
}

#[test]
fn the_first_use_follows_the_allocating_stream() {
    done("first_use", &[]);
}

#[test]
fn a_thread_enters_a_stream_of_other_code_and_leaves_it() {
    done("foreign", &[]);
}

/// Fills bytes in this thread's stream.
fn fill(memory: &DeviceMemory, bytes: usize, value: u8) {
    let work = Work::on(DEVICE).unwrap();
    work.follow(memory.last_use()).unwrap();
    let sizes = [bytes as i64];
    let to = Elements { start: memory.start(), dtype: DType::U8, sizes: &sizes, strides: &[1] };
    // SAFETY: the memory has as many bytes, and is kept until its last use.
    unsafe { work.runtime().fill(work.queue(), to, Scalar::Int(i64::from(value))).unwrap() };
    memory.note_use(&work).unwrap();
}

fn two() {
    for round in 0..20u8 {
        let memory = DeviceMemory::new(DEVICE, 5000).unwrap();
        fill(&memory, 5000, round);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(download(&memory, 5000).unwrap(), [round; 5000]);
                fill(&memory, 5000, 200);
            });
        });
        assert_eq!(download(&memory, 5000).unwrap(), [200; 5000], "the write of the other stream is later");
    }
    let tensor = Tensor::of(&[1.0f32, 2.0, 3.0]).to_device(DEVICE).unwrap();
    let sent = tensor.clone();
    let read = thread::spawn(move || sent.to_vec::<f32>().unwrap()).join().unwrap();
    assert_eq!(read, [1.0, 2.0, 3.0]);
}

fn reused() {
    let bytes = 4 << 20;
    let first = DeviceMemory::new(DEVICE, bytes).unwrap();
    let address = first.start().addr();
    fill(&first, bytes, 1);
    drop(first);
    let other = thread::spawn(move || {
        let other = DeviceMemory::new(DEVICE, bytes).unwrap();
        assert_ne!(other.start().addr(), address, "the block's work is not done");
        fill(&other, bytes, 2);
        download(&other, 9).unwrap()
    });
    assert_eq!(other.join().unwrap(), [2; 9]);
    let again = DeviceMemory::new(DEVICE, bytes).unwrap();
    assert_eq!(again.start().addr(), address, "its own stream has the block at once");
    fill(&again, bytes, 3);
    assert_eq!(download(&again, 9).unwrap(), [3; 9]);
    drop(again);
    // Its work is done now, so that any stream has it.
    let other = thread::spawn(move || [(); 2].map(|()| DeviceMemory::new(DEVICE, bytes).unwrap()));
    assert!(other.join().unwrap().iter().any(|memory| memory.start().addr() == address));
    assert_eq!(opsmith_cuda::memory_statistics(0).unwrap().segment_allocations, 2);
}

fn many() {
    thread::scope(|scope| {
        for seed in 1..=4u64 {
            scope.spawn(move || {
                let mut random = seed;
                let mut held: Vec<(DeviceMemory, usize, u8)> = Vec::new();
                for round in 0..150u32 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
                    let bytes = (random >> 40) as usize % 100_000 + 1;
                    let memory = DeviceMemory::new(DEVICE, bytes).unwrap();
                    let value = (round * 4 + seed as u32) as u8;
                    fill(&memory, bytes, value);
                    held.push((memory, bytes, value));
                    if held.len() > 6 {
                        let (memory, bytes, value) = held.swap_remove(random as usize % 6);
                        if round % 3 == 0 {
                            assert!(download(&memory, bytes).unwrap().iter().all(|byte| *byte == value));
                        }
                    }
                }
                for (memory, bytes, value) in held {
                    assert!(download(&memory, bytes).unwrap().iter().all(|byte| *byte == value));
                }
            });
        }
    });
    assert_eq!(opsmith_cuda::memory_statistics(0).unwrap().live_bytes, 0);
    opsmith_cuda::synchronize(0).unwrap();
}

fn ended() {
    let main = runtime().stream(0).unwrap();
    assert_eq!(runtime().stream(0).unwrap(), main);
    let streams: Vec<_> =
        (0..5).map(|_| thread::spawn(|| runtime().stream(0).unwrap()).join().unwrap()).collect();
    assert!(streams.iter().all(|stream| *stream == streams[0] && *stream != main), "{streams:?}");
    // Its tickets stay valid.
    let memory = thread::spawn(|| upload(DEVICE, &[4; 10])).join().unwrap();
    assert_eq!(download(&memory, 10).unwrap(), [4; 10]);
}

fn first_use() {
    let bytes = 3 << 20;
    let (send, receive) = mpsc::channel::<DeviceMemory>();
    let other = thread::spawn(move || {
        let memory = receive.recv().unwrap();
        fill(&memory, bytes, 9);
        // Its work is done before that of the first stream, unless it follows that.
        Work::on(DEVICE).unwrap().wait().unwrap();
        memory
    });
    let first = DeviceMemory::new(DEVICE, bytes).unwrap();
    let address = first.start().addr();
    fill(&first, bytes, 1);
    drop(first);
    // The same block, while this stream still has the fill before it.
    let second = DeviceMemory::new(DEVICE, bytes).unwrap();
    assert_eq!(second.start().addr(), address);
    send.send(second).unwrap();
    let memory = other.join().unwrap();
    Work::on(DEVICE).unwrap().wait().unwrap();
    assert_eq!(download(&memory, bytes).unwrap(), vec![9; bytes]);
}

/// The handle of the driver's default stream.
const DEFAULT: StreamId = StreamId(0);

fn foreign() {
    let own = runtime().stream(0).unwrap();
    let memory = DeviceMemory::new(DEVICE, 100).unwrap();
    fill(&memory, 100, 1);
    let owner = Arc::new(());
    // SAFETY: the default stream is valid as long as the device.
    let entered = unsafe { ForeignStream::enter(DEVICE, DEFAULT).unwrap() };
    assert_eq!(runtime().stream(0).unwrap(), DEFAULT);
    assert_eq!(entered.queue(), Queue { device: 0, stream: DEFAULT });
    fill(&memory, 100, 2);
    // SAFETY: `memory` is kept, and nothing else uses it meanwhile.
    let lent = unsafe {
        DeviceMemory::external(DEVICE, NonNull::new(memory.start()).unwrap(), 100, owner.clone()).unwrap()
    };
    fill(&lent, 100, 3);
    drop(lent);
    assert_eq!(Arc::strong_count(&owner), 1, "the owner is dropped in the order of the stream");
    memory.note_use_in(entered.queue()).unwrap();
    // The thread's own stream again, and no stream twice.
    // SAFETY: as above.
    let inner = unsafe { ForeignStream::enter(DEVICE, DEFAULT).unwrap() };
    inner.leave().unwrap();
    assert_eq!(runtime().stream(0).unwrap(), DEFAULT);
    entered.leave().unwrap();
    assert_eq!(runtime().stream(0).unwrap(), own);
    assert_eq!(download(&memory, 100).unwrap(), [3; 100]);
    // The default stream of a thread means another stream in each.
    // SAFETY: the handle is refused.
    says(unsafe { ForeignStream::enter(DEVICE, StreamId(2)) }, &["default stream of each thread"]);
    assert_eq!(runtime().stream(0).unwrap(), own);
    // A thread that ends in such a stream leaves none to others.
    thread::spawn(|| {
        // SAFETY: as above.
        std::mem::forget(unsafe { ForeignStream::enter(DEVICE, DEFAULT).unwrap() });
    })
    .join()
    .unwrap();
    assert_ne!(thread::spawn(|| runtime().stream(0).unwrap()).join().unwrap(), DEFAULT);
}
