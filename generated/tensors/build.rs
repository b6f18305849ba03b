//! Generates the kernel tables of tensor functions from `ops.yaml`.

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here, and of the functions that their expressions call.
const FAMILIES: [&str; 16] = [
    "ops.yaml",
    "ops/arrangement.yaml",
    "ops/choice.yaml",
    "ops/comparison.yaml",
    "ops/contraction.yaml",
    "ops/copies.yaml",
    "ops/creation.yaml",
    "ops/elementary.yaml",
    "ops/functions.yaml",
    "ops/picking.yaml",
    "ops/products.yaml",
    "ops/programs.yaml",
    "ops/random.yaml",
    "ops/reductions.yaml",
    "ops/rounding.yaml",
    "ops/views.yaml",
];

fn main() {
    opsmith_codegen::build_stock(Tables::Families(FAMILIES.map(str::to_owned).to_vec()));
}
