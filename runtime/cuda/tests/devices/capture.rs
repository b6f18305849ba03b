//! Recorded work: refusals, working memory, replays; and the driver's rules, which its stand-in keeps.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::thread;

use libloading::{Library, Symbol};
use opsmith_runtime::Scalar;
use opsmith_runtime::backend::{Capture, DeviceMemory, Elements, Recording, Work};
use opsmith_runtime::{DType, Device, Result};

use crate::common::{DEVICE, Part, STAND_INS, done, download, on, says, start, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("recorded", recorded),
    ("record_refusals", refusals),
    ("record_memory", memory),
    ("record_beside_threads", beside_threads),
    ("record_synchronous", synchronous),
    ("driver_rules", driver_rules),
];

#[test]
fn work_is_recorded_and_replayed() {
    let text = done("recorded", &[]);
    assert!(text.contains(" graphs=1 replays=3"), "{text}");
}

#[test]
fn a_record_refuses_waits_and_copies_of_the_host() {
    done("record_refusals", &[]);
}

#[test]
fn a_record_keeps_its_memory() {
    done("record_memory", &[]);
}

#[test]
fn other_threads_go_on_while_one_records() {
    done("record_beside_threads", &[]);
}

#[test]
fn nothing_is_recorded_if_each_launch_is_waited_for() {
    done("record_synchronous", &[("OPSMITH_CUDA_SYNC", "1")]);
}

/// Direct calls of the driver, which are refused.
#[test]
fn the_driver_refuses_calls_during_a_capture() {
    let output = start("driver_rules", &STAND_INS, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("DONE"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Adds one to bytes' copies: fills the second half of the memory, and copies it to the first.
fn submit(work: &Work, memory: &DeviceMemory, value: u8) -> Result<()> {
    let half = |start: *mut u8| Elements { start, dtype: DType::U8, sizes: &[512], strides: &[1] };
    let second = memory.start().wrapping_add(512);
    // SAFETY: the memory has 1024 bytes, and is kept until its last use.
    unsafe {
        work.runtime().fill(work.queue(), half(second), Scalar::Int(i64::from(value)))?;
        work.runtime().convert(work.queue(), half(memory.start()), half(second))
    }
}

fn replay(capture: &Capture, work: &Work, memory: &DeviceMemory) {
    work.follow(memory.last_use()).unwrap();
    // SAFETY: the memory is kept until its last use.
    unsafe { capture.replay(work).unwrap() };
    memory.note_use(work).unwrap();
}

fn recorded() {
    let memory = upload(DEVICE, &[1; 1024]);
    let work = Work::on(DEVICE).unwrap();
    let recording = Recording::begin(&work).unwrap();
    submit(&work, &memory, 7).unwrap();
    let capture = recording.end().unwrap();
    assert_eq!(download(&memory, 1024).unwrap(), [1; 1024], "nothing ran");
    replay(&capture, &work, &memory);
    assert_eq!(download(&memory, 1024).unwrap(), [7; 1024]);
    // In the order of the stream, and in that of another thread.
    submit(&work, &memory, 9).unwrap();
    replay(&capture, &work, &memory);
    assert_eq!(download(&memory, 1024).unwrap(), [7; 1024]);
    submit(&work, &memory, 9).unwrap();
    memory.note_use(&work).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| replay(&capture, &Work::on(DEVICE).unwrap(), &memory));
    });
    assert_eq!(download(&memory, 1024).unwrap(), [7; 1024]);
}

