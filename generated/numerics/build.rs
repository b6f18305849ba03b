//! Generates the kernel tables of numerical methods from `ops.yaml`.

use opsmith_codegen::config::Tables;

/// The files of the spec whose tables are here, and of the functions that their expressions call.
const FAMILIES: [&str; 10] = [
    "ops/decompositions.yaml",
    "ops/fourier.yaml",
    "ops/functions.yaml",
    "ops/least_squares.yaml",
    "ops/linear_algebra.yaml",
    "ops/matrices.yaml",
    "ops/numbers.yaml",
    "ops/searching.yaml",
    "ops/signals.yaml",
    "ops/statistics.yaml",
];

fn main() {
    opsmith_codegen::build_stock(Tables::Families(FAMILIES.map(str::to_owned).to_vec()));
}
