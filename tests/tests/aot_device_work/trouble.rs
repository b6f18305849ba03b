//! Faulty kernels for a device: each is caught by the intended check.

use std::time::{Duration, Instant};

use opsmith::{Result, Tensor};
use opsmith_aot::Declaration;

use super::{floats, on_device, simple};

const GOOD: [f32; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

fn run(declaration: Declaration) -> Result<Vec<f32>> {
    let x = Tensor::of(&GOOD);
    let result = declaration.declare()?.call(&[&x]).map(|out| floats(&out));
    assert_eq!(floats(&x), GOOD, "the input is as it was");
    result
}

#[track_caller]
fn fails(declaration: Declaration, expected: &[&str]) {
    let error = run(declaration).unwrap_err().to_string();
    for text in expected {
        assert!(error.contains(text), "`{text}` is not in:\n{error}");
    }
    assert!(error.starts_with("device_"), "the operator is not named:\n{error}");
}

/// Codes and exceptions; device work submitted by the kernel before the failure ends before the call does.
pub fn failures() -> Result<()> {
    fails(simple("Seven"), &["the kernel `Seven` (", ".so) returned 7"]);
    fails(simple("Throws"), &["the kernel `Throws` (", "threw: the weather is bad"]);
    fails(simple("InitFails"), &["the kernel `InitFailsInit` (", "returned -3"]);
    // The padding takes the writes that other frameworks' memory blocks would.
    assert_eq!(run(simple("PastWorkspace"))?, GOOD);
    fails(
        simple("FarPastWorkspace"),
        &["`FarPastWorkspace`", "more than 512 bytes past the end of workspace 0, which has 20 bytes"],
    );
    fails(simple("Nope"), &["there is no function `Nope`"]);
    assert_eq!(run(simple("IgnoresStream"))?, GOOD);
    Ok(())
}

/// `OPSMITH_CHECK`, by itself and in the sandbox.
pub fn checks() -> Result<()> {
    for sandbox in [true, false] {
        let checked = |function| simple(function).check(true).sandbox(sandbox);
        fails(
            checked("PastWorkspace"),
            &[
                "past the end of workspace 0: it has 20 bytes, and byte 20 was written (4 bytes",
                "SetWorkSpace",
            ],
        );
        fails(
            checked("Forget"),
            &["left 1 of 5 elements of its output `y` unwritten, the first at byte 16 (element 4)"],
        );
        fails(checked("ChangeInput"), &["changed its input `x` at byte"]);
        fails(
            checked("PastOutput"),
            &["past the end of output `y`: it has 20 bytes, and byte 20 was written"],
        );
        fails(checked("BeforeOutput"), &["before the start of output `y`, 4 bytes before it"]);
        fails(checked("Seven"), &["returned 7"]);
        assert_eq!(run(checked("IgnoresStream"))?, GOOD);
    }
    Ok(())
}

/// The context is lost, and every later call reports that.
pub fn illegal() -> Result<()> {
    assert_eq!(run(simple("IgnoresStream"))?, GOOD);
    fails(
        simple("Illegal"),
        &[
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "the process's context on the device is lost",
            "OPSMITH_AOT_SANDBOX=1",
        ],
    );
    fails(
        simple("IgnoresStream"),
        &[
            "the device cannot be used any more: an earlier kernel ended with CUDA_ERROR_ILLEGAL_ADDRESS",
            "start the program again",
        ],
    );
    Ok(())
}

/// Kernels in processes of their own; this one never uses the device.
pub fn sandbox() -> Result<()> {
    let apart = |function| simple(function).sandbox(true);
    fails(apart("Illegal"), &["CUDA_ERROR_ILLEGAL_ADDRESS", "context on the device is lost"]);
    assert_eq!(run(apart("IgnoresStream"))?, GOOD);
    assert_eq!(run(apart("Slow"))?, GOOD);
    fails(apart("Seven"), &["returned 7"]);
    fails(apart("FarPastWorkspace"), &["more than 512 bytes past the end of workspace 0"]);
    let start = Instant::now();
    fails(
        apart("Hang").timeout(Duration::from_secs(2)),
        &["the kernel `Hang` (", "did not return within 2 s, and was ended"],
    );
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(run(apart("IgnoresStream"))?, GOOD);
    Ok(())
}

/// A process that uses the device cannot be copied for the sandbox.
pub fn sandbox_after() -> Result<()> {
    assert_eq!(run(simple("IgnoresStream").sandbox(true))?, GOOD);
    assert_eq!(run(simple("IgnoresStream"))?, GOOD);
    fails(
        simple("IgnoresStream").sandbox(true),
        &["the sandbox copies this process, which uses the device already", "OPSMITH_AOT_SANDBOX=1"],
    );
    assert_eq!(run(simple("IgnoresStream"))?, GOOD);
    Ok(())
}

/// Prints the results of calls, for tests that make the driver fail.
pub fn reports() -> Result<()> {
    let add = on_device("Add", &["x", "y"], &["sum"]).declare()?;
    let x = Tensor::of(&GOOD);
    for _ in 0..3 {
        match add.call(&[&x, &x]) {
            Ok(sum) => println!("RESULT {:?}", floats(&sum)),
            Err(error) => println!("FAILED {error}\nEND"),
        }
    }
    Ok(())
}
