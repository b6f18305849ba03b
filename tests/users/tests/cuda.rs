//! Operators on CUDA devices, where there is none: stand-ins for the driver and for NVRTC (`tests/cuda`) run the same texts on
//! the host. Each test does its work in a process of its own, which finds them as it would find the real ones;
//! `OPSMITH_ON_DEVICE=1` lets it find those.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use opsmith::cuda::images::{CompiledImage, ImageTarget, options_for, text_key};
use opsmith::cuda::{KernelOrigin, Nvrtc};
use opsmith::runtime::op::OpDef;
use opsmith::runtime::{DTypeSet, set_host_fallback};
use opsmith::{Device, LIBRARY, Tensor, TensorOps};
use opsmith_stand_in::process::{self, Part, StandIns};
use opsmith_testing::checks::{self, Agreement};
use opsmith_testing::{Report, report, results};
use opsmith_tools::results::{Outcome, Results};

const DEVICE: Device = Device::cuda(0);

/// A part of the work, by name.
const PARTS: &[Part] = &[
    ("forms", forms),
    ("dtypes", dtypes),
    ("gradients", gradients),
    ("graphs", graphs),
    ("errors", errors),
    ("archive", archive),
    ("from_archive", from_archive),
];

/// The process started by the tests below.
#[test]
fn worker() {
    results::name_devices(device_name());
    process::work(PARTS);
}

/// The name of the device in results.
fn device_name() -> &'static str {
    if process::on_device() { "CUDA" } else { "CUDA (stand-in)" }
}

/// The stand-ins. One cache of images serves all parts, which run the same kernels.
static STAND_INS: LazyLock<StandIns> = LazyLock::new(|| {
    StandIns::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda"), "cublaslt,cufft,cudnn")
});

#[track_caller]
fn done(part: &str) {
    done_with(part, &[]);
}

/// A part of the work, with more variables.
#[track_caller]
fn done_with(part: &str, variables: &[(&str, &str)]) {
    println!("{}", STAND_INS.done(part, variables));
}

#[test]
fn every_form_agrees_with_the_host() {
    done("forms");
}

/// Threads, and blocks, that run in another order between waits: a barrier that is missing shows.
#[test]
fn the_order_of_threads_changes_no_result() {
    if process::on_device() {
        println!("not run: a device has its own order");
        return;
    }
    for order in ["reversed", "random:3"] {
        done_with("forms", &[("STANDIN_ORDER", order)]);
    }
}

/// All dtypes, for the texts of all kernels too (`scripts/cuda-images`).
#[test]
#[ignore = "compiles each kernel for every dtype: minutes; `scripts/cuda-images` calls it"]
fn every_form_in_every_dtype_agrees_with_the_host() {
    done("dtypes");
}

#[test]
fn every_gradient_agrees_with_the_host() {
    done("gradients");
}

#[test]
fn every_graph_agrees_with_the_host() {
    done("graphs");
}

/// Texts that a first run keeps become an archive, with which a second one needs no compiler.
#[test]
fn operators_run_from_an_archive_without_a_compiler() {
    if process::on_device() {
        println!("not run: the archive would be the stand-in's, which no device loads");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-archive");
    _ = std::fs::remove_dir_all(&folder);
    let driver = folder.join("driver");
    opsmith_stand_in::driver(&driver);
    for name in ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"] {
        std::fs::write(driver.join(name), "no library").unwrap();
    }
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (texts, file) = (path(&folder.join("texts")), path(&folder.join("kernels.images")));
    let operators = ("OPSMITH_OPERATORS", "add,mm,softmax,sort,index_select");
    // A library would compute products, whose kernels then have no text.
    let own = ("OPSMITH_CUDA_LIBRARIES", "off");
    done_with("forms", &[operators, own, ("OPSMITH_CUDA_EVERY", "1"), ("OPSMITH_CUDA_KEEP_TEXT", &texts)]);
    done_with("archive", &[("OPSMITH_CUDA_KEEP_TEXT", &texts), ("OPSMITH_CUDA_IMAGES", &file)]);
    done_with(
        "from_archive",
        &[
            operators,
            own,
            ("OPSMITH_CUDA_EVERY", "1"),
            ("OPSMITH_CUDA_IMAGES", &file),
            ("LD_LIBRARY_PATH", &path(&driver)),
            ("OPSMITH_CACHE_DIR", "/proc/nonexistent"),
            ("PATH", "/nonexistent"),
        ],
    );
}

