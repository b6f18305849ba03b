//! The documentation of keys, and the words that a value may be, from the schema of spec files.
//!
//! In: the keys that lead to a place. Out: rows of the key tables, names of keys, words. The schema is that of
//! `opsmith schema`, so the two never differ.

use std::sync::OnceLock;

use opsmith_codegen::spec::document::keys::{
    DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, KeySpec, OP_KEYS, find,
};
use serde_json::Value;

use crate::json_schema::json_schema;

/// The row of a key at a place; `None` if its keys are in no table.
pub(super) fn row(path: &[&str], key: &str) -> Option<&'static KeySpec> {
    find(table(path)?, key)
}

/// The table of the keys at a place.
pub(super) fn table(path: &[&str]) -> Option<&'static [KeySpec]> {
    match path {
        [] => Some(FILE_KEYS),
        ["ops"] => Some(OP_KEYS),
        ["functions"] => Some(FUNCTION_KEYS),
        ["declarations"] => Some(DECLARATION_KEYS),
        _ => None,
    }
}

/// The keys of a mapping inside an entry that the schema lists, such as `CPU` under `dispatch`.
pub(super) fn keys(path: &[&str]) -> Vec<String> {
    let of = |schema: &Value| {
        schema["properties"]
            .as_object()
            .map(|keys| keys.keys().cloned().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    at(path).into_iter().flat_map(of).collect()
}

/// The words that a value at a place may be, if the schema lists them.
pub(super) fn words(path: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for schema in at(path) {
        for word in schema["enum"].as_array().into_iter().flatten() {
            words.push(word.as_str().map_or_else(|| word.to_string(), str::to_owned));
        }
        if schema["type"] == "boolean" {
            words.extend(["true".to_owned(), "false".to_owned()]);
        }
    }
    let mut known = std::collections::HashSet::new();
    words.retain(|word| known.insert(word.clone()));
    words
}

/// The parts of the schema for a place, one for each alternative.
fn at(path: &[&str]) -> Vec<&'static Value> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let mut found = alternatives(SCHEMA.get_or_init(json_schema));
    for key in path {
        let inside = |schema: &'static Value| {
            let listed = &schema["properties"][*key];
            let further = &schema["additionalProperties"];
            if listed.is_object() { listed } else { further }
        };
        found = found.into_iter().map(inside).flat_map(alternatives).collect();
    }
    found
}

/// A schema, those of its items, and those that it is any of.
fn alternatives(schema: &'static Value) -> Vec<&'static Value> {
    let mut all = Vec::new();
    if schema.is_object() {
        all.push(schema);
        all.extend(alternatives(&schema["items"]));
        all.extend(schema["anyOf"].as_array().into_iter().flatten().flat_map(alternatives));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_words_of_the_schema() {
        assert_eq!(words(&["ops", "variants"]), ["functional", "inplace", "out"]);
        assert_eq!(words(&["ops", "view"]), ["true", "false"]);
        assert!(words(&["ops", "dtypes"]).contains(&"floating".to_owned()));
        assert!(words(&["ops", "dtypes", "CPU"]).contains(&"float32".to_owned()));
        assert!(words(&["ops", "doc"]).is_empty());
        assert_eq!(keys(&["ops", "dispatch"]), ["CPU", "CUDA", "Host", "View"]);
        assert!(keys(&["ops", "attributes", "p"]).contains(&"one_of".to_owned()));
        assert_eq!(row(&["ops"], "doc").map(|row| row.name), Some("doc"));
    }
}
