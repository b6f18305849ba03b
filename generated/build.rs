//! Generates the stock library from `ops.yaml`, and tells dependents where it is.

use opsmith_codegen::config::{RustPath, Tables};

fn main() {
    let tables = ["elementwise", "layer", "numeric", "tensor"].map(|name| format!("::opsmith_{name}_tables"));
    let tables = tables.map(|path| RustPath::parse(&path).expect("a crate's path"));
    let config = opsmith_codegen::build_stock(Tables::Of(tables.to_vec()));
    println!("cargo::metadata=SPEC={}", config.spec.display());
    println!("cargo::metadata=FEATURES={}", config.features.unwrap_or_default().join(" "));
    println!("cargo::metadata=INCLUDE={}", config.include[0].display());
}
