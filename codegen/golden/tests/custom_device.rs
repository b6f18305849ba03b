//! An operator whose spec names a kernel for a device: called with host tensors in every form, with its gradient and in
//! a graph; without a device, the call is an error that says so.
//!
//! The process under test uses a fake driver, `tests/cuda/driver.cc`.

#[path = "../../../tests/cuda/stand_in.rs"]
mod stand_in;

use std::path::Path;
use std::process::Command;

use opsmith_golden as golden;
use opsmith_graph::{Graph, InputSpec};
use opsmith_runtime::{Backend, DType, DTypeSet, Result, Tensor};

#[test]
fn worker() -> Result<()> {
    match std::env::var("CUSTOM_DEVICE_WORKER").as_deref() {
        Ok("work") => work(),
        Ok("no driver") => {
            let error = golden::custom_device(&Tensor::of(&[1.0f32]), 3.0).unwrap_err().to_string();
            println!("FAILED {error}");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn work() -> Result<()> {
    let x = Tensor::of(&[1.0f32, 2.0]);
    assert_eq!(golden::custom_device(&x, 3.0)?.to_vec::<f32>()?, [3.0, 6.0]);
    let mut out = Tensor::of(&[0.0f32, 0.0]);
    golden::custom_device_out(&x, 4.0, &mut out)?;
    assert_eq!(out.to_vec::<f32>()?, [4.0, 8.0]);
    golden::custom_device_(&out, 0.5)?;
    assert_eq!(out.to_vec::<f32>()?, [2.0, 4.0]);
    let tracked = Tensor::of(&[1.0f32, 2.0]).requires_grad_(true)?;
    golden::custom_device(&tracked, 3.0)?
        .backward_with(Some(&Tensor::of(&[1.0f32, 10.0])), Default::default())?;
    assert_eq!(tracked.grad().unwrap().to_vec::<f32>()?, [3.0, 30.0]);
    let function = |x: &[Tensor]| Ok([golden::custom_device(&golden::custom_device(&x[0], 3.0)?, 2.0)?]);
    let graph = Graph::trace(function, [InputSpec::new(DType::F32, ["n".into()])])?;
    assert_eq!(graph.run(&[&x])?[0].to_vec::<f32>()?, [6.0, 12.0]);
    // The kernel supports float32 only, whatever its dtypes' key.
    let error = golden::custom_device(&Tensor::of(&[1.0f64]), 3.0).unwrap_err().to_string();
    assert!(error.contains("there is no CPU kernel for float64"), "{error}");
    println!("DONE");
    Ok(())
}

fn run(what: &str, folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker", "--nocapture", "--test-threads=1"])
        .env("CUSTOM_DEVICE_WORKER", what)
        .env("LD_LIBRARY_PATH", folder)
        .env("OPSMITH_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("custom-device-cache"))
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn an_operator_of_a_spec_runs_on_a_device() {
    let text = run("work", &stand_in::driver("custom-device"));
    assert!(text.contains("DONE"), "{text}");
    assert!(text.contains("launches=6 refused=0"), "{text}");
}

#[test]
fn without_a_driver_the_call_says_so() {
    let text = run("no driver", &stand_in::no_driver("custom-device-none"));
    assert!(text.contains("FAILED custom_device: no CUDA driver was found"), "{text}");
}

/// The kernel is in the table for its device and, with copies, for the host; the row's name shows that.
#[test]
fn the_rows_of_device_and_host_lead_to_the_kernel() {
    let (op, _) = golden::LIBRARY.get("custom_device").unwrap();
    let kernels = &op.kernels;
    for backend in [Backend::Cpu, Backend::Cuda] {
        assert_eq!(kernels.dtypes(backend), DTypeSet::of(DType::F32));
    }
    let sources = [Backend::Cuda, Backend::Cpu].map(|backend| kernels.source(backend));
    let kernel = "aot:custom_device.cc:CustomDevice";
    assert_eq!(sources, [kernel, &format!("{kernel}, by copies to CUDA and back")]);
}
