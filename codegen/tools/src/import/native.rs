//! `native_functions.yaml` to entries: a signature, and all other fields.
//!
//! In: the file's tree. Out: [`Native`] entries in file order. Fields are not interpreted here, so that none can be
//! lost.

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};
use opsmith_codegen::lower::note;
use opsmith_codegen::model::Note;
use opsmith_codegen::spec::schema::Schema;
use opsmith_codegen::spec::yaml::Node;

/// An entry of the file.
pub(super) struct Native {
    /// The signature as written.
    pub func: String,
    /// The signature.
    pub schema: Schema,
    /// Every other field, in file order.
    pub fields: Vec<(String, Note)>,
}

/// The field of the signature.
pub(super) const FUNC: &str = "func";

/// Reads the entries. Those with a malformed signature are reported.
pub(super) fn read(root: &Node, sources: &SourceMap, diagnostics: &mut Diagnostics) -> Vec<Native> {
    let mut entries = Vec::new();
    for item in root.as_seq().unwrap_or_default() {
        let pairs = item.as_map().unwrap_or_default();
        let Some((_, func)) = pairs.iter().find(|(key, _)| key.text == FUNC) else {
            diagnostics.push(opsmith_codegen::diagnostics::catalogue::func_missing(item.span, "operator"));
            continue;
        };
        let text = func.as_text().unwrap_or_default();
        let locate = |range| func.span_within(range, sources.text(func.span.source));
        let Some(schema) = Schema::parse(text, &locate, diagnostics) else { continue };
        let fields = pairs.iter().filter(|(key, _)| key.text != FUNC);
        let fields = fields.map(|(key, value)| (key.text.clone(), note(value))).collect();
        entries.push(Native { func: text.to_owned(), schema, fields });
    }
    entries
}

impl Native {
    /// A field's value.
    pub fn field(&self, name: &str) -> Option<&Note> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    /// A field's text, split at commas.
    pub fn words(&self, name: &str) -> Vec<&str> {
        match self.field(name) {
            Some(Note::Text(text)) => text.split(',').map(str::trim).collect(),
            Some(Note::List(items)) => items
                .iter()
                .filter_map(|item| match item {
                    Note::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The full name.
    pub fn name(&self) -> String {
        self.schema.name.to_string()
    }

    /// The kernels by backend: one row for each of the backends in a key. An entry without a table is a composition,
    /// which the file does not state.
    pub fn kernels(&self) -> Vec<(String, String)> {
        let Some(Note::Map(table)) = self.field("dispatch") else {
            return vec![("CompositeImplicitAutograd".to_owned(), self.default_kernel())];
        };
        let mut rows = Vec::new();
        for (backends, kernel) in table {
            let Note::Text(kernel) = kernel else { continue };
            rows.extend(backends.split(',').map(|backend| (backend.trim().to_owned(), kernel.clone())));
        }
        rows
    }

    /// The function of an entry without a table: its own C++ name.
    fn default_kernel(&self) -> String {
        let name = &self.schema.name;
        let out = if self.schema.out_args().next().is_some() { "_out" } else { "" };
        format!("{}{out}", name.spelling())
    }
}
