//! Generates the kernel tables of tensor functions from `ops.yaml`.

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here, and of the functions that their expressions call.
const FAMILIES: [&str; 9] = [
    "ops/arrangement.yaml",
    "ops/contraction.yaml",
    "ops/creation.yaml",
    "ops/functions.yaml",
    "ops/picking.yaml",
    "ops/products.yaml",
    "ops/random.yaml",
    "ops/reductions.yaml",
    "ops/views.yaml",
];

fn main() {
    opsmith_codegen::build_stock(Tables::Families(FAMILIES.map(str::to_owned).to_vec()));
}
