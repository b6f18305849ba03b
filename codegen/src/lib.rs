//! The generator: from an operator spec to all code and documents of a library.
//!
//! [`pipeline`] shows the stages in order: `spec` turns YAML into entries with spans, `lower` turns entries into the
//! checked `model` (with `expr` for all expressions), `emit` turns the model into files, `output` writes them. Mistakes
//! are reported through `diagnostics`. [`build()`] is the entry point of build scripts.

pub mod analysis;
mod build;
pub mod chain;
pub mod code_places;
pub mod config;
pub mod diagnostics;
pub mod emit;
pub mod expr;
mod kernel_file;
pub mod lower;
pub mod manifest;
pub mod model;
pub mod output;
pub mod pipeline;
mod reader;
pub mod spec;

pub use build::{build, build_stock, build_with};
pub use config::{Config, Parent, RustPath};
pub use opsmith_core::Backend;

use diagnostics::{Diagnostics, SourceMap};

/// Checks the text of one spec; `path_name` is its name in messages.
pub fn check_text(path_name: &str, text: &str) -> (SourceMap, Diagnostics) {
    let checked = pipeline::check_text(path_name, text);
    (checked.sources, checked.diagnostics)
}
