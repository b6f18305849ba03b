//! Generates the operators of `../tests/golden/everything/spec.yaml`.

use std::path::Path;

use opsmith_codegen::Config;

fn main() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).parent().expect("the crate is a folder of the generator");
    let path = |text: &str| syn::parse_str(text).expect("a literal path");
    let mut config = Config {
        library: "golden".to_owned(),
        runtime: path("::opsmith_runtime"),
        kernels: path("crate::kernels"),
        cpu_kernels: path("crate::kernels"),
        ..Config::new(root.join("tests/golden/everything/spec.yaml"))
    };
    config.include.push(root.parent().expect("the workspace").join("kernels/include"));
    opsmith_codegen::build_with(&config);
}
