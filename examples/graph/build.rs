//! Generates this crate's operators.

fn main() {
    opsmith_codegen::build("ops.yaml");
}
