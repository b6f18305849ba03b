//! Generates the stock library from `../ops.yaml`, and tells dependents where it is.

use std::path::Path;

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).parent().expect("the crate is a folder of the workspace");
    let include = root.join("kernels").join("include");
    println!("cargo::metadata=SPEC={}", root.join("ops.yaml").display());
    println!("cargo::metadata=INCLUDE={}", include.display());
    let mut config = opsmith_codegen::Config::stock(root.join("ops.yaml"));
    config.include.push(include);
    opsmith_codegen::build_with(&config);
}
