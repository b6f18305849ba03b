//! Generates the stock library from `ops.yaml`, and tells dependents where it is.

use std::path::{Path, PathBuf};

use opsmith_codegen::config::{RustPath, Tables};

fn main() {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    // A link to the workspace's; in a package, a file.
    let spec = Path::new(&folder).join("ops.yaml");
    let spec = spec.canonicalize().unwrap_or(spec);
    let include = std::env::var_os("DEP_OPSMITH_KERNELS_INCLUDE").expect("opsmith-kernels tells it");
    println!("cargo::metadata=SPEC={}", spec.display());
    println!("cargo::metadata=INCLUDE={}", Path::new(&include).display());
    let mut config = opsmith_codegen::Config::stock(spec);
    config.include.push(PathBuf::from(include));
    let tables = ["::opsmith_layer_tables", "::opsmith_tensor_tables"];
    config.tables = Tables::Of(tables.map(|path| RustPath::parse(path).expect("a crate's path")).to_vec());
    opsmith_codegen::build_with(&config);
}
