//! Generates the kernel tables of layers of networks from `ops.yaml`.

use std::path::{Path, PathBuf};

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here.
const FAMILIES: [&str; 10] = [
    "ops/activation.yaml",
    "ops/attention.yaml",
    "ops/borders.yaml",
    "ops/convolution.yaml",
    "ops/distances.yaml",
    "ops/images.yaml",
    "ops/losses.yaml",
    "ops/normalization.yaml",
    "ops/pooling.yaml",
    "ops/recurrent.yaml",
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
