//! Kernels given as source: compilation, the cache, launches, reports.

use std::fs;
use std::path::Path;

use opsmith_runtime::arith::zero_division;
use opsmith_runtime::backend::{DeviceMemory, DeviceSource, FunctionId, Grid, KernelParameter, Work};
use opsmith_runtime::{Error, ErrorKind, Result};

use crate::common::{DEVICE, Part, STAND_INS, done, download, empty, runtime, says, start, upload};

/// The parts of this file.
pub const PARTS: &[Part] = &[
    ("launched", launched),
    ("limits", limits),
    ("mistakes", mistakes),
    ("reported", reported),
    ("reported_at_once", reported_at_once),
    ("compiled", compiled),
    ("not_compiled", is_not_compiled),
    ("no_compiler", no_compiler),
    ("wrong_compiler", wrong_compiler),
    ("new_compiler", new_compiler),
];

static SCALE: DeviceSource = DeviceSource {
    name: "scale.cuh",
    headers: &["#define FACTOR_TYPE float", "typedef unsigned long long u64;\n"],
    text: r#"
#define SCALE(factor)                                                                     \
  extern "C" __global__ void opsmith_kernel(float *numbers, u64 count, FACTOR_TYPE add) { \
    u64 at = blockIdx.x * u64(blockDim.x) + threadIdx.x;                                  \
    if (at < count) numbers[at] = numbers[at] * factor + add;                             \
  }"#,
};

static SHARED: DeviceSource = DeviceSource {
    name: "shared.cuh",
    headers: &[],
    text: r#"
extern "C" __global__ void opsmith_kernel(unsigned *result) {
  DYNAMIC_SHARED(unsigned, words);
  words[(THREADS - 1 - threadIdx.x) * 64] = threadIdx.x;
  __syncthreads();
  result[threadIdx.x] = words[threadIdx.x * 64];
}"#,
};

static REPORTS: DeviceSource = DeviceSource {
    name: "reports.cuh",
    headers: &["extern \"C\" __device__ unsigned *opsmith_status;\n__device__ unsigned *opsmith_status;"],
    text: "#define REPORT(code) extern \"C\" __global__ void opsmith_kernel() { atomicOr(opsmith_status, code); }",
};

static MISTAKE: DeviceSource = DeviceSource {
    name: "mistake.cuh",
    headers: &[],
    text: "extern \"C\" __global__ void opsmith_kernel(float *x) {\n  x[0] = undeclared_name;\n}",
};

static OTHER_NAME: DeviceSource =
    DeviceSource { name: "other.cuh", headers: &[], text: "extern \"C\" __global__ void other() {}" };

#[test]
fn kernels_run_in_order() {
    done("launched", &[]);
}

#[test]
fn limits_are_checked_before_the_driver() {
    done("limits", &[]);
}

#[test]
fn mistakes_of_a_text_are_shown() {
    done("mistakes", &[]);
}

#[test]
fn reports_are_errors_of_a_wait() {
    done("reported", &[]);
    done("reported_at_once", &[("OPSMITH_CUDA_SYNC", "1")]);
}

#[test]
fn images_are_kept_on_disk() {
    let folder = empty("images");
    let cache = ("OPSMITH_CACHE_DIR", folder.to_str().unwrap());
    let no_compiler = ("CXX", "/nonexistent/c++");
    done("not_compiled", &[cache, no_compiler]);
    done("compiled", &[cache]);
    let images: Vec<_> =
        fs::read_dir(folder.join("cuda")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(images.len(), 1, "{images:?}");
    done("compiled", &[cache, no_compiler]);
    // Another version of the compiler has other images.
    done("not_compiled", &[cache, no_compiler, ("STANDIN_NVRTC_VERSION", "13010")]);
    let whole = fs::read(&images[0]).unwrap();
    for damaged in [&whole[..whole.len() / 2], &[], &[0; 5000]] {
        fs::write(&images[0], damaged).unwrap();
        done("not_compiled", &[cache, no_compiler]);
        fs::write(&images[0], damaged).unwrap();
        done("compiled", &[cache]);
        // The image was made again.
        done("compiled", &[cache, no_compiler]);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    done("compiled", &[("OPSMITH_CACHE_DIR", "/proc/nonexistent")]);
}

#[test]
fn the_compiler_is_found_where_people_have_it() {
    let folder = empty("no-compiler");
    opsmith_stand_in::driver(&folder);
    for name in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"] {
        fs::write(folder.join(name), "no library").unwrap();
    }
    let cache = empty("no-compiler-cache");
    let variables = [("OPSMITH_CACHE_DIR", cache.to_str().unwrap()), ("PATH", "/nonexistent")];
    finished("no_compiler", &folder, &variables);

    let environment = empty("environment");
    opsmith_stand_in::nvrtc(&environment.join("lib/python3.99/site-packages/nvidia/cu13/lib"));
    opsmith_stand_in::nvrtc(&environment.join("lib64"));
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "/usr/bin/c++".to_owned());
    let root = environment.to_str().unwrap();
    let path = std::env::var("PATH").unwrap();
    let compilers = [("CXX", compiler.as_str()), ("PATH", path.as_str()), variables[0]];
    for (variable, value) in [
        ("VIRTUAL_ENV", root.to_owned()),
        ("CUDA_HOME", root.to_owned()),
        ("OPSMITH_NVRTC", format!("{root}/lib64/libnvrtc.so.13")),
    ] {
        _ = fs::remove_dir_all(cache.join("cuda"));
        finished("compiled", &folder, &[&compilers[..], &[(variable, value.as_str())]].concat());
    }
    let newer = [("STANDIN_NVRTC_VERSION", "14000"), variables[0]];
    finished("new_compiler", &STAND_INS, &newer);
    finished("wrong_compiler", &STAND_INS, &[("OPSMITH_NVRTC", "/nonexistent/libnvrtc.so.13")]);
}

