//! Missing and failing drivers and devices: each is an error with a remedy.

use opsmith_cuda::{device_count, properties, synchronize};
use opsmith_runtime::backend::{DeviceMemory, DeviceSource, Grid, Work};
use opsmith_runtime::{Device, ErrorKind, Tensor};

use crate::common::{DEVICE, Part, STAND_INS, done, download, empty, says, start, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("no_driver", no_driver),
    ("old_driver", old_driver),
    ("incomplete_driver", incomplete_driver),
    ("no_device", no_device),
    ("hidden", hidden),
    ("stub", stub),
    ("mismatch", mismatch),
    ("facts", facts),
    ("copied", copied),
    ("lost", lost),
    ("lost_at_once", lost_at_once),
    ("failed_copy", failed_copy),
    ("failing_compiler", failing_compiler),
];

#[test]
fn without_a_driver() {
    let folder = empty("no-driver");
    opsmith_stand_in::no_driver(&folder);
    finished("no_driver", &folder, &[]);
}

#[test]
fn with_an_old_driver() {
    finished("old_driver", &STAND_INS, &[("STANDIN_VERSION", "11080")]);
    let folder = empty("incomplete-driver");
    let flags = ["-pthread", "-Wl,-soname,libcuda.so.1", "-DcuMemcpyPeerAsync=hidden"];
    opsmith_stand_in::compile("driver.cc", &folder.join("libcuda.so.1"), &flags);
    finished("incomplete_driver", &folder, &[]);
}

#[test]
fn without_devices() {
    finished("no_device", &STAND_INS, &[("STANDIN_DEVICES", "0"), ("CUDA_VISIBLE_DEVICES", "7")]);
    finished("no_device", &STAND_INS, &[("STANDIN_INIT", "100"), ("CUDA_VISIBLE_DEVICES", "7")]);
    finished("stub", &STAND_INS, &[("STANDIN_INIT", "34")]);
    finished("mismatch", &STAND_INS, &[("STANDIN_INIT", "803")]);
}

/// A device that a program used before is no longer in `CUDA_VISIBLE_DEVICES`.
#[test]
fn with_hidden_devices() {
    finished("hidden", &STAND_INS, &[("STANDIN_DEVICES", "3"), ("CUDA_VISIBLE_DEVICES", "2")]);
    finished("hidden", &STAND_INS, &[("STANDIN_DEVICES", "3"), ("CUDA_VISIBLE_DEVICES", "2,7,1")]);
    finished("no_device", &STAND_INS, &[("STANDIN_DEVICES", "3"), ("CUDA_VISIBLE_DEVICES", "7")]);
}

#[test]
fn devices_have_properties() {
    done("facts", &[("STANDIN_DEVICES", "2")]);
}

#[test]
fn a_copied_process_cannot_use_them() {
    done("copied", &[]);
}

#[test]
fn a_lost_context_is_named_by_every_later_call() {
    finished("lost", &STAND_INS, &[]);
    finished("lost_at_once", &STAND_INS, &[("OPSMITH_CUDA_SYNC", "1")]);
}

#[test]
fn a_refused_copy_is_an_error_of_its_call() {
    finished("failed_copy", &STAND_INS, &[("STANDIN_FAIL_COPY", "2")]);
}

#[test]
fn a_compiler_that_fails() {
    let cache = empty("failing-compiler-cache");
    let variables = [("STANDIN_NVRTC_FAIL", "7"), ("OPSMITH_CACHE_DIR", cache.to_str().unwrap())];
    finished("failing_compiler", &STAND_INS, &variables);
}

#[track_caller]
fn finished(part: &str, folder: &std::path::Path, variables: &[(&str, &str)]) {
    let output = start(part, folder, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(&format!("DONE {part}")), "{part}: {text}\n{errors}");
}

fn no_driver() {
    let texts =
        ["no CUDA driver was found", "libcuda.so.1 cannot be loaded", "LD_LIBRARY_PATH", "use the CPU"];
    let error = says(device_count(), &texts);
    assert_eq!(error.kind(), ErrorKind::Device);
    says(DeviceMemory::new(DEVICE, 1).map(|_| ()), &texts);
    says(Tensor::of(&[1.0f32]).to_device(DEVICE).map(|_| ()), &texts);
    says(properties(0), &texts);
}

fn old_driver() {
    says(
        device_count(),
        &["the CUDA driver is too old: it is of CUDA 11.8, and 12.0 is the oldest supported"],
    );
}

fn incomplete_driver() {
    says(device_count(), &["the CUDA driver has no function `cuMemcpyPeerAsync`", "too old"]);
}

fn no_device() {
    let texts = ["the CUDA driver finds no device (CUDA_VISIBLE_DEVICES is `7`)", "nvidia-smi"];
    says(device_count(), &texts);
    says(DeviceMemory::new(DEVICE, 1).map(|_| ()), &texts);
}

