//! Generates the kernel tables of elementwise functions from `ops.yaml`.

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here, and of the functions that their expressions call.
const FAMILIES: [&str; 10] = [
    "ops.yaml",
    "ops/arithmetic.yaml",
    "ops/choice.yaml",
    "ops/comparison.yaml",
    "ops/copies.yaml",
    "ops/elementary.yaml",
    "ops/functions.yaml",
    "ops/programs.yaml",
    "ops/quantization.yaml",
    "ops/rounding.yaml",
];

fn main() {
    opsmith_codegen::build_stock(Tables::Families(FAMILIES.map(str::to_owned).to_vec()));
}