/// Does a part with the libraries of a folder.
#[track_caller]
fn finished(part: &str, folder: &Path, variables: &[(&str, &str)]) {
    let output = start(part, folder, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains(&format!("DONE {part}")),
        "{variables:?}: {text}\n{errors}"
    );
}

fn grid(blocks: u32, threads: u32) -> Grid {
    Grid { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0 }
}

/// Launches a kernel whose first parameter is the address of memory.
fn launch(
    function: FunctionId,
    grid: Grid,
    memory: &DeviceMemory,
    rest: &[KernelParameter<'_>],
) -> Result<()> {
    let work = Work::on(DEVICE)?;
    work.follow(memory.last_use())?;
    let start = memory.start();
    let parameters = [&[KernelParameter::of(&start)], rest].concat();
    // SAFETY: tests give parameters of the kernel's types, or too many or few of them, which is an error.
    unsafe { work.runtime().launch(work.queue(), function, grid, &parameters)? };
    memory.note_use(&work)
}

fn scale(instance: &str) -> FunctionId {
    runtime().function(0, &SCALE, instance).unwrap()
}

fn floats(memory: &DeviceMemory, count: usize) -> Vec<f32> {
    let bytes = download(memory, count * 4).unwrap();
    bytes.chunks_exact(4).map(|bytes| f32::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

fn launched() {
    let numbers: Vec<u8> = (0..1000u16).flat_map(|number| f32::from(number).to_ne_bytes()).collect();
    let memory = upload(DEVICE, &numbers);
    let (count, add) = (1000u64, 0.5f32);
    let rest = [KernelParameter::of(&count), KernelParameter::of(&add)];
    for factor in ["2", "3"] {
        launch(scale(&format!("SCALE({factor})")), grid(4, 256), &memory, &rest).unwrap();
    }
    assert_eq!(scale("SCALE(2)"), scale("SCALE(2)"), "a function is compiled once");
    assert_ne!(scale("SCALE(2)"), scale("SCALE(3)"));
    let found = floats(&memory, 1000);
    assert!(found.iter().enumerate().all(|(position, number)| *number == 6.0 * position as f32 + 2.0));
    // No blocks, no work.
    launch(scale("SCALE(2)"), grid(0, 256), &memory, &rest).unwrap();
    assert_eq!(floats(&memory, 1), [2.0]);
    let same: Vec<FunctionId> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(|| scale("SCALE(5)"))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(same.iter().all(|function| *function == same[0]));
}

fn limits() {
    let memory = upload(DEVICE, &[0; 4096]);
    let (count, add) = (10u64, 0.5f32);
    let rest = [KernelParameter::of(&count), KernelParameter::of(&add)];
    let function = scale("SCALE(2)");
    let name = "scale.cuh (SCALE(2))";
    says(launch(function, grid(1, 1025), &memory, &rest), &[name, "1 to 1024 are possible"]);
    says(launch(function, grid(1, 0), &memory, &rest), &[name, "[0, 1, 1] threads"]);
    let tall = Grid { blocks: [1, 70_000, 1], threads: [32, 1, 1], shared: 0 };
    says(launch(function, tall, &memory, &rest), &[name, "[1, 70000, 1] blocks"]);
    says(launch(function, grid(1, 32), &memory, &rest[..1]), &[name, "2 parameters are given, and it has 3"]);
    let wide = [rest[0], KernelParameter::of(&1.0f64)];
    says(
        launch(function, grid(1, 32), &memory, &wide),
        &[name, "parameter 2 has 8 bytes, and its own has 4"],
    );
    let short = [rest[0], KernelParameter::within(&1u16)];
    says(
        launch(function, grid(1, 32), &memory, &short),
        &[name, "parameter 2 has 2 bytes, and its own has 4"],
    );
    let large = Grid { shared: 300 << 10, ..grid(1, 32) };
    says(launch(function, large, &memory, &rest), &[name, "307200 bytes of shared memory"]);
    // More than every kernel has, less than the device: it is requested of the driver.
    let function = runtime().function(0, &SHARED, "").map(|_| ());
    says(function, &["shared.cuh"]);
    static WITH_MACRO: DeviceSource =
        DeviceSource { name: "shared.cuh", headers: &["#define THREADS 400"], text: SHARED.text };
    let function = runtime().function(0, &WITH_MACRO, "").unwrap();
    launch(function, Grid { shared: 400 * 64 * 4, ..grid(1, 400) }, &memory, &[]).unwrap();
    let found = download(&memory, 4).unwrap();
    assert_eq!(u32::from_ne_bytes(found.try_into().unwrap()), 399);
}

fn mistakes() {
    let error = says(
        runtime().function(0, &MISTAKE, "// an instance"),
        &["the source of mistake.cuh does not compile", "undeclared_name", "mistake.cuh:2", "NVRTC 13.0"],
    );
    assert_eq!(error.kind(), ErrorKind::Kernel);
    says(runtime().function(0, &OTHER_NAME, ""), &["find `opsmith_kernel` in other.cuh"]);
    // The device works on.
    assert_eq!(download(&upload(DEVICE, &[1]), 1).unwrap(), [1]);
}

fn report(code: u32) -> Result<()> {
    let function = runtime().function(0, &REPORTS, &format!("REPORT({code}u)"))?;
    let work = Work::on(DEVICE)?;
    // SAFETY: the kernel has no parameters.
    unsafe { work.runtime().launch(work.queue(), function, grid(3, 32), &[])? };
    work.wait()
}

fn reported() {
    let error = report(1).unwrap_err();
    assert_eq!(error.to_string(), zero_division().to_string());
    Work::on(DEVICE).unwrap().wait().unwrap();
    assert_eq!(
        says(report(2), &["an index of a kernel on the device is out of range"]).kind(),
        ErrorKind::Index
    );
    says(report(64), &["unknown code 0x40"]);
    report(0).unwrap();
}

fn reported_at_once() {
    let function = runtime().function(0, &REPORTS, "REPORT(1u)").unwrap();
    let work = Work::on(DEVICE).unwrap();
    // SAFETY: the kernel has no parameters.
    let launched = unsafe { work.runtime().launch(work.queue(), function, grid(1, 1), &[]) };
    says(launched, &["integer division by zero", "in the kernel reports.cuh (REPORT(1u))"]);
    work.wait().unwrap();
}

/// Runs a kernel.
pub fn compiled() {
    let memory = upload(DEVICE, &4.0f32.to_ne_bytes());
    let (count, add) = (1u64, 0.0f32);
    launch(scale("SCALE(2)"), grid(1, 1), &memory, &[KernelParameter::of(&count), KernelParameter::of(&add)])
        .unwrap();
    assert_eq!(floats(&memory, 1), [8.0]);
}

/// The error for the kernel.
pub fn not_compiled() -> Error {
    says(runtime().function(0, &SCALE, "SCALE(2)"), &[])
}

fn is_not_compiled() {
    says(Err::<(), _>(not_compiled()), &["scale.cuh"]);
}

fn no_compiler() {
    says(
        runtime().function(0, &SCALE, "SCALE(2)"),
        &[
            "no compiler for kernels of the device was found",
            "searched: libnvrtc.so.13 by the loader",
            "pip install nvidia-cuda-nvrtc",
            "OPSMITH_NVRTC",
            "images: OPSMITH_CUDA_IMAGES names no archive of images",
            "wanted: scale.cuh (SCALE(2)) for sm_90",
        ],
    );
    // Bytes move without it.
    assert_eq!(download(&upload(DEVICE, &[1, 2, 3]), 3).unwrap(), [1, 2, 3]);
}

fn wrong_compiler() {
    says(
        runtime().function(0, &SCALE, "SCALE(2)"),
        &["OPSMITH_NVRTC names /nonexistent/libnvrtc.so.13, which cannot be used"],
    );
}

fn new_compiler() {
    says(
        runtime().function(0, &SCALE, "SCALE(2)"),
        &["libnvrtc.so", "it is of CUDA 14.0, newer than the driver, which is of CUDA 13"],
    );
}
