//! Custom kernels among operators on CUDA devices, where there is none: `tests/cuda` stands in for the driver and for NVRTC.
//! Each part runs in a process of its own, which finds them as it would find the real ones.

use std::path::Path;
use std::sync::LazyLock;

use opsmith::{DType, Device, Result, Tensor, TensorOps};
use opsmith_aot::{AttrType, Declaration, Operator};
use opsmith_runtime::Backend;
use opsmith_stand_in::process::{self, Part, StandIns};

const DEVICE: Device = Device::cuda(0);
const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/include");

/// The variable that tells it the library of kernels.
const KERNELS: &str = "OPSMITH_CUDA_CUSTOM_KERNELS";

/// Every part, by name.
const PARTS: [Part; 4] = [
    ("chain", || chain().unwrap()),
    ("threads", || threads().unwrap()),
    ("failures", || failures().unwrap()),
    ("illegal", || illegal().unwrap()),
];

/// The process started by the tests below.
#[test]
fn worker() {
    process::work(&PARTS);
}

/// The stand-ins, and the kernels for them.
static STAND_INS: LazyLock<StandIns> = LazyLock::new(|| {
    let stand_ins = StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-custom"), "off");
    let driver = stand_ins.folder.join("libcuda.so").display().to_string();
    let library = stand_ins.folder.join("kernels.so");
    opsmith_stand_in::compile("kernels.cc", &library, &["-I", INCLUDE, &driver]);
    stand_ins
});

/// Runs a part, and returns its output.
#[track_caller]
fn done(part: &str, variables: &[(&str, &str)]) -> String {
    let (library, cache) =
        (STAND_INS.folder.join("kernels.so"), STAND_INS.folder.join(format!("cache-{part}")));
    let own = [(KERNELS, library.to_str().unwrap()), ("OPSMITH_CACHE_DIR", cache.to_str().unwrap())];
    STAND_INS.done(part, &[&own, variables].concat())
}

/// A count that the stand-in printed when the process ended.
#[track_caller]
fn count(text: &str, name: &str) -> usize {
    process::counted(text, name).unwrap_or_else(|| panic!("no {name} in {text}")) as usize
}

#[test]
fn custom_kernels_are_work_of_the_streams_of_operators() {
    let text = done("chain", &[]);
    assert_eq!(count(&text, "streams"), 1, "custom kernels have no stream of their own: {text}");
    assert_eq!(count(&text, "refused"), 0, "{text}");
}

#[test]
fn threads_follow_the_uses_of_a_kernel() {
    assert_eq!(count(&done("threads", &[]), "refused"), 0);
}

#[test]
fn a_kernel_that_fails_leaves_the_stream_usable() {
    done("failures", &[]);
}

#[test]
fn an_illegal_address_is_reported_by_the_wait_or_by_the_call() {
    done("illegal", &[]);
    done("illegal", &[("OPSMITH_CUDA_SYNC", "1")]);
}

fn declaration(function: &str, inputs: &[&str]) -> Declaration {
    let kernels = std::env::var(KERNELS).expect("the library is named");
    let declaration = Declaration::new(format!("cuda_{function}"), format!("{kernels}:{function}"));
    let declaration = inputs.iter().fold(declaration, |declaration, input| declaration.input(*input));
    declaration.output("out").target(Backend::Cuda).dtypes(vec![DType::F32; inputs.len() + 1])
}

fn same_shape(function: &str, inputs: &[&str]) -> Result<Operator> {
    let declaration = declaration(function, inputs).output_shape_fn(|call| Ok(vec![call.shape(0)?.to_vec()]));
    declaration.unlisted().declare()
}

/// Rows of sums, with a workspace as large as an input.
fn reduce() -> Result<Operator> {
    declaration("Reduce", &["x", "y"])
        .attribute_at_call("axis", AttrType::Int)
        .attribute_with_default("keep_dim", false)
        .declare()
}

fn matrix(rows: usize, columns: usize) -> Result<Tensor> {
    let values: Vec<f32> = (0..rows * columns).map(|at| (at % 97) as f32 / 8.0 - 3.0).collect();
    Tensor::from_slice(&values, &[rows as i64, columns as i64])
}