fn refusals() {
    let memory = upload(DEVICE, &[1; 1024]);
    let work = Work::on(DEVICE).unwrap();
    let recording = Recording::begin(&work).unwrap();
    says(Recording::begin(&work).map(drop), &["another record"]);
    says(work.wait(), &["a wait of the host", "submit the work each time"]);
    says(DEVICE.synchronize(), &["a wait of the host"]);
    let mut host = [0u8; 8];
    let here = on(Device::CPU, host.as_mut_ptr());
    // SAFETY: both sides have as many bytes, and nothing is asked for.
    let copied = unsafe { work.runtime().transfer(work.queue(), here, on(DEVICE, memory.start()), 8) };
    says(copied, &["a copy from or to another device"]);
    says(work.runtime().mark(work.queue()), &["a measured moment"]);
    let other = thread::spawn(|| Work::on(DEVICE).unwrap().ticket().unwrap()).join().unwrap();
    says(work.follow(other), &["work of another thread"]);
    // The record goes on after refusals.
    submit(&work, &memory, 3).unwrap();
    let capture = recording.end().unwrap();
    replay(&capture, &work, &memory);
    assert_eq!(download(&memory, 1024).unwrap(), [3; 1024]);
    // One that is dropped leaves nothing behind.
    drop(Recording::begin(&work).unwrap());
    submit(&work, &memory, 4).unwrap();
    assert_eq!(download(&memory, 1024).unwrap(), [4; 1024]);
}

fn memory() {
    let work = Work::on(DEVICE).unwrap();
    let results = [upload(DEVICE, &[1; 1024]), upload(DEVICE, &[1; 1024])];
    let row = |start: *mut u8| Elements { start, dtype: DType::U8, sizes: &[1024], strides: &[1] };
    let recording = Recording::begin(&work).unwrap();
    let mut addresses = Vec::new();
    for (number, result) in results.iter().enumerate() {
        let working = DeviceMemory::new(DEVICE, 1024).unwrap();
        addresses.push(working.start().addr());
        // SAFETY: both have 1024 bytes; that of the record is its own.
        unsafe {
            work.runtime().fill(work.queue(), row(working.start()), Scalar::Int(5 + number as i64)).unwrap();
            work.runtime().convert(work.queue(), row(result.start()), row(working.start())).unwrap();
        }
    }
    let capture = recording.end().unwrap();
    assert_eq!(addresses[0], addresses[1], "a released block serves the record again");
    // Other work gets other memory, however often.
    for _ in 0..20 {
        let other = DeviceMemory::new(DEVICE, 1024).unwrap();
        assert_ne!(other.start().addr(), addresses[0]);
    }
    replay(&capture, &work, &results[0]);
    assert_eq!(download(&results[0], 1024).unwrap(), [5; 1024]);
    assert_eq!(download(&results[1], 1024).unwrap(), [6; 1024]);
    drop(capture);
    let freed = (0..20).map(|_| DeviceMemory::new(DEVICE, 1024).unwrap()).collect::<Vec<_>>();
    assert!(freed.iter().any(|memory| memory.start().addr() == addresses[0]), "it is free again");
    // Memory that outlives the record cannot belong to it.
    let recording = Recording::begin(&work).unwrap();
    let kept = DeviceMemory::new(DEVICE, 1024).unwrap();
    says(recording.end().map(drop), &["1 blocks of memory of recorded work are used beyond it"]);
    drop(kept);
}

/// Threads that allocate, follow and wait while another one records.
fn beside_threads() {
    let memory = upload(DEVICE, &[1; 1024]);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..40u8 {
                    let own = upload(DEVICE, &[round; 1024]);
                    let work = Work::on(DEVICE).unwrap();
                    work.follow(memory.last_use()).unwrap();
                    submit(&work, &own, round).unwrap();
                    assert_eq!(download(&own, 1024).unwrap(), [round; 1024]);
                }
            });
        }
        let work = Work::on(DEVICE).unwrap();
        for round in 0..40u8 {
            let recording = Recording::begin(&work).unwrap();
            submit(&work, &memory, round).unwrap();
            let capture = recording.end().unwrap();
            replay(&capture, &work, &memory);
            assert_eq!(download(&memory, 1024).unwrap(), [round; 1024]);
        }
    });
}

fn synchronous() {
    let work = Work::on(DEVICE).unwrap();
    says(Recording::begin(&work).map(drop), &["each launch is waited for", "OPSMITH_CUDA_SYNC"]);
}

type Handle = *mut c_void;

/// A function of the driver.
fn function<'a, F>(driver: &'a Library, name: &str) -> Symbol<'a, F> {
    // SAFETY: the callers' types are those of `cuda.h`.
    unsafe { driver.get(name.as_bytes()).unwrap() }
}

