//! Reads an operator spec and generates everything an operator needs from it.
//!
//! [`pipeline`] shows the stages in order: `spec` turns YAML into entries with places, `lower` turns
//! entries into the checked `model` (with `expr` for everything written as an expression), `emit`
//! turns the model into files, `output` writes them. `diagnostics` says what is wrong on the way.
//! [`build()`] is what a build script calls.

pub mod analysis;
mod build;
pub mod chain;
pub mod config;
pub mod diagnostics;
pub mod emit;
pub mod expr;
mod kernel_file;
pub mod lower;
pub mod model;
pub mod output;
pub mod pipeline;
mod reader;
pub mod spec;

pub use build::{build, build_with};
pub use config::{Config, Parent, RustPath};
pub use opsmith_core::Backend;

use diagnostics::{Diagnostics, SourceMap};

/// Checks the text of one spec; `path_name` is what messages call it.
pub fn check_text(path_name: &str, text: &str) -> (SourceMap, Diagnostics) {
    let checked = pipeline::check_text(path_name, text);
    (checked.sources, checked.diagnostics)
}