/// Operators and custom kernels in turn, of which each needs the result before. Nothing waits between them: the stand-in
/// executes work of a stream when it is waited for.
fn chain() -> Result<()> {
    let (square, slow, add) =
        (same_shape("Square", &["x"])?, same_shape("Slow", &["x"])?, same_shape("Add", &["x", "y"])?);
    let (ignores, reduce) = (same_shape("IgnoresStream", &["x"])?, reduce()?);
    let host = matrix(6, 50)?;
    let run = |x: &Tensor, is_custom: bool| -> Result<Tensor> {
        let doubled = x.add(x)?;
        let squares =
            if is_custom { slow.call(&[&square.call(&[&doubled])?])? } else { doubled.mul(&doubled)? };
        let shifted = squares.mul(&x.exp()?)?;
        let sums = if is_custom {
            let shifted = ignores.call(&[&shifted])?;
            reduce.call_with(&[&shifted, &add.call(&[&shifted, &shifted])?], &[("axis", 1.into())])?.remove(0)
        } else {
            shifted.add(&shifted.add(&shifted)?)?.sum_dim(Some(&[1]))?
        };
        sums.mul(&sums)
    };
    let expected = run(&host, false)?.to_vec::<f32>()?;
    for _ in 0..3 {
        let result = run(&host.to_device(DEVICE)?, true)?;
        assert_eq!(result.device(), DEVICE);
        for (found, expected) in result.to_vec::<f32>()?.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-5 * expected.abs(), "{found} instead of {expected}");
        }
    }
    // Memory of workspaces and results is the device's allocator's.
    assert!(opsmith_cuda::memory_statistics(0)?.peak_bytes > 0);
    Ok(())
}

/// One object of a kernel serves the streams of several threads one after the other.
fn threads() -> Result<()> {
    let (reduce, slow) = (reduce()?, same_shape("Slow", &["x"])?);
    let x = matrix(4, 300)?.to_device(DEVICE)?;
    let expected = x.add(&x)?.sum_dim(Some(&[1]))?.to_vec::<f32>()?;
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            for _ in 0..20 {
                let copy = slow.call(&[&x])?;
                let sums = reduce.call_with(&[&x, &copy], &[("axis", 1.into())])?.remove(0);
                for (found, expected) in sums.to_vec::<f32>()?.iter().zip(&expected) {
                    assert!((found - expected).abs() <= 1e-3, "{found} instead of {expected}");
                }
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the thread ends"))
    })
}

fn failures() -> Result<()> {
    let (seven, throws, square) =
        (same_shape("Seven", &["x"])?, same_shape("Throws", &["x"])?, same_shape("Square", &["x"])?);
    let x = Tensor::of(&[1f32, 2.0, 3.0]).to_device(DEVICE)?;
    for (failing, text) in [(&seven, "returned 7"), (&throws, "threw")] {
        let error = failing.call(&[&x]).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(square.call(&[&x])?.to_vec::<f32>()?, [1.0, 4.0, 9.0]);
    }
    Ok(())
}

fn illegal() -> Result<()> {
    let illegal = same_shape("Illegal", &["x"])?;
    let x = Tensor::of(&[1f32, 2.0, 3.0]).to_device(DEVICE)?;
    let error = match (illegal.call(&[&x]), std::env::var_os("OPSMITH_CUDA_SYNC")) {
        (Err(error), Some(_)) => {
            assert!(error.to_string().contains("it ran the kernel `Illegal`"), "{error}");
            error
        }
        (Ok(out), None) => out.to_vec::<f32>().unwrap_err(),
        (found, _) => panic!("{found:?}"),
    };
    assert!(error.to_string().contains("ILLEGAL_ADDRESS"), "{error}");
    // The device cannot be used any more, by whichever of both.
    for error in [x.add(&x).and_then(|sum| sum.to_vec::<f32>().map(drop)), illegal.call(&[&x]).map(drop)] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("ILLEGAL_ADDRESS"), "{error}");
    }
    Ok(())
}
