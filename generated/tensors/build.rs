//! Generates the kernel tables of tensor functions from `ops.yaml`.

use std::path::{Path, PathBuf};

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here.
const FAMILIES: [&str; 15] = [
    "ops.yaml",
    "ops/choice.yaml",
    "ops/comparison.yaml",
    "ops/contraction.yaml",
    "ops/copies.yaml",
    "ops/creation.yaml",
    "ops/elementary.yaml",
    "ops/fourier.yaml",
    "ops/picking.yaml",
    "ops/products.yaml",
    "ops/programs.yaml",
    "ops/random.yaml",
    "ops/reductions.yaml",
    "ops/rounding.yaml",
    "ops/views.yaml",
];

fn main() {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    // A link to the workspace's; in a package, a file.
    let spec = Path::new(&folder).join("ops.yaml");
    let mut config = opsmith_codegen::Config::stock(spec.canonicalize().unwrap_or(spec));
    let include = std::env::var_os("DEP_OPSMITH_KERNELS_INCLUDE").expect("opsmith-kernels tells it");
    config.include.push(PathBuf::from(include));
    config.tables = Tables::Families(FAMILIES.map(str::to_owned).to_vec());
    opsmith_codegen::build_with(&config);
}
