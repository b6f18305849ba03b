//! Faulty kernels: each is caught by the intended check, with a complete message.

mod aot_support;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use aot_support::prebuilt;
use opsmith::runtime::internals::check_written;
use opsmith::{DType, Result, Tensor};
use opsmith_aot::Declaration;

/// The kernels, compiled once for all tests, as one would by hand.
fn library() -> &'static str {
    static LIBRARY: LazyLock<String> = LazyLock::new(|| prebuilt("bad.cc", "bad.so", &[]));
    &LIBRARY
}

fn bad(function: &str) -> Declaration {
    Declaration::new(format!("aot_bad_{function}"), format!("{}:{function}", library()))
        .input("x")
        .output("y")
        .dtypes([DType::F32; 2])
        .output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]))
        .check(false)
        .sandbox(false)
        .unlisted()
}

fn run(declaration: Declaration) -> Result<Vec<f32>> {
    let x = Tensor::of(&[1.0f32, 2.0, 3.0, 4.0, 5.0]);
    let result = declaration.declare()?.call(&[&x])?.to_vec::<f32>();
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0], "the input is as it was");
    result
}

#[track_caller]
fn fails(declaration: Declaration, expected: &[&str]) {
    let error = run(declaration).unwrap_err().to_string();
    for text in expected {
        assert!(error.contains(text), "`{text}` is not in:\n{error}");
    }
    assert!(error.starts_with("aot_bad_"), "the operator is not named:\n{error}");
    assert!(error.contains("bad.so"), "the file is not named:\n{error}");
}