fn driver_rules() {
    let memory = upload(DEVICE, &[1; 1024]);
    assert_eq!(download(&memory, 1).unwrap(), [1]);
    // SAFETY: the library is loaded already.
    let driver = &unsafe { Library::new("libcuda.so.1").unwrap() };
    let retain =
        function::<unsafe extern "C" fn(*mut Handle, c_int) -> c_int>(driver, "cuDevicePrimaryCtxRetain");
    let set = function::<unsafe extern "C" fn(Handle) -> c_int>(driver, "cuCtxSetCurrent");
    let create = function::<unsafe extern "C" fn(*mut Handle, u32) -> c_int>(driver, "cuStreamCreate");
    let begin = function::<unsafe extern "C" fn(Handle, c_int) -> c_int>(driver, "cuStreamBeginCapture_v2");
    let end = function::<unsafe extern "C" fn(Handle, *mut Handle) -> c_int>(driver, "cuStreamEndCapture");
    let finish = function::<unsafe extern "C" fn(Handle) -> c_int>(driver, "cuStreamSynchronize");
    let allocate = function::<unsafe extern "C" fn(*mut u64, usize) -> c_int>(driver, "cuMemAlloc_v2");
    let event = function::<unsafe extern "C" fn(*mut Handle, u32) -> c_int>(driver, "cuEventCreate");
    let note = function::<unsafe extern "C" fn(Handle, Handle) -> c_int>(driver, "cuEventRecord");
    let wait = function::<unsafe extern "C" fn(Handle, Handle, u32) -> c_int>(driver, "cuStreamWaitEvent");
    let ask = function::<unsafe extern "C" fn(Handle) -> c_int>(driver, "cuEventQuery");
    let exchange =
        function::<unsafe extern "C" fn(*mut c_int) -> c_int>(driver, "cuThreadExchangeStreamCaptureMode");
    let fill = function::<unsafe extern "C" fn(u64, u8, usize, Handle) -> c_int>(driver, "cuMemsetD8Async");
    let (mut context, mut stream, mut other) = (null_mut(), null_mut(), null_mut());
    let (mut graph, mut point, mut address, mut mode) = (null_mut(), null_mut(), 0u64, 2);
    let target = memory.start().addr() as u64;
    // SAFETY: handles are those that the driver gave, results are local variables, and the memory is kept.
    unsafe {
        assert_eq!([retain(&mut context, 0), set(context)], [0, 0]);
        assert_eq!([create(&mut stream, 0), create(&mut other, 1), event(&mut point, 2)], [0, 0, 0]);
        // Each forbidden call has its code, and ends the use of the capture.
        let mut forbidden = |call: &mut dyn FnMut() -> c_int, code: c_int| {
            assert_eq!(begin(stream, 1), 0);
            assert_eq!(call(), code);
            assert_eq!((end(stream, &mut graph), graph.is_null()), (901, true), "{code}");
        };
        forbidden(&mut || finish(stream), 900);
        forbidden(&mut || allocate(&mut address, 512), 900);
        forbidden(&mut || fill(target, 1, 8, null_mut()), 906);
        assert_eq!(note(point, other), 0);
        forbidden(&mut || ask(point), 900);
        forbidden(&mut || wait(stream, point, 0), 905);
        // An event of the captured stream is no event of others.
        forbidden(&mut || note(point, stream) + wait(other, point, 0), 905);
        assert_eq!(note(point, other), 0);
        // A thread that is relaxed may allocate; a second capture, and an end in another thread, are refused.
        assert_eq!(begin(stream, 1), 0);
        assert_eq!([exchange(&mut mode), allocate(&mut address, 512), exchange(&mut mode)], [0, 0, 0]);
        assert_ne!(begin(stream, 1), 0);
        let (end, raw, context) = (*end, stream.expose_provenance(), context.expose_provenance());
        let set = *set;
        let elsewhere = move || {
            let mut graph = null_mut();
            set(std::ptr::with_exposed_provenance_mut(context));
            end(std::ptr::with_exposed_provenance_mut(raw), &mut graph)
        };
        assert_eq!(thread::spawn(elsewhere).join().unwrap(), 908);
        assert_eq!((end(stream, &mut graph), graph.is_null()), (0, false));
    }
}
