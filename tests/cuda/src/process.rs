//! Parts of a test program in processes of their own, which find the stand-ins where they would find the real libraries.
//!
//! In: parts by name; a folder for stand-ins. Out: the text of a process that did a part. With `OPSMITH_ON_DEVICE=1` processes find the
//! real libraries, and no stand-in is compiled. Must not know the crates that are tested.
//!
//! ```text
//! test ─► StandIns::done("part") ─► the same program, test `worker`, with the variable PART ─► work(PARTS) ─► "DONE part"
//! ```

use std::path::PathBuf;
use std::process::{Command, Output};

/// The variable that names the part of a process.
pub const PART: &str = "OPSMITH_CUDA_PART";

/// A name and the work of a process.
pub type Part = (&'static str, fn());

/// Variables that would change a process: files of libraries, checks of custom kernels, waits, hidden devices.
const CHANGING: [&str; 8] = [
    "OPSMITH_NVRTC",
    "OPSMITH_CUBLASLT",
    "OPSMITH_CUFFT",
    "OPSMITH_CUDNN",
    "OPSMITH_CHECK",
    "OPSMITH_AOT_SANDBOX",
    "OPSMITH_CUDA_SYNC",
    "CUDA_VISIBLE_DEVICES",
];

/// Whether processes find the libraries of a real device.
pub fn on_device() -> bool {
    std::env::var_os("OPSMITH_ON_DEVICE").is_some()
}

/// Does the part that this process was started for, if it was. The test `worker` of a program calls it.
pub fn work(parts: &[Part]) {
    let Ok(name) = std::env::var(PART) else { return };
    let (_, part) = parts.iter().find(|(known, _)| *known == name).expect("a part of that name");
    part();
    println!("DONE {name}");
}

/// A count that the driver's stand-in printed when the process ended; `None` on a real device.
pub fn counted(text: &str, name: &str) -> Option<i64> {
    let report = text.lines().find(|line| line.contains("STANDIN "))?;
    let count = report.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(count.parse().unwrap())
}

/// Stand-ins for the processes of a test program.
pub struct StandIns {
    /// Their folder, in which images are kept, too: keys of images do not hold the headers of the stand-ins.
    pub folder: PathBuf,
    /// The libraries of the vendor, as `OPSMITH_CUDA_LIBRARIES` names them, or `off`.
    libraries: &'static str,
}

impl StandIns {
    /// Fills a folder of this program with the driver, NVRTC and these libraries: `cublaslt,cufft`, or `off`.
    pub fn new(folder: PathBuf, libraries: &'static str) -> StandIns {
        if !on_device() {
            crate::driver(&folder);
            crate::nvrtc(&folder);
            for library in libraries.split(',') {
                match library {
                    "cublaslt" => crate::cublaslt(&folder),
                    "cufft" => crate::cufft(&folder),
                    "cudnn" => crate::cudnn(&folder),
                    other => assert_eq!(other, "off", "a library of that name"),
                }
            }
        }
        StandIns { folder, libraries }
    }

    /// The output of a process that does a part.
    pub fn start(&self, part: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker", "--nocapture", "--test-threads=1"]).env(PART, part);
        if !on_device() {
            command
                .env("LD_LIBRARY_PATH", &self.folder)
                .env("OPSMITH_CACHE_DIR", self.folder.join("cache"))
                .env("OPSMITH_CUDA_LIBRARIES", self.libraries);
            for variable in CHANGING {
                command.env_remove(variable);
            }
        }
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// The text of a process that does a part, which succeeds.
    #[track_caller]
    pub fn done(&self, part: &str, variables: &[(&str, &str)]) -> String {
        let output = self.start(part, variables);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        let is_done = output.status.success() && text.contains(&format!("DONE {part}"));
        assert!(is_done, "{part} {variables:?}: {text}\n{said}");
        text
    }

    /// The same, if the driver refuses no request.
    #[track_caller]
    pub fn done_strictly(&self, part: &str, variables: &[(&str, &str)]) -> String {
        let text = self.done(part, variables);
        assert!(counted(&text, "refused").is_none_or(|refused| refused == 0), "{part}: {text}");
        text
    }
}