const GOOD: [f32; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

#[test]
fn a_workspace_that_is_overrun() -> Result<()> {
    // The padding takes the writes that other frameworks' memory blocks would.
    assert_eq!(run(bad("Overrun"))?, GOOD);
    fails(
        bad("FarOverrun"),
        &["`FarOverrun`", "more than 512 bytes past the end of workspace 0, which has 20 bytes"],
    );
    fails(
        bad("Overrun").check(true),
        &[
            "`Overrun`",
            "past the end of workspace 0: it has 20 bytes, and byte 20 was written (4 bytes",
            "SetWorkSpace",
        ],
    );
    Ok(())
}

#[test]
fn an_output_that_is_forgotten() {
    fails(
        bad("Forget").check(true),
        &[
            "left 1 of 5 elements of its output `y` unwritten, the first at byte 16 (element 4)",
            "OPSMITH_CHECK",
        ],
    );
    let unwritten = [
        "Forget` did not write every element of the output `y`: the first is at [4] of the shape (5)",
        "a kernel writes every element of its outputs",
    ];
    let forget = bad("Forget").declare().unwrap();
    let x = Tensor::of(&GOOD);
    let error = check_written(forget.definition(), &[(&x).into()]).unwrap_err().to_string();
    assert!(unwritten.iter().all(|text| error.contains(text)), "{error}");
    if cfg!(debug_assertions) {
        fails(bad("Forget"), &unwritten);
    }
}

#[test]
fn a_kernel_that_throws() {
    fails(bad("Throw"), &["the kernel `Throw`", "threw: the weather is bad"]);
    fails(bad("ThrowNumber"), &["threw an object of the type: int"]);
}

#[test]
fn a_kernel_that_returns_seven() {
    fails(
        bad("ReturnSeven"),
        &["the kernel `ReturnSeven`", "returned 7", "what 7 means, the kernel's source says"],
    );
}

/// The object that kernels read attributes from is the host's, which destroys it once, with the kernel.
#[test]
fn a_kernel_that_deletes_its_extra() -> Result<()> {
    let deleted = ["deleted the AotExtra that it was given", "remove the delete", "DestructKernelData"];
    for function in ["Deletes", "InitDeletes"] {
        fails(bad(function), &deleted);
        fails(bad(function).check(true), &deleted);
        fails(bad(function).sandbox(true), &deleted);
    }
    let infers = Declaration::new("aot_bad_infer", format!("{}:InferDeletes", library())).unlisted();
    let infers = infers.input("x").output("y").dtypes([DType::F32; 2]);
    fails(infers, &["`InferDeletesInferShape`", deleted[0]]);
    assert_eq!(run(bad("Good"))?, GOOD);
    Ok(())
}

/// An object that a kernel leaves may be deleted by the kernel, and is destroyed once.
#[test]
fn a_kernel_that_deletes_its_data() -> Result<()> {
    for (function, expected) in [("DeletesData", "d"), ("ReplacesData", "dd")] {
        let diary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(function);
        let _ = fs::remove_file(&diary);
        let kernel = bad(function).attribute("diary", diary.display().to_string()).declare()?;
        let x = Tensor::of(&GOOD);
        for _ in 0..3 {
            assert_eq!(kernel.call(&[&x])?.to_vec::<f32>()?, GOOD, "{function}");
        }
        kernel.unload();
        assert_eq!(fs::read_to_string(&diary).unwrap(), expected, "{function}");
    }
    Ok(())
}

#[test]
fn a_kernel_that_crashes() -> Result<()> {
    fails(bad("Crash").sandbox(true), &["the kernel `Crash`", "crashed with signal 11 (SIGSEGV"]);
    fails(bad("Leave").sandbox(true), &["ended its process with exit status 3"]);
    assert_eq!(run(bad("Good").sandbox(true))?, GOOD);
    Ok(())
}

#[test]
fn a_kernel_that_never_returns() {
    library();
    let start = Instant::now();
    fails(
        bad("Hang").sandbox(true).timeout(Duration::from_millis(300)),
        &["the kernel `Hang`", "did not return within 0.3 s, and was ended", "OPSMITH_AOT_TIMEOUT"],
    );
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn functions_beside_the_kernel_that_fail() {
    fails(bad("InitFails"), &["the kernel `InitFailsInit`", "returned -3"]);
    fails(
        bad("Asks"),
        &["`AsksInit`", "asks for the attribute `nope`, which is not declared (declared: none"],
    );
    fails(
        bad("Asks").attribute("nope", "text"),
        &["reads the attribute `nope` as int, but it is str (\"text\")"],
    );
    let infers = || {
        let new = Declaration::new("aot_bad_infer", format!("{}:InferThrows", library())).unlisted();
        new.input("x").output("y").dtypes([DType::F32; 2])
    };
    fails(infers(), &["`InferThrowsInferShape`", "threw: no shape will do"]);
    fails(infers().sandbox(true), &["`InferThrowsInferShape`", "threw: no shape will do"]);
    let missing =
        Declaration::new("aot_bad_missing", format!("{}:Good", library())).unlisted().input("x").output("y");
    fails(
        missing,
        &[
            "nothing says the shape of the outputs: there is no function `GoodInferShape`",
            "std::vector<int64_t> GoodInferShape(int *ndims, int64_t **shapes, AotExtra *extra)",
            "output_shape",
        ],
    );
    let missing =
        Declaration::new("aot_bad_missing", format!("{}:Good", library())).unlisted().input("x").output("y");
    fails(
        missing.output_shape([5]),
        &["nothing says the dtype of the outputs", "GoodInferType", "output_dtype"],
    );
}

#[test]
fn what_else_the_checks_find() -> Result<()> {
    let checked = |function| bad(function).check(true);
    fails(checked("ChangeInput"), &["changed its input `x` at byte 10"]);
    fails(checked("PastOutput"), &["past the end of output `y`: it has 20 bytes, and byte 20 was written"]);
    fails(checked("BeforeOutput"), &["before the start of output `y`, 4 bytes before it"]);
    fails(checked("ChangeShape"), &["changed the arrays of shapes"]);
    assert_eq!(run(checked("Good"))?, GOOD);
    // Elements that only look unwritten.
    let poison = f32::from_ne_bytes([0xA5; 4]);
    assert_eq!(run(checked("LooksPoisoned"))?, [poison; 5]);
    // Both switches at once.
    fails(checked("Forget").sandbox(true), &["left 1 of 5 elements of its output `y` unwritten"]);
    fails(checked("Crash").sandbox(true), &["signal 11"]);
    Ok(())
}

/// A result that depends on memory that the kernel has not written: each kind of memory, named.
#[test]
fn reads_of_memory_that_was_never_written() -> Result<()> {
    let checked = |function| bad(function).check(true);
    fails(
        checked("ReadsWorkspace"),
        &[
            "computes its output `y` from what workspace 1 held before the call",
            "element 4 (byte 16)",
            "OPSMITH_CHECK",
        ],
    );
    fails(checked("Largest"), &["from what workspace 0 held before the call"]);
    fails(checked("AddsToOutput"), &["from what output `y` held before the call", "memory does not"]);
    fails(checked("WritesHalves"), &["from what output `y` held before the call"]);
    fails(checked("ReadsPastInput"), &["from bytes outside of its buffers", "element 0"]);
    fails(checked("ReadsBeforeInput"), &["from bytes outside of its buffers", "element 1"]);
    assert_eq!(run(checked("WritesFirst"))?, GOOD);
    // A result that differs in each run proves nothing.
    assert_eq!(run(checked("Random"))?[1..], GOOD[1..]);
    fails(checked("ReadsWorkspace").sandbox(true), &["from what workspace 1 held before the call"]);
    Ok(())
}

#[test]
fn names_that_are_not_there() {
    fails(bad("Goood"), &["there is no function `Goood`", "`Good`"]);
}
