//! A stand-in for the driver of CUDA's devices (`driver.cc`), compiled for tests of several crates.
//!
//! In: a folder that only one test program uses, which is emptied. Out: libraries in it, for `LD_LIBRARY_PATH`. Must not know
//! the crates that are tested.

use std::path::Path;
use std::process::Command;

/// Fills a folder with the stand-in, under the names by which the driver is looked for.
pub fn driver(folder: &Path) {
    empty(folder);
    compile("driver.cc", &folder.join("libcuda.so"), &["-pthread", "-Wl,-soname,libcuda.so.1"]);
    std::os::unix::fs::symlink("libcuda.so", folder.join("libcuda.so.1")).unwrap();
}

/// The same, with a stand-in for CUDA's runtime beside it (`cudart.cc`), with which nvcc's own code launches
/// kernels. Returns the value of `NVCC_APPEND_FLAGS` by which libraries are linked with it.
pub fn runtime(folder: &Path) -> String {
    driver(folder);
    let driver = folder.join("libcuda.so").display().to_string();
    compile("cudart.cc", &folder.join("libcudart.so"), &["-Wl,-soname,libcudart.so.13", &driver]);
    std::os::unix::fs::symlink("libcudart.so", folder.join("libcudart.so.13")).unwrap();
    format!("-cudart shared -L{}", folder.display())
}

/// Fills a folder with libraries of those names that cannot be loaded, which is as good as none.
pub fn no_driver(folder: &Path) {
    empty(folder);
    for library in ["libcuda.so", "libcuda.so.1"] {
        std::fs::write(folder.join(library), "no library").unwrap();
    }
}

/// Compiles a source of this crate, or of any other folder by its whole path, to a library.
#[track_caller]
pub fn compile(source: &str, output: &Path, flags: &[&str]) {
    let run = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned()))
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-o"])
        .arg(output)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        .args(flags)
        .output()
        .expect("there is a C++ compiler");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

fn empty(folder: &Path) {
    _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
}
