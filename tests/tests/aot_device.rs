//! Kernels whose operands live on a device, where there is none: `tests/cuda/driver.cc` stands in for the
//! driver. Each part of the work runs in a process of its own, which finds the stand-in as it would find the
//! driver. `on_a_device` does the same work with a device; `tests/cuda/on_device.sh` starts it.

mod aot_device_work;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use opsmith_aot::Declaration;
use opsmith_runtime::Backend;

/// The process started by the tests below.
#[test]
fn worker() {
    if let Ok(part) = std::env::var("AOT_DEVICE_PART") {
        aot_device_work::work(&part);
    }
}

/// The folder with the stand-in and the kernels for it.
static STAND_IN: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-device");
    opsmith_stand_in::driver(&folder);
    let driver = folder.join("libcuda.so").display().to_string();
    opsmith_stand_in::compile("kernels.cc", &folder.join("kernels.so"), &["-I", INCLUDE, &driver]);
    folder
});

const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/include");

/// Does a part of the work with libraries of a folder.
fn start(part: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env("AOT_DEVICE_PART", part);
    for variable in ["OPSMITH_CHECK", "OPSMITH_AOT_SANDBOX", "OPSMITH_AOT_TIMEOUT", "OPSMITH_AOT_ALLOW"] {
        command.env_remove(variable);
    }
    command.env("LD_LIBRARY_PATH", folder).env("AOT_DEVICE_LIBRARY", STAND_IN.join("kernels.so"));
    // The host's memory is read as late as that of a copy from pinned memory is.
    command.env("STANDIN_PAGEABLE", "late");
    command.envs(variables.iter().copied()).output().unwrap()
}

/// The output of a part, which succeeded.
#[track_caller]
fn done(part: &str, variables: &[(&str, &str)]) -> String {
    let output = start(part, &STAND_IN, variables);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(&format!("DONE {part}")), "{text}\n{said}");
    text
}

/// A count that the stand-in printed when the process ended.
#[track_caller]
fn count(text: &str, name: &str) -> usize {
    let line = text.lines().find(|line| line.contains("STANDIN ")).unwrap_or_else(|| panic!("{text}"));
    let found = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("{line}")).parse().unwrap()
}

/// Runs a part; the device must have got back all of its memory, and must not have rejected any request.
#[track_caller]
fn done_cleanly(part: &str) -> String {
    let text = done(part, &[]);
    for name in ["live", "live_streams", "refused"] {
        assert_eq!(count(&text, name), 0, "{name}: {text}");
    }
    assert!(count(&text, "launches") > 0, "{text}");
    text
}

#[test]
fn calls_of_every_shape() {
    let text = done_cleanly("calls");
    assert_eq!(count(&text, "streams"), 1, "one call after the other has one stream: {text}");
}

#[test]
fn gradients() {
    done_cleanly("gradients");
}

#[test]
fn reductions_of_growing_sizes() {
    done_cleanly("reductions");
}

#[test]
fn graph_mode() {
    done_cleanly("graphs");
}

#[test]
fn tensors_of_the_device_stay_there() {
    let text = done_cleanly("resident");
    // To the device: x, y, and x of the host; back: the elements that are read. The watched call copies its buffers.
    assert!(count(&text, "launches") >= 4, "{text}");
}

#[test]
fn inputs_of_every_kind() {
    done_cleanly("inputs");
}

#[test]
fn records_name_the_target() {
    done_cleanly("records");
}

#[test]
fn libraries_carry_their_target() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aot-device-cache").display().to_string();
    let text = done("sources", &[("OPSMITH_CACHE_DIR", &cache)]);
    assert_eq!((count(&text, "live"), count(&text, "launches")), (0, 1), "{text}");
}

/// Contradictions between a file and a target, found before anything is compiled or a device looked for.
#[test]
fn targets_that_contradict_are_refused() {
    let declare = |kernel: &str, targets: &[Backend]| {
        let declaration = Declaration::new("device_contradiction", kernel).input("x").output("y").unlisted();
        let declared = targets.iter().copied().fold(declaration, Declaration::target).declare();
        declared.map(|_| ()).map_err(|error| error.to_string())
    };
    let error = declare("kernels/f.cu:F", &[Backend::Cpu]).unwrap_err();
    assert!(error.contains("kernels/f.cu is a source for CUDA, and is declared for CPU"), "{error}");
    assert!(error.contains("declare the target CUDA, or none"), "{error}");
    for kernel in ["kernels/f.cu:F", "kernels/f.cc:F", "f.so:F"] {
        let error = declare(kernel, &[Backend::Cpu, Backend::Cuda]).unwrap_err();
        assert!(error.contains("declared for CPU and for CUDA"), "{error}");
        assert_eq!(declare(kernel, &[Backend::Cuda]), Ok(()), "{kernel}");
        assert_eq!(declare(kernel, &[]), Ok(()), "{kernel}");
    }
    assert_eq!(declare("kernels/f.cc:F", &[Backend::Cpu]), Ok(()));
}

#[test]
fn several_threads() {
    done_cleanly("threads");
}

#[test]
fn the_result_is_waited_for() {
    done_cleanly("waits");
}

#[test]
fn warm_calls_allocate_nothing_on_the_device() {
    let few = done("warm", &[("AOT_DEVICE_TIMES", "1")]);
    let many = done("warm", &[("AOT_DEVICE_TIMES", "20")]);
    for name in ["allocations", "streams"] {
        assert_eq!(count(&few, name), count(&many, name), "{few}\n{many}");
    }
    assert_eq!(20 * count(&few, "launches"), count(&many, "launches"), "{few}\n{many}");
}

#[test]
fn kernels_that_fail() {
    done_cleanly("failures");
}

#[test]
fn checks_find_what_kernels_must_not_do() {
    done_cleanly("checks");
}

