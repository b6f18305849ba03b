//! Stand-ins for the driver of CUDA's devices (`driver.cc`) and for NVRTC (`nvrtc.cc`), compiled for tests of several crates.
//!
//! In: a folder that only one test program uses, which is emptied. Out: libraries in it, for `LD_LIBRARY_PATH`. Must not know
//! the crates that are tested.

pub mod process;

use std::path::Path;
use std::process::Command;

/// `emulate.h` and the headers that it includes.
const HEADERS: [&str; 6] =
    ["emulate.h", "module.h", "emulate/threads.h", "emulate/numbers.h", "emulate/math.h", "emulate/table.h"];

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

/// Adds a stand-in for NVRTC, under the names by which it is looked for, and the headers that it compiles texts with.
///
/// The driver's folder will do: this one is not emptied.
pub fn nvrtc(folder: &Path) {
    std::fs::create_dir_all(folder.join("emulate")).unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    for header in HEADERS {
        std::fs::copy(sources.join(header), folder.join(header)).unwrap();
    }
    compile("nvrtc.cc", &folder.join("libnvrtc.so"), &["-pthread", "-Wl,-soname,libnvrtc.so.13"]);
    _ = std::fs::remove_file(folder.join("libnvrtc.so.13"));
    std::os::unix::fs::symlink("libnvrtc.so", folder.join("libnvrtc.so.13")).unwrap();
}

/// Adds a stand-in for cuBLASLt, under the names by which it is looked for, to a folder that has the driver's.
pub fn cublaslt(folder: &Path) {
    cublaslt_with(folder, &[]);
}

/// The same, compiled with more flags.
pub fn cublaslt_with(folder: &Path, flags: &[&str]) {
    let driver = folder.join("libcuda.so").display().to_string();
    let named = ["-pthread", "-ffp-contract=off", "-Wl,-soname,libcublasLt.so.13", &driver];
    compile("cublaslt.cc", &folder.join("libcublasLt.so"), &[&named[..], flags].concat());
    _ = std::fs::remove_file(folder.join("libcublasLt.so.13"));
    std::os::unix::fs::symlink("libcublasLt.so", folder.join("libcublasLt.so.13")).unwrap();
}

/// Adds a stand-in for cuFFT, under the names by which it is looked for, to a folder that has the driver's.
pub fn cufft(folder: &Path) {
    let driver = folder.join("libcuda.so").display().to_string();
    let flags = ["-pthread", "-Wl,-soname,libcufft.so.12", &driver];
    compile("cufft.cc", &folder.join("libcufft.so"), &flags);
    _ = std::fs::remove_file(folder.join("libcufft.so.12"));
    std::os::unix::fs::symlink("libcufft.so", folder.join("libcufft.so.12")).unwrap();
}

/// Adds a stand-in for cuDNN, under the names by which it is looked for, to a folder that has the driver's.
pub fn cudnn(folder: &Path) {
    let driver = folder.join("libcuda.so").display().to_string();
    let flags = ["-pthread", "-ffp-contract=off", "-Wl,-soname,libcudnn.so.9", &driver];
    compile("cudnn.cc", &folder.join("libcudnn.so"), &flags);
    _ = std::fs::remove_file(folder.join("libcudnn.so.9"));
    std::os::unix::fs::symlink("libcudnn.so", folder.join("libcudnn.so.9")).unwrap();
}

/// The header that makes a text of kernels one for the host's compiler, for tests without the driver.
pub fn emulation() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("emulate.h")
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
