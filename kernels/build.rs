//! Tells the build scripts of crates that depend on this one where the headers for C and C++ kernels are.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::metadata=INCLUDE={folder}/include");
}