fn hidden() {
    assert_eq!(device_count().unwrap(), 1);
    let listed = std::env::var("CUDA_VISIBLE_DEVICES").unwrap();
    let texts = [
        &format!("there is no device cuda:1: the only one is cuda:0 (CUDA_VISIBLE_DEVICES is `{listed}`)"),
        "CUDA_VISIBLE_DEVICES selects the devices that a program sees",
    ];
    let error = says(properties(1), &texts);
    assert_eq!(error.kind(), ErrorKind::Device);
    says(DeviceMemory::new(Device::cuda(1), 1).map(|_| ()), &texts);
    says(Tensor::of(&[1.0f32]).to_device(Device::cuda(1)).map(|_| ()), &texts);
    assert_eq!(download(&upload(DEVICE, &[1, 2]), 2).unwrap(), [1, 2]);
}

fn stub() {
    says(device_count(), &["CUDA_ERROR_STUB_LIBRARY", "remove its folder `stubs`"]);
}

fn mismatch() {
    says(device_count(), &["start the CUDA driver", "restart the machine"]);
}

fn facts() {
    assert_eq!(device_count().unwrap(), 2);
    let facts = properties(1).unwrap();
    assert_eq!(facts.name, "Stand-in 1");
    assert_eq!((facts.compute_capability, facts.driver_version), ((9, 0), (13, 0)));
    assert_eq!((facts.multiprocessors, facts.warp_threads, facts.max_threads_per_block), (132, 32, 1024));
    assert!(facts.total_bytes >= 1 << 30 && facts.max_shared_bytes_per_block > facts.shared_bytes_per_block);
    assert_ne!(facts.uuid, properties(0).unwrap().uuid);
    says(properties(2), &["there is no device cuda:2: there are 2, from cuda:0"]);
    says(Tensor::of(&[1.0f32]).to_device(Device::cuda(9)).map(|_| ()), &["there is no device cuda:9"]);
}

fn copied() {
    let memory = upload(DEVICE, &[1, 2, 3]);
    // SAFETY: the copy calls functions that take no lock that another thread may hold, and ends at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = DeviceMemory::new(DEVICE, 1).map(|_| ()).unwrap_err().to_string();
        let downloaded = download(&memory, 3).map(|_| ()).unwrap_err().to_string();
        let counted = device_count().unwrap_err().to_string();
        drop(memory);
        let good = [refused, downloaded, counted].iter().all(|text| text.contains("copy (fork)"));
        // SAFETY: the copy ends without the work of the original's exit.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 1;
    // SAFETY: the child is this process's; the result is a local variable.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the copy gets errors");
    assert_eq!(download(&memory, 3).unwrap(), [1, 2, 3]);
}

static WILD: DeviceSource = DeviceSource {
    name: "wild.cuh",
    headers: &[],
    text: "extern \"C\" __global__ void opsmith_kernel() { *reinterpret_cast<volatile int *>(64) = 1; }",
};

fn run_wild() -> opsmith_runtime::Result<()> {
    let work = Work::on(DEVICE)?;
    let function = work.runtime().function(0, &WILD, "")?;
    let grid = Grid { blocks: [1; 3], threads: [1; 3], shared: 0 };
    // SAFETY: the kernel has no parameters; its bad access is the test.
    unsafe { work.runtime().launch(work.queue(), function, grid, &[]) }
}

fn lost() {
    let memory = upload(DEVICE, &[1]);
    run_wild().unwrap();
    says(
        download(&memory, 1),
        &["CUDA_ERROR_ILLEGAL_ADDRESS", "the context of the device is lost", "OPSMITH_CUDA_SYNC=1"],
    );
    let texts = ["device 0 cannot be used any more", "CUDA_ERROR_ILLEGAL_ADDRESS", "start the program again"];
    says(DeviceMemory::new(DEVICE, 9 << 20).map(|_| ()), &texts);
    says(download(&memory, 1), &texts);
    says(synchronize(0), &texts);
    says(opsmith_cuda::trim(0), &texts);
    drop(memory);
}

fn lost_at_once() {
    says(
        run_wild(),
        &["CUDA_ERROR_ILLEGAL_ADDRESS", "in the kernel wild.cuh", "the context of the device is lost"],
    );
}

fn failed_copy() {
    let first = upload(DEVICE, &[1]);
    let host = Tensor::of(&[1.0f32, 2.0]);
    says(host.to_device(DEVICE).map(|_| ()), &["copy 8 bytes to the device", "CUDA_ERROR_OPERATING_SYSTEM"]);
    assert_eq!(download(&first, 1).unwrap(), [1]);
    assert_eq!(host.to_device(DEVICE).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

fn failing_compiler() {
    let error =
        says(run_wild(), &["failed on wild.cuh", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", "LD_LIBRARY_PATH"]);
    assert_eq!(error.kind(), ErrorKind::Kernel);
}
