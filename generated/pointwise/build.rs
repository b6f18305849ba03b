//! Generates the tables of the stock library's loops from `ops.yaml`.

use std::path::{Path, PathBuf};

use opsmith_codegen::config::Tables;

fn main() {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    // A link to the workspace's; in a package, a file.
    let spec = Path::new(&folder).join("ops.yaml");
    let mut config = opsmith_codegen::Config::stock(spec.canonicalize().unwrap_or(spec));
    let include = std::env::var_os("DEP_OPSMITH_KERNELS_INCLUDE").expect("opsmith-kernels tells it");
    config.include.push(PathBuf::from(include));
    config.tables = Tables::Loops;
    opsmith_codegen::build_with(&config);
}
