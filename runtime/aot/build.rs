//! Compiles the C++ half of custom kernels (`src/cpp`), the only C++ of this project's crates: the objects that kernels
//! see, and the calls of their functions.

fn main() {
    println!("cargo::rerun-if-changed=src/cpp");
    println!("cargo::rerun-if-changed=src/custom_aot_extra.h");
    // One class with each layout of `std::string`. The file before them in the order of the linker needs both.
    compile("calls", &["calls", "attributes", "dual"], &[]);
    for (layout, make) in [("0", "MakeOld"), ("1", "MakeNew")] {
        let defines = [("_GLIBCXX_USE_CXX11_ABI", layout), ("OPSMITH_MAKE", make)];
        compile(make, &["extra"], &defines);
    }
}

fn compile(library: &str, sources: &[&str], defines: &[(&str, &str)]) {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").warnings(true).extra_warnings(true);
    for source in sources {
        build.file(format!("src/cpp/{source}.cc"));
    }
    for (name, value) in defines {
        build.define(name, *value);
    }
    build.compile(&format!("opsmith_aot_{library}"));
}
