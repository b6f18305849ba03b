//! Compiles the one piece of C++ that the runtime needs: what catches exceptions of foreign kernels.

fn main() {
    println!("cargo::rerun-if-changed=src/aot/guard.cc");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .file("src/aot/guard.cc")
        .compile("opsmith_aot_guard");
}