#[test]
fn an_illegal_address_loses_the_context() {
    done("illegal", &[]);
}

#[test]
fn the_sandbox_leaves_the_device_to_its_children() {
    let text = done("sandbox", &[]);
    assert!(!text.contains("STANDIN "), "this process has used the device: {text}");
}

#[test]
fn the_sandbox_needs_a_process_without_a_device() {
    done_cleanly("sandbox_after");
}

/// The result or error of each call of a process.
fn reported(variables: &[(&str, &str)]) -> Vec<String> {
    let text = done("reports", variables);
    let mut calls = Vec::new();
    for line in text.lines() {
        if let Some((_, result)) = line.split_once("RESULT ") {
            calls.push(result.to_owned());
        } else if let Some((_, error)) = line.split_once("FAILED ") {
            calls.push(error.to_owned());
        } else if let Some(call) =
            calls.last_mut().filter(|call| call.starts_with("device_") && !call.ends_with("END"))
        {
            call.push_str(&format!("\n{line}"));
        }
    }
    if !variables.is_empty() && text.contains("STANDIN ") {
        assert_eq!((count(&text, "live"), count(&text, "live_streams")), (0, 0), "{text}");
    }
    calls
}

const RIGHT: &str = "[2.0, 4.0, 6.0, 8.0, 10.0]";

#[track_caller]
fn all_contain(calls: &[String], texts: &[&str]) {
    assert_eq!(calls.len(), 3, "{calls:?}");
    for call in calls {
        texts.iter().for_each(|text| assert!(call.contains(text), "`{text}` is not in: {call}"));
    }
}

#[test]
fn a_driver_that_fails_is_quoted_and_nothing_is_lost() {
    assert_eq!(reported(&[]), [RIGHT; 3]);
    // The second of the three operands finds no memory at first, and then it does.
    assert_eq!(reported(&[("STANDIN_FAIL_ALLOC", "2")]), [RIGHT; 3]);
    all_contain(&reported(&[("STANDIN_MEMORY", "1100")]), &["the device has no memory for 20 bytes more"]);
    // Each copy of the first two calls in turn: one call fails, the next is right.
    for copy in 1..=6 {
        let calls = reported(&[("STANDIN_FAIL_COPY", &copy.to_string())]);
        let wrong: Vec<&String> = calls.iter().filter(|call| *call != RIGHT).collect();
        let [wrong] = wrong.as_slice() else { panic!("copy {copy}: {calls:?}") };
        assert!(wrong.contains("20 bytes") && wrong.contains("CUDA_ERROR_OPERATING_SYSTEM"), "{wrong}");
    }
}

#[test]
fn a_driver_that_is_not_there_is_said() {
    all_contain(
        &reported(&[("STANDIN_INIT", "100")]),
        &["the CUDA driver finds no device", "nvidia-smi", "CUDA_VISIBLE_DEVICES"],
    );
    all_contain(&reported(&[("STANDIN_INIT", "34")]), &["CUDA_ERROR_STUB_LIBRARY", "LD_LIBRARY_PATH"]);
    all_contain(&reported(&[("STANDIN_INIT", "3")]), &["CUDA_ERROR_NOT_INITIALIZED", "copy (fork)"]);
    let none = concat!(env!("CARGO_TARGET_TMPDIR"), "/aot-device-none");
    opsmith_stand_in::no_driver(Path::new(none));
    let library = host_library();
    let variables = [("LD_LIBRARY_PATH", none), ("AOT_DEVICE_LIBRARY", &library)];
    all_contain(
        &reported(&variables),
        &[
            "no CUDA driver was found: libcuda.so.1 cannot be loaded",
            "install its driver",
            "runs on the host",
        ],
    );
    // And one that lacks a function.
    let old = concat!(env!("CARGO_TARGET_TMPDIR"), "/aot-device-old");
    let driver = Path::new(old).join("libcuda.so");
    opsmith_stand_in::driver(Path::new(old));
    opsmith_stand_in::compile("driver.cc", &driver, &["-pthread", "-DcuMemAlloc_v2=cuMemAlloc"]);
    let variables = [("LD_LIBRARY_PATH", old), ("AOT_DEVICE_LIBRARY", &library)];
    all_contain(&reported(&variables), &["the CUDA driver has no function `cuMemAlloc_v2`"]);
}

/// A library that is not linked with the driver, as those are that find it while they run.
fn host_library() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("device-nothing.cc");
    std::fs::write(&source, "extern \"C\" int Add(...) { return 9; }\n").unwrap();
    let library = folder.join("device-nothing.so");
    opsmith_stand_in::compile(&source.display().to_string(), &library, &[]);
    library.display().to_string()
}

/// All of the work with a device: `AOT_DEVICE_LIBRARY` is the library that nvcc made of `tests/cuda/kernels.cu`.
#[test]
#[ignore = "needs a device of NVIDIA; tests/cuda/on_device.sh starts it"]
fn on_a_device() {
    let library = std::env::var("AOT_DEVICE_LIBRARY").expect("AOT_DEVICE_LIBRARY names the kernels");
    let mut failed = Vec::new();
    for (part, _) in
        aot_device_work::PARTS.iter().filter(|(part, _)| !aot_device_work::OF_STAND_IN.contains(part))
    {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env("AOT_DEVICE_PART", part);
        let output =
            command.env("AOT_DEVICE_LIBRARY", &library).env("AOT_DEVICE_TIMES", "1000").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let right = output.status.success() && text.contains(&format!("DONE {part}"));
        println!("{} {part}", if right { "passed" } else { "FAILED" });
        text.lines().filter(|line| line.contains("warm call")).for_each(|line| println!("  {line}"));
        if !right {
            println!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
            failed.push(part);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
