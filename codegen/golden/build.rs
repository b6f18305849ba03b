//! Generates the operators of `spec.yaml`.

use std::path::Path;

use opsmith_codegen::{Backend, Config, RustPath};

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&manifest);
    let root = folder.ancestors().nth(2).expect("the crate is a folder of the generator");
    let path = |text: &str| RustPath::parse(text).expect("a literal path");
    let mut config = Config {
        library: "golden".to_owned(),
        runtime: path("::opsmith_runtime"),
        custom_kernels: path("::opsmith_aot"),
        kernels: path("crate::kernels"),
        backends: vec![
            (Backend::Cpu, path("crate::kernels")),
            (Backend::Cuda, path("crate::device_kernels")),
        ],
        ..Config::new(folder.join("spec.yaml"))
    };
    config.include.push(root.join("kernels/include"));
    opsmith_codegen::build_with(&config);
}
