//! Compiles `guard.cc`, the only C++ of this project's crates, which catches exceptions of foreign kernels.

fn main() {
    println!("cargo::rerun-if-changed=src/guard.cc");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .file("src/guard.cc")
        .compile("opsmith_aot_guard");
}
