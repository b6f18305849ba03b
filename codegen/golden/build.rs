//! Generates the operators of `spec.yaml`.

use std::path::Path;

use opsmith_codegen::{Config, RustPath};

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&manifest);
    let root = folder.ancestors().nth(2).expect("the crate is a folder of the generator");
    let path = |text: &str| RustPath::parse(text).expect("a literal path");
    let mut config = Config {
        library: "golden".to_owned(),
        runtime: path("::opsmith_runtime"),
        kernels: path("crate::kernels"),
        cpu_kernels: path("crate::kernels"),
        ..Config::new(folder.join("spec.yaml"))
    };
    config.include.push(root.join("kernels/include"));
    opsmith_codegen::build_with(&config);
}
