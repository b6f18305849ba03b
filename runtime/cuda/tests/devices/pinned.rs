//! Pinned memory of the host: copies that read it late, writes of the host that wait for them, reuse, exhaustion.

use std::sync::{Arc, Barrier};
use std::thread;

use opsmith_cuda::{host_memory_statistics, trim_host_memory};
use opsmith_runtime::autograd::Options;
use opsmith_runtime::backend::{Recording, Work};
use opsmith_runtime::copy::copy;
use opsmith_runtime::{Device, ErrorKind, Layout, Tensor};

use crate::common::{DEVICE, Part, done, says, start};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("pinned_writes", writes),
    ("pinned_release", release),
    ("pinned_threads", threads),
    ("pinned_exposed", exposed),
    ("pinned_views", views),
    ("pinned_gradient", gradient),
    ("pinned_recorded", recorded),
    ("pinned_exhausted", exhausted),
    ("pinned_without", without),
];

#[test]
fn a_write_waits_for_the_copy_that_reads_the_memory() {
    done("pinned_writes", &[]);
}

#[test]
fn memory_is_reused_when_its_copy_is_done() {
    let text = done("pinned_release", &[]);
    // Two copies to the device, of the whole memory each, without buffers between.
    assert!(text.contains(" sent=2 "), "{text}");
}

#[test]
fn threads_copy_from_one_tensor_at_once() {
    done("pinned_threads", &[]);
}

#[test]
fn copies_from_memory_with_writers_outside_are_waited_for() {
    done("pinned_exposed", &[]);
}

#[test]
fn views_and_conversions_of_pinned_tensors_move() {
    done("pinned_views", &[("STANDIN_DEVICES", "2")]);
}

#[test]
fn gradients_reach_the_tensor_that_was_pinned() {
    done("pinned_gradient", &[]);
}

#[test]
fn a_record_refuses_to_pin_and_to_wait() {
    done("pinned_recorded", &[]);
}

#[test]
fn exhausted_memory_says_its_state() {
    done("pinned_exhausted", &[("STANDIN_PINNED", "16777216")]);
}

#[test]
fn a_missing_driver_is_named() {
    let empty = crate::common::empty("no-driver-for-pinned");
    let output = start("pinned_without", &empty, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("DONE pinned_without"), "{text}");
}

const COUNT: i64 = 100_000;

fn line(value: f32) -> Tensor {
    Tensor::from_slice(&vec![value; COUNT as usize], &[COUNT]).unwrap()
}

#[track_caller]
fn expect(tensor: &Tensor, value: f32) {
    assert!(tensor.to_vec::<f32>().unwrap().iter().all(|found| *found == value), "not all are {value}");
}

fn writes() {
    let host = line(1.0).pin_memory().unwrap();
    assert!(host.is_pinned() && host.device() == Device::CPU && !line(1.0).is_pinned());
    assert!(host.pin_memory().unwrap().same(&host), "it is pinned already");
    for round in 1..20 {
        // The stand-in reads the memory when the copy is waited for.
        let first = host.to_device(DEVICE).unwrap();
        let second = host.to_device(DEVICE).unwrap();
        expect(&host, round as f32);
        copy(&host, &line((round + 1) as f32)).unwrap();
        expect(&first, round as f32);
        expect(&second, round as f32);
    }
    // The result of a device comes back to it.
    let there = line(50.0).to_device(DEVICE).unwrap();
    copy(&host, &there).unwrap();
    expect(&host, 50.0);
}

fn release() {
    // More than the largest of the buffers through which other copies pass.
    const BYTES: usize = 6 << 20;
    let bytes =
        |value: u8| Tensor::from_slice(&vec![value; BYTES], &[BYTES as i64]).unwrap().pin_memory().unwrap();
    let address = |tensor: &Tensor| tensor.data_ptr().addr();
    let expect = |tensor: &Tensor, value: u8| assert_eq!(tensor.to_vec::<u8>().unwrap(), vec![value; BYTES]);
    let host = bytes(3);
    let place = address(&host);
    let there = host.to_device(DEVICE).unwrap();
    drop(host);
    let other = bytes(4);
    assert_ne!(address(&other), place, "the copy is not done");
    expect(&there, 3);
    let again = bytes(5);
    assert_eq!(address(&again), place, "the copy is done");
    let also = again.to_device(DEVICE).unwrap();
    expect(&also, 5);
    let now = host_memory_statistics();
    assert_eq!((now.live_bytes, now.cached_bytes, now.driver_allocations), (2 * BYTES, 0, 2));
    drop((other, again));
    assert_eq!(trim_host_memory().unwrap(), 2 * BYTES);
    assert_eq!(host_memory_statistics().cached_bytes, 0);
}

fn threads() {
    let host = line(0.0).pin_memory().unwrap();
    let ready = Arc::new(Barrier::new(4));
    for round in 0..20 {
        copy(&host, &line(round as f32)).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    ready.wait();
                    expect(&host.to_device(DEVICE).unwrap(), round as f32);
                });
            }
        });
        let waiting: Vec<Tensor> = (0..3)
            .map(|_| thread::scope(|scope| scope.spawn(|| host.to_device(DEVICE).unwrap()).join().unwrap()))
            .collect();
        copy(&host, &line(-1.0)).unwrap();
        waiting.iter().for_each(|there| expect(there, round as f32));
    }
}

