//! Reads an operator spec and generates everything an operator needs from it.
//!
//! `spec` turns YAML into entries with places, `diagnostics` says what is wrong with them.

pub mod diagnostics;
pub mod spec;

use diagnostics::{Diagnostics, SourceMap};
use spec::document::Document;

/// Checks the text of one spec; `path_name` is what messages call it.
pub fn check_text(path_name: &str, text: &str) -> (SourceMap, Diagnostics) {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add(path_name, text);
    if let Some(root) = spec::yaml::parse(&sources, source, &mut diagnostics)
        && let Some(document) = Document::from_node(&root, &sources, &mut diagnostics)
    {
        for op in &document.ops {
            op.parse_schema(&sources, &mut diagnostics);
        }
    }
    (sources, diagnostics)
}