/// Without libraries of the vendor, products, transforms and convolutions are computed by kernels of our own.
#[test]
fn work_without_libraries_agrees_with_the_host() {
    let alone = "convolution,convolution_backward,conv2d,_fft_r2c,_fft_c2r,_fft_c2c,mm,bmm,addmm,_addmm_activation,_mm_activation,baddbmm,addbmm,mv,addmv,dot,linear,matmul,einsum,lstm,gru";
    let alone =
        [("OPSMITH_CUDA_LIBRARIES", "off"), ("OPSMITH_OPERATORS", alone), ("OPSMITH_CUDA_EVERY", "1")];
    for part in ["forms", "gradients"] {
        done_with(part, &alone);
    }
}

#[test]
fn results_are_recorded_under_the_devices_name() {
    let file = std::env::temp_dir().join(format!("opsmith-device-{}.jsonl", std::process::id()));
    let place = file.to_str().unwrap();
    for part in ["forms", "gradients", "graphs"] {
        done_with(
            part,
            &[("OPSMITH_OPERATORS", "relu"), ("OPSMITH_CUDA_EVERY", "1"), (results::VARIABLE, place)],
        );
    }
    let recorded = Results::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let name = device_name();
    let cells = &recorded.operator("relu").unwrap().cells;
    let passed = |dtype: &str, check: &str| {
        cells.iter().any(|cell| {
            cell.backend == name
                && cell.dtype == dtype
                && cell.check == check
                && matches!(cell.outcome, Outcome::Passed(_))
        })
    };
    for (dtype, check) in
        [("float32", "forward"), ("bfloat16", "inplace"), ("float64", "gradient"), ("float32", "graph")]
    {
        assert!(passed(dtype, check), "{check} in {dtype}: {cells:?}");
    }
    assert!(!passed("complex128", "forward"), "relu has no complex numbers");
}

#[test]
fn an_operator_without_a_kernel_says_how_it_runs_on_the_host() {
    done("errors");
}

/// Compares the operators, or those that `OPSMITH_OPERATORS` names: `mm,bmm`; each third alone with `OPSMITH_CUDA_EVERY=3`,
/// as `.ci/run` has it. Each must be on the device: nothing runs by copies.
fn compared(compare: impl Fn(&'static OpDef) -> Report + Sync) -> Option<Report> {
    let chosen = std::env::var("OPSMITH_OPERATORS").ok();
    let every: usize =
        std::env::var("OPSMITH_CUDA_EVERY").map_or(1, |text| text.parse().expect("a whole number"));
    let place = |op: &OpDef| LIBRARY.ops.iter().position(|other| other.name == op.name);
    let is_named = |op: &OpDef| {
        chosen.as_ref().is_none_or(|names| {
            names.split(',').any(|name| op.name == name || op.name.split('.').next() == Some(name))
        })
    };
    let is_chosen = |op: &OpDef| is_named(op) && place(op).is_some_and(|place| place.is_multiple_of(every));
    let report = report(&LIBRARY, |op| if is_chosen(op) { compare(op) } else { Report::default() });
    println!("{} comparisons", report.compared);
    report.assert_right();
    (chosen.is_none() && every == 1).then_some(report)
}

/// The units in the last place by which functions of another library may differ.
const UNITS: Agreement = Agreement::Units(16);

fn forms() {
    let report = compared(|op| checks::forms_on(op, DEVICE, UNITS));
    assert!(report.is_none_or(|report| report.compared > 5000));
}

fn dtypes() {
    let report = compared(|op| checks::forms_in(op, DEVICE, UNITS, DTypeSet::ALL.iter()));
    assert!(report.is_none_or(|report| report.compared > 10_000));
}

/// Makes an archive of the texts in a folder: machine code of the device for each second one, PTX for the others.
fn archive() {
    let variable = |name| PathBuf::from(std::env::var_os(name).unwrap());
    let nvrtc = Nvrtc::find().unwrap();
    let mut images = Vec::new();
    for (number, entry) in std::fs::read_dir(variable("OPSMITH_CUDA_KEEP_TEXT")).unwrap().enumerate() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let target = if number % 2 == 0 { ImageTarget::Cubin(90) } else { ImageTarget::Ptx(75) };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let image = nvrtc.compile(&name, &text, target, &options_for(target)).unwrap().image;
        let (key, line, compiler) = (text_key(&text), String::new(), String::new());
        images.push(CompiledImage { key, name, line, target, compiler, resources: None, image });
    }
    let bytes = opsmith::cuda::images::archive(images).unwrap();
    std::fs::write(variable("OPSMITH_CUDA_IMAGES"), bytes).unwrap();
}