fn exposed() {
    let host = line(1.0).pin_memory().unwrap();
    let before = host.to_device(DEVICE).unwrap();
    host.storage().expose().unwrap();
    let write = |value: f32| {
        // SAFETY: no other code has the memory, whose copies are waited for.
        unsafe { std::slice::from_raw_parts_mut(host.data_ptr().cast::<f32>(), COUNT as usize) }.fill(value);
    };
    write(2.0);
    let after = host.to_device(DEVICE).unwrap();
    write(3.0);
    expect(&before, 1.0);
    expect(&after, 2.0);
}

/// Elements of a tensor's memory.
fn view(tensor: &Tensor, sizes: [i64; 2], strides: [i64; 2], offset: i64) -> Tensor {
    let layout =
        Layout { offset, sizes: sizes.into_iter().collect(), strides: strides.into_iter().collect() };
    // SAFETY: the layout is inside of the memory, in each use below.
    unsafe { Tensor::from_parts(tensor.storage().clone(), layout, tensor.dtype(), tensor.device()) }
}

fn views() {
    let numbers: Vec<f32> = (0..60_000).map(|number| number as f32).collect();
    let host = Tensor::from_slice(&numbers, &[200, 300]).unwrap();
    let turned = view(&host, [300, 200], [1, 300], 0);
    let pinned = turned.pin_memory().unwrap();
    assert!(pinned.is_contiguous() && pinned.shape() == [300, 200]);
    let rows = view(&pinned, [50, 200], [200, 1], 100 * 200);
    assert!(rows.is_pinned());
    let expected = [view(&host, [50, 200], [1, 300], 100), host];
    for device in [DEVICE, Device::cuda(1)] {
        for (view, expected) in [&rows, &view(&pinned, [200, 300], [1, 200], 0)].into_iter().zip(&expected) {
            let there = view.to_device(device).unwrap();
            assert_eq!(there.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
        }
    }
    // One element, and none.
    let one = Tensor::of(&[7i64]).pin_memory().unwrap();
    assert_eq!(one.to_device(DEVICE).unwrap().to_vec::<i64>().unwrap(), [7]);
    let none = Tensor::of::<i64>(&[]).pin_memory().unwrap();
    assert!(none.is_pinned() && none.to_device(DEVICE).unwrap().numel() == 0);
    // Truth values come back as such.
    let truth = Tensor::of(&[true, false, true]).pin_memory().unwrap();
    copy(&truth, &Tensor::of(&[false, false, true]).to_device(DEVICE).unwrap()).unwrap();
    assert_eq!(truth.to_vec::<bool>().unwrap(), [false, false, true]);
    let there = one.to_device(DEVICE).unwrap();
    says(there.pin_memory(), &["cuda:0, which the host cannot read"]);
}

fn gradient() {
    let host = Tensor::of(&[1.0f32, 2.0]).requires_grad_(true).unwrap();
    let there = host.pin_memory().unwrap().to_device(DEVICE).unwrap();
    let given = Tensor::of(&[3.0f32, 4.0]).to_device(DEVICE).unwrap();
    there.backward_with(Some(&given), Options::default()).unwrap();
    let gradient = host.grad().unwrap();
    assert_eq!(gradient.to_vec::<f32>().unwrap(), [3.0, 4.0]);
}

fn recorded() {
    let host = line(1.0).pin_memory().unwrap();
    let there = host.to_device(DEVICE).unwrap();
    let work = Work::on(DEVICE).unwrap();
    let recording = Recording::begin(&work).unwrap();
    says(line(2.0).pin_memory(), &["work that is recorded cannot contain an allocation of pinned memory"]);
    says(host.to_device(DEVICE), &["a copy from or to another device"]);
    let refused =
        says(copy(&host, &line(2.0)), &["a wait for a copy of pinned memory that the host is to write"]);
    assert_eq!(refused.kind(), ErrorKind::Device);
    drop(recording);
    copy(&host, &line(2.0)).unwrap();
    expect(&there, 1.0);
}

fn exhausted() {
    const MIB: i64 = 1 << 20;
    let bytes = |count: i64| Tensor::from_slice(&vec![1u8; count as usize], &[count]).unwrap();
    let kept = bytes(8 * MIB).pin_memory().unwrap();
    let error = says(
        bytes(12 * MIB).pin_memory(),
        &[
            "the host has no 12582912 bytes more to pin: 8388608 bytes are live, 0 cached",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "help: ",
        ],
    );
    assert_eq!(error.kind(), ErrorKind::Memory);
    drop(kept);
    // Cached memory is returned before the last attempt.
    assert!(bytes(12 * MIB).pin_memory().unwrap().is_pinned());
    assert_eq!(host_memory_statistics().cached_bytes, 12 * MIB as usize);
}

fn without() {
    says(line(1.0).pin_memory(), &["no CUDA driver was found"]);
}
