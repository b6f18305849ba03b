//! The stand-ins for the driver and NVRTC: kernels run as on a device, and each planted mistake is reported.
//!
//! Each scenario runs in a process of its own, for settings and lost contexts belong to one. The stand-ins are compiled once.

#[path = "emulation/cuda.rs"]
mod cuda;
#[path = "emulation/faults.rs"]
mod faults;
#[path = "emulation/kernels.rs"]
mod kernels;
#[path = "emulation/order.rs"]
mod order;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cuda::{Cuda, Handle};

pub(crate) const TEXT: &str = include_str!("emulation/kernels.cu");
pub(crate) const SM_90: &[&str] = &["--gpu-architecture=sm_90", "--std=c++17", "--fmad=false"];

/// The folder of the stand-ins.
fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulation");
        opsmith_stand_in::driver(&folder);
        opsmith_stand_in::nvrtc(&folder);
        folder
    };
    FOLDER.get_or_init(make).clone()
}

/// The output of a process that ran a scenario.
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) done: bool,
}

/// Runs a scenario in a process with settings.
pub(crate) fn run(scenario: &str, settings: &[(&str, &str)]) -> Output {
    let folder = folder();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker", "--nocapture", "--test-threads=1"])
        .env("EMULATION_SCENARIO", scenario)
        .env("EMULATION_FOLDER", folder)
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Output { done: text.contains("SCENARIO DONE"), text }
}

/// Runs a scenario that must end well; returns its output.
#[track_caller]
pub(crate) fn passes(scenario: &str, settings: &[(&str, &str)]) -> String {
    let output = run(scenario, settings);
    assert!(output.done, "{scenario} {settings:?}\n{}", output.text);
    output.text
}

/// The stand-ins and a loaded module of the kernels, in a process that runs a scenario.
pub(crate) struct Loaded {
    pub(crate) cuda: Cuda,
    pub(crate) module: Handle,
    pub(crate) stream: Handle,
}

impl Loaded {
    pub(crate) fn new() -> Loaded {
        let folder = PathBuf::from(std::env::var("EMULATION_FOLDER").unwrap());
        let cuda = Cuda::start(&folder);
        let image = image(&cuda, &folder);
        let module = cuda.load(&image).unwrap();
        let stream = cuda.stream();
        Loaded { cuda, module, stream }
    }

    /// Launches a kernel on the stream.
    #[track_caller]
    pub(crate) fn launch(&self, name: &str, grid: cuda::Grid, arguments: &[&dyn cuda::Argument]) {
        let function = self.cuda.function(self.module, name).unwrap();
        assert_eq!(self.cuda.launch(function, grid, self.stream, arguments), 0, "{name}");
    }
}

/// The compiled kernels, which processes with equal settings share.
fn image(cuda: &Cuda, folder: &Path) -> Vec<u8> {
    let checked = std::env::var("STANDIN_CHECK").is_ok();
    let (file, own) =
        (folder.join(format!("kernels-{checked}")), folder.join(format!("kernels-{}", std::process::id())));
    if let Ok(image) = std::fs::read(&file) {
        return image;
    }
    let image = cuda.compile(TEXT, SM_90).unwrap_or_else(|(code, log)| panic!("{code} {log}"));
    std::fs::write(&own, &image).unwrap();
    std::fs::rename(own, file).unwrap();
    image
}

/// One of the scenarios below, in a process that a test started.
#[test]
fn worker() {
    let Ok(scenario) = std::env::var("EMULATION_SCENARIO") else { return };
    let all = kernels::SCENARIOS.iter().chain(faults::SCENARIOS).chain(order::SCENARIOS);
    let (_, function) = all.into_iter().find(|(name, _)| *name == scenario).expect("a known scenario");
    function();
    println!("SCENARIO DONE");
}