fn from_archive() {
    forms();
    let kernels = opsmith::cuda::loaded_kernels(0).unwrap();
    let is_of = |cubin: bool| {
        let is = |origin: &KernelOrigin| matches!(origin, KernelOrigin::Archive { target, .. } if target.is_cubin() == cubin);
        kernels.iter().filter(|kernel| is(&kernel.origin)).count()
    };
    let (cubins, ptx) = (is_of(true), is_of(false));
    assert!(
        cubins > 10 && ptx > 10 && cubins + ptx == kernels.len(),
        "{cubins} and {ptx} of {}",
        kernels.len()
    );
}

fn gradients() {
    let report = compared(|op| checks::gradients_on(op, DEVICE, UNITS));
    assert!(report.is_none_or(|report| report.compared > 2000));
}

fn graphs() {
    let report = compared(|op| checks::graphs_on(op, DEVICE, UNITS));
    assert!(report.is_none_or(|report| report.compared > 2000));
}

/// An operator of a user's crate has a kernel for the host alone.
fn errors() {
    let host = Tensor::of(&[1.0f32, 2.0, -0.5, 4.0]);
    let x = host.to_device(DEVICE).unwrap();
    let sum = x.add(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(sum, [2.0, 4.0, -1.0, 8.0]);

    let grid = host.reshape([2, 2]).unwrap();
    let on_device = grid.to_device(DEVICE).unwrap();
    set_host_fallback(false);
    let error = opsmith_example_custom_op::laplacian(&on_device).unwrap_err().to_string();
    for part in
        ["there is no CUDA kernel for float32", "set_host_fallback(true)", "OPSMITH_DEVICE_FALLBACK=host"]
    {
        assert!(error.contains(part), "{error}");
    }

    set_host_fallback(true);
    let found = opsmith_example_custom_op::laplacian(&on_device).unwrap();
    let expected = opsmith_example_custom_op::laplacian(&grid).unwrap();
    assert_eq!(found.device(), DEVICE);
    assert_eq!(found.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());

    // An error of elements arrives at the wait that follows.
    let (a, b) = (Tensor::of(&[6, 7]), Tensor::of(&[3, 0]));
    let quotient = a.to_device(DEVICE).unwrap().floor_divide(&b.to_device(DEVICE).unwrap()).unwrap();
    let error = quotient.to_vec::<i32>().unwrap_err().to_string();
    assert!(error.contains("integer division by zero"), "{error}");

    // Operands of two devices are an error that names both.
    let error = x.add(&host).unwrap_err().to_string();
    assert!(error.contains("cuda:0") && error.contains("cpu"), "{error}");
}
