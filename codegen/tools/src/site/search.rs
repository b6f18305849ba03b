//! The index of the search: a script that sets a variable, because pages in files may not fetch.
//!
//! In: the map of a site. Out: a row for each page: title, address, kind, summary, and more words to find it by.

use serde_json::{Value, json};

use super::map::SiteMap;
use super::render::summary;

/// The most letters of a summary.
const MOST_LETTERS: usize = 110;

/// The index.
pub fn index(map: &SiteMap<'_>) -> String {
    let mut rows: Vec<Value> = Vec::new();
    for (index, page) in &map.pages {
        let op = map.op(*index);
        let mut words: Vec<&str> = op.facts.known_as.iter().map(String::as_str).collect();
        words.extend(map.input.names.of(op).into_iter().flat_map(|(_, names)| names.split_whitespace()));
        if op.rust_name != op.base {
            words.push(&op.rust_name);
        }
        words.extend(op.facts.tags.iter().map(String::as_str));
        let kind = if op.facts.backward_only { "formula" } else { "operator" };
        rows.push(json!([op.name, page, kind, short(&summary(&op.doc)), words.join(" ")]));
    }
    for document in &map.input.guide.documents {
        rows.push(json!([document.title, document.page, "guide", document.part, document.path]));
    }
    for family in &map.families {
        let count = format!("{} operators", family.operators.len());
        rows.push(json!([family.title, family.page, "family", count, family.file]));
    }
    rows.push(json!(["Coverage", "coverage.html", "page", "Outcomes of tests", ""]));
    rows.push(json!(["Changes", "changes.html", "page", "Changes of the spec", ""]));
    format!("window.opsmithIndex={};\n", Value::Array(rows))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
