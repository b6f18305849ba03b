//! Builds the stand-in for CUDA's driver (`driver.cc`), for tests of several crates.

#![allow(dead_code, reason = "not every test file uses everything")]
//!
//!
//! In: the name of a folder that only one test program uses. Out: the folder, for `LD_LIBRARY_PATH`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with the stand-in, under the driver's file names.
pub fn driver(name: &str) -> PathBuf {
    let folder = empty(name);
    compile("driver.cc", &folder.join("libcuda.so"), &["-pthread", "-Wl,-soname,libcuda.so.1"]);
    std::os::unix::fs::symlink("libcuda.so", folder.join("libcuda.so.1")).unwrap();
    folder
}

/// As [`driver`], with a stand-in for CUDA's runtime beside it (`cudart.cc`), with which nvcc's own code launches
/// kernels. Also returns the value of `NVCC_APPEND_FLAGS` that links libraries with it.
pub fn runtime(name: &str) -> (PathBuf, String) {
    let folder = driver(name);
    let driver = folder.join("libcuda.so").display().to_string();
    compile("cudart.cc", &folder.join("libcudart.so"), &["-Wl,-soname,libcudart.so.13", &driver]);
    std::os::unix::fs::symlink("libcudart.so", folder.join("libcudart.so.13")).unwrap();
    let flags = format!("-cudart shared -L{}", folder.display());
    (folder, flags)
}

/// A folder with libraries of those names that cannot be loaded, which is equivalent to no driver.
pub fn no_driver(name: &str) -> PathBuf {
    let folder = empty(name);
    for library in ["libcuda.so", "libcuda.so.1"] {
        std::fs::write(folder.join(library), "no library").unwrap();
    }
    folder
}

/// Compiles a source of this folder, or of any other by its whole path, to a library.
#[track_caller]
pub fn compile(source: &str, output: &Path, flags: &[&str]) {
    let run = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()))
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-o"])
        .arg(output)
        .arg(sources().join(source))
        .args(flags)
        .output()
        .expect("there is a C++ compiler");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// This folder, for any crate of the workspace.
fn sources() -> PathBuf {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = folders.find_map(|folder| Some(folder.join("tests/cuda")).filter(|cuda| cuda.is_dir()));
    found.expect("the crate is part of the workspace")
}

fn empty(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
