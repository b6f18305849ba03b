//! All of a site in one JSON file: the exported model, and with each operator the texts of its page.
//!
//! In: the map of a site and its pages. Out: one JSON object, the form of `docs/export.md` with the field `page` in each
//! operator, and `guide` and `changes` beside them.

use serde_json::{Value, json};

use super::map::SiteMap;
use super::operator::OperatorPage;
use crate::export;

/// The text of the file.
///
/// # Errors
/// If a page is no JSON, which is a defect.
pub fn everything(map: &SiteMap<'_>, pages: &[OperatorPage]) -> Result<String, String> {
    let mut value = export::export(&map.input.checked.model);
    if let Some(operators) = value["operators"].as_array_mut() {
        // Both are the operators of the spec itself in its order.
        for (operator, page) in operators.iter_mut().zip(pages) {
            let mut texts =
                serde_json::to_value(page).map_err(|error| format!("a page is no JSON: {error}"))?;
            if let Value::Object(texts) = &mut texts {
                texts.insert("address".to_owned(), json!(map.pages[&page.index]));
                let other = map.input.names.of(map.op(page.index));
                let other = other.into_iter().map(|(library, name)| (library.to_owned(), json!(name)));
                texts.insert("elsewhere".to_owned(), Value::Object(other.collect()));
            }
            // The export names files as the command was given them.
            operator["declared"] = json!(page.declared.text);
            operator["page"] = texts;
        }
    }
    value["guide"] = map
        .input
        .guide
        .documents
        .iter()
        .map(|document| json!({ "title": document.title, "part": document.part, "page": document.page, "file": document.path }))
        .collect();
    value["changes"] = map
        .input
        .releases
        .iter()
        .map(
            |release| json!({ "from": release.from, "until": release.to, "changes": release.report.changes }),
        )
        .collect();
    Ok(format!("{value}\n"))
}
