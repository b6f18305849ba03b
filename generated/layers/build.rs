//! Generates the kernel tables of layers of networks from `ops.yaml`.

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here, and of the functions that their expressions call.
const FAMILIES: [&str; 13] = [
    "ops/activation.yaml",
    "ops/attention.yaml",
    "ops/borders.yaml",
    "ops/convolution.yaml",
    "ops/distances.yaml",
    "ops/functions.yaml",
    "ops/detection.yaml",
    "ops/images.yaml",
    "ops/losses.yaml",
    "ops/normalization.yaml",
    "ops/pooling.yaml",
    "ops/recurrent.yaml",
    "ops/upsampling.yaml",
];

fn main() {
    opsmith_codegen::build_stock(Tables::Families(FAMILIES.map(str::to_owned).to_vec()));
}
