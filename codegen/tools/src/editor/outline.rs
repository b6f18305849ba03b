//! The outline of a spec: its entries.
//!
//! In: a checked spec. Out: a declaration each, in the order of the files.

use opsmith_codegen::diagnostics::{Diagnostics, SourceId, Span};
use opsmith_codegen::pipeline::Checked;
use opsmith_codegen::spec::document::keys::KeyName;

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutlineKind {
    /// An operator.
    Operator,
    /// A scalar function.
    Function,
}

/// An entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutlineEntry {
    /// The name, with overload.
    pub name: String,
    /// The signature.
    pub signature: String,
    /// Its kind.
    pub kind: OutlineKind,
    /// The span of the entry.
    pub entry: Span,
    /// The span of its name.
    pub place: Span,
    /// Whether it is deprecated.
    pub deprecated: bool,
}

/// The entries of one file, or of all.
pub fn declarations(checked: &Checked, file: Option<SourceId>) -> Vec<OutlineEntry> {
    let mut found = Vec::new();
    for document in checked.documents.iter().map(|loaded| &loaded.document) {
        for raw in &document.functions {
            let name = raw.func.as_str().split('(').next().unwrap_or_default().trim();
            found.push(OutlineEntry {
                name: name.to_owned(),
                signature: raw.func.as_str().to_owned(),
                kind: OutlineKind::Function,
                entry: raw.span,
                place: raw.func.span_within(0..name.len(), &checked.sources),
                deprecated: false,
            });
        }
        for raw in &document.ops {
            let schema = raw.parse_schema(&checked.sources, &mut Diagnostics::new());
            let (name, range) = match schema {
                Some(schema) => (schema.name.to_string(), schema.name_range),
                None => {
                    let name = raw.func.as_str().split('(').next().unwrap_or_default().trim();
                    (name.to_owned(), 0..name.len())
                }
            };
            found.push(OutlineEntry {
                name,
                signature: raw.func.as_str().to_owned(),
                kind: OutlineKind::Operator,
                entry: raw.span,
                place: raw.func.span_within(range, &checked.sources),
                deprecated: raw.get(KeyName::Deprecated).is_some(),
            });
        }
    }
    found.retain(|declaration| file.is_none_or(|file| declaration.entry.source == file));
    found
}
